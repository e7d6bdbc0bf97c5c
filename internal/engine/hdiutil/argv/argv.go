// Package argv turns typed commands into the arguments of hdiutil and of
// diskutil, and into what goes to their standard input.
//
// It builds and checks, and runs nothing. Sizes are given in the one unit that
// each tool cannot misread: sectors of 512 bytes for hdiutil, plain bytes for
// diskutil. A passphrase is never an argument: hdiutil reads it up to the end or
// to a NUL, so that a newline would belong to it; diskutil reads a line.
// Grammar: hdiutil(1) and diskutil(8) of macOS 15 to 27.
package argv

import (
	"bytes"
	"fmt"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// Tool is the program that a command is for.
type Tool string

// The tools.
const (
	Hdiutil  Tool = "hdiutil"
	Diskutil Tool = "diskutil"
)

// Command is one run of a tool.
type Command struct {
	Tool Tool
	Verb string   // "create", "image attach": the words that messages name it by
	Args []string // all arguments, the verb included
	// Input is what standard input holds, nil for none. It may carry a
	// passphrase: whoever runs the command wipes it.
	Input []byte
}

// Wipe overwrites the input.
func (c Command) Wipe() { clear(c.Input) }

// String is the command line for messages. It has no secrets: they are never arguments.
func (c Command) String() string {
	words := []string{string(c.Tool)}
	for _, a := range c.Args {
		if a == "" || strings.ContainsAny(a, " \t'\"\\$&;()<>*?`|") {
			a = "'" + strings.ReplaceAll(a, "'", `'\''`) + "'"
		}
		words = append(words, a)
	}
	return strings.Join(words, " ")
}

// Limits of what tools take.
const (
	Sector        = 512
	MinBand       = 2048 * Sector     // 1 MiB
	MaxBand       = 16777216 * Sector // 8 GiB
	maxPassphrase = 1024              // bytes; fits into a pipe twice
)

func hdiutil(verb string, args ...string) Command {
	return Command{Tool: Hdiutil, Verb: verb, Args: append([]string{verb}, args...)}
}

func diskutil(verb string, args ...string) Command {
	return Command{Tool: Diskutil, Verb: verb, Args: append(strings.Fields(verb), args...)}
}

// exact is hdiutil's input: the bytes, NUL between two passphrases, no newline.
func (c Command) exact(list ...[]byte) (Command, error) {
	return c.secret(list, "\x00", "\x00", "a zero byte")
}

// lines is diskutil's input: a line each.
func (c Command) lines(list ...[]byte) (Command, error) {
	c, err := c.secret(list, "\n", "\r\n\x00", "a line break or a zero byte")
	if err == nil && c.Input != nil {
		c.Input = append(c.Input, '\n')
	}
	return c, err
}

func (c Command) secret(list [][]byte, between, forbidden, named string) (Command, error) {
	list = slices.DeleteFunc(slices.Clone(list), func(p []byte) bool { return p == nil })
	if len(list) == 0 {
		return c, nil
	}
	input := make([]byte, 0, len(list)*(maxPassphrase+1)+1) // one allocation: nothing to wipe is left behind
	for i, p := range list {
		problem := ""
		switch {
		case len(p) == 0:
			problem = "it is empty"
		case len(p) > maxPassphrase:
			problem = fmt.Sprintf("%d bytes, at most %d", len(p), maxPassphrase)
		case bytes.ContainsAny(p, forbidden):
			problem = fmt.Sprintf("%s cannot be given to %s", named, c.Tool)
		}
		if problem != "" {
			clear(input)
			return Command{}, fmt.Errorf("passing the passphrase: %s", problem)
		}
		if i > 0 {
			input = append(input, between...)
		}
		input = append(input, p...)
	}
	c.Input = input
	return c, nil
}

// Path checks that a path is absolute, so that it can be no option.
func path(name string) error {
	if !filepath.IsAbs(name) || strings.ContainsRune(name, 0) {
		return fmt.Errorf("naming %q: want an absolute path", name)
	}
	return nil
}

func device(name string) error {
	if !strings.HasPrefix(name, "/dev/") || strings.Contains(name, "..") || len(name) == len("/dev/") {
		return fmt.Errorf("naming device %q: want /dev/…", name)
	}
	return nil
}

func whole(size, unit int64, what string) error {
	if size <= 0 || size%unit != 0 {
		return fmt.Errorf("%s of %d bytes: want a positive multiple of %d", what, size, unit)
	}
	return nil
}

func sectors(size int64) string { return strconv.FormatInt(size/Sector, 10) }

func firstError(list ...error) error {
	for _, err := range list {
		if err != nil {
			return err
		}
	}
	return nil
}

// Package command builds the command lines of hdiutil and diskutil, runs them,
// and parses what they print.
//
// Builders check their arguments and run no program. Sizes are given in the one
// unit that a tool cannot misread: sectors of 512 bytes for hdiutil, bytes for
// diskutil. A passphrase is never an argument: hdiutil reads it from standard
// input up to the end or to a NUL, so that a newline would belong to it;
// diskutil reads one line. Grammar: hdiutil(1) and diskutil(8) of macOS 15 to
// 27.
package command

import (
	"bytes"
	"cmp"
	"fmt"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"dmgbench/internal/image"
)

// Tool is the program that a command runs.
type Tool string

// The tools.
const (
	Hdiutil  Tool = "hdiutil"
	Diskutil Tool = "diskutil"
	Log      Tool = "log" // log(1), which prints the system's log
)

// Command is one command line.
type Command struct {
	Tool Tool
	Verb string   // for messages: "create", "image attach"
	Args []string // all arguments, the verb included
	// Input is written to standard input, nil for none. It may hold a
	// passphrase: the caller wipes it after the last run.
	Input []byte
	Err   error // an invalid argument: the command must not be run
}

// Wipe overwrites the input.
func (c Command) Wipe() { clear(c.Input) }

// String is the command line for messages. Passphrases are never arguments, so
// that it holds no secret.
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

// Limits of the tools, in bytes.
const (
	Sector        = image.SectorSize
	DiskutilUnit  = 4096 // sizes given to diskutil are multiples of it
	maxPassphrase = 1024 // two of them fit into a pipe
)

// hdiutil starts a command of hdiutil; the first of the errors that is not nil
// makes it invalid.
func hdiutil(verb string, errs ...error) Command {
	return Command{Tool: Hdiutil, Verb: verb, Args: []string{verb}, Err: cmp.Or(errs...)}
}

// diskutil is hdiutil for diskutil, whose verbs have several words.
func diskutil(verb string, errs ...error) Command {
	return Command{Tool: Diskutil, Verb: verb, Args: strings.Fields(verb), Err: cmp.Or(errs...)}
}

// with appends arguments.
func (c Command) with(args ...string) Command {
	c.Args = append(c.Args, args...)
	return c
}

// withIf appends arguments if the condition holds.
func (c Command) withIf(condition bool, args ...string) Command {
	if condition {
		return c.with(args...)
	}
	return c
}

// withInput sets standard input to the passphrases that are not nil. For
// hdiutil: the bytes, a NUL between two passphrases, no newline; for diskutil:
// one line each.
func (c Command) withInput(list ...[]byte) Command {
	list = slices.DeleteFunc(slices.Clone(list), func(p []byte) bool { return p == nil })
	if len(list) == 0 || c.Err != nil {
		return c
	}
	separator, forbidden, name := "\x00", "\x00", "a zero byte"
	if c.Tool == Diskutil {
		separator, forbidden, name = "\n", "\r\n\x00", "a line break or a zero byte"
	}
	input := make([]byte, 0, len(list)*(maxPassphrase+1)) // one allocation: Wipe reaches every copy
	for i, p := range list {
		problem := ""
		switch {
		case len(p) == 0:
			problem = "it is empty"
		case len(p) > maxPassphrase:
			problem = fmt.Sprintf("%d bytes, at most %d", len(p), maxPassphrase)
		case bytes.ContainsAny(p, forbidden):
			problem = fmt.Sprintf("%s does not accept %s in it", c.Tool, name)
		}
		if problem != "" {
			clear(input)
			c.Err = fmt.Errorf("passing the passphrase: %s", problem)
			return c
		}
		if input = append(input, p...); i < len(list)-1 || c.Tool == Diskutil {
			input = append(input, separator...)
		}
	}
	c.Input = input
	return c
}

// checkPath requires an absolute path, which no tool takes for an option.
func checkPath(name string) error {
	if !filepath.IsAbs(name) || strings.ContainsRune(name, 0) {
		return fmt.Errorf("naming %q: want an absolute path", name)
	}
	return nil
}

func checkDevice(name string) error {
	if !strings.HasPrefix(name, "/dev/") || strings.Contains(name, "..") || len(name) == len("/dev/") {
		return fmt.Errorf("naming device %q: want /dev/…", name)
	}
	return nil
}

func checkSize(size, unit int64) error {
	if size <= 0 || size%unit != 0 {
		return fmt.Errorf("image of %d bytes: want a positive multiple of %d", size, unit)
	}
	return nil
}

// checkBand requires that images of the type have bands, and of this size; 0
// means the tool's default.
func checkBand(size int64, kind, banded string) error {
	switch {
	case size == 0:
		return nil
	case kind != banded:
		return fmt.Errorf("bands of a %s image: only %s has them", kind, banded)
	}
	return image.CheckBandSize(size)
}

func checkEncryption(kind string, passphrase []byte) error {
	switch {
	case kind == "" && passphrase != nil:
		return fmt.Errorf("a passphrase without encryption")
	case kind != "" && passphrase == nil:
		return fmt.Errorf("encryption %s without a passphrase", kind)
	}
	return nil
}

func sectors(size int64) string { return strconv.FormatInt(size/Sector, 10) }

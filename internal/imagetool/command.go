// Package imagetool is an hdiutil for Linux, and the part of `diskutil image` that
// belongs to it: Apple's grammar, property lists, messages and exit statuses over
// this project's own containers, partition tables and exFAT volumes. What mounts
// and attaches is an [Attacher].
//
// One table ([verbs]) holds every verb and option. Grammar, `hdiutil help` and the
// manual page are made from it, so that they cannot drift apart.
//
// It refuses what is not in the table, and what Apple's tools know and this one
// does not do (yet): with status 1 and the reason, never by doing something else.
// It measures nothing, prompts for nothing, and reaches host files through package
// hostio only.
package imagetool

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"io"
	"os"
	"runtime/debug"
	"syscall"
	"time"

	"dmgbench/internal/attach"
)

// Env is everything that a command takes from outside, so that tests need no privileges.
type Env struct {
	Stdin          io.Reader
	Stdout, Stderr io.Writer
	Attacher       Attacher                // nil: nothing can be attached; see [System]
	Helper         func(args []string) int // runs the process behind an attached image, see HelperVerb
	Now            func() time.Time        // of files put into volumes; nil: the clock of the host
	Random         io.Reader               // for identifiers; nil: the system's
	Dir            string                  // relative paths start here; "": the working folder
	Version        string                  // what info says
	UID            int                     // of the user
	iterations     int                     // of the key derivation of new images; 0: as many as is safe
}

// HelperVerb is the hidden verb under which package attach starts this program again.
const HelperVerb = attach.HelperVerb

// Main executes one command line, without the name of the program: a verb of
// hdiutil with its arguments, or "diskutil" and a verb of diskutil's. The result is
// the exit status: 0 done; 1 not done, or not understood; 16 a volume is busy; 35
// the image to be resized is in use; 80 the passphrase is wrong or missing (1 when attaching, as from Apple's); 130 interrupted;
// 141 done, and nobody read the output to its end.
func Main(ctx context.Context, args []string, env Env) int {
	if len(args) > 0 && args[0] == HelperVerb && env.Helper != nil {
		return env.Helper(args[1:])
	}
	c := &call{ctx: ctx, env: env.complete(), tool: "hdiutil"}
	defer c.secrets.wipe()
	if len(args) > 0 && args[0] == "diskutil" {
		c.tool, args = "diskutil", args[1:]
	}
	out := &output{to: c.env.Stdout}
	c.out, c.err = out, c.env.Stderr
	err := c.understand(args)
	if err == nil {
		err = cmp.Or(c.verb.run(c), out.err)
	}
	if errors.Is(out.err, syscall.EPIPE) && errors.Is(err, syscall.EPIPE) {
		return statusPipe
	}
	return c.conclude(err)
}

func (e Env) complete() Env {
	if e.Stdin == nil {
		e.Stdin = eof{}
	}
	if e.Stdout == nil {
		e.Stdout = io.Discard
	}
	if e.Stderr == nil {
		e.Stderr = io.Discard
	}
	if e.Attacher == nil {
		e.Attacher = nothing{}
	}
	if e.Now == nil {
		e.Now = time.Now
	}
	if e.Random == nil {
		e.Random = rand.Reader
	}
	if e.Version == "" {
		e.Version = "0"
	}
	return e
}

type eof struct{}

func (eof) Read([]byte) (int, error) { return 0, io.EOF }

// call is one command line at work.
type call struct {
	ctx      context.Context
	env      Env
	tool     string // hdiutil or diskutil
	verb     *verb
	opts     map[string][]string // values by the option's first name; a flag has one empty value
	operands []string
	out, err io.Writer
	secrets  secrets
}

func (c *call) has(name string) bool { return len(c.opts[name]) > 0 }

// value is the last value given, as getopt has it.
func (c *call) value(name string) string {
	list := c.opts[name]
	if len(list) == 0 {
		return ""
	}
	return list[len(list)-1]
}

// canceled is the error of an interrupted command.
func (c *call) canceled() error {
	if err := c.ctx.Err(); err != nil {
		return errors.Join(context.Cause(c.ctx), err)
	}
	return nil
}

// System is the environment of the process.
func System() Env {
	version := "(devel)"
	if b, ok := debug.ReadBuildInfo(); ok {
		version = cmp.Or(b.Main.Version, version)
	}
	return Env{Stdin: os.Stdin, Stdout: os.Stdout, Stderr: os.Stderr, Version: version, UID: os.Getuid(),
		Attacher: system{}, Helper: attach.HelperMain}
}

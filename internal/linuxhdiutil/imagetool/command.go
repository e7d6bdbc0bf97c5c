// Package imagetool is an hdiutil for Linux with the image verbs of diskutil:
// Apple's grammar, property lists, messages and exit statuses over this
// project's own containers, partition tables and exFAT volumes. An [Attacher]
// mounts and attaches.
//
// verbs.txt holds every verb and option. The grammar, `hdiutil help` and the
// manual page are made from it, so that they cannot differ.
//
// It refuses what is not in that file, and what Apple's tools support and this
// one does not, with status 1 and the reason; it never does something else
// instead. It does not measure, has no prompts, and reaches host files only
// through package hostio.
package imagetool

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"os/signal"
	"runtime/debug"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"
	"unicode/utf8"

	"howett.net/plist"

	"dmgbench/internal/linuxhdiutil/attach"
)

// Env is everything that a command takes from outside, so that tests need no
// privileges. The zero value reads an empty stdin, discards the output and
// attaches for real; [System] is that of the process.
type Env struct {
	// Stdin is read for passphrases, and only if an option names it.
	Stdin io.Reader
	// Stdout gets results, Stderr messages and warnings.
	Stdout, Stderr io.Writer
	// Attacher attaches and mounts; nil is package attach.
	Attacher *Attacher
	// Helper runs the process that serves an attached image, with the arguments
	// after [HelperVerb].
	Helper func(args []string) int
	// Now is the modification time of files that are put into volumes; nil is
	// the clock of the host.
	Now func() time.Time
	// Random gives identifiers and serial numbers; nil is the random source of
	// the system.
	Random io.Reader
	// Dir is the folder in which relative paths start; "" is the working
	// folder.
	Dir string
	// Version is what info prints as the version of the driver.
	Version string
	// UID is the user: root gets another default file system, as only root can
	// mount it.
	UID int
	// iterations of the key derivation of new images; 0 is as many as is safe.
	// Tests take few.
	iterations int
}

// HelperVerb is the hidden verb under which package attach starts this program
// again.
const HelperVerb = attach.HelperVerb

// Attacher has the functions of package attach that need privileges; tests
// replace them. Errors wrap EBUSY for what is in use, package container's
// ErrInUse for an image that another process has open, and
// [attach.ErrNoFileSystem].
type Attacher struct {
	Attach      func(ctx context.Context, r attach.Request) (attach.Attached, error)
	Detach      func(ctx context.Context, a attach.Attached, force bool) (attach.Lost, error)
	List        func(ctx context.Context) ([]attach.Attached, error)
	Mount       func(ctx context.Context, a attach.Attached, r attach.Request) (attach.Attached, error)
	Unmount     func(ctx context.Context, a attach.Attached, force bool) error
	Trim        func(ctx context.Context, mountPoint string) (int64, error)
	Filesystems func() []attach.FS
	Make        func(ctx context.Context, device, filesystem, label string) error
	// CanGrow returns why Grow would fail for a file system, so that the image
	// keeps its size then.
	CanGrow func(filesystem string) error
	// Grow makes the volume take the whole partition.
	Grow func(ctx context.Context, a attach.Attached) error
	// Loops reports whether there are loop devices for this user.
	Loops func() bool
}

// system attaches for real.
var system = Attacher{
	Attach: attach.Attach, Detach: attach.Detach, List: attach.List, Mount: attach.Mount, Unmount: attach.Unmount,
	Trim: attach.Trim, Filesystems: attach.Filesystems, Make: attach.Make, CanGrow: attach.CanGrow, Grow: attach.Grow,
	Loops: attach.Loops,
}

// System is the environment of the process.
func System() Env {
	version := "(devel)"
	if b, ok := debug.ReadBuildInfo(); ok {
		version = cmp.Or(b.Main.Version, version)
	}
	return Env{Stdin: os.Stdin, Stdout: os.Stdout, Stderr: os.Stderr, Version: version, UID: os.Getuid(),
		Helper: attach.HelperMain}
}

// withDefaults fills in what is not set.
func (e Env) withDefaults() Env {
	e.Stdin = cmp.Or[io.Reader](e.Stdin, strings.NewReader(""))
	e.Stdout, e.Stderr = cmp.Or(e.Stdout, io.Discard), cmp.Or(e.Stderr, io.Discard)
	e.Attacher, e.Random, e.Version = cmp.Or(e.Attacher, &system), cmp.Or(e.Random, rand.Reader), cmp.Or(e.Version, "0")
	if e.Now == nil {
		e.Now = time.Now
	}
	return e
}

// call is one command line, from its words to its output. Every verb is a
// method of it.
type call struct {
	ctx context.Context
	env Env
	// tool is hdiutil or diskutil: they differ in grammar, messages and
	// property lists.
	tool string
	verb *verb
	// opts are the values by the key of the option, in the order of the command
	// line; a flag has one empty value.
	opts     map[string][]string
	operands []string
	// out and err are stdout and stderr, or discard everything with -quiet.
	out, err io.Writer
	secrets  secrets
}

// Main executes one command line, without the name of the program: a verb of
// hdiutil with its arguments, or "diskutil" and a verb of diskutil's. The
// result is the exit status: 0 done; 1 not done, or not understood; 16 a volume
// is busy; 35 the image to be resized is in use; 80 the passphrase is wrong or
// missing (1 when attaching, as from Apple's); 130 interrupted; 141 done, but
// the reader of the output closed it early.
func Main(ctx context.Context, args []string, env Env) int {
	if len(args) > 0 && args[0] == HelperVerb && env.Helper != nil {
		return env.Helper(args[1:])
	}
	c := &call{ctx: ctx, env: env.withDefaults(), tool: "hdiutil"}
	defer c.secrets.wipe()
	if len(args) > 0 && args[0] == "diskutil" {
		c.tool, args = "diskutil", args[1:]
	}
	out := &output{to: c.env.Stdout}
	c.out, c.err = out, c.env.Stderr
	err := c.parse(args)
	if err == nil {
		err = c.checkRules()
	}
	if err == nil {
		err = cmp.Or(c.verb.run(c), out.err)
	}
	if errors.Is(out.err, syscall.EPIPE) && errors.Is(err, syscall.EPIPE) {
		return statusPipe
	}
	return c.reportError(err)
}

// has reports whether an option was given, by its key.
func (c *call) has(key string) bool { return len(c.opts[key]) > 0 }

// value is the last value given, as in getopt.
func (c *call) value(key string) string {
	if list := c.opts[key]; len(list) > 0 {
		return list[len(list)-1]
	}
	return ""
}

// canceled is the error of an interrupted command.
func (c *call) canceled() error {
	if err := c.ctx.Err(); err != nil {
		return errors.Join(context.Cause(c.ctx), err)
	}
	return nil
}

// OutlivePipes keeps the process running when the reader of stdout or stderr
// has gone: the signal that ends it then would leave half an image under a
// temporary name. Programs that it starts are not affected.
func OutlivePipes() (stop func()) {
	c := make(chan os.Signal, 1)
	signal.Notify(c, syscall.SIGPIPE)
	return func() { signal.Stop(c) }
}

// dict is a dictionary of a property list; keys are printed in order.
type dict = map[string]any

// output is stdout. It remembers a failed write, so that no output is lost
// silently.
type output struct {
	to  io.Writer
	err error
}

// Write keeps the first error. Main returns it when the verb itself has
// succeeded.
func (o *output) Write(p []byte) (int, error) {
	n, err := o.to.Write(p)
	if err != nil && o.err == nil {
		o.err = fmt.Errorf("writing the output: %w", err)
	}
	return n, err
}

// printf prints a line about the verb on stderr.
func (c *call) printf(format string, args ...any) {
	fmt.Fprintf(c.err, "%s: %s: %s\n", c.tool, c.verbName(), fmt.Sprintf(format, args...))
}

// warn prints a warning on stderr. A warning does not change the exit status.
func (c *call) warn(format string, args ...any) { c.printf("WARNING: "+format, args...) }

// verbName is the verb in messages.
func (c *call) verbName() string { return strings.TrimPrefix(c.verb.Name, "image ") }

// print prints on stdout.
func (c *call) print(format string, args ...any) error {
	_, err := fmt.Fprintf(c.out, format, args...)
	return err
}

// printResult prints a result: as a property list where the options ask for
// one, else as text.
func (c *call) printResult(v any, format string, args ...any) error {
	if !c.has("plist") {
		return c.print(format, args...)
	}
	text, err := plist.MarshalIndent(v, plist.XMLFormat, "\t")
	if err != nil {
		return err
	}
	return c.print("%s\n", strings.TrimRight(string(text), "\n"))
}

// printTree prints a dictionary: as a property list, or with each key and value
// in a line.
func (c *call) printTree(d dict) error { return c.printResult(d, "%s", formatTree(d, "")) }

// formatTree formats a dictionary as imageinfo does: "key: value", sections
// below "key:" indented by a TAB. Lists number their entries from 0. Keys are
// sorted, so that equal images give equal text.
func formatTree(d dict, indent string) string {
	var b strings.Builder
	for _, key := range slices.Sorted(maps.Keys(d)) {
		switch v := d[key].(type) {
		case dict:
			fmt.Fprintf(&b, "%s%s:\n%s", indent, key, formatTree(v, indent+"\t"))
		case []dict:
			fmt.Fprintf(&b, "%s%s:\n", indent, key)
			for n, e := range v {
				fmt.Fprintf(&b, "%s\t%d:\n%s", indent, n, formatTree(e, indent+"\t\t"))
			}
		default:
			fmt.Fprintf(&b, "%s%s: %s\n", indent, printable(key), printable(fmt.Sprint(v)))
		}
	}
	return b.String()
}

// printable is a text for one line: quoted where a character in it would end
// the line or control a terminal. Names come from images, which are hostile.
func printable(text string) string {
	if utf8.ValidString(text) && !strings.ContainsFunc(text, func(r rune) bool { return !strconv.IsPrint(r) }) {
		return text
	}
	return strconv.Quote(text)
}

// newProgress prints lines in the format of hdiutil -puppetstrings, which asks
// for them: an unknown share at first. The result reports how many bytes of
// total are done; a total of 0 is for work that is not measured in bytes. Steps
// below half a percent are not printed.
func (c *call) newProgress(total int64) (report func(done int64)) {
	if !c.has("puppetstrings") {
		return func(int64) {}
	}
	fmt.Fprintf(c.out, "PERCENT:%f\n", -1.0)
	last := -1 // the share that was printed last, in thousandths
	return func(done int64) {
		share := 1000
		if total > 0 {
			share = int(float64(done) / float64(total) * 1000)
		}
		if last < 0 || share == 1000 || share-last >= 5 {
			last = share
			fmt.Fprintf(c.out, "PERCENT:%f\n", float64(share)/10)
		}
	}
}

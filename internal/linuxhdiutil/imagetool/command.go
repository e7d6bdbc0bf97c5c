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
	"bufio"
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"os/signal"
	"runtime/debug"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"
	"unicode"
	"unicode/utf8"

	"howett.net/plist"

	"dmgbench/internal/image/container"
	"dmgbench/internal/image/container/crypt"
	"dmgbench/internal/linuxhdiutil/attach"
	"dmgbench/internal/system/hostio"
	"dmgbench/internal/system/safetext"
)

// Env is everything that a command takes from outside, so that tests need no
// privileges; [System] returns that of the process.
type Env struct {
	// Stdin is read for passphrases, and only if an option names it.
	Stdin io.Reader
	// Stdout gets results, Stderr messages and warnings.
	Stdout, Stderr io.Writer
	// Attacher attaches and mounts.
	Attacher *Attacher
	// Now is the modification time of files that are put into volumes.
	Now func() time.Time
	// Random is the source of identifiers and serial numbers, which never fails.
	Random io.Reader
	// Dir is the folder in which relative paths start; "" is the working
	// folder.
	Dir string
	// Version is what info prints as the version of the driver.
	Version string
	// UID is the user: root gets another default file system, as only root can
	// mount it.
	UID int
	// Iterations of the key derivation of new passphrases; 0 is the secure
	// default. Tests use fewer.
	Iterations int
}

// HelperVerb is the hidden verb under which package attach starts this program
// again.
const HelperVerb = attach.HelperVerb

// Attacher has the functions of package attach that need privileges; tests
// replace them. Errors wrap EBUSY for what is in use, package container's
// ErrInUse for an image that another process has open, and
// [attach.ErrNoFileSystem].
type Attacher struct {
	Attach  func(ctx context.Context, r attach.Request) (attach.Attached, error)
	Detach  func(ctx context.Context, a attach.Attached, force bool) (attach.Lost, error)
	List    func(ctx context.Context) ([]attach.Attached, error)
	Mount   func(ctx context.Context, a attach.Attached, r attach.Request) (attach.Attached, error)
	Unmount func(ctx context.Context, a attach.Attached, force bool) error
	// Trim returns the number of discarded bytes.
	Trim        func(ctx context.Context, mountPoint string) (int64, error)
	Filesystems func() []attach.FS
	// Make makes a file system.
	Make func(ctx context.Context, device, filesystem, label string) error
	// CheckGrow returns why Grow would fail for a file system, so that the image
	// keeps its size then.
	CheckGrow func(filesystem string) error
	// Grow makes the volume take the whole partition.
	Grow func(ctx context.Context, a attach.Attached) error
	// Loops reports whether there are loop devices for this user.
	Loops func() bool
}

// realAttacher is package attach.
var realAttacher = Attacher{
	Attach: attach.Attach, Detach: attach.Detach, List: attach.List, Mount: attach.Mount, Unmount: attach.Unmount,
	Trim: attach.Trim, Filesystems: attach.Filesystems, Make: attach.Make, CheckGrow: attach.CheckGrow,
	Grow: attach.Grow, Loops: attach.Loops,
}

// System is the environment of the process.
func System() Env {
	version := "(devel)"
	if b, ok := debug.ReadBuildInfo(); ok {
		version = cmp.Or(b.Main.Version, version)
	}
	return Env{Stdin: os.Stdin, Stdout: os.Stdout, Stderr: os.Stderr, Attacher: &realAttacher, Now: time.Now,
		Random: rand.Reader, Version: version, UID: os.Getuid()}
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
	out     *bufio.Writer
	err     io.Writer
	secrets secrets
}

// Main executes one command line, without the name of the program: a verb of
// hdiutil with its arguments, or "diskutil" and a verb of diskutil's. The
// result is the exit status: 0 done; 1 not done, or not understood; 16 a volume
// is busy; 35 the image to be resized is in use; 80 the passphrase is wrong or
// missing (1 when attaching, as from Apple's); 130 interrupted; 141 done, but
// the reader of the output closed it early.
func Main(ctx context.Context, args []string, env Env) int {
	if len(args) > 0 && args[0] == HelperVerb {
		return attach.HelperMain(args[1:])
	}
	c := &call{ctx: ctx, env: env, tool: "hdiutil", secrets: secrets{keys: map[string]crypt.Keys{}}}
	defer c.secrets.wipe()
	if len(args) > 0 && args[0] == "diskutil" {
		c.tool, args = "diskutil", args[1:]
	}
	c.out, c.err = bufio.NewWriter(env.Stdout), cleanWriter{env.Stderr}
	err := c.parse(args)
	if err == nil {
		err = c.checkRules()
	}
	if err == nil {
		err = c.verb.run(c)
	}
	failed := c.out.Flush() // the first write that failed, so that no output is lost silently
	if err == nil && failed != nil {
		err = fmt.Errorf("writing the output: %w", failed)
	}
	if errors.Is(failed, syscall.EPIPE) && errors.Is(err, syscall.EPIPE) {
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

// OutlivePipes keeps the process running when the reader of stdout or stderr
// has gone: SIGPIPE would otherwise end it and leave half an image under a
// temporary name. Programs that it starts are not affected.
func OutlivePipes() (stop func()) {
	c := make(chan os.Signal, 1)
	signal.Notify(c, syscall.SIGPIPE)
	return func() { signal.Stop(c) }
}

// dict is a dictionary of a property list; keys are printed in order.
type dict = map[string]any

// messagef prints a line about the verb on stderr.
func (c *call) messagef(format string, args ...any) {
	fmt.Fprintf(c.err, "%s: %s: %s\n", c.tool, c.verbName(), fmt.Sprintf(format, args...))
}

// warn prints a warning on stderr. A warning does not change the exit status.
func (c *call) warn(format string, args ...any) { c.messagef("WARNING: "+format, args...) }

// verbName is the verb in messages.
func (c *call) verbName() string { return strings.TrimPrefix(c.verb.Name, "image ") }

// cleanWriter is stderr for messages, each by one call: names in them come from
// images and folders, which are hostile.
type cleanWriter struct{ io.Writer }

// Write implements [io.Writer].
func (w cleanWriter) Write(p []byte) (int, error) {
	_, err := io.WriteString(w.Writer, safetext.Clean(string(p)))
	return len(p), err
}

// printf prints text on stdout at once: programs follow the progress, and
// messages on stderr keep their place.
func (c *call) printf(format string, args ...any) error {
	return c.print(safetext.Clean(fmt.Sprintf(format, args...)))
}

// print prints text on stdout as it is.
func (c *call) print(text string) error {
	_, _ = c.out.WriteString(text)
	return c.out.Flush()
}

// printResult prints a result: as a property list where the options ask for
// one, else as text.
func (c *call) printResult(v any, format string, args ...any) error {
	if !c.has("plist") {
		return c.printf(format, args...)
	}
	text, err := plist.MarshalIndent(v, plist.XMLFormat, "\t")
	if err != nil {
		return err
	}
	return c.print(escapeControls(strings.TrimRight(string(text), "\n")) + "\n")
}

// escapeControls replaces the characters of a property list that may be in XML
// and would control a terminal by references, which stand for them.
func escapeControls(text string) string {
	var b strings.Builder
	for _, r := range text {
		if unicode.IsControl(r) && r > '\r' || safetext.IsHidden(r) {
			fmt.Fprintf(&b, "&#x%X;", r)
		} else {
			b.WriteRune(r)
		}
	}
	return b.String()
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
	_ = c.printf("PERCENT:%f\n", -1.0) // Main returns what fails
	last := -1                         // the share that was printed last, in thousandths
	return func(done int64) {
		share := 1000
		if total > 0 {
			share = int(float64(done) / float64(total) * 1000)
		}
		if last < 0 || share == 1000 || share-last >= 5 {
			last = share
			_ = c.printf("PERCENT:%f\n", float64(share)/10)
		}
	}
}

// refusal is a failure whose message is printed as it is, not as the text of
// Apple's tool for its cause.
type refusal struct {
	error
	usage bool // the arguments were not understood
}

// Unwrap returns the cause, of which there is at most one.
func (e *refusal) Unwrap() error { return errors.Unwrap(e.error) }

// refuse makes a refusal. The format may have a cause: %w, or %.0w, which wraps it
// without printing it.
func refuse(format string, args ...any) error { return &refusal{error: fmt.Errorf(format, args...)} }

// usageErrorf returns the error of arguments that were not understood, for which
// reportError prints the usage.
func usageErrorf(format string, args ...any) error {
	return &refusal{error: fmt.Errorf(format, args...), usage: true}
}

// reportedError is a failure that has been printed already.
type reportedError struct{ status int }

func (e *reportedError) Error() string { return fmt.Sprintf("status %d", e.status) }

// Exit statuses of specific conditions, as Apple's tools have them.
const (
	statusAuth     = 80 // EAUTH of macOS: the passphrase is wrong or missing
	statusBusy     = 16
	statusInUse    = 35
	statusCanceled = 130
	statusPipe     = 141 // what a shell makes of SIGPIPE
)

// errnoTexts are the texts of error numbers as macOS prints them, on every
// host.
var errnoTexts = map[syscall.Errno]string{
	syscall.EBUSY: "Resource busy", syscall.EAGAIN: "Resource temporarily unavailable",
	syscall.EEXIST: "File exists", syscall.ENOENT: "No such file or directory",
	syscall.EACCES: "Permission denied", syscall.EPERM: "Operation not permitted",
	syscall.ENOSPC: "No space left on device", syscall.EFBIG: "File too large",
	syscall.EINVAL: "Invalid argument", syscall.EROFS: "Read-only file system",
	syscall.ENXIO: "Device not configured", syscall.ENODEV: "Operation not supported by device",
	syscall.EIO: "Input/output error", syscall.ENOTDIR: "Not a directory", syscall.EISDIR: "Is a directory",
	syscall.ENOMEM: "Cannot allocate memory", syscall.EMFILE: "Too many open files",
	syscall.ENAMETOOLONG: "File name too long", syscall.ELOOP: "Too many levels of symbolic links",
	syscall.EDQUOT: "Disc quota exceeded", syscall.EOPNOTSUPP: "Operation not supported",
}

// describeError returns the text after "failed -", the error number (0 for
// none), and whether the text is complete without the error. Programs compare
// the texts, so they are those of Apple's tools; the error with its paths follows
// on a line of its own where the text does not contain all of it.
func describeError(err error) (text string, errno syscall.Errno, complete bool) {
	errno = attach.Errno(err)
	own, isOwn := errors.AsType[*refusal](err)
	found, unsupported := errors.AsType[*container.UnsupportedError](err)
	switch {
	case isOwn:
		return own.Error(), errno, true
	case errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded):
		return "Canceled", 0, true
	case errors.Is(err, container.ErrPassphrase):
		return "Authentication error", 0, false
	case errors.Is(err, attach.ErrNoFileSystem):
		return attach.ErrNoFileSystem.Error(), 0, false
	case unsupported && found.Doing == "compacting":
		return errnoTexts[errno], errno, false
	case unsupported && found.Doing == "opening for writing":
		return found.Found + ": it cannot be changed", 0, true
	case errors.Is(err, container.ErrData):
		return "image data corrupted", 0, false
	case isNotImage(err):
		return "image not recognized", 0, false
	case unsupported && found.Foreign:
		return found.Found + ": images of other programs are not read", 0, true
	case unsupported:
		return found.Found + ": this kind of image is not supported yet", 0, true
	case errnoTexts[errno] != "":
		complete = errno == syscall.EEXIST || errno == syscall.EBUSY || errno == syscall.EAGAIN ||
			err == fs.ErrNotExist // bare, without a path
		return errnoTexts[errno], errno, complete
	}
	return err.Error(), 0, true
}

// isNotImage reports whether an error of opening means that the file is not an
// image, or not a whole one. The words are those of [container.Open].
func isNotImage(err error) bool {
	found, ok := errors.AsType[*container.UnsupportedError](err)
	return errors.Is(err, container.ErrCorrupt) || errors.Is(err, hostio.ErrNotRegular) ||
		ok && (strings.HasPrefix(found.Found, "file of") || strings.HasPrefix(found.Found, "folder that"))
}

// diskutilFailures are the first words of diskutil's failures.
var diskutilFailures = map[string]string{
	"create blank": "Failed to create disk image", "create from": "Failed to create disk image",
	"attach": "Failed to attach disk image", "info": "Failed to get disk image info",
	"resize": "Failed to resize disk image", "chpass": "Failed to change the passphrase", "eject": "Failed to eject",
}

// reportError prints a failure and returns the exit status. The first line is
// that of Apple's tool: for hdiutil "hdiutil: VERB failed - TEXT", for diskutil
// "Error: WORDS: TEXT" (resize of an image in use has words of its own in both).
// Details and hints follow.
func (c *call) reportError(err error) int {
	if err == nil {
		return 0
	}
	if done, ok := errors.AsType[*reportedError](err); ok {
		return done.status
	}
	if e, ok := errors.AsType[*refusal](err); ok && e.usage {
		fmt.Fprint(c.err, formatText("usage", map[string]any{"tool": c.tool, "verb": c.verb, "problem": e.Error()}))
		return 1
	}
	text, errno, complete := describeError(err)
	name, status := c.verbName(), 1
	switch {
	case errors.Is(err, context.Canceled):
		status = statusCanceled
	case errors.Is(err, container.ErrPassphrase) && name != "attach": // Apple's attach exits with 1
		status = statusAuth
	}
	switch {
	case c.tool == "diskutil" && name == "resize" && errno == syscall.EAGAIN:
		fmt.Fprintf(c.err, "Error: \nThe operation couldn’t be completed. %s\n", errnoTexts[syscall.EBUSY])
	case c.tool == "diskutil":
		fmt.Fprintf(c.err, "Error: %s: %s\n", diskutilFailures[name], text)
	case name == "resize" && errno == syscall.EAGAIN:
		status = statusInUse
		c.messagef("failed. %s (%d)", text, statusInUse)
	default:
		fmt.Fprintf(c.err, "hdiutil: %s failed - %s\n", name, text)
	}
	if detail := err.Error(); detail != text && (!complete || c.has("verbose")) {
		c.messagef("%s", detail)
	}
	c.printHints(err, errno)
	return status
}

// printHints prints what can be done about a failure.
func (c *call) printHints(err error, errno syscall.Errno) {
	if errno == syscall.EAGAIN && len(c.operands) > 0 {
		if p, e := c.existing(c.operands[0]); e == nil {
			defer p.close()
			if a, _ := c.findImage(p.path); a != nil {
				c.messagef("hint: it is attached: detach it first")
			}
		}
	}
	if errno == syscall.EMFILE {
		c.messagef("hint: this process may have %d files open: raise the limit (ulimit -n)", hostio.MaxFiles())
	}
	if size := c.value("size"); wholeNumber.MatchString(size) && len(size) < len("1048576") {
		c.messagef("hint: -size %[1]s is %[1]s bytes: %[1]sm is that many MiB", size)
	}
	if e, ok := errors.AsType[*container.UnsupportedError](err); ok && e.Foreign {
		c.messagef("hint: qemu-img convert -O raw makes a raw image of it; the extension .raw, or for hdiutil "+
			"-srcimagekey %s, takes its bytes for sectors as they are", rawClass)
	}
	if e, ok := errors.AsType[*attach.NoDriverError](err); ok && otherReaders[e.Filesystem] != "" {
		c.messagef("hint: attach it with %s, then %s", c.verb.optionName("nomount"), otherReaders[e.Filesystem])
	}
	if errors.Is(err, attach.ErrNoFUSE) {
		c.messagef("hint: %s; dmgbench hdiutil ls, cat and extract need no mount", attach.FUSEHint)
	}
	if errors.Is(err, container.ErrPassphrase) {
		c.messagef("hint: the passphrase comes by %s, where a line end is part of it: printf %%s rather than echo",
			c.stdinOption())
	}
}

// otherReaders are programs that read volumes that the kernel may not mount, on
// the device of an attached image.
var otherReaders = map[string]string{
	"apfs":    "fsapfsmount -f 1 PARTITION FOLDER mounts its first volume (package libfsapfs-utils)",
	"hfsplus": "7zz l PARTITION lists its files, and 7zz x PARTITION takes them out (package 7zip)",
}

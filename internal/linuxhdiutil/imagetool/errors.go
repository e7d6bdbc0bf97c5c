package imagetool

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strconv"
	"strings"
	"syscall"

	"dmgbench/internal/image/container"
	"dmgbench/internal/image/exfat"
	"dmgbench/internal/image/gpt"
	"dmgbench/internal/linuxhdiutil/attach"
	"dmgbench/internal/system/hostio"
)

// usageError means that the arguments were not understood.
type usageError struct{ problem string }

func (e *usageError) Error() string { return e.problem }

// misused is the error of arguments that were not understood: it prints the
// usage.
func misused(format string, args ...any) error {
	return &usageError{fmt.Sprintf(format, args...)}
}

// refusal is a failure with a message of our own.
type refusal struct {
	words string
	err   error // may be nil
}

func (e *refusal) Error() string { return e.words }
func (e *refusal) Unwrap() error { return e.err }

// exitStatus is a failure that has been reported already.
type exitStatus struct{ status int }

func (e *exitStatus) Error() string { return fmt.Sprintf("status %d", e.status) }

// Exit statuses of single conditions, as Apple's tools have them.
const (
	statusAuth     = 80 // EAUTH of macOS: the passphrase is wrong or missing
	statusBusy     = 16
	statusLocked   = 35
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

// completeTexts are the numbers with texts that need no more words.
var completeTexts = []syscall.Errno{syscall.EEXIST, syscall.ENOENT, syscall.EBUSY, syscall.EAGAIN}

// errnoRow maps an error to a number.
type errnoRow struct {
	err   error
	errno syscall.Errno
}

// Error numbers of the layers below, which win over the number that an error
// carries, and of the general errors, which errors with a number of their own
// match too.
var (
	errnoOfLayer = []errnoRow{
		{container.ErrInUse, syscall.EAGAIN}, {hostio.ErrLocked, syscall.EAGAIN}, {syscall.EBUSY, syscall.EBUSY},
		{container.ErrReadOnly, syscall.EROFS},
		{exfat.ErrReadOnly, syscall.EROFS}, {exfat.ErrNoSpace, syscall.ENOSPC}, {exfat.ErrBusy, syscall.EBUSY},
		{exfat.ErrIsDir, syscall.EISDIR}, {exfat.ErrNotDir, syscall.ENOTDIR}, {exfat.ErrName, syscall.EINVAL},
		{gpt.ErrTooSmall, syscall.EINVAL},
	}
	errnoOfFS = []errnoRow{
		{fs.ErrExist, syscall.EEXIST}, {fs.ErrNotExist, syscall.ENOENT},
		{fs.ErrPermission, syscall.EACCES}, {fs.ErrInvalid, syscall.EINVAL},
	}
)

// errnoOf is the error number of an error, 0 if it has none. Numbers without a
// text of Apple's count only by the general error that they match, so that the
// text is always one of Apple's.
func errnoOf(err error) syscall.Errno {
	find := func(rows []errnoRow) syscall.Errno {
		if i := slices.IndexFunc(rows, func(r errnoRow) bool { return errors.Is(err, r.err) }); i >= 0 {
			return rows[i].errno
		}
		return 0
	}
	if errno := find(errnoOfLayer); errno != 0 {
		return errno
	}
	if errno, ok := errors.AsType[syscall.Errno](err); ok && errnoTexts[errno] != "" {
		return errno
	}
	return find(errnoOfFS)
}

// describeError returns the text after "failed -", the error number (0 for
// none), and whether the text is complete without the error. Programs compare
// the texts, so that they are those of Apple's tools; the error with its paths
// follows in a line of its own where the text does not contain all of it.
func describeError(err error) (text string, errno syscall.Errno, complete bool) {
	errno = errnoOf(err)
	own, isOwn := errors.AsType[*refusal](err)
	found, unsupported := errors.AsType[*container.UnsupportedError](err)
	switch {
	case isOwn:
		return own.words, errno, true
	case errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded):
		return "Canceled", 0, true
	case errors.Is(err, container.ErrPassphrase):
		return "Authentication error", 0, false
	case errors.Is(err, attach.ErrNoFileSystem):
		return attach.ErrNoFileSystem.Error(), 0, err == attach.ErrNoFileSystem
	case unsupported && found.Doing == "compacting":
		return errnoTexts[syscall.EOPNOTSUPP], syscall.EOPNOTSUPP, false
	case unsupported && found.Doing == "opening for writing":
		return found.Found + ": it cannot be changed", 0, true
	case errors.Is(err, container.ErrData):
		return "image data corrupted", 0, false
	case isNoImage(err):
		return "image not recognized", 0, false
	case unsupported && found.Foreign:
		return found.Found + ": images of other programs are not read", 0, true
	case unsupported:
		return found.Found + ": this kind of image is not supported yet", 0, true
	case errno != 0:
		return errnoTexts[errno], errno, slices.Contains(completeTexts, errno)
	}
	return err.Error(), 0, true
}

// isNoImage reports whether an error of opening means that the file is not an
// image, or not a whole one.
func isNoImage(err error) bool {
	found, ok := errors.AsType[*container.UnsupportedError](err)
	return errors.Is(err, container.ErrCorrupt) || errors.Is(err, hostio.ErrNotRegular) ||
		ok && (strings.HasPrefix(found.Found, "file of") || strings.HasPrefix(found.Found, "folder that"))
}

// isForeign reports whether an error of opening means that the file is the
// image of another program.
func isForeign(err error) bool {
	found, ok := errors.AsType[*container.UnsupportedError](err)
	return ok && found.Foreign
}

// diskutilFailures are the first words of diskutil's failures.
var diskutilFailures = map[string]string{
	"create blank": "Failed to create disk image", "create from": "Failed to create disk image",
	"attach": "Failed to attach disk image", "info": "Failed to get disk image info",
	"resize": "Failed to resize disk image", "chpass": "Failed to change the passphrase", "eject": "Failed to eject",
}

// reportError prints a failure and returns the exit status. The first line is
// that of Apple's tool: for hdiutil "hdiutil: VERB failed - TEXT", for diskutil
// "Error: WORDS: TEXT". Details and hints follow.
func (c *call) reportError(err error) int {
	if err == nil {
		return 0
	}
	if done, ok := errors.AsType[*exitStatus](err); ok {
		return done.status
	}
	if e, ok := errors.AsType[*usageError](err); ok {
		fmt.Fprint(c.err, c.usageText(e.problem))
		return 1
	}
	text, errno, complete := describeError(err)
	detail := err.Error()
	if errno == syscall.ENOENT && len(c.operands) > 0 { // Apple's message names no file: it is about the first operand
		path, _ := c.absolute(c.operands[0])
		about := !strings.Contains(detail, "/") || strings.Contains(detail, strconv.Quote(path))
		complete = about && !c.verb.Extension
	}
	name, status := c.verbName(), 1
	switch {
	case errors.Is(err, context.Canceled):
		status = statusCanceled
	case errors.Is(err, container.ErrPassphrase) && name != "attach": // the status of Apple's attach is known to be 1
		status = statusAuth
	}
	switch {
	case c.tool == "diskutil":
		fmt.Fprintf(c.err, "Error: %s: %s\n", diskutilFailures[name], text)
	case name == "resize" && errno == syscall.EAGAIN:
		status = statusLocked
		c.printf("failed. %s (%d)", text, statusLocked)
	default:
		fmt.Fprintf(c.err, "hdiutil: %s failed - %s\n", name, text)
	}
	if detail != text && (!complete || c.has("verbose")) {
		c.printf("%s", detail)
	}
	c.printHints(err, errno)
	return status
}

// printHints prints what can be done about a failure.
func (c *call) printHints(err error, errno syscall.Errno) {
	if errno == syscall.EAGAIN && c.isOperandAttached() {
		c.printf("hint: it is attached: detach it first")
	}
	if isForeign(err) {
		c.printf("hint: qemu-img convert -O raw makes a raw image of it; the extension .raw, or for hdiutil "+
			"-srcimagekey %s, takes its bytes for sectors as they are", rawClass)
	}
	if e, ok := errors.AsType[*attach.NoDriverError](err); ok && otherReaders[e.Filesystem] != "" {
		c.printf("hint: attach it with %s, then %s", c.verb.optionName("nomount"), otherReaders[e.Filesystem])
	}
	if errors.Is(err, container.ErrPassphrase) {
		c.printf("hint: the passphrase comes by %s, where a line end is part of it: printf %%s rather than echo",
			c.stdinOption())
	}
}

// otherReaders are programs that read volumes that the kernel may not mount, on
// the device of an attached image.
var otherReaders = map[string]string{
	"apfs":    "fsapfsmount -f 1 PARTITION FOLDER mounts its first volume (package libfsapfs-utils)",
	"hfsplus": "7zz l PARTITION lists its files, and 7zz x PARTITION takes them out (package 7zip)",
}

// isOperandAttached reports whether the image that is named first is attached.
func (c *call) isOperandAttached() bool {
	if len(c.operands) == 0 {
		return false
	}
	p, err := c.existing(c.operands[0])
	if err != nil {
		return false
	}
	defer p.close()
	a, err := c.findImage(p.path)
	return err == nil && a != nil
}

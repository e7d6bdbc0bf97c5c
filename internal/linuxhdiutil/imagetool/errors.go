package imagetool

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"strings"
	"syscall"

	"dmgbench/internal/image/container"
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
type refusal struct{ error }

func (e *refusal) Unwrap() error { return errors.Unwrap(e.error) }

// refuse makes a refusal; the format may have a cause, as %w or %.0w.
func refuse(format string, args ...any) error { return &refusal{fmt.Errorf(format, args...)} }

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

// describeError returns the text after "failed -", the error number (0 for
// none), and whether the text is complete without the error. Programs compare
// the texts, so that they are those of Apple's tools; the error with its paths
// follows in a line of its own where the text does not contain all of it.
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
	case isNoImage(err):
		return "image not recognized", 0, false
	case unsupported && found.Foreign:
		return found.Found + ": images of other programs are not read", 0, true
	case unsupported:
		return found.Found + ": this kind of image is not supported yet", 0, true
	case errnoTexts[errno] != "":
		complete = errno == syscall.EEXIST || errno == syscall.EBUSY || errno == syscall.EAGAIN || err == fs.ErrNotExist
		return errnoTexts[errno], errno, complete
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
	if detail := err.Error(); detail != text && (!complete || c.has("verbose")) {
		c.printf("%s", detail)
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
				c.printf("hint: it is attached: detach it first")
			}
		}
	}
	if e, ok := errors.AsType[*container.UnsupportedError](err); ok && e.Foreign {
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

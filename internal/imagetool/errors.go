package imagetool

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"strconv"
	"strings"
	"syscall"

	"dmgbench/internal/attach"
	"dmgbench/internal/container"
	"dmgbench/internal/exfat"
	"dmgbench/internal/gpt"
	"dmgbench/internal/hostio"
)

// usageError says that the arguments were not understood.
type usageError struct{ problem string }

func (e *usageError) Error() string { return e.problem }

func misused(format string, args ...any) error {
	return &usageError{fmt.Sprintf(format, args...)}
}

// refusal is a failure whose words are our own.
type refusal struct {
	words string
	err   error // may be nil
}

func (e *refusal) Error() string { return e.words }
func (e *refusal) Unwrap() error { return e.err }

func refuse(format string, args ...any) error {
	return &refusal{words: fmt.Sprintf(format, args...)}
}

// said is a failure that has been reported already, with its status.
type said struct{ status int }

func (e *said) Error() string { return fmt.Sprintf("status %d", e.status) }

// Exit statuses of their own, as Apple's tools have them.
const (
	statusAuth   = 80 // EAUTH of macOS: the passphrase is wrong or missing
	statusBusy   = 16
	statusLocked = 35
	statusPipe   = 141 // what a shell makes of SIGPIPE
)

// words are the texts of error numbers as macOS prints them, whatever the host says.
var words = []struct {
	errno syscall.Errno
	text  string
}{
	{syscall.EBUSY, "Resource busy"}, {syscall.EAGAIN, "Resource temporarily unavailable"},
	{syscall.EEXIST, "File exists"}, {syscall.ENOENT, "No such file or directory"}, {syscall.EACCES, "Permission denied"},
	{syscall.EPERM, "Operation not permitted"}, {syscall.ENOSPC, "No space left on device"}, {syscall.EFBIG, "File too large"},
	{syscall.EINVAL, "Invalid argument"}, {syscall.EROFS, "Read-only file system"}, {syscall.ENXIO, "Device not configured"},
	{syscall.ENODEV, "Operation not supported by device"}, {syscall.EIO, "Input/output error"}, {syscall.ENOTDIR, "Not a directory"},
	{syscall.EISDIR, "Is a directory"}, {syscall.ENOMEM, "Cannot allocate memory"}, {syscall.EMFILE, "Too many open files"},
	{syscall.ENAMETOOLONG, "File name too long"}, {syscall.ELOOP, "Too many levels of symbolic links"},
	{syscall.EDQUOT, "Disc quota exceeded"}, {syscall.EOPNOTSUPP, "Operation not supported"},
}

// meanings are errors of the layers below as error numbers.
var meanings = []struct {
	err   error
	errno syscall.Errno
}{
	{container.ErrInUse, syscall.EAGAIN}, {hostio.ErrLocked, syscall.EAGAIN}, {container.ErrReadOnly, syscall.EROFS},
	{exfat.ErrReadOnly, syscall.EROFS}, {exfat.ErrNoSpace, syscall.ENOSPC}, {exfat.ErrBusy, syscall.EBUSY},
	{exfat.ErrIsDir, syscall.EISDIR}, {exfat.ErrNotDir, syscall.ENOTDIR}, {exfat.ErrName, syscall.EINVAL},
	{gpt.ErrTooSmall, syscall.EINVAL}, {fs.ErrExist, syscall.EEXIST},
	{fs.ErrNotExist, syscall.ENOENT}, {fs.ErrPermission, syscall.EACCES}, {fs.ErrInvalid, syscall.EINVAL},
}

// reason is the text behind "failed -", the error number (0 for none), and whether the text says it all.
func reason(err error) (text string, errno syscall.Errno, complete bool) {
	errno = errnoOf(err)
	own, is := errors.AsType[*refusal](err)
	unsupported, kind := errors.AsType[*container.UnsupportedError](err)
	switch {
	case is:
		return own.words, errno, true
	case errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded):
		return "Canceled", 0, true
	case errors.Is(err, container.ErrPassphrase):
		return "Authentication error", 0, false
	case errors.Is(err, ErrNoFileSystem):
		return ErrNoFileSystem.Error(), 0, err == ErrNoFileSystem
	case kind && unsupported.Doing == "compacting":
		return "Operation not supported", syscall.EOPNOTSUPP, false
	case kind && unsupported.Doing == "opening for writing":
		return unsupported.Found + ": it cannot be changed", 0, true
	case errors.Is(err, container.ErrData):
		return "image data corrupted", 0, false
	case noImage(err):
		return "image not recognized", 0, false
	case kind && unsupported.Foreign:
		return unsupported.Found + ": images of other programs are not read", 0, true
	case kind:
		return unsupported.Found + ": this kind of image is not supported yet", 0, true
	}
	for _, w := range words {
		if w.errno == errno {
			return w.text, errno, errno == syscall.EEXIST || errno == syscall.ENOENT || errno == syscall.EBUSY || errno == syscall.EAGAIN
		}
	}
	return err.Error(), errno, true
}

// noImage says that an error of opening means that there is no image, or none that is whole.
func noImage(err error) bool {
	found, ok := errors.AsType[*container.UnsupportedError](err)
	return errors.Is(err, container.ErrCorrupt) || errors.Is(err, hostio.ErrNotRegular) ||
		ok && (strings.HasPrefix(found.Found, "file of") || strings.HasPrefix(found.Found, "folder that"))
}

func errnoOf(err error) syscall.Errno {
	for _, m := range meanings[:len(meanings)-4] {
		if errors.Is(err, m.err) {
			return m.errno
		}
	}
	for _, w := range words {
		if errors.Is(err, w.errno) { // which errors without a number of their own may say too
			return w.errno
		}
	}
	for _, m := range meanings[len(meanings)-4:] {
		if errors.Is(err, m.err) {
			return m.errno
		}
	}
	return 0
}

// conclude prints what a failure has to say and gives the exit status.
func (c *call) conclude(err error) int {
	if err == nil {
		return 0
	}
	if done, ok := errors.AsType[*said](err); ok {
		return done.status
	}
	if e, ok := errors.AsType[*usageError](err); ok {
		fmt.Fprint(c.err, c.usageText(e.problem))
		return 1
	}
	text, errno, complete := reason(err)
	if errno == syscall.ENOENT && complete {
		complete = !c.missesAnother(err)
	}
	name := strings.TrimPrefix(c.verb.name, "image ")
	status := 1
	if errors.Is(err, context.Canceled) {
		status = 130
	}
	if errors.Is(err, container.ErrPassphrase) && name != "attach" { // whose status is known, and is 1
		status = statusAuth
	}
	switch {
	case c.tool == "diskutil":
		fmt.Fprintf(c.err, "Error: %s: %s\n", doing[c.verb.name], text)
	case name == "resize" && errno == syscall.EAGAIN:
		fmt.Fprintf(c.err, "hdiutil: resize: failed. %s (%d)\n", text, statusLocked)
		status = statusLocked
	default:
		fmt.Fprintf(c.err, "hdiutil: %s failed - %s\n", name, text)
	}
	if detail := err.Error(); detail != text && (!complete || c.has("-verbose")) {
		fmt.Fprintf(c.err, "%s: %s: %s\n", c.tool, name, detail)
	}
	c.printHints(err, errno, name)
	return status
}

// printHints says what can be done about a failure.
func (c *call) printHints(err error, errno syscall.Errno, name string) {
	if errno == syscall.EAGAIN && c.holds() {
		fmt.Fprintf(c.err, "%s: %s: hint: it is attached: detach it first\n", c.tool, name)
	}
	if found, ok := errors.AsType[*container.UnsupportedError](err); ok && found.Foreign {
		fmt.Fprintf(c.err, "%s: %s: hint: qemu-img convert -O raw makes a raw image of it; ", c.tool, name)
		fmt.Fprintf(c.err, "the extension .raw, or for hdiutil -srcimagekey %s, takes its bytes for sectors as they are\n", rawClass)
	}
	if e, ok := errors.AsType[*attach.NoDriverError](err); ok && otherReaders[e.Filesystem] != "" {
		fmt.Fprintf(c.err, "%s: %s: hint: attach it with %s, then %s\n", c.tool, name, map[string]string{"diskutil": "--noMount", "hdiutil": "-nomount"}[c.tool],
			otherReaders[e.Filesystem])
	}
	if errors.Is(err, container.ErrPassphrase) {
		fmt.Fprintf(c.err, "%s: %s: hint: the passphrase comes by %s, where a line end is part of it: printf %%s rather than echo\n", c.tool, name, c.stdinOption())
	}
}

// otherReaders are programs that read volumes that the kernel may not mount, on the device of an attached image.
var otherReaders = map[string]string{
	"apfs":    "fsapfsmount -f 1 PARTITION FOLDER mounts its first volume (package libfsapfs-utils)",
	"hfsplus": "7zz l PARTITION lists its files, and 7zz x PARTITION takes them out (package 7zip)",
}

// holds says whether the image that is named first is attached.
func (c *call) holds() bool {
	if len(c.operands) == 0 {
		return false
	}
	path, err := c.absolute(c.operands[0])
	if err == nil {
		path, err = followed(path)
	}
	if err != nil {
		return false
	}
	a, err := c.attached(path)
	return err == nil && a != nil
}

// missesAnother says whether what is missing is something else than the image that is named first, so that the words of
// Apple's tools do not tell what.
func (c *call) missesAnother(err error) bool {
	if c.verb.extension {
		return true
	}
	if len(c.operands) == 0 || !strings.Contains(err.Error(), "/") {
		return false
	}
	path, _ := c.absolute(c.operands[0])
	return !strings.Contains(err.Error(), strconv.Quote(path))
}

// doing is how diskutil's failures begin.
var doing = map[string]string{
	"image create blank": "Failed to create disk image", "image create from": "Failed to create disk image",
	"image attach": "Failed to attach disk image", "image info": "Failed to get disk image info",
	"image resize": "Failed to resize disk image", "image chpass": "Failed to change the passphrase",
	"eject": "Failed to eject",
}

package result

import (
	"bytes"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"unicode"
	"unicode/utf8"

	"golang.org/x/sys/unix"
)

// openRegular opens name if it is a regular file and not a link to one.
func (d *RunDir) openRegular(name string, flag int) (*os.File, error) {
	before, err := d.root.Lstat(name)
	if err != nil {
		return nil, err
	}
	if !before.Mode().IsRegular() {
		return nil, fmt.Errorf("%s is not a regular file: %w", name, ErrNotRun)
	}
	f, err := d.root.OpenFile(name, flag|openNonblock, 0)
	if err != nil {
		return nil, err
	}
	if now, err := f.Stat(); err != nil || !os.SameFile(before, now) {
		f.Close()
		return nil, errors.Join(err, fmt.Errorf("%s was replaced while it was opened: %w", name, ErrNotRun))
	}
	return f, nil
}

// readInto is ReadFile into a buffer; it replaces the content.
func (d *RunDir) readInto(b *bytes.Buffer, name string, limit int64) error {
	b.Reset()
	f, err := d.openRegular(name, os.O_RDONLY)
	if err != nil {
		return fmt.Errorf("reading %q: %w", name, withoutPath(err))
	}
	defer f.Close()
	if fi, err := f.Stat(); err == nil && fi.Size() <= limit {
		b.Grow(int(fi.Size()) + bytes.MinRead) // space for the read that finds the end
	}
	_, err = b.ReadFrom(io.LimitReader(f, limit+1))
	if err == nil && int64(b.Len()) > limit {
		err = fmt.Errorf("larger than %d bytes", limit)
	}
	if err != nil {
		b.Reset()
		return fmt.Errorf("reading %q: %w", name, withoutPath(err))
	}
	return nil
}

// tempPrefix is the prefix of the temporary names of a file.
func tempPrefix(name string) string { return "." + name + ".tmp-" }

// replace writes a temporary file, flushes it, and renames it.
func (d *RunDir) replace(name string, data []byte) error {
	temp := tempPrefix(name) + rand.Text()
	f, err := d.root.OpenFile(temp, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o644)
	if err != nil {
		return err
	}
	_, err = f.Write(data)
	if err == nil {
		err = durable{f}.Sync()
	}
	if err = errors.Join(err, f.Close()); err == nil {
		err = d.root.Rename(temp, name)
	}
	if err != nil {
		return errors.Join(err, d.root.Remove(temp))
	}
	return d.syncDir()
}

// syncDir makes new and replaced names durable.
func (d *RunDir) syncDir() error {
	self, err := d.root.Open(".")
	if err != nil {
		return err
	}
	return errors.Join(durable{self}.Sync(), self.Close())
}

// withoutPath is the cause of a path error, as the path is already named.
func withoutPath(err error) error {
	if pe, ok := err.(*fs.PathError); ok { //nolint:errorlint // text that was wrapped around it has to stay
		return pe.Err
	}
	return err
}

// durable is a file with a Sync that works on every file system. Package os
// flushes by F_FULLFSYNC on macOS, for which exFAT and FAT return ENOTTY,
// network shares ENOTSUP and some FUSE file systems EINVAL; a run folder may be
// on any of them.
type durable struct{ *os.File }

// Sync flushes the file, and the cache of its disk where that is supported.
func (d durable) Sync() error {
	return flushFully(d.File.Sync, func() error { return plainSync(d.File) })
}

// flushFully calls full, or plain if the file system does not support full.
func flushFully(full, plain func() error) error {
	err := full()
	if errors.Is(err, syscall.ENOTTY) || errors.Is(err, syscall.ENOTSUP) || errors.Is(err, syscall.EINVAL) {
		return plain()
	}
	return err
}

// openNonblock prevents that opening a FIFO waits for its other end.
const openNonblock = unix.O_NONBLOCK

// lock takes an exclusive lock without waiting. The lock ends with the open
// file, also when the process is killed.
func lock(f *os.File) error {
	for {
		err := unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB)
		switch {
		case errors.Is(err, unix.EINTR):
		case errors.Is(err, unix.EWOULDBLOCK):
			return ErrBusy
		case errors.Is(err, unix.ENOLCK), errors.Is(err, unix.ENOSYS), errors.Is(err, unix.ENOTSUP):
			return fmt.Errorf("locking %q: %w", f.Name(), errors.ErrUnsupported)
		default:
			return err
		}
	}
}

// plainSync is fsync(2), on macOS without F_FULLFSYNC.
func plainSync(f *os.File) error {
	conn, err := f.SyscallConn()
	if err != nil {
		return err
	}
	var failed error
	err = conn.Control(func(fd uintptr) {
		for failed = unix.EINTR; errors.Is(failed, unix.EINTR); {
			failed = unix.Fsync(int(fd))
		}
	})
	return errors.Join(failed, err)
}

// OwnedByUs reports whether the file belongs to the user of this process. For
// root by sudo that includes the caller, who owns what root made for him. On a
// volume that macOS mounts without owners, it is true for every file.
func OwnedByUs(fi fs.FileInfo) bool {
	st, ok := fi.Sys().(*syscall.Stat_t)
	return ok && isOurs(st.Uid, os.Geteuid(), os.Getenv("SUDO_UID"), runtime.GOOS)
}

// unknownOwner is the user 99 of macOS, which root sees as the owner of all
// files on a volume without owners; other users see themselves (mount(8),
// hdiutil(1)).
const unknownOwner = 99

// isOurs decides by the user ids and by SUDO_UID.
func isOurs(owner uint32, user int, caller, system string) bool {
	if int(owner) == user || user != 0 {
		return int(owner) == user
	}
	n, err := strconv.ParseUint(caller, 10, 31)
	return err == nil && uint64(owner) == n || system == "darwin" && owner == unknownOwner
}

// RunDir is an open run folder. It opens all files through [os.Root], and only
// regular files: a link or FIFO in their place is an error. Append, Flush and
// Sync may be called from several goroutines.
type RunDir struct {
	root     *os.Root
	path     string
	journal  *os.File // locked; nil when the folder was opened for reading
	w        *writer
	warnings []Warning
}

// Error is an error about one file of a run folder, with a hint for the user.
type Error struct {
	Doing string // "reading journal"
	File  string // name inside the run folder, or the path that was given
	Line  int    // from 1, 0 for a file without lines
	Err   error
	Hint  string // shown on a separate line, may be empty
}

// Error is `<doing> "<file>" line <n>: <cause>`, without the hint.
func (e *Error) Error() string {
	if e.Line > 0 {
		return fmt.Sprintf("%s %q line %d: %v", e.Doing, e.File, e.Line, e.Err)
	}
	return fmt.Sprintf("%s %q: %v", e.Doing, e.File, e.Err)
}

// Unwrap is the cause.
func (e *Error) Unwrap() error { return e.Err }

// ErrUnsafeName is the error of a name that could lead to another folder.
var ErrUnsafeName = errors.New("not a plain file name")

// maxName is the longest name in bytes that every file system accepts.
const maxName = 255

// SafeName checks that name is a single path element: without separators of any
// system, control or invisible characters, neither hidden nor usable as an
// option of a command. Names of places, containers and runs are checked
// whenever a journal is written or read, so that a journal of other people
// cannot lead to files outside of the run's own folders.
func SafeName(name string) error {
	bad := func(why string) error { return fmt.Errorf("name %q: %s: %w", name, why, ErrUnsafeName) }
	switch {
	case name == "":
		return bad("is empty")
	case len(name) > maxName:
		return fmt.Errorf("name %q…: longer than %d bytes: %w", name[:32], maxName, ErrUnsafeName)
	case !utf8.ValidString(name):
		return bad("is not UTF-8")
	case strings.ContainsRune(".-~", rune(name[0])):
		return bad(fmt.Sprintf("starts with %q", name[:1]))
	case strings.TrimSpace(name) != name:
		return bad("starts or ends with a space")
	}
	for _, r := range name {
		if strings.ContainsRune(`/\:`, r) || !unicode.IsPrint(r) {
			return bad(fmt.Sprintf("contains %q", r))
		}
	}
	return nil
}

package result

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"unicode"
	"unicode/utf8"
)

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

// withoutPath is the cause of an error of hostio or os, which names the path
// too: the caller has named it already.
func withoutPath(err error) error {
	if cause := errors.Unwrap(err); cause != nil {
		return cause
	}
	return err
}

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
	isBad := func(r rune) bool { return strings.ContainsRune(`/\:`, r) || !unicode.IsPrint(r) }
	if name == "" || len(name) > maxName || !utf8.ValidString(name) || strings.ContainsAny(name[:1], ".-~") ||
		strings.TrimSpace(name) != name || strings.ContainsFunc(name, isBad) {
		return fmt.Errorf("name %.64q: %w", name, ErrUnsafeName)
	}
	return nil
}

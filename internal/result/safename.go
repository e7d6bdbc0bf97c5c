package result

import (
	"errors"
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"
)

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

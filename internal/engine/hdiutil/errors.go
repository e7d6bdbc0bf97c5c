package hdiutil

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"
	"syscall"

	"dmgbench/internal/container"
	"dmgbench/internal/engine/hdiutil/argv"
	"dmgbench/internal/engine/hdiutil/parse"
	"dmgbench/internal/engine/hdiutil/proc"
)

// Class is the kind of a tool's failure.
type Class string

// Classes. Busy and Locked are tried again, and others where [triesFor] says so.
const (
	Busy         Class = "busy"                  // EBUSY: in use
	Locked       Class = "locked"                // EAGAIN: somebody holds the image
	NoDevice     Class = "device not configured" // ENXIO: the helper or the device vanished
	NoHelper     Class = "helper lost"           // ECHILD
	Exists       Class = "exists"
	NotFound     Class = "not found"
	Permission   Class = "permission"
	NotPermitted Class = "not permitted" // sandbox or privacy protection
	Auth         Class = "wrong passphrase"
	NoSpace      Class = "no space"
	TooLarge     Class = "too large"
	Invalid      Class = "invalid argument"
	NotImage     Class = "not an image"
	Damaged      Class = "damaged image"
	NoFileSystem Class = "no mountable file system"
	Unsupported  Class = "not supported"
	Internal     Class = "internal error"
	Battery      Class = "on battery"
	Deadline     Class = "deadline"
	NoResult     Class = "no result" // status 0, and what was asked for is not there
	Killed       Class = "ended by a signal"
	Missing      Class = "tool missing"
	Canceled     Class = "canceled"
	Unknown      Class = "unknown"
)

// Errors that a [ToolError] of the class wraps, beside those of the system.
var (
	ErrAuth         = errors.New("the passphrase is wrong")
	ErrNotImage     = errors.New("no disk image that the tool knows")
	ErrNoFileSystem = errors.New("no file system that can be mounted")
	// ErrNoResult says that a tool ended well and what it was asked for is not there.
	ErrNoResult = parse.ErrNoResult
)

// ToolError is a tool's failure.
type ToolError struct {
	Doing   string // "attaching"
	Object  string // the container's name
	Class   Class
	Command string // without secrets: they are never arguments
	Status  int    // exit status; -1: it did not run to its end
	Tries   int    // how often it was run
	Words   string // the tool's own last words
	Hint    string // what would help, may be empty
	Err     error  // cause beneath, may be nil
}

// Error is `<doing> <object>: <cause>` with the command, its status and its words.
func (e *ToolError) Error() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s %q: ", e.Doing, e.Object)
	switch {
	case e.Err != nil:
		b.WriteString(e.Err.Error())
	default:
		b.WriteString(string(e.Class))
	}
	fmt.Fprintf(&b, " (%s", e.Command)
	if e.Status >= 0 {
		fmt.Fprintf(&b, "; status %d", e.Status)
	}
	if e.Tries > 1 {
		fmt.Fprintf(&b, "; tried %d times", e.Tries)
	}
	if e.Words != "" {
		fmt.Fprintf(&b, "; it said %q", e.Words)
	}
	b.WriteString(")")
	return b.String()
}

// Advice is what would help.
func (e *ToolError) Advice() string { return e.Hint }

// Unwrap gives the cause and what the class means to the standard library.
func (e *ToolError) Unwrap() []error {
	var list []error
	if e.Err != nil {
		list = append(list, e.Err)
	}
	if m := meaning[e.Class]; m != nil {
		list = append(list, m)
	}
	return list
}

var meaning = map[Class]error{
	Busy: syscall.EBUSY, Locked: syscall.EAGAIN, NoDevice: syscall.ENXIO, NoHelper: syscall.ECHILD,
	Exists: fs.ErrExist, NotFound: fs.ErrNotExist, Permission: fs.ErrPermission, NotPermitted: fs.ErrPermission,
	Auth: ErrAuth, NoSpace: syscall.ENOSPC, TooLarge: syscall.EFBIG, Invalid: syscall.EINVAL,
	NotImage: ErrNotImage, Damaged: container.ErrCorrupt, NoFileSystem: ErrNoFileSystem, Unsupported: errors.ErrUnsupported,
	NoResult: ErrNoResult, Deadline: proc.ErrDeadline, Killed: proc.ErrSignal, Missing: proc.ErrMissing,
}

// transient says whether waiting may help.
func transient(err error) bool {
	e, ok := errors.AsType[*ToolError](err)
	return ok && (e.Class == Busy || e.Class == Locked)
}

const (
	tries       = 5 // of a command that is busy
	deviceTries = 4 // of one that did not reach the system's disk image driver: 3.5 s, since in a sandbox it never does
)

// triesFor is how often a command may be run that fails with the error. "Device not configured" (ENXIO) and, of create,
// "image not recognized" pass by themselves on loaded machines: build logs of several projects show both succeed when
// the same command is run again.
func triesFor(verb string, err error) int {
	switch c := classOf(err); {
	case transient(err):
		return tries
	case c == NoDevice && slices.Contains([]string{"create", "attach", "resize", "image create blank", "image attach", "image resize"}, verb),
		c == NotImage && verb == "create":
		return deviceTries
	}
	return 1
}

// classOf is the class of an error of this package, Unknown for others.
func classOf(err error) Class {
	if e, ok := errors.AsType[*ToolError](err); ok {
		return e.Class
	}
	return Unknown
}

// byNumber are the classes of error numbers, as macOS counts them: tools print them behind their words.
var byNumber = map[int]Class{
	1: NotPermitted, 2: NotFound, 6: NoDevice, 10: NoHelper, 13: Permission, 16: Busy, 17: Exists, 22: Invalid,
	27: TooLarge, 28: NoSpace, 35: Locked, 45: Unsupported, 80: Auth, 102: Unsupported,
}

// byWords are the classes of words, the most telling first. The tools speak the language of the user, whatever the environment
// says: of what is tried again, the words that were seen in others than English are here as well, since no status tells them apart.
var byWords = []struct {
	words string
	class Class
}{
	{"resource busy", Busy}, {"resource temporarily unavailable", Locked}, {"authentication error", Auth},
	{"no space left on device", NoSpace}, {"file too large", TooLarge}, {"file exists", Exists},
	{"no such file or directory", NotFound}, {"permission denied", Permission}, {"operation not permitted", NotPermitted},
	{"no mountable file systems", NoFileSystem}, {"corrupt image", Damaged}, {"image data corrupted", Damaged}, {"image not recognized", NotImage}, {"unable to recognize", NotImage},
	{"not recognized", NotImage}, {"operation not supported", Unsupported}, {"is not supported", Unsupported},
	{"not compactable", Unsupported}, {"did not recognize", Unsupported}, {"device not configured", NoDevice},
	{"no child processes", NoHelper}, {"communicate with a helper", NoHelper}, {"drive not detached", Busy},
	{"timeout for diskarbitration expired", Busy}, {"dissented", Busy}, {"at least one volume could not be unmounted", Busy},
	{"ressource ist belegt", Busy}, {"资源忙", Busy}, {"リソースが使用中", Busy}, {"资源暂时不可用", Locked},
	{"risorsa momentaneamente non disponibile", Locked}, {"리소스 일시 사용 불가", Locked},
	{"battery", Battery}, {"internal error", Internal}, {"invalid argument", Invalid},
	{"unknown option", Invalid}, {"usage:", Invalid},
}

// classify judges a failure: by the statuses that mean busy, then by the error
// number behind the words, then by the words.
func classify(status int, said parse.Said) Class {
	switch status {
	case 16:
		return Busy
	case 35:
		return Locked
	}
	if c, ok := byNumber[said.Errno()]; ok {
		return c
	}
	text := strings.ToLower(strings.Join(said.Words, "\n"))
	for _, w := range byWords {
		if strings.Contains(text, w.words) {
			return w.class
		}
	}
	return Unknown
}

// hints say what a person can do.
var hints = map[Class]string{
	Busy:         "close what uses the image: Spotlight, a shell whose folder is on the volume, another run",
	Locked:       "another process holds the image: `hdiutil info` lists what is attached",
	NotPermitted: "allow the terminal full disk access in System Settings, Privacy & Security, or use another folder",
	Permission:   "use a folder that this user may write to",
	Auth:         "give the passphrase that the image was made with: DMGBENCH_PASSPHRASE_FILE names a file that holds it",
	NoSpace:      "make room on the host, or run with --scale",
	TooLarge:     "the host's file system has a limit: use a place on another one",
	Damaged:      "make the image again, or use a copy of it",
	Battery:      "connect the power adapter, or let the step say battery = \"allow\"",
	Missing:      "dmgbench doctor says what this machine has",
	NoDevice:     "the system's disk image helper is overloaded or gone: try again after a restart",
	NoHelper:     "the system's disk image helper is overloaded or gone: try again after a restart",
	Killed:       "the system's log tells what ended the tool: it may be that memory ran short",
	Deadline:     "the tool hung: `hdiutil info` tells whether it left an image attached",
}

// failure makes the error of a command that ran, or did not.
func failure(doing, object string, c argv.Command, r proc.Result, err error) *ToolError {
	said := parse.Talk(string(r.Stderr))
	if len(said.Words) == 0 {
		text, _, _ := strings.Cut(string(r.Stdout), "<?xml") // a list is no words
		said = parse.Talk(text)
	}
	e := &ToolError{Doing: doing, Object: object, Command: c.String(), Status: r.Status, Words: said.Last(), Err: err}
	switch {
	case errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded):
		e.Class, e.Status = Canceled, -1
	case errors.Is(err, proc.ErrDeadline):
		e.Class, e.Status = Deadline, -1
	case errors.Is(err, proc.ErrSignal):
		e.Class, e.Status = Killed, -1
	case errors.Is(err, proc.ErrMissing):
		e.Class, e.Status = Missing, -1
	case errors.Is(err, ErrNoResult):
		e.Class = NoResult
		if classify(0, said) == Auth { // one was seen to fail so, and to end with status 0
			e.Class = Auth
		}
	case err != nil && r.Status == 0:
		e.Class, e.Status = Unknown, -1
	default:
		e.Class = classify(r.Status, said)
	}
	e.Hint = hints[e.Class]
	return e
}

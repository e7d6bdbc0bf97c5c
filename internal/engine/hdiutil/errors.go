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
	"dmgbench/internal/engine/hdiutil/command"
)

// Class is the kind of a tool's failure.
type Class string

// Classes. triesFor names those that are tried again.
const (
	Busy         Class = "busy"                  // EBUSY: in use
	Locked       Class = "locked"                // EAGAIN: another process holds the image
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
	NoResult     Class = "no result" // status 0 without the result
	Killed       Class = "ended by a signal"
	Missing      Class = "tool missing"
	Canceled     Class = "canceled"
	Unknown      Class = "unknown"
)

// Errors that a [ToolError] of the class wraps, in addition to those of the
// system.
var (
	ErrAuth         = errors.New("the passphrase is wrong")
	ErrNotImage     = errors.New("not a disk image that the tool knows")
	ErrNoFileSystem = errors.New("no file system that can be mounted")
	// ErrNoResult means that a tool succeeded without the requested result.
	ErrNoResult = command.ErrNoResult
)

// ToolError is a tool's failure.
type ToolError struct {
	Doing   string // "attaching"
	Object  string // the container's name
	Class   Class
	Command string // without secrets, which are never arguments
	Status  int    // exit status; -1: it did not run to its end
	Tries   int    // how often it was run
	Message string // the last lines that the tool printed
	Hint    string // what helps, may be empty
	Err     error  // cause, may be nil
}

// Error is `<doing> <object>: <cause>` with the command, its status and its
// message.
func (e *ToolError) Error() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s %q: ", e.Doing, e.Object)
	if e.Err != nil {
		b.WriteString(e.Err.Error())
	} else {
		b.WriteString(string(e.Class))
	}
	fmt.Fprintf(&b, " (%s", e.Command)
	if e.Status >= 0 {
		fmt.Fprintf(&b, "; status %d", e.Status)
	}
	if e.Tries > 1 {
		fmt.Fprintf(&b, "; tried %d times", e.Tries)
	}
	if e.Message != "" {
		fmt.Fprintf(&b, "; it printed %q", e.Message)
	}
	b.WriteString(")")
	return b.String()
}

// Advice is the hint.
func (e *ToolError) Advice() string { return e.Hint }

// Unwrap returns the cause and the error of the standard library that the class
// corresponds to.
func (e *ToolError) Unwrap() []error {
	return slices.DeleteFunc([]error{e.Err, sentinels[e.Class]}, func(err error) bool { return err == nil })
}

var sentinels = map[Class]error{
	Busy: syscall.EBUSY, Locked: syscall.EAGAIN, NoDevice: syscall.ENXIO, NoHelper: syscall.ECHILD,
	Exists: fs.ErrExist, NotFound: fs.ErrNotExist, Permission: fs.ErrPermission, NotPermitted: fs.ErrPermission,
	Auth: ErrAuth, NoSpace: syscall.ENOSPC, TooLarge: syscall.EFBIG, Invalid: syscall.EINVAL,
	NotImage: ErrNotImage, Damaged: container.ErrCorrupt, NoFileSystem: ErrNoFileSystem, Unsupported: errors.ErrUnsupported,
	NoResult: ErrNoResult, Deadline: command.ErrDeadline, Killed: command.ErrSignal, Missing: command.ErrMissing,
}

// isTransient reports whether waiting may help.
func isTransient(err error) bool {
	e, ok := errors.AsType[*ToolError](err)
	return ok && (e.Class == Busy || e.Class == Locked)
}

const (
	tries       = 5 // of a command that is busy
	deviceTries = 4 // of one that did not reach the system's disk image driver: 3.5 s, since it never does in a sandbox
)

// triesFor is how often a command may be run that fails with the error. On
// loaded machines "Device not configured" (ENXIO) and, of create, "image not
// recognized" are passing: in build logs of several projects the same command
// succeeds when it is run again.
func triesFor(verb string, err error) int {
	switch c := classOf(err); {
	case isTransient(err):
		return tries
	case c == NoDevice && slices.Contains(deviceVerbs, verb),
		c == NotImage && verb == "create":
		return deviceTries
	}
	return 1
}

// deviceVerbs are the verbs that need the system's disk image driver.
var deviceVerbs = []string{"create", "attach", "resize", "image create blank", "image attach", "image resize"}

// classOf is the class of an error of this package, Unknown for others.
func classOf(err error) Class {
	if e, ok := errors.AsType[*ToolError](err); ok {
		return e.Class
	}
	return Unknown
}

// byNumber are the classes of macOS error numbers, which tools print after
// their message.
var byNumber = map[int]Class{
	1: NotPermitted, 2: NotFound, 6: NoDevice, 10: NoHelper, 13: Permission, 16: Busy, 17: Exists, 22: Invalid,
	27: TooLarge, 28: NoSpace, 35: Locked, 45: Unsupported, 80: Auth, 102: Unsupported,
}

// byWords are the classes of messages, the most specific first. Tools print in
// the user's language, in any environment; for the classes that are tried
// again, messages seen in other languages are here as well, since no status
// distinguishes them.
var byWords = []struct {
	words string
	class Class
}{
	{"resource busy", Busy}, {"resource temporarily unavailable", Locked}, {"authentication error", Auth},
	{"no space left on device", NoSpace}, {"file too large", TooLarge}, {"file exists", Exists},
	{"no such file or directory", NotFound}, {"permission denied", Permission},
	{"operation not permitted", NotPermitted},
	{"no mountable file systems", NoFileSystem}, {"corrupt image", Damaged},
	{"image data corrupted", Damaged}, {"image not recognized", NotImage}, {"unable to recognize", NotImage},
	{"not recognized", NotImage}, {"operation not supported", Unsupported}, {"is not supported", Unsupported},
	{"not compactable", Unsupported}, {"did not recognize", Unsupported}, {"device not configured", NoDevice},
	{"no child processes", NoHelper}, {"communicate with a helper", NoHelper}, {"drive not detached", Busy},
	{"timeout for diskarbitration expired", Busy}, {"dissented", Busy},
	{"at least one volume could not be unmounted", Busy},
	{"ressource ist belegt", Busy}, {"资源忙", Busy}, {"リソースが使用中", Busy}, {"资源暂时不可用", Locked},
	{"risorsa momentaneamente non disponibile", Locked}, {"리소스 일시 사용 불가", Locked},
	{"battery", Battery}, {"internal error", Internal}, {"invalid argument", Invalid},
	{"unknown option", Invalid}, {"usage:", Invalid},
}

// classify finds the class of a failure: from a status that means busy, else
// from the error number in the message, else from its words.
func classify(status int, m command.Messages) Class {
	switch status {
	case 16:
		return Busy
	case 35:
		return Locked
	}
	if c, ok := byNumber[m.Errno()]; ok {
		return c
	}
	text := strings.ToLower(strings.Join(m.Lines, "\n"))
	for _, w := range byWords {
		if strings.Contains(text, w.words) {
			return w.class
		}
	}
	return Unknown
}

// hints are what a person can do.
var hints = map[Class]string{
	Busy:         "close what uses the image: Spotlight, a shell whose folder is on the volume, another run",
	Locked:       "another process holds the image: `hdiutil info` lists what is attached",
	NotPermitted: "allow the terminal full disk access in System Settings, Privacy & Security, or use another folder",
	Permission:   "use a folder that this user may write to",
	Auth:         "give the passphrase that the image was made with: DMGBENCH_PASSPHRASE_FILE names a file that holds it",
	NoSpace:      "make room on the host, or run with --scale",
	TooLarge:     "the host's file system limits the size of files: use a place on another one",
	Damaged:      "make the image again, or use a copy of it",
	Battery:      "connect the power adapter, or set in the step battery = \"allow\"",
	Missing:      "dmgbench doctor lists the tools of this machine",
	NoDevice:     "the system's disk image helper is overloaded or gone: try again after a restart",
	NoHelper:     "the system's disk image helper is overloaded or gone: try again after a restart",
	Killed:       "look in the system's log: memory may have run short",
	Deadline:     "the tool hung: `hdiutil info` lists an image that it left attached",
}

// newToolError makes the error of a command that failed or did not run.
func newToolError(c call, r command.Result, err error) *ToolError {
	m := command.ParseMessages(string(r.Stderr))
	if len(m.Lines) == 0 {
		text, _, _ := strings.Cut(string(r.Stdout), "<?xml") // a property list is not a message
		m = command.ParseMessages(text)
	}
	e := &ToolError{Doing: c.doing, Object: c.object, Command: c.cmd.String(), Status: -1, Message: m.Last(), Err: err}
	switch {
	case errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded):
		e.Class = Canceled
	case errors.Is(err, command.ErrDeadline):
		e.Class = Deadline
	case errors.Is(err, command.ErrSignal):
		e.Class = Killed
	case errors.Is(err, command.ErrMissing):
		e.Class = Missing
	case errors.Is(err, ErrNoResult):
		e.Class, e.Status = NoResult, r.Status
		if classify(0, m) == Auth { // one was seen to fail with status 0 and this message
			e.Class = Auth
		}
	case err != nil && r.Status == 0:
		e.Class = Unknown
	default:
		e.Class, e.Status = classify(r.Status, m), r.Status
	}
	e.Hint = hints[e.Class]
	return e
}

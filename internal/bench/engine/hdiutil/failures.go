package hdiutil

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"
	"syscall"

	"dmgbench/internal/bench/engine/hdiutil/command"
	"dmgbench/internal/image/container"
)

// Errors that a [ToolError] of the class wraps, in addition to those of the
// system.
var (
	ErrAuth     = errors.New("the passphrase is wrong")
	ErrNotImage = errors.New("not a disk image that the tool knows")
	// ErrNoResult means that a tool succeeded without the requested result.
	ErrNoResult = command.ErrNoResult
)

// Class is the kind of a tool's failure: one of the variables below.
type Class = *class

// class is what is known of a kind of failure.
type class struct {
	name    string
	wraps   error    // by a [ToolError] of the class
	numbers []int    // of macOS, that tools print or end with
	words   []string // of messages in English, in lower case; languages.go has the others
	hint    string   // what a person can do
}

const hintHelper = "the system's disk image helper is overloaded or gone: try again after a restart"

// The classes.
var (
	Busy = &class{"busy", syscall.EBUSY, []int{16}, []string{"resource busy", "drive not detached",
		"timeout for diskarbitration expired", "dissented", "at least one volume could not be unmounted",
		"ressource ist belegt", "资源忙", "リソースが使用中"},
		"close what uses the image: Spotlight, a shell whose folder is on the volume, another run"}
	// Another process holds the image.
	Locked = &class{"locked", syscall.EAGAIN, []int{35}, []string{"resource temporarily unavailable", "资源暂时不可用",
		"risorsa momentaneamente non disponibile", "리소스 일시 사용 불가"},
		"another process holds the image: `hdiutil info` lists what is attached"}
	Auth = &class{"wrong passphrase", ErrAuth, []int{80, 81}, []string{"authentication error"},
		"give the passphrase that the image was made with: DMGBENCH_PASSPHRASE_FILE names a file that holds it"}
	NoSpace = &class{"no space", syscall.ENOSPC, []int{28}, []string{"no space left on device"},
		"make room on the host, or run with --scale"}
	Quota = &class{"quota", syscall.EDQUOT, []int{69}, []string{"disc quota exceeded", "disk quota exceeded"},
		"raise the quota, or use a place on another disk"}
	OpenFiles = &class{"open files", syscall.EMFILE, []int{23, 24}, []string{"too many open files"},
		"raise the limit of open files: ulimit -n 4096"}
	TooLarge = &class{"too large", syscall.EFBIG, []int{27}, []string{"file too large"},
		"the host's file system limits the size of files: use a place on another one"}
	ReadOnly = &class{"read-only file system", syscall.EROFS, []int{30}, []string{"read-only file system"},
		"use a place that can be written to"}
	InputOutput = &class{"input/output error", syscall.EIO, []int{5}, []string{"input/output error"},
		"look in the system's log for errors of the host's storage"}
	NoMemory = &class{"no memory", syscall.ENOMEM, []int{12}, []string{"cannot allocate memory"},
		"close other programs"}
	TimedOut   = &class{"timed out", syscall.ETIMEDOUT, []int{60}, []string{"operation timed out"}, hintHelper}
	Exists     = &class{"exists", fs.ErrExist, []int{17}, []string{"file exists"}, ""}
	NotFound   = &class{"not found", fs.ErrNotExist, []int{2}, []string{"no such file or directory"}, ""}
	Permission = &class{"permission", fs.ErrPermission, []int{13}, []string{"permission denied"},
		"use a folder that this user may write to"}
	// The sandbox or privacy protection.
	NotPermitted = &class{"not permitted", fs.ErrPermission, []int{1}, []string{"operation not permitted"},
		"allow the terminal full disk access in System Settings, Privacy & Security, or use another folder"}
	NoFileSystem = &class{"no mountable file system", nil, nil, []string{"no mountable file systems"}, ""}
	Damaged      = &class{"damaged image", container.ErrCorrupt, nil, []string{"corrupt image", "image data corrupted"},
		"make the image again, or use a copy of it"}
	// A file system check found errors.
	DamagedVolume = &class{"damaged file system", nil, []int{-69845, -69716},
		[]string{"file system verify or repair failed"}, "repair the volume, or make the image again"}
	NotImage = &class{"not an image", ErrNotImage, nil, []string{"not recognized", "unable to recognize"}, ""}
	// A verb, option or format.
	Unsupported = &class{"not supported", errors.ErrUnsupported, []int{45, 102}, []string{"operation not supported",
		"is not supported", "not compactable", "did not recognize"}, ""}
	// The helper or the device vanished.
	NoDevice = &class{"device not configured", syscall.ENXIO, []int{6}, []string{"device not configured"}, hintHelper}
	NoHelper = &class{"helper lost", syscall.ECHILD, []int{10}, []string{"no child processes",
		"communicate with a helper"}, hintHelper}
	Battery = &class{"on battery", nil, nil, []string{"battery"},
		"connect the power adapter, or set in the step battery = \"allow\""}
	Invalid = &class{"invalid argument", syscall.EINVAL, []int{22}, []string{"invalid argument", "unknown option",
		"usage:"}, ""}
	Canceled = &class{"canceled", nil, []int{-128}, []string{"operation canceled"}, ""} // also by us

	Deadline = &class{"deadline", command.ErrDeadline, nil, nil,
		"the tool hung: `hdiutil info` lists an image that it left attached"}
	Killed = &class{"ended by a signal", command.ErrSignal, nil, nil,
		"look in the system's log: memory may have run short"}
	Missing  = &class{"tool missing", command.ErrMissing, nil, nil, "dmgbench doctor lists the tools of this machine"}
	NoResult = &class{"no result", ErrNoResult, nil, nil, ""} // status 0 without the result
	Unknown  = &class{"unknown", nil, nil, nil, ""}
)

// verdicts are the classes in which the tool judged the image. In all others it
// could not do what was asked for.
var verdicts = []Class{NoFileSystem, Damaged, DamagedVolume, NotImage}

// messageClasses are the classes that messages name, those with more specific
// words first.
var messageClasses = []Class{Busy, Locked, Auth, NoSpace, Quota, OpenFiles, TooLarge, ReadOnly, InputOutput, NoMemory,
	TimedOut, Exists, NotFound, Permission, NotPermitted, NoFileSystem, Damaged, DamagedVolume, NotImage, Unsupported,
	NoDevice, NoHelper, Battery, Invalid, Canceled}

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
	cause, details := e.Class.name, e.Command
	if e.Err != nil {
		cause = e.Err.Error()
	}
	if e.Status >= 0 {
		details += fmt.Sprintf("; status %d", e.Status)
	}
	if e.Tries > 1 {
		details += fmt.Sprintf("; tried %d times", e.Tries)
	}
	if e.Message != "" {
		details += fmt.Sprintf("; it printed %q", e.Message)
	}
	return fmt.Sprintf("%s %q: %s (%s)", e.Doing, e.Object, cause, details)
}

// Advice is the hint.
func (e *ToolError) Advice() string { return e.Hint }

// Unwrap returns the cause and the error that the class wraps.
func (e *ToolError) Unwrap() []error {
	return slices.DeleteFunc([]error{e.Err, e.Class.wraps}, func(err error) bool { return err == nil })
}

// isTransient reports whether waiting may help.
func isTransient(err error) bool { return classOf(err) == Busy || classOf(err) == Locked }

const (
	tries       = 5 // of a command that is busy
	deviceTries = 4 // of one that did not reach the system's disk image driver: 3.5 s, since it never does in a sandbox
)

// triesFor is how often a command may be run that fails with the error. On
// loaded machines "Device not configured" (ENXIO) and, of create, "image not
// recognized" are passing: in build logs of several projects the same command
// succeeds when it is run again.
func triesFor(verb string, err error) int {
	// These need the system's disk image driver.
	verbs := []string{"create", "attach", "resize", "image create blank", "image attach", "image resize"}
	switch c := classOf(err); {
	case isTransient(err):
		return tries
	case c == NoDevice && slices.Contains(verbs, verb), c == NotImage && verb == "create":
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

// classify finds the class of a failure: from a status that means busy, else
// from the error number in the message, else from its words.
func classify(status int, m command.Messages) Class {
	number, text := m.Errno(), strings.ToLower(strings.Join(m.Lines, "\n"))
	if status == 16 || status == 35 {
		number = status
	}
	for _, matches := range []func(Class) bool{
		func(c Class) bool { return slices.Contains(c.numbers, number) },
		func(c Class) bool {
			return slices.ContainsFunc(c.words, func(w string) bool { return strings.Contains(text, w) })
		},
	} {
		if i := slices.IndexFunc(messageClasses, matches); i >= 0 {
			return messageClasses[i]
		}
	}
	return Unknown
}

// newToolError makes the error of a command that failed or did not run.
func newToolError(c call, r command.Result, err error) *ToolError {
	m := command.ParseMessages(string(r.Stderr))
	if len(m.Lines) == 0 {
		text, _, _ := strings.Cut(string(r.Stdout), "<?xml") // a property list is not a message
		m = command.ParseMessages(text)
	}
	e := &ToolError{Doing: c.doing, Object: c.object, Command: c.cmd.String(), Status: -1, Message: m.Last(),
		Class: Unknown, Err: err}
	switch {
	case err == nil:
		e.Class, e.Status = classify(r.Status, m), r.Status
	case errors.Is(err, ErrNoResult):
		e.Class, e.Status = NoResult, r.Status
		if classify(0, m) == Auth { // one was seen to fail with status 0 and this message
			e.Class = Auth
		}
	case errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded):
		e.Class = Canceled
	default:
		ran := []Class{Deadline, Killed, Missing}
		if i := slices.IndexFunc(ran, func(c Class) bool { return errors.Is(err, c.wraps) }); i >= 0 {
			e.Class = ran[i]
		}
	}
	e.Hint = e.Class.hint
	return e
}

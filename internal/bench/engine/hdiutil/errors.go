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

const hintHelper = "the system's disk image helper is overloaded or gone: try again after a restart"

// classRow is what is known of a class.
type classRow struct {
	class   Class
	wraps   error
	numbers []int    // macOS error numbers that tools print after their message
	words   []string // of messages, in lower case
	hint    string   // what a person can do
}

// classRows have more specific words first. Tools print in the user's language,
// in any environment; for the classes that are tried again, messages seen in
// other languages are here as well, since no status distinguishes them.
var classRows = []classRow{
	{Busy, syscall.EBUSY, []int{16}, []string{"resource busy", "drive not detached",
		"timeout for diskarbitration expired", "dissented", "at least one volume could not be unmounted",
		"ressource ist belegt", "资源忙", "リソースが使用中"},
		"close what uses the image: Spotlight, a shell whose folder is on the volume, another run"},
	{Locked, syscall.EAGAIN, []int{35}, []string{"resource temporarily unavailable", "资源暂时不可用",
		"risorsa momentaneamente non disponibile", "리소스 일시 사용 불가"},
		"another process holds the image: `hdiutil info` lists what is attached"},
	{Auth, ErrAuth, []int{80}, []string{"authentication error"},
		"give the passphrase that the image was made with: DMGBENCH_PASSPHRASE_FILE names a file that holds it"},
	{NoSpace, syscall.ENOSPC, []int{28}, []string{"no space left on device"},
		"make room on the host, or run with --scale"},
	{TooLarge, syscall.EFBIG, []int{27}, []string{"file too large"},
		"the host's file system limits the size of files: use a place on another one"},
	{Exists, fs.ErrExist, []int{17}, []string{"file exists"}, ""},
	{NotFound, fs.ErrNotExist, []int{2}, []string{"no such file or directory"}, ""},
	{Permission, fs.ErrPermission, []int{13}, []string{"permission denied"},
		"use a folder that this user may write to"},
	{NotPermitted, fs.ErrPermission, []int{1}, []string{"operation not permitted"},
		"allow the terminal full disk access in System Settings, Privacy & Security, or use another folder"},
	{NoFileSystem, ErrNoFileSystem, nil, []string{"no mountable file systems"}, ""},
	{Damaged, container.ErrCorrupt, nil, []string{"corrupt image", "image data corrupted"},
		"make the image again, or use a copy of it"},
	{NotImage, ErrNotImage, nil, []string{"not recognized", "unable to recognize"}, ""},
	{Unsupported, errors.ErrUnsupported, []int{45, 102}, []string{"operation not supported", "is not supported",
		"not compactable", "did not recognize"}, ""},
	{NoDevice, syscall.ENXIO, []int{6}, []string{"device not configured"}, hintHelper},
	{NoHelper, syscall.ECHILD, []int{10}, []string{"no child processes", "communicate with a helper"}, hintHelper},
	{Battery, nil, nil, []string{"battery"}, "connect the power adapter, or set in the step battery = \"allow\""},
	{Internal, nil, nil, []string{"internal error"}, ""},
	{Invalid, syscall.EINVAL, []int{22}, []string{"invalid argument", "unknown option", "usage:"}, ""},
	{Deadline, command.ErrDeadline, nil, nil,
		"the tool hung: `hdiutil info` lists an image that it left attached"},
	{Killed, command.ErrSignal, nil, nil, "look in the system's log: memory may have run short"},
	{Missing, command.ErrMissing, nil, nil, "dmgbench doctor lists the tools of this machine"},
	{NoResult, ErrNoResult, nil, nil, ""},
}

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
	var cause any = e.Class
	if e.Err != nil {
		cause = e.Err
	}
	details := []string{e.Command}
	if e.Status >= 0 {
		details = append(details, fmt.Sprintf("status %d", e.Status))
	}
	if e.Tries > 1 {
		details = append(details, fmt.Sprintf("tried %d times", e.Tries))
	}
	if e.Message != "" {
		details = append(details, fmt.Sprintf("it printed %q", e.Message))
	}
	return fmt.Sprintf("%s %q: %v (%s)", e.Doing, e.Object, cause, strings.Join(details, "; "))
}

// Advice is the hint.
func (e *ToolError) Advice() string { return e.Hint }

// Unwrap returns the cause and the error that the class wraps.
func (e *ToolError) Unwrap() []error {
	return slices.DeleteFunc([]error{e.Err, rowOf(e.Class).wraps}, func(err error) bool { return err == nil })
}

// rowOf is the row of a class, the zero row if it has none.
func rowOf(c Class) classRow {
	for _, row := range classRows {
		if row.class == c {
			return row
		}
	}
	return classRow{}
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

// classify finds the class of a failure: from a status that means busy, else
// from the error number in the message, else from its words.
func classify(status int, m command.Messages) Class {
	number, text := m.Errno(), strings.ToLower(strings.Join(m.Lines, "\n"))
	if status == 16 || status == 35 {
		number = status
	}
	for _, row := range classRows {
		if slices.Contains(row.numbers, number) {
			return row.class
		}
	}
	for _, row := range classRows {
		if slices.ContainsFunc(row.words, func(w string) bool { return strings.Contains(text, w) }) {
			return row.class
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
		for _, class := range []Class{Deadline, Killed, Missing} {
			if errors.Is(err, rowOf(class).wraps) {
				e.Class = class
			}
		}
	}
	e.Hint = rowOf(e.Class).hint
	return e
}

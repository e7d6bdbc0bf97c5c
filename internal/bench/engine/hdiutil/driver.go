package hdiutil

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"dmgbench/internal/bench/engine"
	"dmgbench/internal/bench/engine/hdiutil/command"
	"dmgbench/internal/image/container"
)

// firstPause is the pause before the second try; each further one is twice as
// long.
const firstPause = 500 * time.Millisecond

// call is one command with what is known of its result.
type call struct {
	doing, object string // for errors: "attaching", the container's name
	cmd           command.Command
	bytes         int64 // that the tool may have to move, for the deadline
	// check looks for the result of a command that ended with status 0. Its
	// error is or wraps [ErrNoResult].
	check func(stdout []byte) error
	// undo removes what a failed try may have left, before the next one.
	undo  func() error
	tries int // at most; 0: triesFor decides
}

// deadlines are the times that verbs may take without moving bytes: what other
// programs grant them. Other verbs have two minutes.
var deadlines = map[string]time.Duration{
	"create": 5 * time.Minute, "image create blank": 5 * time.Minute, "image create from": 5 * time.Minute,
	"convert": 5 * time.Minute, "resize": 5 * time.Minute, "image resize": 5 * time.Minute,
	"compact": 10 * time.Minute, "verify": 10 * time.Minute,
	"verifyVolume": 10 * time.Minute, "repairVolume": 10 * time.Minute, "info": time.Minute,
	"show": 20 * time.Second, // the log: the run waits for it
}

// deadlineOf is the time that a verb may take, and more for many bytes, at 20
// MB/s.
func deadlineOf(verb string, bytes int64) time.Duration {
	return cmp.Or(deadlines[verb], 2*time.Minute) + time.Duration(bytes/20_000_000)*time.Second
}

// run runs a command until it succeeds or triesFor allows no further try. It
// reports figures, messages and retries to t, with the time that failed tries
// and the pauses after them took, and wipes the input.
func (e *Engine) run(ctx context.Context, t *engine.Report, c call) error {
	if c.cmd.Err != nil {
		return fmt.Errorf("%s %q: %w", c.doing, c.object, c.cmd.Err)
	}
	defer c.cmd.Wipe()
	clock := e.o.Clock
	pause, start, lost := firstPause, clock.Now(), time.Duration(0)
	for try := 1; ; try++ {
		r, err := e.runOnce(ctx, c)
		addRun(t, c.cmd.Verb, try, r)
		limit := triesFor(c.cmd.Verb, err)
		if c.tries != 0 {
			limit = min(limit, c.tries)
		}
		// The last try is the one that is measured, not a retry.
		if err == nil || try >= limit || ctx.Err() != nil {
			if e, ok := errors.AsType[*ToolError](err); ok {
				e.Tries = try
			}
			t.Retried, t.Retries = t.Retried+lost, t.Retries+try-1
			return err
		}
		t.Warn("%s %s failed and was tried again after %s: %s", c.cmd.Tool, c.cmd.Verb, pause, reasonOf(err))
		var failed error
		if c.undo != nil {
			failed = c.undo()
		}
		if failed = cmp.Or(failed, clock.Sleep(ctx, pause)); failed != nil {
			return errors.Join(err, failed)
		}
		pause, lost = 2*pause, clock.Now()-start
	}
}

// reasonOf is the message of a tool that failed, or the class of the error.
func reasonOf(err error) string {
	if e, ok := errors.AsType[*ToolError](err); ok && e.Message != "" && e.Class != NoResult {
		return e.Message
	}
	return classOf(err).name
}

// runOnce runs a command one time.
func (e *Engine) runOnce(ctx context.Context, c call) (r command.Result, err error) {
	prefix := map[command.Tool][]string{
		command.Hdiutil: e.o.Hdiutil, command.Diskutil: e.o.Diskutil, command.Log: e.o.Log}[c.cmd.Tool]
	if len(prefix) == 0 {
		return r, newToolError(c, r, fmt.Errorf("no %s: %w", c.cmd.Tool, command.ErrMissing))
	}
	r, err = e.runProgram(ctx, c.cmd.Verb, c.bytes, prefix[0], slices.Concat(prefix[1:], c.cmd.Args), c.cmd.Input)
	if err != nil || r.Status != 0 {
		return r, newToolError(c, r, err)
	}
	if c.check != nil {
		err = c.check(r.Stdout)
	}
	switch {
	case errors.Is(err, ErrNoResult):
		return r, newToolError(c, r, err)
	case err != nil:
		return r, fmt.Errorf("%s %q: %w", c.doing, c.object, err)
	}
	return r, nil
}

// runProgram runs a program with the deadline of a verb that moves so many
// bytes.
func (e *Engine) runProgram(ctx context.Context, verb string, bytes int64, program string, args []string,
	input []byte) (command.Result, error) {
	return e.o.Run(ctx, command.Job{Path: program, Args: args, Input: input, Dir: e.o.WorkDir,
		Deadline: e.o.Deadline(verb, bytes), Grace: e.o.Grace})
}

// addRun reports the duration of the last run of a verb in nanoseconds, after
// several tries also their number, and the messages of the tool.
func addRun(t *engine.Report, verb string, try int, r command.Result) {
	key := strings.ReplaceAll(verb, " ", "_")
	t.Note(key+"_ns", strconv.FormatInt(int64(r.Duration), 10))
	if try > 1 {
		t.Note(key+"_tries", strconv.Itoa(try))
	}
	m := command.ParseMessages(string(r.Stderr))
	if r.Status == 0 {
		t.Note(key+"_said", strings.Join(m.Lines, "\n"))
	}
	t.Note("deprecated", strings.Join(m.Deprecated, "\n"))
}

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
	numbers []int    // macOS error numbers that tools print after their message
	words   []string // of messages, in lower case
	hint    string   // what a person can do
	// passing is a failure that prevented the command; the others are a verdict
	// on the image.
	passing bool
}

const hintHelper = "the system's disk image helper is overloaded or gone: try again after a restart"

// The classes. Tools print in the user's language, in any environment; for the
// classes that are tried again, messages seen in other languages are here as
// well, since no status distinguishes them.
var (
	Busy = &class{"busy", syscall.EBUSY, []int{16}, []string{"resource busy", "drive not detached",
		"timeout for diskarbitration expired", "dissented", "at least one volume could not be unmounted",
		"ressource ist belegt", "资源忙", "リソースが使用中"},
		"close what uses the image: Spotlight, a shell whose folder is on the volume, another run", true}
	// Another process holds the image.
	Locked = &class{"locked", syscall.EAGAIN, []int{35}, []string{"resource temporarily unavailable", "资源暂时不可用",
		"risorsa momentaneamente non disponibile", "리소스 일시 사용 불가"},
		"another process holds the image: `hdiutil info` lists what is attached", true}
	Auth = &class{"wrong passphrase", ErrAuth, []int{80}, []string{"authentication error"},
		"give the passphrase that the image was made with: DMGBENCH_PASSPHRASE_FILE names a file that holds it", true}
	NoSpace = &class{"no space", syscall.ENOSPC, []int{28}, []string{"no space left on device"},
		"make room on the host, or run with --scale", true}
	Quota = &class{"quota", syscall.EDQUOT, []int{69}, []string{"disc quota exceeded", "disk quota exceeded"},
		"raise the quota, or use a place on another disk", true}
	OpenFiles = &class{"open files", syscall.EMFILE, []int{23, 24}, []string{"too many open files"},
		"raise the limit of open files: ulimit -n 4096", true}
	TooLarge = &class{"too large", syscall.EFBIG, []int{27}, []string{"file too large"},
		"the host's file system limits the size of files: use a place on another one", false}
	Exists     = &class{"exists", fs.ErrExist, []int{17}, []string{"file exists"}, "", false}
	NotFound   = &class{"not found", fs.ErrNotExist, []int{2}, []string{"no such file or directory"}, "", false}
	Permission = &class{"permission", fs.ErrPermission, []int{13}, []string{"permission denied"},
		"use a folder that this user may write to", true}
	// The sandbox or privacy protection.
	NotPermitted = &class{"not permitted", fs.ErrPermission, []int{1}, []string{"operation not permitted"},
		"allow the terminal full disk access in System Settings, Privacy & Security, or use another folder", true}
	NoFileSystem = &class{"no mountable file system", nil, nil, []string{"no mountable file systems"}, "",
		false}
	Damaged = &class{"damaged image", container.ErrCorrupt, nil, []string{"corrupt image", "image data corrupted"},
		"make the image again, or use a copy of it", false}
	NotImage = &class{"not an image", ErrNotImage, nil, []string{"not recognized", "unable to recognize"}, "", false}
	// A verb, option or format.
	Unsupported = &class{"not supported", errors.ErrUnsupported, []int{45, 102}, []string{"operation not supported",
		"is not supported", "not compactable", "did not recognize"}, "", false}
	// The helper or the device vanished.
	NoDevice = &class{"device not configured", syscall.ENXIO, []int{6}, []string{"device not configured"}, hintHelper,
		true}
	NoHelper = &class{"helper lost", syscall.ECHILD, []int{10}, []string{"no child processes",
		"communicate with a helper"}, hintHelper, true}
	Battery = &class{"on battery", nil, nil, []string{"battery"},
		"connect the power adapter, or set in the step battery = \"allow\"", false}
	Invalid = &class{"invalid argument", syscall.EINVAL, []int{22}, []string{"invalid argument", "unknown option",
		"usage:"}, "", false}

	Deadline = &class{"deadline", command.ErrDeadline, nil, nil,
		"the tool hung: `hdiutil info` lists an image that it left attached", true}
	Killed = &class{"ended by a signal", command.ErrSignal, nil, nil,
		"look in the system's log: memory may have run short", true}
	Missing = &class{"tool missing", command.ErrMissing, nil, nil, "dmgbench doctor lists the tools of this machine",
		true}
	NoResult = &class{"no result", ErrNoResult, nil, nil, "", false} // status 0 without the result
	Canceled = &class{"canceled", nil, nil, nil, "", true}
	Unknown  = &class{"unknown", nil, nil, nil, "", false}
)

// messageClasses are the classes that messages name, those with more specific
// words first.
var messageClasses = []Class{Busy, Locked, Auth, NoSpace, Quota, OpenFiles, TooLarge, Exists, NotFound, Permission,
	NotPermitted, NoFileSystem, Damaged, NotImage, Unsupported, NoDevice, NoHelper, Battery, Invalid}

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

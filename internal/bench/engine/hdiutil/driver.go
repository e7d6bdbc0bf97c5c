package hdiutil

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"dmgbench/internal/bench/engine"
	"dmgbench/internal/bench/engine/hdiutil/command"
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
	// confirm looks for the result of a command that ended with another status:
	// nil means that it is there all the same.
	confirm func() error
	image   string // that the tool may attach for its work
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
		if err != nil && c.confirm != nil && r.Status > 0 && c.confirm() == nil {
			t.Warn("%s %s failed, and yet its result is there: %s", c.cmd.Tool, c.cmd.Verb, reasonOf(err))
			err = nil
		}
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
			return errors.Join(err, e.releaseLate(ctx, t, c.image, err))
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
		command.Hdiutil: e.o.Hdiutil, command.Diskutil: e.o.Diskutil, command.Log: e.o.Log,
		command.Ioreg: e.o.Ioreg, command.FsckAPFS: e.o.FsckAPFS}[c.cmd.Tool]
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

// newToolError makes the error of a command that failed or did not run.
func newToolError(c call, r command.Result, err error) *ToolError {
	e := &ToolError{Doing: c.doing, Object: c.object, Command: c.cmd.String(), Status: -1, Class: Unknown, Err: err}
	status := r.Status
	if err != nil {
		status = 0
	}
	text, _, _ := strings.Cut(string(r.Stdout), "<?xml") // a property list is not a message
	said, printed := command.ParseMessages(string(r.Stderr)), command.ParseMessages(text)
	named, reason := classify(c.cmd, status, said)
	other, line := classify(c.cmd, status, printed)
	// A check of a file system that could not read it prints why before its verdict.
	if named == Unknown || named == DamagedVolume && slices.Contains([]Class{Permission, NotPermitted, NoMemory}, other) {
		named, reason = other, line
	}
	if named == Auth && c.cmd.Verb == "create" && !slices.Contains(c.cmd.Args, "-stdinpass") {
		named = Unknown // about a file that was copied
	}
	if len(said.Lines) == 0 {
		said = printed
	}
	e.Message = said.Last()
	if !strings.Contains(e.Message, reason) {
		e.Message = reason + "; " + e.Message
	}
	switch {
	case err == nil:
		e.Class, e.Status = named, r.Status
	case errors.Is(err, ErrNoResult):
		e.Class, e.Status = NoResult, r.Status
		if named == Auth { // one was seen to fail with status 0 and this message
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

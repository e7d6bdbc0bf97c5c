package hdiutil

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"dmgbench/internal/clock"
	"dmgbench/internal/engine"
	"dmgbench/internal/engine/hdiutil/command"
)

// firstPause is the pause before the second try; each further one is twice as
// long.
const firstPause = 500 * time.Millisecond

// driver runs the tools.
type driver struct {
	tools    map[command.Tool][]string // program and the arguments before a command's own
	clock    clock.Clock
	deadline func(verb string, bytes int64) time.Duration
	grace    time.Duration
	dir      string // working directory
}

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

// deadlineOf is the time that a verb may take: what other programs grant it,
// and more for many bytes, at 20 MB/s.
func deadlineOf(verb string, bytes int64) time.Duration {
	d := 2 * time.Minute
	switch verb {
	case "create", "image create blank", "image create from", "convert", "resize", "image resize":
		d = 5 * time.Minute
	case "compact", "verify", "checksum", "verifyVolume", "repairVolume":
		d = 10 * time.Minute
	case "info":
		d = time.Minute
	case "show": // the log: the run waits for it
		d = 20 * time.Second
	}
	return d + time.Duration(bytes/20_000_000)*time.Second
}

// run runs a command until it succeeds or triesFor allows no further try. It
// reports figures, messages and retries to t, with the time that failed tries
// and the pauses after them took, and wipes the input.
func (d *driver) run(ctx context.Context, t *reportBuilder, c call) (command.Result, error) {
	if c.cmd.Err != nil {
		return command.Result{}, fmt.Errorf("%s %q: %w", c.doing, c.object, c.cmd.Err)
	}
	defer c.cmd.Wipe()
	pause, start := firstPause, d.clock.Now()
	for try := 1; ; try++ {
		lost := d.clock.Now() - start
		r, err := d.runOnce(ctx, c)
		t.addRun(c.cmd.Verb, try, r, d.clock.Now()-start)
		limit := triesFor(c.cmd.Verb, err)
		if c.tries != 0 {
			limit = min(limit, c.tries)
		}
		if err == nil || try >= limit || ctx.Err() != nil {
			if e, ok := errors.AsType[*ToolError](err); ok {
				e.Tries = try
			}
			t.Retried += lost
			return r, err
		}
		t.warn("%s %s failed and was tried again after %s: %s", c.cmd.Tool, c.cmd.Verb, pause, reasonOf(err))
		if c.undo != nil {
			if e := c.undo(); e != nil {
				return r, errors.Join(err, e)
			}
		}
		if e := d.clock.Sleep(ctx, pause); e != nil {
			return r, errors.Join(err, e)
		}
		pause *= 2
	}
}

// reasonOf is the message of a tool that failed, or the class of the error.
func reasonOf(err error) string {
	if e, ok := errors.AsType[*ToolError](err); ok && e.Message != "" {
		return e.Message
	}
	return string(classOf(err))
}

// runOnce runs a command one time.
func (d *driver) runOnce(ctx context.Context, c call) (command.Result, error) {
	prefix := d.tools[c.cmd.Tool]
	if len(prefix) == 0 {
		return command.Result{}, newToolError(c, command.Result{},
			fmt.Errorf("no %s: %w", c.cmd.Tool, command.ErrMissing))
	}
	r, err := command.Run(ctx, command.Job{
		Path: prefix[0], Args: slices.Concat(prefix[1:], c.cmd.Args), Input: c.cmd.Input, Dir: d.dir,
		Deadline: d.deadline(c.cmd.Verb, c.bytes), Grace: d.grace,
	})
	if err != nil || r.Status != 0 {
		return r, newToolError(c, r, err)
	}
	if c.check != nil {
		if err := c.check(r.Stdout); errors.Is(err, ErrNoResult) {
			return r, newToolError(c, r, err)
		} else if err != nil {
			return r, fmt.Errorf("%s %q: %w", c.doing, c.object, err)
		}
	}
	return r, nil
}

// reportBuilder collects the report of an action.
type reportBuilder struct{ engine.Report }

func (t *reportBuilder) warn(format string, args ...any) {
	t.Warnings = append(t.Warnings, fmt.Sprintf(format, args...))
}

func (t *reportBuilder) addFinding(text string) { t.Findings = append(t.Findings, text) }

// note sets a reported figure; an empty value is left out.
func (t *reportBuilder) note(key, value string) {
	if value == "" {
		return
	}
	if t.Reported == nil {
		t.Reported = map[string]string{}
	}
	t.Reported[key] = value
}

// addRun reports the duration of the last run of a verb in nanoseconds, after
// several tries also their number and the time of all, and the messages of the
// tool.
func (t *reportBuilder) addRun(verb string, try int, r command.Result, total time.Duration) {
	key := strings.ReplaceAll(verb, " ", "_")
	t.note(key+"_ns", strconv.FormatInt(int64(r.Duration), 10))
	if try > 1 {
		t.note(key+"_tries", strconv.Itoa(try))
		t.note(key+"_all_ns", strconv.FormatInt(int64(total), 10))
	}
	m := command.ParseMessages(string(r.Stderr))
	if r.Status == 0 {
		t.note(key+"_said", strings.Join(m.Lines, "\n"))
	}
	t.note("deprecated", strings.Join(m.Deprecated, "\n"))
}

// addRetries adds warnings and retries of another report, without its figures.
func (t *reportBuilder) addRetries(r engine.Report) {
	t.add(engine.Report{Warnings: r.Warnings, Retried: r.Retried})
}

// take returns the report and empties the builder.
func (t *reportBuilder) take() engine.Report {
	r := t.Report
	t.Report = engine.Report{}
	return r
}

// add appends another report.
func (t *reportBuilder) add(r engine.Report) {
	t.Freed += r.Freed
	t.Retried += r.Retried
	t.Findings = append(t.Findings, r.Findings...)
	t.Warnings = append(t.Warnings, r.Warnings...)
	for k, v := range r.Reported {
		t.note(k, v)
	}
}

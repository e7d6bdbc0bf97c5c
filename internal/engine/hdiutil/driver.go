package hdiutil

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"dmgbench/internal/clock"
	"dmgbench/internal/engine"
	"dmgbench/internal/engine/hdiutil/argv"
	"dmgbench/internal/engine/hdiutil/parse"
	"dmgbench/internal/engine/hdiutil/proc"
)

// firstPause is before the second try; it is doubled each time.
const firstPause = 500 * time.Millisecond

// driver runs the tools.
type driver struct {
	tools    map[argv.Tool][]string // program and the arguments before a command's own
	clock    clock.Clock
	deadline func(verb string, bytes int64) time.Duration
	grace    time.Duration
	dir      string // working directory
}

// builder is a typed command.
type builder interface{ Command() (argv.Command, error) }

// call is one thing that is asked of a tool.
type call struct {
	doing, object string
	build         builder
	bytes         int64 // that the tool may have to move, for the deadline
	// check looks for the result of a command that ended with status 0; its error is [ErrNoResult] or wraps it.
	check func(r proc.Result) error
	// undo removes what a failed try may have left, before the next.
	undo  func() error
	tries int // at most; 0: what [triesFor] says
}

// deadlineOf is the time that a verb has: what mature programs grant it, and
// more for many bytes, at 20 MB/s.
func deadlineOf(verb string, bytes int64) time.Duration {
	d := 2 * time.Minute
	switch verb {
	case "create", "image create blank", "image create from", "convert", "resize", "image resize":
		d = 5 * time.Minute
	case "compact", "verify", "checksum", "verifyVolume", "repairVolume":
		d = 10 * time.Minute
	case "info":
		d = time.Minute
	case "show": // the log, after which a run waits
		d = 20 * time.Second
	}
	return d + time.Duration(bytes/20_000_000)*time.Second
}

// run runs the command until it succeeds, fails for good, or failed too
// often. What is to be told goes into t, with the time that failed tries and the pauses after them took.
func (d *driver) run(ctx context.Context, t *tale, c call) (proc.Result, error) {
	pause, began := firstPause, d.clock.Now()
	for try := 1; ; try++ {
		lost := d.clock.Now() - began
		r, name, err := d.once(ctx, c)
		t.tool(name, try, r, d.clock.Now()-began)
		_, verb, _ := strings.Cut(name, " ")
		limit := triesFor(verb, err)
		if c.tries != 0 {
			limit = min(limit, c.tries)
		}
		if err == nil || try >= limit || ctx.Err() != nil {
			if e, ok := errors.AsType[*ToolError](err); ok {
				e.Tries = try
			}
			t.r.Retried += lost
			return r, err
		}
		t.warn("%s failed and was tried again after %s: %s", name, pause, said(err))
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

// said are the words of the tool that failed.
func said(err error) string {
	if e, ok := errors.AsType[*ToolError](err); ok && e.Words != "" {
		return e.Words
	}
	return string(classOf(err))
}

// once runs the command one time. The name is the tool and verb.
func (d *driver) once(ctx context.Context, c call) (proc.Result, string, error) {
	cmd, err := c.build.Command()
	if err != nil {
		return proc.Result{}, "", fmt.Errorf("%s %q: %w", c.doing, c.object, err)
	}
	defer cmd.Wipe()
	name := string(cmd.Tool) + " " + cmd.Verb
	prefix := d.tools[cmd.Tool]
	if len(prefix) == 0 {
		return proc.Result{}, name, failure(c.doing, c.object, cmd, proc.Result{}, fmt.Errorf("no %s: %w", cmd.Tool, proc.ErrMissing))
	}
	args := append(append([]string{}, prefix[1:]...), cmd.Args...)
	r, err := proc.Run(ctx, proc.Job{
		Path: prefix[0], Args: args, Input: cmd.Input, Dir: d.dir,
		Deadline: d.deadline(cmd.Verb, c.bytes), Grace: d.grace,
	})
	switch {
	case err != nil || r.Status != 0:
		return r, name, failure(c.doing, c.object, cmd, r, err)
	case c.check != nil:
		if err := c.check(r); err != nil {
			if errors.Is(err, ErrNoResult) {
				return r, name, failure(c.doing, c.object, cmd, r, err)
			}
			return r, name, fmt.Errorf("%s %q: %w", c.doing, c.object, err)
		}
	}
	return r, name, nil
}

// tale collects what an action has to tell of itself.
type tale struct{ r engine.Report }

func (t *tale) warn(format string, args ...any) {
	t.r.Warnings = append(t.r.Warnings, fmt.Sprintf(format, args...))
}

func (t *tale) note(key, value string) {
	if value == "" {
		return
	}
	if t.r.Reported == nil {
		t.r.Reported = map[string]string{}
	}
	t.r.Reported[key] = value
}

// tool keeps the figures and words of one run: the length of the last run of
// this verb in nanoseconds, how many runs there were and how long all of it took.
func (t *tale) tool(name string, try int, r proc.Result, since time.Duration) {
	if name == "" {
		return
	}
	key := strings.ReplaceAll(name[strings.IndexByte(name, ' ')+1:], " ", "_")
	t.note(key+"_ns", strconv.FormatInt(int64(r.Duration), 10))
	if try > 1 {
		t.note(key+"_tries", strconv.Itoa(try))
		t.note(key+"_all_ns", strconv.FormatInt(int64(since), 10))
	}
	talk := parse.Talk(string(r.Stderr))
	if r.Status == 0 {
		t.note(key+"_said", strings.Join(talk.Words, "\n"))
	}
	t.note("deprecated", strings.Join(talk.Deprecated, "\n"))
}

// retried takes over another report's retries, without its figures.
func (t *tale) retried(r engine.Report) {
	t.add(engine.Report{Warnings: r.Warnings, Retried: r.Retried})
}

// report is what was collected; the tale is empty afterwards.
func (t *tale) report() engine.Report {
	r := t.r
	t.r = engine.Report{}
	return r
}

// add puts another report's words behind.
func (t *tale) add(r engine.Report) {
	t.r.Freed += r.Freed
	t.r.Retried += r.Retried
	t.r.Findings = append(t.r.Findings, r.Findings...)
	t.r.Warnings = append(t.r.Warnings, r.Warnings...)
	for k, v := range r.Reported {
		t.note(k, v)
	}
}

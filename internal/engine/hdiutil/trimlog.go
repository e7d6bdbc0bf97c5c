package hdiutil

import (
	"context"
	"errors"
	"fmt"

	"strings"
	"time"

	"dmgbench/internal/engine"
	"dmgbench/internal/engine/hdiutil/argv"
	"dmgbench/internal/engine/hdiutil/parse"
	"dmgbench/internal/engine/hdiutil/proc"
)

// AppleLog is log(1) of macOS.
const AppleLog = "/usr/bin/log"

// early is how long before the attach the log is read from: its times are cut to the second.
const early = time.Second

var _ engine.PostDetachReporter = (*attachment)(nil)

// ReportAfterDetach is what APFS said in the system's log of trimming the volume while it was attached ("trim_log"), or why
// that is not known ("trim_log_unknown"): accounts that are no administrator's may not read the log. The log takes
// seconds to read, so that it is asked once an attachment, outside of whatever is timed, and never again in this
// engine once it refused.
func (a *attachment) ReportAfterDetach(ctx context.Context) engine.Report {
	e := a.c.e
	if len(e.o.Log) == 0 || a.mounted.Kind != "apfs" || a.readOnly {
		return engine.Report{}
	}
	var t tale
	if e.logless == "" {
		a.trims(ctx, &t)
	}
	t.note("trim_log_unknown", e.logless)
	return t.report()
}

// ReadsLog tries to read APFS's lines of the last second in the system's log, as [attachment.ReportAfterDetach] does.
// Where nothing reads a log the error matches [errors.ErrUnsupported].
func (e *Engine) ReadsLog(ctx context.Context) error {
	if len(e.o.Log) == 0 {
		return fmt.Errorf("reading the system's log: nothing here writes what file systems trim: %w", errors.ErrUnsupported)
	}
	var quiet tale
	_, err := e.d.run(ctx, &quiet, call{doing: "reading", object: "the system's log", tries: 1,
		build: argv.TrimLog{Since: e.d.clock.Wall().Add(-early)}, check: func(r proc.Result) error {
			_, err := parse.Trims(r.Stdout, "/dev/disk0")
			return err
		}})
	return err
}

func (a *attachment) trims(ctx context.Context, t *tale) {
	var quiet tale
	var list []string
	_, err := a.c.e.d.run(ctx, &quiet, call{doing: "reading", object: "the system's log", tries: 1,
		build: argv.TrimLog{Since: a.since.Add(-early)}, check: func(r proc.Result) (err error) {
			list, err = parse.Trims(r.Stdout, a.device.Device)
			return err
		}})
	switch {
	case ctx.Err() != nil:
	case err != nil:
		a.c.e.logless = "the system's log could not be read: " + string(classOf(err))
		if e, ok := errors.AsType[*ToolError](err); ok && e.Words != "" && e.Class != NoResult {
			a.c.e.logless += ": " + e.Words
		}
	case len(list) == 0:
		t.note("trim_log_unknown", "the system's log has no line of trimming this volume")
	}
	t.note("trim_log", strings.Join(list, "\n"))
}

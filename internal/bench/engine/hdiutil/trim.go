package hdiutil

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"dmgbench/internal/bench/engine"
	"dmgbench/internal/bench/engine/hdiutil/command"
	diskimage "dmgbench/internal/image"
)

// errNoTrim means that the system has no call for it, or refuses it.
var errNoTrim = fmt.Errorf("the system does not trim this volume: %w", errors.ErrUnsupported)

// Trim gives the volume's free space back to the container: by a system call
// where there is one, else by `hdiutil trim` for Linux. macOS has neither: it
// trims while mounting, which the report notes.
func (a *attachment) Trim(ctx context.Context) (t engine.Report, err error) {
	c := a.c
	if err := c.CheckSame(ctx, "trimming"); err != nil {
		return t, err
	}
	if a.vol == nil || a.readOnly {
		return t, fmt.Errorf("trimming %q: the volume is not mounted for writing", c.File)
	}
	if c.e.isApple() {
		t.Note("trim", "not asked for: macOS trims a volume of its own accord, when it mounts it")
		return t, nil
	}
	// If our volume were gone, the call would trim the file system of the mount
	// point.
	if !a.isMounted() {
		return t, fmt.Errorf("trimming %q: its volume is no longer mounted", c.File)
	}
	before, err := c.Usage(ctx)
	if err != nil {
		return t, err
	}
	n, err := int64(0), errNoTrim
	if c.e.host.Trim != nil {
		n, err = c.e.host.Trim(a.point)
	}
	switch unsupported := errors.Is(err, errors.ErrUnsupported); {
	case unsupported && c.spec.Encrypted() && c.format.Name == diskimage.UDRW:
		t.Warn("free space was not given back: every block of an encrypted raw image is written when it is made")
		err = nil
	case unsupported:
		err = c.e.run(ctx, &t, call{doing: "trimming", object: c.File,
			cmd: command.New("hdiutil trim", command.Args{MountPoint: a.point})})
	case err == nil:
		t.Note("trimmed", strconv.FormatInt(n, 10))
	}
	if err != nil {
		return t, fmt.Errorf("trimming %q: %w", c.File, err)
	}
	after, err := c.Usage(ctx)
	t.Freed = max(0, before.Allocated-after.Allocated)
	return t, err
}

// logMargin is how long before the attach the log is read from: its times are
// cut to the second.
const logMargin = time.Second

// ReportAfterDetach is what APFS logged of trimming the volume while it was
// attached ("trim_log"), or why that is not known ("trim_log_unknown"):
// accounts without administrator rights may not read the log. The log takes
// seconds to read, so that it is read once for each attachment, outside of
// timed steps, and no more in this engine after it refused.
func (a *attachment) ReportAfterDetach(ctx context.Context) (t engine.Report) {
	e := a.c.e
	if len(e.o.Log) == 0 || a.mounted.Type != "apfs" || a.readOnly {
		return t
	}
	if e.noLog == "" {
		list, err := e.readTrimLog(ctx, a.start.Add(-logMargin), a.device.Device)
		switch {
		case ctx.Err() != nil:
		case err != nil:
			e.noLog = "the system's log could not be read: " + string(classOf(err))
			if te, ok := errors.AsType[*ToolError](err); ok && te.Message != "" && te.Class != NoResult {
				e.noLog += ": " + te.Message
			}
		case len(list) == 0:
			t.Note("trim_log_unknown", "the system's log has no line of trimming this volume")
		}
		t.Note("trim_log", strings.Join(list, "\n"))
	}
	t.Note("trim_log_unknown", e.noLog)
	return t
}

// ReadsLog tries to read APFS's messages of the last second, as
// [attachment.ReportAfterDetach] does. Without a log the error matches
// [errors.ErrUnsupported].
func (e *Engine) ReadsLog(ctx context.Context) error {
	if len(e.o.Log) == 0 {
		return fmt.Errorf("reading the system's log: this system does not log trims: %w", errors.ErrUnsupported)
	}
	_, err := e.readTrimLog(ctx, e.o.Clock.Wall().Add(-logMargin), "/dev/disk0")
	return err
}

// readTrimLog asks log(1) once: more tries would keep the run waiting.
func (e *Engine) readTrimLog(ctx context.Context, since time.Time, device string) (list []string, err error) {
	err = e.run(ctx, &engine.Report{}, call{doing: "reading", object: "the system's log", tries: 1,
		cmd: command.TrimLog(since), check: func(out []byte) (err error) {
			list, err = command.ParseTrims(out, device)
			return err
		}})
	return list, err
}

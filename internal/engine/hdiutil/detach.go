package hdiutil

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strconv"
	"time"

	"dmgbench/internal/engine"
	"dmgbench/internal/engine/hdiutil/argv"
	"dmgbench/internal/engine/hdiutil/proc"
)

// politeTries are the detaches without force: at once, then after 0.5 s, 1 s and 2 s.
const politeTries = 4

// Detach unmounts and detaches. It asks hdiutil, then diskutil, which on macOS 27 is reported to succeed where
// hdiutil says "couldn't unmount - Resource busy" (autopkg#1069). After that it asks hdiutil several times
// more, or, with force, by force: then open files do not hold it. Before each try it looks that the device still is the image's, since
// numbers are used again, and at the end that it is really gone. Every try but
// the first is a warning. After an error the image is still attached, and
// Detach may be called again.
func (a *attachment) Detach(ctx context.Context, force bool) (engine.Report, error) {
	if a.off {
		a.c.open = nil
		return engine.Report{}, nil
	}
	a.closeRoot() // an open folder would keep the volume busy
	err := a.detach(ctx, force)
	if err != nil {
		a.reopen()
		return a.told.report(), err
	}
	a.c.open = nil
	return a.told.report(), nil
}

// reopen makes the volume usable again if it is still mounted.
func (a *attachment) reopen() {
	if a.point == "" {
		return
	}
	if m, ok, err := a.c.e.host.mountedOn(a.point); err == nil && ok && m.From == a.mounted.From {
		if err := a.openRoot(); err != nil {
			a.told.warn("%v", err)
		}
	}
}

// attempt is one way to get rid of an attachment.
type attempt struct {
	build func(disk string) builder
	pause time.Duration // before it
	name  string        // for the warning
}

func (a *attachment) attempts(force bool) []attempt {
	polite := func(disk string) builder { return argv.Detach{Device: disk} }
	list, pause := []attempt{{build: polite}}, firstPause
	if len(a.c.e.o.Diskutil) > 0 {
		list = append(list, attempt{func(disk string) builder { return argv.Eject{Device: disk} }, 0, "by diskutil eject"})
	}
	if force {
		return append(list, attempt{func(disk string) builder { return argv.Detach{Device: disk, Force: true} }, 0, "with force"})
	}
	for range politeTries - 1 {
		list = append(list, attempt{polite, pause, "again"})
		pause *= 2
	}
	return list
}

// detach goes through the attempts. A failure of hdiutil that is not "busy" skips its polite repetitions. What was
// before the last attempt counts as retries.
func (a *attachment) detach(ctx context.Context, force bool) error {
	var last, polite error
	began, before, n := a.c.e.d.clock.Now(), a.told.r.Retried, 0
	for i, try := range a.attempts(force) {
		if i > 0 {
			if try.name == "again" && !transient(polite) {
				continue
			}
			a.told.warn("detaching did not succeed and was tried %s: %s", try.name, said(last))
			if err := a.c.e.d.clock.Sleep(ctx, try.pause); err != nil {
				return errors.Join(last, err)
			}
		}
		ours, err := a.ours(ctx, i > 0)
		if err != nil {
			return errors.Join(last, err)
		}
		if !ours {
			if i == 0 {
				a.told.warn("the image was already detached by somebody else")
			}
			return a.finish()
		}
		if n++; n > 1 {
			a.told.r.Retried = before + a.c.e.d.clock.Now() - began
			a.told.note("detach_tries", strconv.Itoa(n))
		}
		_, last = a.c.e.d.run(ctx, &a.told, call{doing: "detaching", object: a.c.file, build: try.build(a.disk), tries: 1, check: a.gone(ctx)})
		if last == nil {
			return a.finish()
		}
		if ctx.Err() != nil {
			return last
		}
		if i == 0 || try.name == "again" {
			polite = last
		}
	}
	return a.conclude(ctx, last)
}

// conclude looks a last time whether the image is attached: a tool may fail and succeed at once.
func (a *attachment) conclude(ctx context.Context, last error) error {
	ours, err := a.ours(ctx, true)
	if err != nil {
		return errors.Join(last, err)
	}
	if !ours {
		a.told.warn("the tool failed, and yet the image is detached: %s", said(last))
		return a.finish()
	}
	if e, ok := errors.AsType[*ToolError](last); ok {
		e.Hint = fmt.Sprintf("close what uses the volume, then: hdiutil detach %s -force", a.disk)
	}
	return last
}

// ours says whether the device still is this image's. The mount on our own mount
// point from the same device proves it, without any tool; else the list of
// attached images does.
func (a *attachment) ours(ctx context.Context, tried bool) (bool, error) {
	if a.point != "" && !tried && a.mounted.From != "" {
		m, ok, err := a.c.e.host.mountedOn(a.point)
		if err == nil && ok && m.From == a.mounted.From {
			return true, nil
		}
	}
	at, ok, err := a.c.e.attached(ctx, &a.told, a.c.path())
	if err != nil {
		return false, fmt.Errorf("looking whose %s is: %w", a.disk, err)
	}
	if !ok {
		return false, nil
	}
	disk, err := at.Disk()
	if err != nil {
		return false, err
	}
	a.disk = disk
	return true, nil
}

// gone is the check behind a detach that ended well: nothing is mounted, and the
// device has no node, or at least belongs to the image no more.
func (a *attachment) gone(ctx context.Context) func(proc.Result) error {
	return func(proc.Result) error {
		if a.point != "" {
			if _, ok, err := a.c.e.host.mountedOn(a.point); err != nil || ok {
				return errors.Join(fmt.Errorf("%w: the volume is still mounted", ErrNoResult), err)
			}
		}
		if !a.c.e.host.Exists(a.disk) {
			return nil
		}
		_, ok, err := a.c.e.attached(ctx, &a.told, a.c.path())
		if err == nil && ok {
			err = fmt.Errorf("%w: the image is still attached", ErrNoResult)
		}
		return err
	}
}

// finish removes the mount point and marks the end, unless the mount point tells that it has not come.
func (a *attachment) finish() error {
	err := a.unpoint()
	a.off = !errors.Is(err, errOccupied)
	return err
}

var errOccupied = errors.New("something is mounted on it")

// unpoint removes the mount point, never what may be mounted there. Some tools have removed it themselves.
func (a *attachment) unpoint() error {
	if a.point == "" {
		return nil
	}
	if _, ok, err := a.c.e.host.mountedOn(a.point); err != nil || ok {
		return errors.Join(fmt.Errorf("removing the mount point %q: %w", a.point, errOccupied), err)
	}
	if err := os.Remove(a.point); err != nil && !errors.Is(err, os.ErrNotExist) {
		return fmt.Errorf("removing the mount point: %w", err)
	}
	a.point = ""
	return nil
}

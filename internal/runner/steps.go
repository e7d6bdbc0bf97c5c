package runner

import (
	"context"
	"fmt"
	"time"

	"dmgbench/internal/engine"
	"dmgbench/internal/plan"
	"dmgbench/internal/result"
)

// settlePoll is how often a settle looks at the allocated size.
const settlePoll = time.Second

// on finds the container that a step acts on.
func (x *caseRun) on(st plan.Step) (*handle, error) {
	if st.On == "" {
		return x.main, nil
	}
	if h := x.named[st.On]; h != nil {
		return h, nil
	}
	return nil, fmt.Errorf("no step has made a container %q", st.On)
}

// do executes one step that is neither a repeat, a pause nor a parallel block.
func (x *caseRun) do(ctx context.Context, st plan.Step, rec *result.Step) error {
	if st.Do == "create" {
		return x.create(ctx, rec)
	}
	h, err := x.on(st)
	if err != nil {
		return err
	}
	if h == nil || h.con == nil {
		return fmt.Errorf("no container has been created")
	}
	switch st.Do {
	case "attach":
		return x.attach(ctx, h, st, rec)
	case "detach":
		return x.detach(ctx, h, rec)
	case "remount":
		return x.remount(ctx, h, st, rec)
	case "settle":
		return x.timed(rec, func() error { return x.settle(ctx, h, st, rec) })
	case "measure":
		return x.measure(ctx, h, rec)
	case "compact":
		return x.report(rec, func() (engine.Report, error) {
			return h.con.Compact(ctx, engine.CompactOptions{AllowBattery: st.Battery == "allow"})
		})
	case "resize":
		return x.report(rec, func() (engine.Report, error) { return h.con.Resize(ctx, int64(st.Size)) })
	case "convert", "transfer", "damage":
		return x.another(ctx, h, st, rec)
	case "check":
		return x.report(rec, func() (engine.Report, error) {
			return h.con.Check(ctx, engine.CheckOptions{What: st.What, Repair: st.Repair})
		})
	case "xattr":
		return x.report(rec, func() (engine.Report, error) { return h.con.Xattr(ctx, st.Action, st.Attr, st.Value) })
	}
	if h.att == nil || h.att.Volume() == nil {
		return fmt.Errorf("the container is not mounted")
	}
	switch st.Do {
	case "trim":
		return x.report(rec, func() (engine.Report, error) { return h.att.Trim(ctx) })
	case "mkdir":
		return x.timed(rec, func() error { return h.att.Volume().Mkdir(st.Dir) })
	}
	return x.files(ctx, h, st, rec)
}

// create makes the case's container; its removal is the first thing owed.
func (x *caseRun) create(ctx context.Context, rec *result.Step) error {
	return x.timed(rec, func() error {
		con, err := x.eng.Create(ctx, x.place.dir, x.base, x.spec)
		if err != nil {
			return err
		}
		x.adopt(&x.main, con, x.place, x.spec)
		hear(rec, con)
		return nil
	})
}

// adopt registers a container and what it owes: detach, then remove.
func (x *caseRun) adopt(slot **handle, con engine.Container, p *place, spec engine.Spec) *handle {
	h := &handle{con: con, place: p, spec: spec}
	*slot = h
	x.undo.push("removing the container", func(ctx context.Context) error { return con.Remove(ctx) })
	x.undo.push("detaching the container", func(ctx context.Context) error {
		if h.att == nil {
			return nil
		}
		_, err := h.att.Detach(ctx, false)
		if err != nil {
			_, err = h.att.Detach(ctx, true)
		}
		if err != nil { // it may have come off all the same, without all that was to be written
			_, still := h.att.Detach(ctx, true)
			x.r.stuck = x.r.stuck || still != nil
		}
		h.att = nil
		return err
	})
	return h
}

func (x *caseRun) attach(ctx context.Context, h *handle, st plan.Step, rec *result.Step) error {
	opts := x.attachOptions(st)
	err := x.timed(rec, func() error {
		att, err := h.con.Attach(ctx, opts)
		if err == nil { // one that fails leaves the attachment that there is
			h.att, h.opts = att, opts
		}
		return err
	})
	hear(rec, h.att)
	return err
}

func (x *caseRun) attachOptions(st plan.Step) engine.AttachOptions {
	return engine.AttachOptions{
		ReadOnly: st.ReadOnly != nil && *st.ReadOnly, NoMount: st.Mount != nil && !*st.Mount,
		NoVerify: st.Verify != nil && !*st.Verify, Cache: x.spec.Cache,
	}
}

// detach detaches and then, outside the clock, drops the container's pages from the host's cache.
func (x *caseRun) detach(ctx context.Context, h *handle, rec *result.Step) error {
	if h.att == nil {
		return fmt.Errorf("the container is not attached")
	}
	err := x.report(rec, func() (engine.Report, error) { return h.att.Detach(ctx, false) })
	if err != nil {
		return err
	}
	if w, ok := h.att.(engine.PostDetachReporter); ok {
		note(rec, w.ReportAfterDetach(ctx).Reported)
	}
	h.att = nil
	if x.c.Settings.Cache == "buffered" {
		return nil
	}
	if err := h.con.Evict(ctx); err != nil {
		warn(rec, "cache", fmt.Sprintf("evicting the container: %v", err))
	}
	return nil
}

// remount detaches and attaches; its length is without the settling after each attach.
func (x *caseRun) remount(ctx context.Context, h *handle, st plan.Step, rec *result.Step) error {
	start, busy := x.r.now(), int64(0)
	for range max(st.Times, 1) {
		var part result.Step
		if err := x.detach(ctx, h, &part); err != nil {
			return err
		}
		busy += part.DurationNS
		rec.RetryNS += part.RetryNS
		rec.Warnings = append(rec.Warnings, part.Warnings...)
		note(rec, part.Reported)
		from := x.r.now()
		att, err := h.con.Attach(ctx, h.opts)
		if err != nil {
			return err
		}
		h.att = att
		busy += x.r.now() - from
		hear(rec, att)
		if err := x.wait(ctx, st); err != nil {
			return err
		}
	}
	rec.StartNS, rec.DurationNS = start, busy
	return nil
}

// wait sleeps as long as the step prescribes.
func (x *caseRun) wait(ctx context.Context, st plan.Step) error {
	err := x.r.c.Clock.Sleep(ctx, st.AtLeast.Std())
	x.r.forecast.slept += st.AtLeast.Std()
	return err
}

// settle waits at least so long, then until the allocated size has stood still for three looks, at most so long.
func (x *caseRun) settle(ctx context.Context, h *handle, st plan.Step, rec *result.Step) error {
	start := x.r.c.Clock.Now()
	if err := x.wait(ctx, st); err != nil || !st.UntilStable {
		return err
	}
	last, same := int64(-1), 0
	for same < 3 {
		if limit := st.AtMost.Std(); limit > 0 && x.r.elapsed(start) >= limit {
			warn(rec, "settle", fmt.Sprintf("the allocated size had not stood still after %s", st.AtMost))
			return nil
		}
		u, err := h.con.Usage(ctx)
		if err != nil {
			return err
		}
		if u.Allocated == last {
			same++
		} else {
			last, same = u.Allocated, 0
		}
		if err := x.r.c.Clock.Sleep(ctx, settlePoll); err != nil {
			return err
		}
	}
	return nil
}

// measure notes sizes on disk and free space, attached or not.
func (x *caseRun) measure(ctx context.Context, h *handle, rec *result.Step) error {
	return x.timed(rec, func() error {
		u, err := h.con.Usage(ctx)
		if err != nil {
			return err
		}
		d := occupied(u)
		d.Attached = h.att != nil
		if h.att != nil && h.att.Volume() != nil {
			if d.VolumeFree, err = h.att.Volume().Free(); err != nil {
				return err
			}
		}
		if simulated(x.r.c.Engine) {
			rec.Disk = d
			return nil
		}
		if free, _, _, err := h.place.dir.FreeSpace(); err == nil {
			d.HostFree = free
		}
		rec.Disk = d
		return nil
	})
}

// occupied is what a detached container takes.
func occupied(u engine.Usage) *result.DiskUse {
	return &result.DiskUse{Allocated: u.Allocated, Apparent: u.Apparent, Sparse: u.Sparse, Bands: u.Bands, BandsFull: u.BandsFull, VolumeFree: -1, HostFree: -1}
}

// report times an action of the engine and keeps what it says of itself.
func (x *caseRun) report(rec *result.Step, f func() (engine.Report, error)) error {
	var rep engine.Report
	err := x.timed(rec, func() (err error) {
		rep, err = f()
		return err
	})
	keep(rec, rep)
	if err == nil && rec.Do == "check" && len(rep.Findings) > 0 {
		return fmt.Errorf("%d problems, first: %s", len(rep.Findings), rep.Findings[0])
	}
	return err
}

func keep(rec *result.Step, rep engine.Report) {
	rec.BytesFreed, rec.Reported, rec.RetryNS = rep.Freed, rep.Reported, rec.RetryNS+int64(rep.Retried)
	rec.Findings = append(rec.Findings, rep.Findings...)
	for _, w := range rep.Warnings {
		warn(rec, "engine", w)
	}
}

// hear keeps what the making of a container or an attachment said of itself:
// retries inside the timed step, and the tool's own figures.
func hear(rec *result.Step, made any) {
	t, ok := made.(engine.Reporter)
	if !ok {
		return
	}
	rep := t.TakeReport()
	note(rec, rep.Reported)
	rec.RetryNS += int64(rep.Retried)
	for _, w := range rep.Warnings {
		warn(rec, "engine", w)
	}
}

func note(rec *result.Step, reported map[string]string) {
	for k, v := range reported {
		if rec.Reported == nil {
			rec.Reported = map[string]string{}
		}
		rec.Reported[k] = v
	}
}

func warn(rec *result.Step, kind, text string) {
	rec.Warnings = append(rec.Warnings, result.Warning{Kind: kind, Text: text})
}

// another makes a second container out of h: converted, copied, or a copy that is harmed.
func (x *caseRun) another(ctx context.Context, h *handle, st plan.Step, rec *result.Step) error {
	p, err := x.placeOf(st)
	if err != nil {
		return err
	}
	name, spec := x.base+"-"+cmpOr(st.As, st.Do), x.specFrom(h, st)
	var con engine.Container
	err = x.timed(rec, func() (err error) {
		if st.Do == "convert" {
			con, err = h.con.Convert(ctx, p.dir, name, spec)
		} else {
			con, err = h.con.Transfer(ctx, p.dir, name)
		}
		if err != nil {
			return err
		}
		x.second(h, st, con, p, spec)
		hear(rec, con)
		if st.Do == "damage" {
			return con.Damage(ctx, st.Kind)
		}
		return nil
	})
	if err != nil || st.Do == "damage" {
		return err
	}
	u, err := con.Usage(ctx)
	if err == nil {
		rec.Made = occupied(u)
	}
	return err
}

// second enters a container that a step made out of h, with the files that are on both.
func (x *caseRun) second(h *handle, st plan.Step, con engine.Container, p *place, spec engine.Spec) {
	var made *handle
	x.adopt(&made, con, p, spec)
	made.books = h.books.clone()
	x.named[cmpOr(st.As, st.Do)] = made
}

// placeOf is where a step puts the container that it makes.
func (x *caseRun) placeOf(st plan.Step) (*place, error) {
	if st.Place == "" {
		return x.place, nil
	}
	if p := x.r.places[st.Place]; p != nil {
		return p, nil
	}
	return nil, fmt.Errorf("no folder was given for place %q; use --on %s=DIR", st.Place, st.Place)
}

// specFrom is what the container is that a step makes out of h.
func (x *caseRun) specFrom(h *handle, st plan.Step) engine.Spec {
	if st.Do != "convert" {
		return h.spec
	}
	return converted(x.spec, x.c.Settings, st)
}

package runner

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"dmgbench/internal/bench/engine"
	"dmgbench/internal/result"
)

// need is what a step needs of the container it acts on.
type need int

const (
	needsContainer need = iota
	needsVolume         // an attached and mounted container
	needsNone           // no container
)

// stepHandler is one row of [stepHandlers].
type stepHandler struct {
	needs need
	do    func(*stepRun, context.Context) error
	// replay follows the step as an earlier session executed it, without I/O on
	// files: it brings containers and liveFiles to the state that later steps
	// need. It is nil for steps that do not change that state.
	replay func(*stepRun, context.Context) error
	// timesFiles marks steps with samples of files; their kind is the quantity
	// group of the record.
	timesFiles bool
}

// timed measures what a step itself takes, without the bookkeeping around it.
func (s *stepRun) timed(f func() error) error {
	s.rec.StartNS = s.x.r.now()
	err := f()
	s.rec.DurationNS = s.x.r.now() - s.rec.StartNS
	return err
}

// timeReport times a call of the engine and records its report.
func (s *stepRun) timeReport(f func() (engine.Report, error)) error {
	var rep engine.Report
	err := s.timed(func() (err error) {
		rep, err = f()
		return err
	})
	s.rec.BytesFreed = rep.Freed
	s.recordReport(rep)
	if err == nil && s.st.Do == "check" && len(rep.Findings) > 0 {
		return fmt.Errorf("%d problems, first: %s", len(rep.Findings), rep.Findings[0])
	}
	return err
}

// recordReport adds to the record what the engine reported: findings, retries
// inside the timed step, warnings, and the tool's own figures.
func (s *stepRun) recordReport(rep engine.Report) {
	for k, v := range rep.Reported {
		if s.rec.Reported == nil {
			s.rec.Reported = map[string]string{}
		}
		s.rec.Reported[k] = v
	}
	s.rec.RetryNS += int64(rep.Retried)
	s.rec.Findings = append(s.rec.Findings, rep.Findings...)
	for _, w := range rep.Warnings {
		s.warn("engine", w)
	}
}

// recordMade adds the report about a container or an attachment that was just
// made.
func (s *stepRun) recordMade(made any) {
	if t, ok := made.(engine.Reporter); ok {
		rep := t.TakeReport()
		rep.Findings = nil
		s.recordReport(rep)
	}
}

// warn adds a warning to the record of the step.
func (s *stepRun) warn(kind, text string) {
	s.rec.Warnings = append(s.rec.Warnings, result.Warning{Kind: kind, Text: text})
}

// create makes the case's own container.
func (s *stepRun) create(ctx context.Context) error {
	x := s.x
	return s.timed(func() error {
		con, err := x.eng.Create(ctx, x.place.dir, x.base, x.spec)
		if err != nil {
			return err
		}
		x.main = x.adopt(con, x.place, x.spec)
		s.recordMade(con)
		return nil
	})
}

// attachOptions are the options of the step, with the defaults of the engine
// where the plan does not set them.
func (s *stepRun) attachOptions() engine.AttachOptions {
	isSet := func(b *bool, value bool) bool { return b != nil && *b == value }
	return engine.AttachOptions{
		ReadOnly: isSet(s.st.ReadOnly, true), NoMount: isSet(s.st.Mount, false), NoVerify: isSet(s.st.Verify, false),
		Cache: s.x.spec.Cache,
	}
}

// attach attaches the container. A failed attach may have taken retries, which
// are recorded, too.
func (s *stepRun) attach(ctx context.Context) error {
	opts := s.attachOptions()
	err := s.timed(func() error {
		att, err := s.h.con.Attach(ctx, opts)
		if err == nil { // one that fails leaves an earlier attachment
			s.h.att, s.h.opts = att, opts
		}
		return err
	})
	s.recordMade(s.h.att)
	return err
}

// detach detaches the container. Then, outside the timed span, it drops the
// container's pages from the host's cache.
func (s *stepRun) detach(ctx context.Context) error {
	h := s.h
	if h.att == nil {
		return errors.New("the container is not attached")
	}
	if err := s.timeReport(func() (engine.Report, error) { return h.att.Detach(ctx, false) }); err != nil {
		return err
	}
	if p, ok := h.att.(engine.PostDetachReporter); ok {
		s.recordReport(engine.Report{Reported: p.ReportAfterDetach(ctx).Reported})
	}
	h.att = nil
	if s.x.c.Settings.Cache == "buffered" {
		return nil
	}
	if err := h.con.Evict(ctx); err != nil {
		s.warn("cache", fmt.Sprintf("evicting the container: %v", err))
	}
	return nil
}

// remount detaches and attaches. Its duration is without the waiting after each
// attach.
func (s *stepRun) remount(ctx context.Context) error {
	start, busy := s.x.r.now(), int64(0)
	for range max(s.st.Times, 1) {
		// A record of its own, as detach sets its duration and findings.
		part := &stepRun{x: s.x, st: s.st, h: s.h, rec: &result.Step{}}
		if err := part.detach(ctx); err != nil {
			return err
		}
		busy += part.rec.DurationNS
		s.recordReport(engine.Report{Reported: part.rec.Reported, Retried: time.Duration(part.rec.RetryNS)})
		s.rec.Warnings = append(s.rec.Warnings, part.rec.Warnings...)
		from := s.x.r.now()
		att, err := s.h.con.Attach(ctx, s.h.opts)
		if err != nil {
			return err
		}
		s.h.att = att
		busy += s.x.r.now() - from
		s.recordMade(att)
		if err := s.wait(ctx); err != nil {
			return err
		}
	}
	s.rec.StartNS, s.rec.DurationNS = start, busy
	return nil
}

// wait sleeps as long as the step prescribes.
func (s *stepRun) wait(ctx context.Context) error {
	r := s.x.r
	err := r.c.Clock.Sleep(ctx, s.st.AtLeast.Std())
	r.forecast.slept += s.st.AtLeast.Std()
	return err
}

// How settle decides that the allocated size is stable: this many equal
// readings at this interval.
const (
	settleReadings = 3
	settlePoll     = time.Second
)

// settle waits at_least, then until the allocated size is stable, but not
// longer than at_most.
func (s *stepRun) settle(ctx context.Context) error {
	clock := s.x.r.c.Clock
	return s.timed(func() error {
		start := clock.Now()
		if err := s.wait(ctx); err != nil || !s.st.UntilStable {
			return err
		}
		for last, same := int64(-1), 0; same < settleReadings; {
			if limit := s.st.AtMost.Std(); limit > 0 && clock.Now()-start >= limit {
				s.warn("settle", fmt.Sprintf("the allocated size still changed after %s", s.st.AtMost))
				return nil
			}
			u, err := s.h.con.Usage(ctx)
			if err != nil {
				return err
			}
			if same++; u.Allocated != last {
				last, same = u.Allocated, 0
			}
			if err := clock.Sleep(ctx, settlePoll); err != nil {
				return err
			}
		}
		return nil
	})
}

// measure records sizes on disk and free space, whether the container is
// attached or not.
func (s *stepRun) measure(ctx context.Context) error {
	return s.timed(func() error {
		// The size on the host is read also while the container is attached; it
		// may not contain writes that the volume still caches.
		u, err := s.h.con.Usage(ctx)
		if err != nil {
			return err
		}
		d := diskUse(u)
		d.Attached = s.h.att != nil
		if d.Attached && s.h.att.Volume() != nil {
			if d.VolumeFree, err = s.h.att.Volume().Free(); err != nil {
				return err
			}
		}
		if !isSimulated(s.x.r.c.Engine) {
			if free, _, _, err := s.h.place.dir.FreeSpace(); err == nil {
				d.HostFree = free
			}
		}
		s.rec.Disk = d
		return nil
	})
}

// diskUse is what a container occupies; the free space of volume and host is
// unknown.
func diskUse(u engine.Usage) *result.DiskUse {
	return &result.DiskUse{Allocated: u.Allocated, Apparent: u.Apparent, Sparse: u.Sparse, Bands: u.Bands,
		BandsFull: u.BandsFull, VolumeFree: -1, HostFree: -1}
}

// deriveContainer makes another container from h: converted, copied, or a copy
// that is then damaged.
func (s *stepRun) deriveContainer(ctx context.Context) error {
	f, spec, err := s.derivedSpec()
	if err != nil {
		return err
	}
	name := s.x.base + "-" + s.derivedName()
	var con engine.Container
	err = s.timed(func() (err error) {
		if s.st.Do == "convert" {
			con, err = s.h.con.Convert(ctx, f.dir, name, spec)
		} else {
			con, err = s.h.con.Transfer(ctx, f.dir, name)
		}
		if err != nil {
			return err
		}
		s.registerDerived(con, f, spec)
		s.recordMade(con)
		if s.st.Do == "damage" {
			return con.Damage(ctx, s.st.Kind)
		}
		return nil
	})
	if err != nil || s.st.Do == "damage" {
		return err
	}
	u, err := con.Usage(ctx)
	if err == nil {
		s.rec.Made = diskUse(u)
	}
	return err
}

// derivedName is the name by which later steps refer to the container that this
// one makes.
func (s *stepRun) derivedName() string { return cmp.Or(s.st.As, s.st.Do) }

// derivedSpec is the place and the spec of the container that the step makes
// from h.
func (s *stepRun) derivedSpec() (*workFolder, engine.Spec, error) {
	f, spec := s.x.place, s.h.spec
	if s.st.Place != "" {
		if f = s.x.r.places[s.st.Place]; f == nil {
			return nil, spec, missingPlaceError(s.st.Place)
		}
	}
	if s.st.Do == "convert" {
		spec = convertedSpec(s.x.spec, s.x.c.Settings, s.st)
	}
	return f, spec, nil
}

// registerDerived adds a container that was derived from h, with the files that
// both contain.
func (s *stepRun) registerDerived(con engine.Container, f *workFolder, spec engine.Spec) {
	derived := s.x.adopt(con, f, spec)
	derived.liveFiles = s.h.clone()
	s.x.named[s.derivedName()] = derived
}

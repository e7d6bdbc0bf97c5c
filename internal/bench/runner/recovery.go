package runner

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"syscall"

	"dmgbench/internal/bench/engine"
	"dmgbench/internal/bench/workload"
	"dmgbench/internal/image"
	"dmgbench/internal/plan"
	"dmgbench/internal/result"
	"dmgbench/internal/system/hostio"
)

// damage damages the copy h. Seed, round and step determine the places, the same
// in every case, as shares of what is stored.
func (s *stepRun) damage(ctx context.Context, h *handle) error {
	key := s.key()
	key.Step = s.st.Phase + " " + s.st.As
	draw := key.Draw("damage")
	if s.st.Kind == engine.Killed {
		return s.writeUntilKilled(ctx, h, draw)
	}
	return h.con.Damage(ctx, engine.Damage{Kind: s.st.Kind, Bytes: s.st.Bytes, Band: s.st.Band, Draw: draw})
}

// writeUntilKilled attaches the copy, writes a batch of files to it, one after the
// other, and kills what serves it at a drawn byte of them. The files whose write
// returned are flushed, with their names: h has to have them.
func (s *stepRun) writeUntilKilled(ctx context.Context, h *handle, draw func(int64) int64) error {
	att, err := h.con.Attach(ctx, engine.AttachOptions{Killable: true, Cache: s.x.spec.Cache})
	if err != nil {
		return err
	}
	h.att = att
	s.recordMade(att)
	killer, ok := att.(engine.Killer)
	if !ok {
		return fmt.Errorf("killing what serves %q: %w", h.con.Name(), errors.ErrUnsupported)
	}
	h.Batches++
	key, set, o := s.key(), s.x.fileSet(s.st), s.x.options(s.st)
	key.Batch, o.Sync = h.Batches, hostio.SyncFull
	items := workload.Items(set, key)
	vol := &killedVolume{Volume: att.Volume(), left: draw(workload.Total(items)), kill: killer.Kill}
	flushed := 0
	for err == nil && flushed < len(items) {
		if _, err = workload.Write(ctx, vol, items[flushed:flushed+1], o); err == nil {
			flushed++
		}
	}
	h.addBatch(items[:flushed], set)
	h.Sets[h.Batches] = set.Name
	switch {
	case vol.killed == nil || ctx.Err() != nil: // it failed before
		return err
	case err != nil:
		h.InFlight = append(h.InFlight, items[flushed])
		s.recordReport(engine.Report{Reported: map[string]string{"killed_during": items[flushed].Name}})
	}
	if err := <-vol.killed; err != nil {
		return err
	}
	rep, err := att.Detach(ctx, true)
	if err == nil {
		h.att = nil
	}
	s.recordReport(rep)
	return err
}

// killedVolume kills what serves it once a number of bytes are written to its new
// files.
type killedVolume struct {
	workload.Volume
	left   int64        // bytes until then
	kill   func() error // is called once
	killed chan error   // its result; nil before
}

// Create makes a file whose bytes count.
func (v *killedVolume) Create(name string, size int64, o workload.FileOptions) (workload.File, error) {
	f, err := v.Volume.Create(name, size, o)
	return &killedFile{f, v}, err
}

// killedFile is a new file of a killedVolume.
type killedFile struct {
	workload.File
	v *killedVolume
}

// killUnit is the unit in bytes in which a write is divided where the kill
// happens, so that direct transfers stay possible.
const killUnit = 64 << 10

// WriteAt writes p. In the call that reaches the moment, the last bytes are
// written, and perhaps flushed, while the kill happens.
func (f *killedFile) WriteAt(p []byte, off int64) (n int, err error) {
	v := f.v
	v.left -= int64(len(p))
	if v.left >= 0 || v.killed != nil {
		return f.File.WriteAt(p, off)
	}
	before := (int64(len(p)) + v.left) / killUnit * killUnit
	if before > 0 {
		if n, err = f.File.WriteAt(p[:before], off); err != nil {
			return n, err
		}
	}
	v.killed = make(chan error, 1)
	go func() { v.killed <- v.kill() }()
	m, err := f.File.WriteAt(p[before:], off+before)
	return n + m, err
}

// recover opens a container that may be damaged, as a person would: it attaches,
// checks, repairs and attaches it, then compares every file with what was written.
// Damage is its result, not its error.
func (s *stepRun) recover(ctx context.Context) error {
	s.rec.Recovery = &result.Recovery{Files: len(s.h.Live), Parts: []result.RecoveryPart{}}
	s.rec.StartNS = s.x.r.now()
	format, _ := image.FormatNamed(s.h.Spec.Format)
	yes, no := true, false
	attached := func() bool { return s.h.att != nil }
	always := func() bool { return true }
	for _, part := range []struct {
		name, noticed string
		when          func() bool
		do            func(*stepRun) error
	}{
		{"attach", result.NoticedAttach, always, func(p *stepRun) error { return p.attach(ctx) }},
		{"detach", result.NoticedAttach, attached, func(p *stepRun) error { return p.detachOrForce(ctx) }},
		{"check", result.NoticedCheck, always, func(p *stepRun) error { return p.check(ctx, false) }},
		{"repair", result.NoticedRepair, func() bool { return !format.ReadOnly },
			func(p *stepRun) error { return p.check(ctx, true) }},
		// What cannot be repaired is attached in spite of a wrong checksum, and if
		// need be read-only.
		{"attach again", result.NoticedAttach, always, func(p *stepRun) error {
			p.st.Verify = &no
			return p.attach(ctx)
		}},
		{"attach read-only", result.NoticedAttach, func() bool { return !attached() && !format.ReadOnly },
			func(p *stepRun) error {
				p.st.Verify, p.st.ReadOnly = &no, &yes
				return p.attach(ctx)
			}},
	} {
		if part.when() {
			if err := s.recoverPart(ctx, part.name, part.noticed, part.do); err != nil {
				return err
			}
		}
	}
	if err := s.compareFiles(ctx); err != nil || !attached() {
		return err
	}
	return (&stepRun{x: s.x, st: s.st, h: s.h, rec: &result.Step{}}).detachOrForce(ctx)
}

// check checks container and volume; findings are recorded, and are no error.
func (s *stepRun) check(ctx context.Context, repair bool) error {
	return s.timeReport(func() (engine.Report, error) {
		return s.h.con.Check(ctx, engine.CheckOptions{Repair: repair})
	})
}

// detachOrForce detaches the container, by force where it cannot be detached
// otherwise; that is an error, too, of a container that is detached then.
func (s *stepRun) detachOrForce(ctx context.Context) error {
	err := s.detach(ctx)
	if err != nil {
		if e := s.timeReport(func() (engine.Report, error) { return s.h.att.Detach(ctx, true) }); e != nil {
			return errors.Join(err, e)
		}
		s.h.att = nil
	}
	return err
}

// recoverPart executes a part of a recover step and adds its record to that of the
// step. It fails only if the host, and not damage, prevented the part.
func (s *stepRun) recoverPart(ctx context.Context, name, noticed string, do func(*stepRun) error) error {
	rc, part := s.rec.Recovery, &stepRun{x: s.x, st: plan.Step{Do: s.st.Do}, h: s.h, rec: &result.Step{}}
	err := do(part)
	s.rec.DurationNS += part.rec.DurationNS
	s.rec.RetryNS += part.rec.RetryNS
	s.recordReport(engine.Report{Reported: part.rec.Reported})
	s.rec.Warnings = append(s.rec.Warnings, part.rec.Warnings...)
	for _, f := range part.rec.Findings {
		s.rec.Findings = append(s.rec.Findings, name+": "+f)
	}
	record := result.RecoveryPart{Name: name, DurationNS: part.rec.DurationNS}
	found := len(part.rec.Findings) > 0
	if err != nil {
		record.Error = engine.Advised(err)
		if isOfHost(ctx, s.h, err) {
			return err
		}
		found = found || !errors.As(err, new(*engine.UnsupportedError))
	}
	rc.Parts = append(rc.Parts, record)
	if found && rc.Noticed == "" {
		rc.Noticed = noticed
	}
	return nil
}

// isOfHost reports whether an error tells nothing about a container, because the
// host prevented an action, or the container is missing.
func isOfHost(ctx context.Context, h *handle, err error) bool {
	_, missing := h.con.Identity(ctx)
	return ctx.Err() != nil || missing != nil || slices.ContainsFunc(
		[]error{syscall.EBUSY, syscall.EAGAIN, syscall.ENOSPC, syscall.EDQUOT},
		func(e error) bool { return errors.Is(err, e) })
}

// maxListed is how many files a recover step lists.
const maxListed = 100

// compareFiles compares the files of all batches with what was written. Without a
// volume all of them are lost.
func (s *stepRun) compareFiles(ctx context.Context) error {
	rc, o := s.rec.Recovery, s.x.options(s.st)
	if s.h.att == nil {
		rc.Lost = rc.Files
		for _, it := range s.h.InFlight {
			rc.InFlight = append(rc.InFlight, fmt.Sprintf("file %q: missing", it.Name))
		}
		return nil
	}
	out, err := s.verifyItems(ctx, s.h.Live, o)
	if err != nil {
		return err
	}
	rc.Lost, rc.Damaged = out.Lost, out.Damaged
	if rc.Lost > 0 && rc.Noticed == "" {
		rc.Noticed = result.NoticedRead
	}
	s.rec.Findings = append(s.rec.Findings, out.Findings[:min(len(out.Findings), maxListed)]...)
	if more := len(out.Findings) - maxListed; more > 0 {
		s.rec.Findings = append(s.rec.Findings, fmt.Sprintf("%d more files", more))
	}
	for i, it := range s.h.InFlight {
		out, err := s.verifyItems(ctx, s.h.InFlight[i:i+1], o)
		if err != nil {
			return err
		}
		rc.InFlight = append(rc.InFlight, append(out.Findings, fmt.Sprintf("file %q: complete", it.Name))[0])
	}
	return nil
}

package runner

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"syscall"
	"time"

	"dmgbench/internal/bench/engine"
	"dmgbench/internal/bench/workload"
	"dmgbench/internal/image"
	"dmgbench/internal/result"
	"dmgbench/internal/system/hostio"
)

// damage damages the copy h. Seed, round and step determine the places, the same
// in every case, as shares of the stored bytes.
func (s *stepRun) damage(ctx context.Context, h *handle) error {
	key := s.key()
	key.Step = s.st.Phase + " " + s.st.As
	draw := key.Draw("damage")
	if s.st.Kind == engine.Killed {
		return s.writeUntilKilled(ctx, h, draw)
	}
	return h.con.Damage(ctx, engine.Damage{Kind: s.st.Kind, Bytes: s.st.Bytes, Band: s.st.Band, Draw: draw})
}

// writeUntilKilled attaches the copy and writes a batch of files to it, one after
// the other. What serves the copy is killed in a drawn file after the first, a drawn
// share of the time of the file before after its start. In the first file the kill
// could precede the first write, which harms nothing. Files whose write returned are
// flushed, with their names: h has to have them.
func (s *stepRun) writeUntilKilled(ctx context.Context, h *handle, draw func(int64) int64) (err error) {
	if h.att, err = h.con.Attach(ctx, engine.AttachOptions{Killable: true, Cache: s.x.spec.Cache}); err != nil {
		return err
	}
	s.recordMade(h.att)
	killer, ok := h.att.(engine.Killer)
	if !ok {
		return fmt.Errorf("killing what serves %q: %w", h.con.Name(), errors.ErrUnsupported)
	}
	h.Batches++
	key, set, o := s.key(), s.x.fileSet(s.st), s.x.options(s.st)
	key.Batch, o.Sync = h.Batches, hostio.SyncFull
	items := workload.Items(set, key)
	victim, share := min(1+int(draw(int64(max(len(items)-1, 1)))), len(items)-1), draw(100)
	flushed, before, killed := 0, time.Duration(0), make(chan error, 1)
	for err == nil && flushed < len(items) {
		start := o.Clock.Now()
		if flushed == victim {
			delay := before * time.Duration(share) / 100
			go func() { killed <- errors.Join(o.Clock.Sleep(ctx, delay), killer.Kill()) }()
		}
		if _, err = workload.Write(ctx, h.att.Volume(), items[flushed:flushed+1], o); err == nil {
			flushed++
		}
		before = o.Clock.Now() - start
	}
	if err != nil && flushed < victim || ctx.Err() != nil { // it was not killed
		return err
	}
	h.addBatch(items[:flushed], set)
	h.InFlight = slices.Clone(items[flushed:min(flushed+1, len(items))])
	h.Sets[h.Batches], s.rec.Written = set.Name, workload.Total(items[:flushed])
	if err := <-killed; err != nil {
		return err
	}
	return s.detachByForce(ctx, h)
}

// detachByForce detaches a container, politely if that is possible.
func (s *stepRun) detachByForce(ctx context.Context, h *handle) error {
	rep, err := h.att.Detach(ctx, true)
	if s.recordReport(rep); err != nil { // it may be detached now, but some writes were lost
		s.warn("engine", "%v", err)
		_, err = h.att.Detach(ctx, true)
	}
	if err == nil {
		h.att = nil
	}
	return err
}

// recover opens a container that may be damaged, as a person would: it attaches,
// checks, repairs and attaches it, then compares every file with what was written.
// Damage is its result, not its error.
func (s *stepRun) recover(ctx context.Context) error {
	rc, start, yes := &result.Recovery{Files: len(s.h.Live), Parts: []result.RecoveryPart{}}, s.x.r.now(), true
	s.rec.Recovery = rc
	check := func() error {
		return s.timeReport(func() (engine.Report, error) {
			return s.h.con.Check(ctx, engine.CheckOptions{Repair: s.st.Repair})
		})
	}
	format, _ := image.FormatNamed(s.h.Spec.Format)
	for _, part := range []struct {
		name string // the first word is what notices damage
		do   func() error
	}{
		{"attach", func() error {
			if err := s.attach(ctx); err != nil {
				return err
			}
			return s.detachByForce(ctx, s.h)
		}},
		{"check", check},
		{"repair", check},
		// What could not be repaired is attached in spite of a wrong checksum, and if
		// need be read-only.
		{"attach again", func() error {
			if s.st.Verify = new(bool); s.attach(ctx) == nil {
				return nil
			}
			s.st.ReadOnly = &yes
			return s.attach(ctx)
		}},
	} {
		if s.st.Repair = part.name == "repair"; s.st.Repair && format.ReadOnly {
			continue
		}
		if err := s.recoverPart(ctx, part.name, part.do); err != nil {
			return err
		}
	}
	s.rec.StartNS, s.rec.DurationNS = start, 0
	for _, p := range rc.Parts {
		s.rec.DurationNS += p.DurationNS
	}
	if err := s.compareFiles(ctx); err != nil || s.h.att == nil {
		return err
	}
	return s.detachByForce(ctx, s.h)
}

// recoverPart executes and records a part of a recover step. It fails only if the
// host, and not damage, prevented the part.
func (s *stepRun) recoverPart(ctx context.Context, name string, do func() error) error {
	before := len(s.rec.Findings)
	err := do()
	part, found := result.RecoveryPart{Name: name, DurationNS: s.rec.DurationNS}, len(s.rec.Findings) > before
	for i := before; i < len(s.rec.Findings); i++ {
		s.rec.Findings[i] = name + ": " + s.rec.Findings[i]
	}
	if err != nil {
		if isOfHost(ctx, s.h, err) {
			return err
		}
		part.Error = engine.Advised(err)
		found = found || !errors.As(err, new(*engine.UnsupportedError))
	}
	s.rec.Recovery.Parts = append(s.rec.Recovery.Parts, part)
	if found && s.rec.Recovery.Noticed == "" {
		s.rec.Recovery.Noticed, _, _ = strings.Cut(name, " ")
	}
	return nil
}

// isOfHost reports whether an error is not that of a container, because the
// host prevented an action, or the container is missing.
func isOfHost(ctx context.Context, h *handle, err error) bool {
	_, missing := h.con.Identity(ctx)
	return ctx.Err() != nil || missing != nil || errors.Is(err, syscall.EBUSY) || errors.Is(err, syscall.EAGAIN) ||
		errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT)
}

// maxListed is how many files a recover step lists.
const maxListed = 100

// compareFiles compares the files of all batches with what was written. Without a
// volume all of them are lost.
func (s *stepRun) compareFiles(ctx context.Context) (err error) {
	rc, o := s.rec.Recovery, s.x.options(s.st)
	if s.h.att == nil {
		rc.Lost = rc.Files
		return nil
	}
	out, err := s.verifyItems(ctx, s.h.Live, o)
	if rc.Lost, rc.Damaged = out.Lost, out.Damaged; rc.Lost > 0 && rc.Noticed == "" {
		rc.Noticed = "read"
	}
	if more := len(out.Findings) - maxListed; more > 0 {
		out.Findings = append(out.Findings[:maxListed], fmt.Sprintf("%d more files", more))
	}
	s.rec.Findings = append(s.rec.Findings, out.Findings...)
	if err == nil && len(s.h.InFlight) > 0 {
		out, err = s.verifyItems(ctx, s.h.InFlight, o)
		rc.InFlight = append(out.Findings, fmt.Sprintf("file %q: complete", s.h.InFlight[0].Name))[0]
	}
	return err
}

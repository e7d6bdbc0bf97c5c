package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"time"

	"dmgbench/internal/clock"
	"dmgbench/internal/host"
	"dmgbench/internal/plan"
	"dmgbench/internal/units"
	"dmgbench/internal/workload"

	"golang.org/x/sys/unix"
)

// engines compares the in-process engine with plain directories.
func engines(ctx context.Context, s *setup, status io.Writer) (rep report, err error) {
	dir, remove, err := s.place()
	if err != nil {
		return rep, err
	}
	defer func() { err = errors.Join(err, remove()) }()
	r := &rig{dir: dir, clock: clock.NewReal(), buffers: &workload.Buffers{}, memory: host.Memory(), setup: s}
	defer r.buffers.Free()
	if err := r.room(int64(2*len(s.targets)) * (s.total()*9/8 + 80<<20)); err != nil {
		return rep, err
	}
	rep = r.describe(ctx)
	rep.Files = fmt.Sprintf("%d files, %s a turn (%d sizes from %s to %s, %d sets, shuffled)", len(s.sizes)*s.sets,
		units.Bytes(s.total()).Human(), len(s.sizes), units.Bytes(slices.Min(s.sizes)).Human(), units.Bytes(slices.Max(s.sizes)).Human(), s.sets)
	for _, workers := range s.workers {
		turns, err := r.rounds(ctx, workers, status)
		if err != nil {
			return rep, err
		}
		rows, err := s.rows(workers, turns, func(subject string, op int) float64 { return aim(subject, op, workers) })
		if err != nil {
			return rep, err
		}
		rep.Rows = append(rep.Rows, rows...)
	}
	return rep, nil
}

// total is the bytes of one turn's files.
func (s *setup) total() (n int64) {
	for _, size := range s.sizes {
		n += size * int64(s.sets)
	}
	return n
}

// describe fills in what the report says of machine and method.
func (r *rig) describe(ctx context.Context) report {
	ctx, stop := context.WithTimeout(ctx, 10*time.Second)
	defer stop()
	h := host.Gather(ctx, []host.Place{{Name: "place", Path: r.dir.Path()}}, false)
	_, _, fsType, err := r.dir.FreeSpace()
	if err != nil {
		fsType = "unknown"
	}
	s := r.setup
	calls := "one call a file"
	switch {
	case s.comparison == comparisonMounted:
		calls = "calls of " + listed(s.blocks)
	case s.block > 0:
		calls = "calls of " + calling(s.block)
	}
	rep := report{
		Comparison: s.comparison, Filesystem: fsType,
		Machine: fmt.Sprintf("%s %s, %d processors, %s memory", h.OS, h.Arch, h.CPUs, units.Bytes(h.Memory).Human()),
		Asked:   fmt.Sprintf("cache %s, flush %q at the end of each written file, %s", s.cache, s.sync, calls),
		Method: fmt.Sprintf("A-B-B-A in each of %d rounds after a discarded one, median of the ratios of the rounds, exact interval between order statistics",
			s.pairs),
	}
	if host.Virtual(h) {
		rep.Machine += ", virtual (" + h.Virtual + ")"
		rep.Warnings = append(rep.Warnings, "a virtual machine: the host may cache what the guest takes for a disk; that holds for both sides")
	}
	return rep
}

// room refuses to start where the largest round does not fit.
func (r *rig) room(need int64) error {
	free, _, _, err := r.dir.FreeSpace()
	if err != nil {
		return err
	}
	if need += need / 10; free < need {
		return fmt.Errorf("measuring in %q: %s free, a round needs %s: choose another --dir or smaller --sizes", r.dir.Path(),
			units.Bytes(free).Human(), units.Bytes(need).Human())
	}
	return nil
}

// rounds measures all targets with so many workers. Of each round and target it gives the two turns added up; the first
// round warms up and is left out.
func (r *rig) rounds(ctx context.Context, workers int, status io.Writer) (map[string][]turn, error) {
	s, all := r.setup, map[string][]turn{}
	for round := range s.pairs + 1 {
		sums, began := map[string]turn{}, r.clock.Now()
		items := workload.Items(s.fileSet(), workload.Key{Seed: s.seed, Round: round + 1, Step: "side", Batch: 1})
		for place, i := range schedule(len(s.targets), round) {
			name, file := s.targets[i], fmt.Sprintf("turn%02d", place)
			data, err := workload.NewData(s.seed, round, fmt.Sprint(workers, place), workload.DataRandom, 0)
			if err != nil {
				return nil, err
			}
			t, err := r.take(ctx, name, file, items, workers, data)
			if err != nil {
				return nil, fmt.Errorf("measuring %s: %w", name, err)
			}
			sums[name] = add(sums[name], t)
		}
		fmt.Fprintf(status, "%d workers, round %d of %d: %s\n", workers, round, s.pairs, units.Duration(r.clock.Now()-began).Human())
		if err := r.clear(ctx); err != nil {
			return nil, err
		}
		for name, t := range sums {
			if round > 0 {
				all[name] = append(all[name], t)
			}
		}
	}
	return all, nil
}

func (s *setup) fileSet() plan.FileSet {
	part := plan.FilePart{Sets: s.sets}
	for _, n := range s.sizes {
		part.Sizes = append(part.Sizes, units.Bytes(n))
	}
	return plan.FileSet{Name: "side", Parts: []plan.FilePart{part}, Order: workload.OrderShuffled}
}

// add joins the two turns of a target in one round.
func add(a, b turn) turn {
	for op := range b.loads {
		b.loads[op] = a.loads[op].plus(b.loads[op])
	}
	b.warnings = append(a.warnings, b.warnings...)
	return b
}

// clear deletes everything in the folder and lets the disk come to rest, outside of any timed span: a file system that is
// mounted with discard hands deletions to the device when its journal is committed, and a moment later.
func (r *rig) clear(ctx context.Context) error {
	if err := r.empty(); err != nil {
		return err
	}
	if r.setup.settle > 0 {
		unix.Sync()
	}
	return r.clock.Sleep(ctx, r.setup.settle)
}

// empty deletes everything in the folder.
func (r *rig) empty() error {
	list, err := r.dir.ReadDir(".")
	for _, e := range list {
		err = errors.Join(err, r.dir.RemoveAll(e.Name()))
	}
	return err
}

// aim is the ratio that images should reach. That of an encrypted image, to the same one in plain, is the share which
// was published for a Mac (methodology: encryption-cost-2026).
func aim(subject string, op, workers int) float64 {
	switch {
	case subject == udsbAES && op == opRead:
		return 0.83
	case subject == udsbAES:
		return 0.69
	case workers == 1:
		return 0.90
	}
	return 0.85
}

// rows makes the ratios of every image to every baseline; aim is that of an image and an operation.
func (s *setup) rows(workers int, turns map[string][]turn, aim func(subject string, op int) float64) ([]row, error) {
	var rows []row
	for op := range ops {
		rates := func(name string) (v []float64) {
			for _, t := range turns[name] {
				v = append(v, t.loads[op].rate())
			}
			return v
		}
		for _, subject := range s.targets {
			for _, base := range baselinesOf(subject) {
				if isBaseline(subject) || !slices.Contains(s.targets, base) || !s.does(op) {
					continue
				}
				row := row{Workers: workers, Op: ops[op], Subject: subject, Baseline: base, Quantity: quantityRate, Aim: aim(subject, op)}
				if err := row.compare(rates(subject), rates(base)); err != nil {
					return nil, err
				}
				row.fair(op, turns[subject], turns[base])
				rows = append(rows, row)
			}
		}
	}
	return rows, nil
}

// fair warns where the two sides did not do the same, and repeats what the workload said of the subject.
func (r *row) fair(op int, subject, baseline []turn) {
	for i, t := range subject {
		b := baseline[i]
		if t.cache[op] != b.cache[op] {
			r.warn("cache: %s was found %s, %s %s", r.Subject, t.cache[op], r.Baseline, b.cache[op])
		}
		if op != opRead && t.sync != b.sync {
			r.warn("flush: %s achieved %q, %s %q", r.Subject, t.sync, r.Baseline, b.sync)
		}
		for _, w := range slices.Concat(t.warnings, b.warnings) {
			r.warn("%s: %s", w.Kind, w.Text)
		}
	}
	slices.Sort(r.Warnings)
	r.Warnings = slices.Compact(r.Warnings)
}

package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"

	"dmgbench/internal/clock"
	"dmgbench/internal/engine/directory"
	"dmgbench/internal/host"
	"dmgbench/internal/hostio"
	"dmgbench/internal/stats"
	"dmgbench/internal/units"
	"dmgbench/internal/workload"
)

// Aims of the crosscheck.
const (
	aimRate = 0.98 // of fio's rate, at least
	aimCPU  = 1.00 // of fio's processor time per byte, at most
)

// Names of the two sides.
const (
	ours   = "directory"
	theirs = "fio"
)

// crosscheck compares the directory target with fio.
func crosscheck(ctx context.Context, s *setup, status io.Writer) (rep report, err error) {
	if s.fio, err = exec.LookPath(s.fio); err != nil {
		return rep, fmt.Errorf("looking for fio: %w: install it (Debian, Ubuntu: apt-get install fio; macOS: brew install fio)", err)
	}
	dir, remove, err := s.place()
	if err != nil {
		return rep, err
	}
	defer func() { err = errors.Join(err, remove()) }()
	r := &rig{dir: dir, clock: clock.NewReal(), buffers: &workload.Buffers{}, memory: host.Memory(), setup: s}
	defer r.buffers.Free()
	rep = r.describe(ctx)
	rep.Method += "; time: the busiest worker's calls and flushes, added up; processor time: user and system, " +
		"of the threads that do the I/O, from opening a file to closing it; gross: of the whole process, with starting and making data"
	version, err := exec.CommandContext(ctx, s.fio, "--version").Output()
	if err != nil {
		return rep, fmt.Errorf("asking fio for its version: %w", err)
	}
	rep.Files = fmt.Sprintf("at least %d MB of one size a turn; the other side is %s, psync", s.sets, bytes.TrimSpace(version))
	for _, workers := range s.workers {
		for _, size := range s.sizes {
			rows, err := r.class(ctx, s.job(size, workers), status)
			if err != nil {
				return rep, err
			}
			rep.Rows = append(rep.Rows, rows...)
		}
	}
	return rep, nil
}

// job is the work on files of one size. A worker has two files at least, so that fio times one flush.
func (s *setup) job(size int64, workers int) fioJob {
	each := size * int64(workers)
	j := fioJob{size: size, block: s.block, workers: workers, files: int(max(2, (int64(s.sets)*1e6+each-1)/each)),
		direct: s.cache == workload.CacheDirect, flush: s.sync != hostio.SyncNone, seed: s.seed}
	if j.block == 0 {
		j.block = size
	}
	return j
}

// side is one program's go at the files.
type side func(ctx context.Context, name string, j fioJob) (load, error)

// class measures files of one size: rounds of A-B-B-A, each turn written and read.
func (r *rig) class(ctx context.Context, j fioJob, status io.Writer) ([]row, error) {
	total := j.size * int64(j.files*j.workers)
	if err := r.room(4 * total); err != nil {
		return nil, err
	}
	sides := []side{r.ours, r.theirs}
	began := r.clock.Now()
	var sums [2][2][]load // of side and operation, one load a round
	for round := range r.setup.pairs + 1 {
		var now [2][2]load
		for place, i := range schedule(2, round) {
			name := fmt.Sprintf("turn%02d", place)
			if err := r.dir.Mkdir(name); err != nil {
				return nil, err
			}
			for k, op := range []string{"write", "read"} {
				j.op, j.dir, j.seed = op, filepath.Join(r.dir.Path(), name), r.setup.seed+uint64(round)
				l, err := sides[i](ctx, name, j)
				if err != nil {
					return nil, err
				}
				now[i][k] = now[i][k].plus(l)
			}
		}
		if err := r.clear(ctx); err != nil {
			return nil, err
		}
		for i := range now {
			for k := range now[i] {
				if round > 0 {
					sums[i][k] = append(sums[i][k], now[i][k])
				}
			}
		}
	}
	fmt.Fprintf(status, "%d workers, %d files of %s: %s\n", j.workers, j.files*j.workers, units.Bytes(j.size).Human(),
		units.Duration(r.clock.Now()-began).Human())
	return crossRows(j, sums)
}

// crossRows makes the ratios of rate and processor time of one size; sums are of side and operation, one load a round.
func crossRows(j fioJob, sums [2][2][]load) ([]row, error) {
	var rows []row
	for k, op := range []string{"write", "read"} {
		value := func(i int, of func(load) float64) (v []float64) {
			for _, l := range sums[i][k] {
				v = append(v, of(l))
			}
			return v
		}
		for _, q := range []struct {
			name       string
			aim        float64
			our, their []float64
		}{
			{quantityRate, aimRate, value(0, load.rate), value(1, load.rate)},
			{quantityCPU, aimCPU, value(0, load.cost), value(1, load.cost)},
			{quantityGross, 0, value(0, load.gross), value(1, load.gross)},
		} {
			row := row{Workers: j.workers, Op: op, Size: j.size, Subject: ours, Baseline: theirs, Quantity: q.name, Aim: q.aim}
			err := row.compare(q.our, q.their)
			if q.name == quantityCPU && errors.Is(err, stats.ErrRange) {
				rows[len(rows)-1].warn("fio counted no processor time in some round: too little work for its milliseconds, see --files")
				continue
			}
			if err != nil {
				return nil, fmt.Errorf("comparing the %s of %s: %w", q.name, op, err)
			}
			rows = append(rows, row)
		}
	}
	return rows, nil
}

// ours does the job with the workload on the directory target.
func (r *rig) ours(ctx context.Context, name string, j fioJob) (l load, err error) {
	o := j.options(r.setup)
	o.Clock, o.Buffers, o.Memory = r.clock, r.buffers, r.memory
	if o.Data, err = workload.NewData(j.seed, 0, name, workload.DataRandom, 0); err != nil {
		return l, err
	}
	err = r.plain(ctx, name, func(v workload.Volume) error {
		do := workload.Write
		if j.op == "read" {
			do = workload.Read
		}
		var cost atomic.Int64
		before := selfCPU()
		out, err := do(ctx, metered{v, &cost}, j.items(), o)
		if err != nil {
			return err
		}
		l = busiest(out)
		l.cpu, l.all = float64(cost.Load())/1e9, (selfCPU() - before).Seconds()
		return nil
	})
	return l, err
}

// plain opens the folder as the directory target.
func (r *rig) plain(ctx context.Context, name string, do func(workload.Volume) error) error {
	cache := hostio.CacheMode(r.setup.cache)
	_, spec := target(plain, 0, cache)
	c, err := directory.Engine{}.Open(ctx, r.dir, name, spec)
	if err != nil {
		return err
	}
	return attached(ctx, c, cache, do)
}

// busiest is all bytes over the time that the busiest worker spent on its files, which is how fio's time is had.
func busiest(out workload.Outcome) load {
	of := map[int]int64{}
	l := load{bytes: out.Bytes}
	for _, s := range out.Samples {
		of[s.Worker] += s.DurationNS
		l.seconds = max(l.seconds, float64(of[s.Worker])/1e9)
	}
	return l
}

// selfCPU is the processor time of this process so far.
func selfCPU() time.Duration {
	var u unix.Rusage
	if err := unix.Getrusage(unix.RUSAGE_SELF, &u); err != nil {
		return 0
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// theirs does the job with fio.
func (r *rig) theirs(ctx context.Context, _ string, j fioJob) (load, error) {
	text, err := j.text()
	if err != nil {
		return load{}, err
	}
	c := exec.CommandContext(ctx, r.setup.fio, "--output-format=json", "-")
	c.Dir = r.dir.Path()
	c.Stdin = bytes.NewBufferString(text)
	// The workload's buffers are made of huge pages; so that fio's are too, its malloc is told to ask for them.
	c.Env = append(os.Environ(), "GLIBC_TUNABLES=glibc.malloc.hugetlb=1")
	var out, said bytes.Buffer
	c.Stdout, c.Stderr = &out, &said
	if err := c.Run(); err != nil {
		return load{}, fmt.Errorf("running fio: %w: %.300s", err, bytes.TrimSpace(said.Bytes()))
	}
	l, err := parseFio(out.Bytes(), j)
	l.all = (c.ProcessState.UserTime() + c.ProcessState.SystemTime()).Seconds()
	return l, err
}

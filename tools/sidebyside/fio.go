package main

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"

	"dmgbench/internal/analysis/stats"
	"dmgbench/internal/bench/engine"
	"dmgbench/internal/bench/engine/directory"
	"dmgbench/internal/bench/workload"
	"dmgbench/internal/system/clock"
	"dmgbench/internal/system/host"
	"dmgbench/internal/system/hostio"
	"dmgbench/internal/system/units"
)

// Aims of the comparison with fio.
const (
	aimRate = 0.98 // of fio's rate, at least
	aimCPU  = 1.00 // of fio's processor time per byte, at most
)

// pauseAfterDelete lets a file system that is mounted with discard hand
// deletions on before the next round.
const pauseAfterDelete = 500 * time.Millisecond

var ops = [2]string{"write", "read"}

// fioSetup holds the flags of the comparison.
type fioSetup struct {
	dir       string // a temporary folder is made in it
	program   string
	sizes     []int64 // bytes of a file
	megabytes int     // written per size and turn, at least
	workers   []int
	pairs     int
	cache     string
	sync      hostio.SyncMode
}

func parseFio(args []string, stderr io.Writer) (*fioSetup, error) {
	s := &fioSetup{}
	f := flag.NewFlagSet("sidebyside fio", flag.ContinueOnError)
	f.StringVar(&s.dir, "dir", os.TempDir(), "measure on the disk of this `folder`")
	f.StringVar(&s.program, "fio", "fio", "the fio `program`")
	f.IntVar(&s.megabytes, "megabytes", 400, "`megabytes` of files per size and turn (at least two files per worker)")
	f.IntVar(&s.pairs, "pairs", 9, "pairs to keep, after one that is discarded")
	f.StringVar(&s.cache, "cache", workload.CacheDirect, "direct or buffered")
	sizes := f.String("sizes", "2 MiB,20 MiB,100 MiB", "sizes of the files, comma-separated")
	workers := f.String("workers", "1,2", "numbers of workers, comma-separated")
	sync := f.String("sync", string(hostio.SyncFull), "flush at the end of each written file: none, fsync or full")
	if err := parseFlags(f, args, stderr); err != nil {
		return nil, err
	}
	var err error
	s.sync = hostio.SyncMode(*sync)
	if !slices.Contains([]hostio.SyncMode{hostio.SyncNone, hostio.SyncFsync, hostio.SyncFull}, s.sync) {
		err = fmt.Errorf("reading sync mode %q: want none, fsync or full", *sync)
	}
	for text := range strings.SplitSeq(*sizes, ",") {
		n, parseErr := units.ParseBytes(strings.TrimSpace(text))
		err = errors.Join(err, parseErr)
		s.sizes = append(s.sizes, int64(n))
	}
	for text := range strings.SplitSeq(*workers, ",") {
		n, parseErr := strconv.Atoi(strings.TrimSpace(text))
		err = errors.Join(err, parseErr)
		s.workers = append(s.workers, n)
	}
	if err = errors.Join(err, s.check()); err != nil {
		return nil, fmt.Errorf("reading the flags: %w", err)
	}
	return s, nil
}

// check refuses what fio cannot do: one job has files of one size, and direct
// transfers of whole blocks only.
func (s *fioSetup) check() error {
	switch {
	case s.pairs < minPairs:
		return fmt.Errorf("%d pairs: want at least %d", s.pairs, minPairs)
	case s.cache != workload.CacheDirect && s.cache != workload.CacheBuffered:
		return fmt.Errorf("cache %q: want direct or buffered", s.cache)
	case slices.Min(s.workers) < 1 || slices.Max(s.workers) > 64:
		return fmt.Errorf("workers %v: want 1 to 64", s.workers)
	}
	for _, n := range s.sizes {
		if n < 4096 || n > workload.MaxCall || n%4096 != 0 {
			return fmt.Errorf("files of %d bytes: want 4096 B to 1 GiB, a multiple of 4096 B", n)
		}
	}
	return nil
}

// job is the work on files of one size. A worker has at least two files, so
// that fio times one flush.
func (s *fioSetup) job(size int64, workers int) fioJob {
	each := size * int64(workers)
	return fioJob{size: size, workers: workers, files: int(max(2, (int64(s.megabytes)*1e6+each-1)/each)),
		direct: s.cache == workload.CacheDirect, flush: s.sync != hostio.SyncNone}
}

// fioBench is one run of the comparison.
type fioBench struct {
	*fioSetup
	place   *hostio.Dir // temporary
	clock   clock.Clock
	buffers *workload.Buffers
	memory  int64 // of the machine, bytes
}

// compareFio compares the native folder with fio.
func compareFio(ctx context.Context, args []string, stderr io.Writer) (r report, err error) {
	s, err := parseFio(args, stderr)
	if err != nil {
		return r, err
	}
	version, err := exec.CommandContext(ctx, s.program, "--version").Output()
	if err != nil {
		return r, fmt.Errorf("running %s: %w: install it (Debian, Ubuntu: apt-get install fio; macOS: brew install fio)",
			s.program, err)
	}
	name, err := os.MkdirTemp(s.dir, "sidebyside-")
	if err != nil {
		return r, fmt.Errorf("making a folder to measure in: %w", err)
	}
	defer func() { err = errors.Join(err, os.RemoveAll(name)) }()
	place, err := hostio.OpenDir(name)
	if err != nil {
		return r, err
	}
	defer place.Close()
	b := &fioBench{s, place, clock.NewReal(), &workload.Buffers{}, host.Memory()}
	defer b.buffers.Free()
	return b.measure(ctx, string(bytes.TrimSpace(version)), stderr)
}

func (b *fioBench) measure(ctx context.Context, version string, stderr io.Writer) (r report, err error) {
	_, _, filesystem, err := b.place.FreeSpace()
	if err != nil {
		return r, err
	}
	r = report{
		machine: machineText(host.Gather(ctx, nil, false)),
		place:   filesystem,
		files: fmt.Sprintf("at least %d MB of one size per turn, cache %s, flush %q at the end of each written file; %s, psync",
			b.megabytes, b.cache, b.sync, version),
		method: fmt.Sprintf("A-B-B-A in each of %d rounds after a discarded one; median of the ratios of the rounds, exact "+
			"interval between order statistics; time: calls and flushes of the busiest worker; cpu: user and system time of the "+
			"I/O threads from opening to closing a file", b.pairs),
	}
	for _, workers := range b.workers {
		for _, size := range b.sizes {
			j := b.job(size, workers)
			loads, err := b.measureJob(ctx, j)
			if err != nil {
				return r, err
			}
			rows, err := fioRows(j, loads)
			if err != nil {
				return r, err
			}
			r.rows = append(r.rows, rows...)
			fmt.Fprintf(stderr, "%d workers, %d files of %s\n", workers, j.files*workers, units.Bytes(size).Human())
		}
	}
	return r, nil
}

// measureJob runs the rounds of one job: each turn writes, then reads, in a
// folder of its own. The files of a round are deleted at its end.
func (b *fioBench) measureJob(ctx context.Context, j fioJob) ([][][]load, error) {
	free, _, _, err := b.place.FreeSpace()
	if need := 5 * j.size * int64(j.files*j.workers); err == nil && free < need {
		err = fmt.Errorf("measuring in %q: %s free, a round needs %s: choose another --dir or smaller --sizes",
			b.place.Path(), units.Bytes(free).Human(), units.Bytes(need).Human())
	}
	if err != nil {
		return nil, err
	}
	var names []string
	turn := func(run func(context.Context, string, fioJob) (load, error)) side {
		return func(ctx context.Context, round int) (loads []load, err error) {
			name := fmt.Sprintf("turn%02d", len(names))
			names = append(names, name)
			if err := b.place.Mkdir(name); err != nil {
				return nil, err
			}
			j.seed, j.dir = uint64(round)+1, filepath.Join(b.place.Path(), name)
			for _, op := range ops {
				j.op = op
				l, err := run(ctx, name, j)
				if err != nil {
					return nil, err
				}
				loads = append(loads, l)
			}
			return loads, nil
		}
	}
	return measureRounds(ctx, b.pairs, []side{turn(b.runOurs), turn(b.runFio)}, func(int) (err error) {
		for _, name := range names {
			err = errors.Join(err, b.place.RemoveAll(name))
		}
		names = nil
		unix.Sync()
		return errors.Join(err, b.clock.Sleep(ctx, pauseAfterDelete))
	})
}

// fioRows makes the ratios of rate and processor time of one size, of loads by
// side (ours, fio), operation and round.
func fioRows(j fioJob, loads [][][]load) (rows []row, err error) {
	for op := range ops {
		for _, q := range []struct {
			quantity quantity
			aim      float64
		}{{quantityRate, aimRate}, {quantityCPU, aimCPU}} {
			r := row{workers: j.workers, op: ops[op] + " " + units.Bytes(j.size).Human(), subject: "native folder",
				baseline: "fio", quantity: q.quantity, aim: q.aim}
			err := r.compare(loads[0][op], loads[1][op])
			if q.quantity == quantityCPU && errors.Is(err, stats.ErrRange) {
				rows[len(rows)-1].note("fio counted no processor time in some round: too little work for its milliseconds, " +
					"see --megabytes")
				continue
			}
			if err != nil {
				return nil, fmt.Errorf("comparing the %s of %s: %w", q.quantity, r.op, err)
			}
			rows = append(rows, r)
		}
	}
	return rows, nil
}

// runOurs does the job with the workload on the native folder, the way a run of
// dmgbench does.
func (b *fioBench) runOurs(ctx context.Context, name string, j fioJob) (l load, err error) {
	o := j.options(b.fioSetup)
	o.Clock, o.Buffers, o.Memory = b.clock, b.buffers, b.memory
	if o.Data, err = workload.NewData(j.seed, 0, name, workload.DataRandom, 0); err != nil {
		return l, err
	}
	cache := hostio.CacheMode(b.cache)
	c, err := directory.Engine{}.Open(ctx, b.place, name, engine.Spec{Cache: cache})
	if err != nil {
		return l, err
	}
	a, err := c.Attach(ctx, engine.AttachOptions{Cache: cache})
	if err != nil {
		return l, err
	}
	do := workload.Write
	if j.op == "read" {
		do = workload.Read
	}
	var cpu atomic.Int64
	out, err := do(ctx, metered{a.Volume(), &cpu}, j.items(), o)
	if _, detachErr := a.Detach(context.WithoutCancel(ctx), err != nil); err != nil || detachErr != nil {
		return l, errors.Join(err, detachErr)
	}
	l = busiestWorker(out)
	l.cpu = float64(cpu.Load()) / 1e9
	return l, nil
}

// busiestWorker is all bytes over the time that the busiest worker spent on its
// files, as fio's time is defined here.
func busiestWorker(out workload.Outcome) load {
	spent := map[int]int64{}
	l := load{bytes: out.Bytes}
	for _, s := range out.Samples {
		spent[s.Worker] += s.DurationNS
		l.seconds = max(l.seconds, float64(spent[s.Worker])/1e9)
	}
	return l
}

// runFio does the job with fio.
func (b *fioBench) runFio(ctx context.Context, _ string, j fioJob) (load, error) {
	c := exec.CommandContext(ctx, b.program, "--output-format=json", "-")
	c.Dir = b.place.Path()
	c.Stdin = strings.NewReader(j.text())
	// The workload's buffers are made of huge pages; this makes fio's malloc
	// ask for them, too.
	c.Env = append(os.Environ(), "GLIBC_TUNABLES=glibc.malloc.hugetlb=1")
	var stdout, stderr bytes.Buffer
	c.Stdout, c.Stderr = &stdout, &stderr
	if err := c.Run(); err != nil {
		return load{}, fmt.Errorf("running fio: %w: %.300s", err, bytes.TrimSpace(stderr.Bytes()))
	}
	return parseFioOutput(stdout.Bytes(), j)
}

// threadCPU is the processor time of the calling thread, 0 if the system does
// not report it.
func threadCPU() time.Duration {
	var t unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_THREAD_CPUTIME_ID, &t); err != nil {
		return 0
	}
	return time.Duration(t.Nano())
}

// metered adds up the processor time of files, from their creation or opening
// to their closing. Its clock is that of the thread: the workload does all
// calls of a file on locked threads. Making data is left out, as fio fills its
// buffers before it starts counting; so is the check for cached pages, which
// fio does not do.
type metered struct {
	workload.Volume
	ns *atomic.Int64
}

// since adds the processor time of the thread since from.
func since(ns *atomic.Int64, from time.Duration) { ns.Add(int64(threadCPU() - from)) }

func (v metered) Create(name string, size int64, o workload.FileOptions) (workload.File, error) {
	defer since(v.ns, threadCPU())
	return v.file(v.Volume.Create(name, size, o))
}

func (v metered) Open(name string, o workload.FileOptions) (workload.File, error) {
	defer since(v.ns, threadCPU())
	return v.file(v.Volume.Open(name, o))
}

func (v metered) file(f workload.File, err error) (workload.File, error) {
	if err != nil {
		return nil, err
	}
	return meteredFile{f, v.ns}, nil
}

type meteredFile struct {
	workload.File
	ns *atomic.Int64
}

func (f meteredFile) ReadAt(p []byte, off int64) (int, error) {
	defer since(f.ns, threadCPU())
	return f.File.ReadAt(p, off)
}

func (f meteredFile) WriteAt(p []byte, off int64) (int, error) {
	defer since(f.ns, threadCPU())
	return f.File.WriteAt(p, off)
}

func (f meteredFile) Sync(mode hostio.SyncMode) (hostio.SyncMode, error) {
	defer since(f.ns, threadCPU())
	return f.File.Sync(mode)
}

func (f meteredFile) Evict() error {
	defer since(f.ns, threadCPU())
	return f.File.Evict()
}

func (f meteredFile) Close() error {
	defer since(f.ns, threadCPU())
	return f.File.Close()
}

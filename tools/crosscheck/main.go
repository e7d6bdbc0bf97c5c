// Command crosscheck measures the native folder and fio in turns, on the same
// files, calls and flushes, and prints what each took as lines of Go benchmarks,
// which benchstat compares. It is a tool for developers of this project (make
// crosscheck).
//
// The sides alternate within seconds, A-B-B-A, so that what the machine does to
// one side it does to the other. docs/benchmarks.md explains how to read the
// figures.
//
// The program compares with no stored figure, and writes only to a temporary
// folder that it removes.
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
	"os/signal"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"dmgbench/internal/bench/engine"
	"dmgbench/internal/bench/engine/directory"
	"dmgbench/internal/bench/workload"
	"dmgbench/internal/system/clock"
	"dmgbench/internal/system/host"
	"dmgbench/internal/system/hostio"
	"dmgbench/internal/system/units"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := run(ctx, os.Args[1:], os.Stdout, os.Stderr)
	stop()
	if err != nil && !errors.Is(err, flag.ErrHelp) {
		fmt.Fprintln(os.Stderr, "crosscheck:", err)
		os.Exit(1)
	}
}

// minPairs is the fewest pairs that are measured: of six values the extremes
// enclose the median with 96.9 %, and a seventh leaves room for a bad one.
const minPairs = 7

// pauseAfterDelete lets a file system that is mounted with discard hand
// deletions on before the next round.
const pauseAfterDelete = 500 * time.Millisecond

// fioBench is one run of the comparison with fio.
type fioBench struct {
	program        string
	sizes, workers string // of the files and how many, comma-separated
	megabytes      int    // written per size and turn, at least
	buffered       bool   // through the page cache
	pairs          int
	jobs           []fioJob
	place          *hostio.Dir // the temporary folder
	clock          clock.Clock
	buffers        workload.Buffers
	stdout, stderr io.Writer
}

// parseJobs makes the jobs of the flags. It refuses what fio cannot do: one job
// has files of one size, and direct transfers of whole blocks only. A worker has
// at least two files, so that fio times one flush.
func (b *fioBench) parseJobs() error {
	for count := range strings.SplitSeq(b.workers, ",") {
		workers, err := strconv.Atoi(strings.TrimSpace(count))
		if err != nil || workers < 1 || workers > 64 {
			return fmt.Errorf("workers %q: want 1 to 64", count)
		}
		for text := range strings.SplitSeq(b.sizes, ",") {
			n, err := units.ParseBytes(strings.TrimSpace(text))
			if err != nil || n < 4096 || n > workload.MaxCall || n%4096 != 0 {
				return fmt.Errorf("files of %q: want 4096 B to 1 GiB, a multiple of 4096 B", text)
			}
			each := int64(n) * int64(workers)
			b.jobs = append(b.jobs, fioJob{Size: int64(n), Workers: workers, Direct: !b.buffered,
				Files: int(max(2, (int64(b.megabytes)*1e6+each-1)/each))})
		}
	}
	return nil
}

// run compares as the flags in args ask, and prints benchmarks to stdout,
// progress to stderr.
func run(ctx context.Context, args []string, stdout, stderr io.Writer) (err error) {
	b := &fioBench{clock: clock.NewReal(), stdout: stdout, stderr: stderr}
	f := flag.NewFlagSet("crosscheck", flag.ContinueOnError)
	f.SetOutput(stderr)
	dir := f.String("dir", os.TempDir(), "put files in this `folder`")
	f.IntVar(&b.pairs, "pairs", 9, "pairs to keep, after one that is discarded")
	f.StringVar(&b.program, "fio", "fio", "the fio `program`")
	f.IntVar(&b.megabytes, "megabytes", 400, "`megabytes` of files per size and turn (at least two files per worker)")
	f.BoolVar(&b.buffered, "buffered", false, "go through the page cache")
	f.StringVar(&b.sizes, "sizes", "2 MiB,20 MiB,100 MiB", "sizes of the files, comma-separated")
	f.StringVar(&b.workers, "workers", "1,2", "numbers of workers, comma-separated")
	if err := f.Parse(args); err != nil {
		return err
	}
	switch {
	case f.NArg() > 0:
		return fmt.Errorf("unexpected argument %q", f.Arg(0))
	case b.pairs < minPairs:
		return fmt.Errorf("%d pairs: want at least %d", b.pairs, minPairs)
	}
	if err := b.parseJobs(); err != nil {
		return fmt.Errorf("reading the flags: %w", err)
	}
	version, err := exec.CommandContext(ctx, b.program, "--version").Output()
	if err != nil {
		return fmt.Errorf("running %s: %w: install it (apt-get install fio, brew install fio)", b.program, err)
	}
	place, err := os.MkdirTemp(*dir, "crosscheck-")
	if err != nil {
		return fmt.Errorf("making a folder to measure in: %w", err)
	}
	defer func() { err = errors.Join(err, os.RemoveAll(place)) }()
	if b.place, err = hostio.OpenDir(place); err != nil {
		return err
	}
	defer b.place.Close()
	defer b.buffers.Free()
	_, _, filesystem, err := b.place.FreeSpace()
	header(stdout, host.Gather(ctx, nil, false), "place: "+filesystem, fmt.Sprintf("fio: %s", bytes.TrimSpace(version)),
		fmt.Sprintf("files: at least %d MB of one size per turn, direct: %t, flushed", b.megabytes, !b.buffered))
	for i := 0; i < len(b.jobs) && err == nil; i++ {
		err = b.measure(ctx, b.jobs[i])
	}
	return err
}

// measure runs the rounds of one job: each turn writes, then reads, in a folder
// of its own. The files of a round are deleted at its end.
func (b *fioBench) measure(ctx context.Context, j fioJob) error {
	var names []string
	turn := func(by string, run func(context.Context, string, fioJob) (load, error)) side {
		return side{by, func(ctx context.Context, round int) (map[string]load, error) {
			name := fmt.Sprintf("turn%02d", len(names))
			names = append(names, name)
			if err := b.place.Mkdir(name); err != nil {
				return nil, err
			}
			j.Seed, j.Dir = uint64(round)+1, filepath.Join(b.place.Path(), name)
			loads := map[string]load{}
			for _, j.Op = range []string{"write", "read"} {
				var err error
				if loads[j.name()], err = run(ctx, name, j); err != nil {
					return nil, err
				}
			}
			return loads, nil
		}}
	}
	fmt.Fprintf(b.stderr, "%d workers, %d files of %s\n", j.Workers, j.Files*j.Workers, units.Bytes(j.Size).Human())
	sides := []side{turn("fio", b.runFio), turn("dmgbench", b.runOurs)}
	return measureRounds(ctx, b.stdout, b.pairs, sides, func(int) (err error) {
		for _, name := range names {
			err = errors.Join(err, b.place.RemoveAll(name))
		}
		names = nil
		unix.Sync()
		return errors.Join(err, b.clock.Sleep(ctx, pauseAfterDelete))
	})
}

// options are the same work for the workload.
func (j fioJob) options() workload.Options {
	o := workload.Options{Workers: j.Workers, Sync: hostio.SyncFull, Cache: workload.CacheDirect}
	switch {
	case !j.Direct && j.Op == "read":
		o.Cache = workload.CacheCold // as invalidate=1
	case !j.Direct:
		o.Cache = workload.CacheBuffered
	}
	return o
}

// runOurs does the job with the workload on the native folder, the way a run of
// dmgbench does.
func (b *fioBench) runOurs(ctx context.Context, name string, j fioJob) (l load, err error) {
	o := j.options()
	o.Clock, o.Buffers, o.Memory = b.clock, &b.buffers, host.Memory()
	o.Data = workload.NewData(j.Seed, 0, name, workload.DataRandom, 0)
	cache := hostio.CacheDirect
	if b.buffered {
		cache = hostio.CacheBuffered
	}
	c, err := directory.Engine{}.Open(ctx, b.place, name, engine.Spec{Cache: cache})
	if err != nil {
		return l, err
	}
	a, err := c.Attach(ctx, engine.AttachOptions{Cache: cache})
	if err != nil {
		return l, err
	}
	do := workload.Write
	if j.Op == "read" {
		do = workload.Read
	}
	var cpu atomic.Int64
	out, err := do(ctx, metered{a.Volume(), &cpu}, j.items(), o)
	if _, detachErr := a.Detach(context.WithoutCancel(ctx), err != nil); err != nil || detachErr != nil {
		return l, errors.Join(err, detachErr)
	}
	// The time of the busiest worker, as of fio.
	spent := make([]float64, j.Workers)
	for _, s := range out.Samples {
		spent[s.Worker] += float64(s.DurationNS) / 1e9
	}
	return load{bytes: out.Bytes, seconds: slices.Max(spent), cpu: float64(cpu.Load()) / 1e9}, nil
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

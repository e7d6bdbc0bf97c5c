package main

import (
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime/pprof"
	"strconv"
	"strings"
	"time"

	"dmgbench/internal/hostio"
	"dmgbench/internal/units"
	"dmgbench/internal/workload"
)

// setup is what the command line asks for.
type setup struct {
	comparison string // engines | mounted | fio
	dir        string // folder in which a folder of our own is made
	sizes      []int64
	sets       int
	workers    []int
	pairs      int // kept; one more round is measured first and discarded
	cache      string
	sync       hostio.SyncMode
	block      int64    // bytes a call, 0: whole files
	blocks     []int64  // mounted: the same, several
	places     []string // mounted: disk | memory
	seed       uint64
	targets    []string
	format     string // text | json
	cpuProfile string
	fio        string // program
	settle     time.Duration
}

// The comparisons.
const (
	comparisonEngines = "engines"
	comparisonMounted = "mounted"
	comparisonFio     = "fio"
)

// minPairs is the fewest pairs that a ratio is given for: of six values the extremes enclose the median with 96.9 %,
// and a seventh leaves room for one that is spoilt.
const minPairs = 7

// defaults differ where fio cannot do what the engines can: one job has files of one size, and direct transfers of whole
// blocks only.
func defaults(comparison string) (sizes string, sets, pairs int) {
	switch comparison {
	case comparisonFio:
		return "2 MiB,20 MiB,100 MiB", 400, 9
	case comparisonMounted:
		return "2 MB,20 MB,60 MB", 1, 9
	}
	return "2 MB,4 MB,6 MB,8 MB,10 MB,20 MB,40 MB,60 MB,80 MB,100 MB", 1, 12
}

func parse(comparison string, args []string, status io.Writer) (*setup, error) {
	s := &setup{comparison: comparison}
	sizes, sets, pairs := defaults(comparison)
	f := flag.NewFlagSet("sidebyside "+comparison, flag.ContinueOnError)
	f.SetOutput(status)
	f.StringVar(&s.dir, "dir", os.TempDir(), "measure on the disk of this `folder`")
	f.StringVar(&sizes, "sizes", sizes, "sizes of the files, comma-separated")
	if comparison == comparisonFio {
		f.IntVar(&s.sets, "files", sets, "`megabytes` of files of each size and turn (at least two files a worker)")
		f.StringVar(&s.fio, "fio", "fio", "the fio `program`")
	} else {
		f.IntVar(&s.sets, "sets", sets, "sets of the sizes in each turn")
	}
	targets := f.String("targets", strings.Join(usual(comparison), ","), "what is compared; directories are the baselines")
	workers := f.String("workers", "1,2", "numbers of workers, comma-separated")
	f.IntVar(&s.pairs, "pairs", pairs, "pairs that are kept, after one that is discarded")
	f.StringVar(&s.cache, "cache", workload.CacheDirect, "direct or buffered")
	mode := f.String("sync", string(hostio.SyncFull), "flush at the end of each written file: none, fsync or full")
	block, places := "", ""
	if comparison == comparisonMounted {
		f.StringVar(&block, "blocks", "128 KiB,1 MiB,"+wholeFiles, "bytes a call, comma-separated; "+wholeFiles+" is one call a file")
		f.StringVar(&places, "places", placeDisk+","+placeMemory, "where to measure: on the disk of --dir, in memory (tmpfs)")
	} else {
		f.StringVar(&block, "block", "", "bytes a call, such as \"1 MiB\"; empty: one call a file")
	}
	f.DurationVar(&s.settle, "settle", 500*time.Millisecond, "leave the disk alone for so long after the deletions of a round")
	f.Uint64Var(&s.seed, "seed", 1, "seed of data and order")
	f.StringVar(&s.format, "format", "text", "text or json")
	f.StringVar(&s.cpuProfile, "cpuprofile", "", "write a processor profile to this `file`")
	if err := f.Parse(args); err != nil {
		if strings.Contains(err.Error(), "help requested") {
			return nil, flag.ErrHelp
		}
		return nil, fmt.Errorf("%w: %w", errUsage, err)
	}
	if f.NArg() > 0 {
		return nil, fmt.Errorf("%w: unexpected argument %q", errUsage, f.Arg(0))
	}
	s.targets = strings.Split(*targets, ",")
	err := s.fill(sizes, *workers, *mode)
	if err == nil && comparison == comparisonMounted {
		err = s.fillMounted(block, places)
	} else if err == nil && block != "" {
		s.block, err = callSize(block)
	}
	if err == nil {
		err = s.check()
	}
	if err != nil {
		return nil, fmt.Errorf("%w: %w", errUsage, err)
	}
	return s, nil
}

// fill reads the flags that are lists or quantities.
func (s *setup) fill(sizes, workers, mode string) error {
	for text := range strings.SplitSeq(sizes, ",") {
		n, err := units.ParseBytes(strings.TrimSpace(text))
		if err != nil {
			return err
		}
		s.sizes = append(s.sizes, int64(n))
	}
	for text := range strings.SplitSeq(workers, ",") {
		n, err := strconv.Atoi(strings.TrimSpace(text))
		if err != nil || n < 1 || n > 64 {
			return fmt.Errorf("workers of %q: want numbers from 1 to 64", text)
		}
		s.workers = append(s.workers, n)
	}
	return s.sync.UnmarshalText([]byte(mode))
}

func (s *setup) check() error {
	switch {
	case s.pairs < minPairs:
		return fmt.Errorf("%d pairs: want at least %d", s.pairs, minPairs)
	case s.sets < 1:
		return fmt.Errorf("%d sets or megabytes: want at least 1", s.sets)
	case s.cache != workload.CacheDirect && s.cache != workload.CacheBuffered:
		return fmt.Errorf("cache %q: want direct or buffered", s.cache)
	case s.format != "text" && s.format != "json":
		return fmt.Errorf("format %q: want text or json", s.format)
	}
	for _, n := range s.sizes {
		if n < 4096 || n > workload.MaxCall {
			return fmt.Errorf("files of %d bytes: want sizes from 4096 B to 1 GiB", n)
		}
		if s.comparison == comparisonFio && (n%4096 != 0 || s.block > 0 && n%s.block != 0) {
			return fmt.Errorf("files of %d bytes: fio can write whole blocks only, want a multiple of 4096 B and of the block", n)
		}
	}
	if s.comparison == comparisonFio {
		return nil
	}
	return checkTargets(s.targets, targetsOf(s.comparison))
}

// place makes the folder that everything is written to, on the disk of s.dir.
func (s *setup) place() (dir *hostio.Dir, remove func() error, err error) {
	name, err := os.MkdirTemp(s.dir, "sidebyside-")
	if err != nil {
		return nil, nil, fmt.Errorf("making a folder to measure in: %w", err)
	}
	if dir, err = hostio.OpenDir(name); err != nil {
		return nil, nil, err
	}
	_ = dir.Spread() // advice
	return dir, func() error {
		dir.Close()
		return os.RemoveAll(name)
	}, nil
}

// profile starts the processor profile that was asked for.
func (s *setup) profile() (stop func(), err error) {
	if s.cpuProfile == "" {
		return func() {}, nil
	}
	f, err := os.Create(filepath.Clean(s.cpuProfile))
	if err != nil {
		return nil, err
	}
	if err := pprof.StartCPUProfile(f); err != nil {
		f.Close()
		return nil, err
	}
	return func() {
		pprof.StopCPUProfile()
		f.Close()
	}, nil
}

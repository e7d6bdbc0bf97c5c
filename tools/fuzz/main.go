// Command fuzz runs the fuzz targets of the module, and keeps account of their
// CPU time. It is a tool for developers of this project:
//
//	go run ./tools/fuzz -each 10s                             every target once (make fuzz)
//	go run ./tools/fuzz -ledger docs/fuzzing.md -for 2h       the target with the least CPU time first (make fuzz-hours)
//
// CPU time is that of the fuzzing process and its workers. The corpus in Go's
// cache is used and grown, so that each turn continues where the last one
// ended. A target that fails on an input gets no further turn; the program then
// prints go's message, which names the file of the input, and exits with 1.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/signal"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"time"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := run(ctx, os.Args[1:], os.Stdout)
	stop()
	if err != nil && !errors.Is(err, flag.ErrHelp) {
		fmt.Fprintln(os.Stderr, "fuzz:", err)
		os.Exit(1)
	}
}

// options select the targets and how long they run.
type options struct {
	each    time.Duration // of a turn
	total   time.Duration // of all turns; 0: every target has one
	workers int           // processes of a target
	ledger  string        // page with the account; empty: none
	aim     time.Duration // CPU time after which a target gets no turn of total
	paths   []string      // folders, or targets as folder/FuzzName; empty: all
}

func parse(args []string) (options, error) {
	var o options
	flags := flag.NewFlagSet("fuzz", flag.ContinueOnError)
	flags.DurationVar(&o.each, "each", 10*time.Second, "how long a target runs at a time")
	flags.DurationVar(&o.total, "for", 0, "take turns for so long, the least CPU time first; 0: every target once")
	flags.IntVar(&o.workers, "workers", 1, "processes of a target")
	flags.StringVar(&o.ledger, "ledger", "", "`page` that holds the account of CPU time")
	flags.DurationVar(&o.aim, "aim", time.Hour, "with -for: CPU time after which a target gets no further turn")
	if err := flags.Parse(args); err != nil {
		return o, err
	}
	if o.each <= 0 || o.total < 0 || o.workers < 1 {
		return o, errors.New("reading the flags: times and workers have to be positive")
	}
	if o.total > 0 && o.ledger == "" {
		return o, errors.New("reading the flags: -for needs -ledger, to choose the next target")
	}
	o.paths = flags.Args()
	return o, nil
}

func run(ctx context.Context, args []string, stdout io.Writer) error {
	o, err := parse(args)
	if err != nil {
		return err
	}
	targets, err := findTargets(".", o.paths)
	if err != nil {
		return err
	}
	if len(targets) == 0 {
		return fmt.Errorf("finding fuzz targets: none in %s", strings.Join(append(o.paths, "."), " "))
	}
	l, err := readLedger(o.ledger)
	if err != nil {
		return err
	}
	f, err := newFuzzer(ctx, o.workers, stdout)
	if err != nil {
		return err
	}
	defer os.RemoveAll(f.dir)
	count, err := takeTurns(ctx, o, targets, l, f.fuzz)
	if err == nil {
		fmt.Fprintf(stdout, "fuzz: %d turns of %d targets, no failure\n", count, len(targets))
	}
	return err
}

// takeTurns runs the targets one after the other and adds each turn to the
// ledger. It returns the number of turns and the errors of all targets that
// failed. An interruption ends it without an error.
func takeTurns(ctx context.Context, o options, targets []target, l *ledger,
	fuzz func(context.Context, target, time.Duration) (usage, error)) (count int, err error) {
	left, end := slices.Clone(targets), time.Now().Add(o.total)
	for ctx.Err() == nil && len(left) > 0 && (o.total == 0 || time.Now().Before(end)) {
		t := left[0]
		if o.total > 0 {
			t = slices.MinFunc(left, func(a, b target) int { return int(l.rows[a].cpu - l.rows[b].cpu) })
			if l.rows[t].cpu >= o.aim {
				break
			}
		}
		u, turnErr := fuzz(ctx, t, o.each)
		if turnErr == nil {
			count++
			turnErr = l.add(t, u)
		}
		err = errors.Join(err, turnErr)
		if turnErr != nil || o.total == 0 {
			left = slices.DeleteFunc(left, func(other target) bool { return other == t })
		}
	}
	return count, err
}

// target is one fuzz function: the folder of its package, relative to the
// module with slashes, and its name.
type target struct{ folder, name string }

func (t target) String() string { return t.folder + " " + t.name }

var declaration = regexp.MustCompile(`(?m)^func (Fuzz[A-Za-z0-9_]*)\(`)

// findTargets lists the targets below root by folder; paths select folders,
// with those below, and targets.
func findTargets(root string, paths []string) ([]target, error) {
	var targets []target
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil || !strings.HasSuffix(path, "_test.go") {
			return err
		}
		text, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		folder, err := filepath.Rel(root, filepath.Dir(path))
		for _, m := range declaration.FindAllSubmatch(text, -1) {
			targets = append(targets, target{filepath.ToSlash(folder), string(m[1])})
		}
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("finding fuzz targets: %w", err)
	}
	return slices.DeleteFunc(targets, func(t target) bool {
		return len(paths) > 0 && !slices.ContainsFunc(paths, func(p string) bool {
			p = filepath.ToSlash(filepath.Clean(p)) + "/"
			return strings.HasPrefix(t.folder+"/"+t.name+"/", p)
		})
	}), nil
}

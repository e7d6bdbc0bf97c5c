// Command fuzzing runs the fuzz targets of the module and keeps account of it. It is a tool for developers of this
// project:
//
//	go run ./internal/cmd/fuzzing -each 10s                             every target once, one after the other (make fuzz)
//	go run ./internal/cmd/fuzzing -ledger docs/fuzzing.md -for 2h       those that had least CPU time first (make fuzz-hours)
//	go run ./internal/cmd/fuzzing -keep 24                              what was found goes into testdata (make fuzz-keep)
//
// CPU time is what the system counted for the fuzzing process and its workers, not the time on the wall: an hour beside
// other work, or at idle priority, counts what it was given. The corpus that go test keeps in its cache is used and
// grown, so that each turn goes on where the last one ended.
//
// # What it refuses
//
// It gives a target no further turn that has failed on an input, nor enters such a turn as done: at its end it gives go's own
// words, with the file that holds the input, and exits with 1. It has no opinion on what a target is worth.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := run(ctx, os.Args[1:], os.Stdout)
	stop()
	if err != nil && !errors.Is(err, flag.ErrHelp) {
		fmt.Fprintln(os.Stderr, "fuzzing:", err)
		os.Exit(1)
	}
}

// options say which targets run, and how long.
type options struct {
	each   time.Duration // of every target, once
	total  time.Duration // in all, least served first; 0: every target once
	jobs   int           // targets at a time
	ledger string        // the page that holds the account; empty: none is kept
	aim    time.Duration // CPU time at which a target has had enough
	keep   int           // fuzz nothing, keep at most so many inputs of each target; 0: fuzz
	paths  []string      // only these targets (folder/FuzzName) and those below these folders; empty: all
}

func parse(args []string) (options, error) {
	var o options
	flags := flag.NewFlagSet("fuzzing", flag.ContinueOnError)
	flags.DurationVar(&o.each, "each", 10*time.Second, "how long a target runs at a time")
	flags.DurationVar(&o.total, "for", 0, "go round, least CPU time first, for so long; 0: every target once")
	flags.IntVar(&o.jobs, "jobs", 1, "targets at a time, one worker each")
	flags.StringVar(&o.ledger, "ledger", "", "page that holds the account of CPU time")
	flags.DurationVar(&o.aim, "aim", time.Hour, "CPU time with which a target has had enough for now")
	flags.IntVar(&o.keep, "keep", 0, "fuzz nothing: put at most so many `inputs` of each target that reach new code from go's cache into testdata")
	if err := flags.Parse(args); err != nil {
		return o, err
	}
	if o.each <= 0 || o.total < 0 || o.jobs < 1 || o.keep < 0 {
		return o, errors.New("reading the flags: times, jobs and inputs have to be positive")
	}
	if o.total > 0 && o.ledger == "" {
		return o, errors.New("reading the flags: -for needs -ledger, to know who is next")
	}
	o.paths = flags.Args()
	return o, nil
}

func run(ctx context.Context, args []string, out io.Writer) error {
	o, err := parse(args)
	if err != nil {
		return err
	}
	targets, err := find(".", o.paths)
	if err != nil {
		return err
	}
	if len(targets) == 0 {
		return fmt.Errorf("looking for fuzz targets: none below %s", strings.Join(append(o.paths, "."), " "))
	}
	book := &ledger{path: o.ledger}
	if o.ledger != "" {
		if err := book.read(); err != nil {
			return err
		}
	}
	shop, err := newWorkshop(ctx, out)
	if err != nil {
		return err
	}
	defer os.RemoveAll(shop.dir)
	if o.keep > 0 {
		return shop.keepAll(ctx, targets, o.keep)
	}
	done, err := schedule(ctx, o, targets, book, shop.fuzz)
	if err == nil {
		fmt.Fprintf(out, "fuzzing: %d turns of %d targets, nothing found\n", done, len(targets))
	}
	return err
}

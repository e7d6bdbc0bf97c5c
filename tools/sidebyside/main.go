// Command sidebyside measures programs that do the same work in turns and prints
// what each took as lines of Go benchmarks, which benchstat compares. It is a
// tool for developers of this project:
//
//	go run ./tools/sidebyside fio       the native folder against fio (make crosscheck)
//	go run ./tools/sidebyside formats   conversions against other tools (make bench-formats)
//
// The sides alternate within seconds, A-B-B-A, so that what the machine does to
// one side it does to the other. docs/benchmarks.md explains how to read the
// figures.
//
// The program compares with no stored figure, and writes only to a temporary
// folder that it removes.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := run(ctx, os.Args[1:], os.Stdout, os.Stderr)
	stop()
	if err != nil && !errors.Is(err, flag.ErrHelp) {
		fmt.Fprintln(os.Stderr, "sidebyside:", err)
		os.Exit(1)
	}
}

// run measures what the first argument names, with flags in the others, and
// prints benchmarks to stdout, progress to stderr.
func run(ctx context.Context, args []string, stdout, stderr io.Writer) error {
	compare := map[string]func(context.Context, bench, []string) error{
		"fio": compareFio, "formats": compareFormats,
	}
	if len(args) == 0 || compare[args[0]] == nil {
		return errors.New("usage: sidebyside fio|formats [flags], see -h")
	}
	return compare[args[0]](ctx, bench{stdout: stdout, stderr: stderr}, args[1:])
}

// minPairs is the fewest pairs that are measured: of six values the extremes
// enclose the median with 96.9 %, and a seventh leaves room for a bad one.
const minPairs = 7

// bench is what both comparisons have in common.
type bench struct {
	dir            string // the temporary folder is made in it
	place          string // that folder
	pairs          int
	stdout, stderr io.Writer
}

// start parses args, which have flags alone, and makes the temporary folder. It
// returns the function that removes the folder.
func (b *bench) start(f *flag.FlagSet, args []string, dir string, check func() error) (func() error, error) {
	f.StringVar(&b.dir, "dir", dir, "put files in this `folder`")
	f.IntVar(&b.pairs, "pairs", 9, "pairs to keep, after one that is discarded")
	f.SetOutput(b.stderr)
	if err := f.Parse(args); err != nil {
		return nil, err
	}
	switch {
	case f.NArg() > 0:
		return nil, fmt.Errorf("unexpected argument %q", f.Arg(0))
	case b.pairs < minPairs:
		return nil, fmt.Errorf("%d pairs: want at least %d", b.pairs, minPairs)
	}
	if err := check(); err != nil {
		return nil, fmt.Errorf("reading the flags: %w", err)
	}
	place, err := os.MkdirTemp(b.dir, "sidebyside-")
	if err != nil {
		return nil, fmt.Errorf("making a folder to measure in: %w", err)
	}
	b.place = place
	return func() error { return os.RemoveAll(b.place) }, nil
}

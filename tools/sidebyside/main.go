// Command sidebyside measures two programs that do the same work in one run and
// prints the ratio of their rates with its interval. It is a tool for
// developers of this project:
//
//	go run ./tools/sidebyside fio       the native folder against fio (make crosscheck)
//	go run ./tools/sidebyside formats   conversions against other tools (make bench-formats)
//
// The sides alternate within seconds, A-B-B-A, so that what the machine does to
// one side it does to the other. docs/benchmarks.md explains how to read the
// figures.
//
// The program compares with no stored figure, gives no interval that its pairs
// cannot carry, writes only to a temporary folder that it removes, and calls no
// aim met or missed if the interval reaches across it.
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
// prints the report to stdout, progress to stderr.
func run(ctx context.Context, args []string, stdout, stderr io.Writer) error {
	compare := map[string]func(context.Context, []string, io.Writer) (report, error){"fio": compareFio, "formats": compareFormats}
	if len(args) == 0 || compare[args[0]] == nil {
		return errors.New("usage: sidebyside fio|formats [flags], see -h")
	}
	r, err := compare[args[0]](ctx, args[1:], stderr)
	if err != nil {
		return err
	}
	return r.write(stdout)
}

// parseFlags parses args, which have flags alone.
func parseFlags(f *flag.FlagSet, args []string, stderr io.Writer) error {
	f.SetOutput(stderr)
	if err := f.Parse(args); err != nil {
		return err
	}
	if f.NArg() > 0 {
		return fmt.Errorf("unexpected argument %q", f.Arg(0))
	}
	return nil
}

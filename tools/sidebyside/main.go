// Command sidebyside measures two programs that do the same work in one run and
// prints the ratio of their rates with its interval. It is a tool for
// developers of this project:
//
//	go run ./tools/sidebyside fio       the native folder against fio (make crosscheck)
//	go run ./tools/sidebyside formats   conversions against other tools, the cipher against OpenSSL (make bench-formats)
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
	code := run(ctx, os.Args[1:], os.Stdout, os.Stderr)
	stop()
	os.Exit(code)
}

// errUsage reports a wrong command line; the exit status is 2.
var errUsage = errors.New("usage: sidebyside fio|formats [flags], see -h")

// comparisons are the subcommands. Each parses its flags, measures, and writes
// progress to stderr.
var comparisons = map[string]func(ctx context.Context, args []string, stderr io.Writer) (report, error){
	"fio":     compareFio,
	"formats": compareFormats,
}

// run is main without the process: it returns the exit status, 0 measured, 1
// error, 2 wrong command line, 130 interrupted.
func run(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	compare, err := comparisons[first(args)], errUsage
	if compare != nil {
		var r report
		if r, err = compare(ctx, args[1:], stderr); err == nil {
			err = r.write(stdout)
		}
	}
	switch {
	case err == nil, errors.Is(err, flag.ErrHelp):
		return 0
	case ctx.Err() != nil:
		err = errors.New("interrupted")
	}
	fmt.Fprintln(stderr, "sidebyside:", err)
	switch {
	case ctx.Err() != nil:
		return 130
	case errors.Is(err, errUsage):
		return 2
	}
	return 1
}

func first(args []string) string {
	if len(args) == 0 {
		return ""
	}
	return args[0]
}

// parseFlags parses args and marks what is wrong with them as errUsage.
func parseFlags(f *flag.FlagSet, args []string, stderr io.Writer) error {
	f.SetOutput(stderr)
	if err := f.Parse(args); errors.Is(err, flag.ErrHelp) {
		return err
	} else if err != nil {
		return fmt.Errorf("%w: %w", errUsage, err)
	}
	if f.NArg() > 0 {
		return fmt.Errorf("%w: unexpected argument %q", errUsage, f.Arg(0))
	}
	return nil
}

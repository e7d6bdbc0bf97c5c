// Command sidebyside measures two ways of doing the same I/O beside each other and prints the ratio of their rates with
// its interval. It is a tool for developers of this project:
//
//	go run ./internal/cmd/sidebyside engines     the in-process engine against plain directories (make bench)
//	go run ./internal/cmd/sidebyside mounted     images that Linux mounts against plain directories (make bench-mounted)
//	go run ./internal/cmd/sidebyside fio         the plain directory against fio (make crosscheck)
//	go run ./internal/cmd/sidebyside formats     conversions against other tools, and the cipher against OpenSSL (make bench-formats)
//
// Of engines and fio both sides get the same files, sizes, order, workers, flush and cache mode, through the very packages
// that a run of dmgbench uses; of formats they get the same image. They alternate, there and back, within seconds: what
// the machine does to one side it does to the other. docs/benchmarks.md says how to read the figures.
//
// # What it refuses
//
// It compares nothing with stored figures, gives no interval that its pairs cannot carry, writes only below a folder of
// its own that it removes again, and judges nothing as met or missed whose interval reaches across the aim.
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
	code, is := tool(ctx, os.Args[1:])
	if !is {
		code = run(ctx, os.Args[1:], os.Stdout, os.Stderr)
	}
	stop()
	os.Exit(code)
}

// errUsage says that the command line is wrong; the exit code is 2.
var errUsage = errors.New("usage: sidebyside engines|mounted|fio|formats [flags], see -h")

// run is main with everything handed in. It returns the exit code: 0 measured, 1 error, 2 wrong command line, 130
// interrupted.
func run(ctx context.Context, args []string, out, status io.Writer) int {
	err := dispatch(ctx, args, out, status)
	switch {
	case err == nil, errors.Is(err, flag.ErrHelp):
		return 0
	case ctx.Err() != nil:
		fmt.Fprintln(status, "sidebyside: interrupted")
		return 130
	case errors.Is(err, errUsage):
		fmt.Fprintln(status, "sidebyside:", err)
		return 2
	}
	fmt.Fprintln(status, "sidebyside:", err)
	return 1
}

func dispatch(ctx context.Context, args []string, out, status io.Writer) error {
	if len(args) == 0 {
		return errUsage
	}
	if args[0] == "formats" {
		s, err := parseFormats(args[1:], status)
		if err != nil {
			return err
		}
		r, err := formats(ctx, s, status)
		if err != nil {
			return err
		}
		return r.write(out, s.format)
	}
	measure := map[string]func(context.Context, *setup, io.Writer) (report, error){
		comparisonEngines: engines, comparisonMounted: mounted, comparisonFio: crosscheck}[args[0]]
	if measure == nil {
		return fmt.Errorf("%w: unknown comparison %q", errUsage, args[0])
	}
	s, err := parse(args[0], args[1:], status)
	if err != nil {
		return err
	}
	stop, err := s.profile()
	if err != nil {
		return err
	}
	r, err := measure(ctx, s, status)
	stop()
	if err != nil {
		return err
	}
	return r.write(out, s.format)
}

// Command accuracy makes docs/accuracy.md anew: it goes through all studies of
// internal/selftest in full, which takes minutes, and writes the page whole. It
// is for developers (make accuracy), stores no figure beside the page, and ends
// with status 1 where a promise is not kept.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"time"

	"dmgbench/internal/selftest"
)

func main() {
	out := flag.String("o", "", "`folder` of the page (default docs; a page that is not whole has no default)")
	seed := flag.Uint64("seed", 1, "`number` that all simulated figures follow from")
	short := flag.Bool("short", false, "the short form of selftest instead")
	study := flag.String("study", "", "one `study` instead of all; the page has no other then")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := run(ctx, *out, *study, selftest.Options{Seed: *seed, Full: !*short}); err != nil {
		fmt.Fprintln(os.Stderr, "accuracy:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, folder, study string, o selftest.Options) error {
	switch whole := study == "" && o.Full; {
	case folder == "" && whole:
		folder = "docs"
	case folder == "":
		return errors.New("reading the flags: a page that is not whole would take the place of docs/accuracy.md: name another folder with -o")
	}
	if study != "" {
		o.Only = []string{study}
	}
	o.Done = func(s selftest.Study, took time.Duration) {
		fmt.Fprintf(os.Stderr, "%-10s %s\n", s.ID, took.Round(100*time.Millisecond))
		for _, p := range s.Promises {
			fmt.Fprintf(os.Stderr, "  %s: %s: %s (%s)\n", p.Answer(), p.Says, p.Found(), p.Where)
		}
	}
	r, err := selftest.Run(ctx, o)
	if err != nil {
		return err
	}
	for name, text := range map[string]string{"accuracy.md": r.Page(), "accuracy-power.svg": r.PowerFigure()} {
		if err := os.WriteFile(filepath.Join(folder, name), []byte(text), 0o644); err != nil {
			return fmt.Errorf("writing the page: %w", err)
		}
	}
	if !r.Kept {
		return fmt.Errorf("not every promise is kept: see %s", filepath.Join(folder, "accuracy.md"))
	}
	return nil
}

// Command accuracy generates docs/accuracy.md and its figure: it runs all
// studies of internal/selftest in full, which takes minutes. It is a tool for
// developers (make accuracy), and exits with 1 if a promise of the page is not
// kept.
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
	out := flag.String("o", "", "`folder` of the page (default docs; required for a part of the page)")
	seed := flag.Uint64("seed", 1, "`number` that all simulated figures derive from")
	short := flag.Bool("short", false, "run the short form, as selftest does")
	study := flag.String("study", "", "one `study` instead of all")
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
		return errors.New("reading the flags: a part of the page would overwrite docs/accuracy.md: name another folder with -o")
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

package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"dmgbench/internal/bench/selftest"
)

// writeAccuracy runs all studies of internal/bench/selftest and writes their page and
// its figure. It returns an error if a promise of the page is not kept.
func writeAccuracy(ctx context.Context, folder string, o selftest.Options) error {
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
	err = errors.Join(os.WriteFile(filepath.Join(folder, "accuracy.md"), []byte(r.Page()), 0o644),
		os.WriteFile(filepath.Join(folder, "accuracy-power.svg"), []byte(r.PowerFigure()), 0o644))
	if err == nil && !r.Kept {
		err = fmt.Errorf("not every promise is kept: see %s", filepath.Join(folder, "accuracy.md"))
	}
	return err
}

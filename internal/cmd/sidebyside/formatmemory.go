package main

import (
	"context"
	"os"
	"runtime"

	"dmgbench/internal/units"
)

func (b *formatBench) cores() int { return runtime.GOMAXPROCS(0) }

// memory measures the largest memory of our conversions of images of different sizes. What the kernel reports for a
// process is never less than what this program had when it started it.
func (b *formatBench) memory(ctx context.Context) error {
	t := b.report.table("Most memory of dmgbench, by the size of the image", "op", "image", "most memory", "rate")
	for _, size := range b.memorySizes {
		if err := b.testImage(rawFile, size); err != nil {
			return err
		}
		steps := []struct {
			op, remove string
			args       []string
		}{
			{"raw → ULFO", dmgFile, ourConvert(rawFile, dmgFile, "ULFO")},
			{"raw → UDZO", rawFile, ourConvert(rawFile, dmgFile, "UDZO")},
			{"UDZO → raw", dmgFile, ourConvert(dmgFile, ourRaw, "UDRW")},
		}
		for _, s := range steps {
			w, err := b.run(ctx, size, b.hdiutil, s.args...)
			if err != nil {
				return err
			}
			t.add(s.op, units.Bytes(size).Human(), units.Bytes(w.peak).Human(), units.Rate(w.rate()).Human())
			if err := os.Remove(b.path(s.remove)); err != nil {
				return err
			}
		}
		if err := os.Remove(b.path(ourRaw)); err != nil {
			return err
		}
	}
	return nil
}

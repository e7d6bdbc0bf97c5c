package main

import (
	"context"
	"errors"
	"fmt"
	"io"
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
		if err := b.repeated(rawFile, size); err != nil {
			return err
		}
		steps := []struct {
			op, remove string
			args       []string
		}{
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

// repeated writes a file of n bytes that has the beginning of the test image again and again: nothing that is further
// back than a chunk matters to a conversion.
func (b *formatBench) repeated(name string, n int64) (err error) {
	part := min(n, 256<<20)
	if err := b.testImage(name, part); err != nil {
		return err
	}
	f, err := os.OpenFile(b.path(name), os.O_RDWR, 0)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	p := make([]byte, 1<<20)
	for at := part; at < n; at += int64(len(p)) {
		p = p[:min(int64(len(p)), n-at)]
		if _, err := f.ReadAt(p, at%part); err != nil && !errors.Is(err, io.EOF) {
			return fmt.Errorf("repeating the test image: %w", err)
		}
		if _, err := f.WriteAt(p, at); err != nil {
			return err
		}
	}
	return nil
}

package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"time"

	"golang.org/x/sys/unix"

	"dmgbench/internal/clock"
	"dmgbench/internal/host"
	"dmgbench/internal/units"
)

// Aims of the comparison of formats, as ratios of rates.
const (
	aimDecode = 1.3 // UDZO → raw against the fastest of the tools
	aimEncode = 2.0 // raw → UDZO and raw → ULFO against fstool
)

// formatBench is one run of the comparison.
type formatBench struct {
	*formatSetup
	clock    clock.Clock
	place    string // folder of everything
	status   io.Writer
	report   report
	turnTime float64 // seconds of processor time of what is measured in this process
}

// formats compares conversions with other tools, and the cipher with OpenSSL.
func formats(ctx context.Context, s *formatSetup, status io.Writer) (rep report, err error) {
	place, err := os.MkdirTemp(s.dir, "sidebyside-")
	if err != nil {
		return rep, fmt.Errorf("making a folder to measure in: %w", err)
	}
	defer func() { err = errors.Join(err, os.RemoveAll(place)) }()
	b := &formatBench{formatSetup: s, clock: clock.NewReal(), place: place, status: status, turnTime: 0.06}
	if err := b.room(); err != nil {
		return rep, err
	}
	b.describe(ctx)
	if err := b.build(ctx); err != nil {
		return rep, err
	}
	for _, part := range []struct {
		name string
		do   func(context.Context) error
	}{
		{"decode", b.decoding}, {"encode", b.encoding}, {"aes", b.ciphers}, {"codecs", b.codecs}, {"memory", b.memory},
	} {
		if !slices.Contains(s.parts, part.name) {
			continue
		}
		began := b.clock.Now()
		if err := part.do(ctx); err != nil {
			return rep, fmt.Errorf("measuring %s: %w", part.name, err)
		}
		b.say("%s: %s", part.name, units.Duration(b.clock.Now()-began).Human())
	}
	return b.report, nil
}

func (b *formatBench) say(format string, args ...any) {
	fmt.Fprintf(b.status, format+"\n", args...)
}

// path is that of a file in the place.
func (b *formatBench) path(name string) string { return filepath.Join(b.place, name) }

// room refuses to start where the largest part does not fit.
func (b *formatBench) room() error {
	var at unix.Statfs_t
	if err := unix.Statfs(b.place, &at); err != nil {
		return fmt.Errorf("asking for the free space of %q: %w", b.place, err)
	}
	free, need := int64(at.Bavail)*int64(at.Bsize), 3*b.size
	if b.does("memory") {
		need = max(need, 2*slices.Max(b.memorySizes))
	}
	if memory := host.Memory(); b.dir == sharedMemory && memory > 0 {
		free = min(free, memory*2/3)
	}
	if need > free {
		return fmt.Errorf("measuring in %q: %s free, %s needed: choose another --dir, a smaller --size or smaller --memory",
			b.dir, units.Bytes(free).Human(), units.Bytes(need).Human())
	}
	return nil
}

// describe fills in what the report says of machine and method.
func (b *formatBench) describe(ctx context.Context) {
	ctx, stop := context.WithTimeout(ctx, 10*time.Second)
	defer stop()
	h := host.Gather(ctx, []host.Place{{Name: "place", Path: b.place}}, false)
	r := &b.report
	r.Comparison = "formats"
	r.Machine = fmt.Sprintf("%s %s, %d processors (%s), %s memory", h.OS, h.Arch, runtime.NumCPU(), h.CPU, units.Bytes(h.Memory).Human())
	r.Filesystem = b.dir
	r.Files = fmt.Sprintf("an image of %s to decode, its first %s to encode: %s", units.Bytes(b.size).Human(), units.Bytes(b.encodeSize).Human(), b.source())
	r.Asked = "whole commands, from start to exit, with their default number of threads; input in the page cache, output to the same folder"
	r.Method = fmt.Sprintf("A-B-B-A in each of %d rounds after one that warms up and in which all output is checked, median of the ratios of the rounds, "+
		"exact interval between order statistics; of the cipher processor time of one thread, IVs of ours included, A-B-A", b.pairs)
	if host.Virtual(h) {
		r.Machine += ", virtual (" + h.Virtual + ")"
	}
}

func (b *formatBench) source() string {
	if b.image != "" {
		return b.image
	}
	return fmt.Sprintf("imitated files of a volume, seed %d", b.seed)
}

// testImage writes the first n bytes of what is converted to a new file.
func (b *formatBench) testImage(name string, n int64) (err error) {
	out, err := os.Create(b.path(name))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, out.Close()) }()
	return b.imageTo(out, n)
}

// copyFile writes the first n bytes of a file.
func copyFile(w io.Writer, path string, n int64) error {
	in, err := os.Open(path)
	if err != nil {
		return err
	}
	defer in.Close()
	if _, err := io.CopyN(w, in, n); err != nil {
		return fmt.Errorf("copying %d bytes of %q: %w", n, path, err)
	}
	return nil
}

package main

import (
	"archive/tar"
	"bytes"
	"cmp"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"syscall"
	"time"

	"dmgbench/internal/system/host"
	"dmgbench/internal/system/units"
)

// Files in the temporary folder. Our hdiutil gives raw images the extension
// .dmg, too.
const (
	rawFile    = "device.img"
	imageFile  = "image.dmg"
	outputFile = "out.dmg"
	backFile   = "back.dmg"
	outputDir  = "out"
)

// formatBench is one run of the comparison of formats.
type formatBench struct {
	bench
	size       units.Bytes // of the test image
	encodeSize units.Bytes // of its beginning that is encoded
	image      string      // raw image to take instead of the files of Go
	hdiutil    string      // our program; empty: it is built
}

// compareFormats compares conversions with other tools.
func compareFormats(ctx context.Context, common bench, args []string) (err error) {
	b := &formatBench{bench: common}
	dir := os.TempDir()
	if info, err := os.Stat("/dev/shm"); err == nil && info.IsDir() {
		dir = "/dev/shm" // a file system without a disk
	}
	f := flag.NewFlagSet("sidebyside formats", flag.ContinueOnError)
	size := f.String("size", "1 GiB", "size of the image to decode")
	encode := f.String("encode", "128 MiB", "how much of it to encode")
	f.StringVar(&b.image, "image", "", "take the beginning of this raw image `file` instead of the files of Go")
	f.StringVar(&b.hdiutil, "hdiutil", "", "our hdiutil `program`; empty: build it")
	remove, err := b.start(f, args, dir, func() (err error) {
		if b.size, err = units.ParseBytes(*size); err == nil {
			b.encodeSize, err = units.ParseBytes(*encode)
		}
		b.size, b.encodeSize = b.size&^4095, b.encodeSize&^4095
		if err == nil && (b.encodeSize < 1<<20 || b.encodeSize > b.size) {
			err = fmt.Errorf("encoding %d bytes of %d: want at least 1 MiB, less measures the start of programs",
				b.encodeSize, b.size)
		}
		return err
	})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, remove()) }()
	if b.hdiutil == "" {
		b.hdiutil = b.path("hdiutil")
		build := exec.CommandContext(ctx, "go", "build", "-trimpath", "-o", b.hdiutil, "dmgbench/cmd/hdiutil")
		if out, err := build.CombinedOutput(); err != nil {
			return fmt.Errorf("building hdiutil: %w: %.300s", err, out)
		}
	}
	header(b.stdout, host.Gather(ctx, nil, false), "place: "+b.dir,
		"image: "+cmp.Or(b.image, "the files of "+runtime.Version()))
	for _, c := range b.conversions() {
		if err := b.compare(ctx, c); err != nil {
			return err
		}
	}
	return nil
}

// path is a file in the temporary folder.
func (b *formatBench) path(name string) string { return filepath.Join(b.place, name) }

// job is a conversion by one tool. Names are of files in the temporary folder.
type job struct {
	program string // name or path
	args    []string
	output  string // the file that it makes, or a folder with that one file
}

func (j job) tool() string { return filepath.Base(j.program) }

// convert is the job of our hdiutil that makes out of in, at the default level
// of the format.
func (b *formatBench) convert(in, out, format string) job {
	return job{b.hdiutil, []string{"convert", in, "-format", format, "-o", out}, out}
}

// conversion is one conversion by several tools, ours first.
type conversion struct {
	op     string // name of the benchmark
	bytes  units.Bytes
	decode bool // else it compresses
	jobs   []job
}

// conversions are UDZO → raw, and raw → UDZO, at the default level of both, 6,
// and raw → ULFO.
func (b *formatBench) conversions() []conversion {
	all := []conversion{{op: "Decode/format=UDZO", bytes: b.size, decode: true, jobs: []job{
		b.convert(imageFile, outputFile, "UDRW"),
		{"fstool", []string{"convert", imageFile, outputFile}, outputFile},
		{"qemu-img", []string{"convert", "-f", "dmg", "-O", "raw", imageFile, outputFile}, outputFile},
		{"dmg2img", []string{"-s", imageFile, outputFile}, outputFile},
		{"7zz", []string{"x", "-tdmg", "-y", "-bso0", "-bsp0", "-o" + outputDir, imageFile}, outputDir},
	}}}
	for _, format := range []string{"UDZO", "ULFO"} {
		all = append(all, conversion{op: "Encode/format=" + format, bytes: b.encodeSize, jobs: []job{
			b.convert(rawFile, outputFile, format),
			{"fstool", []string{"convert", rawFile, outputFile, "--dmg-format", format}, outputFile},
		}})
	}
	return all
}

// writeInput writes what is converted, and the image to decode.
func (b *formatBench) writeInput(ctx context.Context, c conversion) (err error) {
	out, err := os.Create(b.path(rawFile))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, out.Close()) }()
	var in io.ReadCloser
	if b.image != "" {
		in, err = os.Open(b.image)
	} else if root, e := exec.CommandContext(ctx, "go", "env", "GOROOT").Output(); e != nil {
		err = fmt.Errorf("finding the folder of Go: %w", e)
	} else {
		in = readFolder(string(bytes.TrimSpace(root)))
	}
	if err != nil {
		return err
	}
	defer in.Close()
	if _, err := io.CopyN(out, in, int64(c.bytes)); err != nil {
		return fmt.Errorf("writing the image to convert: %w", err)
	}
	if c.decode {
		_, err = b.run(ctx, c.bytes, b.convert(rawFile, imageFile, "UDZO"))
	}
	return err
}

// readFolder reads the files below a folder as a tar archive, again and again.
// With the folder of Go, the sources and programs of one release are the same
// bytes for everybody, apart from their times.
func readFolder(folder string) io.ReadCloser {
	r, w := io.Pipe()
	go func() {
		var err error
		for err == nil { // until the reader is closed
			err = tar.NewWriter(w).AddFS(os.DirFS(folder))
		}
		w.CloseWithError(err)
	}()
	return r
}

// run runs a job on so many bytes of a device, timed from the start of the
// program to its end.
func (b *formatBench) run(ctx context.Context, device units.Bytes, j job) (load, error) {
	c := exec.CommandContext(ctx, j.program, j.args...)
	c.Dir = b.place
	var output bytes.Buffer
	c.Stdout, c.Stderr = &output, &output
	start := time.Now()
	if err := c.Run(); err != nil {
		return load{}, fmt.Errorf("running %s %q: %w: %.500s", j.tool(), j.args, err, bytes.TrimSpace(output.Bytes()))
	}
	l := load{bytes: int64(device), seconds: time.Since(start).Seconds()}
	l.cpu = (c.ProcessState.UserTime() + c.ProcessState.SystemTime()).Seconds()
	if usage, ok := c.ProcessState.SysUsage().(*syscall.Rusage); ok {
		l.peak = usage.Maxrss
		if runtime.GOOS != "darwin" { // bytes there, KiB elsewhere
			l.peak *= 1024
		}
	}
	return l, nil
}

// compare runs the installed tools in rounds.
func (b *formatBench) compare(ctx context.Context, c conversion) error {
	if err := b.writeInput(ctx, c); err != nil {
		return err
	}
	var sides []side
	for _, j := range c.jobs {
		if _, err := exec.LookPath(j.program); err != nil {
			fmt.Fprintf(b.stderr, "%s: not measured: %s is not installed\n", c.op, j.tool())
			continue
		}
		var made int64
		sides = append(sides, side{j.tool(), func(ctx context.Context, _ int) (_ map[string]load, err error) {
			// The output is deleted outside of the clock.
			defer func() { err = errors.Join(err, os.RemoveAll(b.path(j.output))) }()
			l, err := b.run(ctx, c.bytes, j)
			if err == nil && made == 0 {
				if made, err = b.verify(ctx, c, j); err != nil {
					err = fmt.Errorf("checking the output of %s: %w", j.tool(), err)
				}
			}
			l.made = made
			return map[string]load{c.op: l}, err
		}})
	}
	return measureRounds(ctx, b.stdout, b.pairs, sides, func(round int) error {
		_, err := fmt.Fprintf(b.stderr, "%s: round %d of %d\n", c.op, round, b.pairs)
		return err
	})
}

// verify compares the output of a job with the image, and returns its size in
// bytes. It decodes an image with another tool than the one that made it, where
// there is one.
func (b *formatBench) verify(ctx context.Context, c conversion, j job) (made int64, err error) {
	name := j.output
	if name == outputDir {
		names, err := filepath.Glob(b.path(filepath.Join(outputDir, "*")))
		if err != nil || len(names) != 1 {
			return 0, fmt.Errorf("%d files: %w", len(names), err)
		}
		name = filepath.Join(outputDir, filepath.Base(names[0]))
	}
	info, err := os.Stat(b.path(name))
	if err != nil {
		return 0, err
	}
	if !c.decode {
		back := b.convert(name, backFile, "UDRW")
		if _, err := exec.LookPath("fstool"); err == nil && j.program == b.hdiutil {
			back = job{"fstool", []string{"convert", name, backFile}, backFile}
		}
		defer os.Remove(b.path(backFile))
		if _, err := b.run(ctx, c.bytes, back); err != nil {
			return 0, err
		}
		name = backFile
	}
	out, err := exec.CommandContext(ctx, "cmp", b.path(name), b.path(rawFile)).CombinedOutput()
	if err != nil {
		err = fmt.Errorf("%w: %s", err, bytes.TrimSpace(out))
	}
	return info.Size(), err
}

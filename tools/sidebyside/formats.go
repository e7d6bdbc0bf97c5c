package main

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"syscall"
	"time"

	"dmgbench/internal/analysis/stats"
	"dmgbench/internal/system/host"
	"dmgbench/internal/system/units"
)

// Aims of the conversions, as ratios of rates.
const (
	aimDecode = 1.3 // UDZO → raw against the fastest of the tools
	aimEncode = 2.0 // raw → UDZO and raw → ULFO against fstool
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
	dir        string // a temporary folder is made in it
	place      string // that folder
	size       int64  // bytes of the test image
	encodeSize int64  // bytes of its beginning that are encoded
	pairs      int
	image      string // raw image to take instead of the files of Go
	hdiutil    string // our program; empty: it is built
	stderr     io.Writer
	report     report
}

func parseFormats(args []string, stderr io.Writer) (*formatBench, error) {
	b := &formatBench{stderr: stderr}
	dir := os.TempDir()
	if info, err := os.Stat("/dev/shm"); err == nil && info.IsDir() {
		dir = "/dev/shm" // a file system without a disk
	}
	f := flag.NewFlagSet("sidebyside formats", flag.ContinueOnError)
	f.StringVar(&b.dir, "dir", dir, "put files in this `folder`; one in memory leaves the disk out")
	size := f.String("size", "1 GiB", "size of the image to decode")
	encode := f.String("encode", "128 MiB", "how much of it to encode")
	f.IntVar(&b.pairs, "pairs", minPairs, "pairs to keep, after one that is discarded")
	f.StringVar(&b.image, "image", "", "take the beginning of this raw image `file` instead of the files of Go")
	f.StringVar(&b.hdiutil, "hdiutil", "", "our hdiutil `program`; empty: build it")
	if err := parseFlags(f, args, stderr); err != nil {
		return nil, err
	}
	n, err := units.ParseBytes(*size)
	m, encodeErr := units.ParseBytes(*encode)
	b.size, b.encodeSize = int64(n)&^(imageBlock-1), int64(m)&^(imageBlock-1)
	if err = errors.Join(err, encodeErr, b.check()); err != nil {
		return nil, fmt.Errorf("reading the flags: %w", err)
	}
	return b, nil
}

func (b *formatBench) check() error {
	switch {
	case b.pairs < minPairs:
		return fmt.Errorf("%d pairs: want at least %d", b.pairs, minPairs)
	case min(b.size, b.encodeSize) < 1<<20:
		return errors.New("an image of less than 1 MiB measures the start of programs")
	case b.encodeSize > b.size:
		return fmt.Errorf("encoding %d bytes of %d", b.encodeSize, b.size)
	}
	return nil
}

// compareFormats compares conversions with other tools.
func compareFormats(ctx context.Context, args []string, stderr io.Writer) (r report, err error) {
	b, err := parseFormats(args, stderr)
	if err != nil {
		return r, err
	}
	if b.place, err = os.MkdirTemp(b.dir, "sidebyside-"); err != nil {
		return r, fmt.Errorf("making a folder to measure in: %w", err)
	}
	defer func() { err = errors.Join(err, os.RemoveAll(b.place)) }()
	if err := b.buildHdiutil(ctx); err != nil {
		return r, err
	}
	source := b.image
	if source == "" {
		source = "the files of " + runtime.Version()
	}
	b.report = report{
		machine: machineText(host.Gather(ctx, nil, false)),
		place:   b.dir,
		files: fmt.Sprintf("an image of %s to decode, its first %s to encode: %s", units.Bytes(b.size).Human(),
			units.Bytes(b.encodeSize).Human(), source),
		method: fmt.Sprintf("whole commands with their default number of threads, input in the page cache; A-B-B-A in each of "+
			"%d rounds after one in which all output is checked; median of the ratios, exact interval between order statistics",
			b.pairs),
		costs: [][]string{{"", "op", "tool", "made", "of the image", "rate", "cpu", "most memory"}},
	}
	if err = b.decode(ctx); err == nil {
		err = b.encode(ctx)
	}
	return b.report, err
}

func (b *formatBench) path(name string) string { return filepath.Join(b.place, name) }

func (b *formatBench) buildHdiutil(ctx context.Context) error {
	if b.hdiutil != "" {
		return nil
	}
	b.hdiutil = b.path("hdiutil")
	out, err := exec.CommandContext(ctx, "go", "build", "-trimpath", "-o", b.hdiutil, "dmgbench/cmd/hdiutil").CombinedOutput()
	if err != nil {
		return fmt.Errorf("building hdiutil: %w: %.300s", err, out)
	}
	return nil
}

// writeInput writes the first n bytes of what is converted.
func (b *formatBench) writeInput(n int64) (err error) {
	out, err := os.Create(b.path(rawFile))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, out.Close()) }()
	if b.image == "" {
		root, err := exec.Command("go", "env", "GOROOT").Output()
		if err != nil {
			return fmt.Errorf("finding the folder of Go: %w", err)
		}
		return writeTestImage(out, string(bytes.TrimSpace(root)), n)
	}
	in, err := os.Open(b.image)
	if err != nil {
		return err
	}
	defer in.Close()
	if _, err := io.CopyN(out, in, n); err != nil {
		return fmt.Errorf("copying %d bytes of %q: %w", n, b.image, err)
	}
	return nil
}

// job is a conversion by one tool. Names are of files in the temporary folder.
type job struct {
	program string // name or path
	args    []string
	output  string // the file that it makes, or a folder with that one file
}

func (j job) tool() string { return filepath.Base(j.program) }

// convert is the job of our hdiutil that makes out of in.
func (b *formatBench) convert(in, out, format string) job {
	return job{b.hdiutil, []string{"convert", in, "-format", format, "-o", out}, out}
}

// conversion is one conversion by several tools, ours first.
type conversion struct {
	op         string
	bytes      int64
	aim        float64 // on the fastest of the other tools
	compresses bool
	jobs       []job
	verify     func(ctx context.Context, j job, made string) error
}

// decode compares UDZO → raw.
func (b *formatBench) decode(ctx context.Context) error {
	if err := b.writeInput(b.size); err != nil {
		return err
	}
	maker := b.convert(rawFile, imageFile, "UDZO")
	if _, err := b.run(ctx, b.size, maker); err != nil {
		return err
	}
	return b.compare(ctx, conversion{
		op: "UDZO → raw", bytes: b.size, aim: aimDecode,
		jobs: []job{
			b.convert(imageFile, outputFile, "UDRW"),
			{"fstool", []string{"convert", imageFile, outputFile}, outputFile},
			{"qemu-img", []string{"convert", "-f", "dmg", "-O", "raw", imageFile, outputFile}, outputFile},
			{"dmg2img", []string{"-s", imageFile, outputFile}, outputFile},
			{"7zz", []string{"x", "-tdmg", "-y", "-bso0", "-bsp0", "-o" + outputDir, imageFile}, outputDir},
		},
		verify: func(_ context.Context, _ job, made string) error { return compareFiles(made, b.path(rawFile)) },
	})
}

// encode compares raw → UDZO at the default level of both, 6, and raw → ULFO.
func (b *formatBench) encode(ctx context.Context) error {
	if err := b.writeInput(b.encodeSize); err != nil {
		return err
	}
	for _, format := range []string{"UDZO", "ULFO"} {
		err := b.compare(ctx, conversion{
			op: "raw → " + format, bytes: b.encodeSize, compresses: true, aim: aimEncode,
			jobs: []job{
				b.convert(rawFile, outputFile, format),
				{"fstool", []string{"convert", rawFile, outputFile, "--dmg-format", format}, outputFile},
			},
			verify: b.verifyRoundTrip,
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// verifyRoundTrip decodes an image with another tool than the one that made it,
// where there is one.
func (b *formatBench) verifyRoundTrip(ctx context.Context, j job, made string) error {
	back := b.convert(filepath.Base(made), backFile, "UDRW")
	if fstool, err := exec.LookPath("fstool"); err == nil && j.program == b.hdiutil {
		back = job{fstool, []string{"convert", filepath.Base(made), backFile}, backFile}
	}
	defer os.Remove(b.path(backFile))
	if _, err := b.run(ctx, b.encodeSize, back); err != nil {
		return err
	}
	return compareFiles(b.path(backFile), b.path(rawFile))
}

// run runs a job on so many bytes of a device, timed from the start of the
// program to its end.
func (b *formatBench) run(ctx context.Context, device int64, j job) (load, error) {
	c := exec.CommandContext(ctx, j.program, j.args...)
	c.Dir = b.place
	var output bytes.Buffer
	c.Stdout, c.Stderr = &output, &output
	start := time.Now()
	if err := c.Run(); err != nil {
		return load{}, fmt.Errorf("running %s %q: %w: %.500s", j.tool(), j.args, err, bytes.TrimSpace(output.Bytes()))
	}
	l := load{bytes: device, seconds: time.Since(start).Seconds()}
	l.cpu = (c.ProcessState.UserTime() + c.ProcessState.SystemTime()).Seconds()
	if usage, ok := c.ProcessState.SysUsage().(*syscall.Rusage); ok {
		l.peak = usage.Maxrss
		if runtime.GOOS != "darwin" { // bytes there, KiB elsewhere
			l.peak *= 1024
		}
	}
	return l, nil
}

// isInstalled reports whether a program is installed, and adds a row that it is
// missing otherwise.
func (b *formatBench) isInstalled(op, program string) bool {
	_, err := exec.LookPath(program)
	if err != nil {
		name := filepath.Base(program)
		b.report.rows = append(b.report.rows, row{workers: runtime.NumCPU(), op: op, subject: "hdiutil", baseline: name,
			quantity: quantityRate, missing: "not measured: " + name + " is not installed"})
	}
	return err == nil
}

// compare runs the installed tools in rounds, and adds rows and costs to the
// report.
func (b *formatBench) compare(ctx context.Context, c conversion) error {
	jobs := slices.DeleteFunc(c.jobs, func(j job) bool { return !b.isInstalled(c.op, j.program) })
	made, sides := make([]int64, len(jobs)), make([]side, len(jobs))
	for i, j := range jobs {
		sides[i] = func(ctx context.Context, round int) ([]load, error) {
			l, err := b.runTurn(ctx, c, j, round, &made[i])
			return []load{l}, err
		}
	}
	loads, err := measureRounds(ctx, b.pairs, sides, func(round int) error {
		_, err := fmt.Fprintf(b.stderr, "%s: round %d of %d\n", c.op, round, b.pairs)
		return err
	})
	if err != nil {
		return err
	}
	return b.addRows(c, jobs, loads, made)
}

// runTurn runs one tool once. In its first turn it checks the output and sets
// made, its size in bytes. The output is deleted outside of the clock.
func (b *formatBench) runTurn(ctx context.Context, c conversion, j job, round int, made *int64) (l load, err error) {
	output := b.path(j.output)
	defer func() { err = errors.Join(err, os.RemoveAll(b.path(j.output))) }()
	if l, err = b.run(ctx, c.bytes, j); err != nil || round > 0 || *made > 0 {
		return l, err
	}
	if j.output == outputDir {
		names, err := filepath.Glob(filepath.Join(output, "*"))
		if err != nil || len(names) != 1 {
			return l, fmt.Errorf("checking the output of %s: %d files: %w", j.tool(), len(names), err)
		}
		output = names[0]
	}
	info, err := os.Stat(output)
	if err == nil {
		*made, err = info.Size(), c.verify(ctx, j, output)
	}
	if err != nil {
		return l, fmt.Errorf("checking the output of %s: %w", j.tool(), err)
	}
	return l, nil
}

// addRows adds the ratios of our tool to the others, and what each made and
// cost.
func (b *formatBench) addRows(c conversion, jobs []job, loads [][][]load, made []int64) error {
	rates := make([]float64, len(jobs))
	for i, j := range jobs {
		var cpu []float64
		var sum load
		for _, l := range loads[i][0] {
			cpu, sum = append(cpu, l.cpu/2), sum.plus(l) // a round has two turns
		}
		var err error
		if rates[i], err = stats.Median(quantityRate.values(loads[i][0])); err != nil {
			return err
		}
		seconds, err := stats.Median(cpu)
		if err != nil {
			return err
		}
		b.report.costs = append(b.report.costs, []string{"", c.op, j.tool(), units.Bytes(made[i]).Human(),
			fmt.Sprintf("%.1f %%", 100*float64(made[i])/float64(c.bytes)), units.Rate(rates[i]).Human(),
			units.Significant(seconds, 3) + " s", units.Bytes(sum.peak).Human()})
	}
	for i := 1; i < len(jobs); i++ {
		r := row{workers: runtime.NumCPU(), op: c.op, subject: "hdiutil", baseline: jobs[i].tool(), quantity: quantityRate}
		if rates[i] == slices.Max(rates[1:]) {
			r.aim = c.aim
		}
		if err := r.compare(loads[0][0], loads[i][0]); err != nil {
			return fmt.Errorf("comparing %s: %w", c.op, err)
		}
		if c.compresses {
			r.compareSizes(made[0], made[i])
		}
		b.report.rows = append(b.report.rows, r)
	}
	return nil
}

// compareFiles returns an error unless the two files have the same bytes.
func compareFiles(a, b string) error {
	out, err := exec.Command("cmp", a, b).CombinedOutput()
	if err != nil {
		return fmt.Errorf("%w: %s", err, bytes.TrimSpace(out))
	}
	return nil
}

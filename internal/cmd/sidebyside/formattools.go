package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"syscall"

	"dmgbench/internal/units"
)

// converter is a program that converts images.
type converter struct {
	name, program string
	install       string // how one gets it
}

// found looks the program up.
func (t *converter) found() bool {
	path, err := exec.LookPath(t.program)
	if err == nil {
		path, err = filepath.Abs(path)
	}
	if err == nil {
		t.program = path
	}
	return err == nil
}

// missing is what a row says of a tool that is not there.
func (t *converter) missing() string {
	return fmt.Sprintf("not measured: %s is not installed (%s)", t.name, t.install)
}

const us = "dmgbench"

func (b *formatBench) ourTool() *converter { return &converter{name: us, program: b.hdiutil} }
func (b *formatBench) fstoolTool() *converter {
	return &converter{"fstool", b.fstool, "cargo install fstool; FLAGS=--fstool=PATH"}
}

// build makes our program unless one is given.
func (b *formatBench) build(ctx context.Context) error {
	if b.hdiutil != "" || !b.does("decode") && !b.does("encode") && !b.does("memory") {
		return nil
	}
	b.hdiutil = b.path("hdiutil")
	out, err := exec.CommandContext(ctx, "go", "build", "-trimpath", "-o", b.hdiutil, "dmgbench/cmd/hdiutil").CombinedOutput()
	if err != nil {
		return fmt.Errorf("building hdiutil: %w: %.300s", err, out)
	}
	return nil
}

// went is one run of a program: what it took, and the largest memory that it had, in bytes.
type went struct {
	load
	peak int64
}

// run runs a program on so many bytes of a device. The time is that from its start to its end.
func (b *formatBench) run(ctx context.Context, bytesDone int64, program string, args ...string) (went, error) {
	c := exec.CommandContext(ctx, program, args...)
	c.Dir = b.place
	var said bytes.Buffer
	c.Stdout, c.Stderr = &said, &said
	began := b.clock.Now()
	if err := c.Run(); err != nil {
		return went{}, fmt.Errorf("running %s %q: %w: %.500s", filepath.Base(program), args, err, bytes.TrimSpace(said.Bytes()))
	}
	w := went{load: load{bytes: bytesDone, seconds: float64(b.clock.Now()-began) / 1e9}}
	w.cpu = (c.ProcessState.UserTime() + c.ProcessState.SystemTime()).Seconds()
	w.all = w.cpu
	if usage, ok := c.ProcessState.SysUsage().(*syscall.Rusage); ok {
		w.peak = usage.Maxrss
		if runtime.GOOS != "darwin" { // there in bytes, elsewhere in KiB
			w.peak *= 1024
		}
	}
	return w, nil
}

// job is a conversion by one tool. Names are of files in the place.
type job struct {
	tool   *converter
	args   []string
	output string // what it makes: a file, or a folder with one file
}

// deed is one conversion by several tools, ours first.
type deed struct {
	op         string
	bytes      int64
	aim        float64
	compresses bool // what is made may be of different sizes
	jobs       []job
	verify     func(ctx context.Context, j job, made string) error
}

// tally is what one tool did in all rounds.
type tally struct {
	rounds []load
	peak   int64
	made   int64 // bytes of the output
}

// compare runs the tools that are there in rounds, and adds rows and sizes to the report.
func (b *formatBench) compare(ctx context.Context, d deed) error {
	var jobs []job
	for i, j := range d.jobs {
		if i == 0 || j.tool.found() {
			jobs = append(jobs, j)
		}
	}
	results := make([]tally, len(jobs))
	began := b.clock.Now()
	for round := range b.pairs + 1 {
		order := schedule(len(jobs), round)
		if round == 0 {
			order = order[:len(jobs)] // warming up takes one way
		}
		sums := make([]load, len(jobs))
		for _, i := range order {
			w, err := b.turn(ctx, d, jobs[i], round == 0, &results[i])
			if err != nil {
				return err
			}
			sums[i] = sums[i].plus(w.load)
		}
		for i := range sums {
			if round > 0 {
				results[i].rounds = append(results[i].rounds, sums[i])
			}
		}
	}
	b.say("%s: %s", d.op, units.Duration(b.clock.Now()-began).Human())
	return b.add(d, jobs, results)
}

// turn runs one tool once, into nothing that is there already. Deleting is outside of the clock.
func (b *formatBench) turn(ctx context.Context, d deed, j job, check bool, r *tally) (w went, err error) {
	if err := os.RemoveAll(b.path(j.output)); err != nil {
		return w, err
	}
	if w, err = b.run(ctx, d.bytes, j.tool.program, j.args...); err != nil {
		return w, err
	}
	made, size, err := soleFile(b.path(j.output))
	if err == nil && check {
		err = d.verify(ctx, j, made)
	}
	if err != nil {
		return w, fmt.Errorf("checking what %s made: %w", j.tool.name, err)
	}
	r.peak, r.made = max(r.peak, w.peak), size
	return w, os.RemoveAll(b.path(j.output))
}

// soleFile is the file at path, or the only one in the folder at path, and its length.
func soleFile(path string) (string, int64, error) {
	info, err := os.Stat(path)
	if err == nil && info.IsDir() {
		var list []os.DirEntry
		if list, err = os.ReadDir(path); err == nil && len(list) != 1 {
			err = fmt.Errorf("%d files in %q, not one", len(list), path)
		}
		if err == nil {
			return soleFile(filepath.Join(path, list[0].Name()))
		}
	}
	if err != nil {
		return "", 0, err
	}
	return path, info.Size(), nil
}

// same compares two files.
func same(a, b string) error {
	f, err := os.Open(a)
	if err != nil {
		return err
	}
	defer f.Close()
	g, err := os.Open(b)
	if err != nil {
		return err
	}
	defer g.Close()
	p, q := make([]byte, 1<<20), make([]byte, 1<<20)
	for at := int64(0); ; {
		n, err1 := io.ReadFull(f, p)
		m, err2 := io.ReadFull(g, q)
		if n != m || !bytes.Equal(p[:n], q[:m]) {
			return fmt.Errorf("%q and %q differ in the megabyte at %d", filepath.Base(a), filepath.Base(b), at)
		}
		if at += int64(n); err1 != nil || err2 != nil {
			if errors.Is(err1, io.EOF) || errors.Is(err1, io.ErrUnexpectedEOF) {
				return nil
			}
			return errors.Join(err1, err2)
		}
	}
}

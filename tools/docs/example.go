package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"time"

	"dmgbench/internal/bench/engine/inprocess"
	"dmgbench/internal/bench/runner"
	"dmgbench/internal/plan"
	"dmgbench/internal/result"
	"dmgbench/internal/system/clock"
	"dmgbench/internal/system/host"
	"dmgbench/internal/system/units"
)

const (
	// exampleBytes is about how much a round of an example writes, as far as smallestScale allows.
	exampleBytes  = 20e6
	smallestScale = 0.0001
	// mostFiles is how many files the cases of a plan may write together for three rounds, which intervals need. A
	// plan that writes more, as "aging" does, has one round in its example: three take minutes.
	mostFiles = 10_000
)

// clockWithoutWaits is the machine's clock that leaves waits out: protocols wait for hours. It shows no time that did
// not happen.
type clockWithoutWaits struct{ clock.Real }

// Sleep returns at once. A run that is stopped still stops here.
func (clockWithoutWaits) Sleep(ctx context.Context, _ time.Duration) error { return ctx.Err() }

// withoutWaits is what the report says of waits that were left out.
var withoutWaits = result.Warning{Kind: "waits", Text: "this report is an example: the waits of its plan were left out, and no time counts them"}

// writeExample executes the plan of a page with small files and without waits, by the engine that needs no
// privilege, and writes its report to path.
func writeExample(ctx context.Context, path string, page *planPage) (err error) {
	dir, err := os.MkdirTemp("", "dmgbench-site-")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	c, err := exampleRun(ctx, page, dir)
	if err != nil {
		return err
	}
	page.Skipped = len(runner.UnsupportedCases(c.Plan, c.Engine))
	if err := execute(ctx, c); err != nil {
		return err
	}
	if _, err := program(ctx, "report", c.Out); err != nil {
		return err
	}
	text, err := os.ReadFile(filepath.Join(c.Out, result.ReportFile))
	if err != nil {
		return err
	}
	return writeFile(path, text)
}

// shrink makes an example of the page's plan: fewer rounds and sets, smaller sizes.
func shrink(page *planPage) (*plan.Plan, error) {
	published := *page.Plan
	published.Run.Canary = false // it writes more than most plans at this scale
	o := plan.Overrides{Sets: 2, Rounds: 3}
	p, _, err := published.Apply(o)
	if err != nil {
		return nil, err
	}
	var files int
	var written units.Bytes
	for _, c := range p.Cases() {
		t := plan.Estimate(p, c)
		files, written = files+t.Files, written+t.BytesWritten
		page.Waits = page.Waits || slices.ContainsFunc(t.Steps, func(s plan.StepTotal) bool { return s.Wait > 0 })
	}
	if files > mostFiles {
		o.Rounds = 1
	}
	page.Rounds = o.Rounds
	if scale := max(smallestScale, exampleBytes/float64(written)); scale < 1 {
		page.Scale = fmt.Sprintf("%.2g", scale)
		if o.Scale, err = strconv.ParseFloat(page.Scale, 64); err != nil {
			return nil, err
		}
	}
	p, _, err = published.Apply(o)
	return p, err
}

// exampleRun is the run of a page's example in dir, with a folder for each place. The page gets the system that it is
// of. The files of inputs that nobody brings are made up, as in any run without them.
func exampleRun(ctx context.Context, page *planPage, dir string) (runner.Config, error) {
	p, err := shrink(page)
	if err != nil {
		return runner.Config{}, err
	}
	machine := host.Gather(ctx, nil, false)
	page.System = cmp.Or(machine.OSVersion, machine.OS) + ", " + machine.CPU
	now := clockWithoutWaits{clock.NewReal()}
	// Few iterations, as the derivation of keys would take most of the time.
	small := &inprocess.Engine{Now: now.Wall, Passphrase: []byte("example"), Iterations: 1000}
	c := runner.Config{Plan: p, Engine: small, Why: "it needs no privilege, for the examples of the site", Clock: now,
		Host: machine, Virtual: host.Virtual(machine), Warnings: host.Warnings(machine), Memory: host.Memory(),
		Tool: result.Tool{Name: "dmgbench", Version: "example"}, Out: filepath.Join(dir, "run"), Volatile: true}
	if page.Waits {
		c.Warnings = append(c.Warnings, withoutWaits)
	}
	for _, place := range p.Places() {
		path := c.Out + "-" + place
		c.Places = append(c.Places, runner.Place{Name: place, Path: path})
		err = errors.Join(err, os.Mkdir(path, 0o755))
	}
	return c, err
}

// execute executes a run. It does at once what a plan asks a person to do.
func execute(ctx context.Context, c runner.Config) error {
	outcome, err := runner.Run(ctx, c)
	// Who is asked for another number of processors gives one more each time, which the plans ask for in this order.
	for cpus := 1; err == nil && outcome.Status == runner.StatusPaused && cpus < 100; cpus++ {
		c.Host.CPUs = cpus
		outcome, err = runner.Resume(ctx, c.Out, c)
	}
	if err != nil || outcome.Status == runner.StatusDone || outcome.Status == runner.StatusSkipped {
		return err
	}
	return fmt.Errorf("executing the example: %s: %s", outcome.Status, outcome.Message)
}

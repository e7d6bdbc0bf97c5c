package main

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync/atomic"
	"time"

	"dmgbench/internal/bench/engine"
	"dmgbench/internal/bench/engine/inprocess"
	"dmgbench/internal/bench/engine/simulated"
	"dmgbench/internal/bench/runner"
	"dmgbench/internal/plan"
	"dmgbench/internal/report"
	"dmgbench/internal/result"
	"dmgbench/internal/system/clock"
	"dmgbench/internal/system/host"
	"dmgbench/internal/system/units"
	"dmgbench/third_party/echarts"
)

const (
	// law is the simulated device of the example reports. Its rates belong to no real disk: an example shows what a
	// report of the plan contains, and not how fast anything is.
	law = `
write      = 2 GB/s
read       = 3 GB/s
latency    = 100 us
file_noise = 5%
[UDSB]
write      = 1 GB/s
`
	// exampleBytes is about how much the in-process engine writes for an example, as far as smallestScale allows.
	exampleBytes  = 20e6
	smallestScale = 0.0001
	// library is the charting library of all examples: one copy in each would take more than all else of the site.
	library = "echarts.min.js"
)

// clockWithoutWaits is the machine's clock, except that a wait moves it on at once: protocols wait for hours.
type clockWithoutWaits struct {
	clock.Real
	waited *atomic.Int64
}

func (c clockWithoutWaits) Now() time.Duration { return c.Real.Now() + time.Duration(c.waited.Load()) }
func (c clockWithoutWaits) Wall() time.Time {
	return c.Real.Wall().Add(time.Duration(c.waited.Load()))
}

func (c clockWithoutWaits) Sleep(ctx context.Context, d time.Duration) error {
	c.waited.Add(int64(max(d, 0)))
	return ctx.Err()
}

// writeExample executes the plan of a page and writes its report to path. The simulated device is the first choice,
// as its report is the same each time. Plans that it cannot execute are executed by the in-process engine; a plan that
// neither can execute gets the reason on its page.
func writeExample(ctx context.Context, path string, page *planPage) (err error) {
	dir, err := os.MkdirTemp("", "dmgbench-site-")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	for _, prepare := range []func(context.Context, *planPage) (runner.Config, error){simulatedRun, inProcessRun} {
		c, err := prepare(ctx, page)
		if err == nil {
			c.Out = filepath.Join(dir, c.Engine.Info().Name)
			page.Reason, err = execute(ctx, c)
		}
		if err != nil {
			return err
		}
		if page.Reason == "" {
			return writeReport(ctx, c.Out, path)
		}
	}
	return nil
}

// simulatedRun is a run of all files of two sets, on a virtual clock.
func simulatedRun(_ context.Context, page *planPage) (runner.Config, error) {
	machine, err1 := simulated.Parse(law)
	p, _, err2 := page.Apply(plan.Overrides{Sets: 2, Rounds: 3})
	if err := cmp.Or(err1, err2); err != nil {
		return runner.Config{}, err
	}
	now := clock.NewVirtual(time.Date(2026, 1, 1, 9, 0, 0, 0, time.UTC))
	device, err := simulated.New(machine, now, 1, 1)
	if err != nil {
		return runner.Config{}, err
	}
	return runner.Config{Plan: p, Engine: device, Why: device.Simulated(), Clock: now}, nil
}

// inProcessRun is a run of scaled files on this machine, without the waits.
func inProcessRun(ctx context.Context, page *planPage) (runner.Config, error) {
	o := plan.Overrides{Sets: 2, Rounds: 3}
	published := *page.Plan
	published.Run.Canary = false // it writes more than most plans at this scale
	p, _, err := published.Apply(o)
	if err != nil {
		return runner.Config{}, err
	}
	cost := runner.EstimateCost(p, units.Rate(1))
	if o.Scale = max(smallestScale, exampleBytes/float64(cost.Written)); o.Scale < 1 {
		p, _, err = published.Apply(o)
		page.Scale = fmt.Sprintf("%.2g", o.Scale)
	}
	machine := host.Gather(ctx, nil, false)
	page.System = machine.OS + ", " + machine.CPU
	now := clockWithoutWaits{clock.NewReal(), new(atomic.Int64)}
	// Few iterations, as the derivation of keys would take most of the time.
	files := &inprocess.Engine{Now: now.Wall, Passphrase: []byte("example"), Iterations: 1000}
	return runner.Config{Plan: p, Engine: files, Why: "an example", Clock: now, Host: machine,
		Memory: host.Memory()}, err
}

// execute executes a run, with a folder next to its own for each place. It returns the reason where its engine cannot
// give an example of the plan, which is no error.
func execute(ctx context.Context, c runner.Config) (reason string, err error) {
	c.Tool, c.Volatile = result.Tool{Name: "dmgbench", Version: "example"}, true
	images := report.Where(c.Plan.Cases(), func(c plan.Case) bool { return !c.Baseline })
	refused := runner.UnsupportedCases(c.Plan, c.Engine)
	isSimulated := c.Engine.Info().Name == engine.Simulated
	switch {
	case len(refused) > 0 && len(refused) >= len(images):
		return refused[0].Err.What, nil
	case isSimulated && len(c.Plan.Uses) > 0:
		return "advice", nil // it would follow from the formula
	}
	for _, place := range c.Plan.Places() {
		path := c.Out + "-" + place
		c.Places = append(c.Places, runner.Place{Name: place, Path: path})
		if err := os.Mkdir(path, 0o755); err != nil {
			return "", err
		}
	}
	outcome, err := runner.Run(ctx, c)
	// Who is asked for another number of processors gives one more each time, which the plans ask for in this order.
	for cpus := 1; err == nil && outcome.Status == runner.StatusPaused && cpus < 100; cpus++ {
		c.Host.CPUs = cpus
		outcome, err = runner.Resume(ctx, c.Out, c)
	}
	switch {
	case err != nil || outcome.Status == runner.StatusDone:
		return "", err
	case isSimulated: // it has no contents to verify
		return outcome.Status, nil
	}
	return "", fmt.Errorf("executing the example: %s: %s", outcome.Status, outcome.Message)
}

// writeReport writes the report of a run folder to path, with the charting library as a file next to it. The digest
// in the policy of a report allows the library inside of a page only.
func writeReport(ctx context.Context, run, path string) error {
	if _, err := program(ctx, "report", run); err != nil {
		return err
	}
	page, err := os.ReadFile(filepath.Join(run, result.ReportFile))
	if err != nil {
		return err
	}
	page = bytes.Replace(page, []byte("<script>"+echarts.Script), []byte(`<script src="`+library+`">`), 1)
	page = bytes.Replace(page, []byte("script-src "), []byte("script-src 'self' file: "), 1)
	err = writeFile(filepath.Join(filepath.Dir(path), library), []byte(echarts.Script))
	return cmp.Or(err, writeFile(path, page))
}

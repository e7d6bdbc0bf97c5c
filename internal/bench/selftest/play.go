package selftest

import (
	"context"
	"fmt"
	"hash/fnv"
	"math"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"time"

	"dmgbench/internal/analysis"
	"dmgbench/internal/bench/engine/simulated"
	"dmgbench/internal/bench/runner"
	"dmgbench/internal/plan"
	"dmgbench/internal/result"
	"dmgbench/internal/system/clock"
)

// goldSizes are the sixteen sizes of the gold standard set, in bytes.
var goldSizes = []int64{2e6, 4e6, 6e6, 8e6, 10e6, 20e6, 40e6, 60e6, 80e6, 100e6,
	200e6, 400e6, 600e6, 800e6, 1000e6, 2000e6}

// oneCall are the gold standard's sizes that one call moves.
var oneCall = goldSizes[:15]

// fewSizes keep a simulated run quick, where rounds are studied and not files.
var fewSizes = []int64{10e6, 100e6, 400e6, 1000e6}

// fourFormats are the cases of the plans that claims are judged on.
var fourFormats = []string{"UDRW", "UDSB", "UDSP", "ASIF"}

// design is the part of a plan that studies vary; plan.toml.tmpl has the rest.
type design struct {
	// Nil is UDRW alone
	Formats []string
	// In bytes, ascending
	Sizes  []int64
	Sets   int
	Rounds int
	// Keys of [run] for rounds = "auto" instead of Rounds, TOML
	Auto   string
	Canary bool
	Read   bool
	// TOML
	Claims string
	// Of a choice between the formats by writing and, where that leaves several, by
	// reading; "": there is none
	Matters string
}

// sample names the files of a step: "20 of one size", "48 of 16 sizes".
func (d design) sample() string {
	n := len(d.Sizes) * d.Sets
	if len(d.Sizes) == 1 {
		return fmt.Sprintf("%d of one size", n)
	}
	return fmt.Sprintf("%d of 16 sizes", n)
}

// law reads a law, its lines separated by semicolons; those of this package are
// fixed.
func law(text string) simulated.Machine {
	m, err := simulated.Parse(strings.ReplaceAll(text, ";", "\n"))
	if err != nil {
		panic(fmt.Sprintf("reading a law of the selftest: %v", err))
	}
	return m
}

// The heads of laws: a device with latency and one without, which differ in
// their steps alone from case to case.
const (
	withLatency = "write = 5 GB/s;read = 6 GB/s;latency = 200 us;step = 20 ms;"
	noLatency   = "write = 5 GB/s;read = 5 GB/s;step = 20 ms;"
)

// trial is runs of one plan under one law, which differ in their seed alone.
type trial struct {
	design design
	law    simulated.Machine
	runs   int
	// Of the runs; the number of each is added
	seed []any
	// Sessions that make a run; 0 is one
	pooled int
	// The number of the session is that of the run, not 1
	varied bool
}

// play plays the runs of a trial, and returns their analyzed results in order,
// without samples. After an error there are none.
func (x *exam) play(t trial) []*result.Result {
	out := make([]*result.Result, t.runs)
	x.repeat(t.design, t.runs, t.seed, func(ctx context.Context, p *plan.Plan, seed uint64, i int) (err error) {
		first := 1
		if t.varied {
			first = i
		}
		sessions := make([]*result.Result, max(t.pooled, 1))
		for k := range sessions {
			if sessions[k], err = x.measure(ctx, p, t.law, seed, first+k); err != nil {
				return err
			}
		}
		r := sessions[0]
		if len(sessions) > 1 {
			if r, err = result.Pool(sessions); err != nil {
				return err
			}
		}
		err = analysis.Analyze(p, r, analysis.Options{})
		for c := range r.Cases {
			r.Cases[c].Steps = nil // the samples of all runs would fill the memory
		}
		out[i] = r
		return err
	})
	if x.err != nil {
		return nil
	}
	return out
}

// repeat calls do with numbers from 0 to n-1 on all processors, with the plan
// of a design and a seed that is made of names and the number. What is done
// must depend on these alone. The first error ends the exam.
func (x *exam) repeat(d design, n int, names []any,
	do func(ctx context.Context, p *plan.Plan, seed uint64, i int) error,
) {
	p, problems := plan.Parse("selftest", []byte(render("plan.toml.tmpl", d)))
	if problems != nil && x.err == nil {
		x.err = fmt.Errorf("reading a plan of the selftest: %w", problems)
	}
	if x.err != nil {
		return
	}
	ctx, cancel := context.WithCancelCause(x.ctx)
	defer cancel(nil)
	var wg sync.WaitGroup
	free := make(chan struct{}, runtime.GOMAXPROCS(0))
	for i := range n {
		free <- struct{}{}
		wg.Go(func() {
			defer func() { <-free }()
			if ctx.Err() != nil {
				return
			}
			h := fnv.New64a()
			fmt.Fprint(h, x.seed, append(names[:len(names):len(names)], i))
			if err := do(ctx, p, h.Sum64(), i); err != nil {
				cancel(err)
			}
		})
	}
	wg.Wait()
	x.err = context.Cause(ctx)
}

// epoch is the time of day at which every simulated run starts.
var epoch = time.Date(2026, 3, 23, 9, 0, 0, 0, time.UTC)

// measure takes a plan through the whole program on the simulated device, as
// one session: runner, journal, folding. Only the device and its clock are not
// real. The result is not analyzed yet.
func (x *exam) measure(
	ctx context.Context, p *plan.Plan, m simulated.Machine, seed uint64, session int,
) (*result.Result, error) {
	dir := filepath.Join(x.dir, fmt.Sprint(x.next.Add(1)))
	defer os.RemoveAll(dir)
	v := clock.NewVirtual(epoch.AddDate(0, 0, session))
	dev, err := simulated.New(m, v, seed, session)
	if err != nil {
		return nil, err
	}
	out, err := runner.Run(ctx, runner.Config{Plan: p, Tool: result.Tool{Name: "dmgbench", Version: "selftest"},
		Out: dir, Engine: dev, Why: dev.Simulated(), Clock: v, Volatile: true})
	if err != nil {
		return nil, err
	}
	rd, err := result.OpenRun(dir)
	if err != nil {
		return nil, err
	}
	defer rd.Close()
	r, err := rd.Fold()
	if err == nil && out.Status != runner.StatusDone {
		err = fmt.Errorf("playing a plan on the simulated device: the run ended %s", out.Status)
	}
	return r, err
}

// estimate finds an estimate of the rate at which a case is written; kind is a
// part of the case's id. Its value is NaN where the result has none.
func estimate(r *result.Result, kind, name string) result.Estimate {
	for _, s := range r.Summaries {
		if s.Op != "write" || !strings.Contains(s.Case, kind) {
			continue
		}
		for _, e := range s.Estimates {
			if e.Name == name {
				return e
			}
		}
	}
	return result.Estimate{Value: math.NaN()}
}

// holds reports whether an interval is given and contains the truth.
func holds(ci *result.CI, truth float64) bool {
	return ci != nil && ci.Low <= truth && truth <= ci.High
}

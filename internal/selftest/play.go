package selftest

import (
	"context"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"dmgbench/internal/analysis"
	"dmgbench/internal/clock"
	"dmgbench/internal/engine/simulated"
	"dmgbench/internal/plan"
	"dmgbench/internal/result"
	"dmgbench/internal/runner"
)

// epoch is the time of day at which every simulated run starts.
var epoch = time.Date(2026, 3, 23, 9, 0, 0, 0, time.UTC)

// stage is a temporary folder for run folders.
type stage struct {
	dir  string
	next atomic.Int64
}

// newStage takes memory instead of a disk where the system has a folder for
// that.
func newStage() (*stage, error) {
	var first error
	for _, base := range []string{"/dev/shm", os.TempDir()} {
		dir, err := os.MkdirTemp(base, "dmgbench-selftest-")
		if err == nil {
			return &stage{dir: dir}, nil
		}
		first = err
	}
	return nil, fmt.Errorf("making a folder for simulated runs: %w", first)
}

func (s *stage) close() error { return os.RemoveAll(s.dir) }

// play takes a plan through the whole program on the simulated device, as one
// session: runner, journal, folding, analysis. Only the device and its clock
// are not real, and the robustness of verdicts is left out.
func (s *stage) play(
	ctx context.Context, p *plan.Plan, m simulated.Machine, seed uint64, session int,
) (*result.Result, error) {
	r, err := s.measured(ctx, p, m, seed, session)
	if err != nil {
		return nil, err
	}
	return r, analysis.Analyze(p, r, analysis.Options{SkipRobustness: true})
}

// measured is play without the analysis, for runs that are pooled or compared
// first.
func (s *stage) measured(
	ctx context.Context, p *plan.Plan, m simulated.Machine, seed uint64, session int,
) (*result.Result, error) {
	dir := filepath.Join(s.dir, fmt.Sprint(s.next.Add(1)))
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
	recs, err := rd.Journal()
	if err != nil {
		return nil, err
	}
	r, err := result.Fold(recs)
	if err == nil && out.Status != runner.StatusDone {
		err = fmt.Errorf("playing a plan on the simulated device: the run ended %s: %s", out.Status, reasonOf(r))
	}
	return r, err
}

func reasonOf(r *result.Result) string {
	for _, c := range r.Cases {
		if c.Reason != "" {
			return c.Reason
		}
	}
	return "no reason given"
}

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

// observe plays the runs of a trial on all processors, and reports what see
// makes of each, in their order.
func observe[T any](ctx context.Context, x *exam, t trial, see func(*result.Result) T) ([]T, error) {
	p, err := t.design.plan()
	if err != nil {
		return nil, err
	}
	out := make([]T, t.runs)
	err = each(ctx, t.runs, func(ctx context.Context, i int) error {
		seed, first := x.runSeed(append(t.seed[:len(t.seed):len(t.seed)], i)...), 1
		if t.varied {
			first = i
		}
		runs := make([]*result.Result, max(t.pooled, 1))
		for k := range runs {
			var err error
			if runs[k], err = x.stage.measured(ctx, p, t.law, seed, first+k); err != nil {
				return err
			}
		}
		r := runs[0]
		if len(runs) > 1 {
			var err error
			if r, err = result.Pool(runs); err != nil {
				return err
			}
		}
		if err := analysis.Analyze(p, r, analysis.Options{SkipRobustness: true}); err != nil {
			return err
		}
		out[i] = see(r)
		return nil
	})
	return out, err
}

// count plays the runs of a trial, and adds what see reports of each to the
// shares, in their order.
func (x *exam) count(ctx context.Context, t trial, see func(*result.Result) []bool, shares ...*share) error {
	all, err := observe(ctx, x, t, see)
	if err != nil {
		return err
	}
	for _, hits := range all {
		for k, s := range shares {
			s.add(hits[k])
		}
	}
	return nil
}

// each does n independent things on all processors, and ends at the first
// error. What is done must depend on its number alone.
func each(ctx context.Context, n int, do func(ctx context.Context, i int) error) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	var wg sync.WaitGroup
	var next atomic.Int64
	for range min(runtime.GOMAXPROCS(0), n) {
		wg.Go(func() {
			for ctx.Err() == nil {
				i := int(next.Add(1)) - 1
				if i >= n {
					return
				}
				if err := do(ctx, i); err != nil {
					cancel(err)
				}
			}
		})
	}
	wg.Wait()
	return context.Cause(ctx)
}

// estimateOf finds an estimate of the rate of a case that is written (or read);
// kind is a part of the case's id.
func estimateOf(r *result.Result, kind, op, name string) (result.Estimate, bool) {
	for _, s := range r.Summaries {
		if s.Op != op || !strings.Contains(s.Case, kind) {
			continue
		}
		for _, e := range s.Estimates {
			if e.Name == name {
				return e, !math.IsNaN(e.Value)
			}
		}
	}
	return result.Estimate{}, false
}

// cover is whether an estimate of writing has an interval, and whether that
// contains the truth.
type cover struct {
	given, holds bool
	ci           result.CI
}

func coverOf(r *result.Result, kind, name string, truth float64) cover {
	e, ok := estimateOf(r, kind, "write", name)
	if !ok || e.CI == nil {
		return cover{}
	}
	return cover{true, e.CI.Low <= truth && truth <= e.CI.High, *e.CI}
}

// coversOf is the cover of each of the names, in their order.
func coversOf(r *result.Result, kind string, names []string, truth map[string]float64) []cover {
	out := make([]cover, len(names))
	for k, name := range names {
		out[k] = coverOf(r, kind, name, truth[name])
	}
	return out
}

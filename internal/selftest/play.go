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

// newStage takes memory instead of a disk where the system has a folder for that.
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
// session: runner, journal, folding, analysis. Only the device and its clock are
// not real, and how far verdicts depend on the way of analysing is left out.
func (s *stage) play(ctx context.Context, p *plan.Plan, m simulated.Machine, seed uint64, session int) (*result.Result, error) {
	r, err := s.measured(ctx, p, m, seed, session)
	if err != nil {
		return nil, err
	}
	return r, analysis.Analyze(p, r, analysis.Options{SkipRobustness: true})
}

// measured is play without the analysis, for runs that are pooled or compared first.
func (s *stage) measured(ctx context.Context, p *plan.Plan, m simulated.Machine, seed uint64, session int) (*result.Result, error) {
	dir := filepath.Join(s.dir, fmt.Sprint(s.next.Add(1)))
	defer os.RemoveAll(dir)
	v := clock.NewVirtual(epoch.AddDate(0, 0, session))
	dev, err := simulated.New(m, v, seed, session)
	if err != nil {
		return nil, err
	}
	out, err := runner.Run(ctx, runner.Config{Plan: p, Tool: result.Tool{Name: "dmgbench", Version: "selftest"}, Out: dir, Engine: dev,
		Why: dev.Simulated(), Clock: v, Volatile: true})
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

// sessions plays a plan in n sessions and analyses them, pooled where n is more than one.
func (x *Exam) sessions(ctx context.Context, p *plan.Plan, m simulated.Machine, n int, names ...any) (*result.Result, error) {
	runs := make([]*result.Result, n)
	for k := range runs {
		var err error
		if runs[k], err = x.stage.measured(ctx, p, m, x.seed(names...), k+1); err != nil {
			return nil, err
		}
	}
	r := runs[0]
	if n > 1 {
		var err error
		if r, err = result.Pool(runs); err != nil {
			return nil, err
		}
	}
	return r, analysis.Analyze(p, r, analysis.Options{SkipRobustness: true})
}

func reasonOf(r *result.Result) string {
	for _, c := range r.Cases {
		if c.Reason != "" {
			return c.Reason
		}
	}
	return "no reason given"
}

// each does n independent things on all processors, and ends at the first error.
// What is done must depend on its number alone.
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

// goldSizes are the sixteen sizes of the gold standard set, in bytes.
var goldSizes = []int64{2e6, 4e6, 6e6, 8e6, 10e6, 20e6, 40e6, 60e6, 80e6, 100e6, 200e6, 400e6, 600e6, 800e6, 1000e6, 2000e6}

// design is the part of a plan that studies vary.
type design struct {
	formats []string
	sizes   []int64
	sets    int
	rounds  int
	auto    string // keys of [run] for rounds = "auto" instead of rounds, TOML
	canary  bool
	read    bool
	claims  string // TOML
}

func (d design) plan() (*plan.Plan, error) {
	quoted := func(s []string) string { return `"` + strings.Join(s, `", "`) + `"` }
	var sizes []string
	for _, n := range d.sizes {
		sizes = append(sizes, fmt.Sprintf("%d B", n))
	}
	read := ""
	if d.read {
		read = `{ do = "read", phase = "new" },`
	}
	rounds := fmt.Sprintf("rounds = %d", d.rounds)
	if d.auto != "" {
		rounds = "rounds = \"auto\"\n" + d.auto
	}
	text := fmt.Sprintf(`schema = 1
title = "A plan of the selftest"
[image]
size = "200 GB"
filesystem_preference = ["exFAT"]
[run]
%s
canary = %v
baseline = false
[matrix]
format = [%s]
[files.all]
sizes = [%s]
sets = %d
[[protocol]]
steps = [{ do = "create" }, { do = "attach" }, { do = "write", phase = "new" }, %s { do = "detach" }]
%s`, rounds, d.canary, quoted(d.formats), quoted(sizes), d.sets, read, d.claims)
	p, problems := plan.Parse("selftest", []byte(text))
	if problems != nil {
		return nil, fmt.Errorf("reading a plan of the selftest: %w", problems)
	}
	return p, nil
}

// files is how many files a step times.
func (d design) files() int { return len(d.sizes) * d.sets }

// lawOf reads a law that is written in this package, its lines set apart by semicolons.
func lawOf(text string) simulated.Machine {
	m, err := simulated.Parse(strings.ReplaceAll(text, ";", "\n"))
	if err != nil {
		panic("a law of the selftest is none: " + err.Error())
	}
	return m
}

// estimateOf finds an estimate of a case's written or read rate.
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

// verdictOf finds the verdict of a claim.
func verdictOf(r *result.Result, id string) string {
	for _, c := range r.Claims {
		if c.ID == id {
			return c.Verdict
		}
	}
	return ""
}

// decided reports whether a verdict takes a side.
func decided(verdict string) bool { return verdict == result.Holds || verdict == result.DoesNotHold }

package runner_test

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"runtime/debug"
	"slices"
	"strconv"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"dmgbench/internal/analysis"
	"dmgbench/internal/bench/engine/inprocess"
	"dmgbench/internal/bench/runner"
	"dmgbench/internal/plan"
	"dmgbench/internal/result"
	"dmgbench/internal/system/clock"
	"dmgbench/plans"
)

// TestMain lets garbage grow: collecting it was a fourth of the time of these tests.
func TestMain(m *testing.M) {
	debug.SetGCPercent(400)
	os.Exit(m.Run())
}

// skipping is the machine's clock, except that nobody waits: a sleep moves it on
// by its length at once. Work takes the time it takes.
type skipping struct {
	clock.Real
	slept *atomic.Int64
}

func newSkipping() skipping { return skipping{clock.NewReal(), new(atomic.Int64)} }

func (c skipping) ahead() time.Duration { return time.Duration(c.slept.Load()) }
func (c skipping) Now() time.Duration   { return c.Real.Now() + c.ahead() }
func (c skipping) Wall() time.Time      { return c.Real.Wall().Add(c.ahead()) }
func (c skipping) Sleep(ctx context.Context, d time.Duration) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	c.slept.Add(int64(max(d, 0)))
	return nil
}

// shipped is one shipped plan, run small.
type shipped struct {
	t      *testing.T
	p      *plan.Plan // as executed
	c      runner.Config
	dir    string // everything the run may write lies in it
	pauses []result.Pause
	r      *result.Result
	twice  bool // analysis and reports are made twice
}

// long is set where every cycle, canary and report of every plan is wanted.
var long = os.Getenv("DMGBENCH_LONG") != ""

// loadShipped gives the shipped plan of that name. Its hundreds of cycles are
// turned into a dozen, unless long tests are wanted; claims and tables that name a later
// one get the last.
func loadShipped(t *testing.T, name string) *plan.Plan {
	t.Helper()
	text, ok := plans.Get(name)
	require.True(t, ok)
	if name == "aging" && !long {
		short := regexp.MustCompile(`\b(times|cycle)( += )(\d{3}|[2-9]\d)\b`).ReplaceAll(text, []byte("${1}${2}11"))
		require.NotEqual(t, text, short)
		text = short
	}
	p, problems := plan.Parse(name, text)
	if problems != nil {
		require.Empty(t, problems.Errors())
	}
	return p
}

// runShipped runs a plan with the smallest files, going on behind every pause as
// a user would who does what it asks for.
func runShipped(t *testing.T, name string, rounds int) *shipped {
	t.Helper()
	published := loadShipped(t, name)
	thorough := long || slices.Contains([]string{"quick", "udrw-sparse-2024"}, name)
	if !thorough {
		published.Run.Canary = false // it is the same for every plan, and writes more than most
		shrink(published)
	}
	sets := 1
	if deletesSets(published) {
		sets = 2 // of one set nothing would be left
	}
	p, _, err := published.Apply(plan.Overrides{Sets: sets, Scale: 0.0001, Rounds: rounds})
	require.NoError(t, err)
	s := &shipped{t: t, p: p, dir: t.TempDir(), twice: thorough}
	clk := newSkipping()
	s.c = runner.Config{
		Plan: p, Tool: result.Tool{Name: "dmgbench", Version: "test"}, Out: filepath.Join(s.dir, "run"),
		Engine: &inprocess.Engine{Now: clk.Wall, Passphrase: []byte("of one test"), Iterations: 1000}, Why: "a test", Clock: clk, Memory: 256 << 20, StateDir: filepath.Join(s.dir, "state"),
		Volatile: true, // no test cuts the power
	}
	for _, place := range placesOf(p) {
		path := filepath.Join(s.dir, "place-"+place)
		require.NoError(t, os.Mkdir(path, 0o755))
		s.c.Places = append(s.c.Places, runner.Place{Name: place, Path: path})
	}
	out, err := runner.Run(t.Context(), s.c)
	for n := 0; err == nil && out.Status == runner.StatusPaused && n < 100; n++ {
		s.obey()
		out, err = runner.Resume(t.Context(), s.c.Out, s.c)
	}
	require.NoError(t, err)
	want := runner.StatusDone
	if name == "backends" {
		want = runner.StatusSkipped // every image was skipped
	}
	require.Equal(t, want, out.Status, out.Message)
	s.r = s.analysed()
	return s
}

// shrink leaves a plan every case and step, and fewer and smaller files. Sets whose files the plan
// tells apart, by size or by rank, stay as they are.
func shrink(p *plan.Plan) {
	for i := range p.Inputs {
		p.Inputs[i].Size /= 16
	}
	if text, _ := plans.Get(p.Name); bytes.Contains(text, []byte("file_size")) || bytes.Contains(text, []byte("largest = ")) {
		return
	}
	for _, set := range p.Files {
		for i := range set.Parts {
			part := &set.Parts[i]
			part.Count = min(part.Count, 10)
			if n := len(part.Sizes); n > 4 {
				part.Sizes = append(part.Sizes[:3:3], part.Sizes[n-1])
			}
		}
	}
}

func deletesSets(p *plan.Plan) bool {
	return slices.ContainsFunc(p.Cases(), func(c plan.Case) bool {
		return slices.ContainsFunc(unrolled(c.Steps), func(st cycled) bool { return st.LastSets > 0 })
	})
}

// obey does what the last pause asks for.
func (s *shipped) obey() {
	recs := s.journal()
	i := slices.IndexFunc(recs, func(r result.Record) bool { return r.Pause != nil && r.Seq > s.paused() })
	require.GreaterOrEqual(s.t, i, 0, "a paused run says why")
	pause := *recs[i].Pause
	s.pauses = append(s.pauses, pause)
	for _, m := range s.p.Manual {
		if n, err := strconv.Atoi(pause.Value); err == nil && m.Name == pause.Key && m.Check == "cpus" {
			s.c.Host.CPUs = n
		}
	}
}

// paused is the number of the record of the last pause that was obeyed.
func (s *shipped) paused() int {
	left := len(s.pauses)
	for _, rec := range s.journal() {
		if left == 0 {
			break
		}
		if rec.Pause != nil {
			if left--; left == 0 {
				return rec.Seq
			}
		}
	}
	return 0
}

func (s *shipped) journal() []result.Record {
	rd, err := result.OpenRun(s.c.Out)
	require.NoError(s.t, err)
	defer rd.Close()
	recs, err := rd.Journal()
	require.NoError(s.t, err)
	return recs
}

// analysed is the result as the journal gives it; twice the same.
func (s *shipped) analysed() *result.Result {
	var r *result.Result
	recs := s.journal()
	s.same("the analysis", func(w io.Writer) error {
		var err error
		r, err = result.Fold(recs)
		require.NoError(s.t, err)
		require.NoError(s.t, analysis.Analyze(s.p, r, analysis.Options{}))
		return json.NewEncoder(w).Encode(r)
	})
	return r
}

// same is what f writes; twice the same, where that is tried.
func (s *shipped) same(what string, f func(io.Writer) error) string {
	var one, two bytes.Buffer
	require.NoError(s.t, f(&one), what)
	if s.twice {
		require.NoError(s.t, f(&two), what)
		require.True(s.t, bytes.Equal(one.Bytes(), two.Bytes()), "%s gives the same bytes twice", what)
	}
	return one.String()
}

// placesOf are the named places of a plan, of its transfers too.
func placesOf(p *plan.Plan) []string {
	var out []string
	add := func(name string) {
		if name != "" && !slices.Contains(out, name) {
			out = append(out, name)
		}
	}
	for _, c := range p.Cases() {
		add(c.Settings.Place)
		for _, st := range unrolled(c.Steps) {
			add(st.Place)
		}
	}
	return out
}

// cycled is a step with the cycle it is in.
type cycled struct {
	plan.Step
	Cycle int
}

// unrolled lists the steps of a case in the order in which they are journalled:
// repeats turn by turn, of a parallel block itself and then its parts.
func unrolled(steps []plan.Step) []cycled {
	var out []cycled
	for _, st := range steps {
		switch st.Do {
		case "repeat":
			for turn := range st.Times {
				for _, in := range unrolled(st.Steps) {
					out = append(out, cycled{in.Step, turn + 1})
				}
			}
		case "parallel":
			out = append(out, cycled{st, 0})
			out = append(out, unrolled(st.Steps)...)
		default:
			out = append(out, cycled{st, 0})
		}
	}
	return out
}

package analysis

import (
	"encoding/json"
	"fmt"
	"math"
	"testing"
	"time"

	"github.com/google/jsonschema-go/jsonschema"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"dmgbench/internal/plan"
	"dmgbench/internal/result"
)

const comparePlan = `
schema = 1
title = "Compare"
[image]
size = "1 GB"
[matrix]
format = ["UDSB", "UDRW"]
[files.few]
sizes = ["2 MB", "4 MB", "8 MB"]
sets = 2
[[protocol]]
steps = [
  { do = "create" },
  { do = "attach" },
  { do = "write", phase = "new", files = "few" },
  { do = "read", phase = "new" },
]
[run]
rounds = 3
baseline = false
canary = false
`

// sessionsOf plays one run for each factor, which is what its session was like.
func sessionsOf(t require.TestingT, name string, noise float64, factors ...float64) []*result.Result {
	p := planOf(t, comparePlan)
	var out []*result.Result
	for i, f := range factors {
		l := steady(map[string]float64{"UDSB": 5e9 * f, "UDRW": 2e9 * f}, 0)
		l.latency, l.idle = 0, 0
		l.rate = func(m moment) float64 {
			m.cycle = len(name)*40 + i // another draw of noise for every run
			return map[string]float64{"UDSB": 5e9, "UDRW": 2e9}[m.format()] * f * (1 + noise*m.noise(name))
		}
		r := play(p, 3, l)
		r.Run, r.Plan = fmt.Sprintf("%s-%d", name, i+1), result.PlanRef{Name: "compare", Digest: "d1"}
		r.Sessions[0].Host = result.Host{Model: "Mac16,11", CPU: "Apple M4 Pro", OS: "darwin", OSVersion: "26." + name, OSBuild: "25" + name}
		out = append(out, r)
	}
	return out
}

func compared(t require.TestingT, o CompareOptions, runs ...[]*result.Result) *Comparison {
	var all []*result.Result
	for _, r := range runs {
		all = append(all, r...)
	}
	c, err := Compare(all, o)
	require.NoError(t, err)
	return c
}

func TestCompareSeesARealChange(t *testing.T) {
	a, b := sessionsOf(t, "4", 0.01, 1, 1.01, 0.99), sessionsOf(t, "5", 0.01, 0.85, 0.86, 0.84)
	c := compared(t, CompareOptions{By: []string{"os"}}, a, b)
	require.Len(t, c.Rows, 4)
	require.Len(t, c.Sides, 2)
	assert.Equal(t, "macOS 26.4 (254)", c.Sides[0].Name)
	assert.Equal(t, 3, c.Sides[1].Sessions)
	for _, r := range c.Rows {
		assert.Equal(t, RowChanged, r.Status)
		assert.InDelta(t, 0.85, r.Ratio, 0.01)
		assert.True(t, r.CI.Low < 0.85 && 0.85 < r.CI.High)
		assert.Equal(t, perSession, r.CI.Unit)
		assert.Regexp(t, `^15 % slower \(1\d(\.\d)?–1\d(\.\d)? %\)$`, r.Effect)
		assert.True(t, r.Regressed)
	}
	assert.True(t, c.Regression)
	require.Len(t, c.Answers, 1)
	assert.Contains(t, c.Answers[0].Text, "worse in 4 of 4, most of all UD")
	require.Len(t, c.Differences, 1)
	assert.Equal(t, "os", c.Differences[0].Fact)

	// A change for the better is none that anybody has to be stopped for.
	back := compared(t, CompareOptions{By: []string{"os"}, Baseline: b[1].Run}, a, b)
	assert.False(t, back.Regression)
	assert.Equal(t, 4, back.Answers[0].Better)

	// 15 % are no regression past 20 %, and the interval does not clear 14 %.
	for _, threshold := range []float64{0.2, 0.1499} {
		assert.False(t, compared(t, CompareOptions{By: []string{"os"}, Threshold: threshold}, a, b).Regression, "%v", threshold)
	}
}

// With one session a side nobody knows how far sessions differ.
func TestCompareOneSessionASide(t *testing.T) {
	c := compared(t, CompareOptions{}, sessionsOf(t, "4", 0.01, 1), sessionsOf(t, "5", 0.01, 0.5))
	require.Len(t, c.Rows, 4)
	for _, r := range c.Rows {
		assert.Equal(t, RowSessionUnknown, r.Status)
		assert.Regexp(t, `^~ session effect unknown; seen: 50(\.\d)? % slower$`, r.Effect)
		assert.Nil(t, r.P)
		assert.Equal(t, roundsOfSessions, r.CI.Unit)
	}
	assert.False(t, c.Regression)
	assert.Contains(t, c.Answers[0].Text, "undecided: too few sessions")
	assert.True(t, c.Undecided)
}

func TestCompareFewSessions(t *testing.T) {
	for _, k := range []struct {
		a, b   int
		status string
	}{{1, 1, RowSessionUnknown}, {1, 2, RowSessionUnknown}, {2, 2, RowChanged}, {1, 3, RowChanged}, {3, 1, RowChanged}, {3, 3, RowChanged}} {
		fa, fb := []float64{1, 1.002, 0.999}[:k.a], []float64{0.7, 0.701, 0.7005}[:k.b]
		c := compared(t, CompareOptions{By: []string{"os"}}, sessionsOf(t, "4", 0, fa...), sessionsOf(t, "5", 0, fb...))
		for _, r := range c.Rows {
			assert.Equal(t, k.status, r.Status, "%d against %d: %s", k.a, k.b, r.Effect)
			assert.Len(t, r.Base.Sessions, k.a)
			assert.Equal(t, k.status == RowChanged && (k.a < 3 || k.b < 3), len(r.Warnings) > 0)
		}
	}
}

// A regression is excluded where every interval over sessions ends before the threshold.
func TestCompareUndecided(t *testing.T) {
	for _, k := range []struct {
		name                string
		before, after       []float64
		threshold           float64
		undecided, regessed bool
	}{
		{"the same", []float64{1, 1.001, 0.999}, []float64{1, 1.001, 0.999}, 0.05, false, false},
		{"worse, and past the threshold", []float64{1, 1.001, 0.999}, []float64{0.8, 0.801, 0.799}, 0.05, false, true},
		{"worse, and the interval contains the threshold", []float64{1, 1.001, 0.999}, []float64{0.8, 0.801, 0.799}, 0.2, true, false},
		{"worse by less than the threshold", []float64{1, 1.001, 0.999}, []float64{0.8, 0.801, 0.799}, 0.5, false, false},
		{"better", []float64{1, 1.001, 0.999}, []float64{1.3, 1.301, 1.299}, 0.05, false, false},
		{"the sessions differ", []float64{1, 1.2, 0.8}, []float64{1, 1.2, 0.8}, 0.05, true, false},
		{"one session", []float64{1}, []float64{1}, 0.05, true, false},
	} {
		c := compared(t, CompareOptions{By: []string{"os"}, Threshold: k.threshold}, sessionsOf(t, "4", 0.0001, k.before...), sessionsOf(t, "5", 0.0001, k.after...))
		assert.Equal(t, k.undecided, c.Undecided, k.name)
		assert.Equal(t, k.regessed, c.Regression, k.name)
	}
	a, b := sessionsOf(t, "4", 0.0001, 1, 1.001, 0.999), sessionsOf(t, "5", 0.0001, 1, 1.001, 0.999)
	for _, r := range b {
		r.Cases = r.Cases[:1]
	}
	c := compared(t, CompareOptions{By: []string{"os"}}, a, b)
	assert.True(t, c.Undecided, "a case that one side lacks is not compared")
	for _, u := range c.Unpaired {
		assert.True(t, u.Undecided, u.Reason)
	}
}

// Sides that are named take several runs each; --workers is a fact of its own.
func TestCompareSides(t *testing.T) {
	a, b := sessionsOf(t, "4", 0.01, 1, 1.01), sessionsOf(t, "5", 0.01, 1, 1.01)
	for _, r := range b {
		for i := range r.Cases {
			for k := range r.Cases[i].Steps {
				r.Cases[i].Steps[k].Workers = 2
			}
		}
	}
	c := compared(t, CompareOptions{Sides: []string{"before", "before", "after", "after"}}, a, b)
	require.Len(t, c.Sides, 2)
	assert.Equal(t, []any{"before", 2, "after", 2}, []any{c.Sides[0].Name, c.Sides[0].Sessions, c.Sides[1].Name, c.Sides[1].Sessions})
	facts := map[string][][]string{}
	for _, d := range c.Differences {
		facts[d.Fact] = d.Values
	}
	assert.Equal(t, [][]string{{"1 worker"}, {"2 workers"}}, facts["workers"])
	assert.NotContains(t, facts, "scale")
}

// One session against two: the ratio is over sessions, which no interval over rounds is of.
func TestCompareHasNoIntervalOfAnotherUnit(t *testing.T) {
	for _, k := range [][2][]float64{{{1}, {0.7, 0.9}}, {{1, 1.3}, {0.7}}} {
		c := compared(t, CompareOptions{By: []string{"os"}}, sessionsOf(t, "4", 0.01, k[0]...), sessionsOf(t, "5", 0.01, k[1]...))
		require.Len(t, c.Rows, 4)
		for _, r := range c.Rows {
			require.Equal(t, RowSessionUnknown, r.Status)
			assert.InEpsilon(t, r.Value.Value/r.Base.Value, r.Ratio, 1e-12)
			assert.Nil(t, r.CI)
		}
	}
}

// A run resumed at once on the same boot has not drawn another session.
func TestCompareShortPause(t *testing.T) {
	begin := time.Date(2026, 3, 1, 9, 0, 0, 0, time.UTC)
	runOf := func(gap time.Duration, boot string) *result.Result {
		r := sessionsOf(t, "4", 0.01, 1)[0]
		r.Sessions[0].Started, r.Sessions[0].Finished, r.Sessions[0].Boot = begin, begin.Add(time.Hour), "one"
		s := r.Sessions[0]
		s.Index, s.Boot, s.Started = 2, boot, s.Finished.Add(gap)
		r.Sessions = append(r.Sessions, s)
		return r
	}
	count := func(r *result.Result) int {
		names := map[string]bool{}
		for _, n := range sessionNames(r) {
			names[n] = true
		}
		return len(names)
	}
	for _, k := range []struct {
		gap   time.Duration
		boot  string
		count int
	}{{time.Minute, "one", 1}, {time.Minute, "two", 2}, {time.Hour, "one", 2}, {10 * time.Minute, "one", 1},
		{10*time.Minute + 1, "one", 2}, {-time.Second, "one", 1}, {-time.Second - 1, "one", 2}} {
		assert.Equal(t, k.count, count(runOf(k.gap, k.boot)), "boot %s after %v", k.boot, k.gap)
	}
}

func TestCompareUnpaired(t *testing.T) {
	a, b := sessionsOf(t, "4", 0, 1)[0], sessionsOf(t, "5", 0, 1)[0]
	reasons := func(change func(*result.Result)) (out map[string]int) {
		var c2 result.Result
		raw, err := json.Marshal(b)
		require.NoError(t, err)
		require.NoError(t, json.Unmarshal(raw, &c2))
		change(&c2)
		c := compared(t, CompareOptions{}, []*result.Result{a, &c2})
		out = map[string]int{}
		for _, u := range c.Unpaired {
			out[u.Reason]++
		}
		assert.GreaterOrEqual(t, len(c.Rows)+len(c.Unpaired), 4, "nothing is dropped")
		return out
	}
	each := func(do string, f func(*result.Step)) func(*result.Result) {
		return func(r *result.Result) {
			for i := range r.Cases {
				for k := range r.Cases[i].Steps {
					if st := &r.Cases[i].Steps[k]; st.Do == do {
						f(st)
					}
				}
			}
		}
	}
	for want, change := range map[string]func(*result.Result){
		"not the same files: 2 × 2 MB, 2 × 4 MB, 2 × 8 MB in 4-1, 2 × 2 MB, 2 × 4 MB, 1 × 8 MB in 5-1": each("write", func(st *result.Step) {
			st.Samples = st.Samples[:len(st.Samples)-1]
			for i := range st.Samples {
				st.Samples[i].Bytes = []int64{2e6, 2e6, 4e6, 4e6, 8e6}[i]
			}
		}),
		"not flushed alike: unknown in 4-1, full in 5-1":    each("write", func(st *result.Step) { st.Sync = &result.Achieved{Asked: "full", Achieved: "full"} }),
		"not cached alike: unknown in 4-1, buffered in 5-1": each("read", func(st *result.Step) { st.Cache = &result.Achieved{Achieved: "buffered"} }),
		"1 worker in 4-1, 4 workers in 5-1":                 each("read", func(st *result.Step) { st.Workers = 4 }),
		"the case was failed in run 5-1: no space":          func(r *result.Result) { r.Cases[0].Status, r.Cases[0].Reason = result.Failed, "no space" },
		"not measured in 5-1":                               func(r *result.Result) { r.Cases[0].ID = "other" },
		"not measured in 4-1":                               func(r *result.Result) { r.Cases[0].ID = "other" },
	} {
		assert.NotZero(t, reasons(change)[want], want)
	}
}

func TestCompareRefuses(t *testing.T) {
	a, b := sessionsOf(t, "4", 0, 1), sessionsOf(t, "5", 0, 1)
	for want, try := range map[string]func() (*Comparison, error){
		"one run is not compared with anything": func() (*Comparison, error) { return Compare(nil, CompareOptions{}) },
		"one run is not compared":               func() (*Comparison, error) { return Compare(a, CompareOptions{}) },
		`all runs are "Apple M4 Pro"`:           func() (*Comparison, error) { return Compare(append(a, b...), CompareOptions{By: []string{"cpu"}}) },
		`no run has a "colour"`:                 func() (*Comparison, error) { return Compare(append(a, b...), CompareOptions{By: []string{"colour"}}) },
		"is given twice":                        func() (*Comparison, error) { return Compare(append(a, a[0], b[0]), CompareOptions{By: []string{"os"}}) },
		`"4-1" is given twice, as "x" and in "y"`: func() (*Comparison, error) {
			pooled := *b[0]
			pooled.Runs = []result.PooledRun{{Run: a[0].Run}}
			return Compare([]*result.Result{a[0], &pooled}, CompareOptions{Names: []string{"x", "y"}})
		},
		"is neither a run nor a side": func() (*Comparison, error) { return Compare(append(a, b...), CompareOptions{Baseline: "x"}) },
		"is not a share between":      func() (*Comparison, error) { return Compare(append(a, b...), CompareOptions{Threshold: 2}) },
		"was measured": func() (*Comparison, error) {
			return Compare(append(a, b...), CompareOptions{Ops: []plan.Quantity{"compact_time"}})
		},
	} {
		_, err := try()
		require.ErrorIs(t, err, ErrCompare, want)
		assert.ErrorContains(t, err, want)
	}
}

// Cases of one run against each other: paired in the sessions they share.
func TestCompareCasesOfARun(t *testing.T) {
	one := compared(t, CompareOptions{By: []string{"format"}}, sessionsOf(t, "4", 0.01, 1))
	require.Len(t, one.Sides, 2)
	require.Len(t, one.Rows, 2)
	for _, r := range one.Rows {
		assert.Equal(t, "every case", r.Case)
		assert.Equal(t, RowChanged, r.Status)
		assert.Equal(t, perRound, r.CI.Unit)
		assert.InDelta(t, 0.4, r.Ratio, 0.02)
		assert.False(t, r.Regressed, "one session decides nothing")
	}
	// What the sessions were like cancels out.
	three := compared(t, CompareOptions{By: []string{"format"}}, sessionsOf(t, "4", 0.001, 1, 2, 0.5))
	for _, r := range three.Rows {
		assert.Equal(t, perSession, r.CI.Unit)
		assert.Less(t, r.CI.High/r.CI.Low, 1.02)
		assert.True(t, r.Regressed)
	}
}

// The verdict of a pooled result rests on its sessions, one of a single run on one.
func TestCompareClaims(t *testing.T) {
	with := func(name, verdict string, required bool, sessions int) *result.Result {
		r := sessionsOf(t, name, 0.01, 1)[0]
		r.Claims = []result.Claim{{ID: "k", Says: "it is so", Verdict: verdict, Required: required}}
		for i := range sessions {
			r.Runs = append(r.Runs, result.PooledRun{Run: fmt.Sprintf("%s-%d", name, i), First: 1, Last: 3})
		}
		return r
	}
	for _, k := range []struct {
		a, b                       string
		required                   bool
		sessions                   [2]int
		changed, regres, undecided bool
	}{
		{result.Holds, result.DoesNotHold, true, [2]int{3, 3}, true, true, false},
		{result.DoesNotHold, result.Holds, true, [2]int{3, 4}, true, true, false},
		{result.Holds, result.DoesNotHold, false, [2]int{3, 3}, true, false, false},
		{result.Holds, result.CannotTell, true, [2]int{3, 3}, false, false, true},
		{result.Holds, result.CannotTell, false, [2]int{3, 3}, false, false, false},
		{result.Holds, result.Holds, true, [2]int{3, 3}, false, false, false},
		{result.NotMeasured, result.DoesNotHold, true, [2]int{3, 3}, false, false, true},
		{result.NotMeasured, result.NotMeasured, true, [2]int{3, 3}, false, false, false},
		{result.Holds, result.DoesNotHold, true, [2]int{1, 1}, false, false, true},
		{result.Holds, result.DoesNotHold, true, [2]int{1, 3}, false, false, true},
		{result.Holds, result.DoesNotHold, true, [2]int{3, 2}, false, false, true},
	} {
		c := compared(t, CompareOptions{}, []*result.Result{with("4", k.a, k.required, k.sessions[0]), with("5", k.b, k.required, k.sessions[1])})
		require.Len(t, c.Claims, 1)
		assert.Equal(t, k.sessions[:], c.Claims[0].Sessions)
		assert.Equal(t, k.changed, c.Claims[0].Changed, "%s %s", k.a, k.b)
		assert.Equal(t, k.regres, c.Regression, "%s %s %v", k.a, k.b, k.required)
		assert.Equal(t, k.undecided, c.Claims[0].Undecided, "%s %s %v %v", k.a, k.b, k.required, k.sessions)
		assert.Equal(t, k.a != k.b, c.Claims[0].Text != "")
	}
}

// The claims of a side are judged on its pooled sessions, whatever one of them says by itself.
func TestCompareJudgesPooledSessions(t *testing.T) {
	const claim = `
[[claim]]
id = "k"
says = "UDSB is faster than UDRW"
by = "us"
scope = "any"
require = true
left = { write = { format = "UDSB" } }
right = { write = { format = "UDRW" } }
ratio = "> 1"
`
	p := planOf(t, comparePlan+claim)
	side := func(name string, udsb ...float64) (out []*result.Result) {
		for i, f := range udsb {
			l := steady(map[string]float64{"UDSB": f * 1e9, "UDRW": 1e9}, 0.001)
			r := play(p, 3, l)
			r.Run, r.Plan.Digest = fmt.Sprintf("%s-%d", name, i+1), p.Digest()
			r.Sessions[0].Host = result.Host{OSVersion: name}
			require.NoError(t, Analyze(p, r, Options{}))
			out = append(out, r)
		}
		return out
	}
	by := CompareOptions{By: []string{"os_version"}, Plans: map[string]*plan.Plan{p.Digest(): p}}
	lucky, unlucky := side("4", 1.2, 1, 1.1), side("5", 0.8, 1, 0.9)
	require.Equal(t, result.Holds, lucky[0].Claims[0].Verdict)
	require.Equal(t, result.DoesNotHold, unlucky[0].Claims[0].Verdict)
	c := compared(t, by, lucky, unlucky)
	require.Len(t, c.Claims, 1)
	assert.Equal(t, []string{result.CannotTell, result.CannotTell}, c.Claims[0].Verdicts, "as `report` judges the same runs")
	assert.False(t, c.Regression)

	c = compared(t, by, side("4", 1.2, 1.21, 1.19), side("5", 0.8, 0.81, 0.79))
	assert.Equal(t, []string{result.Holds, result.DoesNotHold}, c.Claims[0].Verdicts)
	assert.True(t, c.Claims[0].Changed)

	by.Plans = nil
	c = compared(t, by, side("4", 1.2, 1.21, 1.19), side("5", 0.8, 0.81, 0.79))
	assert.Equal(t, []string{result.CannotTell, result.CannotTell}, c.Claims[0].Verdicts)
	assert.Contains(t, c.Notes, "the claims on 4 are undecided: the plan of its runs is missing; give run folders, not their result.json alone")
}

func TestCommonVerdict(t *testing.T) {
	assert.Equal(t, result.CannotTell, commonVerdict([]string{result.Holds, result.DoesNotHold, result.Holds}))
	assert.Equal(t, result.CannotTell, commonVerdict([]string{result.CannotTell, result.Holds, result.NotMeasured}))
	assert.Equal(t, result.Holds, commonVerdict([]string{result.Holds, result.Holds, result.NotMeasured}))
	assert.Equal(t, result.CannotTell, commonVerdict([]string{result.NotMeasured, result.CannotTell}))
	assert.Equal(t, result.NotMeasured, commonVerdict([]string{result.NotMeasured}))
	assert.Empty(t, commonVerdict(nil))
}

func TestCompareEffectWords(t *testing.T) {
	ci := func(low, high float64) *result.CI { return &result.CI{Low: low, High: high} }
	for _, k := range []struct {
		r    CompareRow
		want string
	}{
		{CompareRow{Op: "write", Status: RowChanged, Ratio: 0.88, CI: ci(0.84, 0.92)}, "12 % slower (8–16 %)"},
		{CompareRow{Op: "write", Status: RowChanged, Ratio: 1.034, CI: ci(1.012, 1.056)}, "3.4 % faster (1.2–5.6 %)"},
		{CompareRow{Op: "read", Status: RowChanged, Ratio: 2.34, CI: ci(2.1, 2.6)}, "2.34 times as fast (2.1–2.6)"},
		{CompareRow{Op: "attach_time", Status: RowChanged, Ratio: 1.2, CI: ci(1.1, 1.3)}, "20 % longer (10–30 %)"},
		{CompareRow{Op: "allocated", Status: RowChanged, Ratio: 0.5, CI: ci(0.4, 0.6)}, "50 % smaller (40–60 %)"},
		{CompareRow{Op: "allocated", Status: RowChanged, Ratio: 0.00369, CI: ci(0.00361, 0.00377)}, "0.00369 times as large (0.0036–0.0038)"},
		{CompareRow{Op: "allocated", Status: RowChanged, Ratio: 0.826, CI: ci(0.8259, 0.8261)}, "17 % smaller (interval within these digits)"},
		{CompareRow{Op: "bands", Status: RowChanged, Ratio: 2, CI: ci(2, 2)}, "2 times as many (interval within these digits)"},
		{CompareRow{Op: "allocated", Status: RowSessionUnknown, Ratio: 1.4e-6}, "~ session effect unknown; seen: 0.0000014 times as large"},
		{CompareRow{Op: "write", Status: RowSame, Ratio: 1.001, CI: ci(0.985, 1.012)}, "~ the same within 1.5 %"},
		{CompareRow{Op: "write", Status: RowUnclear, Ratio: 1.001, CI: ci(0.97, 1.04)}, "~ (−3 to +4 %)"},
		{CompareRow{Op: "write", Status: RowSessionUnknown, Ratio: 0.88, CI: ci(0.97, 1.04)}, "~ session effect unknown; seen: 12 % slower"},
	} {
		assert.Equal(t, k.want, effect(&k.r))
	}
}

// A run against one that measured the same has not changed, and the sides of any comparison may be swapped.
func TestCompareInvariants(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		factors := rapid.SliceOfN(rapid.Float64Range(0.5, 2), 1, 4)
		a := sessionsOf(t, "4", 0.05, factors.Draw(t, "a")...)
		b := sessionsOf(t, "5", 0.05, factors.Draw(t, "b")...)
		by := CompareOptions{By: []string{"os"}}
		there, back := compared(t, by, a, b), compared(t, by, b, a)
		for i, r := range there.Rows {
			q := back.Rows[i]
			assert.InEpsilon(t, 1/r.Ratio, q.Ratio, 1e-9)
			assert.Equal(t, r.Status, q.Status)
			assert.Equal(t, -r.Better, q.Better)
			if r.P != nil {
				assert.InDelta(t, *r.P, *q.P, 1e-9)
				assert.InEpsilon(t, r.CI.Low, 1/q.CI.High, 1e-9)
				assert.LessOrEqual(t, *r.P, *r.Holm)
				assert.True(t, r.CI.Low <= r.Ratio && r.Ratio <= r.CI.High)
				assert.Equal(t, *r.P <= 0.05, !(r.CI.Low < 1 && 1 < r.CI.High), "interval and p agree")
			}
			if r.Regressed {
				assert.True(t, r.CI.High < 0.95, "the whole interval lies past the threshold")
			}
		}
		alike := *a[0]
		alike.Run = "another"
		self := compared(t, CompareOptions{}, a[:1], []*result.Result{&alike})
		assert.False(t, self.Regression)
		for _, r := range self.Rows {
			assert.EqualValues(t, 1, r.Ratio)
			assert.NotEqual(t, RowChanged, r.Status)
		}
		again, err := json.Marshal(compared(t, by, a, b))
		require.NoError(t, err)
		first, err := json.Marshal(there)
		require.NoError(t, err)
		assert.Equal(t, string(first), string(again))
	})
}

// More noise between sessions makes intervals wider on the average.
func TestCompareNoiseWidens(t *testing.T) {
	width := func(spread float64) float64 {
		sum := 0.0
		for i := range 20 {
			var f, g []float64
			for k := range 3 {
				f = append(f, math.Exp(spread*moment{round: i, order: k}.noise("a")))
				g = append(g, math.Exp(spread*moment{round: i, order: k}.noise("b")))
			}
			c := compared(t, CompareOptions{By: []string{"os"}}, sessionsOf(t, "4", 0.01, f...), sessionsOf(t, "5", 0.01, g...))
			sum += math.Log(c.Rows[0].CI.High / c.Rows[0].CI.Low)
		}
		return sum
	}
	quiet, loud, louder := width(0.01), width(0.03), width(0.1)
	assert.Less(t, quiet, loud)
	assert.Less(t, loud, louder)
}

func BenchmarkCompare(b *testing.B) {
	runs := append(sessionsOf(b, "4", 0.01, 1, 1.01, 0.99), sessionsOf(b, "5", 0.01, 1, 1.01, 0.99)...)
	for b.Loop() {
		if _, err := Compare(runs, CompareOptions{By: []string{"os"}}); err != nil {
			b.Fatal(err)
		}
	}
}

// Every property of a comparison is described, and one that was made is as described.
func TestComparisonSchema(t *testing.T) {
	var schema jsonschema.Schema
	require.NoError(t, json.Unmarshal(ComparisonSchema(), &schema))
	var walk func(at string, s *jsonschema.Schema)
	walk = func(at string, s *jsonschema.Schema) {
		for name, p := range s.Properties {
			assert.NotEmpty(t, p.Description, "%s.%s", at, name)
			walk(at+"."+name, p)
		}
		if s.Items != nil {
			walk(at+"[]", s.Items)
		}
	}
	walk("", &schema)
	resolved, err := schema.Resolve(nil)
	require.NoError(t, err)
	for _, factors := range [][]float64{{1}, {1, 0.9, 1.1}} {
		raw, err := json.Marshal(compared(t, CompareOptions{By: []string{"os"}}, sessionsOf(t, "4", 0.1, factors...), sessionsOf(t, "5", 0.1, factors...)))
		require.NoError(t, err)
		var v any
		require.NoError(t, json.Unmarshal(raw, &v))
		assert.NoError(t, resolved.Validate(v))
	}
}

package analysis

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"dmgbench/internal/plan"
	"dmgbench/internal/result"
)

const usePlan = `
schema = 1
title = "Uses"
[image]
size = "1 GB"
filesystem = "APFS"
[matrix]
format = ["UDRW", "UDSB", "UDSP"]
[files.some]
sizes = ["1 MB", "2 MB"]
[[protocol]]
steps = [{ do = "create" }, { do = "attach", phase = "new" }, { do = "write", phase = "new" }, { do = "measure", phase = "full" }]
[run]
rounds = 5
baseline = false
[[use]]
name = "vault"
says = "A vault"
candidates = [
  { title = "RAW", where = { format = "UDRW" } },
  { title = "Bundle", where = { format = "UDSB" } },
  { title = "Sparse", where = { format = "UDSP" } },
]
decide = [
  { title = "attaching", quantity = "attach_time", where = { phase = "new" }, matters = "10%" },
  { title = "size on disk", quantity = "allocated", where = { phase = "full" }, matters = "10%" },
]
advice = [{ says = "Use a bundle", source = "An article", candidate = "Bundle" }]
`

// byFormat are values of rounds for UDRW, UDSB and UDSP; the last is repeated.
type byFormat [3][]float64

func (x byFormat) at(m moment) float64 {
	list := x[map[string]int{"UDRW": 0, "UDSB": 1, "UDSP": 2}[m.format()]]
	return list[min(m.round, len(list))-1]
}

// usesOf plays the plan with times to attach in seconds and sizes on disk in MB.
func usesOf(t *testing.T, text string, rounds int, times, sizes byFormat, change func(*laws)) *result.Result {
	l := steady(map[string]float64{"UDRW": 1e9, "UDSB": 1e9, "UDSP": 2e9}, 0.01)
	l.seconds = func(m moment) float64 {
		if m.step.Do == "attach" {
			return times.at(m)
		}
		return 1
	}
	l.disk = func(m moment) result.DiskUse {
		return result.DiskUse{Allocated: int64(1e6 * sizes.at(m)), Attached: true}
	}
	if change != nil {
		change(&l)
	}
	r := analysed(t, planOf(t, text), rounds, l)
	_, err := json.Marshal(r)
	require.NoError(t, err, "no figure is NaN or infinite")
	return r
}

// around scatters by about 2 % in another order for each i.
func around(x float64, i int) []float64 {
	off := []float64{0.98, 1.02, 1, 0.99, 1.01}
	out := make([]float64, len(off))
	for k := range out {
		out[k] = x * off[(k*(i+1)+i)%len(off)]
	}
	return out
}

func ranks(u result.Use, criterion int) (out []string) {
	for _, k := range u.Candidates {
		out = append(out, k.Figures[criterion].Rank)
	}
	return out
}

func TestUses(t *testing.T) {
	const best, equal, worse, open = result.RankBest, result.RankEqual, result.RankWorse, result.RankUndecided
	same := byFormat{around(1, 0), around(1, 1), around(1, 2)}
	sized := byFormat{{100}, {100}, {100}}
	for _, x := range []struct {
		name          string
		rounds        int
		times, sizes  byFormat
		choice        string
		chosen        []string
		first, second []string
		reason, needs string
		advice        string
	}{
		{"one is best by the first", 5, byFormat{around(1.5, 0), around(1, 1), around(1.3, 2)}, sized, result.ChosenOne, []string{"Bundle"},
			[]string{worse, best, worse}, []string{"", "", ""},
			"by attaching, Bundle is the best with 1.00 s; the next is Sparse with 1.30 s, a factor of 1.3 (1.", "", result.Holds},
		{"the second decides among the equal, exactly", 5, same, byFormat{{111}, {100}, {50}}, result.ChosenOne, []string{"Sparse"},
			[]string{best, equal, equal}, []string{worse, worse, best},
			"RAW, Bundle, Sparse differ by less than the 10 % that matter; by size on disk, Sparse is the best with 50.0 MB; " +
				"the next is Bundle with 100 MB, a factor of 2, the same in 5 rounds", "", result.DoesNotHold},
		{"the worse takes no part in the second", 5, byFormat{around(1, 0), around(1, 1), around(2, 2)}, byFormat{{111}, {100}, {50}},
			result.ChosenOne, []string{"Bundle"}, []string{best, equal, worse}, []string{worse, best, ""}, "Bundle is the best with 100 MB", "", result.Holds},
		{"equal to the end", 5, same, byFormat{{109}, {100}, {104}}, result.ChosenEqual, []string{"RAW", "Bundle", "Sparse"},
			[]string{best, equal, equal}, []string{equal, best, equal}, "by size on disk, RAW, Bundle, Sparse differ by less", "", result.Holds},
		{"exactly what matters is worse", 5, same, byFormat{{110}, {100}, {130}}, result.ChosenOne, []string{"Bundle"},
			[]string{best, equal, equal}, []string{worse, best, worse}, "a factor of 1.1, the same in 5 rounds", "", result.Holds},
		{"scatter leaves it open", 5, byFormat{{1, 1.3, 0.8, 1.1, 0.9}, {1.3, 0.9, 1.2, 1, 1.3}, around(9, 2)}, sized, result.Undecided,
			[]string{"RAW", "Bundle"}, []string{best, open, worse}, []string{"", "", ""},
			"RAW is ahead with 1.01 s, and Bundle with 1.13 s is not known to be worse or equal: a factor of 1.12 (0.", "about ", result.CannotTell},
		{"a difference near what matters", 5, byFormat{around(1, 0), around(1.09, 1), around(9, 2)}, sized, result.Undecided,
			[]string{"RAW", "Bundle"}, []string{best, open, worse}, nil, "a factor of 1.09 (", "rounds in all, if they scatter as these do", result.CannotTell},
		{"two rounds show a direction", 2, byFormat{{1}, {2}, {3}}, sized, result.Undecided, []string{"RAW", "Bundle", "Sparse"},
			[]string{best, open, open}, nil, "a factor of 2 in 2 rounds, and an interval needs 3", "3 rounds", result.CannotTell},
		{"a best of zero has differences", 5, same, byFormat{{3, 3, 4, 5, 3}, {0}, {0, 0, 0, 1, 0}}, result.Undecided, []string{"Bundle", "Sparse"},
			[]string{best, equal, equal}, []string{worse, best, open}, "a difference of 200 kB", "about ", result.CannotTell},
		{"zeros are equal", 5, same, byFormat{{0}, {0}, {7}}, result.ChosenEqual, []string{"RAW", "Bundle"},
			[]string{best, equal, equal}, []string{best, equal, worse}, "by size on disk, RAW, Bundle differ", "", result.Holds},
	} {
		t.Run(x.name, func(t *testing.T) {
			u := usesOf(t, usePlan, x.rounds, x.times, x.sizes, nil).Uses[0]
			assert.Equal(t, []any{x.choice, x.chosen, x.advice}, []any{u.Choice, u.Chosen, u.Advice[0].Verdict}, "%+v", u)
			assert.Equal(t, x.first, ranks(u, 0))
			if x.second != nil {
				assert.Equal(t, x.second, ranks(u, 1))
			}
			assert.Contains(t, u.Reason, x.reason)
			assert.Contains(t, u.Needs, x.needs)
			assert.Equal(t, x.needs == "", u.Needs == "", u.Needs)
		})
	}
}

func TestUseHasItsFigures(t *testing.T) {
	u := usesOf(t, usePlan, 5, byFormat{around(1.5, 0), around(1, 1), around(1.3, 2)}, byFormat{{3}, {2}, {1}}, nil).Uses[0]
	assert.Equal(t, []result.UseCriterion{{Title: "attaching", Op: "attach_time", Unit: "s", Matters: 0.1},
		{Title: "size on disk", Op: "allocated", Unit: "B", Matters: 0.1}}, u.Criteria)
	assert.Equal(t, []string{"format=UDSP"}, u.Candidates[2].Cases)
	f := u.Candidates[2].Figures
	assert.InDelta(t, 1.3, f[0].Estimate.Value, 0.001)
	assert.InDelta(t, 1.3, f[0].Ratio.Value, 0.001)
	assert.Less(t, f[0].Ratio.CI.Low, 1.3)
	assert.Equal(t, 5, f[0].Ratio.N)
	assert.Less(t, *f[0].P, 0.05)
	assert.Equal(t, 1e6, f[1].Estimate.Value, "criteria that were not needed have figures, too")
	assert.Nil(t, f[1].Ratio)
	assert.Nil(t, u.Candidates[1].Figures[0].Ratio, "of the best")
	assert.Equal(t, 0, u.DecidedBy)
	assert.Empty(t, u.Scope, "Apple's tools")
	r := usesOf(t, usePlan, 2, byFormat{{1}, {1}, {1}}, byFormat{{3}, {2}, {1}}, func(l *laws) {
		l.engine, l.host = own(), result.Host{OS: "linux", OSVersion: "6.8"}
	})
	assert.Equal(t, "dmgbench's own images (in-process) on Linux 6.8, not for macOS", r.Uses[0].Scope)
	assert.Contains(t, r.Uses[0].Warnings, result.Warning{Kind: "few-rounds", Text: "2 rounds: an interval and a verdict need 3"}, "of all")
	r = usesOf(t, usePlan, 5, byFormat{around(1.5, 0), around(1, 1), around(1.3, 2)}, byFormat{{3}, {2}, {1}}, nil)
	r.Departures = []result.Departure{{Kind: "scale", Text: "a tenth"}, {Kind: "sets", Text: "one"}}
	r.Sessions[0].Host = result.Host{OS: "linux", OSVersion: "Debian GNU/Linux 12"}
	r.Sessions[0].Engine = own()
	for i := range r.Cases[0].Steps {
		r.Cases[0].Steps[i].Warnings = []result.Warning{{Kind: "retried", Text: "twice"}}
	}
	require.NoError(t, Analyze(planOf(t, usePlan), r, Options{}))
	assert.Equal(t, []result.Warning{{Kind: "scale", Text: "a tenth"}, {Kind: "retried", Text: "RAW: twice"}}, r.Uses[0].Warnings)
	assert.Equal(t, "dmgbench's own images (in-process) on Debian GNU/Linux 12, not for macOS", r.Uses[0].Scope)
}

func TestUseOfImagesWithDifferentFileSystems(t *testing.T) {
	warnings := func(change func(*plan.Plan, *result.Result)) []result.Warning {
		r := usesOf(t, usePlan, 5, byFormat{around(1.5, 0), around(1, 1), around(1.3, 2)}, byFormat{{3}, {2}, {1}}, nil)
		p := planOf(t, usePlan)
		for i, name := range []string{"ext4", "exFAT", "ext4"} {
			r.Cases[i].Target.Filesystem = name
		}
		change(p, r)
		require.NoError(t, Analyze(p, r, Options{}))
		return r.Uses[0].Warnings
	}
	assert.Equal(t, []result.Warning{{Kind: "filesystem", Text: "the images are formatted with different file systems, " +
		"so that not only the images are compared: exFAT: Bundle; ext4: RAW, Sparse"}}, warnings(func(*plan.Plan, *result.Result) {}))
	assert.Empty(t, warnings(func(_ *plan.Plan, r *result.Result) { r.Cases[1].Target.Filesystem = "ext4" }))
	assert.Empty(t, warnings(func(_ *plan.Plan, r *result.Result) { r.Cases[1].Target.Kind = "directory" }), "a native folder has that of its place")
	assert.Empty(t, warnings(func(p *plan.Plan, _ *result.Result) {
		for i := range p.Uses[0].Candidates {
			p.Uses[0].Candidates[i].Where = append(p.Uses[0].Candidates[i].Where, sel("filesystem", "APFS")...)
		}
	}), "as the plan has it")
}

// Rates have the larger as the better, and a statistic of files.
func TestUseByRates(t *testing.T) {
	p := planOf(t, usePlan)
	p.Uses[0].Decide = []plan.Criterion{{Title: "writing", Quantity: "write", Where: sel("phase", "new"), Matters: 0.1, Better: "higher"}}
	r := play(p, 5, steady(map[string]float64{"UDRW": 1e9, "UDSB": 1.5e9, "UDSP": 2e9}, 0.01))
	require.NoError(t, Analyze(p, r, Options{}))
	assert.Equal(t, []string{"Sparse"}, r.Uses[0].Chosen, r.Uses[0].Reason)
	assert.True(t, r.Uses[0].Criteria[0].HigherIsBetter)
	assert.Equal(t, "aggregate", r.Uses[0].Candidates[0].Figures[0].Estimate.Name)
	assert.Greater(t, r.Uses[0].Candidates[0].Figures[0].Ratio.Value, 1.5, "so many times worse")
}

// The figures of two candidates divide to the ratio that is printed, also of sizes
// that vary from round to round.
func TestUseFiguresDivideToTheirRatio(t *testing.T) {
	sizes := byFormat{{12.55, 13.22, 11.10, 15.22, 12.19}, {4.42, 3.46, 2.00, 5.89, 2.58}, {40}}
	u := usesOf(t, usePlan, 5, byFormat{{1}, {1}, {1}}, sizes, nil).Uses[0]
	raw, bundle := u.Candidates[0].Figures[1], u.Candidates[1].Figures[1]
	assert.Equal(t, result.RankBest, bundle.Rank)
	assert.InDelta(t, 3.743, raw.Ratio.Value, 0.001)
	assert.InEpsilon(t, raw.Ratio.Value, raw.Estimate.Value/bundle.Estimate.Value, 1e-6)
	assert.Less(t, raw.Estimate.CI.Low, raw.Estimate.Value)
	assert.Greater(t, raw.Estimate.CI.High, raw.Estimate.Value)
}

const manifestPlan = `
schema = 1
title = "Bytes to upload"
[image]
size = "1 GB"
[matrix]
format = ["UDRW", "UDSB", "UDSP"]
[files.some]
sizes = ["1 MB", "2 MB"]
[[protocol]]
steps = [
  { do = "create" }, { do = "attach" }, { do = "write", phase = "new" }, { do = "detach" },
  { do = "manifest", phase = "before" }, { do = "manifest", phase = "day" },
]
[run]
rounds = 5
baseline = false
[[use]]
name = "vault"
says = "A vault"
candidates = [{ title = "RAW", where = { format = "UDRW" } }, { title = "Bundle", where = { format = "UDSB" } }]
decide = [{ title = "upload", quantity = "changed_whole", where = { phase = "day" }, matters = "10%" }]
`

// What our own engine changes in an image depends on plan and seed alone: however
// much the rounds differ, such figures have no interval and decide.
func TestUseByWhatIsTheSameEverywhere(t *testing.T) {
	bytes := byFormat{{10, 11, 60, 12, 13}, {9, 12, 10, 40, 8}, {1}}
	used := func(engine result.Engine, change func(*plan.Plan)) result.Use {
		p := planOf(t, manifestPlan)
		change(p)
		l := steady(map[string]float64{"UDRW": 1e9, "UDSB": 1e9, "UDSP": 1e9}, 0.01)
		l.engine = engine
		r := play(p, 5, l)
		for i := range r.Cases {
			for k := range r.Cases[i].Steps {
				step := &r.Cases[i].Steps[k]
				if step.Phase == "day" {
					step.Changes = &result.Changes{BytesWhole: int64(1e6 * bytes[i][min(step.Round, len(bytes[i]))-1])}
				}
			}
		}
		require.NoError(t, Analyze(p, r, Options{}))
		return r.Uses[0]
	}
	asIs := func(*plan.Plan) {}
	u := used(own(), asIs)
	assert.True(t, u.Criteria[0].SameEverywhere)
	assert.Equal(t, []string{"Bundle"}, u.Chosen, u.Reason)
	f := u.Candidates[0].Figures[0]
	assert.Nil(t, f.Estimate.CI)
	assert.Equal(t, "the same on every machine", f.Estimate.Why)
	assert.InEpsilon(t, f.Ratio.Value, f.Estimate.Value/u.Candidates[1].Figures[0].Estimate.Value, 1e-6)
	assert.Contains(t, u.Reason, ", the same on every machine")
	for _, u := range []result.Use{used(apple(), asIs), used(own(), func(p *plan.Plan) { p.Defaults.Workers = 2 })} {
		assert.False(t, u.Criteria[0].SameEverywhere)
		assert.Equal(t, result.Undecided, u.Choice, "the rounds scatter too much")
		assert.NotNil(t, u.Candidates[0].Figures[0].Estimate.CI)
	}
}

// Advice is judged by the criteria that its source speaks of.
func TestUseAdviceIsJudgedByItsOwnCriteria(t *testing.T) {
	verdict := func(criteria, candidate string, times byFormat) string {
		text := strings.Replace(usePlan, `candidate = "Bundle" }`,
			`candidate = "`+candidate+`", criteria = [`+criteria+`] }`, 1)
		return usesOf(t, text, 5, times, byFormat{{111}, {100}, {50}}, nil).Uses[0].Advice[0].Verdict
	}
	const attaching, size = `"attaching"`, `"size on disk"`
	different := byFormat{around(1.5, 0), around(1, 1), around(1.3, 2)}
	same := byFormat{around(1, 0), around(1, 1), around(1, 2)}
	assert.Equal(t, result.Holds, verdict(attaching, "Bundle", different))
	assert.Equal(t, result.OtherCriterion, verdict(size, "Bundle", different))
	assert.Equal(t, result.OtherCriterion, verdict(size, "RAW", different), "attaching has excluded it")
	assert.Equal(t, result.DoesNotHold, verdict(attaching+", "+size, "RAW", different))
	assert.Equal(t, result.DoesNotHold, verdict(size, "Bundle", same))
	assert.Equal(t, result.OtherCriterion, verdict(attaching, "Sparse", same))
	assert.Equal(t, result.Holds, verdict(size, "Sparse", same))
}

// A candidate without figures cannot be chosen, and is named with the reason.
func TestUseWithMissingCandidates(t *testing.T) {
	skip := func(formats ...string) func(*laws) {
		return func(l *laws) {
			l.skip = func(c plan.Case) (string, string) {
				for _, f := range formats {
					if c.Settings.Format == f {
						return result.Skipped, "no such engine"
					}
				}
				return "", ""
			}
		}
	}
	times := byFormat{around(1.5, 0), around(1, 1), around(2, 2)}
	u := usesOf(t, usePlan, 5, times, times, skip("UDSB")).Uses[0]
	assert.Equal(t, []string{"RAW"}, u.Chosen)
	assert.Equal(t, "case format=UDSB was skipped: no such engine", u.Candidates[1].Figures[0].Why)
	assert.Equal(t, result.NotMeasured, u.Advice[0].Verdict)
	assert.Contains(t, u.Warnings, result.Warning{Kind: "candidate",
		Text: "Bundle was not measured: case format=UDSB was skipped: no such engine"})

	u = usesOf(t, usePlan, 5, times, times, skip("UDSB", "UDSP")).Uses[0]
	assert.Equal(t, []any{result.NotMeasured, -1, []string{}}, []any{u.Choice, u.DecidedBy, u.Chosen})
	assert.Contains(t, u.Reason, "fewer than two candidates were measured: Bundle was not measured: case format=UDSB was skipped")
	assert.Equal(t, result.NotMeasured, u.Advice[0].Verdict)
}

// A further criterion without a figure of a candidate that is left is open.
func TestUseWithoutAFigureLater(t *testing.T) {
	p := planOf(t, usePlan)
	same := byFormat{around(1, 0), around(1, 1), around(1, 2)}
	l := steady(map[string]float64{"UDRW": 1e9, "UDSB": 1e9, "UDSP": 1e9}, 0)
	l.seconds = same.at
	l.disk = func(m moment) result.DiskUse { return result.DiskUse{Allocated: 1e6} }
	r := play(p, 5, l)
	for i := range r.Cases[1].Steps {
		r.Cases[1].Steps[i].Disk = nil
	}
	require.NoError(t, Analyze(p, r, Options{}))
	u := r.Uses[0]
	assert.Equal(t, []any{result.Undecided, 1, []string{"RAW", "Bundle", "Sparse"}}, []any{u.Choice, u.DecidedBy, u.Chosen})
	assert.Equal(t, []string{"best", "undecided", "equal"}, ranks(u, 1))
	assert.Equal(t, "a figure of Bundle by size on disk", u.Needs)
	assert.Contains(t, u.Reason, "Bundle has no value by size on disk")
}

// Comparisons of further criteria are corrected together with those before.
func TestUseCorrectsOverTheRow(t *testing.T) {
	three := byFormat{around(1, 0), around(1, 1), around(1, 2)}
	u := usesOf(t, usePlan, 5, three, byFormat{around(100, 0), around(130, 1), around(130, 2)}, nil).Uses[0]
	alone := usesOf(t, usePlan, 5, byFormat{{1}, {1}, {1}}, byFormat{around(100, 0), around(130, 1), around(130, 2)}, nil).Uses[0]
	require.Equal(t, 1, u.DecidedBy)
	for i := 1; i < 3; i++ {
		assert.Greater(t, *u.Candidates[i].Figures[1].P, *alone.Candidates[i].Figures[1].P)
	}
}

// From three pooled runs on the session is the unit, and automatic rounds cost what their looks cost.
func TestUseOfPooledRuns(t *testing.T) {
	p := planOf(t, usePlan)
	var runs []*result.Result
	for i, times := range []byFormat{{{2}, {1}, {1.5}}, {{2.1}, {1}, {1.6}}, {{2}, {1.1}, {1.6}}} {
		l := steady(map[string]float64{"UDRW": 1e9, "UDSB": 1e9, "UDSP": 1e9}, 0.01)
		l.seconds, l.disk = times.at, func(moment) result.DiskUse { return result.DiskUse{Allocated: 1} }
		r := play(p, 2, l)
		r.Run = string(rune('a' + i))
		runs = append(runs, r)
	}
	r, err := result.Pool(runs)
	require.NoError(t, err)
	require.NoError(t, Analyze(p, r, Options{}))
	ratio := r.Uses[0].Candidates[0].Figures[0].Ratio
	assert.Equal(t, []any{3, "session"}, []any{ratio.N, ratio.CI.Unit})
	assert.Equal(t, []string{"Bundle"}, r.Uses[0].Chosen, r.Uses[0].Reason)

	one := usesOf(t, usePlan, 5, byFormat{around(1.5, 0), around(1, 1), around(1.3, 2)}, byFormat{{1}, {1}, {1}}, nil)
	before := *one.Uses[0].Candidates[0].Figures[0].P
	one.Auto = &result.AutoRounds{Looks: []int{3, 5, 9}}
	require.NoError(t, Analyze(p, one, Options{}))
	assert.InDelta(t, 3*before, *one.Uses[0].Candidates[0].Figures[0].P, 1e-12)
}

package analysis

import (
	"cmp"
	"fmt"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"dmgbench/internal/plan"
	"dmgbench/internal/result"
)

// robustness judges the one claim of the plan of comparisons, UDSB over UDRW.
func robustness(t *testing.T, claim string, rounds int, l laws) result.Claim {
	t.Helper()
	p := planOf(t, comparePlan+claim)
	r := analysed(t, p, rounds, l)
	require.Len(t, r.Claims, 1)
	return r.Claims[0]
}

func ratioClaim(bound string) string {
	return fmt.Sprintf(`
[[claim]]
says = "UDSB is faster"
by = "us"
left = { write = { format = "UDSB" } }
right = { write = { format = "UDRW" } }
ratio = %q
`, bound)
}

// SkipRobustness changes no verdict and no number.
func TestDecideLeavesRobustnessOut(t *testing.T) {
	p := planOf(t, comparePlan+ratioClaim(">= 1.5"))
	l := steady(map[string]float64{"UDSB": 5e9, "UDRW": 2e9}, 0.01)
	whole, short := analysed(t, p, 5, l), play(p, 5, l)
	require.NoError(t, Analyze(p, short, Options{SkipRobustness: true}))
	require.NotNil(t, whole.Claims[0].Robustness)
	whole.Claims[0].Robustness = nil
	assert.Equal(t, whole, short)
}

// What is clear holds however it is analysed: 6 estimators, 4 outlier rules, with
// the first round and without.
func TestMultiverseOfAClearClaim(t *testing.T) {
	l := steady(map[string]float64{"UDSB": 5e9, "UDRW": 2e9}, 0.01)
	c := robustness(t, ratioClaim(">= 1.5"), 5, l)
	r := c.Robustness
	require.NotNil(t, r)
	assert.Equal(t, "holds", c.Verdict)
	assert.Len(t, r.Estimators, 6)
	assert.Equal(t, outlierRules, r.Outliers)
	assert.Equal(t, []string{roundsAll, roundsLater}, r.Rounds)
	assert.Equal(t, 48, r.Holds+r.LeftOut)
	assert.Equal(t, result.Holds, r.Most)
	assert.Contains(t, r.Text, fmt.Sprintf("holds in %d of %d analyses", r.Holds, r.Holds))

	// With three rounds none can be left out.
	r = robustness(t, ratioClaim(">= 1.5"), 3, l).Robustness
	assert.Equal(t, 24, r.Holds+r.LeftOut)
	assert.Equal(t, []string{roundsAll}, r.Rounds)

	// With two, nothing can be told, and what was seen is said.
	r = robustness(t, ratioClaim(">= 1.5"), 2, l).Robustness
	assert.Zero(t, r.Holds)
	assert.Equal(t, "holds in 0 of 24 analyses, undecided in 24; 24 of these point towards the claim", r.Text)
}

// A first file that pays for all others makes the answer depend on the rule.
func TestMultiverseSeesTheFirstFile(t *testing.T) {
	l := steady(map[string]float64{"UDSB": 2.2e9, "UDRW": 2e9}, 0.0005)
	l.latency, l.idle = 0, 0
	even := l.rate
	l.rate = func(m moment) float64 {
		if m.order == 0 && m.format() == "UDSB" {
			return even(m) / 20
		}
		return even(m)
	}
	c := robustness(t, ratioClaim(">= 1"), 5, l)
	r := c.Robustness
	assert.Equal(t, "does_not_hold", c.Verdict)
	assert.NotZero(t, r.Holds)
	assert.NotZero(t, r.DoesNotHold)
	assert.Regexp(t, `^holds in \d+ of \d+ analyses, does not in \d+`, r.Text)
	verdicts := map[string]string{}
	for _, w := range r.Odd {
		verdicts[w.Estimator+" "+w.Outliers+" "+w.Rounds] = w.Verdict
	}
	of := func(key string) string { return cmp.Or(verdicts[key], r.Most) }
	assert.Equal(t, "does_not_hold", of("aggregate none removed all rounds"))
	assert.Equal(t, "holds", of("aggregate without the first file all rounds"))
	assert.Equal(t, "holds", of("median none removed all rounds"))
}

// A claim that rests on no file has rounds only to choose.
func TestMultiverseOfOtherQuantities(t *testing.T) {
	l := steady(map[string]float64{"UDSB": 5e9, "UDRW": 2e9}, 0.01)
	c := robustness(t, `
[[claim]]
says = "Attaching takes no time"
by = "us"
left = { attach_time = { format = "UDSB" } }
bound = "< 1 s"
`, 5, l)
	assert.Empty(t, c.Robustness.Estimators)
	assert.Empty(t, c.Robustness.Outliers)
	assert.Equal(t, "holds in 2 of 2 analyses", c.Robustness.Text)
}

// Where a printed range leaves a claim open, the values point to no side.
func TestMultiverseOfAnOpenRange(t *testing.T) {
	p := planOf(t, comparePlan)
	printed := op("write", "format", "UDRW")
	printed.Published = true
	p.Published = []plan.Published{
		{Quantity: "write", Where: printed.Where, Value: figure(t, "1.5 GB/s to 2.5 GB/s", "B/s")}}
	p.Claims = []plan.Claim{claimOf(plan.Assert{Kind: "ratio", Left: op("write", "format", "UDRW"), Right: printed,
		Bound: bound(t, "> 1", "1")})}
	r := analysed(t, p, 3, steady(map[string]float64{"UDSB": 5e9, "UDRW": 2e9}, 0.01)).Claims[0].Robustness
	require.NotNil(t, r)
	assert.Equal(t, 24, r.CannotTell)
	assert.Zero(t, r.Toward)
	assert.NotContains(t, r.Text, "towards the claim")
}

// What was not judged has no such evidence, and judging changes no verdict.
func TestMultiverseOfWhatIsNotJudged(t *testing.T) {
	l := steady(map[string]float64{"UDSB": 5e9, "UDRW": 2e9}, 0.01)
	l.engine = own()
	c := robustness(t, ratioClaim(">= 1.5")+"scope = \"apple\"\n", 3, l)
	assert.Equal(t, result.NotMeasured, c.Verdict)
	assert.Nil(t, c.Robustness)
}

func TestMultiverseRules(t *testing.T) {
	var xs []result.Sample
	for i := range 12 {
		d := int64(1e6 + 1000*(i%5))
		if i == 7 {
			d *= 40
		}
		xs = append(xs, result.Sample{Bytes: 2e6, DurationNS: d, Order: i})
	}
	for rule, want := range map[string]int{ruleFirst: 0, ruleTukey: 7, ruleMAD: 7} {
		gone := outlierMask(xs, rule)
		require.Len(t, gone, len(xs))
		for i, g := range gone {
			assert.Equal(t, i == want, g, "%s, file %d", rule, i)
		}
	}
	assert.Nil(t, outlierMask(xs[:3], ruleTukey), "three files have no fences")
	st := &result.Step{Do: "write", Samples: xs, Span: &result.Span{GateNS: 100, LastDoneNS: 100 + 60e6, Bytes: 24e6}}
	thin := dropOutliers(st, ruleMAD)
	assert.Len(t, thin.Samples, 11)
	assert.EqualValues(t, 22e6, thin.Span.Bytes)
	assert.EqualValues(t, 60e6-xs[7].DurationNS, thin.Span.LastDoneNS)
	assert.Len(t, st.Samples, 12, "the run itself stays as it is")
}

// What was first in a run is left out of every pooled run, also of two, where the
// round stays the unit, and of none where too few rounds would be left.
func TestFirstRoundsOfPooledRuns(t *testing.T) {
	of := func(runs ...int) map[int]bool {
		r := &result.Result{}
		for i, n := range runs {
			if len(runs) > 1 {
				r.Runs = append(r.Runs, result.PooledRun{Run: fmt.Sprint(i), First: r.Rounds + 1, Last: r.Rounds + n})
			}
			r.Rounds += n
		}
		return (&runData{r: r, per: replicated(r)}).firstRounds()
	}
	assert.Nil(t, of(3))
	assert.Equal(t, map[int]bool{1: true}, of(4))
	assert.Equal(t, map[int]bool{1: true, 4: true}, of(3, 3))
	assert.Nil(t, of(2, 2), "one round of each would be left")
	assert.Nil(t, of(1, 5))
	assert.Equal(t, map[int]bool{1: true, 3: true, 5: true}, of(2, 2, 2), "sessions stay three")
}

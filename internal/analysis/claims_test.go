package analysis

import (
	"fmt"
	"math"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"dmgbench/internal/plan"
	"dmgbench/internal/result"
)

const threeFormats = `
schema = 1
title = "three formats"
[source]
title = "an article"
[image]
size = "10 GB"
[matrix]
format = ["UDRW", "UDSB", "UDSP"]
[files.set]
sizes = ["2 MB", "4 MB", "8 MB", "16 MB"]
sets = 3
[[protocol]]
steps = [
  { do = "create" },
  { do = "attach" },
  { do = "repeat", times = 4, steps = [
    { do = "write", phase = "full" },
    { do = "measure", phase = "full" },
    { do = "delete", phase = "full", all = true },
  ] },
  { do = "write", phase = "last" },
  { do = "read", phase = "last" },
  { do = "detach" },
  { do = "check", phase = "end" },
]
[run]
canary = false
`

// sel writes a selector: key, value, key, value …
func sel(pairs ...string) plan.Selector {
	var s plan.Selector
	for i := 0; i < len(pairs); i += 2 {
		s = append(s, plan.Choice{Key: pairs[i], Values: strings.Split(pairs[i+1], "|")})
	}
	return s
}

func op(q plan.Quantity, pairs ...string) plan.Operand {
	return plan.Operand{Quantity: q, Where: sel(pairs...)}
}

func bound(t require.TestingT, text, unit string) plan.Bound {
	b, err := plan.ParseBound(text, unit)
	require.NoError(t, err)
	return b
}

// last is the rate of writing of a format in the phase "last".
func last(format string) plan.Operand { return op("write", "format", format, "phase", "last") }

// threeRates is a machine: UDRW 1, UDSB 2, UDSP 0.5 GB/s, with noise; the write
// rate of UDSB falls by 10 % a cycle, and check fails on UDSP.
func threeRates(noise float64) laws {
	l := steady(map[string]float64{"UDRW": 1e9, "UDSB": 2e9, "UDSP": 0.5e9, "native": 4e9}, noise)
	l.latency = 3e-4
	rate := l.rate
	l.rate = func(m moment) float64 {
		if m.format() == "UDSB" && m.cycle > 0 {
			return rate(m) * math.Pow(0.9, float64(m.cycle))
		}
		return rate(m)
	}
	l.disk = func(m moment) result.DiskUse {
		return result.DiskUse{Allocated: int64(100e6 * float64(m.cycle+1) * (1 + noise*m.noise("disk"))), Bands: 12, Attached: true, VolumeFree: 5e9}
	}
	l.fail = func(m moment) string {
		if m.step.Do == "check" && m.format() == "UDSP" {
			return "checking: volume is damaged"
		}
		return ""
	}
	return l
}

// kinds has one test of every kind that holds on threeRates, and one that does not.
func kinds(t require.TestingT) map[string][2]plan.Assert {
	b := func(text string) plan.Bound { return bound(t, text, "1") }
	gb := func(text string) plan.Bound { return bound(t, text, "B/s") }
	order := func(fs ...string) (out []plan.Operand) {
		for _, f := range fs {
			out = append(out, last(f))
		}
		return out
	}
	ratioOf := func(text string) plan.Assert {
		return plan.Assert{Kind: "ratio", Left: last("UDSB"), Right: last("UDRW"), Bound: b(text)}
	}
	cycles := func(f string) plan.Operand { return op("write", "format", f, "phase", "full") }
	return map[string][2]plan.Assert{
		"ratio": {ratioOf(">= 1.5"), ratioOf(">= 3")},
		"difference": {{Kind: "difference", Left: last("UDSB"), Right: last("UDRW"), Bound: gb("> 0.5 GB/s")},
			{Kind: "difference", Left: last("UDSB"), Right: last("UDRW"), Bound: gb("1.5 GB/s to 3 GB/s")}},
		"equal": {{Kind: "equal", Left: op("read", "format", "UDRW", "phase", "last"), Right: last("UDRW"), Within: 0.1},
			{Kind: "equal", Left: last("UDSB"), Right: last("UDRW"), Within: 0.1}},
		"bound": {{Kind: "bound", Left: last("UDRW"), Bound: gb("0.5 GB/s to 1.5 GB/s")}, {Kind: "bound", Left: last("UDRW"), Bound: gb("> 2 GB/s")}},
		"order": {{Kind: "order", Of: order("UDSB", "UDRW", "UDSP"), Within: 0.1}, {Kind: "order", Of: order("UDSB", "UDSP", "UDRW")}},
		"order rising": {{Kind: "order", Direction: "rising", Of: order("UDSP", "UDRW", "UDSB")},
			{Kind: "order", Direction: "rising", Of: order("UDSB", "UDRW", "UDSP")}},
		"rank": {{Kind: "rank", Left: last("UDRW"), Of: order("UDSB", "UDRW", "UDSP"), Rank: 2},
			{Kind: "rank", Left: last("UDRW"), Of: order("UDSB", "UDSP"), Rank: 1}},
		"rank last": {{Kind: "rank", Left: last("UDSP"), Of: order("UDSB", "UDRW"), Rank: 3},
			{Kind: "rank", Left: last("UDSB"), Of: order("UDRW", "UDSP"), Rank: 3}},
		"extreme": {{Kind: "extreme", Left: op("write", "phase", "last"), Along: "format", Direction: "largest", At: []string{"UDSB"}},
			{Kind: "extreme", Left: op("write", "phase", "last"), Along: "format", Direction: "smallest", At: []string{"UDSB", "UDRW"}}},
		"extreme size": {{Kind: "extreme", Left: last("UDRW"), Along: "file_size", Direction: "largest", At: []string{"16 MB"}},
			{Kind: "extreme", Left: last("UDRW"), Along: "file_size", Direction: "largest", At: []string{"2 MB"}}},
		"trend": {{Kind: "trend", Left: cycles("UDSB"), Along: "cycle", Direction: "falling"},
			{Kind: "trend", Left: cycles("UDSB"), Along: "cycle", Direction: "rising"}},
		"constant": {{Kind: "trend", Left: cycles("UDRW"), Along: "cycle", Direction: "constant", Within: 0.1},
			{Kind: "trend", Left: cycles("UDSB"), Along: "cycle", Direction: "constant", Within: 0.1}},
		"spread": {{Kind: "spread", Left: op("write", "format", "UDRW"), Along: "phase", Bound: b("<= 8%")},
			{Kind: "spread", Left: op("write", "format", "UDSB"), Along: "phase", Bound: b("<= 5%")}},
		"coefficient": {{Kind: "coefficient", Fit: "sizes", Coefficient: "slope", Bound: bound(t, "90 MB to 110 MB", "B")},
			{Kind: "coefficient", Fit: "sizes", Coefficient: "slope", Bound: bound(t, "> 150 MB", "B")}},
		"prediction": {{Kind: "prediction", Fit: "sizes", Left: op("allocated", "format", "UDSB", "cycle", "4"), At: []string{"4"}, Bound: b("0.9 to 1.1")},
			{Kind: "prediction", Fit: "sizes", Left: op("allocated", "format", "UDSB", "cycle", "4"), At: []string{"8"}, Bound: b("0.9 to 1.1")}},
		"outcome": {{Kind: "outcome", Step: "check", Where: sel("format", "UDRW|UDSB"), Outcome: "ok"}, {Kind: "outcome", Step: "check", Outcome: "ok"}},
		"all":     {{Kind: "all", Parts: []plan.Assert{ratioOf("> 1"), ratioOf("< 5")}}, {Kind: "all", Parts: []plan.Assert{ratioOf("> 1"), ratioOf("> 5")}}},
		"any":     {{Kind: "any", Parts: []plan.Assert{ratioOf("> 5"), ratioOf("> 1")}}, {Kind: "any", Parts: []plan.Assert{ratioOf("> 5"), ratioOf("< 0.1")}}},
	}
}

func withFit(p *plan.Plan) *plan.Plan {
	p.Fits = []plan.Fit{{Name: "sizes", Quantity: "allocated", Where: sel("format", "UDSB"), Along: "cycle", Model: "line", Predict: []string{"8"}}}
	return p
}

func claimOf(a plan.Assert) plan.Claim {
	return plan.Claim{ID: "c", Says: "a sentence", By: "us", Scope: "any", Assert: a}
}

func judged(t *testing.T, a plan.Assert, rounds int, l laws) result.Claim {
	t.Helper()
	p := withFit(planOf(t, threeFormats))
	p.Claims = []plan.Claim{claimOf(a)}
	return heard(t, p, rounds, l)[0]
}

// heard judges the claims of a run and nothing else.
func heard(t require.TestingT, p *plan.Plan, rounds int, l laws) []result.Claim {
	s, err := newRunData(p, play(p, rounds, l))
	require.NoError(t, err)
	return s.claims()
}

func TestEveryKindInEveryVerdict(t *testing.T) {
	for name, pair := range kinds(t) {
		t.Run(name, func(t *testing.T) {
			c := judged(t, pair[0], 4, threeRates(0.01))
			assert.Equal(t, result.Holds, c.Verdict, "%s %q", c.Reason, c.Evidence)
			c = judged(t, pair[1], 4, threeRates(0.01))
			assert.Equal(t, result.DoesNotHold, c.Verdict, "%s %q", c.Reason, c.Evidence)

			skipped := threeRates(0.01)
			skipped.skip = func(c plan.Case) (string, string) { return result.Skipped, "the engine does not support it" }
			for _, a := range pair {
				c := judged(t, a, 4, skipped)
				assert.Equal(t, result.NotMeasured, c.Verdict, "%s", c.Reason)
				assert.Contains(t, c.Reason, "the engine does not support it")
			}
			if name == "outcome" {
				return // no statistic: one round is enough
			}
			for i, a := range pair {
				c := judged(t, a, 2, threeRates(0.01))
				assert.Equal(t, result.CannotTell, c.Verdict, "%s", c.Reason)
				assert.Contains(t, c.Reason, "a verdict takes 3 rounds")
				assert.Equal(t, i == 0, strings.Contains(c.Reason, "points that way"), "%s", c.Reason)
			}
		})
	}
}

// wild is threeRates with rounds that scatter by a factor of e either way.
func wild(seed string) laws {
	l := threeRates(0.01)
	rate, disk := l.rate, l.disk
	l.rate = func(m moment) float64 {
		return rate(m) * math.Exp(2*moment{c: m.c, step: m.step, round: m.round, cycle: m.cycle, order: int(m.size >> 16)}.noise(seed))
	}
	l.disk = func(m moment) result.DiskUse {
		d := disk(m)
		d.Allocated = int64(float64(d.Allocated) * math.Exp(2*m.noise(seed)))
		return d
	}
	return l
}

// Where rounds scatter more than the claim is wide, hardly a verdict is given:
// the few that are come from three rounds that agree by chance.
func TestScatterCannotBeTold(t *testing.T) {
	for name, pair := range kinds(t) {
		if name == "outcome" {
			continue
		}
		decided := 0
		for seed := range 6 {
			for _, a := range pair {
				c := judged(t, a, 3, wild(fmt.Sprint(name, seed)))
				if c.Verdict != result.CannotTell {
					decided++
					continue
				}
				assert.NotContains(t, c.Reason, "a verdict takes")
			}
		}
		assert.LessOrEqual(t, decided, 3, "%s: %d of 12", name, decided)
	}
}

// On a machine where two formats are equal, a claim that one is faster is decided
// in about one run in twenty, and as often either way.
func TestFalseVerdicts(t *testing.T) {
	p := withFit(planOf(t, threeFormats))
	p.Claims = []plan.Claim{claimOf(plan.Assert{Kind: "ratio", Left: last("UDSP"), Right: last("UDRW"), Bound: bound(t, "> 1", "1")})}
	wrong := 0
	const runs = 200
	for seed := range runs {
		l := steady(map[string]float64{"UDRW": 1e9, "UDSB": 1e9, "UDSP": 1e9, "native": 4e9}, 0)
		l.rate = func(m moment) float64 {
			return 1e9 * math.Exp(0.2*moment{c: m.c, step: m.step, round: m.round}.noise(fmt.Sprint("equal", seed)))
		}
		if heard(t, p, 3, l)[0].Verdict != result.CannotTell {
			wrong++
		}
	}
	assert.LessOrEqual(t, wrong, runs/10)
	assert.Positive(t, wrong, "an error of 5 % that never occurs is no error of 5 %")
}

func TestReasons(t *testing.T) {
	for _, x := range []struct {
		text   string
		noise  float64
		rounds int
		want   string
	}{
		{">= 1.9", 0.05, 3, `^UDSB writes [\d.]+ to [\d.]+ times as fast as UDRW \(3 rounds, 95 % t interval\): the claim needs at least 1.9, and the interval reaches below it$`},
		{">= 3", 0.001, 3, `^UDSB writes [\d.]+( to [\d.]+)? times as fast as UDRW \(3 rounds, 95 % t interval\): the claim needs at least 3, and the whole interval is below it$`},
		{"> 1", 0.001, 3, `^UDSB writes [\d.]+( to [\d.]+)? times as fast as UDRW \(3 rounds, 95 % t interval\): the claim needs more than 1$`},
		{"> 1", 0.001, 1, `^UDSB writes [\d.]+ times as fast as UDRW in 1 round: the claim needs more than 1, and what was seen points that way, but a verdict takes 3 rounds$`},
	} {
		a := plan.Assert{Kind: "ratio", Left: last("UDSB"), Right: last("UDRW"), Bound: bound(t, x.text, "1")}
		c := judged(t, a, x.rounds, threeRates(x.noise))
		assert.Regexp(t, x.want, c.Reason)
		assert.NotEmpty(t, c.Evidence)
	}
}

func TestWhoseBehaviour(t *testing.T) {
	p := withFit(planOf(t, threeFormats))
	c := claimOf(kinds(t)["ratio"][0])
	c.By, c.Scope = "author", "apple"
	mine := claimOf(kinds(t)["ratio"][0])
	mine.ID = "ours"
	p.Claims = []plan.Claim{c, mine}
	l := threeRates(0.01)
	l.engine = own()
	got := analysed(t, p, 3, l).Claims
	assert.Equal(t, result.NotMeasured, got[0].Verdict)
	assert.Contains(t, got[0].Reason, "this engine imitates it")
	assert.Contains(t, got[0].Here, "UDSB writes")
	assert.Equal(t, result.Holds, got[1].Verdict)
	assert.Empty(t, got[1].Here)
	l.engine = apple()
	got = analysed(t, p, 3, l).Claims
	assert.Equal(t, result.Holds, got[0].Verdict)
	assert.Contains(t, got[0].Reason, "it holds under 6 of 6 estimators")
}

// A latency of 4 ms a file makes rates of small files low: the mean of the files'
// rates is then far below bytes over time, and the slope knows no latency at all.
func TestVerdictThatDependsOnTheEstimator(t *testing.T) {
	p := withFit(planOf(t, threeFormats))
	c := claimOf(plan.Assert{Kind: "bound", Left: last("UDSB"), Bound: bound(t, ">= 1.5 GB/s", "B/s")})
	c.By, c.Scope = "author", "apple"
	p.Claims = []plan.Claim{c}
	l := threeRates(0.001)
	l.latency = 4e-3
	got := analysed(t, p, 3, l).Claims[0]
	assert.Equal(t, result.CannotTell, got.Verdict)
	assert.Regexp(t, `^estimator: the claim holds under 2 of 6 estimators of the rate; holds under theil-sen, least-squares; does not under aggregate, mean`, got.Reason)

	// A source that names its statistic is judged under it.
	p.Published = []plan.Published{{Quantity: "write", Where: last("UDSB").Where, Statistic: "theil-sen", Value: plan.Figure{Kind: "is", Low: 2e9, High: 2e9, Unit: "B/s", Text: "2 GB/s"}}}
	got = analysed(t, p, 3, l).Claims[0]
	assert.Equal(t, result.Holds, got.Verdict, got.Reason)
	s := summaryOf(t, analysed(t, p, 3, l), "format=UDSB", "last", "write")
	require.Len(t, s.Published, 1)
	assert.InEpsilon(t, 1, s.Published[0].Ratio, 0.01)
}

func TestManyClaimsTakeMore(t *testing.T) {
	p := withFit(planOf(t, threeFormats))
	a := plan.Assert{Kind: "ratio", Left: last("UDRW"), Right: op("read", "format", "UDRW", "phase", "last"), Bound: bound(t, "< 1.06", "1")}
	weak := claimOf(a)
	for n := range 12 {
		c := weak
		c.ID = strings.Repeat("x", n+1)
		p.Claims = append(p.Claims, c)
	}
	l := threeRates(0.0133)
	alone := *p
	alone.Claims = p.Claims[:1]
	require.Equal(t, result.Holds, analysed(t, &alone, 3, l).Claims[0].Verdict, analysed(t, &alone, 3, l).Claims[0].Reason)
	c := analysed(t, p, 3, l).Claims[0]
	assert.Equal(t, result.CannotTell, c.Verdict)
	assert.Contains(t, c.Reason, "12 claims are judged together")
}

func TestFailedPartOfASelection(t *testing.T) {
	l := threeRates(0.01)
	l.skip = func(c plan.Case) (string, string) {
		if c.Settings.Format == "UDSP" {
			return result.Failed, "round 1: no space left"
		}
		return "", ""
	}
	c := judged(t, kinds(t)["order"][0], 3, l)
	assert.Equal(t, result.NotMeasured, c.Verdict)
	assert.Equal(t, "case format=UDSP was failed: round 1: no space left", c.Reason)
	// One that does not hold decides, whatever is missing beside it.
	c = judged(t, plan.Assert{Kind: "order", Of: []plan.Operand{last("UDRW"), last("UDSB"), last("UDSP")}}, 3, l)
	assert.Equal(t, result.DoesNotHold, c.Verdict, c.Reason)
	c = judged(t, plan.Assert{Kind: "ratio", Left: last("ASIF"), Right: last("UDRW"), Bound: bound(t, "> 1", "1")}, 3, l)
	assert.Equal(t, result.NotMeasured, c.Verdict)
	assert.Contains(t, c.Reason, "this run has no case with format ASIF")
}

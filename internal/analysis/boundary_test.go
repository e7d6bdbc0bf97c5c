package analysis

import (
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"dmgbench/internal/plan"
	"dmgbench/internal/report/wording"
	"dmgbench/internal/result"
)

// Three ratios whose product is 1, and whose mean the rounding of logarithms puts
// a last bit above it: they scatter by a factor of 80 and prove nothing.
func TestMeanAtAnOpenEndProvesNothing(t *testing.T) {
	ratios := []float64{2.0 / 16, 16.0 / 20, 20.0 / 2}
	require.Greater(t, logScale.centre(ratios), 1.0)
	dir, p := logScale.decide(ratios, plan.Bound{Low: 1, High: math.Inf(1), LowOpen: true})
	assert.Equal(t, -1, dir)
	assert.InDelta(t, 1, p, 1e-9)
}

// R² is a share: its interval ends at 1, and "between 0.9 and 1" is held against 0.9 alone.
func TestIntervalOfR2StaysAShare(t *testing.T) {
	p := planOf(t, scaling)
	p.Claims = nil
	for _, text := range []string{"0.9 to 1", ">= 0.9", "<= 1", "< 0.9"} {
		c := claimOf(plan.Assert{Kind: "coefficient", Fit: "rate", Coefficient: "r2", Bound: bound(t, text, "1")})
		c.ID = text
		p.Claims = append(p.Claims, c)
	}
	noisy := perThread(0)
	noisy.stream = func(m moment) (float64, int64, int64) {
		seconds, in, out := perThread(0.002).stream(m)
		if m.round == 2 && m.c.Settings.Threads == 2 {
			seconds *= 1.03 // one round fits less well, so that the t interval alone would pass 1
		}
		return seconds, in, out
	}
	claims := analysed(t, p, 3, noisy).Claims
	for i, want := range []string{result.Holds, result.Holds, result.Holds, result.DoesNotHold} {
		assert.Equal(t, want, claims[i].Verdict, "%s: %s", claims[i].ID, claims[i].Reason)
		assert.Contains(t, claims[i].Reason, "to 1 (3 rounds, 95 % t interval")
	}
	assert.Contains(t, claims[3].Reason, "less than 0.9")
}

// R² is held against both ends of a bound, whether points lie near a line or near none.
func TestClaimsOfR2(t *testing.T) {
	p := planOf(t, scaling)
	low, high := []string{"<= 0.5", "0 to 0.5"}, []string{">= 0.5", "0.5 to 1"}
	for _, text := range slices.Concat(low, high) {
		c := claimOf(plan.Assert{Kind: "coefficient", Fit: "time", Coefficient: "r2", Bound: bound(t, text, "1")})
		c.ID = text
		p.Claims = append(p.Claims, c)
	}
	line, none := perThread(0.002), perThread(0)
	none.stream = func(m moment) (float64, int64, int64) {
		seconds := map[int]float64{1: 10, 2: 2, 4: 2, 8: 10}[m.c.Settings.Threads]
		return seconds * (1 + 0.001*m.noise("t")), 1e9, 1e9
	}
	for isLine, l := range map[bool]laws{true: line, false: none} {
		for _, c := range analysed(t, p, 4, l).Claims {
			want := map[bool]string{true: result.Holds, false: result.DoesNotHold}[isLine == slices.Contains(high, c.ID)]
			assert.Equal(t, want, c.Verdict, "%s: %s", c.ID, c.Reason)
		}
	}
}

// The interval in the evidence of a verdict is the one that the figure has, also
// where the run could have been ended at several looks.
func TestEvidenceHasTheIntervalOfTheFigure(t *testing.T) {
	p := planOf(t, twoFormats)
	c := claimOf(plan.Assert{Kind: "ratio", Left: op("write", "format", "UDSB", "phase", "new"), Right: op("write", "format", "UDRW", "phase", "new"),
		Bound: bound(t, "> 1", "1")})
	p.Claims = []plan.Claim{c}
	r := play(p, 5, steady(flat(), 0.1))
	r.Auto = &result.AutoRounds{Looks: []int{5, 9, 17, 30}}
	require.NoError(t, Analyze(p, r, Options{}))
	s := summaryOf(t, r, "format=UDSB", "new", "write")
	e, ok := findEstimate(s.Estimates, aggregate)
	require.True(t, ok)
	require.Contains(t, e.CI.Method, "4 looks")
	assert.Contains(t, r.Claims[0].Evidence[0], wording.Span{Low: e.CI.Low, High: e.CI.High, Unit: "B/s"}.String()+", "+e.CI.Method)
}

// "About" stands for 5 % to both sides wherever a figure is held against something.
func TestMeasuredAgainstAbout(t *testing.T) {
	p := planOf(t, twoFormats)
	p.Published = []plan.Published{{Quantity: "read", Where: sel("format", "UDSB", "phase", "new"), Value: figure(t, "about 2 GB/s", "B/s")},
		{Quantity: "read", Where: sel("format", "UDRW", "phase", "new"), Value: figure(t, "2 GB/s", "B/s")}}
	measured := operandValue{unit: "B/s", q: "read", rounds: []int{1, 2, 3}, values: []float64{2.06e9, 2.0601e9, 2.0602e9}, per: replica{unit: perSession}}
	s := &runData{p: p}
	exact := s.publishedValue(plan.Operand{Quantity: "read", Where: sel("format", "UDRW", "phase", "new"), Published: true})
	about := s.publishedValue(plan.Operand{Quantity: "read", Where: sel("format", "UDSB", "phase", "new"), Published: true})
	more := bound(t, "> 1", "1")
	assert.Equal(t, 1, judgeRatio(measured, exact, more).dir)
	f := judgeRatio(measured, about, more)
	assert.Equal(t, 0, f.dir, "the true figure may be 2.1 GB/s: %s", f.saw)
	assert.Contains(t, f.gap.String(), "leaves it open")
	assert.Equal(t, 1, judgeRatio(measured, about, bound(t, "> 0.9", "1")).dir)
}

// Starts are counted from the session's own begin: what a resumed run measures
// first was not measured before all else.
func TestCanaryOfAResumedRun(t *testing.T) {
	p := planOf(t, twoFormats)
	made := func(pooled bool) *result.Result {
		r := play(p, 3, steady(flat(), 0.02))
		r.Sessions = append(r.Sessions, r.Sessions[0])
		r.Sessions[1].Index = 2
		for n := range 12 { // slower and slower, over two sessions of six
			at, ns := int64(n%6)*1e9, int64(1e8*math.Pow(1.02, float64(n)))
			c := &r.Cases[n%2]
			c.Steps = append(c.Steps, result.Step{Do: "canary", Op: "write", Round: n/4 + 1, Session: n/6 + 1, StartNS: at,
				Span: &result.Span{GateNS: at, LastDoneNS: at + ns, Bytes: 1e8}})
		}
		if pooled {
			r.Runs = []result.PooledRun{{Run: "a", First: 1, Last: 2}, {Run: "b", First: 3, Last: 3}}
		}
		require.NoError(t, Analyze(p, r, Options{}))
		return r
	}
	r := made(false)
	require.Equal(t, []string{"drift"}, kindsOf(r.Warnings))
	assert.Contains(t, r.Warnings[0].Text, "becoming slower by 19.6 %")
	assert.NotContains(t, kindsOf(made(true).Warnings), "drift", "pooled runs are in no one order of time")
}

// The ratios that count as the same end where a regression begins.
func TestSameEndsWhereARegressionBegins(t *testing.T) {
	for _, k := range []struct {
		op        plan.Quantity
		low, high float64
	}{{"write", 0.95, 1 / 0.95}, {"write_time", 1 / 1.05, 1.05}, {"allocated", 1 / 1.05, 1.05}} {
		c := comparer{o: CompareOptions{Threshold: 0.05}, out: &Comparison{Threshold: 0.05}}
		low, high := c.out.Within(k.op)
		assert.InDelta(t, k.low, low, 1e-12, k.op)
		assert.InDelta(t, k.high, high, 1e-12, k.op)
		at := math.Exp(c.worseAt(k.op))
		assert.True(t, near(at, low) || near(at, high), "%s: a regression from %v", k.op, at)
		one := 1.0
		for _, end := range []struct {
			high   float64
			status string
		}{{high * 0.9999, RowSame}, {high * 1.0001, RowUnclear}} {
			p, worse := one, one
			c.out.Rows = []CompareRow{{Op: string(k.op), Ratio: 1, P: &p, Worse: &worse, Status: RowUnclear, CI: &result.CI{Low: 1, High: end.high, Unit: perSession}}}
			c.decideRows()
			assert.Equal(t, end.status, c.out.Rows[0].Status, "%s up to %v", k.op, end.high)
		}
	}
}

// Where one side lacks a round, the ratio rests on those that both have, and the row says so.
func TestRatioOfWhatBothSidesHave(t *testing.T) {
	said := func(lost int) (warned int, row CompareRow) {
		runs := sessionsOf(t, "4", 0, 1)
		r := runs[0]
		r.Rounds = 5
		for i := range r.Cases {
			id := r.Cases[i].ID
			r.Cases[i].Rounds, r.Cases[i].Steps = nil, nil
			for round := 1; round <= 5; round++ {
				if id == "format=UDRW" && round == lost {
					continue
				}
				rate := 1e9 * float64(round) // all rounds differ, on both sides alike
				ns := int64(1e17 / rate)
				r.Cases[i].Rounds = append(r.Cases[i].Rounds, result.CaseRound{Round: round, Status: result.Done})
				r.Cases[i].Steps = append(r.Cases[i].Steps, result.Step{Do: "write", Op: "write", Phase: "new", Round: round, Session: 1, DurationNS: ns,
					Samples: []result.Sample{{Bytes: 1e8, DurationNS: ns}}, Span: &result.Span{LastDoneNS: ns, Bytes: 1e8}})
			}
		}
		c := compared(t, CompareOptions{By: []string{"format"}, Ops: []plan.Quantity{"write"}}, runs)
		require.Len(t, c.Rows, 1)
		for _, w := range c.Rows[0].Warnings {
			if strings.Contains(w, "the ratio is the mean over the rounds that both sides have") {
				warned++
			}
		}
		return warned, c.Rows[0]
	}
	warned, row := said(0)
	assert.Zero(t, warned)
	assert.InDelta(t, row.Value.Value/row.Base.Value, row.Ratio, 1e-9)
	warned, row = said(5)
	assert.Equal(t, 1, warned)
	assert.InDelta(t, 1, row.Ratio, 1e-6)
	assert.NotEqual(t, row.Base.Value, row.Value.Value)
}

// The best of several named points was chosen by looking: four of one value, beside
// another of the same value, would else be told apart from it in 7 % of runs.
func TestBestOfSeveralNamedPointsCosts(t *testing.T) {
	p := planOf(t, threeFormats)
	r := play(p, 4, steady(map[string]float64{"UDRW": 2e9, "UDSB": 2.1e9, "UDSP": 1e9}, 0.02))
	s, err := newRunData(p, r)
	require.NoError(t, err)
	at := func(points ...string) finding {
		return judge{s: s, est: aggregate}.assert(plan.Assert{Kind: "extreme", Left: op("write", "phase", "last"), Along: "format", Direction: "largest", At: points})
	}
	one, two := at("UDSB"), at("UDSB", "UDSP")
	require.Equal(t, 1, one.dir)
	require.Equal(t, 1, two.dir)
	require.Greater(t, one.p, 1e-4)
	require.Less(t, one.p, 0.5)
	assert.InDelta(t, 2*one.p, two.p, 1e-12)
	other, others := at("UDRW"), at("UDRW", "UDSP")
	require.Equal(t, -1, others.dir)
	assert.LessOrEqual(t, others.p, other.p, "that none of them is the largest is no choice")
}

// Every p value over rounds counts as often as the run could have been ended.
func TestEveryTestPaysForTheLooks(t *testing.T) {
	p := planOf(t, threeFormats)
	p.Fits = []plan.Fit{{Name: "f", Quantity: "write_time", Where: sel("format", "UDSB", "phase", "last"), Along: "file_size", Model: "line"}}
	last := func(format string) plan.Operand { return op("write", "format", format, "phase", "last") }
	at := func(looks []int) map[string]float64 {
		r := play(p, 5, steady(map[string]float64{"UDRW": 2e9, "UDSB": 2.1e9, "UDSP": 1.9e9}, 0.03))
		if looks != nil {
			r.Auto = &result.AutoRounds{Looks: looks}
		}
		s, err := newRunData(p, r)
		require.NoError(t, err)
		out := map[string]float64{}
		for name, a := range map[string]plan.Assert{
			"ratio":       {Kind: "ratio", Left: last("UDSB"), Right: last("UDRW"), Bound: bound(t, "> 1", "1")},
			"difference":  {Kind: "difference", Left: last("UDSB"), Right: last("UDRW"), Bound: bound(t, "> 0 B/s", "B/s")},
			"bound":       {Kind: "bound", Left: last("UDSB"), Bound: bound(t, "> 1 GB/s", "B/s")},
			"small":       {Kind: "spread", Left: op("write", "phase", "last"), Along: "format", Bound: bound(t, "< 0.3", "1")},
			"large":       {Kind: "spread", Left: op("write", "phase", "last"), Along: "format", Bound: bound(t, "> 0.05", "1")},
			"constant":    {Kind: "trend", Left: op("write", "phase", "last"), Along: "format", Direction: "constant", Within: 0.3},
			"trend":       {Kind: "trend", Left: op("write", "phase", "last"), Along: "format", Direction: "falling"},
			"extreme":     {Kind: "extreme", Left: op("write", "phase", "last"), Along: "format", Direction: "largest", At: []string{"UDSB"}},
			"coefficient": {Kind: "coefficient", Fit: "f", Coefficient: "r2", Bound: bound(t, "> 0.1", "1")},
		} {
			f := judge{s: s, est: aggregate}.assert(a)
			require.Empty(t, f.missing+f.weak, name)
			out[name] = f.p
		}
		return out
	}
	fixed, looked := at(nil), at([]int{5, 9})
	for name, p := range fixed {
		assert.Positive(t, p, name)
		assert.InEpsilon(t, min(1, 2*p), looked[name], 1e-9, name)
	}
}

// Zeros have no logarithm: they decide a ratio where all rounds agree, and only there.
func TestRatiosOfZeros(t *testing.T) {
	operand := func(values ...float64) operandValue {
		return operandValue{q: "reclaimed", unit: "B", values: values, rounds: []int{1, 2, 3}}
	}
	zero, some := operand(0, 0, 0), operand(4, 5, 6)
	for _, c := range []struct {
		a, b  operandValue
		bound string
		dir   int
	}{
		{zero, some, "< 0.5", 1}, {zero, some, ">= 0.5", -1}, {zero, zero, ">= 1", 1}, {zero, zero, "> 1", -1}, {some, zero, "> 100", 1},
		{operand(0, 5, 6), some, "<= 1", 1}, {operand(0, 5, 6), some, "< 1", 0}, {operand(-1, 5, 6), some, "<= 1", 0},
	} {
		assert.Equal(t, c.dir, judgeRatio(c.a, c.b, bound(t, c.bound, "1")).dir, "%v / %v %s", c.a.values, c.b.values, c.bound)
	}
}

// A printed range that touches a closed end of the bound may satisfy it; one that touches an open end cannot.
func TestFigureThatTouchesTheBound(t *testing.T) {
	for _, k := range []struct {
		low, high float64
		bound     string
		dir       int
	}{{1, 2, ">= 2", 0}, {1, 2, "> 2", -1}, {2, 3, "<= 2", 0}, {2, 3, "< 2", -1}, {2, 3, ">= 2", 1}, {2, 3, "> 2", 0},
		{1, 1.9, ">= 2", -1}, {2.1, 3, "<= 2", -1}, {0, 0, ">= 0", 1}, {0, 0, "> 0", -1}, {0, 0, "<= 0", 1}, {0, 0, "< 0", -1}} {
		f := judgeFigure(exactly(k.low, k.high), bound(t, k.bound, "1"), wording.Say("phrase.trend", nil, "cycle", "size"))
		assert.Equal(t, k.dir, f.dir, "%v to %v against %s", k.low, k.high, k.bound)
	}
}

// That a spread is large rests on the pair of points that is farthest apart, chosen among all pairs.
func TestLargeSpreadCostsTheNumberOfPairs(t *testing.T) {
	at := func(values ...float64) point {
		return point{operandValue: operandValue{unit: "B", rounds: []int{1, 2, 3}, values: values}}
	}
	points := []point{at(10, 11, 10.5), at(20, 24, 19), at(15, 15.5, 15), at(12, 12, 12)}
	var pair []float64
	for r := range 3 {
		mean := (points[0].values[r] + points[1].values[r] + points[2].values[r] + points[3].values[r]) / 4
		pair = append(pair, (points[1].values[r]-points[0].values[r])/mean)
	}
	p := plainScale.pAt(pair, 0.3)
	require.Less(t, p, family)
	require.Greater(t, 6*p, family)
	f := spreadRounds(points, bound(t, "> 0.3", "1"), wording.Say("phrase.spread", nil, "format", "size"))
	assert.Equal(t, 1, f.dir)
	assert.InDelta(t, 6*p, f.p, 1e-12)
	assert.Equal(t, wording.Text("gap.scatter"), f.gap.String(), "why a pair that alone would decide does not")
}

// A factor from one point to the next needs values above zero.
func TestTrendOfZerosCannotBeTold(t *testing.T) {
	zeros := operandValue{q: "reclaimed", unit: "B", rounds: []int{1, 2, 3}, values: []float64{5, 0, 6}}
	some := operandValue{q: "reclaimed", unit: "B", rounds: []int{1, 2, 3}, values: []float64{5, 5, 6}}
	f := judge{}.trend(plan.Assert{Left: op("reclaimed"), Along: "cycle", Direction: "rising"}, []point{{"1", some}, {"2", zeros}})
	assert.Equal(t, wording.Text("not-positive.factor"), f.weak)
}

func TestNumbersOfOddSteps(t *testing.T) {
	assert.Equal(t, 2.5, quotient(5, 2))
	for _, k := range [][2]float64{{5, 0}, {0, 5}, {0, 0}, {-1, 5}} {
		assert.True(t, math.IsNaN(quotient(int64(k[0]), k[1])), "%v", k)
	}
	for text, want := range map[string]float64{"2.5": 2.5, "8 MiB": 8 << 20} {
		v, ok := number(text)
		assert.True(t, ok, text)
		assert.Equal(t, want, v, text)
	}
	for _, text := range []string{"inf", "NaN", "many"} {
		_, ok := number(text)
		assert.False(t, ok, text)
	}
}

// Below a number that is not positive there is no least value; no rate, time or size is below zero.
func TestWhatAFigureBelowMeans(t *testing.T) {
	assert.Equal(t, span{low: math.Inf(-1), high: -0.3, highOpen: true}, figureValue(figure(t, "below -0.3", "1")).span)
	assert.Equal(t, span{low: 0, high: 0.3, highOpen: true}, figureValue(figure(t, "below 0.3", "1")).span)
	assert.Equal(t, span{low: 3, high: math.Inf(1), lowOpen: true}, figureValue(figure(t, "above 3 B", "B")).span)
}

// A deviation of all cases stays one of all, and cases with the same deviation share one.
func TestDeviationsOfOneTextAreOne(t *testing.T) {
	var l departureList
	l.addText("a", "sets", "one set less")
	l.addText("b", "sets", "one set less")
	l.addText("", "scale", "a tenth")
	l.addText("b", "scale", "a tenth")
	assert.Equal(t, departureList{{Kind: "sets", Text: "one set less", Cases: []string{"a", "b"}}, {Kind: "scale", Text: "a tenth"}}, l)
}

// The verdict on a rank has the numbers of all its comparisons, also where one of them leaves it open.
func TestRankHasTheEvidenceOfAllComparisons(t *testing.T) {
	p := planOf(t, threeFormats)
	printed := last("UDSB")
	printed.Published = true
	p.Published = []plan.Published{
		{Quantity: "write", Where: printed.Where, Value: figure(t, "1.9 GB/s to 2.1 GB/s", "B/s")}}
	s, err := newRunData(p, play(p, 4, steady(map[string]float64{"UDRW": 2e9, "UDSB": 2e9, "UDSP": 1e9}, 0.02)))
	require.NoError(t, err)
	for name, other := range map[string]plan.Operand{"measured": last("UDSB"), "printed, and open": printed} {
		rank := func(of ...plan.Operand) finding {
			return judge{s: s, est: aggregate}.assert(plan.Assert{Kind: "rank", Left: last("UDRW"), Of: of, Rank: 1})
		}
		one, two := rank(other), rank(other, last("UDSP"))
		require.NotEmpty(t, one.evidence, name)
		require.Equal(t, other.Published, two.dir == 0, name)
		assert.Subset(t, two.evidence, one.evidence, name)
		assert.Greater(t, len(two.evidence), len(one.evidence), name)
	}
}

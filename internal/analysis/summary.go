package analysis

import (
	"cmp"
	"math"
	"slices"

	"dmgbench/internal/plan"
	"dmgbench/internal/report/wording"
	"dmgbench/internal/result"
)

// summaries are what was measured, case by case in the order of the result,
// step by step in the order of the protocol.
func (s *runData) summaries() []result.Summary {
	out := []result.Summary{}
	for _, sub := range s.cases {
		for _, k := range sub.order {
			for _, q := range quantitiesOf(k.do, sub.c) {
				if sum, ok := s.summary(cell{sub, k}, q); ok {
					out = append(out, sum)
				}
			}
		}
	}
	return out
}

// summary is one quantity of a cell; false where no round gave it.
func (s *runData) summary(c cell, q plan.Quantity) (result.Summary, bool) {
	k := c.sub.c
	out := result.Summary{Case: k.ID, Phase: c.key.phase, Op: string(q), Cycle: c.key.cycle, Departures: []string{}}
	head := gatherValues(q, []cell{c}, aggregate, nil)
	if head.weak != "" {
		return out, false
	}
	rounds := map[int]bool{}
	for _, st := range c.steps() {
		rounds[st.Round] = true
		switch {
		case !isRate(q):
		case st.Stream != nil:
			out.Bytes += st.Stream.In
		default:
			out.Bytes += spanBytes(st)
		}
	}
	out.Rounds, out.N = len(rounds), head.n
	if isPerFile(q) {
		out.Headline, out.Estimates = s.rates(c, q)
	} else {
		out.Headline, out.Estimates = scalars(c, q)
	}
	s.comparePublished(c, q, &out)
	for _, d := range s.departuresOf(k.ID) {
		out.Departures = append(out.Departures, d.Text)
	}
	values := s.valuesOfRuns(c, q, out.Headline)
	for i, run := range s.r.Runs {
		// As the run's own report has it
		if xs := values[i+1]; len(xs) > 0 {
			out.BySession = append(out.BySession,
				result.SessionValue{Run: run.Run, Value: centre(q.Unit(), xs), Rounds: len(xs)})
		}
	}
	out.Warnings = s.warnings(c, q, out)
	if !k.Measured() {
		out.Warnings = append(out.Warnings, warn("incomplete", k.Status, cmp.Or(k.Reason, wording.Text("no-reason"))))
	}
	return out, true
}

// headlineName is the estimator to quote: the plan's, or the aggregate.
func (s *runData) headlineName() string { return cmp.Or(s.p.Run.Estimator, aggregate) }

// rates are the estimates of the rate of timed files. With several workers only
// the aggregate is a rate of the whole, and the statistics of single files show
// what each got while the others ran.
func (s *runData) rates(c cell, q plan.Quantity) (headline string, out []result.Estimate) {
	list := append(slices.Clone(panel), weighted, latency, minimum, maximum)
	headline = s.headlineName()
	if slices.ContainsFunc(c.steps(), func(st *result.Step) bool { return workers(st) > 1 }) {
		list, headline = []string{aggregate, meanRate, medianRate, trimmedRate, minimum, maximum}, aggregate
	}
	for _, name := range list {
		x := gatherValues(q, []cell{c}, name, nil)
		if x.weak != "" {
			continue
		}
		e := x.estimate(name)
		// Of a single round, an interval over its files
		if len(x.rounds) == 1 && x.per.unit != perSession && name != minimum && name != maximum {
			_, steps := c.replicates()
			fileInterval(&e, steps[x.rounds[0]])
		}
		out = append(out, e)
	}
	if _, ok := findEstimate(out, headline); !ok {
		headline = aggregate
	}
	return headline, out
}

// estimate is the centre of an operand's rounds with its t interval, which an
// extreme does not have.
func (a operandValue) estimate(name string) result.Estimate {
	sc := a.scale()
	// May be negative, where it is noise
	if name == latency {
		a.unit, sc = "s", plainScale.over(a.per)
	}
	e := result.Estimate{Name: name, Value: sc.centre(a.values), Unit: a.unit, N: a.n}
	if name == minimum || name == maximum {
		e.Why = wording.Text("extreme")
		return e
	}
	sc.roundInterval(&e, a.values)
	return e
}

// roundInterval gives an estimate the t interval of its rounds.
func (sc scale) roundInterval(e *result.Estimate, values []float64) {
	iv, err := sc.interval(values)
	if err != nil {
		e.Why = wording.Text("few-rounds.interval", sc.times(len(values)), minRounds)
		return
	}
	if e.CI = ciOf(iv, sc.per.name(), sc.per.method(sc.name)); e.CI == nil {
		e.Why = wording.Text("not-finite")
	}
}

// scalars are the estimates of a quantity of the whole step: the mean of the
// rounds (geometric for rates and times), their median and extremes.
func scalars(c cell, q plan.Quantity) (string, []result.Estimate) {
	x := gatherValues(q, []cell{c}, aggregate, nil)
	name := meanRate
	if q == "stream" {
		name = aggregate
	}
	out := []result.Estimate{x.estimate(name)}
	if x.n < 2 {
		return name, out
	}
	why := wording.Text("interval-of", name)
	out = append(out, result.Estimate{Name: medianRate, Value: median(x.values), Unit: x.unit, N: x.n, Why: why})
	least, most := gatherValues(q, []cell{c}, minimum, nil).values, gatherValues(q, []cell{c}, maximum, nil).values
	why = wording.Text("extreme")
	return name, append(out, result.Estimate{Name: minimum, Value: slices.Min(least), Unit: x.unit, N: x.n, Why: why},
		result.Estimate{Name: maximum, Value: slices.Max(most), Unit: x.unit, N: x.n, Why: why})
}

// findEstimate finds an estimate by name.
func findEstimate(list []result.Estimate, name string) (result.Estimate, bool) {
	return find(list, func(e result.Estimate) bool { return e.Name == name })
}

// valuesOfRuns are the values of the rounds of each pooled run, by its number.
func (s *runData) valuesOfRuns(c cell, q plan.Quantity, est string) map[int][]float64 {
	out := map[int][]float64{}
	if len(s.r.Runs) == 0 {
		return out
	}
	if !isPerFile(q) {
		est = aggregate
	}
	rounds, steps := c.byRound(func(round int) int { return round })
	for _, r := range rounds {
		if x := c.sub.stepsValue(q, est, steps[r], nil); x.err == nil {
			run := replica{unit: perSession}.replicate(s.r.Runs, r)
			out[run] = append(out[run], x.v)
		}
	}
	return out
}

// MeanOverRounds averages one value a round the way the headline figures of r
// are averaged: geometrically for rates and times ("B/s", "s"), as they are for
// sizes and pure numbers; and gives the mean its t interval at the same level
// and over the same unit of replication, the round, or the run where at least
// three are pooled. Without an interval the estimate gives the reason. N is the
// number of units. It is for points of pictures, such as one file size or one
// part of a time, that have no summary of their own; there must be at least one
// value.
func MeanOverRounds(r *result.Result, unit string, byRound map[int]float64) result.Estimate {
	per := replicated(r)
	groups := map[int][]float64{}
	var all []float64
	for _, round := range sortedKeys(byRound) {
		group := per.replicate(r.Runs, round)
		groups[group] = append(groups[group], byRound[round])
		all = append(all, byRound[round])
	}
	sc := scaleOf(unit, all).over(per)
	var values []float64
	for _, group := range sortedKeys(groups) {
		values = append(values, sc.centre(groups[group]))
	}
	e := result.Estimate{Name: meanRate, Unit: unit, N: len(values), Value: sc.centre(values)}
	sc.roundInterval(&e, values)
	return e
}

// needsPrecision reports whether rounds = "auto" waits for the interval of a
// quantity: the rates, and every other that a published figure, a claim, a fit
// or a relation of the plan names. Other quantities, such as how long a detach
// takes, are not worth a round.
func (s *runData) needsPrecision(q plan.Quantity) bool {
	var used []plan.Quantity
	for _, p := range s.p.Published {
		used = append(used, p.Quantity)
	}
	for _, f := range s.p.Fits {
		used = append(used, f.Quantity)
	}
	for _, r := range s.p.Relations {
		used = append(used, r.X.Quantity, r.Y.Quantity)
	}
	for _, c := range s.p.Claims {
		for _, op := range s.operands(c.Assert) {
			used = append(used, op.Quantity)
		}
	}
	return isRate(q) || slices.Contains(used, q)
}

// Widths returns the headlines of the plan's quantities that are not yet as
// certain as rounds = "auto" wants them, and how many can have an interval. r
// is what was measured so far and is not changed. The intervals are those that
// [Analyze] gives, at the level that they have at every look.
//
// A headline waits for its interval below [minRounds] rounds that count; one
// that has none although there are so many never will, and is not judged.
// Neither is a value of exactly zero that does not vary.
func Widths(p *plan.Plan, r *result.Result) (judged int, wide []result.WideInterval, err error) {
	own := *r
	// Warnings are added to cases
	own.Cases = slices.Clone(r.Cases)
	s, err := newRunData(p, &own)
	if err != nil {
		return 0, nil, err
	}
	wide = []result.WideInterval{}
	for _, sum := range s.summaries() {
		e, ok := findEstimate(sum.Estimates, sum.Headline)
		c, _ := find(own.Cases, func(c result.Case) bool { return c.ID == sum.Case })
		// More rounds of a case that was not measured will not help
		if !ok || !c.Measured() || !s.needsPrecision(plan.Quantity(sum.Op)) || e.CI == nil && sum.Rounds >= minRounds {
			continue
		}
		judged++
		half := math.Inf(1)
		if e.CI != nil && sum.Rounds >= minRounds {
			half = halfWidth(e)
		}
		if half <= float64(p.Run.Precision) {
			continue
		}
		if !finite(half) {
			half = -1
		}
		wide = append(wide, result.WideInterval{Case: sum.Case, Phase: sum.Phase, Op: sum.Op, Cycle: sum.Cycle,
			Half: half})
	}
	return judged, wide, nil
}

// halfWidth is half the width of an estimate's interval as a share of its
// value: 0 where no value varies, infinite about zero.
func halfWidth(e result.Estimate) float64 {
	if e.CI.High == e.CI.Low {
		return 0
	}
	return (e.CI.High - e.CI.Low) / 2 / math.Abs(e.Value)
}

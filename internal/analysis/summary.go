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
	rounds, steps := c.byRound(func(round int) int { return round })
	out.Rounds, out.N = len(rounds), head.n
	for _, r := range rounds {
		for _, st := range steps[r] {
			switch {
			case !isRate(q):
			case st.Stream != nil:
				out.Bytes += st.Stream.In
			default:
				out.Bytes += spanBytes(st)
			}
		}
	}
	if isPerFile(q) {
		out.Headline, out.Estimates = s.rates(c, q)
	} else {
		out.Headline, out.Estimates = scalars(c, q)
	}
	out.Published, out.Estimates = s.comparePublished(c, q, out.Headline, out.Estimates)
	for _, d := range s.departuresOf(k.ID) {
		out.Departures = append(out.Departures, d.Text)
	}
	out.BySession = s.bySession(c, q, out.Headline)
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
			own := steps[x.rounds[0]]
			e.Why = ""
			fileInterval(&e, filesOf(own, nil), own)
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
	add := func(name string, v float64, why string) {
		out = append(out, result.Estimate{Name: name, Value: v, Unit: x.unit, N: x.n, Why: why})
	}
	add(medianRate, median(x.values), wording.Text("interval-of", name))
	add(minimum, slices.Min(gatherValues(q, []cell{c}, minimum, nil).values), wording.Text("extreme"))
	add(maximum, slices.Max(gatherValues(q, []cell{c}, maximum, nil).values), wording.Text("extreme"))
	return name, out
}

// findEstimate finds an estimate by name.
func findEstimate(list []result.Estimate, name string) (result.Estimate, bool) {
	return find(list, func(e result.Estimate) bool { return e.Name == name })
}

// bySession is the headline of a cell in each pooled run alone, as the run's
// own report has it: the centre of its rounds.
func (s *runData) bySession(c cell, q plan.Quantity, est string) []result.SessionValue {
	values := s.valuesOfRuns(c, q, est)
	var out []result.SessionValue
	for i, run := range s.r.Runs {
		if xs := values[i+1]; len(xs) > 0 {
			out = append(out, result.SessionValue{Run: run.Run, Value: centre(q.Unit(), xs), Rounds: len(xs)})
		}
	}
	return out
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
			run := runOf(c.sub.runs, r)
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
	return isRate(q) ||
		slices.ContainsFunc(s.p.Published, func(p plan.Published) bool { return p.Quantity == q }) ||
		slices.ContainsFunc(s.p.Fits, func(f plan.Fit) bool { return f.Quantity == q }) ||
		slices.ContainsFunc(s.p.Relations, func(r plan.Relation) bool {
			return r.X.Quantity == q || r.Y.Quantity == q
		}) ||
		slices.ContainsFunc(s.p.Claims, func(c plan.Claim) bool {
			return slices.ContainsFunc(s.operands(c.Assert), func(op plan.Operand) bool { return op.Quantity == q })
		})
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
		half := -1.0
		if e.CI != nil && sum.Rounds >= minRounds {
			if half = halfWidth(e); half <= float64(p.Run.Precision) {
				continue
			}
			if !finite(half) {
				half = -1
			}
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

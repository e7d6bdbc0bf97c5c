package analysis

import (
	"cmp"
	"slices"
	"strings"

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
			for _, q := range quantitiesOf(k, sub.c) {
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
	out := result.Summary{Case: k.ID, Phase: c.key.label(), Op: string(q), Cycle: c.key.cycle,
		Operation: c.key.operation, Departures: []string{}}
	head := gatherValues(q, []cell{c}, aggregate, nil)
	if head.weak != "" {
		return out, false
	}
	rounds, _ := c.rounds()
	for _, st := range c.steps() {
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
	out.BySession = s.valuesOfRuns(c, q, out.Headline)
	if !s.skipWarnings {
		out.Warnings = s.warnings(c, q, out)
	}
	if !k.Measured() {
		out.Warnings = append(out.Warnings, warn("incomplete", k.Status, cmp.Or(k.Reason, wording.Text("no-reason"))))
	}
	return out, true
}

// rates are the estimates of the rate of timed files. With several workers only
// the aggregate is a rate of the whole, and the statistics of single files show
// what each got while the others ran.
func (s *runData) rates(c cell, q plan.Quantity) (headline string, out []result.Estimate) {
	headline = s.headlineName()
	if slices.ContainsFunc(c.steps(), func(st *result.Step) bool { return workers(st) > 1 }) {
		headline = aggregate
	}
	for _, name := range append(slices.Clone(panel), weighted, latency, minimum, maximum) {
		x := gatherValues(q, []cell{c}, name, nil)
		if x.weak != "" {
			continue
		}
		e := x.estimate(name)
		// Of a single round, an interval over its files
		if len(x.rounds) == 1 && x.per.unit != perSession && name != minimum && name != maximum {
			_, steps := c.rounds()
			fileInterval(&e, steps[x.rounds[0]])
		}
		out = append(out, e)
	}
	if _, ok := findEstimate(out, headline); !ok {
		headline = aggregate
	}
	return headline, out
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
	add(minimum, slices.Min(roundValues(q, []cell{c}, minimum, nil).values), wording.Text("extreme"))
	add(maximum, slices.Max(roundValues(q, []cell{c}, maximum, nil).values), wording.Text("extreme"))
	return name, out
}

// valuesOfRuns are the values of the pooled runs, as their own reports have
// them.
func (s *runData) valuesOfRuns(c cell, q plan.Quantity, est string) (out []result.SessionValue) {
	rounds, steps := c.rounds()
	for _, run := range s.r.Runs {
		var values []float64
		for _, r := range rounds {
			if x := c.sub.stepsValue(q, est, steps[r], nil); x.err == nil && r >= run.First && r <= run.Last {
				values = append(values, x.v)
			}
		}
		if n := len(values); n > 0 {
			out = append(out, result.SessionValue{Run: run.Run, Value: centre(q.Unit(), values), Rounds: n})
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
	rounds := sortedKeys(byRound)
	all := mapped(rounds, func(round int) float64 { return byRound[round] })
	groups := groupBy(mapped(rounds, func(round int) int { return per.replicate(r.Runs, round) }), all)
	sc := scaleOf(unit, all).over(per)
	values := mapped(sortedKeys(groups), func(group int) float64 { return sc.centre(groups[group]) })
	e := result.Estimate{Name: meanRate, Unit: unit, N: len(values), Value: sc.centre(values)}
	sc.roundInterval(&e, values)
	return e
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
		if e.CI != nil && sum.Rounds >= minRounds && finite(halfWidth(e)) {
			half = halfWidth(e)
		}
		if half < 0 || half > float64(p.Run.Precision) {
			wide = append(wide, result.WideInterval{Case: sum.Case, Phase: sum.Phase, Op: sum.Op, Cycle: sum.Cycle,
				Half: half})
		}
	}
	return judged, wide, nil
}

func keyOf(sum *result.Summary) quantityKey {
	return quantityKey{sum.Case, sum.Phase, sum.Cycle, plan.Quantity(sum.Op)}
}

// tables fills in the tables of the plan. It needs the summaries and takes
// their numbers and warnings: a table never differs from the figures.
func (s *runData) tables() []result.Table {
	at := map[quantityKey]*result.Summary{}
	for i := range s.r.Summaries {
		sum := &s.r.Summaries[i]
		at[keyOf(sum)] = sum
	}
	return mapped(s.p.Tables, func(t plan.Table) result.Table {
		return result.Table{Name: t.Name, Title: t.Title, Caption: t.Caption,
			Columns: linesOf(&t, t.Columns), Rows: linesOf(&t, t.Rows),
			Cells: mapped(t.Rows, func(row plan.TableLine) []result.TableCell {
				return mapped(t.Columns, func(column plan.TableLine) result.TableCell {
					switch l := plan.Cell(row, column); {
					case l.Coefficient != "":
						return s.coefficientCell(l)
					case l.Step != "":
						return s.outcomeCell(l)
					default:
						return s.figureCell(l.Operand, at)
					}
				})
			})}
	})
}

func linesOf(t *plan.Table, lines []plan.TableLine) []result.TableLine {
	return mapped(lines, func(l plan.TableLine) result.TableLine {
		out := result.TableLine{Title: l.Heading(), Group: l.Group, Op: string(l.Quantity)}
		switch {
		case l.Coefficient != "":
			out.Op = result.OpCoefficient
		case l.Step != "":
			out.Op = result.OpOutcome
		}
		if l.HasValue() {
			out.Unit, out.Digits = t.DisplayFormat(l)
			out.Printed = l.Published
		}
		return out
	})
}

// figureCell is one figure, measured and printed. An operand that is only
// printed is not looked for among what was measured.
func (s *runData) figureCell(op plan.Operand, at map[quantityKey]*result.Summary) (out result.TableCell) {
	if !op.Published {
		out = s.measuredCell(op, at)
	}
	// Figures of no case that the cell does not name in full are left out: a
	// general remark about some other image is not a figure of this one.
	p, own := *s.p, *s
	p.Published = slices.DeleteFunc(slices.Clone(p.Published), func(f plan.Published) bool {
		return f.Unmeasured && slices.ContainsFunc(f.Where, func(c plan.Choice) bool { return !op.Where.Names(c.Key) })
	})
	own.p = &p
	figures, why := own.figures(op)
	switch {
	case len(figures) > 0:
		v := s.publishedCell(figures, out.Estimate, out.Case)
		out.Published = &v
		if figures[0].Unmeasured && out.Why != "" {
			out.Why = wording.Text("cell.unmeasured")
		}
	case op.Published:
		out.Why = wording.Join(why.missing, why.weak)
	}
	return out
}

func (s *runData) measuredCell(op plan.Operand, at map[quantityKey]*result.Summary) result.TableCell {
	cells, missing := s.cells(op.Quantity, op.Where, false)
	switch {
	case missing != "":
		return result.TableCell{Why: cmp.Or(s.notPlanned(doOf(op.Quantity), op.Where), missing)}
	case len(cells) > 1:
		return result.TableCell{Why: wording.Text("cell.several", wording.Count{N: len(cells), Noun: "figure"})}
	}
	c := cells[0]
	out := result.TableCell{Case: c.sub.c.ID, Phase: c.key.label(), Cycle: c.key.cycle}
	sum := at[quantityKey{out.Case, out.Phase, out.Cycle, op.Quantity}]
	if sum == nil {
		out.Why = cmp.Or(gatherValues(op.Quantity, cells, aggregate, nil).weak, wording.Text("cell.no-quantity"))
		return out
	}
	out.Rounds, out.Warnings = sum.Rounds, sum.Warnings
	name, f := cmp.Or(op.Statistic, sum.Headline), filterOf(op.Where)
	e, ok := findEstimate(sum.Estimates, name)
	why := wording.Say("cell.no-statistic", name)
	switch {
	case len(f) > 0 && !isPerFile(op.Quantity):
		why, ok = wording.Say("cell.not-of-files"), false
	case len(f) > 0:
		why = wording.Say("cell.no-file")
		e, ok = partEstimate(c, op.Quantity, name, name+"@"+filterText(f), f)
	}
	if out.Estimate = &e; !ok {
		out.Estimate, out.Why = nil, why.String()
	}
	return out
}

// notPlanned reports that the protocol has no such step, "" where it has.
func (s *runData) notPlanned(do string, where plan.Selector) string {
	why := wording.Text("cell.no-case")
	for id := range s.planned {
		c := s.planned[id]
		if caseOnly(where).Match(c.Value) {
			why = wording.Text("cell.no-step")
			if hasStep(c.Steps, do, where) {
				return ""
			}
		}
	}
	return why
}

// publishedCell is what the source prints for a cell, with the ratio of the
// measured value to it. Several figures that the source prints for parts of it
// are shown as printed.
func (s *runData) publishedCell(figures []plan.Published, e *result.Estimate, id string) result.PublishedValue {
	p := figures[0]
	out := s.publishedResult(p)
	out.Comparable = id != "" && e != nil && s.isComparable(id) && s.isTakenHere(p.On)
	for _, f := range figures {
		out.Low, out.High = min(out.Low, f.Value.Low), max(out.High, f.Value.High)
	}
	texts := texts(figures, func(f plan.Published) string { return f.Value.Text })
	if len(texts) > 1 {
		out.Kind, out.Text = "range", strings.Join(texts, ", ")
		return out
	}
	if setRatio(&out, e, figureValue(p.Value).headline()) {
		out.Comparable = out.Comparable && (p.Statistic == "" || p.Statistic == e.Name)
	}
	return out
}

// coefficientCell is a coefficient of a fit of the plan, as the fit has it. Of
// one that is shown by its inverse the ends of the interval change places, and
// one that is not above 0 has none.
func (s *runData) coefficientCell(l plan.TableLine) result.TableCell {
	f, _ := s.fitNamed(l.Fit)
	out := result.TableCell{Fit: l.Fit, Why: wording.Text("cell.not-fitted")}
	unit, inverse := plan.CoefficientUnit(f, l.Coefficient)
	fit, _ := find(s.r.Fits, func(f result.Fit) bool { return f.Name == l.Fit })
	c, ok := find(fit.Coefficients, func(c result.Coefficient) bool { return c.Name == l.Coefficient })
	e := &result.Estimate{Name: c.Name, Value: c.Value, Unit: unit, CI: c.CI}
	switch {
	case c.Name == "r2":
		e.Why = wording.Text("r2-interval")
	case c.CI == nil:
		e.Why = wording.Text("few-rounds.coefficient", minRounds)
	case inverse:
		ci := *c.CI
		ci.Low, ci.High = 1/c.CI.High, 1/c.CI.Low
		if e.CI = &ci; c.CI.Low <= 0 || !finite(ci.Low, ci.High) {
			e.CI, e.Why = nil, wording.Text("no-inverse")
		}
	}
	if inverse {
		e.Value = 1 / c.Value
	}
	switch {
	case fit.Reason != "":
		out.Why = fit.Reason
	case ok && inverse && (c.Value <= 0 || !finite(e.Value)):
		out.Why = wording.Text("cell.time-falls")
	case ok:
		out.Estimate, out.Why = e, ""
	}
	if c, ok := find(f.Published, func(c plan.Coefficient) bool { return c.Name == l.Coefficient }); ok {
		out.Published = s.publishedCoefficient(f, c, unit, inverse, out.Estimate)
	}
	return out
}

func (s *runData) publishedCoefficient(
	f plan.Fit, c plan.Coefficient, unit string, inverse bool, e *result.Estimate,
) *result.PublishedValue {
	out := &result.PublishedValue{Text: c.Text, Kind: "is", Low: c.Value, High: c.Value, Unit: unit,
		On: s.originText(plan.Published{})}
	if inverse {
		out.Text, out.Low, out.High = "", 1/c.Value, 1/c.Value
		if !finite(out.Low) {
			// A printed slope of nothing is no rate
			return nil
		}
	}
	if setRatio(out, e, out.Low) {
		picked := slices.DeleteFunc(slices.Clone(s.cases), func(sub *caseData) bool { return !sub.matches(f.Where) })
		isOther := func(sub *caseData) bool { return !s.isComparable(sub.c.ID) }
		out.Comparable = len(picked) > 0 && !slices.ContainsFunc(picked, isOther)
	}
	return out
}

// outcomeCell is how the steps of one kind ended, in all rounds that were run
// to an end.
func (s *runData) outcomeCell(l plan.TableLine) (out result.TableCell) {
	o := result.TableOutcome{Do: l.Step}
	steps, why := s.endedSteps(l.Step, l.Where)
	rounds := map[int]bool{}
	for _, st := range steps {
		out.Case, out.Phase, out.Cycle = st.id, st.Phase, st.Cycle
		rounds[st.Round] = true
		if st.Error != "" {
			o.Failed++
		} else {
			o.OK++
		}
	}
	ok, fail := cmp.Or(l.OK, "ok"), cmp.Or(l.Fail, "fails")
	switch len(steps) {
	case 0:
		out.Why = cmp.Or(s.notPlanned(l.Step, l.Where), why, wording.Text("cell.not-reached"))
		return out
	case o.OK:
		o.Text = ok
	case o.Failed:
		o.Text = fail
	default:
		o.Text = wording.Text("cell.outcomes", ok, o.OK, len(steps), fail, o.Failed)
	}
	out.Outcome, out.Rounds = &o, len(rounds)
	return out
}

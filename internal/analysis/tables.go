package analysis

import (
	"cmp"
	"slices"
	"strings"

	"dmgbench/internal/plan"
	"dmgbench/internal/report/wording"
	"dmgbench/internal/result"
)

// summaryKey finds a summary.
type summaryKey struct {
	id, phase, op string
	cycle         int
}

func keyOf(sum *result.Summary) summaryKey { return summaryKey{sum.Case, sum.Phase, sum.Op, sum.Cycle} }

// tables fills in the tables of the plan. It needs the summaries and takes
// their numbers and warnings: a table never differs from the figures.
func (s *runData) tables() []result.Table {
	at := map[summaryKey]*result.Summary{}
	for i := range s.r.Summaries {
		sum := &s.r.Summaries[i]
		at[keyOf(sum)] = sum
	}
	out := []result.Table{}
	for i := range s.p.Tables {
		t := &s.p.Tables[i]
		made := result.Table{Name: t.Name, Title: t.Title, Caption: t.Caption,
			Columns: linesOf(t, t.Columns), Rows: linesOf(t, t.Rows), Cells: [][]result.TableCell{}}
		for _, l := range t.Rows {
			row := []result.TableCell{}
			for _, c := range t.Columns {
				switch l := plan.Cell(l, c); {
				case l.Coefficient != "":
					row = append(row, s.coefficientCell(l))
				case l.Step != "":
					row = append(row, s.outcomeCell(l))
				default:
					row = append(row, s.figureCell(l.Operand, at))
				}
			}
			made.Cells = append(made.Cells, row)
		}
		out = append(out, made)
	}
	return out
}

func linesOf(t *plan.Table, lines []plan.TableLine) []result.TableLine {
	list := []result.TableLine{}
	for _, l := range lines {
		out := result.TableLine{Title: l.Heading(), Group: l.Group, Op: string(l.Quantity)}
		switch {
		case l.Coefficient != "":
			out.Op = result.OpCoefficient
		case l.Step != "":
			out.Op = result.OpOutcome
		}
		if l.HasValue() {
			out.Unit, out.Digits = t.DisplayFormat(l, plan.TableLine{})
			out.Printed = l.Published
		}
		list = append(list, out)
	}
	return list
}

// figureCell is one figure, measured and printed. An operand that is only
// printed is not looked for among what was measured.
func (s *runData) figureCell(op plan.Operand, at map[summaryKey]*result.Summary) (out result.TableCell) {
	if !op.Published {
		out = s.measuredCell(op, at)
	}
	// Figures of no case that the cell does not name in full are left out: a
	// general remark about some other image is not a figure of this one.
	p, own := *s.p, *s
	p.Published = slices.DeleteFunc(slices.Clone(p.Published), func(f plan.Published) bool {
		return f.Unmeasured && slices.ContainsFunc(f.Where, func(c plan.Choice) bool { return !names(op.Where, c.Key) })
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

func (s *runData) measuredCell(op plan.Operand, at map[summaryKey]*result.Summary) result.TableCell {
	cells, missing := s.cells(op.Quantity, op.Where, false)
	switch {
	case missing != "":
		return result.TableCell{Why: cmp.Or(s.notPlanned(doOf(op.Quantity), op.Where), missing)}
	case len(cells) > 1:
		return result.TableCell{Why: wording.Text("cell.several", wording.Count{N: len(cells), Noun: "figure"})}
	}
	c := cells[0]
	out := result.TableCell{Case: c.sub.c.ID, Phase: c.key.phase, Cycle: c.key.cycle}
	sum := at[summaryKey{out.Case, out.Phase, string(op.Quantity), out.Cycle}]
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
	if ok {
		out.Estimate = &e
	} else {
		out.Why = why.String()
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
	var texts []string
	for _, f := range figures {
		texts = appendUnique(texts, f.Value.Text)
		out.Low, out.High = min(out.Low, f.Value.Low), max(out.High, f.Value.High)
	}
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
	f, ok := s.fitNamed(l.Fit)
	if !ok {
		return result.TableCell{Why: wording.Text("cell.no-fit", cmp.Or(l.Fit, "nothing"))}
	}
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
		On: originText(s.origin(plan.Published{}))}
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

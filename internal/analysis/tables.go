package analysis

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"

	"dmgbench/internal/plan"
	"dmgbench/internal/result"
)

// tables fills in the tables of the plan. It needs the summaries and takes their
// numbers and warnings: a table never differs from the figures.
func (s *runData) tables() []result.Table {
	out := []result.Table{}
	at := map[summaryKey]*result.Summary{}
	for i := range s.r.Summaries {
		sum := &s.r.Summaries[i]
		at[summaryKey{sum.Case, sum.Phase, sum.Op, sum.Cycle}] = sum
	}
	for i := range s.p.Tables {
		t := &s.p.Tables[i]
		made := result.Table{Name: t.Name, Title: t.Title, Caption: t.Caption, Columns: []result.TableLine{}, Rows: []result.TableLine{}, Cells: [][]result.TableCell{}}
		for _, c := range t.Columns {
			made.Columns = append(made.Columns, lineOf(t, c))
		}
		for _, l := range t.Rows {
			row := []result.TableCell{}
			for _, c := range t.Columns {
				row = append(row, s.tableCell(plan.Cell(l, c), at))
			}
			made.Rows, made.Cells = append(made.Rows, lineOf(t, l)), append(made.Cells, row)
		}
		out = append(out, made)
	}
	return out
}

// summaryKey finds a summary.
type summaryKey struct {
	id, phase, op string
	cycle         int
}

func lineOf(t *plan.Table, l plan.TableLine) result.TableLine {
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
	return out
}

// tableCell is what one cell asks for.
func (s *runData) tableCell(l plan.TableLine, at map[summaryKey]*result.Summary) result.TableCell {
	switch {
	case l.Coefficient != "":
		return s.coefficientCell(l)
	case l.Step != "":
		return s.outcomeCell(l)
	}
	return s.figureCell(l.Operand, at)
}

// figureCell is one figure, measured and printed. An operand that is only printed
// is not looked for among what was measured.
func (s *runData) figureCell(op plan.Operand, at map[summaryKey]*result.Summary) result.TableCell {
	var out result.TableCell
	id := ""
	if !op.Published {
		out = s.measuredCell(op, at)
		id = out.Case
	}
	figures, why := s.withNamedFigures(op).figures(op)
	switch {
	case len(figures) > 0 && why.weak == "":
		out.Published = s.printedValue(figures, out.Estimate, id)
		if figures[0].Unmeasured && out.Why != "" {
			out.Why = "this plan does not measure it"
		}
	case op.Published:
		out.Why = join(why.missing, why.weak)
	}
	return out
}

// meant leaves out the figures of no case that a cell does not name in full: a
// general remark about some other image is not a figure of this one.
func (s *runData) withNamedFigures(op plan.Operand) *runData {
	if !slices.ContainsFunc(s.p.Published, func(f plan.Published) bool { return f.Unmeasured }) {
		return s
	}
	p := *s.p
	p.Published = slices.DeleteFunc(slices.Clone(p.Published), func(f plan.Published) bool {
		return f.Unmeasured && slices.ContainsFunc(f.Where, func(c plan.Choice) bool {
			_, named := choiceOf(op.Where, c.Key)
			return !named
		})
	})
	out := *s
	out.p = &p
	return &out
}

func (s *runData) measuredCell(op plan.Operand, at map[summaryKey]*result.Summary) result.TableCell {
	cells, missing := s.cells(op.Quantity, op.Where)
	switch {
	case missing != "":
		return result.TableCell{Why: cmp.Or(s.notPlanned(doOf(op.Quantity), op.Where), missing)}
	case len(cells) > 1:
		return result.TableCell{Why: fmt.Sprintf("%s were measured, a cell is one", plural(len(cells), "figure"))}
	}
	c := cells[0]
	out := result.TableCell{Case: c.sub.c.ID, Phase: c.key.phase, Cycle: c.key.cycle}
	sum := at[summaryKey{out.Case, out.Phase, string(op.Quantity), out.Cycle}]
	if sum == nil {
		out.Why = cmp.Or(gatherValues(op.Quantity, cells, aggregate, nil).weak, "this kind of image has no such figure")
		return out
	}
	out.Rounds, out.Warnings = sum.Rounds, sum.Warnings
	name := cmp.Or(op.Statistic, sum.Headline)
	e, ok := estimate(sum.Estimates, name)
	if f := filterOf(op.Where); f != nil {
		if !perFile(op.Quantity) {
			out.Why = "only rates of files can be split by file"
			return out
		}
		if e, ok = partEstimate(c, op.Quantity, name, name+"@"+partText(f), f); !ok {
			out.Why = "no such file was timed"
			return out
		}
	}
	switch {
	case !ok:
		out.Why = "unknown statistic: " + name
	case !finite(e.Value):
		out.Why = noNumber
	default:
		if e.CI != nil && !finite(e.CI.Low, e.CI.High) {
			e.CI, e.Why = nil, noNumber
		}
		out.Estimate = &e
	}
	return out
}

// notPlanned reports that the protocol has no such step, "" where it has.
func (s *runData) notPlanned(do string, where plan.Selector) string {
	hit := false
	for id := range s.planned {
		c := s.planned[id]
		if !caseOnly(where).Match(c.Value) {
			continue
		}
		hit = true
		if hasStep(c.Steps, do, where) {
			return ""
		}
	}
	if !hit {
		return "no case of this run"
	}
	return "not part of the protocol"
}

// printedValue is what the source prints for a cell, with the ratio of the measured
// value to it. Several figures that the source prints for parts of it are shown
// as printed.
func (s *runData) printedValue(figures []plan.Published, e *result.Estimate, id string) *result.PublishedValue {
	p := figures[0]
	out := &result.PublishedValue{Text: p.Value.Text, Kind: p.Value.Kind, Low: p.Value.Low, High: p.Value.High, Unit: p.Value.Unit,
		Statistic: p.Statistic, On: onText(s.where(p)), Comparable: id != "" && e != nil && s.comparable(id) && s.takenHere(p.On)}
	texts := []string{p.Value.Text}
	for _, more := range figures[1:] {
		if !slices.Contains(texts, more.Value.Text) {
			texts = append(texts, more.Value.Text)
		}
		out.Low, out.High = min(out.Low, more.Value.Low), max(out.High, more.Value.High)
	}
	if len(texts) > 1 {
		out.Kind, out.Text = "range", strings.Join(texts, ", ")
	}
	mid := figureSide(p.Value).headline()
	if e == nil || len(texts) > 1 || mid == 0 || !finite(mid) {
		return out
	}
	if r := e.Value / mid; finite(r) && !math.Signbit(r) {
		out.Ratio, out.Estimate = r, e.Name
	}
	out.Comparable = out.Comparable && (p.Statistic == "" || p.Statistic == e.Name)
	return out
}

// coefficientCell is a coefficient of a fit of the plan, as the fit has it.
func (s *runData) coefficientCell(l plan.TableLine) result.TableCell {
	out := result.TableCell{Fit: l.Fit}
	f, ok := s.fitNamed(l.Fit)
	if !ok {
		return result.TableCell{Why: cmp.Or(l.Fit, "nothing") + " is no fit of the plan"}
	}
	unit, inverse := plan.CoefficientUnit(f, l.Coefficient)
	out.Why = "not fitted"
	if i := slices.IndexFunc(s.r.Fits, func(f result.Fit) bool { return f.Name == l.Fit }); i >= 0 {
		fit := &s.r.Fits[i]
		k := slices.IndexFunc(fit.Coefficients, func(c result.Coefficient) bool { return c.Name == l.Coefficient })
		switch {
		case fit.Reason != "":
			out.Why = fit.Reason
		case k >= 0:
			out.Estimate, out.Why = coefficientEstimate(&fit.Coefficients[k], unit, inverse)
		}
	}
	if i := slices.IndexFunc(f.Published, func(c plan.Coefficient) bool { return c.Name == l.Coefficient }); i >= 0 {
		out.Published = s.printedCoefficient(f, f.Published[i], unit, inverse, out.Estimate)
	}
	return out
}

// coefficientEstimate puts a coefficient into the form of any figure. Of one that
// is shown by its inverse the ends of the interval change places, and one that is
// not above 0 has none.
func coefficientEstimate(c *result.Coefficient, unit string, inverse bool) (*result.Estimate, string) {
	e := &result.Estimate{Name: c.Name, Value: c.Value, Unit: unit, CI: c.CI}
	if c.Name == "r2" {
		e.Why = "R² has no interval"
	} else if c.CI == nil {
		e.Why = fmt.Sprintf("too few rounds: an interval of a coefficient needs %d, or the files of one round", minRounds)
	}
	if !inverse {
		return e, ""
	}
	if c.Value <= 0 || !finite(1/c.Value) {
		return nil, "the fitted time does not grow with the size"
	}
	e.Value = 1 / c.Value
	if ci := c.CI; ci != nil {
		turned := *ci
		turned.Low, turned.High = 1/ci.High, 1/ci.Low
		if e.CI = &turned; ci.Low <= 0 || !finite(turned.Low, turned.High) {
			e.CI, e.Why = nil, "the interval of the slope has no inverse: it reaches 0"
		}
	}
	return e, ""
}

func (s *runData) printedCoefficient(f plan.Fit, c plan.Coefficient, unit string, inverse bool, e *result.Estimate) *result.PublishedValue {
	if inverse && !finite(1/c.Value) {
		return nil // a printed slope of nothing is no rate
	}
	out := &result.PublishedValue{Text: c.Text, Kind: "is", Low: c.Value, High: c.Value, Unit: unit, On: onText(s.where(plan.Published{}))}
	if inverse {
		out.Text, out.Low = "", 1/c.Value
		out.High = out.Low
	}
	if e == nil || out.Low == 0 || !finite(out.Low) {
		return out
	}
	if r := e.Value / out.Low; finite(r) && !math.Signbit(r) {
		out.Ratio, out.Estimate = r, e.Name
	}
	for _, sub := range s.cases {
		if sub.matches(f.Where) {
			if out.Comparable = s.comparable(sub.c.ID); !out.Comparable {
				break
			}
		}
	}
	return out
}

// outcomeCell is how the steps of one kind ended, in all rounds that were run to
// an end.
func (s *runData) outcomeCell(l plan.TableLine) result.TableCell {
	var out result.TableCell
	o := result.TableOutcome{Do: l.Step}
	why := ""
	rounds := map[int]bool{}
	for _, sub := range s.cases {
		if !sub.matches(l.Where) {
			continue
		}
		for _, st := range sub.endedSteps(l.Step, l.Where) {
			out.Case, out.Phase, out.Cycle = sub.c.ID, st.Phase, st.Cycle
			rounds[st.Round] = true
			if st.Error != "" {
				o.Failed++
			} else {
				o.OK++
			}
		}
		why = join(why, s.absent(sub, l.Step, l.Where))
	}
	n := o.OK + o.Failed
	if n == 0 {
		out.Why = cmp.Or(s.notPlanned(l.Step, l.Where), cmp.Or(why, "the step was not reached"))
		return out
	}
	ok, fail := cmp.Or(l.OK, "ok"), cmp.Or(l.Fail, "fails")
	switch n {
	case o.OK:
		o.Text = ok
	case o.Failed:
		o.Text = fail
	default:
		o.Text = fmt.Sprintf("%s %d of %d times, %s %d", ok, o.OK, n, fail, o.Failed)
	}
	out.Outcome, out.Rounds = &o, len(rounds)
	return out
}

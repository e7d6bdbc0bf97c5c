package analysis

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"dmgbench/internal/plan"
	"dmgbench/internal/result"
)

// tables fills in the tables of the plan. It needs the summaries, whose numbers
// and warnings it takes: a table never says anything else than the figures do.
func (s *study) tables() []result.Table {
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
	if l.Asks() {
		out.Unit, out.Digits = t.Shown(l, plan.TableLine{})
		out.Printed = l.Published
	}
	return out
}

// tableCell is what one cell asks for.
func (s *study) tableCell(l plan.TableLine, at map[summaryKey]*result.Summary) result.TableCell {
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
func (s *study) figureCell(op plan.Operand, at map[summaryKey]*result.Summary) result.TableCell {
	var out result.TableCell
	id := ""
	if !op.Published {
		out = s.measuredCell(op, at)
		id = out.Case
	}
	figures, why := s.meant(op).figures(op)
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
// general remark about some other image is no figure of this one.
func (s *study) meant(op plan.Operand) *study {
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

func (s *study) measuredCell(op plan.Operand, at map[summaryKey]*result.Summary) result.TableCell {
	cells, missing := s.cells(op.Quantity, op.Where)
	switch {
	case missing != "":
		return result.TableCell{Why: orElse(s.notPlanned(doOf(op.Quantity), op.Where), missing)}
	case len(cells) > 1:
		return result.TableCell{Why: fmt.Sprintf("%s were measured, a cell is one", plural(len(cells), "figure"))}
	}
	c := cells[0]
	out := result.TableCell{Case: c.sub.c.ID, Phase: c.key.phase, Cycle: c.key.cycle}
	sum := at[summaryKey{out.Case, out.Phase, string(op.Quantity), out.Cycle}]
	if sum == nil {
		out.Why = orElse(gather(op.Quantity, cells, aggregate, nil).weak, "this kind of image has no such figure")
		return out
	}
	out.Rounds, out.Warnings = sum.Rounds, sum.Warnings
	name := orElse(op.Statistic, sum.Headline)
	e, ok := estimate(sum.Estimates, name)
	if f := filterOf(op.Where); f != nil {
		if !perFile(op.Quantity) {
			out.Why = "only rates of files can be told by file"
			return out
		}
		if e, ok = partEstimate(c, op.Quantity, name, name+"@"+partText(f), f); !ok {
			out.Why = "no such file was timed"
			return out
		}
	}
	switch {
	case !ok:
		out.Why = "there is no such statistic: " + name
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

// notPlanned says that the protocol has no such step at all, "" where it has.
func (s *study) notPlanned(do string, where plan.Selector) string {
	hit := false
	for id := range s.planned {
		c := s.planned[id]
		if !caseOnly(where).Match(c.Value) {
			continue
		}
		hit = true
		if asked(c.Steps, do, where) {
			return ""
		}
	}
	if !hit {
		return "no case of this run"
	}
	return "not part of the protocol"
}

// printedValue is what the source prints for a cell, with the ratio of what was
// measured to it. Several figures that the source prints for parts of it are told
// as they stand.
func (s *study) printedValue(figures []plan.Published, e *result.Estimate, id string) *result.PublishedValue {
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

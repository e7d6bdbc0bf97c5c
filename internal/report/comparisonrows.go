package report

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"dmgbench/internal/analysis"
	"dmgbench/internal/report/wording"
)

// rowSections are a table for each quantity, with a column for each side.
func rowSections(c *analysis.Comparison) []Section {
	var out []Section
	name := rowNames(c.Rows)
	for _, op := range c.Ops {
		for sides := range slices.Chunk(c.Sides[1:], manySides-1) {
			s := sidesTableSection(c, op, sides, name)
			if len(c.Sides) == 2 {
				s = pairSection(c, op, name)
			}
			if len(s.Table.Rows) == 0 {
				continue
			}
			s.ID = fmt.Sprintf("rows-%d", len(out)+1)
			for i, side := range sides {
				id := "forest-" + s.ID + TextIf(len(sides) > 1, fmt.Sprintf("-%d", i+1))
				s.Charts = append(s.Charts, forests(c, op, side.Name, id, name)...)
			}
			out = append(out, s)
		}
	}
	if len(out) > 0 {
		out[len(out)-1].After = append(out[len(out)-1].After, comparisonLegend(c))
	}
	return out
}

// comparisonLegend explains the figures and signs of the tables. It is printed
// once, below the last table.
func comparisonLegend(c *analysis.Comparison) string {
	rates := Plain(strings.ReplaceAll(c.Estimator, "-", " ")+" rates", 40)
	return wording.Text("comparison-legend", rates, Percent(c.Threshold))
}

// pairSection is the table of a quantity of the only other side against the
// baseline.
func pairSection(c *analysis.Comparison, op string, name func(analysis.CompareRow) string) Section {
	titles := columnTitles(sideNames(c.Sides[:2]))
	if titles == nil {
		titles = []string{"baseline", "compared"}
	}
	s := Section{Heading: Capitalize(QuantityName(op)),
		Table: &Table{Caption: QuantityName(op), Columns: Columns("<", titles[0], titles[1], "<change")}}
	s.addPairRows(c, op, name)
	return s
}

// addPairRows adds the rows of a quantity: baseline, other side, change; and
// the notes on them.
func (s *Section) addPairRows(c *analysis.Comparison, op string, name func(analysis.CompareRow) string) {
	for _, r := range c.Rows {
		if r.Op != op || r.Side != c.Sides[1].Name {
			continue
		}
		row := TextRow(name(r), Human(r.Base.Value, r.Unit), Human(r.Value.Value, r.Unit), changeText(r))
		row[3].Class, row[3].Title = changeClass(r), rowBasis(r)
		s.Table.Rows = append(s.Table.Rows, row)
		s.addRowNotes(r)
	}
}

// sidesTableSection is one table of a quantity of several sides: a column each,
// with the change against the baseline.
func sidesTableSection(
	c *analysis.Comparison, op string, sides []analysis.CompareSide, name func(analysis.CompareRow) string,
) Section {
	names := append([]string{c.Sides[0].Name}, sideNames(sides)...)
	number := func(name string) int { return 1 + slices.Index(sideNames(c.Sides), name) }
	titles := columnTitles(names)
	if titles == nil { // as the table of the sides has them
		for _, n := range names {
			titles = append(titles, fmt.Sprintf("[%d]", number(n)))
		}
	}
	s := Section{Heading: Capitalize(QuantityName(op)),
		Table: &Table{Caption: QuantityName(op), Columns: append(Columns("<"), Columns(titles...)...)}}
	if len(sides) < len(c.Sides)-1 {
		s.Heading += fmt.Sprintf(", sides %d to %d", number(names[1]), number(names[len(names)-1]))
	}
	at := keyedRows[FigureKey]{}
	for _, r := range c.Rows {
		column := slices.IndexFunc(sides, func(side analysis.CompareSide) bool { return side.Name == r.Side })
		if r.Op != op || column < 0 {
			continue
		}
		row := at.row(s.Table, FigureKey{r.Case, r.Phase, r.Cycle}, name(r))
		row[1].Text = Human(r.Base.Value, r.Unit)
		row[column+2] = Cell{Text: Human(r.Value.Value, r.Unit) + " " + changeMark(r),
			Class: changeClass(r), Title: changeText(r) + "; " + rowBasis(r)}
		s.addRowNotes(r)
	}
	for _, row := range s.Table.Rows {
		for i := range row {
			if row[i].Text == "" {
				row[i] = Cell{Text: "–", Class: "muted", Title: "not compared"}
			}
		}
	}
	if len(s.Table.Rows) > 0 {
		s.After = append(s.After, wording.Text("side-changes", Plain(c.Sides[0].Name, nameLength)))
	}
	return s
}

// changeMark is the change of a row in few signs: "(−14 %)", "(×2.08)", "(=)"
// or "(~)".
//
// Percentages are for ratios between a half and 2; the others are factors.
func changeMark(r analysis.CompareRow) string {
	switch {
	case r.Status == analysis.RowSame:
		return "(=)"
	case r.Status != analysis.RowChanged:
		return "(~)"
	}
	text := "×" + Human(r.Ratio, "1")
	if r.Ratio < 2 && r.Ratio > 0.5 {
		change, digits := 100*(r.Ratio-1), 0
		if math.Abs(change) < 10 {
			digits = 1
		}
		text = strings.Replace(fmt.Sprintf("%+.*f %%", digits, change), "-", "−", 1)
	}
	return "(" + text + TextIf(r.Regressed, " !") + ")"
}

// changeText is the change of a row in words.
func changeText(r analysis.CompareRow) string {
	effect := Plain(r.Effect, 100)
	if r.Status == analysis.RowSessionUnknown {
		_, seen, _ := strings.Cut(effect, "seen: ")
		return "~ seen: " + seen
	}
	return effect + TextIf(r.Regressed, " !")
}

// changeClass is the class of the cell of a change: worse, better, or too
// little known.
func changeClass(r analysis.CompareRow) string {
	switch {
	case r.Regressed, r.Status == analysis.RowChanged && r.Better < 0:
		return "warn"
	case r.Status == analysis.RowChanged && r.Better > 0:
		return "good"
	case r.Status == analysis.RowSessionUnknown, r.Status == analysis.RowUnclear:
		return "muted"
	}
	return ""
}

// rowBasis is what a row rests on: sessions, rounds, interval and p.
//
// p is two-sided, of "the ratio is 1", before and after Holm correction.
func rowBasis(r analysis.CompareRow) string {
	data := map[string]any{"Row": r}
	if r.CI != nil {
		data["Over"] = replicated(r.CI.Unit)
	}
	if r.P != nil && r.Holm != nil {
		data["P"], data["Holm"] = wording.P(*r.P).String(), wording.P(*r.Holm).Short()
	}
	return Phrase("row-basis", data)
}

// addRowNotes adds what weakens a row, and why it is undecided, each text once.
func (s *Section) addRowNotes(r analysis.CompareRow) {
	notes := plainList(r.Warnings, 300)
	if r.Status == analysis.RowUnclear && r.CI != nil && (r.CI.Low > 1 || r.CI.High < 1) {
		notes = append(notes, wording.Text("row-undecided"))
	}
	if r.Status == analysis.RowSessionUnknown {
		notes = append(notes, Plain(r.Reason, 300))
	}
	for _, note := range notes {
		s.After = AppendNew(s.After, note)
	}
}

// columnTitles are the names of sides as titles of columns; nil where one is
// too long for a column of numbers, which is about ten characters wide.
func columnTitles(names []string) []string {
	out := plainList(names, nameLength)
	if slices.ContainsFunc(out, func(n string) bool { return len([]rune(n)) > longColumnTitle }) {
		return nil
	}
	return out
}

// rowNames names rows by what their cases differ in; what all cases share is
// left out. The phase is added where rows are of several phases, or where no
// other name is left.
func rowNames(rows []analysis.CompareRow) func(analysis.CompareRow) string {
	var shared []string
	phases := map[string]bool{}
	for i, r := range rows {
		parts := strings.Split(r.Case, ",")
		phases[fmt.Sprint(r.Phase, r.Cycle)] = true
		if i == 0 {
			shared = parts
		}
		shared = slices.DeleteFunc(slices.Clone(shared), func(p string) bool { return !slices.Contains(parts, p) })
	}
	return func(r analysis.CompareRow) string {
		own := slices.DeleteFunc(strings.Split(r.Case, ","), func(p string) bool { return slices.Contains(shared, p) })
		name := caseText(strings.Join(own, ","))
		if name == "" && r.Case != analysis.EveryCase { // the only case keeps its name
			name = caseText(r.Case)
		}
		if phase := PhaseName(r.Phase, r.Cycle); phase != "" && (len(phases) > 1 || name == "") {
			name = glue(" · ", name, phase)
		}
		return FirstOf(name, Plain(r.Case, nameLength))
	}
}

// caseText is the id of a case in words.
func caseText(id string) string {
	var out []string
	for p := range strings.SplitSeq(id, ",") {
		if key, value, ok := strings.Cut(p, "="); ok && key == "baseline" && value == "true" {
			p = NativeFolder
		} else if ok {
			p = KeyValue(key, value)
		}
		out = append(out, Plain(p, nameLength))
	}
	return strings.Join(out, ", ")
}

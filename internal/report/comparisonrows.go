package report

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"dmgbench/internal/analysis"
)

// rowSections are a table for each quantity, with a column for each side.
func rowSections(c *analysis.Comparison) []Section {
	var out []Section
	name := rowNames(c.Rows)
	for _, op := range c.Ops {
		for sides := range slices.Chunk(c.Sides[1:], manySides-1) {
			s := Section{}
			if len(c.Sides) == 2 {
				s = rowSection(c, op, c.Sides[1].Name, name)
			} else {
				s = versionsSection(c, op, sides, name)
			}
			if len(s.Table.Rows) == 0 {
				continue
			}
			s.ID = fmt.Sprintf("rows-%d", len(out)+1)
			for i, side := range sides {
				id := "forest-" + s.ID
				if len(sides) > 1 {
					id += fmt.Sprintf("-%d", i+1)
				}
				s.Charts = append(s.Charts, forests(c, op, side.Name, id, name)...)
			}
			out = append(out, s)
		}
	}
	if len(out) > 0 {
		out[len(out)-1].After = append(out[len(out)-1].After, compareLegend(c))
	}
	return out
}

// rowSection is the table of one side against the baseline.
func rowSection(c *analysis.Comparison, op, side string, name func(analysis.CompareRow) string) Section {
	left, right := "baseline", "compared"
	if heads := columnNames([]string{c.Sides[0].Name, side}); heads != nil {
		left, right = heads[0], heads[1]
	}
	s := Section{Heading: Capitalize(QuantityName(op)), Table: &Table{Caption: QuantityName(op),
		Columns: Columns("<", left, right, "<change")}}
	for _, r := range c.Rows {
		if r.Op != op || r.Side != side {
			continue
		}
		s.Table.Rows = append(s.Table.Rows, []Cell{{Text: name(r), Class: "head"}, {Text: Human(r.Base.Value, r.Unit)},
			{Text: Human(r.Value.Value, r.Unit)}, {Text: effectText(r), Class: effectClass(r), Title: rowTitle(r)}})
		for _, note := range rowNotes(r) {
			s.After = AppendNew(s.After, note)
		}
	}
	return s
}

// versionsSection is one table of several sides, a column each: the value, and how it lies to the baseline.
func versionsSection(c *analysis.Comparison, op string, sides []analysis.CompareSide, name func(analysis.CompareRow) string) Section {
	names := []string{c.Sides[0].Name}
	for _, side := range sides {
		names = append(names, side.Name)
	}
	heads := columnNames(names)
	s := Section{Heading: Capitalize(QuantityName(op)), Table: &Table{Caption: QuantityName(op), Columns: Columns("<")}}
	if heads == nil { // as the table of the sides has them
		for _, n := range names {
			heads = append(heads, fmt.Sprintf("[%d]", sideNumber(c, n)))
		}
	}
	if len(sides) < len(c.Sides)-1 {
		s.Heading += ", sides " + fmt.Sprintf("%d to %d", sideNumber(c, names[1]), sideNumber(c, names[len(names)-1]))
	}
	for _, head := range heads {
		s.Table.Columns = append(s.Table.Columns, Column{Title: head})
	}
	type key struct {
		id, phase string
		cycle     int
	}
	at := map[key]int{}
	for _, r := range c.Rows {
		column := slices.IndexFunc(sides, func(side analysis.CompareSide) bool { return side.Name == r.Side })
		if r.Op != op || column < 0 {
			continue
		}
		k := key{r.Case, r.Phase, r.Cycle}
		i, ok := at[k]
		if !ok {
			i = len(s.Table.Rows)
			at[k] = i
			row := []Cell{{Text: name(r), Class: "head"}, {Text: Human(r.Base.Value, r.Unit)}}
			for range sides {
				row = append(row, Cell{Text: "–", Class: "muted", Title: "not compared"})
			}
			s.Table.Rows = append(s.Table.Rows, row)
		}
		s.Table.Rows[i][column+2] = Cell{Text: Human(r.Value.Value, r.Unit) + " " + changeMark(r), Class: effectClass(r),
			Title: effectText(r) + "; " + rowTitle(r)}
		for _, note := range rowNotes(r) {
			s.After = AppendNew(s.After, note)
		}
	}
	if len(s.Table.Rows) > 0 {
		s.After = append(s.After, "In brackets: the change against "+Plain(c.Sides[0].Name, 60)+"; = is the same within the threshold, ~ undecided, ! a regression.")
	}
	return s
}

func sideNumber(c *analysis.Comparison, name string) int {
	return 1 + slices.IndexFunc(c.Sides, func(s analysis.CompareSide) bool { return s.Name == name })
}

// changeMark is the change of a row in few signs: "(−14 %)", "(×2.08)", "(=)" or "(~)".
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

// effectText is the change of a row in words.
func effectText(r analysis.CompareRow) string {
	effect := Plain(r.Effect, 100)
	if r.Status == analysis.RowSessionUnknown {
		_, seen, _ := strings.Cut(effect, "seen: ")
		return "~ seen: " + seen
	}
	return effect + TextIf(r.Regressed, " !")
}

func effectClass(r analysis.CompareRow) string {
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

// rowNotes are what weakens a row, and why it is undecided.
func rowNotes(r analysis.CompareRow) []string {
	out := plainList(r.Warnings, 300)
	if r.Status == analysis.RowUnclear && r.CI != nil && (r.CI.Low > 1 || r.CI.High < 1) {
		out = append(out, "~ next to an interval that does not contain 0: all rows are tested together, and the change is not significant after Holm's correction")
	}
	if r.Status == analysis.RowSessionUnknown {
		out = append(out, Plain(r.Reason, 300))
	}
	return out
}

// shortName is how long the name of a side may be to head a column of numbers.
const shortName = 16

// columnNames are the names of sides as heads of columns; nil where one is too long for that.
func columnNames(names []string) []string {
	out := plainList(names, 60)
	if slices.ContainsFunc(out, func(n string) bool { return len([]rune(n)) > shortName }) {
		return nil
	}
	return out
}

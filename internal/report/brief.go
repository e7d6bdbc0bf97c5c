package report

import (
	"slices"
	"strings"

	"dmgbench/internal/plan"
	"dmgbench/internal/result"
)

// This file prints the report on one screen of a terminal.

// The most that the screen has of each.
const (
	briefRows     = 6
	briefVerdicts = 4
	briefNotDone  = 3
	briefWarnings = 2
	briefColumns  = 26 // columns of a case's name
)

// brief prints what ran on what, the main numbers, the verdicts to look at and the gravest weaknesses.
func (w *textWriter) brief(v *View) {
	w.facts(v)
	w.wrapped("  ", w.paint("33", v.First.Notice))
	if t := v.First.Outcome; t != nil {
		w.published(*t)
	}
	if t := v.First.Numbers; t != nil {
		w.heading(v.First.Heading)
		w.briefNumbers(*t)
	}
	w.briefVerdicts(v)
	if len(v.NotDone) > 0 {
		w.heading("Not measured, or not in full")
		for _, p := range v.NotDone[:min(len(v.NotDone), briefNotDone)] {
			w.wrapped("  • ", p.Name+": "+p.Value)
		}
		if left := len(v.NotDone) - briefNotDone; left > 0 {
			w.wrapped("  ", "… and "+Count(left, "case")+" more in the report.")
		}
	}
	if len(v.First.Weak)+len(v.First.Counts) > 0 {
		w.heading("What weakens the answer")
		counts := slices.DeleteFunc(slices.Clone(v.First.Counts), func(text string) bool { return text == v.First.Missing }) // named above
		for _, text := range v.First.Weak[:min(len(v.First.Weak), briefWarnings)] {
			w.wrapped("  • ", text)
		}
		w.wrapped("  ", TextIf(len(counts) > 0, "In all: "+strings.Join(counts, ", ")+"."))
	}
}

// codesIfLong names formats by their codes in all names of cases if one is longer than a number of columns.
func codesIfLong(names []string, columns int) []string {
	out := slices.Clone(names)
	if slices.ContainsFunc(out, func(s string) bool { return Width(s) > columns }) {
		for i := range out {
			out[i] = plan.FormatCodes(out[i])
		}
	}
	return out
}

// briefNumbers prints a line for each case and quantity, with a bar where nothing was published.
func (w *textWriter) briefNumbers(t Table) {
	printed := slices.ContainsFunc(t.Columns, func(c Column) bool { return strings.HasPrefix(c.Title, "published") })
	grid := [][]string{{"", "", "", "measured", "interval", "published"}}
	rows := t.Rows[:min(len(t.Rows), briefRows)]
	names := make([]string, len(rows))
	for i, row := range rows {
		names[i] = row[0].Text
	}
	heads := map[int]string{}
	names = codesIfLong(names, briefColumns)
	apart := slices.ContainsFunc(names, func(s string) bool { return Width(s) > briefColumns })
	for n, row := range rows {
		name := names[n]
		if apart {
			heads[len(grid)], name = name, ""
		}
		for i := 1; i < len(row); i++ {
			if !strings.HasPrefix(t.Columns[i].Title, "measured") || row[i].Text == "" {
				continue
			}
			line := []string{name, t.Columns[i].Group, TextIf(!printed, bar(row[i].Bar, barColumns)), row[i].Text, row[i].Sub, ""}
			if i+1 < len(row) && !strings.HasPrefix(t.Columns[i+1].Title, "measured") && row[i+1].Text != "" {
				line[5] = row[i+1].Text
				if row[i+1].Class == "muted" {
					line[5] = "(" + line[5] + ")"
				}
			}
			grid, name = append(grid, line), ""
		}
	}
	w.dropBars(grid)
	w.narrow(w.grid(grid, heads, 3))
	if slices.ContainsFunc(grid, func(row []string) bool { return strings.HasPrefix(row[5], "(") }) {
		w.wrapped("  ", "Published values in brackets are not comparable.")
	}
	for _, n := range t.Notes {
		if strings.HasPrefix(n.Text, "Interval") {
			w.wrapped("  ", n.Text)
		}
	}
	if left := len(t.Rows) - briefRows; left > 0 {
		w.wrapped("  ", "… and "+Count(left, "case")+" more in the report.")
	}
}

// briefVerdicts counts the verdicts and names those that do not hold or are undecided.
func (w *textWriter) briefVerdicts(v *View) {
	if len(v.First.Judged) == 0 {
		return
	}
	w.heading(v.First.Judged[0])
	for _, line := range v.First.Judged[1:] {
		w.wrapped("", w.paint("1", line))
	}
	left := briefVerdicts
	for _, verdict := range []string{result.DoesNotHold, result.CannotTell} {
		for _, g := range v.Claims {
			for _, c := range g.Claims {
				if g.Verdict != verdict {
					continue
				}
				if left--; left >= 0 {
					w.wrapped("  "+w.pad(g)+" ", c.Says)
				}
			}
		}
	}
	if left < 0 {
		w.wrapped("  ", "… and "+Grouped(int64(-left))+" more in the report.")
	}
}

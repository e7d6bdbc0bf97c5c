package report

import (
	"fmt"
	"slices"
	"strings"

	"dmgbench/internal/analysis"
	"dmgbench/internal/result"
)

// sections are all that is said of one series.
func (v *seriesView) sections() []Section {
	head := Section{ID: v.id, Heading: v.name, Lead: v.lead(), After: v.after()}
	if len(v.s.Runs) == 1 {
		head.Table = v.single()
	} else {
		for _, p := range v.parts {
			head.Charts = append(head.Charts, v.charts(p)...)
		}
	}
	out := []Section{head, v.versions()}
	drawn := false
	var last *analysis.Comparison
	for i, c := range slices.Backward(v.s.Changes) {
		if c.Comparison != nil {
			out, last = append(out, v.change(c, i == len(v.s.Changes)-1, &drawn)), c.Comparison
		}
	}
	if last != nil {
		s := &out[len(out)-1]
		s.After = append(s.After, compareLegend(last)+" Each change is a comparison of its own.")
	}
	return append(out, v.runs())
}

// single is the table of a series of one run, of which a picture would be one column of marks: a row a case, nil without numbers.
func (v *seriesView) single() *Table {
	if len(v.parts) == 0 {
		return nil
	}
	t := &Table{Caption: v.name, Columns: Columns("<case")}
	at := map[string]int{}
	for k, p := range v.parts {
		var values []float64
		for _, row := range p.rows {
			if row.Values[0] != nil {
				values = append(values, row.Values[0].Value)
			}
		}
		one := ColumnScale(p.rows[0].Unit, values...)
		t.Columns = append(t.Columns, Column{Title: WithUnit(QuantityName(p.op)+TextIf(p.phase != "" || p.cycle > 0, ", "+PhaseName(p.phase, p.cycle)), one)})
		for _, row := range p.rows {
			n, ok := at[row.Case]
			if !ok {
				n = len(t.Rows)
				at[row.Case] = n
				t.Rows = append(t.Rows, append([]Cell{{Text: v.label(row.Case), Class: "head"}}, make([]Cell, len(v.parts))...))
			}
			t.Rows[n][k+1] = v.figure(row, 0, one)
		}
	}
	return t
}

// figure is a value in a table, marked as what it is.
func (v *seriesView) figure(row analysis.HistoryRow, run int, in Scale) (c Cell) {
	value := row.Values[run]
	if value == nil || !IsFinite(value.Value) {
		return c
	}
	c.Text = in.Number(value.Value)
	if value.CI != nil {
		c.Text += " (" + RangeText(in, value.CI, row.Unit) + ")"
	}
	if why := v.open(run, row.Case); why != "" {
		c.Class, c.Title = "muted", why
		c.Text += " *"
	} else if len(v.doubts(row, run)) > 0 {
		c.Class = "warn"
		c.Text += " †"
	}
	return c
}

// lead says what the series is of.
func (v *seriesView) lead() []string {
	s := v.s
	first, last := s.Runs[0].Started.UTC(), s.Runs[len(s.Runs)-1].Started.UTC()
	when := first.Format("2006-01-02")
	if day := last.Format("2006-01-02"); day != when {
		when += " to " + day
	}
	out := []string{fmt.Sprintf("%s, %s; %s, each a system, a program and an engine.", Count(len(s.Runs), "run"), when, Count(len(s.Versions), "version")),
		strings.Join(NonEmpty([]string{"Plan “" + Plain(s.Plan, 80) + "”" + digestText(s.Digest), Plain(strings.Join(s.Scale, "; "), 300),
			fmt.Sprintf("seed %d", s.Seed), Count(s.Rounds, "round"), Plain(s.Machine, 160), Plain(s.Engine, 120)}), " · ")}
	if len(v.parts) == 0 {
		out = append(out, "No run of it has a number yet.")
	}
	return out
}

// after says what the pictures leave out.
func (v *seriesView) after() (out []string) {
	if v.first > 0 && len(v.parts) > 0 {
		out = append(out, fmt.Sprintf("Drawn are the newest %s; %s left out of pictures and their tables. --since chooses others; history --format csv has every run.",
			Count(len(v.s.Runs)-v.first, "run"), Count(v.first, "older run")+map[bool]string{true: " is", false: " are"}[v.first == 1]))
	}
	if v.cases > casesDrawn {
		out = append(out, fmt.Sprintf("Drawn are the first %d of %d cases.", casesDrawn, v.cases))
	}
	if len(v.parts) > 0 {
		out = append(out, "Shown are the quantities on the first screen of the newest run's report, and the size on disk; all else is in the reports.")
		doubted := "one with a warning that most other runs do not have."
		if len(v.s.Runs) == 1 {
			doubted = "one with a warning: its report says which."
		}
		out = append(out, "In the tables * marks a figure that is not final, as its run is not finished or its case failed, and † "+doubted)
	}
	if kinds := v.shared(); len(kinds) > 0 {
		out = append(out, "Warnings that most runs carry mark none of them: "+several(kinds)+". The reports say what is meant.")
	}
	return out
}

// versionsListed is how many versions a table has, the newest.
const versionsListed = 40

// versions is the table of the versions by number.
func (v *seriesView) versions() Section {
	t := &Table{Caption: "versions", Columns: Columns("<version", "<first run", "runs", "<system", "<program")}
	engines := slices.ContainsFunc(v.s.Versions, func(o analysis.HistoryVersion) bool { return !strings.Contains(o.Engine, "(Apple") }) // else they come with the system
	if engines {
		t.Columns = append(t.Columns, Column{Title: "engine", Text: true})
	}
	s := Section{ID: v.id + "-versions", Heading: "Versions", Sub: true, Table: t}
	for i, o := range slices.Backward(v.s.Versions) {
		if len(t.Rows) == versionsListed {
			s.After = append(s.After, fmt.Sprintf("%s left out.", Count(i+1, "older version")))
			break
		}
		row := []Cell{{Text: fmt.Sprint(i + 1), Class: "head"}, {Text: o.First.UTC().Format("2006-01-02")}, {Text: Grouped(int64(o.Runs))}, {Text: Plain(o.System, 80) + TextIf(o.Kernel != "", ", kernel "+Plain(o.Kernel, 40))}, {Text: Plain(o.Tool, 60)}}
		if engines {
			row = append(row, Cell{Text: Plain(o.Engine, 100)})
		}
		t.Rows = append(t.Rows, row)
	}
	if n := len(v.s.Changes); n > 0 {
		left := 0
		for _, c := range v.s.Changes {
			if c.Comparison == nil && len(v.s.Versions) > 1 {
				left++
			}
		}
		if left > 0 {
			why := ""
			for _, c := range v.s.Changes {
				if c.Comparison == nil {
					why = c.Why // of the newest of them
				}
			}
			s.After = append(s.After, fmt.Sprintf("Of %s, %d not looked into: %s.", Count(n, "change"), left, Plain(why, 300)))
		}
	}
	return s
}

// changeRowsMost is how many rows of other phases a change shows besides those that are drawn.
const changeRowsMost = 12

// change is what one version changed: what differs before any number. The table of one that changed nothing is
// left to compare, unless it is the newest.
func (v *seriesView) change(c analysis.HistoryChange, newest bool, drawn *bool) Section {
	cmp := c.Comparison
	s := Section{ID: fmt.Sprintf("%s-change-%d", v.id, c.To), Sub: true, Heading: changeName(v.s, c)}
	lead := fmt.Sprintf("%s before and %s after the change", Count(c.Used[0], "run"), Grouped(int64(c.Used[1])))
	if c.Used != c.Ended {
		lead += fmt.Sprintf(", those next to it of %d and %d", c.Ended[0], c.Ended[1])
	}
	s.Lead = []string{lead + ". " + Capitalize(changeAnswer(c)) + "."}
	for _, item := range differsSection(cmp).Items {
		s.Items = append(s.Items, item)
	}
	if cmp.Regression {
		s.After = append(s.After, regressionText(cmp))
	}
	worse, better, _ := found(c)
	if worse+better == 0 && !newest {
		s.After = append(s.After, Count(len(cmp.Rows), "row")+" not shown: nothing was found to have changed.")
		return s
	}
	name := rowNames(cmp.Rows)
	shown, more := v.shownRows(cmp)
	part := *cmp
	part.Rows = shown
	s.Table = &Table{Caption: s.Heading, Columns: Columns("<", "before", "after", "<change")}
	side := cmp.Sides[1].Name
	for _, op := range cmp.Ops {
		rows := rowSection(&part, op, side, name)
		for _, row := range rows.Table.Rows {
			row[0].Text = QuantityName(op) + ": " + row[0].Text
			s.Table.Rows = append(s.Table.Rows, row)
		}
		for _, text := range rows.After {
			s.After = AppendNew(s.After, text)
		}
		if !*drawn && slices.ContainsFunc(rowsOf(&part, op), func(r analysis.CompareRow) bool { return r.Status == analysis.RowChanged }) {
			s.Charts = append(s.Charts, forests(&part, op, side, "forest-"+s.ID+"-"+Slug(op), name)...)
		}
	}
	*drawn = *drawn || len(s.Charts) > 0
	if more > 0 {
		s.After = append(s.After, fmt.Sprintf("%s not shown, of phases that are not drawn; Holm's correction is over all rows.", Count(more, "more row")))
	}
	if len(s.Table.Rows) == 0 {
		s.Table = nil
	}
	return s
}

func rowsOf(c *analysis.Comparison, op string) []analysis.CompareRow {
	return slices.DeleteFunc(slices.Clone(c.Rows), func(r analysis.CompareRow) bool { return r.Op != op })
}

// shownRows are the rows of what is drawn, and the first of other phases that changed.
func (v *seriesView) shownRows(c *analysis.Comparison) (shown []analysis.CompareRow, more int) {
	others := 0
	for _, r := range c.Rows {
		main := slices.ContainsFunc(v.parts, func(p seriesPart) bool {
			return p.op == r.Op && p.phase == r.Phase && p.cycle == r.Cycle && slices.ContainsFunc(p.rows, func(o analysis.HistoryRow) bool { return o.Case == r.Case })
		})
		if !main {
			if r.Status != analysis.RowChanged || others == changeRowsMost {
				more++
				continue
			}
			others++
		}
		shown = append(shown, r)
	}
	return shown, more
}

// runs is the list of runs, the newest first.
func (v *seriesView) runs() Section {
	t := &Table{Caption: "runs", Columns: Columns("<run", "version", "<status", "sessions", "rounds", "<warnings of its own")}
	s := Section{ID: v.id + "-runs", Heading: "Runs", Sub: true, Page: true, Table: t}
	for i := range slices.Backward(v.s.Runs) {
		p := v.s.Runs[i]
		if len(t.Rows) >= runsListed && !p.Baseline {
			continue
		}
		status := Cell{Text: runStatus(p)}
		if p.Status != result.Done {
			status.Class = "warn"
		}
		t.Rows = append(t.Rows, []Cell{{Text: v.runName(i) + TextIf(p.Baseline, " (baseline)"), Class: "head", Link: linkTo(p.Path)}, {Text: fmt.Sprint(p.Version + 1)}, status,
			{Text: Grouped(int64(p.Sessions))}, {Text: Grouped(int64(p.Rounds))}, {Text: v.runDoubts(i)}})
	}
	if n := len(v.s.Runs) - len(t.Rows); n > 0 {
		s.After = append(s.After, fmt.Sprintf("%s not listed; history --format csv has every run.", Count(n, "older run")))
	}
	return s
}

// runName is when a run began and what it is called: no two of a history share it.
func (v *seriesView) runName(run int) string {
	p := v.s.Runs[run]
	return p.Started.UTC().Format(minute) + " " + Plain(p.Name, 80)
}

// runStatus is how a run ended, with the cases that were not measured.
func runStatus(p analysis.HistoryPoint) string {
	counts := map[string]int{}
	for _, c := range p.Cases {
		counts[c.Status]++
	}
	out := []string{FirstOf(Plain(p.Status, 40), "unknown")}
	for _, status := range []string{result.Failed, result.Discarded, result.Skipped} {
		if counts[status] > 0 {
			out = append(out, Count(counts[status], "case")+" "+status)
		}
	}
	return strings.Join(out, ", ")
}

// runDoubts are the kinds of warnings of a run that most others do not have.
func (v *seriesView) runDoubts(run int) string {
	var kinds []string
	for _, w := range v.s.Runs[run].Warnings {
		if n := v.runWarned[w.Kind]; n*2 < len(v.s.Runs) || n < 2 {
			kinds = AppendNew(kinds, Plain(w.Kind, 40))
		}
	}
	for _, p := range v.parts {
		for _, row := range p.rows {
			if row.Values[run] != nil {
				for _, w := range v.doubts(row, run) {
					kinds = AppendNew(kinds, Plain(w.Kind, 40))
				}
			}
		}
	}
	if len(kinds) > 6 {
		kinds = append(kinds[:5:5], fmt.Sprintf("%d more", len(kinds)-5))
	}
	return strings.Join(kinds, ", ")
}

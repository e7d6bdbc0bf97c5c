package report

import (
	"fmt"
	"slices"
	"strings"

	"dmgbench/internal/analysis"
	"dmgbench/internal/result"
	"dmgbench/internal/wording"
)

const (
	versionsListed = 40 // of a series, the newest
	otherRows      = 12 // rows of a change besides those that are drawn
	listedKinds    = 6  // kinds of warnings of a run
)

// seriesPart is one quantity of a series: a chart.
type seriesPart struct {
	op, phase string
	cycle     int
	rows      []analysis.HistoryRow
}

// seriesView is a series arranged for reading: its most important quantities,
// its newest runs, and the warnings that distinguish a run. A warning that most
// runs have, such as that of a virtual machine, would mark every value.
type seriesView struct {
	s        *analysis.HistorySeries
	name, id string
	parts    []seriesPart
	label    func(id string) string // of a case
	first    int                    // the first run that is drawn
	cases    int                    // number of cases, drawn or not
	// common are the kinds of warnings, by case and quantity, that at least
	// half of the runs have: they mark no value.
	common   map[[2]string][]string
	runKinds map[string]int // number of runs by the kinds of warnings about them as a whole
}

// newSeriesView chooses what is shown of a series. room is the number of values
// that the page still takes, and is lowered by those of this series: a page of
// many thousand marks is too slow for a browser.
func newSeriesView(s *analysis.HistorySeries, name, id string, room *int) *seriesView {
	v := &seriesView{s: s, name: name, id: id, runKinds: map[string]int{}, common: map[[2]string][]string{}}
	v.chooseParts()
	var rows []analysis.CompareRow
	for _, p := range v.parts {
		for _, row := range p.rows {
			rows = append(rows, analysis.CompareRow{Case: row.Case})
		}
	}
	rowName := rowNames(rows)
	v.label = func(id string) string {
		if name := rowName(analysis.CompareRow{Case: id}); name != Plain(id, nameLength) {
			return name
		}
		return caseText(id) // the only case shares all of its name
	}
	runs := min(len(s.Runs), runsDrawn)
	if len(rows) > 0 {
		runs = min(runs, max(*room/len(rows), 1))
	}
	*room -= runs * len(rows)
	v.first = len(s.Runs) - runs
	for _, p := range s.Runs {
		for _, kind := range warningKinds(p.Warnings) {
			v.runKinds[kind]++
		}
	}
	for _, p := range v.parts {
		for _, row := range p.rows {
			v.common[[2]string{row.Case, row.Op}] = commonKinds(row.Values[v.first:])
		}
	}
	return v
}

// chooseParts takes the quantities and the phase of the first screen of the
// newest report, and the size on disk.
func (v *seriesView) chooseParts() {
	if v.s.Newest == nil {
		return
	}
	newest := &View{Result: v.s.Newest, Order: map[string]int{}}
	for i, c := range v.s.Newest.Cases {
		newest.Order[c.ID] = i
	}
	newest.Sections = newest.figureSections()
	main, key := newest.MainFigures()
	for _, op := range main.Ops {
		v.addPart(op, key.Phase, key.Cycle)
	}
	const space = "allocated"
	if slices.Contains(main.Ops, space) {
		return
	}
	find := func(test func(analysis.HistoryRow) bool) int {
		return slices.IndexFunc(v.s.Rows, func(r analysis.HistoryRow) bool { return r.Op == space && test(r) })
	}
	at := find(func(r analysis.HistoryRow) bool { return r.Phase == key.Phase && r.Cycle == key.Cycle })
	if at < 0 { // it is measured in a phase of its own
		at = find(func(analysis.HistoryRow) bool { return true })
	}
	if at >= 0 {
		v.addPart(space, v.s.Rows[at].Phase, v.s.Rows[at].Cycle)
	}
}

// addPart adds the rows of a quantity in a phase.
func (v *seriesView) addPart(op, phase string, cycle int) {
	p := seriesPart{op: op, phase: phase, cycle: cycle}
	for _, row := range v.s.Rows {
		if row.Op == op && row.Phase == phase && row.Cycle == cycle {
			p.rows = append(p.rows, row)
		}
	}
	v.cases = max(v.cases, len(p.rows))
	p.rows = p.rows[:min(len(p.rows), casesDrawn)]
	v.parts = append(v.parts, p)
}

// warningKinds are the kinds of some warnings, each once.
func warningKinds(ws []result.Warning) []string {
	var out []string
	for _, w := range ws {
		out = AppendNew(out, w.Kind)
	}
	return out
}

// commonKinds are the kinds of warnings that at least half of the values carry,
// and at least two.
func commonKinds(values []*analysis.HistoryValue) []string {
	counts, n := map[string]int{}, 0
	var kinds []string
	for _, value := range values {
		if value != nil {
			n++
			for _, kind := range warningKinds(value.Warnings) {
				counts[kind]++
				kinds = AppendNew(kinds, kind)
			}
		}
	}
	return slices.DeleteFunc(kinds, func(k string) bool { return counts[k]*2 < n || counts[k] < 2 })
}

// doubts are the warnings of a value that most other runs do not have.
func (v *seriesView) doubts(row analysis.HistoryRow, run int) []result.Warning {
	common := v.common[[2]string{row.Case, row.Op}]
	return slices.DeleteFunc(slices.Clone(row.Values[run].Warnings), func(w result.Warning) bool {
		return slices.Contains(common, w.Kind)
	})
}

// open is why a value is not final, or "".
func (v *seriesView) open(run int, id string) string {
	p := v.s.Runs[run]
	if p.Status == result.Unfinished {
		return "the run is not finished: it may change"
	}
	if c, ok := p.Cases[id]; ok && c.Status != result.Done {
		return "the case was " + FirstOf(Plain(c.Status, 40), "not finished")
	}
	return ""
}

// sections are all sections of one series.
func (v *seriesView) sections() []Section {
	head := Section{ID: v.id, Heading: v.name, Lead: v.lead(), After: v.limits()}
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
		s.After = append(s.After, wording.Text("change-legend", comparisonLegend(last)))
	}
	return append(out, v.runs())
}

// lead is what the series has in common.
func (v *seriesView) lead() []string {
	s := v.s
	first, last := s.Runs[0].Started.UTC().Format(dateFormat), s.Runs[len(s.Runs)-1].Started.UTC().Format(dateFormat)
	out := []string{
		wording.Text("series-lead",
			Count(len(s.Runs), "run"), first+TextIf(last != first, " to "+last), Count(len(s.Versions), "version")),
		strings.Join(NonEmpty([]string{"Plan “" + Plain(s.Plan, 80) + "”" + digestText(s.Digest),
			Plain(strings.Join(s.Scale, "; "), 300), fmt.Sprintf("seed %d", s.Seed), Count(s.Rounds, "round"),
			Plain(s.Machine, 160), Plain(s.Engine, 120)}), " · "),
	}
	if len(v.parts) == 0 {
		out = append(out, wording.Text("series-no-number"))
	}
	return out
}

// limits is what the pictures leave out, and what the marks of the tables mean.
func (v *seriesView) limits() []string {
	var out []string
	if v.first > 0 && len(v.parts) > 0 {
		are := map[bool]string{true: "is", false: "are"}[v.first == 1]
		newest, older := Count(len(v.s.Runs)-v.first, "run"), Count(v.first, "older run")
		out = append(out, wording.Text("series-runs-drawn", newest, older, are))
	}
	if v.cases > casesDrawn {
		out = append(out, wording.Text("series-cases-drawn", casesDrawn, v.cases))
	}
	if len(v.parts) > 0 {
		doubt := wording.Text("series-doubt")
		if len(v.s.Runs) == 1 {
			doubt = wording.Text("series-doubt-alone")
		}
		out = append(out, wording.Text("series-quantities"), wording.Text("series-marks", doubt))
	}
	var kinds []string
	for _, p := range v.parts {
		for _, row := range p.rows {
			for _, kind := range v.common[[2]string{row.Case, row.Op}] {
				kinds = AppendNew(kinds, Plain(kind, 40))
			}
		}
	}
	if len(kinds) > 0 {
		out = append(out, wording.Text("series-common-warnings", listNames(kinds)))
	}
	return out
}

// single is the table of a series of one run, a row a case, nil without
// numbers. Its chart would be one column of marks.
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
		scale := ColumnScale(p.rows[0].Unit, values...)
		title := joinFacts(QuantityName(p.op), PhaseName(p.phase, p.cycle))
		t.Columns = append(t.Columns, Column{Title: title, Unit: scale.Suffix})
		for _, row := range p.rows {
			n, ok := at[row.Case]
			if !ok {
				n = len(t.Rows)
				at[row.Case] = n
				cells := make([]Cell, 1+len(v.parts))
				cells[0] = Cell{Text: v.label(row.Case), Class: "head"}
				t.Rows = append(t.Rows, cells)
			}
			t.Rows[n][k+1] = v.figure(row, 0, scale)
		}
	}
	return t
}

// figure is a value in a table, with a mark where it is not final or doubtful.
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

// versions is the table of the versions by number.
func (v *seriesView) versions() Section {
	t := &Table{Caption: "versions",
		Columns: Columns("<version", "<first run", "runs", "<system", "<program", "<engine")}
	s := Section{ID: v.id + "-versions", Heading: "Versions", Sub: true, Table: t}
	others := slices.ContainsFunc(v.s.Versions, func(o analysis.HistoryVersion) bool {
		return !strings.Contains(o.Engine, "(Apple") // Apple's engine has the version of the system
	})
	for i, o := range slices.Backward(v.s.Versions) {
		if len(t.Rows) == versionsListed {
			s.After = append(s.After, Count(i+1, "older version")+" left out.")
			break
		}
		system := joinFacts(Plain(o.System, 80), TextIf(o.Kernel != "", "kernel "+Plain(o.Kernel, 40)))
		t.Rows = append(t.Rows, []Cell{{Text: fmt.Sprint(i + 1), Class: "head"},
			{Text: o.First.UTC().Format(dateFormat)}, {Text: Grouped(int64(o.Runs))}, {Text: system},
			{Text: Plain(o.Tool, 60)}, {Text: TextIf(others, Plain(o.Engine, 100))}})
	}
	t.dropEmptyColumns(false)
	why, skipped := "", 0
	for _, c := range v.s.Changes {
		if c.Comparison == nil {
			why, skipped = c.Why, skipped+1 // the reason is that of the newest
		}
	}
	if skipped > 0 && len(v.s.Versions) > 1 {
		changes := Count(len(v.s.Changes), "change")
		s.After = append(s.After, wording.Text("changes-not-examined", changes, skipped, Plain(why, 300)))
	}
	return s
}

// change is what one version changed; what differs comes before any number. The
// table of a change of no figure is left to the command compare, unless it is
// the newest.
func (v *seriesView) change(c analysis.HistoryChange, newest bool, drawn *bool) Section {
	comparison := c.Comparison
	s := Section{ID: fmt.Sprintf("%s-change-%d", v.id, c.To), Sub: true, Heading: changeName(v.s, c)}
	lead := wording.Text("change-runs", Count(c.Used[0], "run"), Grouped(int64(c.Used[1])))
	if c.Used != c.Ended {
		lead += wording.Text("change-runs-next", c.Ended[0], c.Ended[1])
	}
	s.Lead = []string{lead + ". " + Capitalize(changeAnswer(c)) + "."}
	s.Items = differencesSection(comparison).Items
	if comparison.Regression {
		s.After = append(s.After, regressionText(comparison))
	}
	if changed, _ := changedRows(comparison); changed == 0 && !newest {
		s.After = append(s.After, wording.Text("change-no-rows", Count(len(comparison.Rows), "row")))
		return s
	}
	name := rowNames(comparison.Rows)
	part := *comparison
	part.Rows = v.shownRows(comparison)
	s.Table = &Table{Caption: s.Heading, Columns: Columns("<", "before", "after", "<change")}
	for _, op := range comparison.Ops {
		s.addPairRows(&part, op, func(r analysis.CompareRow) string { return QuantityName(op) + ": " + name(r) })
		changed := func(r analysis.CompareRow) bool { return r.Op == op && r.Status == analysis.RowChanged }
		if !*drawn && slices.ContainsFunc(part.Rows, changed) {
			id := "forest-" + s.ID + "-" + Slug(op)
			s.Charts = append(s.Charts, forests(&part, op, comparison.Sides[1].Name, id, name)...)
		}
	}
	*drawn = *drawn || len(s.Charts) > 0
	if more := len(comparison.Rows) - len(part.Rows); more > 0 {
		s.After = append(s.After, wording.Text("change-more-rows", Count(more, "more row")))
	}
	if len(s.Table.Rows) == 0 {
		s.Table = nil
	}
	return s
}

// shownRows are the rows of the quantities that are drawn, and the first
// changed rows of other phases.
func (v *seriesView) shownRows(c *analysis.Comparison) []analysis.CompareRow {
	others := 0
	return slices.DeleteFunc(slices.Clone(c.Rows), func(r analysis.CompareRow) bool {
		for _, p := range v.parts {
			same := func(o analysis.HistoryRow) bool { return o.Case == r.Case }
			if p.op == r.Op && p.phase == r.Phase && p.cycle == r.Cycle && slices.ContainsFunc(p.rows, same) {
				return false
			}
		}
		if r.Status == analysis.RowChanged {
			others++
		}
		return r.Status != analysis.RowChanged || others > otherRows
	})
}

// runs is the list of runs, the newest first.
func (v *seriesView) runs() Section {
	t := &Table{Caption: "runs",
		Columns: Columns("<run", "version", "<status", "sessions", "rounds", "<warnings of its own")}
	s := Section{ID: v.id + "-runs", Heading: "Runs", Sub: true, Page: true, Table: t}
	for i, p := range slices.Backward(v.s.Runs) {
		if len(t.Rows) >= runsListed && !p.Baseline {
			continue
		}
		name := Cell{Text: v.runName(i) + TextIf(p.Baseline, " (baseline)"), Class: "head", Link: linkTo(p.Path)}
		t.Rows = append(t.Rows, []Cell{name, {Text: fmt.Sprint(p.Version + 1)},
			{Text: runStatus(p), Class: TextIf(p.Status != result.Done, "warn")},
			{Text: Grouped(int64(p.Sessions))}, {Text: Grouped(int64(p.Rounds))}, {Text: v.runDoubts(i)}})
	}
	if n := len(v.s.Runs) - len(t.Rows); n > 0 {
		s.After = append(s.After, wording.Text("runs-not-listed", Count(n, "older run")))
	}
	return s
}

// runName is the start of a run and its name: no two of a history share it.
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
	for _, kind := range warningKinds(v.s.Runs[run].Warnings) {
		if n := v.runKinds[kind]; n*2 < len(v.s.Runs) || n < 2 {
			kinds = AppendNew(kinds, Plain(kind, 40))
		}
	}
	for _, p := range v.parts {
		for _, row := range p.rows {
			if row.Values[run] != nil {
				for _, kind := range warningKinds(v.doubts(row, run)) {
					kinds = AppendNew(kinds, Plain(kind, 40))
				}
			}
		}
	}
	return strings.Join(firstFew(kinds, listedKinds, ""), ", ")
}

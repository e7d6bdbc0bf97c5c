package report

import (
	"fmt"
	"slices"
	"strings"

	"dmgbench/internal/analysis"
	"dmgbench/internal/report/wording"
	"dmgbench/internal/result"
)

// The bounds of a history. What is beyond them is counted, or named.
//
// 1,000 runs stay below 3 MB of HTML.
const (
	seriesDrawn  = 10   // the newest series
	valuesDrawn  = 4500 // of the page: each is a mark with a tip, and a cell of a table
	othersListed = 40   // runs that are left out
	changesNamed = 12   // changes of version in the answer, the newest

	runsDrawn      = 400 // of a series, the newest
	casesDrawn     = 24  // of a series
	runsListed     = 120 // of a series
	versionsListed = 40  // of a series, the newest
	changeRows     = 80  // rows of a change
	listedKinds    = 6   // kinds of warnings of a run
)

// HistoryDocument arranges a history: what changed comes before any picture.
func HistoryDocument(h *analysis.History) Document {
	d := Document{Kicker: "History", Title: "What changed, and when?"}
	runs := len(FlatMap(h.Series, func(s analysis.HistorySeries) []analysis.HistoryPoint { return s.Runs }))
	names := seriesNames(h.Series)
	d.Lead = []string{wording.Text("history-lead", Count(runs, "run"), Grouped(len(h.Series)))}
	if len(h.Series) == 1 {
		d.Title, names[0] = names[0], "Run after run"
	}
	drawn := h.Series[:min(len(h.Series), seriesDrawn)]
	if len(drawn) > 0 {
		d.Sections = append(d.Sections, historyAnswers(drawn, names))
	}
	for i := range drawn {
		v := newSeriesView(&drawn[i], names[i], fmt.Sprintf("s%d", i+1), valuesDrawn/len(drawn))
		d.Sections = append(d.Sections, v.sections()...)
	}
	if more := len(h.Series) - len(drawn); more > 0 {
		d.Sections = append(d.Sections, Section{ID: "further", Heading: "Further series",
			Lead: []string{wording.Text("history-further", seriesDrawn, Grouped(more))}})
	}
	if len(h.LeftOut) > 0 {
		d.Sections = append(d.Sections, Section{ID: "left-out", Heading: "Not in this history",
			Items: Items(firstFew(plainList(h.LeftOut, sentenceLength), othersListed+1, "")...)})
	}
	return d
}

// seriesNames calls each series by its title, and by what distinguishes it from
// others of that title.
func seriesNames(list []analysis.HistorySeries) []string {
	facts := func(s analysis.HistorySeries) []string {
		return []string{s.Plan, s.Machine, engineShort(s.Engine), s.Filesystem,
			FirstOf(strings.Join(s.Departed, "; "), "not scaled"), "SHA-256 " + Shorten(s.Digest, 9)}
	}
	return Map(list, func(s analysis.HistorySeries) string {
		name := Plain(s.Title, 120)
		for k, fact := range facts(s) {
			differs := func(o analysis.HistorySeries) bool { return o.Title == s.Title && facts(o)[k] != fact }
			name = glue(" · ", name, TextIf(slices.ContainsFunc(list, differs), Plain(fact, 80)))
		}
		return name
	})
}

// engineShort is an engine without its version.
func engineShort(title string) string {
	name, _, cut := strings.Cut(title, ",")
	return name + TextIf(cut && strings.Contains(name, "("), ")")
}

// historyAnswers lists which changes of version changed a figure.
func historyAnswers(list []analysis.HistorySeries, names []string) Section {
	s := Section{ID: "answer", Heading: "Result", Alert: true}
	for i := range list {
		series := &list[i]
		head := TextIf(len(list) > 1, names[i]+": ")
		var texts []string
		for _, c := range slices.Backward(series.Changes) {
			outcome := wording.Text("change-not-examined")
			if c.Comparison != nil {
				outcome, s.Lead = changeAnswer(c), []string{wording.Text("history-answers")}
			}
			texts = append(texts, head+changeName(series, c)+": "+outcome)
		}
		if len(texts) == 0 {
			texts = []string{wording.Text("history-one-version", head, Count(len(series.Runs), "run"))}
		}
		s.Items = append(s.Items, Items(firstFew(texts, changesNamed+1, "changes, below")...)...)
	}
	return s
}

// changeName is "macOS 26.4 → macOS 26.5".
func changeName(s *analysis.HistorySeries, c analysis.HistoryChange) string {
	return Plain(s.VersionName(c.From, c.From, c.To), 100) + " → " + Plain(s.VersionName(c.To, c.From, c.To), 100)
}

// changeAnswer is the outcome of a compared change as the comparison words it.
func changeAnswer(c analysis.HistoryChange) string {
	return strings.Join(Map(c.Comparison.Answers, func(a analysis.CompareAnswer) string {
		return Plain(strings.TrimPrefix(a.Text, a.Side+" against "+c.Comparison.Sides[0].Name+": "), 600)
	}), "; ")
}

// seriesPart is one quantity of a series: a chart.
type seriesPart struct {
	FigureKey // without the case
	op        string
	rows      []analysis.HistoryRow
}

// seriesView is a series arranged for reading: its most important quantities
// and its newest runs.
type seriesView struct {
	S        *analysis.HistorySeries
	name, id string
	Parts    []seriesPart
	label    func(id string) string // of a case
	First    int                    // the first run that is drawn
	Cases    int                    // number of cases, drawn or not
}

// newSeriesView chooses what is shown of a series. room is the number of values
// that the page takes of it: a page of many thousand marks is too slow for a
// browser.
func newSeriesView(s *analysis.HistorySeries, name, id string, room int) *seriesView {
	v := &seriesView{S: s, name: name, id: id}
	// The quantities and the phase of the first screen of the newest report,
	// and the size on disk, if need be in a phase of its own.
	if s.Newest != nil {
		newest := newView(s.Newest)
		newest.Sections = newest.figureSections()
		main, key := newest.MainFigures()
		for _, op := range main.Ops {
			v.addPart(op, key)
		}
		const space = "allocated"
		if at := slices.IndexFunc(s.Rows, func(r analysis.HistoryRow) bool { return r.Op == space }); at >= 0 &&
			!slices.Contains(main.Ops, space) && !v.addPart(space, key) {
			v.addPart(space, FigureKey{Phase: s.Rows[at].Phase, Cycle: s.Rows[at].Cycle})
		}
	}
	drawn := FlatMap(v.Parts, func(p seriesPart) []analysis.HistoryRow { return p.rows })
	rows := Map(drawn, func(r analysis.HistoryRow) analysis.CompareRow { return analysis.CompareRow{Case: r.Case} })
	rowName := rowNames(rows)
	v.label = func(id string) string {
		if name := rowName(analysis.CompareRow{Case: id}); name != Plain(id, nameLength) {
			return name
		}
		return caseText(id) // the only case shares all of its name
	}
	runs := min(len(s.Runs), runsDrawn, max(room/max(len(rows), 1), 1))
	v.First = len(s.Runs) - runs
	return v
}

// addPart adds the rows of a quantity in a phase, if it has any.
func (v *seriesView) addPart(op string, key FigureKey) bool {
	p := seriesPart{key, op, Where(v.S.Rows, func(r analysis.HistoryRow) bool {
		return r.Op == op && r.Phase == key.Phase && r.Cycle == key.Cycle
	})}
	if len(p.rows) == 0 {
		return false
	}
	v.Cases = max(v.Cases, len(p.rows))
	p.rows = p.rows[:min(len(p.rows), casesDrawn)]
	v.Parts = append(v.Parts, p)
	return true
}

// CasesDrawn is the bound for the text about it.
func (v *seriesView) CasesDrawn() int { return casesDrawn }

// PlanName is the plan with its digest.
func (v *seriesView) PlanName() string {
	return "plan “" + Plain(v.S.Plan, 60) + "”" + TextIf(v.S.Digest != "", ", SHA-256 "+Shorten(v.S.Digest, 13))
}

// doubts are the warnings of a value that are about the figure, not the run.
//
// Such as outliers; that a run was on a virtual machine would mark every value.
func (v *seriesView) doubts(row analysis.HistoryRow, run int) []result.Warning {
	if row.Values[run] == nil {
		return nil
	}
	return Where(row.Values[run].Warnings, func(w result.Warning) bool { return !aboutRun(w) })
}

// open is why a value is not final, or "".
func (v *seriesView) open(run int, id string) string {
	p := v.S.Runs[run]
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
	head := Section{ID: v.id, Heading: v.name, Lead: Lines("series-lead", v), After: Lines("series-limits", v),
		Charts: FlatMap(v.Parts, v.charts)}
	out := []Section{head, v.versions()}
	for i, c := range slices.Backward(v.S.Changes) {
		if c.Comparison != nil {
			out = append(out, v.change(c, i == len(v.S.Changes)-1))
		}
	}
	return append(out, v.runs())
}

// numbers are the values of some rows in the runs that are drawn.
func (v *seriesView) numbers(rows []analysis.HistoryRow) (values []float64) {
	for _, row := range rows {
		for _, value := range row.Values[v.First:] {
			if value != nil && IsFinite(value.Value) {
				values = append(values, value.Value)
			}
		}
	}
	return values
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
	for i, o := range slices.Backward(v.S.Versions) {
		if len(t.Rows) == versionsListed {
			s.After = append(s.After, Count(i+1, "older version")+" left out.")
			break
		}
		system := wording.JoinFacts(Plain(o.System, 80), TextIf(o.Kernel != "", "kernel "+Plain(o.Kernel, 40)))
		t.Rows = append(t.Rows, TextRow(fmt.Sprint(i+1), o.First.UTC().Format(dateFormat), Grouped(o.Runs), system,
			Plain(o.Tool, 60), Plain(o.Engine, 100)))
	}
	t.DropColumns(t.IsEmpty)
	skipped := Where(v.S.Changes, func(c analysis.HistoryChange) bool { return c.Comparison == nil })
	if n := len(skipped); n > 0 { // the reason is that of the newest
		changes := Count(len(v.S.Changes), "change")
		s.After = append(s.After, wording.Text("changes-not-examined", changes, n, Plain(skipped[n-1].Why, 300)))
	}
	return s
}

// change is what one version changed; what differs comes before any number. The
// table of a change of no figure is left to the command compare, unless it is
// the newest.
func (v *seriesView) change(c analysis.HistoryChange, newest bool) Section {
	comparison := c.Comparison
	s := Section{ID: fmt.Sprintf("%s-change-%d", v.id, c.To), Sub: true, Heading: changeName(v.S, c),
		Items: differencesSection(comparison).Items}
	lead := wording.Text("change-runs", Count(c.Used[0], "run"), Grouped(c.Used[1]))
	if c.Used != c.Ended {
		lead += wording.Text("change-runs-next", c.Ended[0], c.Ended[1])
	}
	s.Lead = []string{lead + ". " + Capitalize(changeAnswer(c)) + "."}
	if comparison.Regression {
		s.After = append(s.After, regressionText(comparison))
	}
	changed := func(r analysis.CompareRow) bool { return r.Status == analysis.RowChanged }
	if !newest && !slices.ContainsFunc(comparison.Rows, changed) {
		s.After = append(s.After, wording.Text("change-no-rows", Count(len(comparison.Rows), "row")))
		return s
	}
	name := rowNames(comparison.Rows)
	part := *comparison
	part.Rows = v.shownRows(comparison)
	s.Table = &Table{Caption: s.Heading, Columns: Columns("<", "before", "after", "<change")}
	for _, op := range comparison.Ops {
		s.addPairRows(&part, op, func(r analysis.CompareRow) string { return QuantityName(op) + ": " + name(r) })
		id := "forest-" + s.ID + "-" + Slug(op)
		s.Charts = append(s.Charts, forests(&part, op, comparison.Sides[1].Name, id, name)...)
	}
	if more := len(comparison.Rows) - len(part.Rows); more > 0 {
		s.After = append(s.After, wording.Text("change-more-rows", Count(more, "more row")))
	}
	if len(s.Table.Rows) == 0 {
		s.Table = nil
		return s
	}
	s.After = append(s.After, wording.Text("change-legend", comparisonLegend(comparison)))
	return s
}

// shownRows are the first of the changed rows and those that are drawn.
func (v *seriesView) shownRows(c *analysis.Comparison) []analysis.CompareRow {
	isDrawn := func(r analysis.CompareRow) bool {
		return slices.ContainsFunc(v.Parts, func(p seriesPart) bool {
			same := func(o analysis.HistoryRow) bool { return o.Case == r.Case }
			return p.op == r.Op && p.Phase == r.Phase && p.Cycle == r.Cycle && slices.ContainsFunc(p.rows, same)
		})
	}
	rows := Where(c.Rows, func(r analysis.CompareRow) bool { return r.Status == analysis.RowChanged || isDrawn(r) })
	return rows[:min(len(rows), changeRows)]
}

// runs is the list of runs, the newest first. The warnings of a run are the kinds
// of its own and of those of the figures that are drawn.
func (v *seriesView) runs() Section {
	t := &Table{Caption: "runs", Columns: Columns("<run", "version", "<status", "sessions", "rounds", "<warnings")}
	s := Section{ID: v.id + "-runs", Heading: "Runs", Sub: true, Page: true, Table: t}
	for i, p := range slices.Backward(v.S.Runs) {
		if len(t.Rows) >= runsListed && !p.Baseline {
			continue
		}
		counts := map[string]int{} // cases that were not measured
		for _, c := range p.Cases {
			counts[c.Status]++
		}
		doubts := FlatMap(v.Parts, func(part seriesPart) []result.Warning {
			return FlatMap(part.rows, func(r analysis.HistoryRow) []result.Warning { return v.doubts(r, i) })
		})
		kinds := AppendNew(nil, Map(slices.Concat(p.Warnings, doubts), func(w result.Warning) string {
			return Plain(w.Kind, 40)
		})...)
		status := Phrase("run-status", map[string]any{"Status": p.Status, "Counts": counts,
			"Statuses": []string{result.Failed, result.Discarded, result.Skipped}})
		row := TextRow(v.runName(i)+TextIf(p.Baseline, " (baseline)"), fmt.Sprint(p.Version+1), status,
			Grouped(p.Sessions), Grouped(p.Rounds), strings.Join(firstFew(kinds, listedKinds, ""), ", "))
		row[0].Link, row[2].Class = linkTo(p.Path), TextIf(p.Status != result.Done, "warn")
		t.Rows = append(t.Rows, row)
	}
	if n := len(v.S.Runs) - len(t.Rows); n > 0 {
		s.After = append(s.After, wording.Text("runs-not-listed", Count(n, "older run")))
	}
	return s
}

// runName is the start of a run and its name: no two of a history share it.
func (v *seriesView) runName(run int) string {
	p := v.S.Runs[run]
	return p.Started.UTC().Format(minute) + " " + Plain(p.Name, 80)
}

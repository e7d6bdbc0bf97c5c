package report

import (
	"fmt"
	"slices"
	"strings"

	"dmgbench/internal/analysis"
	"dmgbench/internal/result"
)

// The bounds of a page; what is beyond them is counted, or named.
const (
	seriesDrawn  = 10   // the newest series
	runsDrawn    = 400  // of a series, the newest
	valuesDrawn  = 4500 // of the page: each is a mark with a tip, and a cell of a table
	casesDrawn   = 24   // of a series
	casesInChart = 8
	runsListed   = 120 // of a series
	leftListed   = 40
)

// HistoryDocument arranges a history: what changed before any picture.
func HistoryDocument(h *analysis.History) Document {
	d := Document{Kicker: "History", Title: "What changed, and when?"}
	runs := 0
	for _, s := range h.Series {
		runs += len(s.Runs)
	}
	names := seriesNames(h.Series)
	d.Lead = []string{fmt.Sprintf("%s in %s. A series is one plan as it was executed, on one machine and disk, by one engine; runs that differ in these are never joined.",
		Count(runs, "run"), Grouped(int64(len(h.Series)))+" series")}
	if len(h.Series) == 1 {
		d.Title, names[0] = names[0], "Run after run"
	}
	drawn := h.Series[:min(len(h.Series), seriesDrawn)]
	if len(drawn) > 0 {
		d.Sections = append(d.Sections, historyAnswers(drawn, names))
	}
	room := valuesDrawn
	for i := range drawn {
		v := newSeriesView(&drawn[i], names[i], fmt.Sprintf("s%d", i+1), &room)
		d.Sections = append(d.Sections, v.sections()...)
	}
	if s := historyRest(h, names); len(s.Items) > 0 {
		d.Sections = append(d.Sections, s)
	}
	if len(h.LeftOut) > 0 {
		left := Section{ID: "left-out", Heading: "Not in this history", Items: Items(plainList(h.LeftOut[:min(len(h.LeftOut), leftListed)], 400)...)}
		if n := len(h.LeftOut) - leftListed; n > 0 {
			left.Items = append(left.Items, Items(fmt.Sprintf("and %d more", n))...)
		}
		d.Sections = append(d.Sections, left)
	}
	return d
}

// seriesNames calls each series by its title, and by what tells it from others of that title.
func seriesNames(list []analysis.HistorySeries) []string {
	out := make([]string, len(list))
	for i, s := range list {
		parts := []string{Plain(s.Title, 120)}
		differ := func(of func(analysis.HistorySeries) string) {
			if slices.ContainsFunc(list, func(o analysis.HistorySeries) bool { return o.Title == s.Title && of(o) != of(s) }) {
				parts = append(parts, Plain(of(s), 80))
			}
		}
		differ(func(s analysis.HistorySeries) string { return s.Plan })
		differ(func(s analysis.HistorySeries) string { return s.Machine })
		differ(func(s analysis.HistorySeries) string { return engineShort(s.Engine) })
		differ(func(s analysis.HistorySeries) string { return s.Filesystem })
		differ(func(s analysis.HistorySeries) string {
			return TextIf(len(s.Departed) == 0, "not scaled") + strings.Join(s.Departed, "; ")
		})
		out[i] = strings.Join(parts, " · ")
	}
	same := map[string]int{}
	for _, name := range out {
		same[name]++
	}
	for i, s := range list {
		if same[out[i]] > 1 {
			out[i] += " · SHA-256 " + Shorten(s.Digest, 9)
		}
	}
	return out
}

// engineShort is an engine without its version.
func engineShort(title string) string {
	name, _, cut := strings.Cut(title, ",")
	return name + TextIf(cut && strings.Contains(name, "("), ")")
}

// historyAnswers says of each series which changes of version did something.
func historyAnswers(list []analysis.HistorySeries, names []string) Section {
	s := Section{ID: "answer", Heading: "Result", Alert: true}
	if at := slices.IndexFunc(list, func(o analysis.HistorySeries) bool {
		return slices.ContainsFunc(o.Changes, func(c analysis.HistoryChange) bool { return c.Comparison != nil })
	}); at >= 0 {
		s.Lead = []string{"Each version against the one before it. A figure is one quantity of one case in one phase; a change is named where it is significant after Holm's correction for the number of figures."}
	}
	for i := range list {
		series := &list[i]
		head := TextIf(len(list) > 1, names[i]+": ")
		if len(series.Changes) == 0 {
			s.Items = append(s.Items, Item{Text: head + Count(len(series.Runs), "run") + " of one version: there is no change to look for"})
			continue
		}
		s.Items = append(s.Items, Items(changeItems(series, head)...)...)
	}
	return s
}

// changesNamed is how many changes of version are named, the newest.
const changesNamed = 12

// changeItems are a line for each change of version, the newest first.
func changeItems(s *analysis.HistorySeries, head string) (out []string) {
	for i, c := range slices.Backward(s.Changes) {
		if len(out) == changesNamed {
			return append(out, head+fmt.Sprintf("and %d older changes, below", i+1))
		}
		out = append(out, head+changeName(s, c)+": "+changeOutcome(c))
	}
	return out
}

// changeOutcome is what became of the figures that both versions have.
func changeOutcome(c analysis.HistoryChange) string {
	if c.Comparison == nil {
		return "not looked into, for the reason below the versions"
	}
	all := len(c.Comparison.Rows)
	switch worse, better, unclear := found(c); {
	case worse+better > 0:
		return changeAnswer(c)
	case unclear == all:
		return fmt.Sprintf("~ all of %s undecided: too few sessions, or they differ too much", Count(all, "figure"))
	case unclear > 0:
		return fmt.Sprintf("no change was found: %d of %s stayed within %s, %d undecided", all-unclear, Count(all, "figure"), Percent(c.Comparison.Threshold), unclear)
	default:
		return fmt.Sprintf("no change was found: all of %s stayed within %s", Count(all, "figure"), Percent(c.Comparison.Threshold))
	}
}

// found counts what became worse and better, and what is undecided.
func found(c analysis.HistoryChange) (worse, better, unclear int) {
	if c.Comparison == nil {
		return 0, 0, 0
	}
	for _, r := range c.Comparison.Rows {
		switch {
		case r.Status == analysis.RowSame:
		case r.Status != analysis.RowChanged:
			unclear++
		case r.Better < 0:
			worse++
		default:
			better++
		}
	}
	return worse, better, unclear
}

// changeName is "macOS 26.4 → macOS 26.5".
func changeName(s *analysis.HistorySeries, c analysis.HistoryChange) string {
	return Plain(s.VersionName(c.From, c.From, c.To), 100) + " → " + Plain(s.VersionName(c.To, c.From, c.To), 100)
}

// changeAnswer is the outcome of a change in a sentence.
func changeAnswer(c analysis.HistoryChange) string {
	if c.Comparison == nil {
		return Plain(c.Why, 300)
	}
	var out []string
	for _, a := range c.Comparison.Answers {
		out = append(out, Plain(strings.TrimPrefix(a.Text, a.Side+" against "+c.Comparison.Sides[0].Name+": "), 600))
	}
	return strings.Join(out, "; ")
}

// historyRest are the series that are only named.
func historyRest(h *analysis.History, names []string) Section {
	s := Section{ID: "further", Heading: "Further series"}
	if len(h.Series) <= seriesDrawn {
		return s
	}
	s.Lead = []string{fmt.Sprintf("Only the %d series with the newest runs are shown. The filters --plan, --engine and --since choose others.", seriesDrawn)}
	for i, o := range h.Series[seriesDrawn:] {
		if i == leftListed {
			s.Items = append(s.Items, Item{Text: fmt.Sprintf("and %d more", len(h.Series)-seriesDrawn-leftListed)})
			break
		}
		s.Items = append(s.Items, Item{Text: fmt.Sprintf("%s: %s, the last on %s", names[seriesDrawn+i], Count(len(o.Runs), "run"), o.Runs[len(o.Runs)-1].Started.UTC().Format("2006-01-02"))})
	}
	return s
}

// seriesPart is one quantity of a series: a chart.
type seriesPart struct {
	op, phase string
	cycle     int
	rows      []analysis.HistoryRow
}

// seriesView is a series arranged for reading.
type seriesView struct {
	s        *analysis.HistorySeries
	name, id string
	parts    []seriesPart
	label    func(id string) string // of a case
	first    int                    // the first run that is drawn
	common   map[[2]string][]string // kinds of warnings, by case and quantity, that half of its runs or more carry: they mark nothing
	cases    int                    // how many there are, drawn or not
	// runWarned counts the runs by the kinds of warnings about them as a whole.
	runWarned map[string]int
}

func newSeriesView(s *analysis.HistorySeries, name, id string, room *int) *seriesView {
	v := &seriesView{s: s, name: name, id: id}
	v.choose()
	ids := []analysis.CompareRow{}
	values := 0
	for _, p := range v.parts {
		values += len(p.rows)
		for _, row := range p.rows {
			ids = append(ids, analysis.CompareRow{Case: row.Case})
		}
	}
	rowName := rowNames(ids)
	v.label = func(id string) string {
		if name := rowName(analysis.CompareRow{Case: id}); name != Plain(id, 60) {
			return name
		}
		return caseText(id) // of one case there is nothing to tell it from
	}
	runs := min(len(s.Runs), runsDrawn)
	if values > 0 {
		runs = min(runs, max(*room/values, 1))
	}
	*room -= runs * values
	v.first = len(s.Runs) - runs
	v.runWarned = map[string]int{}
	for _, p := range s.Runs {
		kinds := []string{}
		for _, w := range p.Warnings {
			kinds = AppendNew(kinds, w.Kind)
		}
		for _, k := range kinds {
			v.runWarned[k]++
		}
	}
	v.common = map[[2]string][]string{}
	for _, p := range v.parts {
		for _, row := range p.rows {
			v.common[[2]string{row.Case, row.Op}] = everyRun(row.Values[v.first:])
		}
	}
	return v
}

// choose takes the quantities and the phase of the first screen of the newest report, and the size on disk.
func (v *seriesView) choose() {
	if v.s.Newest == nil {
		return
	}
	of := &View{Result: v.s.Newest, Order: map[string]int{}}
	for i, c := range v.s.Newest.Cases {
		of.Order[c.ID] = i
	}
	of.Sections = of.figureSections()
	main, key := of.MainFigures()
	for _, op := range main.Ops {
		v.take(op, key.Phase, key.Cycle)
	}
	const space = "allocated"
	if slices.Contains(main.Ops, space) {
		return
	}
	at := slices.IndexFunc(v.s.Rows, func(r analysis.HistoryRow) bool { return r.Op == space && r.Phase == key.Phase && r.Cycle == key.Cycle })
	if at < 0 { // it is measured in a phase of its own
		at = slices.IndexFunc(v.s.Rows, func(r analysis.HistoryRow) bool { return r.Op == space })
	}
	if at >= 0 {
		v.take(space, v.s.Rows[at].Phase, v.s.Rows[at].Cycle)
	}
}

// take adds the rows of a quantity in a phase.
func (v *seriesView) take(op, phase string, cycle int) {
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

// everyRun are the kinds of warnings that mark nothing, since half of the runs or more carry them.
func everyRun(list []*analysis.HistoryValue) []string {
	seen, values := map[string]int{}, 0
	var order []string
	for _, value := range list {
		if value == nil {
			continue
		}
		values++
		kinds := []string{}
		for _, w := range value.Warnings {
			kinds = AppendNew(kinds, w.Kind)
		}
		for _, k := range kinds {
			seen[k]++
			order = AppendNew(order, k)
		}
	}
	return slices.DeleteFunc(order, func(k string) bool { return seen[k]*2 < values || seen[k] < 2 })
}

// doubts are the warnings of a value that it does not share with most other runs.
func (v *seriesView) doubts(row analysis.HistoryRow, run int) []result.Warning {
	common := v.common[[2]string{row.Case, row.Op}]
	return slices.DeleteFunc(slices.Clone(row.Values[run].Warnings), func(w result.Warning) bool { return slices.Contains(common, w.Kind) })
}

// shared are the kinds of warnings that mark nothing somewhere.
func (v *seriesView) shared() (out []string) {
	for _, p := range v.parts {
		for _, row := range p.rows {
			for _, kind := range v.common[[2]string{row.Case, row.Op}] {
				out = AppendNew(out, Plain(kind, 40))
			}
		}
	}
	return out
}

// open says why a value is not final, or is "".
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

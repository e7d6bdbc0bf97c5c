package report

import (
	"fmt"
	"slices"
	"strings"

	"dmgbench/internal/analysis"
	"dmgbench/internal/report/wording"
)

// The bounds of a history. What is beyond them is counted, or named.
//
// 1,000 runs stay below 3 MB of HTML.
const (
	seriesDrawn  = 10   // the newest series
	valuesDrawn  = 4500 // of the page: each is a mark with a tip, and a cell of a table
	othersListed = 40   // series that are only named, runs that are left out
	changesNamed = 12   // changes of version in the answer, the newest
)

// HistoryDocument arranges a history: what changed comes before any picture.
func HistoryDocument(h *analysis.History) Document {
	d := Document{Kicker: "History", Title: "What changed, and when?"}
	runs := 0
	for _, s := range h.Series {
		runs += len(s.Runs)
	}
	names := seriesNames(h.Series)
	d.Lead = []string{wording.Text("history-lead", Count(runs, "run"), Grouped(len(h.Series)))}
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
	var further []string
	for i, s := range h.Series[len(drawn):] {
		last := s.Runs[len(s.Runs)-1].Started.UTC().Format(dateFormat)
		further = append(further, wording.Text("series-last", names[len(drawn)+i], Count(len(s.Runs), "run"), last))
	}
	if len(further) > 0 {
		d.Sections = append(d.Sections, Section{ID: "further", Heading: "Further series",
			Lead:  []string{wording.Text("history-further", seriesDrawn)},
			Items: Items(firstFew(further, othersListed+1, "")...)})
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
	facts := []func(analysis.HistorySeries) string{
		func(s analysis.HistorySeries) string { return s.Plan },
		func(s analysis.HistorySeries) string { return s.Machine },
		func(s analysis.HistorySeries) string { return engineShort(s.Engine) },
		func(s analysis.HistorySeries) string { return s.Filesystem },
		func(s analysis.HistorySeries) string { return FirstOf(strings.Join(s.Departed, "; "), "not scaled") },
	}
	out := make([]string, len(list))
	same := map[string]int{}
	for i, s := range list {
		parts := []string{Plain(s.Title, 120)}
		for _, fact := range facts {
			differs := func(o analysis.HistorySeries) bool { return o.Title == s.Title && fact(o) != fact(s) }
			if slices.ContainsFunc(list, differs) {
				parts = append(parts, Plain(fact(s), 80))
			}
		}
		out[i] = strings.Join(parts, " · ")
		same[out[i]]++
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

// historyAnswers lists which changes of version changed a figure.
func historyAnswers(list []analysis.HistorySeries, names []string) Section {
	s := Section{ID: "answer", Heading: "Result", Alert: true}
	compared := func(o analysis.HistorySeries) bool {
		return slices.ContainsFunc(o.Changes, func(c analysis.HistoryChange) bool { return c.Comparison != nil })
	}
	if slices.ContainsFunc(list, compared) {
		s.Lead = []string{wording.Text("history-answers")}
	}
	for i := range list {
		series := &list[i]
		head := TextIf(len(list) > 1, names[i]+": ")
		var texts []string
		for _, c := range slices.Backward(series.Changes) {
			texts = append(texts, head+changeName(series, c)+": "+changeOutcome(c))
		}
		if len(texts) == 0 {
			texts = []string{wording.Text("history-one-version", head, Count(len(series.Runs), "run"))}
		}
		s.Items = append(s.Items, Items(firstFew(texts, changesNamed+1, "changes, below")...)...)
	}
	return s
}

// changeOutcome is what became of the figures that both versions have. Only
// what is significant is called a change; the other rows are within the
// threshold, or undecided.
func changeOutcome(c analysis.HistoryChange) string {
	if c.Comparison == nil {
		return wording.Text("change-not-examined")
	}
	all, within := len(c.Comparison.Rows), Percent(c.Comparison.Threshold)
	figures := Count(all, "figure")
	switch changed, same := countRows(c, analysis.RowChanged), countRows(c, analysis.RowSame); {
	case changed > 0:
		return changeAnswer(c)
	case same == 0:
		return wording.Text("change-undecided", figures)
	case same < all:
		return wording.Text("change-partly-undecided", same, figures, within, all-same)
	}
	return wording.Text("change-none", figures, within)
}

// countRows counts the rows of a change with a status.
func countRows(c analysis.HistoryChange, status string) int {
	return countIf(c.Comparison.Rows, func(r analysis.CompareRow) bool { return r.Status == status })
}

// changeName is "macOS 26.4 → macOS 26.5".
func changeName(s *analysis.HistorySeries, c analysis.HistoryChange) string {
	return Plain(s.VersionName(c.From, c.From, c.To), 100) + " → " + Plain(s.VersionName(c.To, c.From, c.To), 100)
}

// changeAnswer is the outcome of a compared change as the comparison words it.
func changeAnswer(c analysis.HistoryChange) string {
	var out []string
	for _, a := range c.Comparison.Answers {
		out = append(out, Plain(strings.TrimPrefix(a.Text, a.Side+" against "+c.Comparison.Sides[0].Name+": "), 600))
	}
	return strings.Join(out, "; ")
}

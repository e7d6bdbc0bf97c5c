package report

import (
	"slices"
	"strings"

	"dmgbench/internal/report/wording"
	"dmgbench/internal/result"
)

// footnotes collects the notes of a table, each text once.
type footnotes struct {
	general, marked []Note
}

// mark is the number of the footnote with this text, none for "".
func (n *footnotes) mark(text string) []int {
	if text == "" {
		return nil
	}
	at := slices.IndexFunc(n.marked, func(have Note) bool { return have.Text == text })
	if at < 0 {
		at = len(n.marked)
		n.marked = append(n.marked, Note{at + 1, text})
	}
	return []int{at + 1}
}

// add appends notes about the whole table; empty texts are left out.
func (n *footnotes) add(texts ...string) {
	n.general = append(n.general, Map(wording.NonEmpty(texts), func(text string) Note { return Note{Text: text} })...)
}

// addShared appends what the figures have in common: how they were measured, the
// published values and whether they may be compared, and what weakens all. With all it lists the
// variants where figures differ.
func (n *footnotes) addShared(shared sharedNotes, all bool) {
	n.add(shared.method(all)...)
	n.add(TextIf(shared.ratios, "Ratio: measured ÷ published."))
	if len(shared.machines) == 1 && shared.machines[0] != "" {
		n.add("Published: " + shared.machines[0] + ".")
	}
	which := TextIf(shared.comparable > 0, " in grey or in brackets")
	n.add(TextIf(shared.uncomparable > 0, "Published values"+which+" are not comparable (see Deviations)."))
	doubts := Plain(strings.Join(shared.warnings, "; "), 400) // of every figure
	n.add(TextIf(doubts != "", "Weakens every figure here: "+doubts+"."))
}

func (n *footnotes) list() []Note { return slices.Concat(n.general, n.marked) }

// sharedNotes collects what the figures of a table have in common, so that a
// note below the table states it once and only exceptions need a mark.
//
// Texts are kept once each, in the order of the figures.
type sharedNotes struct {
	figures                  int
	comparable, uncomparable int      // published values
	ratios                   bool     // some figure has a ratio to a published value
	warnings                 []string // short texts of the warnings that every figure has
	// The different texts of the figures.
	statistics, intervalKinds, reasons, sizes, machines []string
}

// add takes the next figure; statistic is "" for a quantity that has only one.
func (n *sharedNotes) add(
	e *result.Estimate, statistic, size string, ws []result.Warning, published ...result.PublishedValue,
) {
	warnings := AppendNew(nil, Map(ws, shortWarning)...)
	if n.figures++; n.figures == 1 {
		n.warnings = warnings
	}
	n.warnings = slices.DeleteFunc(n.warnings, func(text string) bool { return !slices.Contains(warnings, text) })
	n.statistics, n.sizes = appendText(n.statistics, statistic), appendText(n.sizes, size)
	if e.CI != nil {
		n.intervalKinds = AppendNew(n.intervalKinds, DescribeInterval(e.CI))
	} else {
		n.reasons = appendText(n.reasons, Plain(e.Why, 200))
	}
	for _, p := range published {
		n.machines = AppendNew(n.machines, Plain(p.On, 200))
		n.ratios = n.ratios || p.Ratio > 0
		if p.Comparable {
			n.comparable++
		} else {
			n.uncomparable++
		}
	}
}

// appendText appends a text that is neither empty nor listed.
func appendText(list []string, text string) []string {
	return AppendNew(list, wording.NonEmpty([]string{text})...)
}

// sharedNotes are those of all figures.
func (f Figures) sharedNotes() sharedNotes {
	var n sharedNotes
	for _, k := range f.Keys {
		for _, op := range f.Ops {
			if s := f.By[k][op]; s != nil {
				h := Headline(s)
				statistic := ""
				if h.Unit == "B/s" {
					statistic = Statistic(s)
				}
				n.add(h, statistic, SampleSize(s), s.Warnings, s.Published...)
			}
		}
	}
	return n
}

// method describes how the figures were measured. With all it lists the
// variants where figures differ; without, the figures have marks of their own.
func (n sharedNotes) method(all bool) []string {
	line := func(head string, texts []string) string {
		return TextIf(len(texts) > 0 && (all || len(texts) == 1), head+": "+strings.Join(texts, "; ")+".")
	}
	return wording.NonEmpty([]string{line("Measured", n.statistics), line("Interval", n.intervalKinds),
		line("Where there is no interval", n.reasons), line("n", n.sizes)})
}

// doubt names the warnings of a figure that not all figures have, "" if there
// are none.
func (n sharedNotes) doubt(ws []result.Warning) string {
	isOwn := func(text string) bool { return !slices.Contains(n.warnings, text) }
	texts := Where(AppendNew(nil, Map(ws, shortWarning)...), isOwn)
	return TextIf(len(texts) > 0, "Doubtful: "+strings.Join(texts, "; ")+".")
}

// shortWarning is the text of a warning without numbers, so that the same doubt
// about two figures has the same text. The list of warnings has the numbers.
func shortWarning(w result.Warning) string {
	return FirstOf(wording.Text("doubt."+w.Kind), Plain(w.Text, 200))
}

// runKinds are the kinds of warnings about the machine or the run.
var runKinds = strings.Fields(`battery low-power thermal cpu-quota quota busy virtual sleep translated memory-pressure
	network image-host compressed nearly-full swap snapshots few-rounds`)

// aboutRun reports whether a warning is about the machine or the run.
func aboutRun(w result.Warning) bool { return slices.Contains(runKinds, w.Kind) }

// keepOwnWarnings leaves the figures only those warnings that are about the
// figure, and collects in SharedDoubts the warnings that all rates share: these
// are shown once, on the first screen. Without it a run on a virtual machine
// would have a footnote at every number.
//
// The result itself stays as it is: the view gets a copy.
func (v *View) keepOwnWarnings() {
	r := *v.Result
	var rates sharedNotes
	for i := range r.Summaries {
		if h := Headline(&r.Summaries[i]); h != nil && h.Unit == "B/s" {
			rates.add(h, "", "", r.Summaries[i].Warnings)
		}
	}
	if rates.figures > 1 {
		v.SharedDoubts = rates.warnings
	}
	v.own = func(ws []result.Warning) []result.Warning {
		return slices.DeleteFunc(slices.Clone(ws), func(w result.Warning) bool {
			return aboutRun(w) || slices.Contains(v.SharedDoubts, shortWarning(w)) ||
				slices.ContainsFunc(r.Warnings, func(o result.Warning) bool { return o.Text == w.Text })
		})
	}
	r.Summaries = slices.Clone(r.Summaries)
	for i, s := range r.Summaries {
		r.Summaries[i].Warnings = v.own(s.Warnings)
	}
	v.Result = &r
}

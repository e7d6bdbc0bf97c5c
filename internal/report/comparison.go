package report

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"dmgbench/internal/analysis"
)

// Texts of the analysis have foreign names in them, so that every one has a
// bound.
const (
	manySides       = 6   // of so many sides a sentence names only the first
	listedRuns      = 6   // runs of a side, and places of a reason
	nameLength      = 60  // characters of the name of a side, a run or a case
	longColumnTitle = 16  // characters of a name that still heads a column of numbers
	factLength      = 80  // characters of a recorded fact
	sentenceLength  = 400 // characters of a sentence of the analysis
)

// ComparisonDocument arranges a comparison: what differs comes before any
// number.
func ComparisonDocument(c *analysis.Comparison) Document {
	return Document{Kicker: "Comparison", Title: comparisonTitle(c),
		Sections: append([]Section{sidesSection(c), differencesSection(c), answerSection(c)}, detailSections(c)...)}
}

// SummaryDocument is what a build server shows of a comparison: the answer
// first, and no lists of runs.
func SummaryDocument(c *analysis.Comparison) Document {
	outcome := "No regression"
	switch {
	case c.Regression:
		outcome = "Regression"
	case c.Undecided:
		outcome = "No regression found, but undecided"
	}
	return Document{Kicker: "Comparison", Title: outcome + ": " + comparisonTitle(c),
		Sections: append([]Section{answerSection(c), differencesSection(c)}, detailSections(c)...)}
}

// comparisonTitle is "macOS 26.5 against macOS 26.4".
func comparisonTitle(c *analysis.Comparison) string {
	names := sideNames(c.Sides)
	return listNames(names[1:]) + " against " + Plain(names[0], nameLength)
}

// detailSections are the parts of a comparison that both documents have after
// the answer.
func detailSections(c *analysis.Comparison) []Section {
	return slices.Concat(rowSections(c), claimSections(c), unpairedSections(c))
}

func sideNames(sides []analysis.CompareSide) []string {
	out := make([]string, len(sides))
	for i, s := range sides {
		out[i] = s.Name
	}
	return out
}

// listNames are names in a row; of many, the first and how many more.
func listNames(names []string) string {
	out := plainList(names, nameLength)
	if len(out) >= manySides {
		out = append(out[:2:2], fmt.Sprintf("%d more", len(out)-2))
	}
	if slices.ContainsFunc(out, func(n string) bool { return strings.Contains(n, ",") }) {
		return strings.Join(out, "; ")
	}
	return strings.Join(out, ", ")
}

// groupBy lists the values of some things by a text, in the order in which the
// texts come first.
func groupBy[T any](all []T, of func(T) (text, value string)) (texts []string, values map[string][]string) {
	values = map[string][]string{}
	for _, x := range all {
		text, value := of(x)
		texts, values[text] = AppendNew(texts, text), AppendNew(values[text], value)
	}
	return texts, values
}

// answerSection is the outcome of each side against the baseline. Sides with
// the same outcome share a line.
func answerSection(c *analysis.Comparison) Section {
	s := Section{ID: "answer", Heading: "Result"}
	outcomes, sides := groupBy(c.Answers, func(a analysis.CompareAnswer) (string, string) {
		return strings.TrimPrefix(a.Text, a.Side), a.Side
	})
	for _, outcome := range outcomes {
		s.Items = append(s.Items, Item{Text: Plain(listNames(sides[outcome])+outcome, 600)})
	}
	switch {
	case c.Regression:
		s.After = []string{regressionText(c)}
	case c.Undecided:
		s.After = []string{undecidedText(c)}
	}
	return s
}

// regressionText is what became worse: rows, and verdicts on required claims.
func regressionText(c *analysis.Comparison) string {
	return Phrase("regression", map[string]any{"Threshold": c.Threshold,
		"Rows":   countIf(c.Rows, func(r analysis.CompareRow) bool { return r.Regressed }),
		"Claims": countIf(c.Claims, func(k analysis.ClaimChange) bool { return k.Required && k.Changed })})
}

// undecidedText is why a regression is not excluded.
func undecidedText(c *analysis.Comparison) string {
	return Phrase("no-regression", map[string]any{"Threshold": c.Threshold, "All": len(c.Rows),
		"Rows":   countIf(c.Rows, func(r analysis.CompareRow) bool { return r.Undecided }),
		"Values": countIf(c.Unpaired, func(u analysis.Unpaired) bool { return u.Undecided }),
		"Claims": countIf(c.Claims, func(k analysis.ClaimChange) bool { return k.Undecided })})
}

// sidesSection lists the sides with their runs. Sides have numbers where their
// names are too long for columns.
func sidesSection(c *analysis.Comparison) Section {
	numbered := len(c.Sides) > 2 && columnTitles(sideNames(c.Sides)) == nil
	t := &Table{Caption: "Sides", Columns: Columns("<", "sessions", "rounds", "<runs")}
	for i, s := range c.Sides {
		name := TextIf(numbered, fmt.Sprintf("[%d] ", i+1)) + Plain(s.Name, nameLength) + TextIf(i == 0, " (baseline)")
		runs := firstFew(plainList(s.Runs, nameLength), listedRuns, "")
		t.Rows = append(t.Rows, TextRow(name, Grouped(s.Sessions), Grouped(s.Rounds), strings.Join(runs, ", ")))
	}
	return Section{ID: "sides", Heading: "Compared", Table: t}
}

// factText is the values of a recorded fact on one side.
func factText(values []string) string { return strings.Join(plainList(values, factLength), " / ") }

// differencesSection is what is not the same on all sides. It is printed before
// any number, since a reader should know what else changed before a change of
// speed is put down to one of the differences.
func differencesSection(c *analysis.Comparison) Section {
	s := Section{ID: "differs", Heading: "What differs", Alert: true}
	if len(c.Differences) == 0 {
		s.Lead = []string{"No recorded fact: machine, system, tools and protocol are the same."}
	}
	var same []string
	for _, f := range c.Alike {
		same = append(same, TextIf(f.Name == "plan", "plan ")+factText(f.Values))
	}
	if len(same) > 0 {
		s.Lead = append(s.Lead, "The same on all sides: "+strings.Join(same, ", ")+".")
	}
	for _, f := range c.Differences {
		var values []string
		for _, v := range f.Values {
			values = append(values, cmp.Or(factText(v), "unknown"))
		}
		text := strings.Join(values, " → ")
		if len(values) > manySides {
			slices.Sort(values)
			text = listNames(slices.Compact(values))
		}
		s.Items = append(s.Items, Item{Text: Plain(strings.ReplaceAll(f.Fact, "_", " "), 40) + ": " + text})
	}
	s.Items = append(s.Items, Items(plainList(c.Notes, sentenceLength)...)...)
	return s
}

// claimSections lists the claims with different verdicts on the sides. The
// others are counted.
func claimSections(c *analysis.Comparison) []Section {
	t := &Table{Caption: "claims", Columns: Columns("<", "<")}
	for _, k := range c.Claims {
		if k.Text != "" {
			row := TextRow(Plain(k.Says, 200), Plain(k.Text, sentenceLength)+TextIf(k.Required, " (required)"))
			row[1].Class = TextIf(k.Changed, "warn")
			t.Rows = append(t.Rows, row)
		}
	}
	if len(t.Rows) == 0 {
		return nil
	}
	s := Section{ID: "claims", Heading: "Verdicts that differ", Table: t}
	same := countIf(c.Claims, func(k analysis.ClaimChange) bool {
		return k.Text == "" && !slices.Contains(k.Verdicts, "") // a side without a verdict is in the notes
	})
	if same > 0 {
		s.After = []string{Count(same, "more claim") + " with the same verdict on all sides."}
	}
	return []Section{s}
}

// unpairedSections is the values without a counterpart, by reason.
func unpairedSections(c *analysis.Comparison) []Section {
	if len(c.Unpaired) == 0 {
		return nil
	}
	reasons, values := groupBy(c.Unpaired, func(u analysis.Unpaired) (string, string) {
		return Plain(u.Reason, sentenceLength),
			joinFacts(caseText(u.Case), QuantityName(u.Op), PhaseName(u.Phase, u.Cycle))
	})
	s := Section{ID: "unpaired", Heading: "Not compared"}
	for _, reason := range reasons {
		list := strings.Join(firstFew(values[reason], listedRuns, ""), "; ")
		s.Items = append(s.Items, Item{Text: reason + " (" + list + ")"})
	}
	return []Section{s}
}

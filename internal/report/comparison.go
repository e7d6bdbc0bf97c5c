package report

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"dmgbench/internal/analysis"
	"dmgbench/internal/wording"
)

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

// answerSection is the outcome of each side against the baseline. Sides with
// the same outcome share a line.
func answerSection(c *analysis.Comparison) Section {
	s := Section{ID: "answer", Heading: "Result"}
	sides := map[string][]string{} // by outcome
	var outcomes []string
	for _, a := range c.Answers {
		outcome := strings.TrimPrefix(a.Text, a.Side)
		outcomes, sides[outcome] = AppendNew(outcomes, outcome), append(sides[outcome], a.Side)
	}
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

// countIf counts the elements that satisfy test.
func countIf[T any](list []T, test func(T) bool) int {
	n := 0
	for _, x := range list {
		if test(x) {
			n++
		}
	}
	return n
}

// regressionText is what became worse: rows, and verdicts on required claims.
func regressionText(c *analysis.Comparison) string {
	rows := countIf(c.Rows, func(r analysis.CompareRow) bool { return r.Regressed })
	claims := countIf(c.Claims, func(k analysis.ClaimChange) bool { return k.Required && k.Changed })
	var parts []string
	if rows > 0 {
		verb := map[bool]string{true: "is", false: "are"}[rows == 1]
		parts = append(parts, wording.Text("regression-rows", Count(rows, "row"), verb, Percent(c.Threshold)))
	}
	if claims > 0 {
		parts = append(parts, wording.Text("regression-claims", Count(claims, "required claim")))
	}
	return wording.Text("regression", strings.Join(parts, "; "))
}

// undecidedText is why a regression is not excluded.
func undecidedText(c *analysis.Comparison) string {
	rows := countIf(c.Rows, func(r analysis.CompareRow) bool { return r.Undecided })
	values := countIf(c.Unpaired, func(u analysis.Unpaired) bool { return u.Undecided })
	claims := countIf(c.Claims, func(k analysis.ClaimChange) bool { return k.Undecided })
	var parts []string
	if rows > 0 {
		parts = append(parts, wording.Text("undecided-rows", rows, Count(len(c.Rows), "row"), Percent(c.Threshold)))
	}
	if values > 0 {
		parts = append(parts, Count(values, "value")+" could not be compared")
	}
	if claims > 0 {
		parts = append(parts, Count(claims, "required claim")+" undecided")
	}
	return wording.Text("no-regression", strings.Join(parts, "; "))
}

// sidesSection lists the sides with their runs. Sides have numbers where their
// names are too long for columns.
func sidesSection(c *analysis.Comparison) Section {
	numbered := len(c.Sides) > 2 && columnTitles(sideNames(c.Sides)) == nil
	t := &Table{Caption: "Sides", Columns: Columns("<", "sessions", "rounds", "<runs")}
	for i, s := range c.Sides {
		name := TextIf(numbered, fmt.Sprintf("[%d] ", i+1)) + Plain(s.Name, nameLength) + TextIf(i == 0, " (baseline)")
		runs := firstFew(plainList(s.Runs, nameLength), listedRuns, "")
		t.Rows = append(t.Rows, []Cell{{Text: name, Class: "head"}, {Text: Grouped(int64(s.Sessions))},
			{Text: Grouped(int64(s.Rounds))}, {Text: strings.Join(runs, ", ")}})
	}
	return Section{ID: "sides", Heading: "Compared", Table: t}
}

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
		same = append(same, TextIf(f.Name == "plan", "plan ")+strings.Join(plainList(f.Values, factLength), " / "))
	}
	if len(same) > 0 {
		s.Lead = append(s.Lead, "The same on all sides: "+strings.Join(same, ", ")+".")
	}
	for _, f := range c.Differences {
		var values []string
		for _, v := range f.Values {
			values = append(values, cmp.Or(strings.Join(plainList(v, factLength), " / "), "unknown"))
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
	same := 0
	for _, k := range c.Claims {
		if k.Text == "" {
			if !slices.Contains(k.Verdicts, "") { // a side without a verdict is in the notes
				same++
			}
			continue
		}
		text := Plain(k.Text, sentenceLength) + TextIf(k.Required, " (required)")
		verdict := Cell{Text: text, Class: TextIf(k.Changed, "warn")}
		t.Rows = append(t.Rows, []Cell{{Text: Plain(k.Says, 200), Class: "head"}, verdict})
	}
	if len(t.Rows) == 0 {
		return nil
	}
	s := Section{ID: "claims", Heading: "Verdicts that differ", Table: t}
	if same > 0 {
		s.After = []string{Count(same, "more claim") + " with the same verdict on all sides."}
	}
	return []Section{s}
}

// unpairedSections is the values without a counterpart, by reason.
func unpairedSections(c *analysis.Comparison) []Section {
	values := map[string][]string{}
	var reasons []string
	for _, u := range c.Unpaired {
		reason := Plain(u.Reason, sentenceLength)
		name := joinFacts(caseText(u.Case), QuantityName(u.Op), PhaseName(u.Phase, u.Cycle))
		reasons, values[reason] = AppendNew(reasons, reason), AppendNew(values[reason], name)
	}
	if len(reasons) == 0 {
		return nil
	}
	s := Section{ID: "unpaired", Heading: "Not compared"}
	for _, reason := range reasons {
		list := strings.Join(firstFew(values[reason], listedRuns, ""), "; ")
		s.Items = append(s.Items, Item{Text: reason + " (" + list + ")"})
	}
	return []Section{s}
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
			name = strings.TrimPrefix(name+" · "+phase, " · ")
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

package report

import (
	"cmp"
	"fmt"
	"io"
	"math"
	"slices"
	"strings"
	"time"

	"dmgbench/internal/analysis"
	"dmgbench/internal/report/wording"
)

// Texts of the analysis have foreign names in them, so that every one has a
// bound.
const (
	manySides      = 6   // of so many sides a sentence names only the first
	listedRuns     = 6   // runs of a side, and places of a reason
	nameLength     = 60  // characters of the name of a side, a run or a case
	listedReasons  = 50  // reasons of what could not be compared
	summaryRows    = 300 // figures of a comparison that a build server shows
	factLength     = 80  // characters of a recorded fact
	sentenceLength = 400 // characters of a sentence of the analysis
)

// ComparisonDocument arranges a comparison: what differs comes before any
// number.
func ComparisonDocument(c *analysis.Comparison) Document {
	t := &Table{Caption: "Sides", Columns: Columns("<", "sessions", "rounds", "<runs")}
	for i, s := range c.Sides {
		name := Plain(s.Name, nameLength) + TextIf(i == 0, " (baseline)")
		runs := firstFew(plainList(s.Runs, nameLength), listedRuns, "")
		t.Rows = append(t.Rows, TextRow(name, Grouped(s.Sessions), Grouped(s.Rounds), strings.Join(runs, ", ")))
	}
	sections := []Section{{ID: "sides", Heading: "Compared", Table: t}, differencesSection(c), answerSection(c)}
	return Document{Kicker: "Comparison", Title: comparisonTitle(c), Sections: append(sections, detailSections(c)...)}
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
	answer, short := answerSection(c), *c
	if rows := len(c.Rows); rows > summaryRows {
		short.Rows = firstRows(c.Rows, summaryRows)
		answer.After = append(answer.After, wording.Text("summary-rows", len(short.Rows), Grouped(rows)))
	}
	return Document{Kicker: "Comparison", Title: outcome + ": " + comparisonTitle(c),
		Sections: append([]Section{answer, differencesSection(c)}, detailSections(&short)...)}
}

// firstRows are the rows of the first few figures with all of their sides, of
// which regressions come first.
func firstRows(rows []analysis.CompareRow, n int) []analysis.CompareRow {
	type figure struct {
		FigureKey
		op string
	}
	figureOf := func(r analysis.CompareRow) figure { return figure{FigureKey{r.Case, r.Phase, r.Cycle}, r.Op} }
	kept := map[figure]bool{}
	for _, isFirst := range []bool{true, false} {
		for _, r := range rows {
			if r.Regressed == isFirst && len(kept) < n {
				kept[figureOf(r)] = true
			}
		}
	}
	isCut := func(r analysis.CompareRow) bool { return !kept[figureOf(r)] }
	return slices.DeleteFunc(slices.Clone(rows), isCut)
}

// comparisonTitle is "macOS 26.5 against macOS 26.4".
func comparisonTitle(c *analysis.Comparison) string {
	names := sideNames(c.Sides)
	return listNames(names[1:]) + " against " + Plain(names[0], nameLength)
}

// detailSections are the parts of a comparison that both documents have after
// the answer.
func detailSections(c *analysis.Comparison) []Section {
	claims := Section{ID: "claims", Heading: "Verdicts that differ",
		Table: &Table{Caption: "claims", Columns: Columns("<", "<")}}
	for _, k := range c.Claims {
		if k.Text != "" {
			row := TextRow(Plain(k.Says, 200), Plain(k.Text, sentenceLength)+TextIf(k.Required, " (required)"))
			row[1].Class = TextIf(k.Changed, "warn")
			claims.Table.Rows = append(claims.Table.Rows, row)
		}
	}
	// Values without a counterpart are listed by reason.
	reasons, values := groupBy(c.Unpaired, func(u analysis.Unpaired) (string, string) {
		return Plain(u.Reason, sentenceLength),
			wording.JoinFacts(caseText(u.Case), QuantityName(u.Op), PhaseName(u.Phase, u.Cycle))
	})
	items := Map(reasons, func(reason string) string {
		return reason + " (" + strings.Join(firstFew(values[reason], listedRuns, ""), "; ") + ")"
	})
	unpaired := Section{ID: "unpaired", Heading: "Not compared", Items: Items(firstFew(items, listedReasons, "reasons")...)}
	if names := c.AcrossNames(); len(names) > 0 {
		unpaired.After = []string{wording.Text("across", strings.Join(names, ","))}
	}
	return slices.DeleteFunc(append(rowSections(c), claims, unpaired), func(s Section) bool {
		return (s.Table == nil || len(s.Table.Rows) == 0) && s.Items == nil
	})
}

func sideNames(sides []analysis.CompareSide) []string {
	return Map(sides, func(s analysis.CompareSide) string { return s.Name })
}

// listNames are names in a row; of many, the first and how many more.
func listNames(names []string) string {
	out := plainList(names, nameLength)
	if len(out) >= manySides {
		out = append(out[:2:2], fmt.Sprintf("%d more", len(out)-2))
	}
	return strings.Join(out, ", ")
}

// answerSection is the outcome of each side against the baseline. Sides with
// the same outcome share a line.
func answerSection(c *analysis.Comparison) Section {
	s := Section{ID: "answer", Heading: "Result"}
	outcomes, sides := groupBy(c.Answers, func(a analysis.CompareAnswer) (string, string) {
		return strings.TrimPrefix(a.Text, a.Side), a.Side
	})
	s.Items = Map(outcomes, func(text string) Item { return Item{Text: Plain(listNames(sides[text])+text, 600)} })
	switch {
	case c.Regression:
		s.After = []string{regressionText(c)}
	case c.Undecided: // why a regression is not excluded
		s.After = []string{Phrase("no-regression", map[string]any{"Threshold": c.Threshold, "All": len(c.Rows),
			"Rows":   countIf(c.Rows, func(r analysis.CompareRow) bool { return r.Undecided }),
			"Values": countIf(c.Unpaired, func(u analysis.Unpaired) bool { return u.Undecided }),
			"Claims": countIf(c.Claims, func(k analysis.ClaimChange) bool { return k.Undecided })})}
	}
	return s
}

// regressionText is what became worse: rows, and verdicts on required claims.
func regressionText(c *analysis.Comparison) string {
	return Phrase("regression", map[string]any{"Threshold": c.Threshold,
		"Rows":   countIf(c.Rows, func(r analysis.CompareRow) bool { return r.Regressed }),
		"Claims": countIf(c.Claims, func(k analysis.ClaimChange) bool { return k.Required && k.Changed })})
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
	same := Map(c.Alike, func(f analysis.CompareFact) string {
		return TextIf(f.Name == "plan", "plan ") + factText(f.Values)
	})
	if len(same) > 0 {
		s.Lead = append(s.Lead, "The same on all sides: "+strings.Join(same, ", ")+".")
	}
	for _, f := range c.Differences {
		values := Map(f.Values, func(v []string) string { return cmp.Or(factText(v), "unknown") })
		text := Plain(strings.ReplaceAll(f.Fact, "_", " "), nameLength) + ": " + strings.Join(values, " → ")
		if len(f.Cases) > 0 {
			text += " (" + strings.Join(firstFew(Map(f.Cases, caseText), listedRuns, ""), "; ") + ")"
		}
		s.Items = append(s.Items, Item{Text: text})
	}
	s.Items = append(s.Items, Items(plainList(c.Notes, sentenceLength)...)...)
	return s
}

// rowSections are a table for each quantity, with a column for each side.
func rowSections(c *analysis.Comparison) []Section {
	var out []Section
	name := rowNames(c.Rows)
	for _, op := range c.Ops {
		for sides := range slices.Chunk(c.Sides[1:], manySides-1) {
			s := Section{ID: fmt.Sprintf("rows-%d", len(out)+1), Heading: Capitalize(QuantityName(op)),
				Table: &Table{Caption: QuantityName(op)}}
			if len(c.Sides) == 2 {
				s.Table.Columns = Columns("<", "baseline", "compared", "<change")
				s.addPairRows(c, op, name)
			} else {
				s.addSideRows(c, op, sides, name)
			}
			if len(s.Table.Rows) == 0 {
				continue
			}
			for i, side := range sides {
				id := "forest-" + s.ID + TextIf(len(sides) > 1, fmt.Sprintf("-%d", i+1))
				s.Charts = append(s.Charts, forests(c, op, side.Name, id, name)...)
			}
			out = append(out, s)
		}
	}
	if len(out) > 0 {
		out[len(out)-1].After = append(out[len(out)-1].After, comparisonLegend(c))
	}
	return out
}

// comparisonLegend explains the figures and signs of the tables. It is printed
// once, below the last table.
func comparisonLegend(c *analysis.Comparison) string {
	rates := Plain(strings.ReplaceAll(c.Estimator, "-", " ")+" rates", 40)
	return wording.Text("comparison-legend", rates, Percent(c.Threshold))
}

// addPairRows adds the rows of a quantity: baseline, other side, change; and
// the notes on them.
func (s *Section) addPairRows(c *analysis.Comparison, op string, name func(analysis.CompareRow) string) {
	for _, r := range c.Rows {
		if r.Op != op || r.Side != c.Sides[1].Name {
			continue
		}
		row := TextRow(name(r), Human(r.Base.Value, r.Unit), Human(r.Value.Value, r.Unit), changeText(r))
		row[3].Class, row[3].Title = changeClass(r), rowBasis(r)
		s.Table.Rows = append(s.Table.Rows, row)
		s.addRowNotes(r)
	}
}

// addSideRows fills the table of a quantity of several sides: a column each,
// with the change against the baseline.
func (s *Section) addSideRows(
	c *analysis.Comparison, op string, sides []analysis.CompareSide, name func(analysis.CompareRow) string,
) {
	names := append([]string{c.Sides[0].Name}, sideNames(sides)...)
	s.Table.Columns = Columns(append([]string{"<"}, plainList(names, nameLength)...)...)
	s.Heading += TextIf(len(sides) < len(c.Sides)-1, ": "+listNames(names[1:]))
	at := map[FigureKey]int{} // names of rows may be cut to the same text
	for _, r := range c.Rows {
		column := slices.Index(names, r.Side)
		if r.Op != op || column < 1 {
			continue
		}
		key := FigureKey{r.Case, r.Phase, r.Cycle}
		i, ok := at[key]
		if !ok {
			i, at[key] = len(s.Table.Rows), len(s.Table.Rows)
			none := slices.Repeat([]Cell{{Text: "–", Class: "muted", Title: "not compared"}}, len(names))
			s.Table.Rows = append(s.Table.Rows, append(TextRow(name(r)), none...))
		}
		row := s.Table.Rows[i]
		row[1] = Cell{Text: Human(r.Base.Value, r.Unit)}
		row[column+1] = Cell{Text: Human(r.Value.Value, r.Unit) + " " + changeMark(r),
			Class: changeClass(r), Title: changeText(r) + "; " + rowBasis(r)}
		s.addRowNotes(r)
	}
	s.After = append(s.After, wording.Text("side-changes", Plain(c.Sides[0].Name, nameLength)))
}

// changeMark is the change of a row in few signs: "(−14 %)", "(×2.08)", "(=)"
// or "(~)".
//
// Percentages are for ratios between a half and 2; the others are factors.
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

// changeText is the change of a row in words.
func changeText(r analysis.CompareRow) string {
	effect := Plain(r.Effect, 100)
	if r.Status == analysis.RowSessionUnknown {
		_, seen, _ := strings.Cut(effect, "seen: ")
		return "~ seen: " + seen
	}
	return effect + TextIf(r.Regressed, " !")
}

// changeClass is the class of the cell of a change: worse, better, or too
// little known.
func changeClass(r analysis.CompareRow) string {
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

// rowBasis is what a row rests on: sessions, rounds, interval and p.
//
// p is two-sided, of "the ratio is 1", before and after Holm correction.
func rowBasis(r analysis.CompareRow) string {
	data := map[string]any{"Row": r}
	if r.CI != nil {
		data["Over"] = replicated(r.CI.Unit)
	}
	if r.P != nil && r.Holm != nil {
		data["P"], data["Holm"] = wording.P(*r.P).String(), wording.P(*r.Holm).Short()
	}
	return Phrase("row-basis", data)
}

// addRowNotes adds what weakens a row, and why it is undecided, each text once.
func (s *Section) addRowNotes(r analysis.CompareRow) {
	notes := plainList(r.Warnings, 300)
	if r.Status == analysis.RowUnclear && r.CI != nil && (r.CI.Low > 1 || r.CI.High < 1) {
		notes = append(notes, wording.Text("row-undecided"))
	}
	if r.Status == analysis.RowSessionUnknown {
		notes = append(notes, Plain(r.Reason, 300))
	}
	s.After = AppendNew(s.After, notes...)
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
			name = glue(" · ", name, phase)
		}
		return FirstOf(name, Plain(r.Case, nameLength))
	}
}

// caseText is the id of a case in words.
func caseText(id string) string { return Plain(wording.Case(id), 3*nameLength) }

// junitSuite is one side with its tests.
type junitSuite struct {
	ID                int
	Side, Answer      string
	Properties        []Pair // facts that differ between the sides
	Cases             []junitCase
	Failures, Skipped int // among the cases
}

// junitCase is one row, value or claim; it is failed, undecided or neither.
type junitCase struct{ Name, Message, Basis, State, Type string }

// ComparisonJUnit writes a comparison as JUnit XML: a test suite for each side,
// a test for each row, each value without a counterpart and each required
// claim. With strict, what is undecided is a failure, as for the exit status.
//
// The time of the suites is a parameter so that the same comparison gives the
// same bytes.
func ComparisonJUnit(w io.Writer, c *analysis.Comparison, at time.Time, strict bool) error {
	var suites []junitSuite
	for i := range c.Sides[1:] {
		suites = append(suites, newJUnitSuite(c, i+1, strict))
	}
	text := Render("junit", map[string]any{"Suites": suites, "Baseline": Plain(c.Sides[0].Name, nameLength),
		"Time": at.UTC().Format("2006-01-02T15:04:05")})
	if _, err := io.WriteString(w, text); err != nil {
		return fmt.Errorf("writing the comparison as JUnit XML: %w", err)
	}
	return nil
}

// newJUnitSuite is the suite of the side at an index.
//
// The text of a failure is what the row rests on, so that a build server shows
// it without the report.
func newJUnitSuite(c *analysis.Comparison, at int, strict bool) junitSuite {
	side := c.Sides[at].Name
	s := junitSuite{ID: at - 1, Side: Plain(side, nameLength)}
	for _, d := range c.Differences {
		change := factText(d.Values[0]) + " → " + factText(d.Values[at])
		s.Properties = append(s.Properties, Pair{Plain(d.Fact, nameLength), change})
	}
	add := func(failed, undecided bool, name, message, basis string) {
		k := junitCase{Name: name, Message: message, Basis: basis}
		switch {
		case failed || undecided && strict:
			k.State, k.Type = "failed", FirstOf(TextIf(failed, "regression"), "undecided")
			s.Failures++
		case undecided:
			k.State = "undecided"
			s.Skipped++
		}
		s.Cases = append(s.Cases, k)
	}
	name := func(id, phase, op string, cycle int) string {
		return wording.JoinFacts(caseText(id), PhaseName(phase, cycle), QuantityName(op))
	}
	for _, r := range c.Rows {
		if r.Side == side {
			message := changeText(r) + TextIf(r.Reason != "", " ("+Plain(r.Reason, 300)+")")
			add(r.Regressed, r.Undecided, name(r.Case, r.Phase, r.Op, r.Cycle), message, rowBasis(r))
		}
	}
	for _, u := range c.Unpaired {
		if u.Undecided && u.Side == side {
			add(false, true, name(u.Case, u.Phase, u.Op, u.Cycle), Plain(u.Reason, 300), "")
		}
	}
	for _, k := range c.Claims {
		if k.Required {
			message := FirstOf(Plain(k.Text, 300), "its verdict is not decided on both sides")
			add(k.Changed, k.Undecided, "claim: "+Plain(k.Says, 200), message, "")
		}
	}
	for _, a := range c.Answers {
		if a.Side == side {
			s.Answer = Plain(a.Text, 600)
		}
	}
	return s
}

package report

import (
	"fmt"
	"slices"
	"strings"

	"dmgbench/internal/analysis"
	"dmgbench/internal/wording"
)

// ComparisonDocument arranges a comparison: what differs before any number.
func ComparisonDocument(c *analysis.Comparison) Document {
	names := sideNames(c)
	d := Document{Kicker: "Comparison", Title: Plain(names[0], 60)}
	d.Title = several(names[1:]) + " against " + d.Title
	d.Sections = append(d.Sections, sidesSection(c), differsSection(c))
	d.Sections = append(d.Sections, answerSection(c))
	d.Sections = append(d.Sections, rowSections(c)...)
	if s := claimChanges(c); len(s.Table.Rows) > 0 {
		d.Sections = append(d.Sections, s)
	}
	if s := unpairedSection(c); len(s.Items) > 0 {
		d.Sections = append(d.Sections, s)
	}
	return d
}

func answerSection(c *analysis.Comparison) Section {
	answer := Section{ID: "answer", Heading: "Result", Items: Items(answerItems(c.Answers)...)}
	switch {
	case c.Regression:
		answer.After = append(answer.After, regressionText(c))
	case c.Undecided:
		answer.After = append(answer.After, undecidedText(c))
	}
	return answer
}

// SummaryDocument is what a build server shows of a comparison: the answer first, and no lists of runs.
func SummaryDocument(c *analysis.Comparison) Document {
	d := ComparisonDocument(c)
	outcome := "No regression"
	switch {
	case c.Regression:
		outcome = "Regression"
	case c.Undecided:
		outcome = "No regression found, but undecided"
	}
	d.Title = outcome + ": " + d.Title
	d.Sections = slices.DeleteFunc(d.Sections, func(s Section) bool { return s.ID == "sides" })
	answer := slices.IndexFunc(d.Sections, func(s Section) bool { return s.ID == "answer" })
	first := d.Sections[answer]
	d.Sections = slices.Insert(slices.Delete(d.Sections, answer, answer+1), 0, first)
	return d
}

// manySides is from how many sides on they are not all named in a sentence.
const manySides = 6

// several are names in a row; of many, the first and how many more.
func several(names []string) string {
	out := plainList(names, 60)
	if len(out) >= manySides {
		out = append(out[:2:2], fmt.Sprintf("%d more", len(out)-2))
	}
	if slices.ContainsFunc(out, func(n string) bool { return strings.Contains(n, ",") }) {
		return strings.Join(out, "; ")
	}
	return strings.Join(out, ", ")
}

// answerItems are the outcomes of all sides; those of which the same is said share an item.
func answerItems(list []analysis.CompareAnswer) []string {
	sides := map[string][]string{}
	var order []string
	for _, a := range list {
		said := strings.TrimPrefix(a.Text, a.Side)
		if sides[said] == nil {
			order = append(order, said)
		}
		sides[said] = append(sides[said], a.Side)
	}
	out := make([]string, len(order))
	for i, said := range order {
		out[i] = Plain(several(sides[said])+said, 600)
	}
	return out
}

func sideNames(c *analysis.Comparison) []string {
	out := make([]string, len(c.Sides))
	for i, s := range c.Sides {
		out[i] = s.Name
	}
	return out
}

func regressionText(c *analysis.Comparison) string {
	rows, claims := 0, 0
	for _, r := range c.Rows {
		if r.Regressed {
			rows++
		}
	}
	for _, k := range c.Claims {
		if k.Required && k.Changed {
			claims++
		}
	}
	var parts []string
	if rows > 0 {
		verb := map[bool]string{true: " is", false: " are"}[rows == 1]
		parts = append(parts, fmt.Sprintf("%s%s worse by more than %s, significant after Holm's correction", Count(rows, "row"), verb, Percent(c.Threshold)))
	}
	if claims > 0 {
		parts = append(parts, "the verdict on "+Count(claims, "required claim")+" changed")
	}
	return "Regression: " + strings.Join(parts, "; ") + "."
}

// undecidedText says what keeps a regression from being excluded.
func undecidedText(c *analysis.Comparison) string {
	rows, values, claims := 0, 0, 0
	for _, r := range c.Rows {
		if r.Undecided {
			rows++
		}
	}
	for _, u := range c.Unpaired {
		if u.Undecided {
			values++
		}
	}
	for _, k := range c.Claims {
		if k.Undecided {
			claims++
		}
	}
	var parts []string
	if rows > 0 {
		parts = append(parts, fmt.Sprintf("%d of %s may be worse by more than %s", rows, Count(len(c.Rows), "row"), Percent(c.Threshold)))
	}
	if values > 0 {
		parts = append(parts, Count(values, "value")+" could not be compared")
	}
	if claims > 0 {
		parts = append(parts, Count(claims, "required claim")+" undecided")
	}
	return "No regression was found, and none is excluded: " + strings.Join(parts, "; ") + "."
}

func sidesSection(c *analysis.Comparison) Section {
	numbered := len(c.Sides) > 2 && columnNames(sideNames(c)) == nil
	t := &Table{Caption: "Sides", Columns: Columns("<", "sessions", "rounds", "<runs")}
	for i, s := range c.Sides {
		runs := make([]string, len(s.Runs))
		for k, r := range s.Runs {
			runs[k] = Plain(r, 60)
		}
		if len(runs) > 6 {
			runs = append(runs[:5:5], fmt.Sprintf("and %d more", len(runs)-5))
		}
		name := TextIf(numbered, fmt.Sprintf("[%d] ", i+1)) + Plain(s.Name, 60) + TextIf(i == 0, " (baseline)")
		t.Rows = append(t.Rows, []Cell{{Text: name, Class: "head"}, {Text: Grouped(int64(s.Sessions))}, {Text: Grouped(int64(s.Rounds))},
			{Text: strings.Join(runs, ", ")}})
	}
	return Section{ID: "sides", Heading: "Compared", Table: t}
}

// differsSection is what is not the same on all sides.
func differsSection(c *analysis.Comparison) Section {
	s := Section{ID: "differs", Heading: "What differs", Alert: true}
	if len(c.Differences) == 0 {
		s.Lead = []string{"Nothing that is recorded: same machine, system, tools and protocol."}
	}
	var alike []string
	for _, f := range c.Alike {
		text := strings.Join(plainList(f.Values, 80), " / ")
		if f.Name == "plan" {
			text = "plan " + text
		}
		alike = append(alike, text)
	}
	if len(alike) > 0 {
		s.Lead = append(s.Lead, "The same on all sides: "+strings.Join(alike, ", ")+".")
	}
	for _, f := range c.Differences {
		var values []string
		for _, v := range f.Values {
			text := "unknown"
			if len(v) > 0 {
				text = strings.Join(plainList(v, 80), " / ")
			}
			values = append(values, text)
		}
		text := strings.Join(values, " → ")
		if len(values) > manySides {
			slices.Sort(values)
			text = several(slices.Compact(values))
		}
		s.Items = append(s.Items, Item{Text: Plain(strings.ReplaceAll(f.Fact, "_", " "), 40) + ": " + text})
	}
	for _, n := range c.Notes {
		s.Items = append(s.Items, Item{Text: Plain(n, 400)})
	}
	return s
}

// rowTitle says what a row rests on.
func rowTitle(r analysis.CompareRow) string {
	text := fmt.Sprintf("%s and %s, %s and %s", Count(len(r.Base.Sessions), "session"), Grouped(int64(len(r.Value.Sessions))),
		Count(r.Base.Rounds, "round"), Grouped(int64(r.Value.Rounds)))
	if r.CI != nil {
		text += fmt.Sprintf("; 95 %% interval of the ratio %s to %s, %s over %s", Human(r.CI.Low, "1"), Human(r.CI.High, "1"), Plain(r.CI.Method, 80), replicated(r.CI.Unit))
	}
	if r.P != nil && r.Holm != nil {
		text += "; " + wording.P(*r.P).String() + ", after Holm " + wording.P(*r.Holm).Short()
	}
	return text
}

// rowNames names rows by what their cases differ in; what all share is left out.
func rowNames(rows []analysis.CompareRow) func(analysis.CompareRow) string {
	shared := map[string]bool{}
	phases := map[string]bool{}
	for i, r := range rows {
		parts := strings.Split(r.Case, ",")
		phases[fmt.Sprint(r.Phase, r.Cycle)] = true
		if i == 0 {
			for _, p := range parts {
				shared[p] = true
			}
		}
		for p := range shared {
			if !slices.Contains(parts, p) {
				delete(shared, p)
			}
		}
	}
	return func(r analysis.CompareRow) string {
		var out []string
		for _, p := range strings.Split(r.Case, ",") {
			if key, value, ok := strings.Cut(p, "="); !shared[p] {
				if ok {
					p = caseKey(key, value)
				}
				out = append(out, Plain(p, 60))
			}
		}
		name := strings.Join(out, ", ")
		if name == "" && r.Case != analysis.EveryCase { // the only case keeps its name
			name = caseText(r.Case)
		}
		if phase := PhaseName(r.Phase, r.Cycle); phase != "" && (len(phases) > 1 || name == "") {
			name = strings.TrimPrefix(name+" · "+phase, " · ")
		}
		return FirstOf(name, Plain(r.Case, 60))
	}
}

// caseText is the id of a case as people say it.
func caseText(id string) string {
	var out []string
	for p := range strings.SplitSeq(id, ",") {
		if key, value, ok := strings.Cut(p, "="); ok {
			p = caseKey(key, value)
		}
		out = append(out, Plain(p, 60))
	}
	return strings.Join(out, ", ")
}

func caseKey(key, value string) string {
	if key == "baseline" && value == "true" {
		return NativeFolder
	}
	return KeyValue(key, value)
}

func claimChanges(c *analysis.Comparison) Section {
	s := Section{ID: "claims", Heading: "Verdicts that differ", Table: &Table{Caption: "claims", Columns: Columns("<", "<")}}
	same := 0
	for _, k := range c.Claims {
		if k.Text == "" {
			if !slices.Contains(k.Verdicts, "") { // a side without a verdict is in the notes
				same++
			}
			continue
		}
		text, class := Plain(k.Text, 400), ""
		if k.Changed {
			class = "warn"
		}
		if k.Required {
			text += " (required)"
		}
		s.Table.Rows = append(s.Table.Rows, []Cell{{Text: Plain(k.Says, 200), Class: "head"}, {Text: text, Class: class}})
	}
	if same > 0 {
		s.After = append(s.After, Count(same, "more claim")+" with the same verdict on all sides.")
	}
	return s
}

func unpairedSection(c *analysis.Comparison) Section {
	s := Section{ID: "unpaired", Heading: "Not compared"}
	at := map[string]int{}
	list := map[string][]string{}
	var order []string
	for _, u := range c.Unpaired {
		reason := Plain(u.Reason, 400)
		if _, ok := at[reason]; !ok {
			at[reason] = len(order)
			order = append(order, reason)
		}
		list[reason] = AppendNew(list[reason], strings.Join(NonEmpty([]string{caseText(u.Case), QuantityName(u.Op), PhaseName(u.Phase, u.Cycle)}), ", "))
	}
	for _, reason := range order {
		what := list[reason]
		if len(what) > 6 {
			what = append(what[:5:5], fmt.Sprintf("and %d more", len(what)-5))
		}
		s.Items = append(s.Items, Item{Text: reason + " (" + strings.Join(what, "; ") + ")"})
	}
	return s
}

func compareLegend(c *analysis.Comparison) string {
	return fmt.Sprintf("Rates are %s of the rounds, geometric means over sessions. A change has its 95 %% interval over sessions and is significant after "+
		"Holm's correction over all rows (5 %% for any false one); ~ is undecided; “the same” is an interval within %s; ! is a regression: "+
		"significantly worse by more than %s.", Plain(strings.ReplaceAll(c.Estimator, "-", " ")+" rates", 40), Percent(c.Threshold), Percent(c.Threshold))
}

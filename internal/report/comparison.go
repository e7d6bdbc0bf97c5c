package report

import (
	"fmt"
	"io"
	"slices"
	"strings"

	"dmgbench/internal/analysis"
)

// ComparisonText writes a comparison for a terminal.
func ComparisonText(w io.Writer, c *analysis.Comparison, o TextOptions) error {
	return comparisonDoc(c).text(w, o)
}

// ComparisonMarkdown writes a comparison for a repository or an issue.
func ComparisonMarkdown(w io.Writer, c *analysis.Comparison) error {
	return comparisonDoc(c).markdown(w)
}

// ComparisonHTML writes a comparison as one self-contained page.
func ComparisonHTML(w io.Writer, c *analysis.Comparison) error { return comparisonDoc(c).html(w) }

// comparisonDoc arranges a comparison: what differs before any number.
func comparisonDoc(c *analysis.Comparison) doc {
	names := sideNames(c)
	d := doc{Kicker: "Comparison", Title: plain(names[0], 60)}
	d.Title = several(names[1:]) + " against " + d.Title
	d.Sections = append(d.Sections, sidesSection(c), differsSection(c))
	answer := docSection{ID: "answer", Heading: "What can be said"}
	answer.Items = answerItems(c.Answers)
	if c.Regression {
		answer.After = append(answer.After, regressionText(c))
	}
	d.Sections = append(d.Sections, answer)
	d.Sections = append(d.Sections, rowSections(c)...)
	if s := claimChanges(c); len(s.Table.Rows) > 0 {
		d.Sections = append(d.Sections, s)
	}
	if s := unpairedSection(c); len(s.Items) > 0 {
		d.Sections = append(d.Sections, s)
	}
	return d
}

// manySides is from how many sides on they are not all named in a sentence.
const manySides = 6

// several are names in a row; of many, the first and how many more.
func several(names []string) string {
	out := cleaned(names, 60)
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
		out[i] = plain(several(sides[said])+said, 600)
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
	text := "A regression"
	if rows > 0 {
		text += fmt.Sprintf(": %s worse by more than %s, which the interval says after Holm over all rows", count(rows, "row"), percent(c.Threshold))
	}
	if claims > 0 {
		text += fmt.Sprintf(": the verdict on %s that the plan requires turned round", count(claims, "claim"))
	}
	return text + "."
}

func sidesSection(c *analysis.Comparison) docSection {
	t := &table{Caption: "Sides", Columns: []column{{"", "", true}, {"", "sessions", false}, {"", "rounds", false}, {"", "runs", true}}}
	for i, s := range c.Sides {
		runs := make([]string, len(s.Runs))
		for k, r := range s.Runs {
			runs[k] = plain(r, 60)
		}
		if len(runs) > 6 {
			runs = append(runs[:5:5], fmt.Sprintf("and %d more", len(runs)-5))
		}
		name := plain(s.Name, 60) + zero(i == 0, " (baseline)")
		t.Rows = append(t.Rows, []cell{{Text: name, Class: "head"}, {Text: grouped(int64(s.Sessions))}, {Text: grouped(int64(s.Rounds))},
			{Text: strings.Join(runs, ", ")}})
	}
	return docSection{ID: "sides", Heading: "Compared", Table: t}
}

// differsSection is what is not the same on all sides.
func differsSection(c *analysis.Comparison) docSection {
	s := docSection{ID: "differs", Heading: "What differs", Alert: true}
	if len(c.Differences) == 0 {
		s.Lead = []string{"Nothing that is recorded: same machine, system, tools and protocol."}
	}
	var alike []string
	for _, f := range c.Alike {
		text := strings.Join(cleaned(f.Values, 80), " / ")
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
				text = strings.Join(cleaned(v, 80), " / ")
			}
			values = append(values, text)
		}
		text := strings.Join(values, " → ")
		if len(values) > manySides {
			slices.Sort(values)
			text = several(slices.Compact(values))
		}
		s.Items = append(s.Items, plain(strings.ReplaceAll(f.Fact, "_", " "), 40)+": "+text)
	}
	for _, n := range c.Notes {
		s.Items = append(s.Items, plain(n, 400))
	}
	return s
}

func cleaned(list []string, limit int) []string {
	out := make([]string, len(list))
	for i, s := range list {
		out[i] = plain(s, limit)
	}
	return out
}

// rowSections are a table for each quantity and side.
func rowSections(c *analysis.Comparison) []docSection {
	var out []docSection
	name := rowNames(c.Rows)
	for _, op := range c.Ops {
		for _, side := range c.Sides[1:] {
			s := rowSection(c, op, side.Name, name)
			if len(s.Table.Rows) > 0 {
				s.ID = fmt.Sprintf("rows-%d", len(out)+1)
				s.Charts = forests(c, op, side.Name, words(op), "forest-"+s.ID, name)
				out = append(out, s)
			}
		}
	}
	if len(out) > 0 {
		out[len(out)-1].After = append(out[len(out)-1].After, compareLegend(c))
	}
	return out
}

func rowSection(c *analysis.Comparison, op, side string, name func(analysis.CompareRow) string) docSection {
	heading := words(op)
	if len(c.Sides) > 2 {
		heading += ": " + plain(side, 60)
	}
	left, right := columnNames(c, side)
	s := docSection{Heading: strings.ToUpper(heading[:1]) + heading[1:], Table: &table{Caption: heading,
		Columns: []column{{"", "", true}, {"", left, false}, {"", right, false}, {"", "change", true}}}}
	for _, r := range c.Rows {
		if r.Op != op || r.Side != side {
			continue
		}
		effect, class := plain(r.Effect, 100), ""
		switch {
		case r.Regressed:
			effect, class = effect+" !", "warn"
		case r.Status == analysis.RowChanged && r.Better > 0:
			class = "good"
		case r.Status == analysis.RowChanged && r.Better < 0:
			class = "warn"
		case r.Status == analysis.RowSessionUnknown:
			_, seen, _ := strings.Cut(effect, "seen: ")
			effect, class = "~ seen: "+seen, "muted"
		case r.Status == analysis.RowUnclear:
			class = "muted"
		}
		s.Table.Rows = append(s.Table.Rows, []cell{{Text: name(r), Class: "head"}, {Text: human(r.Base.Value, r.Unit)},
			{Text: human(r.Value.Value, r.Unit)}, {Text: effect, Class: class, Title: rowTitle(r)}})
		for _, w := range r.Warnings {
			s.After = appendNew(s.After, plain(w, 300))
		}
		if r.Status == analysis.RowUnclear && r.CI != nil && (r.CI.Low > 1 || r.CI.High < 1) {
			s.After = appendNew(s.After, "~ beside an interval that leaves no change out: all rows are tested together, and after Holm it is not clear enough")
		}
		if r.Status == analysis.RowSessionUnknown {
			s.After = appendNew(s.After, plain(r.Reason, 300))
		}
	}
	return s
}

// shortName is how long the name of a side may be to head a column of numbers.
const shortName = 16

// columnNames head the values of the baseline and of a side: by their names where
// both are short.
func columnNames(c *analysis.Comparison, side string) (left, right string) {
	left, right = plain(c.Sides[0].Name, 60), plain(side, 60)
	if len([]rune(left)) > shortName || len([]rune(right)) > shortName {
		return "baseline", "compared"
	}
	return left, right
}

// rowTitle says what a row rests on.
func rowTitle(r analysis.CompareRow) string {
	text := fmt.Sprintf("%s and %s, %s and %s", count(len(r.Base.Sessions), "session"), grouped(int64(len(r.Value.Sessions))),
		count(r.Base.Rounds, "round"), grouped(int64(r.Value.Rounds)))
	if r.CI != nil {
		text += fmt.Sprintf("; 95 %% interval of the ratio %s to %s, %s over %s", human3(r.CI.Low), human3(r.CI.High), plain(r.CI.Method, 80), replicated(r.CI.Unit))
	}
	if r.P != nil && r.Holm != nil {
		text += "; " + analysis.SayP(*r.P) + ", after Holm " + analysis.ShowP(*r.Holm)
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
				out = append(out, plain(p, 60))
			}
		}
		name := strings.Join(out, ", ")
		if phase := cycled(r.Phase, r.Cycle); phase != "" && (len(phases) > 1 || name == "") {
			name = strings.TrimPrefix(name+" · "+phase, " · ")
		}
		return firstOf(name, plain(r.Case, 60))
	}
}

// caseText is the id of a case as people say it.
func caseText(id string) string {
	var out []string
	for p := range strings.SplitSeq(id, ",") {
		if key, value, ok := strings.Cut(p, "="); ok {
			p = caseKey(key, value)
		}
		out = append(out, plain(p, 60))
	}
	return strings.Join(out, ", ")
}

func caseKey(key, value string) string {
	if key == "baseline" && value == "true" {
		return nativeFolder
	}
	return keyValue(key, value)
}

func claimChanges(c *analysis.Comparison) docSection {
	s := docSection{ID: "claims", Heading: "Verdicts that are not the same", Table: &table{Caption: "claims", Columns: []column{{"", "", true}, {"", "", true}}}}
	same := 0
	for _, k := range c.Claims {
		if k.Text == "" {
			if !slices.Contains(k.Verdicts, "") { // a side without a verdict is in the notes
				same++
			}
			continue
		}
		text, class := plain(k.Text, 400), ""
		if k.Changed {
			class = "warn"
		}
		if k.Required {
			text += " (required)"
		}
		s.Table.Rows = append(s.Table.Rows, []cell{{Text: plain(k.Says, 200), Class: "head"}, {Text: text, Class: class}})
	}
	if same > 0 {
		s.After = append(s.After, count(same, "more claim")+" with the same verdict on all sides.")
	}
	return s
}

func unpairedSection(c *analysis.Comparison) docSection {
	s := docSection{ID: "unpaired", Heading: "Not compared"}
	at := map[string]int{}
	list := map[string][]string{}
	var order []string
	for _, u := range c.Unpaired {
		reason := plain(u.Reason, 400)
		if _, ok := at[reason]; !ok {
			at[reason] = len(order)
			order = append(order, reason)
		}
		list[reason] = appendNew(list[reason], strings.Join(nonEmpty([]string{caseText(u.Case), words(u.Op), cycled(u.Phase, u.Cycle)}), ", "))
	}
	for _, reason := range order {
		what := list[reason]
		if len(what) > 6 {
			what = append(what[:5:5], fmt.Sprintf("and %d more", len(what)-5))
		}
		s.Items = append(s.Items, reason+" ("+strings.Join(what, "; ")+")")
	}
	return s
}

func compareLegend(c *analysis.Comparison) string {
	return fmt.Sprintf("Rates are %s of the rounds, geometric means over sessions. A change has its 95 %% interval over sessions and stands after Holm over all "+
		"rows (5 %% for any false one); ~ is where nothing can be said; “the same” is an interval within %s; ! is worse by more than %s, "+
		"and the interval says so.", plain(strings.ReplaceAll(c.Estimator, "-", " ")+" rates", 40), percent(c.Threshold), percent(c.Threshold))
}

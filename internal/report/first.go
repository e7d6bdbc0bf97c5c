package report

import (
	"bytes"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"dmgbench/internal/result"
)

// This file makes the first screen: what was measured, by which engine, the main
// numbers, what was judged, and what weakens it. Everything on it is said again
// in full further down.

// FirstScreen is the answer of a run in the order in which a stranger asks for it.
type FirstScreen struct {
	Chart   *pageChart // of the main numbers
	Outcome *Table     // what the plan is about, where that is no rate
	Notice  string     // whose tools were not at work; "" where Apple's were
	Judged  []string
	Claims  []ClaimView // the most telling ones; the rest is below
	More    int         // claims that are not among them
	Numbers *Table      // main numbers
	Heading string      // of the numbers
	Weak    []string    // what weakens the answer most, in words
	Shared  []string    // what all rates have in common, in words
	Counts  []string    // what weakens the answer, counted
	Missing string      // cases that were not measured in full
}

// claimsFirst and rowsFirst bound the first screen.
const (
	claimsFirst = 4
	rowsFirst   = 7
)

// Above is what weakens the answer most, in words.
func (f FirstScreen) Above() string {
	return strings.Join(append(slices.Clone(f.Weak[:min(len(f.Weak), weaknessesFirst)]), f.Shared...), "; ")
}

func (v *View) firstScreen() FirstScreen {
	f := FirstScreen{Notice: v.engineNotice(), Judged: v.judgedLines(), Weak: v.weaknesses(), Counts: v.weakCounts(), Missing: v.missingCases()}
	f.Counts = NonEmpty(append(f.Counts, f.Missing))
	var all []ClaimView
	for _, verdict := range verdictOrder {
		for _, g := range v.Claims {
			if g.Verdict == verdict {
				all = append(all, g.Claims...)
			}
		}
	}
	f.Claims = firstClaims(all)
	f.More = len(all) - len(f.Claims)
	for _, text := range v.SharedDoubts { // the list has the first warning of each kind, and may have another
		if !slices.ContainsFunc(f.Weak, func(weak string) bool { return strings.HasPrefix(weak, beforeColon(text)) }) {
			f.Shared = append(f.Shared, "all rates: "+text)
		}
	}
	if t := v.Result.Tables; len(t) > 0 && len(t[0].Columns) > 0 && t[0].Columns[0].Op == result.OpOutcome {
		f.Outcome = &v.PlanTables[0]
		return f
	}
	f.Numbers, f.Heading = v.mainNumbers()
	return f
}

// firstClaims are the claims of the first screen out of all, in their order. Up to two of its
// places are kept for what does not hold: a list of nothing but successes below "6 hold, 2 do
// not hold" would be read as all that matters.
func firstClaims(all []ClaimView) []ClaimView {
	refuted := 0
	for _, c := range all {
		if c.Verdict == result.DoesNotHold {
			refuted++
		}
	}
	keep := claimsFirst - min(refuted, claimsFirst/2)
	return slices.DeleteFunc(slices.Clone(all), func(c ClaimView) bool {
		if c.Verdict == result.Holds {
			keep--
			return keep < 0
		}
		return false
	})[:min(len(all), claimsFirst)]
}

// engineNotice says plainly that Apple's tools were not at work. Directories alone need no tools.
func (v *View) engineNotice() string {
	apple, other, simulated := false, "", false
	var systems []string
	for _, s := range v.Result.Sessions {
		if s.Engine.Vendor == "Apple" {
			apple = true
			continue
		}
		other = FirstOf(other, Plain(FirstOf(s.Engine.Title, s.Engine.Name), 80))
		simulated = simulated || s.Engine.Name == "simulated"
		systems = AppendNew(systems, osName(s.Host.OS))
	}
	switch {
	case simulated:
		return "No disk was measured. The times were drawn from stated laws by the simulated engine, to test the program itself."
	case other == "" || !v.HasImages():
		return ""
	case apple:
		return "Apple’s tools were at work in some sessions only: the others measured the engine “" + other + "”, which imitates them."
	}
	return "Apple’s tools were not measured. The engine “" + other + "” of this program made and attached the images on " +
		strings.Join(NonEmpty(systems), " and ") + "; it imitates Apple’s formats, so these numbers do not tell how fast macOS is."
}

func osName(os string) string {
	switch os {
	case "darwin":
		return "macOS"
	case "linux":
		return "Linux"
	}
	return FirstOf(Plain(os, 40), "this system")
}

// judgedLines count the verdicts, the source's conclusions and our own apart.
func (v *View) judgedLines() []string {
	author, us := ClaimGroup{}, ClaimGroup{}
	byAuthor := map[string][]ClaimView{}
	byUs := map[string][]ClaimView{}
	for _, g := range v.Claims {
		for _, c := range g.Claims {
			if c.By == claimant("us") {
				us.Claims, byUs[c.Verdict] = append(us.Claims, c), append(byUs[c.Verdict], c)
			} else {
				author.Claims, byAuthor[c.Verdict] = append(author.Claims, c), append(byAuthor[c.Verdict], c)
			}
		}
	}
	var out []string
	if n := len(author.Claims); n > 0 {
		out = append(out, judgedLine(n, "published conclusion", byAuthor))
	}
	if n := len(us.Claims); n > 0 {
		out = append(out, judgedLine(n, "claim", byUs))
	}
	return out
}

// judgedLine is "The 5 published conclusions: 2 hold, 3 not judged", with the reason where none was judged.
func judgedLine(n int, noun string, by map[string][]ClaimView) string {
	lead := map[string]string{"published conclusion": "The ", "claim": "Our own "}[noun]
	if n > 1 {
		noun = strconv.Itoa(n) + " " + noun + "s"
	}
	if len(by[result.NotMeasured]) == n {
		why := ""
		if !slices.ContainsFunc(by[result.NotMeasured], func(c ClaimView) bool { return c.Scope != scopeText("apple") }) {
			why = map[bool]string{true: ": they are", false: ": it is"}[n > 1] + " about Apple’s tools, which did not run"
		}
		return lead + noun + map[bool]string{true: " were", false: " was"}[n > 1] + " not judged here" + why + "."
	}
	var groups []ClaimGroup
	for _, verdict := range verdictOrder {
		if len(by[verdict]) > 0 {
			groups = append(groups, ClaimGroup{Verdict: verdict, Claims: by[verdict]})
		}
	}
	if n == 1 {
		return lead + noun + ": " + groups[0].Claims[0].Word + "."
	}
	return lead + noun + ": " + CountVerdicts(groups) + "."
}

// serious are the kinds of departures and warnings that change an answer most, worst first.
var serious = []string{"scale", "filesystem", "input", "codec", "drift", "two-modes", "bimodal", "sessions", "changed", "few-rounds", "faster-than-native",
	"thermal", "battery", "busy", "quota", "cpu-quota", "sets", "cache", "virtual"}

// weaknessesFirst is how many of them are on the first screen of the page.
const weaknessesFirst = 4

// weaknesses are what weakens the answer most, worst first, each kind once with how often it was found; the engine has a notice of its own.
func (v *View) weaknesses() []string {
	var out []string
	for _, kind := range serious {
		if i := slices.IndexFunc(v.Result.Departures, func(d result.Departure) bool { return d.Kind == kind }); i >= 0 {
			out = AppendNew(out, Plain(v.Result.Departures[i].Text, 160))
		}
		if text, n := v.warningsOf(kind); n > 0 {
			out = AppendNew(out, text+TextIf(n > 1, " ("+Grouped(int64(n))+" times)"))
		}
	}
	return out
}

// warningsOf is the first warning of a kind, and how many steps, cases or else runs have one.
func (v *View) warningsOf(kind string) (text string, n int) {
	var runs, cases, steps int
	count := func(into *int, ws []result.Warning) {
		if i := slices.IndexFunc(ws, func(w result.Warning) bool { return w.Kind == kind }); i >= 0 {
			*into++
			text = FirstOf(text, beforeColon(Plain(ws[i].Text, 160)))
		}
	}
	count(&runs, v.Result.Warnings)
	for _, c := range v.Result.Cases {
		count(&cases, c.Warnings)
		for _, s := range c.Steps {
			count(&steps, s.Warnings)
		}
	}
	return text, max(runs, cases, steps)
}

// beforeColon leaves the explanation of a warning to its full text.
func beforeColon(s string) string {
	before, after, found := strings.Cut(s, ": ")
	if found && (strings.HasPrefix(after, "the machine") || strings.HasPrefix(after, "what ") || strings.HasPrefix(after, "no ")) {
		return before
	}
	return s
}

// weakCounts is what weakens the answer in numbers, each with a full list further down.
func (v *View) weakCounts() []string {
	choices := 0
	for _, d := range v.Deviations {
		if d.Kind == "choice" {
			choices++
		}
	}
	run := 0
	for _, w := range v.Warnings {
		if w.Run {
			run++
		}
	}
	var out []string
	if n := len(v.Deviations) - choices; n > 0 {
		out = append(out, Count(n, "deviation")+" from the "+TextIf(v.Source != "", "published ")+"protocol")
	}
	if choices > 0 {
		out = append(out, Count(choices, "choice")+" where the published text is silent")
	}
	if run > 0 {
		out = append(out, Count(run, "warning")+" about the run")
	}
	if n := len(v.Warnings) - run; n > 0 {
		out = append(out, Count(n, "warning")+" on single figures")
	}
	return out
}

// missingCases counts and names the cases that were not measured in full.
func (v *View) missingCases() string {
	missing, names := 0, []string(nil)
	for _, c := range v.Result.Cases {
		if c.Status != result.Done {
			missing++
			names = append(names, v.CaseName(c.ID))
		}
	}
	return TextIf(missing > 0, fmt.Sprintf("%d of %s not measured in full: %s", missing, Count(len(v.Result.Cases), "case"), missed(names)))
}

// missed names the first few.
func missed(names []string) string {
	const most = 3
	if left := len(names) - most; left > 0 {
		return strings.Join(names[:most], "; ") + " and " + strconv.Itoa(left) + " more"
	}
	return strings.Join(names, "; ")
}

// text is the first screen for terminals: the answer in words, then the main numbers as bars.
func (f FirstScreen) text(w *textWriter) {
	w.wrapped("  ", w.paint("33", f.Notice))
	if len(f.Judged) > 0 {
		w.heading("What was judged")
		for _, line := range f.Judged {
			w.wrapped("  ", line)
		}
	}
	if len(f.Weak)+len(f.Counts) > 0 {
		w.heading("What weakens the answer")
		w.wrapped("  ", TextIf(f.Above() != "", f.Above()+"."))
		w.wrapped("  ", TextIf(len(f.Counts) > 0, "In all: "+strings.Join(f.Counts, ", ")+"."))
	}
	if f.Outcome != nil {
		w.published(*f.Outcome)
	}
	if f.Numbers != nil {
		w.heading(f.Heading)
		w.bars(*f.Numbers)
	}
}

// barEighths are the left eighths of a block: a bar is as fine as its eighth part.
var barEighths = []string{"", "▏", "▎", "▍", "▌", "▋", "▊", "▉"}

// bar draws a share of a width in columns.
func bar(percent float64, columns int) string {
	n := int(percent / 100 * float64(columns*8))
	n = min(max(n, 1), columns*8)
	return strings.Repeat("█", n/8) + barEighths[n%8]
}

// barColumns is the width of the longest bar.
const barColumns = 14

// dropBars takes the bars, the third column, from a grid that is wider than the terminal: an interval says more.
func (w *textWriter) dropBars(grid [][]string) {
	total := 3
	for i := range grid[0] {
		wide := 0
		for _, row := range grid[1:] {
			wide = max(wide, Width(row[i]))
		}
		if wide > 0 {
			total += max(wide, Width(grid[0][i])) + 2
		}
	}
	if total > w.width {
		for _, row := range grid {
			row[2] = ""
		}
	}
}

// bars prints the main numbers, one line a quantity, with a bar for each.
func (w *textWriter) bars(t Table) {
	grid, heads := [][]string{{"", "", "", "measured", "interval", "published"}}, map[int]string{}
	for _, row := range t.Rows {
		heads[len(grid)] = row[0].Text + TextIf(row[0].Sub != "", ", "+row[0].Sub)
		for i := 1; i < len(row); i++ {
			if !strings.HasPrefix(t.Columns[i].Title, "measured") || row[i].Text == "" {
				continue
			}
			line := []string{"", t.Columns[i].Group, bar(row[i].Bar, barColumns), row[i].Text, row[i].Sub, ""}
			if i+1 < len(row) && !strings.HasPrefix(t.Columns[i+1].Title, "measured") {
				line[5] = row[i+1].Text
				if row[i+1].Class == "muted" {
					line[5] = "(" + line[5] + ")"
				}
			}
			grid = append(grid, line)
		}
	}
	w.dropBars(grid)
	w.grid(grid, heads, 3)
	for _, n := range t.Notes {
		if n.Mark == 0 {
			w.wrapped("  ", n.Text)
		}
	}
}

// markdown is the first screen for a repository or an issue.
func (f FirstScreen) markdown(b *bytes.Buffer) {
	if f.Notice != "" {
		fmt.Fprintf(b, "> **%s**\n\n", md(f.Notice))
	}
	for _, line := range f.Judged {
		fmt.Fprintf(b, "**%s**\n\n", md(line))
	}
	if len(f.Counts) > 0 {
		fmt.Fprintf(b, "What weakens the answer: %s%s.\n\n", md(TextIf(f.Above() != "", f.Above()+". In all: ")), md(strings.Join(f.Counts, ", ")))
	}
	if f.Outcome != nil {
		tableMarkdown(b, f.Outcome.unfolded().ungrouped())
	}
	if f.Numbers == nil {
		return
	}
	t := *f.Numbers
	t.Caption = f.Heading
	t.Rows = slices.Clone(t.Rows)
	for i, row := range t.Rows {
		t.Rows[i] = slices.Clone(row)
		for j, c := range row {
			if c.Sub != "" && c.Text != "" {
				t.Rows[i][j].Text += TextIf(j == 0, ", "+c.Sub) + TextIf(j > 0, " ("+c.Sub+")")
			}
		}
	}
	tableMarkdown(b, t)
}

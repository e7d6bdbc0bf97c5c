package report

import (
	"cmp"
	"slices"
	"strings"

	"dmgbench/internal/report/wording"
	"dmgbench/internal/result"
)

// FirstScreen is the answer of a run in the order in which a reader asks for
// it: which tools were measured, what was judged, the main numbers, and what
// weakens them. The rest of the report has all of it in full.
type FirstScreen struct {
	Notice  string // which tools were not measured; "" where Apple's were
	Judged  []string
	Claims  []ClaimView // first those that do not hold or are undecided
	More    int         // number of claims that are not among them
	Uses    *UseMatrix  // which image to take; nil for a plan without uses
	Outcome *Table      // the subject of the plan, where that is no rate
	Numbers *Table      // a row a case; nil where there are uses or an outcome, or no figure
	Weak    []string    // what weakens the answer most, worst first
	Shared  []string    // doubts about all rates
	Counts  []string    // deviations and warnings, counted
	Missing string      // cases that were not measured in full
}

// The bounds of the first screen.
const (
	firstClaims     = 4
	firstWeaknesses = 4
)

// Above is what weakens the answer most, as one text.
func (f FirstScreen) Above() string {
	return strings.Join(slices.Concat(f.Weak[:min(len(f.Weak), firstWeaknesses)], f.Shared), "; ")
}

func (v *View) firstScreen() FirstScreen {
	f := FirstScreen{Notice: Phrase("notice", v), Weak: v.weaknesses(), Missing: Phrase("missing", v)}
	choices := countIf(v.Deviations, func(d Deviation) bool { return d.Kind == "choice" })
	f.Counts = wording.NonEmpty(append(Lines("counts", map[string]any{"Source": v.Source, "Choices": choices,
		"Departed": len(v.Deviations) - choices, "OfRun": len(v.Warnings) - v.OfFigures(),
		"OfFigures": v.OfFigures()}), f.Missing))
	claims := FlatMap(v.Claims, func(g ClaimGroup) []ClaimView { return g.Claims })
	ours := Where(claims, func(c ClaimView) bool { return c.By == claimant("us") })
	published := Where(claims, func(c ClaimView) bool { return c.By != claimant("us") })
	f.Judged = wording.NonEmpty([]string{
		judgedLine("The", "published conclusion", published), judgedLine("Our", "claim", ours)})
	f.Claims = claimsToRead(claims)
	f.More = len(claims) - len(f.Claims)
	for _, text := range v.SharedDoubts { // Weak has the first warning of each kind, which may be one of these
		isListed := slices.ContainsFunc(f.Weak, func(weak string) bool { return strings.Contains(weak, text) })
		f.Shared = append(f.Shared, wording.NonEmpty([]string{TextIf(!isListed, "all rates: "+text)})...)
	}
	if f.Uses = v.useMatrix(slices.Concat(f.Weak[:min(len(f.Weak), firstWeaknesses)], f.Counts)); f.Uses != nil {
		return f
	}
	if t := v.Result.Tables; len(t) > 0 && len(t[0].Columns) > 0 && t[0].Columns[0].Op == result.OpOutcome {
		f.Outcome = &v.PlanTables[0]
		return f
	}
	main, key := v.MainFigures()
	if main = main.Rows(key); len(main.Ops) == 0 {
		return f
	}
	caption := "Measured"
	switch shared := main.sharedNotes(); {
	case shared.uncomparable > 0 && shared.comparable == 0:
		caption = "Measured here, and published elsewhere"
	case len(main.published(main.Ops...)) > 0:
		caption = "Measured and published"
	}
	f.Numbers = new(v.figureTable(caption+PhaseSuffix(PhaseName(key.Phase, key.Cycle)), main, true))
	return f
}

// claimsToRead are the claims of the first screen: those that do not hold, then
// undecided ones, then the others. A list of claims that hold would be read as
// the whole answer.
func claimsToRead(all []ClaimView) []ClaimView {
	order := []string{result.DoesNotHold, result.CannotTell, result.Holds, result.NotMeasured}
	out := slices.SortedStableFunc(slices.Values(all), func(a, b ClaimView) int {
		return cmp.Compare(slices.Index(order, a.Verdict), slices.Index(order, b.Verdict))
	})
	return out[:min(len(out), firstClaims)]
}

// SystemNames are the systems of all sessions, without their versions.
func (v *View) SystemNames() []string { return v.distinct("system-name") }

// judgedLine is the tally of some claims: "Our 5 claims: 2 hold, 3 undecided.",
// with the reason where none was judged.
func judgedLine(who, noun string, claims []ClaimView) string {
	if len(claims) == 0 {
		return ""
	}
	all := func(test func(ClaimView) bool) bool { return countIf(claims, test) == len(claims) }
	verdicts := CountVerdicts([]ClaimGroup{{Claims: claims}})
	if len(claims) == 1 {
		verdicts = claims[0].Word
	}
	return Phrase("judged", map[string]any{"Who": who, "Noun": noun, "Claims": len(claims), "Verdicts": verdicts,
		"NotJudged": all(func(c ClaimView) bool { return c.Verdict == result.NotMeasured }),
		"Apple":     all(func(c ClaimView) bool { return c.Scope == scopeText("apple") })})
}

// seriousKinds are the kinds of deviations and warnings that change an answer
// most, worst first.
//
// Kinds that are not in the list are counted, and are in the lists of
// deviations and warnings.
var seriousKinds = strings.Fields(`waits scale filesystem input codec drift two-modes bimodal sessions stopped slept changed few-rounds
	faster-than-native thermal battery busy quota cpu-quota sets cache virtual`)

// weaknesses are what weakens the answer most, worst first, each kind once: the
// first of its warnings, and at how many places there are such warnings.
func (v *View) weaknesses() []string {
	var out []string
	for _, kind := range seriousKinds {
		is := func(d result.Departure) bool { return d.Kind == kind }
		if i := slices.IndexFunc(v.Result.Departures, is); i >= 0 {
			out = AppendNew(out, Plain(v.Result.Departures[i].Text, 160))
		}
		text, n := "", 0
		for _, w := range v.Warnings {
			if w.Kind == kind {
				text, n = FirstOf(text, Plain(w.Text, 160)), n+w.places
			}
		}
		if n > 0 {
			out = AppendNew(out, text+TextIf(n > 1, " ("+Grouped(n)+" times)"))
		}
	}
	return out
}

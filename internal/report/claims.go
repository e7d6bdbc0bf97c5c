package report

import (
	"fmt"
	"net/url"
	"slices"
	"strings"

	"dmgbench/internal/analysis"
	"dmgbench/internal/report/wording"
	"dmgbench/internal/result"
)

// ClaimView is one judged sentence as printed. Here is what the run measured,
// where the claim was not judged by it.
type ClaimView struct {
	Verdict, Word, Says, By, Scope, Reason, Here string
	Evidence                                     []string
}

// verdicts are the words of each verdict, of one claim and of several, in the
// order in which they are counted.
var verdicts = []struct{ verdict, one, several string }{
	{result.Holds, "holds", "hold"},
	{result.DoesNotHold, "does not hold", "do not hold"},
	{result.CannotTell, "undecided", "undecided"},
	{result.NotMeasured, "not judged", "not judged"},
}

// verdictOf is the class and the word of a verdict. An unknown verdict counts
// as undecided, and is shown.
func verdictOf(verdict string) (class, word string) {
	for _, v := range verdicts {
		if v.verdict == verdict {
			return verdict, v.one
		}
	}
	return result.CannotTell, Plain(FirstOf(verdict, "no verdict"), 40)
}

// ClaimGroup is the claims that share a verdict and its reason: the reason is
// printed once, before the list. A claim with a reason of its own is a group.
type ClaimGroup struct {
	Verdict, Word string
	Reason        string // shared by all; "" where the claim is alone and keeps its own
	Claims        []ClaimView
}

// claimGroups words the claims, and groups them in the order in which the plan
// has the first of each.
//
// Claims with evidence of their own keep it.
func claimGroups(claims []result.Claim) []ClaimGroup {
	type key struct{ verdict, word, reason string }
	at := map[key]int{}
	var out []ClaimGroup
	for _, c := range claims {
		cv := newClaimView(c)
		k := key{cv.Verdict, cv.Word, c.Reason}
		i, ok := at[k]
		if !ok || cv.Reason == "" {
			i = len(out)
			at[k] = i
			out = append(out, ClaimGroup{Verdict: cv.Verdict, Word: cv.Word})
		}
		out[i].Claims = append(out[i].Claims, cv)
	}
	for i := range out {
		if g := &out[i]; len(g.Claims) > 1 {
			g.Reason = Count(len(g.Claims), "claim") + ": " + g.Claims[0].Reason
			for k := range g.Claims {
				g.Claims[k].Reason = ""
			}
		}
	}
	return out
}

func newClaimView(c result.Claim) ClaimView {
	verdict, word := verdictOf(c.Verdict)
	cv := ClaimView{Verdict: verdict, Word: word, Says: Plain(c.Says, 400), By: claimant(c.By),
		Scope: scopeText(c.Scope), Reason: Plain(c.Reason, 800), Here: Plain(c.Here, 800),
		Evidence: plainList(c.Evidence, 600)}
	return cv
}

// claimant is who made a claim, in words.
func claimant(by string) string { return named("claimant", by, 40) }

// scopeText is what a claim is about, in words.
func scopeText(scope string) string { return named("scope", scope, 40) }

// reasons are why a claim was judged so, without the evidence.
func (c ClaimView) reasons() []string {
	return wording.NonEmpty([]string{c.Reason, TextIf(c.Here != "", "Here: "+c.Here)})
}

// ClaimItems are the verdicts as a list, with or without the evidence. Claims
// that share a reason are a list below it.
func ClaimItems(groups []ClaimGroup, evidence bool) []Item {
	var out []Item
	for _, g := range groups {
		var claims []Item
		for _, c := range g.Claims {
			item := Item{Text: c.Says, Note: wording.JoinFacts(c.By, c.Scope), Items: Items(c.reasons()...)}
			if evidence {
				item.Items = append(item.Items, Items(c.Evidence...)...)
			}
			claims = append(claims, item)
		}
		group := claims[0]
		if g.Reason != "" {
			group = Item{Text: g.Reason, Items: claims}
		}
		group.Label, group.Class = g.Word, g.Verdict
		out = append(out, group)
	}
	return out
}

// CountVerdicts is "3 hold, 1 does not hold, 2 not judged".
func CountVerdicts(groups []ClaimGroup) string {
	all := FlatMap(groups, func(g ClaimGroup) []ClaimView { return g.Claims })
	var parts []string
	for _, v := range verdicts {
		if n := countIf(all, func(c ClaimView) bool { return c.Verdict == v.verdict }); n == 1 {
			parts = append(parts, "1 "+v.one)
		} else if n > 1 {
			parts = append(parts, Grouped(n)+" "+v.several)
		}
	}
	return strings.Join(parts, ", ")
}

// fullEvidence is the number of runs of a cell with the same verdict, the
// newest, that are shown with their evidence; that of the others is in their
// reports. No browser would open a page with the evidence of a thousand runs.
const fullEvidence = 3

// LedgerDocument arranges a ledger: claims by combination of system, machine
// and engine, each cell with its runs.
func LedgerDocument(l *analysis.Ledger) Document {
	g := &Grid{Caption: "claim", Columns: Map(l.Columns, func(c analysis.LedgerColumn) string {
		return Plain(c.Name(), 200)
	})}
	for _, row := range l.Rows {
		g.Rows = append(g.Rows, GridRow{Plain(row.Says, 300), claimant(row.By) + ", plan " + Plain(row.Plan, 60),
			Map(row.Cells, func(c analysis.LedgerCell) GridCell { return ledgerCell(l, c) })})
	}
	plans := Map(l.Variants, func(v analysis.LedgerVariant) string {
		return wording.Text("ledger-plan", v.Mark, Plain(v.Plan, 80), Plain(v.Digest, 80), v.Seed,
			Count(v.Rounds, "round"), strings.Join(plainList(v.Scale, 200), "; "))
	})
	sections := []Section{{ID: "answer", Heading: "Result", Items: Items(plainList(l.Answers, 1200)...)},
		{ID: "claims", Heading: "Claims", Grid: g, After: []string{wording.Text("ledger-legend")}},
		{ID: "plans", Heading: "Plans as executed", Items: Items(plans...)},
		{ID: "left-out", Heading: "Not in this ledger", Items: Items(plainList(l.LeftOut, sentenceLength)...)}}
	return Document{Kicker: "Ledger", Title: "Is it still true?",
		Lead: []string{wording.Text("ledger-lead", Count(len(l.Rows), "claim"), Count(len(l.Columns), "combination"))},
		Sections: Where(sections, func(s Section) bool {
			return s.ID == "answer" || len(s.Items) > 0 || s.Grid != nil && len(l.Rows) > 0
		})}
}

// ledgerCell is the verdict of a cell, the runs that it is from, and their
// evidence.
//
// The analysis marks the entries that count: of one plan as executed, unscaled ones if there are any.
func ledgerCell(l *analysis.Ledger, c analysis.LedgerCell) GridCell {
	if c.Verdict == "" {
		return GridCell{}
	}
	counted := map[string]int{} // runs by verdict
	runs := 0
	for _, e := range c.Entries {
		if e.Counts {
			counted[e.Claim.Verdict]++
			runs++
		}
	}
	note := Phrase("ledger-note", map[string]any{"Cell": c, "Runs": runs,
		"Hold": counted[result.Holds], "Fail": counted[result.DoesNotHold], "Plans": len(l.Variants)})
	out := GridCell{Note: note}
	out.Class, out.Word = verdictOf(c.Verdict)
	// The newest come first: those with their evidence, and then those that are
	// only named.
	newest := slices.Clone(c.Entries)
	slices.SortStableFunc(newest, func(a, b analysis.LedgerEntry) int { return b.Started.Compare(a.Started) })
	shown := map[string]int{} // number of entries by title
	var rest []GridEntry
	for _, e := range newest {
		_, word := verdictOf(e.Claim.Verdict)
		title := fmt.Sprintf("(%s): %s", e.Mark, word) + TextIf(!e.Counts, ", not counted")
		if shown[title]++; shown[title] <= fullEvidence {
			claim := newClaimView(e.Claim)
			out.Entries = append(out.Entries, GridEntry{Title: "run " + Plain(e.Run, 80) + " " + title,
				Link: linkTo(e.Path), Lines: append(claim.reasons(), claim.Evidence...)})
			continue
		}
		i := slices.IndexFunc(rest, func(d GridEntry) bool { return d.Title == title })
		if i < 0 {
			i, rest = len(rest), append(rest, GridEntry{Title: title})
		}
		rest[i].More = append(rest[i].More, Link{Name: Plain(e.Run, 80), Link: linkTo(e.Path)})
	}
	for i, d := range rest {
		rest[i].Title = wording.Text("ledger-earlier", Count(len(d.More), "earlier run"), d.Title)
	}
	out.Entries = append(out.Entries, rest...)
	return out
}

// linkTo is the address of a file below the page, safe for names of folders
// that a browser would take for more than a path.
func linkTo(path string) string { return (&url.URL{Path: path}).String() }

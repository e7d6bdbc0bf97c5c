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

// fullEvidence is the number of runs of a cell with the same verdict, the
// newest, that are shown with their evidence; that of the others is in their
// reports. No browser would open a page with the evidence of a thousand runs.
const fullEvidence = 3

// LedgerDocument arranges a ledger: claims by combination of system, machine
// and engine.
func LedgerDocument(l *analysis.Ledger) Document {
	d := Document{Kicker: "Ledger", Title: "Is it still true?",
		Lead: []string{wording.Text("ledger-lead", Count(len(l.Rows), "claim"), Count(len(l.Columns), "combination"))},
		Sections: []Section{
			{ID: "answer", Heading: "Result", Items: Items(plainList(l.Answers, 1200)...)},
			{ID: "claims", Heading: "Claims", Grid: ledgerGrid(l), After: []string{wording.Text("ledger-legend")}},
		}}
	if len(l.Rows) == 0 {
		d.Sections = d.Sections[:1]
	}
	var plans []string
	for _, v := range l.Variants {
		plans = append(plans, wording.Text("ledger-plan", v.Mark, Plain(v.Plan, 80), Plain(v.Digest, 80), v.Seed,
			Count(v.Rounds, "round"), strings.Join(plainList(v.Scale, 200), "; ")))
	}
	for _, s := range []Section{
		{ID: "plans", Heading: "Plans as executed", Items: Items(plans...)},
		{ID: "left-out", Heading: "Not in this ledger", Items: Items(plainList(l.LeftOut, sentenceLength)...)},
	} {
		if len(s.Items) > 0 {
			d.Sections = append(d.Sections, s)
		}
	}
	return d
}

// ledgerGrid has a row for each claim and a column for each combination, each
// cell with its runs.
func ledgerGrid(l *analysis.Ledger) *Grid {
	g := &Grid{Caption: "claim"}
	for _, c := range l.Columns {
		g.Columns = append(g.Columns, Plain(c.Name(), 200))
	}
	for _, row := range l.Rows {
		r := GridRow{Name: Plain(row.Says, 300), Note: claimant(row.By) + ", plan " + Plain(row.Plan, 60)}
		for _, c := range row.Cells {
			r.Cells = append(r.Cells, ledgerCell(l, c))
		}
		g.Rows = append(g.Rows, r)
	}
	return g
}

// ledgerCell is the verdict of a cell, the runs that it is from, and their
// evidence.
//
// Scaled runs never outvote unscaled ones: the analysis marks the entries that count.
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
	note := Phrase("ledger-note", map[string]any{"Cell": c, "Runs": runs, "Agreeing": counted[c.Verdict],
		"Hold": counted[result.Holds], "Fail": counted[result.DoesNotHold], "Plans": len(l.Variants)})
	out := GridCell{Note: note, Entries: ledgerEvidence(c.Entries)}
	out.Class, out.Word = verdictOf(c.Verdict)
	return out
}

// ledgerEvidence are the entries of a cell, the newest first: those with their
// evidence, and then those that are only named.
func ledgerEvidence(list []analysis.LedgerEntry) []GridEntry {
	newest := slices.Clone(list)
	slices.SortStableFunc(newest, func(a, b analysis.LedgerEntry) int { return b.Started.Compare(a.Started) })
	shown := map[string]int{} // number of entries by title
	var out, rest []GridEntry
	for _, e := range newest {
		_, word := verdictOf(e.Claim.Verdict)
		title := fmt.Sprintf("(%s): %s", e.Mark, word) + TextIf(!e.Counts, ", at another scale: not counted")
		if shown[title]++; shown[title] <= fullEvidence {
			claim := newClaimView(e.Claim)
			out = append(out, GridEntry{Title: "run " + Plain(e.Run, 80) + " " + title, Link: linkTo(e.Path),
				Lines: append(claim.reasons(), claim.Evidence...)})
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
	return append(out, rest...)
}

// linkTo is the address of a file below the page, safe for names of folders
// that a browser would take for more than a path.
func linkTo(path string) string { return (&url.URL{Path: path}).String() }

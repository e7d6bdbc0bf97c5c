package report

import (
	"fmt"
	"net/url"
	"slices"
	"strings"

	"dmgbench/internal/analysis"
	"dmgbench/internal/result"
)

// LedgerDocument arranges a ledger.
func LedgerDocument(l *analysis.Ledger) Document {
	d := Document{Kicker: "Ledger", Title: "Is it still true?",
		Lead: []string{fmt.Sprintf("%s on %s of system, machine and engine.", Count(len(l.Rows), "claim"), Count(len(l.Columns), "combination"))}}
	d.Sections = append(d.Sections, Section{ID: "answer", Heading: "Result", Items: Items(plainList(l.Answers, 1200)...)})
	if len(l.Rows) > 0 {
		d.Sections = append(d.Sections, Section{ID: "claims", Heading: "Claims", Grid: ledgerGrid(l), After: []string{
			"A verdict is the one that the runs of a cell agree in; where they contradict each other it cannot be told. " +
				"Letters say which plan as executed was run. Where scaled and unscaled runs share a cell, the unscaled ones decide; “scaled” says that there are none."}})
	}
	variants := Section{ID: "plans", Heading: "Plans as executed"}
	for _, v := range l.Variants {
		variants.Items = append(variants.Items, Item{Text: fmt.Sprintf("%s: %s, SHA-256 %.12s, seed %d, %s, %s", v.Mark, Plain(v.Plan, 80), Plain(v.Digest, 80), v.Seed,
			Count(v.Rounds, "round"), strings.Join(plainList(v.Scale, 200), "; "))})
	}
	if len(variants.Items) > 0 {
		d.Sections = append(d.Sections, variants)
	}
	if len(l.LeftOut) > 0 {
		d.Sections = append(d.Sections, Section{ID: "left-out", Heading: "Not in this ledger", Items: Items(plainList(l.LeftOut, 400)...)})
	}
	return d
}

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

// fullEvidence is of how many runs of a cell that say the same the evidence is shown,
// the newest; of the others their reports have it. A page of a thousand runs would
// else be one that no browser opens.
const fullEvidence = 3

// ledgerEvidence are the entries of a cell: whole ones, and those that are named behind them.
func ledgerEvidence(list []analysis.LedgerEntry) (out []GridEntry) {
	newest := slices.Clone(list)
	slices.SortStableFunc(newest, func(a, b analysis.LedgerEntry) int { return b.Started.Compare(a.Started) })
	whole := map[string]int{} // by what they say
	var rest []GridEntry
	for _, e := range newest {
		_, word := verdictOf(e.Claim.Verdict)
		title := fmt.Sprintf("(%s): %s", e.Mark, word)
		if !e.Counts {
			title += ", at another scale: not counted"
		}
		if whole[title]++; whole[title] <= fullEvidence {
			out = append(out, GridEntry{Title: "run " + Plain(e.Run, 80) + " " + title, Link: linkTo(e.Path), Lines: claimLines(e.Claim)})
			continue
		}
		i := slices.IndexFunc(rest, func(d GridEntry) bool { return d.Title == title })
		if i < 0 {
			i, rest = len(rest), append(rest, GridEntry{Title: title})
		}
		rest[i].More = append(rest[i].More, Link{Name: Plain(e.Run, 80), Link: linkTo(e.Path)})
	}
	for i, d := range rest {
		rest[i].Title = Count(len(d.More), "earlier run") + " " + d.Title + "; their reports have the evidence"
	}
	return append(out, rest...)
}

// linkTo is the address of a file below the page: folders may have names that a browser would take for more than a path.
func linkTo(path string) string { return (&url.URL{Path: path}).String() }

// claimLines are why a claim was judged so.
func claimLines(k result.Claim) []string {
	lines := NonEmpty([]string{Plain(k.Reason, 800)})
	if k.Robustness != nil {
		lines = append(lines, NonEmpty([]string{Plain(k.Robustness.Text, 400)})...)
	}
	if k.Here != "" {
		lines = append(lines, "Here: "+Plain(k.Here, 800))
	}
	for _, line := range k.Evidence {
		lines = append(lines, Plain(line, 600))
	}
	return lines
}

func ledgerCell(l *analysis.Ledger, c analysis.LedgerCell) GridCell {
	if c.Verdict == "" {
		return GridCell{}
	}
	var out GridCell
	out.Class, out.Word = verdictOf(c.Verdict)
	counted := map[string]int{}
	runs := 0
	for _, e := range c.Entries {
		if e.Counts {
			counted[e.Claim.Verdict]++
			runs++
		}
	}
	out.Entries = ledgerEvidence(c.Entries)
	notes := []string{Count(runs, "run")}
	if len(counted) > 1 {
		notes[0] = fmt.Sprintf("%d of %d runs", counted[c.Verdict], runs)
		if h, n := counted[result.Holds], counted[result.DoesNotHold]; h > 0 && n > 0 {
			notes[0] = fmt.Sprintf("runs contradict each other: holds in %d, does not in %d", h, n)
		}
	}
	if c.Scaled {
		notes = append(notes, "scaled")
	}
	if n := len(c.Entries) - runs; n > 0 {
		notes = append(notes, fmt.Sprintf("%d at another scale", n))
	}
	if len(l.Variants) > 1 {
		notes = append(notes, strings.Join(c.Marks, " "))
	}
	if c.Changed != "" {
		notes = append(notes, "turned round since "+Plain(c.Changed, 80))
	}
	out.Note = strings.Join(notes, "; ")
	return out
}

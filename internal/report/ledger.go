package report

import (
	"fmt"
	"io"
	"strings"

	"dmgbench/internal/analysis"
	"dmgbench/internal/result"
)

// LedgerText writes a ledger for a terminal.
func LedgerText(w io.Writer, l *analysis.Ledger, o TextOptions) error { return ledgerDoc(l).text(w, o) }

// LedgerMarkdown writes a ledger for a repository or an issue.
func LedgerMarkdown(w io.Writer, l *analysis.Ledger) error { return ledgerDoc(l).markdown(w) }

// LedgerHTML writes a ledger as one self-contained page, each cell of which opens
// its evidence. Links to the reports of runs are relative to the page.
func LedgerHTML(w io.Writer, l *analysis.Ledger) error { return ledgerDoc(l).html(w) }

func ledgerDoc(l *analysis.Ledger) doc {
	d := doc{Kicker: "Ledger", Title: "Is it still true?",
		Lead: []string{fmt.Sprintf("%s on %s of system and machine.", count(len(l.Rows), "claim"), count(len(l.Columns), "combination"))}}
	d.Sections = append(d.Sections, docSection{ID: "answer", Heading: "What can be said", Items: cleaned(l.Answers, 1200)})
	if len(l.Rows) > 0 {
		d.Sections = append(d.Sections, docSection{ID: "claims", Heading: "Claims", Grid: ledgerGrid(l), After: []string{
			"A verdict is the one that the runs of a cell agree in; where they contradict each other it cannot be told. " +
				"Letters say which plan as executed was run. Where scaled and unscaled runs share a cell, the unscaled ones decide."}})
	}
	variants := docSection{ID: "plans", Heading: "Plans as executed"}
	for _, v := range l.Variants {
		variants.Items = append(variants.Items, fmt.Sprintf("%s: %s, SHA-256 %.12s, seed %d, %s, %s", v.Mark, plain(v.Plan, 80), plain(v.Digest, 80), v.Seed,
			count(v.Rounds, "round"), strings.Join(cleaned(v.Scale, 200), "; ")))
	}
	if len(variants.Items) > 0 {
		d.Sections = append(d.Sections, variants)
	}
	if len(l.LeftOut) > 0 {
		d.Sections = append(d.Sections, docSection{ID: "left-out", Heading: "Not in this ledger", Items: cleaned(l.LeftOut, 400)})
	}
	return d
}

func ledgerGrid(l *analysis.Ledger) *docGrid {
	g := &docGrid{Caption: "claim"}
	for _, c := range l.Columns {
		g.Columns = append(g.Columns, plain(c.Name(), 200))
	}
	for _, row := range l.Rows {
		r := docGridRow{Name: plain(row.Says, 300), Note: claimant(row.By) + ", plan " + plain(row.Plan, 60)}
		for _, c := range row.Cells {
			r.Cells = append(r.Cells, ledgerCell(l, c))
		}
		g.Rows = append(g.Rows, r)
	}
	return g
}

func ledgerCell(l *analysis.Ledger, c analysis.LedgerCell) docCell {
	if c.Verdict == "" {
		return docCell{}
	}
	out := docCell{Class: c.Verdict, Word: firstOf(verdictWords[c.Verdict], plain(c.Verdict, 40))}
	counted := map[string]int{}
	runs := 0
	for _, e := range c.Entries {
		title := fmt.Sprintf("run %s (%s): %s", plain(e.Run, 80), e.Mark, firstOf(verdictWords[e.Claim.Verdict], plain(e.Claim.Verdict, 40)))
		if e.Counts {
			counted[e.Claim.Verdict]++
			runs++
		} else {
			title += ", at another scale: not counted"
		}
		entry := docEntry{Title: title, Link: e.Path, Lines: nonEmpty([]string{plain(e.Claim.Reason, 800)})}
		if e.Claim.Robustness != nil {
			entry.Lines = append(entry.Lines, nonEmpty([]string{plain(e.Claim.Robustness.Text, 400)})...)
		}
		if e.Claim.Here != "" {
			entry.Lines = append(entry.Lines, "Here: "+plain(e.Claim.Here, 800))
		}
		out.Entries = append(out.Entries, entry)
		for _, line := range e.Claim.Evidence {
			out.Entries[len(out.Entries)-1].Lines = append(out.Entries[len(out.Entries)-1].Lines, plain(line, 600))
		}
	}
	notes := []string{count(runs, "run")}
	if len(counted) > 1 {
		notes[0] = fmt.Sprintf("%d of %d runs", counted[c.Verdict], runs)
		if h, n := counted[result.Holds], counted[result.DoesNotHold]; h > 0 && n > 0 {
			notes[0] = fmt.Sprintf("runs contradict each other: holds in %d, does not in %d", h, n)
		}
	}
	if n := len(c.Entries) - runs; n > 0 {
		notes = append(notes, fmt.Sprintf("%d at another scale", n))
	}
	if len(l.Variants) > 1 {
		notes = append(notes, strings.Join(c.Marks, " "))
	}
	if c.Changed != "" {
		notes = append(notes, "turned round since "+plain(c.Changed, 80))
	}
	out.Note = strings.Join(notes, "; ")
	return out
}

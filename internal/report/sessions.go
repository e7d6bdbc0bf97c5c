package report

import (
	"fmt"
	"slices"

	"dmgbench/internal/result"
)

// sessionTable shows the rates of each run of a pooled result, and the ratio of the largest to the smallest. It has no
// rows where the result is of one run.
func (v *View) sessionTable() Table {
	t := Table{ID: "sessions", Caption: "Run by run", Columns: Columns("<case", "<figure"),
		Notes: []Note{{Text: "Each run alone, as in its own report."}}}
	for i, run := range v.Result.Runs {
		t.Columns = append(t.Columns, Column{Title: fmt.Sprintf("run %d: %s", i+1, Plain(run.Run, 40))})
	}
	t.Columns = append(t.Columns, Column{Title: "largest ÷ smallest"})
	for i := range v.Result.Summaries {
		s := &v.Result.Summaries[i]
		h := Headline(s)
		if len(v.Result.Runs) == 0 || h == nil || h.Unit != "B/s" || len(s.BySession) == 0 {
			continue
		}
		row := []Cell{{Text: v.CaseName(s.Case), Class: "head"},
			{Text: joinFacts(QuantityName(s.Op), PhaseName(s.Phase, s.Cycle))}}
		var values []float64
		for _, run := range v.Result.Runs {
			at := slices.IndexFunc(s.BySession, func(x result.SessionValue) bool { return x.Run == run.Run })
			if at < 0 || !IsFinite(s.BySession[at].Value) {
				row = append(row, Cell{Text: "none", Class: "muted"})
				continue
			}
			values = append(values, s.BySession[at].Value)
			row = append(row, Cell{Text: Human(s.BySession[at].Value, h.Unit)})
		}
		var spread Cell
		if len(values) > 1 && slices.Min(values) > 0 {
			spread.Text = Ratio(slices.Max(values) / slices.Min(values))
		}
		t.Rows = append(t.Rows, append(row, spread))
	}
	return t
}

package report

import (
	"slices"

	"dmgbench/internal/result"
)

// sessionTable keeps the runs of a pooled result apart: the rates of each by itself,
// and how far the largest lies from the smallest.
func (v *View) sessionTable() Table {
	t := Table{ID: "sessions", Caption: "Run by run"}
	if len(v.Result.Runs) == 0 {
		return t
	}
	t.Columns = Columns("<case", "<figure")
	for i, run := range v.Result.Runs {
		t.Columns = append(t.Columns, Column{Title: "run " + Human(float64(i+1), "1") + ": " + Plain(run.Run, 40)})
	}
	t.Columns = append(t.Columns, Column{Title: "largest ÷ smallest"})
	for i := range v.Result.Summaries {
		s := &v.Result.Summaries[i]
		h := Headline(s)
		if h == nil || h.Unit != "B/s" || len(s.BySession) == 0 {
			continue
		}
		row := []Cell{{Text: v.CaseName(s.Case), Class: "head"}, {Text: QuantityName(s.Op) + TextIf(s.Phase+PhaseName("", s.Cycle) != "", ", "+PhaseName(s.Phase, s.Cycle))}}
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
		apart := Cell{}
		if len(values) > 1 && slices.Min(values) > 0 {
			apart.Text = Ratio(slices.Max(values) / slices.Min(values))
		}
		t.Rows = append(t.Rows, append(row, apart))
	}
	t.Notes = []Note{{0, "Each run by itself, as its own report has it."}}
	return t
}

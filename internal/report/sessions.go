package report

import (
	"slices"

	"dmgbench/internal/result"
)

// sessionTable keeps the runs of a pooled result apart: the rates of each by itself,
// and how far the largest lies from the smallest.
func (v *view) sessionTable() table {
	t := table{ID: "sessions", Caption: "Run by run"}
	if len(v.result.Runs) == 0 {
		return t
	}
	t.Columns = []column{{"", "case", true}, {"", "figure", true}}
	for i, run := range v.result.Runs {
		t.Columns = append(t.Columns, column{"", "run " + human(float64(i+1), "1") + ": " + plain(run.Run, 40), false})
	}
	t.Columns = append(t.Columns, column{"", "largest ÷ smallest", false})
	for i := range v.result.Summaries {
		s := &v.result.Summaries[i]
		h := headline(s)
		if h == nil || h.Unit != "B/s" || len(s.BySession) == 0 {
			continue
		}
		row := []cell{{Text: v.name(s.Case), Class: "head"}, {Text: words(s.Op) + zero(s.Phase+cycled("", s.Cycle) != "", ", "+cycled(s.Phase, s.Cycle))}}
		var values []float64
		for _, run := range v.result.Runs {
			at := slices.IndexFunc(s.BySession, func(x result.SessionValue) bool { return x.Run == run.Run })
			if at < 0 || !finite(s.BySession[at].Value) {
				row = append(row, cell{Text: "none", Class: "muted"})
				continue
			}
			values = append(values, s.BySession[at].Value)
			row = append(row, cell{Text: human(s.BySession[at].Value, h.Unit)})
		}
		apart := cell{}
		if len(values) > 1 && slices.Min(values) > 0 {
			apart.Text = ratio(slices.Max(values) / slices.Min(values))
		}
		t.Rows = append(t.Rows, append(row, apart))
	}
	t.Notes = []note{{0, "Each run by itself, as its own report has it."}}
	return t
}

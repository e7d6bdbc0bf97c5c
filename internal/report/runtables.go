package report

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"dmgbench/internal/report/wording"
	"dmgbench/internal/result"
)

// sessionTable shows the rates of each run of a pooled result, and the ratio of
// the largest to the smallest. It has no rows where the result is of one run.
func (v *View) sessionTable() Table {
	t := Table{Caption: "Run by run", Columns: Columns("<case", "<figure"),
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

// flushNote is how many flush calls the end of a written file took, as counted
// while files were timed: they are most of the latency of a file. It is "" for
// runs that did not count them.
func (v *View) flushNote() string {
	var measured [][2]string // calls for each file, and the case
	for i := range v.Result.Cases {
		c := &v.Result.Cases[i]
		var files, flushes int64
		for j := range c.Steps {
			if s := &c.Steps[j]; s.Op == "write" && s.Flushes > 0 && IsShown(c, s) {
				files, flushes = files+int64(len(s.Samples)), flushes+s.Flushes
			}
		}
		if files > 0 {
			calls := strconv.FormatFloat(math.Round(10*float64(flushes)/float64(files))/10, 'f', -1, 64)
			measured = append(measured, [2]string{calls, v.CaseName(c.ID)})
		}
	}
	counts, names := groupBy(measured, func(m [2]string) (string, string) { return m[0], m[1] })
	for i, calls := range counts {
		counts[i] = calls + " (" + strings.Join(names[calls], "; ") + ")"
	}
	return TextIf(len(counts) > 0, wording.Text("flushes", strings.Join(counts, ", ")))
}

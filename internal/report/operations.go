package report

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	"dmgbench/internal/report/wording"
	"dmgbench/internal/result"
	"dmgbench/internal/system/units"
)

// latencyOp matches the quantities that are a quantile of latencies.
var latencyOp = regexp.MustCompile(`^(tree|random)_(p50|p95|p99|p999|max)$`)

// quantiles are the columns of latencies, by what their quantities end in. The
// worst is of all rounds; the quantity random_max is a mean of rounds.
var quantiles = []string{"p50", "p95", "p99", "p999"}

// ownShare of a median latency is what the program may add to it without a mark.
const ownShare = 0.1

// operationsOf are the operations of one kind in all rounds of a row.
type operationsOf struct {
	kind          string
	n, worst, own int64 // the last two in ns
}

// operations gathers what steps recorded of their operations, in the order of
// cases and protocol.
func (v *View) operations() (keys []FigureKey, by map[FigureKey]*operationsOf) {
	by = map[FigureKey]*operationsOf{}
	for c, s := range v.Steps() {
		for _, o := range s.Operations {
			k := FigureKey{c.ID, operationPhase(s.Phase, o.Kind), s.Cycle}
			if !IsShown(c, s) || o.Count == 0 {
				continue
			}
			x := by[k]
			if x == nil {
				x = &operationsOf{kind: o.Kind}
				keys, by[k] = append(keys, k), x
			}
			x.n, x.worst = x.n+o.Count, max(x.worst, o.Latency.Max)
			if s.OperationsSpan != nil {
				x.own = max(x.own, s.OperationsSpan.OwnNS)
			}
		}
	}
	slices.SortStableFunc(keys, func(a, b FigureKey) int { return v.Order[a.CaseID] - v.Order[b.CaseID] })
	return keys, by
}

// operationPhase is the phase of the figures of one kind of operation.
func operationPhase(phase, kind string) string { return strings.TrimSpace(phase + " (" + kind + ")") }

// latencyTable shows how long single operations took, with what the program
// itself adds to each of them.
func (v *View) latencyTable() Table {
	t := Table{Caption: "Latency of operations", Columns: Columns("<case", "<operation", "n", "median",
		"interval", "95 %", "99 %", "99.9 %", "worst", "program")}
	figures := v.FiguresOf(latencyOp.MatchString)
	keys, by := v.operations()
	var notes footnotes
	var kinds []string
	for _, k := range keys[:min(len(keys), maxRows)] {
		x, row := by[k], []Cell{}
		again := countIf(keys, func(o FigureKey) bool { return o.CaseID == k.CaseID && by[o].kind == x.kind }) > 1
		for i, name := range quantiles {
			var cell, interval Cell
			for _, do := range []string{"tree_", "random_"} {
				s := figures.By[k][do+name]
				if s == nil {
					continue
				}
				h := Headline(s)
				if cell.Text = Human(h.Value, h.Unit); i == 0 && h.CI != nil {
					interval.Text = RangeText(Scale{Factor: 1, Mixed: h.Unit}, h.CI, h.Unit)
					kinds = AppendNew(kinds, DescribeInterval(h.CI))
				}
				if i == 0 && float64(x.own) > ownShare*1e9*h.Value {
					cell.Class, cell.Marks = "warn", notes.mark(wording.Text("own-time", Percent(ownShare)))
				}
			}
			if row = append(row, cell); i == 0 {
				row = append(row, interval)
			}
		}
		row = slices.Concat(TextRow(v.CaseName(k.CaseID), Plain(FirstOf(TextIf(again, k.Phase), x.kind), 30),
			Grouped(int(x.n))), row, []Cell{{Text: Human(float64(x.worst)/1e9, "s")},
			{Text: Human(float64(x.own)/1e9, "s"), Class: "muted"}})
		t.Rows = append(t.Rows, row)
	}
	intervals := strings.Join(firstFew(kinds, 3, "kinds"), "; ")
	notes.add(wording.Text("latencies"), TextIf(intervals != "", "Interval: "+intervals+"."))
	if len(keys) > maxRows {
		notes.add(wording.Text("rows-left-out", maxRows, Grouped(len(keys))))
	}
	t.Notes = notes.list()
	t.DropColumns(t.IsEmpty)
	return t
}

// verbTable shows how often steps on containers failed, or had to be tried
// again, of all cases and of those of which some did.
func (v *View) verbTable() Table {
	t := Table{Caption: "Failures and retries",
		Columns: Columns("<step", "<case", "<failed", "<tried again", "<first reason")}
	var kinds []string
	share := func(n, of int, ci *result.CI) string {
		text := fmt.Sprintf("%s of %s", Grouped(n), Grouped(of))
		if ci != nil {
			text += fmt.Sprintf(", %s to %s %%", units.Significant(100*ci.Low, 2), units.Significant(100*ci.High, 2))
			kinds = AppendNew(kinds, DescribeInterval(ci))
		}
		return text
	}
	for _, x := range v.Result.Verbs {
		name := "all"
		if x.Case != "" {
			name = v.CaseName(x.Case)
		}
		t.Rows = append(t.Rows, TextRow(Plain(x.Do, 30), name, share(x.Failed, x.Steps, x.FailedCI),
			share(x.Retried, x.Steps, x.RetriedCI), Plain(x.Reason, 200)))
	}
	if len(kinds) > 0 {
		t.Notes = []Note{{Text: "Interval: " + strings.Join(kinds, "; ") + "."}}
	}
	t.DropColumns(t.IsEmpty)
	return t
}

// repeated are the summaries of whole steps whose operations are of one kind,
// which has the same figure. One with a published value of its own is not.
func (v *View) repeated() map[*result.Summary]bool {
	type row struct {
		key FigureKey
		op  string
	}
	kinds := map[row][]*result.Summary{}
	all := v.Result.Summaries
	for i := range all {
		if s := &all[i]; s.Operation != "" {
			phase := strings.TrimSpace(strings.TrimSuffix(s.Phase, "("+s.Operation+")"))
			k := row{FigureKey{s.Case, phase, s.Cycle}, s.Op}
			kinds[k] = append(kinds[k], s)
		}
	}
	out := map[*result.Summary]bool{}
	for i := range all {
		s := &all[i]
		if k := kinds[row{FigureKey{s.Case, s.Phase, s.Cycle}, s.Op}]; s.Operation == "" && len(k) == 1 {
			out[s] = len(s.Published) <= len(k[0].Published)
		}
	}
	return out
}

package analysis

import (
	"fmt"
	"slices"
	"strings"
	"sync"

	"dmgbench/internal/plan"
	"dmgbench/internal/result"
)

// changes sets every version against the one before, the newest first as long as there is room.
func (h *historyMaker) changes(s *HistorySeries, list []HistoryRun) {
	for to := 1; to < len(s.Versions); to++ {
		s.Changes = append(s.Changes, HistoryChange{From: to - 1, To: to})
	}
	ops := s.compared()
	for i := range slices.Backward(s.Changes) {
		c := &s.Changes[i]
		from, to := s.ended(c.From), s.ended(c.To)
		c.Ended = [2]int{len(from), len(to)}
		from, to = from[max(len(from)-changeRuns, 0):], to[:min(len(to), changeRuns)]
		c.Used = [2]int{len(from), len(to)}
		switch {
		case len(ops) == 0:
			c.Why = "no number was measured"
		case len(from) == 0 || len(to) == 0:
			c.Why = "no run of one of the two has ended"
		case len(s.Changes)-i > changesMost || len(from)+len(to) > h.reads:
			c.Why = "too many changes for one page: set the runs against each other with compare"
		default:
			h.reads -= len(from) + len(to)
			c.Comparison, c.Why = h.compare(s, list, from, to, ops)
		}
		if c.Comparison == nil {
			c.Used = [2]int{}
		}
	}
}

// ended are the runs of a version that have ended.
func (s *HistorySeries) ended(version int) (out []int) {
	for i, p := range s.Runs {
		if p.Version == version && p.Status != result.Unfinished {
			out = append(out, i)
		}
	}
	return out
}

// compared are the quantities that versions are compared in: rates and the space on disk, or whatever there is.
func (s *HistorySeries) compared() (ops []plan.Quantity) {
	var all []plan.Quantity
	for _, row := range s.Rows {
		op := plan.Quantity(row.Op)
		if _, known := op.Info(); !known || slices.Contains(all, op) {
			continue
		}
		if all = append(all, op); rate(op) || op == "allocated" {
			ops = append(ops, op)
		}
	}
	if len(ops) == 0 {
		return all
	}
	return ops
}

// compare reads the runs and compares them by version.
func (h *historyMaker) compare(s *HistorySeries, list []HistoryRun, from, to []int, ops []plan.Quantity) (*Comparison, string) {
	used := slices.Concat(from, to)
	o := CompareOptions{Ops: ops}
	for _, i := range used {
		o.Sides = append(o.Sides, s.VersionName(s.Runs[i].Version, s.Runs[from[0]].Version, s.Runs[to[0]].Version))
	}
	runs, errs := make([]*result.Result, len(used)), make([]error, len(used))
	var wg sync.WaitGroup
	for half := range 2 { // large files, and two processors are nearly everywhere
		wg.Go(func() {
			for k := half; k < len(used); k += 2 {
				runs[k], errs[k] = h.read(list[used[k]])
			}
		})
	}
	wg.Wait()
	for k, err := range errs {
		if err != nil {
			return nil, fmt.Sprintf("reading run %s: %v", list[used[k]].name(), err)
		}
	}
	c, err := Compare(runs, o)
	if err != nil {
		return nil, err.Error()
	}
	return c, ""
}

// VersionName says a version in those of its parts in which the given versions differ; all of it, if they do not.
func (s *HistorySeries) VersionName(version int, among ...int) string {
	v := s.Versions[version]
	differ := func(of func(HistoryVersion) string) bool {
		return slices.ContainsFunc(among, func(i int) bool { return of(s.Versions[i]) != of(v) })
	}
	system := func(v HistoryVersion) string { return v.System }
	kernel := func(v HistoryVersion) string {
		if v.Kernel == "" {
			return ""
		}
		return "kernel " + v.Kernel
	}
	parts := []string{}
	for _, of := range []func(HistoryVersion) string{system, kernel, func(v HistoryVersion) string { return v.Tool }, func(v HistoryVersion) string { return v.Engine }} {
		text := of(v)
		if text == v.Engine && differ(system) && strings.Contains(text, "(Apple") {
			continue // Apple's tools come with the system
		}
		if differ(of) {
			parts = with(parts, text)
		}
	}
	if len(parts) == 0 {
		parts = with(with(with(with(parts, v.System), kernel(v)), v.Tool), v.Engine)
	}
	return strings.Join(parts, ", ")
}

package analysis

import (
	"math"
	"slices"
	"strings"
	"time"

	"dmgbench/internal/plan"
	"dmgbench/internal/result"
)

// beside sets the published figures of a cell beside what was measured. A figure
// of one file size gets an estimate of its own, named "aggregate@2 GB".
func (s *study) beside(c cell, q plan.Quantity, headline string, list []result.Estimate) ([]result.PublishedValue, []result.Estimate) {
	out := []result.PublishedValue{}
	for _, p := range s.p.Published {
		if p.Quantity != q || p.Unmeasured || !c.sub.matches(p.Where) || !c.key.matches(p.Where) {
			continue
		}
		name := orElse(p.Statistic, headline)
		e, ok := estimate(list, name)
		if f := filterOf(p.Where); f != nil {
			name += "@" + partText(f)
			if e, ok = estimate(list, name); !ok {
				if e, ok = partEstimate(c, q, orElse(p.Statistic, aggregate), name, f); ok {
					list = append(list, e)
				}
			}
		}
		v := result.PublishedValue{Text: p.Value.Text, Kind: p.Value.Kind, Low: p.Value.Low, High: p.Value.High,
			Unit: p.Value.Unit, Statistic: p.Statistic, On: onText(s.where(p)), Comparable: s.comparable(c.sub.c.ID) && s.takenHere(p.On)}
		if mid := figureSide(p.Value).headline(); ok && mid != 0 && !math.IsInf(mid, 0) {
			v.Ratio, v.Estimate = e.Value/mid, e.Name
		}
		v.Comparable = v.Comparable && ok
		out = append(out, v)
	}
	return out, list
}

func partText(f *sampleFilter) string {
	var parts []string
	if f.size != nil {
		parts = append(parts, strings.Join(f.size.Values, " or "))
	}
	if f.set != nil {
		parts = append(parts, "set "+strings.Join(f.set.Values, " or "))
	}
	return strings.Join(parts, ", ")
}

// partEstimate is the estimate of a part of the files of a cell.
func partEstimate(c cell, q plan.Quantity, est, name string, f *sampleFilter) (result.Estimate, bool) {
	x := gather(q, []cell{c}, est, f)
	if x.weak != "" {
		return result.Estimate{}, false
	}
	e := result.Estimate{Name: name, Value: x.headline(), Unit: x.unit, N: x.n}
	roundInterval(&e, x.values, x.per)
	return e, true
}

// onText is machine, system, tool and day in one line.
func onText(on plan.On) string {
	var parts []string
	for _, t := range []string{on.Machine, on.OS, on.Tool} {
		if t != "" {
			parts = append(parts, t)
		}
	}
	if !on.Date.IsZero() {
		parts = append(parts, on.Date.Format(time.DateOnly))
	}
	return strings.Join(parts, ", ")
}

// incomparable are the departures after which the ratio to a published figure
// compares different things. Fewer rounds only make it less certain, and what the
// source leaves open may well be what it did.
var incomparable = []string{"engine", "filesystem", "scale", "sets", "machine", "os", "codec", "input", "format", "band-size",
	"cache", "sync", "workers", "files", "size", "encryption", "backend", "place"}

func (s *study) comparable(id string) bool {
	for _, d := range slices.Concat(s.departed[""], s.departed[id]) {
		if slices.Contains(incomparable, d.Kind) {
			return false
		}
	}
	return true
}

// takenHere reports whether what a figure says of its origin besides the source's is true of this run: the machine and system of all its
// sessions, and a tool that is the source's own. The source's own origin is among the departures.
func (s *study) takenHere(on plan.On) bool {
	if s.p.Source != nil && !strings.Contains(s.p.Source.On.Tool, on.Tool) {
		return false
	}
	return !slices.ContainsFunc(s.r.Sessions, func(ss result.Session) bool {
		h := ss.Host
		return on.Machine != "" && !sameChip(on.Machine, h.CPU+" "+h.Model) || on.OS != "" && !sameSystem(on.OS, h)
	})
}

// ofAnotherMachine says why a published rate or time is not held against a measured one: the source took it on its own machine, which
// is not the one that was measured, so that the difference may be the machines'. One that it took on a machine besides its own
// is meant across machines, and sizes are.
func (s *study) ofAnotherMachine(op plan.Operand) string {
	if unit := op.Quantity.Unit(); s.p.Source == nil || unit != "B/s" && unit != "s" {
		return ""
	}
	figures, _ := s.figures(op)
	own := func(p plan.Published) bool { return s.where(p).Machine == s.p.Source.On.Machine }
	i := slices.IndexFunc(s.departed[""], func(d result.Departure) bool { return d.Kind == "machine" })
	if i < 0 || !slices.ContainsFunc(figures, own) {
		return ""
	}
	return "the published figure is of another machine: " + s.departed[""][i].Text
}

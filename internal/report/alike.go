package report

import (
	"slices"
	"strings"

	"dmgbench/internal/result"
)

// sameForAll is what holds for every figure of a table, and is said once: a mark at
// each of them would tell nothing.
type sameForAll struct {
	warnings     []string // texts
	uncomparable bool
}

// alike finds it for the figures of some quantities.
func alike(f figures, ops []string) sameForAll {
	var out sameForAll
	first, comparable, not := true, 0, 0
	for _, k := range f.keys {
		for _, op := range ops {
			s := f.by[k][op]
			if s == nil {
				continue
			}
			if first {
				for _, w := range s.Warnings {
					out.warnings = appendNew(out.warnings, w.Text)
				}
			}
			first = false
			out.warnings = slices.DeleteFunc(out.warnings, func(text string) bool { return !warns(s, text) })
			for _, p := range s.Published {
				if p.Comparable {
					comparable++
				} else {
					not++
				}
			}
		}
	}
	out.uncomparable = not > 0 && comparable == 0
	return out
}

func warns(s *result.Summary, text string) bool {
	return slices.ContainsFunc(s.Warnings, func(w result.Warning) bool { return w.Text == text })
}

// weakenedBeyond reports whether a figure has a warning that not all others share.
func (a sameForAll) weakenedBeyond(s *result.Summary) bool {
	return slices.ContainsFunc(s.Warnings, func(w result.Warning) bool { return !slices.Contains(a.warnings, w.Text) })
}

func (a sameForAll) notes() []string {
	return nonEmpty([]string{zero(a.uncomparable, "Published elsewhere: not comparable, the departures say why."), a.weakened()})
}

// weakened names what all figures share.
func (a sameForAll) weakened() string {
	return zero(len(a.warnings) > 0, "Weakens every figure here: "+plain(strings.Join(a.warnings, "; "), 400)+".")
}

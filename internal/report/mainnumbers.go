package report

import (
	"slices"
	"strings"

	"dmgbench/internal/result"
)

// mainNumbers is the table of the first screen, nil without figures: a row for
// each case, and the one or two quantities that the source published most
// about, or else the first two, in the first phase with a published value.
func (v *View) mainNumbers() *Table {
	f, key := v.MainFigures()
	part, left := f.Rows(key)
	if len(part.Ops) == 0 {
		return nil
	}
	caption := "Measured"
	switch {
	case part.sharedNotes().allUncomparable():
		caption = "Measured here, and published elsewhere"
	case part.hasPublished():
		caption = "Measured and published"
	}
	t := v.figureTable(caption+PhaseSuffix(PhaseName(key.Phase, key.Cycle)), part, true)
	var further []string
	if n := len(f.Phases(part.Ops)) - 1; n > 0 {
		further = append(further, Count(n, "other phase"))
	}
	if left > 0 {
		further = append(further, Count(left, "other case"))
	}
	if len(further) > 0 {
		t.Notes = append([]Note{{Text: "Further below: " + strings.Join(further, " and ") + "."}}, t.Notes...)
	}
	return &t
}

// Rows are those of a phase that the first screen has room for, and how many it
// has not.
func (f Figures) Rows(key FigureKey) (part Figures, left int) {
	part.By = f.By
	for _, k := range f.Keys {
		measured := slices.ContainsFunc(f.Ops, func(op string) bool { return f.By[k][op] != nil })
		if measured && k.Phase == key.Phase && k.Cycle == key.Cycle {
			part.Keys = append(part.Keys, k)
		}
	}
	for _, op := range f.Ops { // some are measured in other phases only
		if part.Any(op, func(*result.Summary) bool { return true }) {
			part.Ops = append(part.Ops, op)
		}
	}
	left = max(len(part.Keys)-mainRows, 0)
	part.Keys = part.Keys[:len(part.Keys)-left]
	return part, left
}

// MainFigures picks the section, up to two quantities and the phase of the
// first screen. The section is that of speeds unless far more values of another
// one are published.
//
// Articles about space publish many sizes and few speeds; there the sizes come
// first.
func (v *View) MainFigures() (Figures, FigureKey) {
	var f Figures
	most := -1
	for i, s := range v.Sections {
		n := 0
		for _, op := range s.Figures.Ops {
			n += s.Figures.publishedCount(op)
		}
		if len(s.Figures.Keys) > 0 && n > most && (i == 0 || n > 2*most) {
			most, f = n, s.Figures
		}
	}
	if most < 0 {
		return Figures{}, FigureKey{}
	}
	f.Ops = slices.Clone(f.Ops)
	slices.SortStableFunc(f.Ops, func(a, b string) int {
		return min(f.publishedCount(b), 1) - min(f.publishedCount(a), 1)
	})
	f.Ops = f.Ops[:min(len(f.Ops), 2)]
	published := func(k FigureKey) bool {
		return slices.ContainsFunc(f.Ops, func(op string) bool {
			return f.By[k][op] != nil && len(f.By[k][op].Published) > 0
		})
	}
	at := slices.IndexFunc(f.Keys, published)
	if at < 0 {
		at = slices.IndexFunc(f.Keys, func(k FigureKey) bool { return f.By[k][f.Ops[0]] != nil })
	}
	return f, f.Keys[max(at, 0)]
}

// Phases are the phases in which any of the quantities was measured, in order.
func (f Figures) Phases(ops []string) []FigureKey {
	var out []FigureKey
	for _, k := range f.Keys {
		if slices.ContainsFunc(ops, func(op string) bool { return f.By[k][op] != nil }) {
			out = AppendNew(out, FigureKey{Phase: k.Phase, Cycle: k.Cycle})
		}
	}
	return out
}

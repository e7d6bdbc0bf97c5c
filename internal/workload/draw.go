package workload

import (
	"dmgbench/internal/plan"
	"dmgbench/internal/units"
)

// draw gives the sizes of each set in listed order.
func draw(set plan.FileSet, seed uint64) [][]units.Bytes {
	if d, ok := any(set).(interface {
		Draw(seed uint64) [][]units.Bytes
	}); ok {
		return d.Draw(seed)
	}
	var sets [][]units.Bytes
	for _, p := range set.Parts {
		for s := range p.Sets {
			if s == len(sets) {
				sets = append(sets, nil)
			}
			sets[s] = append(sets[s], p.Sizes...)
		}
	}
	return sets
}

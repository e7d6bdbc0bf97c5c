package analysis

import (
	"maps"
	"slices"

	"dmgbench/internal/result"
)

// OverRounds averages one value a round the way the headline figures of r are
// averaged: geometrically for rates and times ("B/s", "s"), as they are for sizes
// and pure numbers; and gives the mean its t interval at the same level and over the
// same unit of replication, the round, or the run where at least three are pooled.
// Without an interval the estimate says why. N is the number of units. It is for
// points of pictures, such as one file size or one part of a time, that have no
// summary of their own; there must be at least one value.
func OverRounds(r *result.Result, unit string, byRound map[int]float64) result.Estimate {
	per := replicated(r)
	groups := map[int][]float64{}
	var all []float64
	for _, round := range slices.Sorted(maps.Keys(byRound)) {
		group := round
		if per.unit == perSession {
			group = slices.IndexFunc(r.Runs, func(p result.PooledRun) bool { return round >= p.First && round <= p.Last })
		}
		groups[group] = append(groups[group], byRound[round])
		all = append(all, byRound[round])
	}
	sc := scaleOf(unit, all)
	var values []float64
	for _, group := range slices.Sorted(maps.Keys(groups)) {
		values = append(values, sc.centre(groups[group]))
	}
	e := result.Estimate{Name: meanRate, Unit: unit, N: len(values), Value: sc.centre(values)}
	sc.over(per).roundInterval(&e, values)
	return e
}

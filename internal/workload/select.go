package workload

import (
	"cmp"
	"math"
	"slices"

	"dmgbench/internal/plan"
)

// LastBatch gives those of the items that belong to the newest batch.
func LastBatch(items []Item) []Item {
	newest := 0
	for _, it := range items {
		newest = max(newest, it.Batch)
	}
	return slices.DeleteFunc(slices.Clone(items), func(it Item) bool { return it.Batch != newest })
}

// Select gives the items that a delete step takes away, in the order of live,
// which is the order in which they were written: all of them, the last N sets,
// the N largest (of equal ones the later), every other file, or a random share
// of round(share × n) files. Sets and largest are those of the last batch;
// the others look at the batch the step names, by default at all.
func Select(live []Item, st plan.Step, key Key) []Item {
	pool := live
	if st.Batch == "last" || st.LastSets > 0 || st.Largest > 0 {
		pool = LastBatch(live)
	}
	switch {
	case st.LastSets > 0:
		return lastSets(pool, st.LastSets)
	case st.Largest > 0:
		return largest(pool, st.Largest)
	case st.Every:
		var picked []Item
		for i := 1; i < len(pool); i += 2 {
			picked = append(picked, pool[i])
		}
		return picked
	case st.Share > 0:
		return randomShare(pool, float64(st.Share), key)
	case st.All:
		return slices.Clone(pool)
	}
	return nil
}

func lastSets(pool []Item, n int) []Item {
	top := 0
	for _, it := range pool {
		top = max(top, it.Set)
	}
	return slices.DeleteFunc(slices.Clone(pool), func(it Item) bool { return it.Set <= top-n })
}

func largest(pool []Item, n int) []Item {
	at := positions(len(pool))
	slices.SortFunc(at, func(a, b int) int {
		return cmp.Or(cmp.Compare(pool[b].Size, pool[a].Size), cmp.Compare(b, a))
	})
	return pick(pool, at[:min(n, len(at))])
}

func randomShare(pool []Item, share float64, key Key) []Item {
	at := positions(len(pool))
	shuffle(at, key.source("delete", 0))
	n := int(math.Round(min(share, 1) * float64(len(pool))))
	return pick(pool, at[:n])
}

func positions(n int) []int {
	at := make([]int, n)
	for i := range at {
		at[i] = i
	}
	return at
}

// pick gives the items at the positions, in the order of the pool.
func pick(pool []Item, at []int) []Item {
	at = slices.Sorted(slices.Values(at))
	picked := make([]Item, len(at))
	for i, p := range at {
		picked[i] = pool[p]
	}
	return picked
}

// Without gives the items that are not among gone.
func Without(items, gone []Item) []Item {
	names := make(map[string]bool, len(gone))
	for _, it := range gone {
		names[it.Name] = true
	}
	return slices.DeleteFunc(slices.Clone(items), func(it Item) bool { return names[it.Name] })
}

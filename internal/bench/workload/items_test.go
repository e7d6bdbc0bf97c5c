package workload

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"dmgbench/internal/plan"
	"dmgbench/internal/system/units"
)

func gold(order string) plan.FileSet {
	var sizes []units.Bytes
	for _, mb := range []units.Bytes{2, 4, 6, 8, 10, 20, 40, 60, 80, 100, 200, 400, 600, 800, 1000, 2000} {
		sizes = append(sizes, mb*1e6)
	}
	return plan.FileSet{Name: "gold", Parts: []plan.FilePart{{Sizes: sizes, Sets: 10}}, Order: order}
}

func names(list []Item) (n []string) {
	for _, it := range list {
		n = append(n, it.Name)
	}
	return n
}

// The gold standard set: 160 files, 53.3 GB, each set of 16 shuffled by itself.
func TestGoldStandardItems(t *testing.T) {
	list := Items(gold(OrderShuffled), Key{Seed: 1, Round: 1, Step: "new", Batch: 1})
	require.Len(t, list, 160)
	assert.Equal(t, int64(53_300_000_000), Total(list))
	orders := map[string]bool{}
	for s := range 10 {
		set := list[s*16 : (s+1)*16]
		assert.Equal(t, int64(5_330_000_000), Total(set))
		var order []byte
		for _, it := range set {
			assert.Equal(t, s+1, it.Set)
			order = append(order, byte(it.Index))
		}
		orders[string(order)] = true
	}
	assert.Len(t, orders, 10, "every set has its own order")
	sorted := slices.Sorted(slices.Values(names(list)))
	assert.Len(t, slices.Compact(sorted), 160, "names differ")
	assert.Contains(t, names(list), "batch001/10-015-2GB.bin")
}

// What the order depends on, and what not: cases of one round pair.
func TestOrderDependsOnItsKeyOnly(t *testing.T) {
	base := Key{Seed: 1, Round: 1, Step: "new", Batch: 1}
	want := names(Items(gold(OrderShuffled), base))
	assert.Equal(t, want, names(Items(gold(OrderShuffled), base)))
	for _, k := range []Key{{2, 1, "new", 1}, {1, 2, "new", 1}, {1, 1, "later", 1}} {
		assert.NotEqual(t, want, names(Items(gold(OrderShuffled), k)), "%+v", k)
	}
	first := Items(plan.FileSet{Parts: []plan.FilePart{{Sizes: []units.Bytes{1, 2, 3, 4, 5, 6, 7, 8}, Sets: 1}}, Order: OrderShuffled}, base)
	// A published order must never change, so it is written down here.
	var order []int
	for _, it := range first {
		order = append(order, it.Index)
	}
	assert.Equal(t, []int{3, 0, 4, 7, 6, 5, 2, 1}, order)
}

func TestReadOrders(t *testing.T) {
	k := Key{Seed: 1, Round: 1, Step: "new", Batch: 1}
	written := append(Items(gold(OrderShuffled), k), Items(gold(OrderShuffled), Key{1, 1, "new", 2})...)
	same := ReadOrder(written, OrderSameAsWritten, k)
	assert.Equal(t, written, same)
	listed := ReadOrder(written, OrderAsListed, k)
	assert.True(t, slices.IsSortedFunc(listed, asListed))
	fresh := ReadOrder(written, OrderShuffled, k)
	assert.NotEqual(t, written, fresh)
	assert.NotEqual(t, listed, fresh)
	for i, it := range fresh {
		assert.Equal(t, listed[i].Set, it.Set)
		assert.Equal(t, listed[i].Batch, it.Batch)
	}
	assert.ElementsMatch(t, written, fresh)
}

func TestAsListedIsAsListed(t *testing.T) {
	list := Items(gold(OrderAsListed), Key{Seed: 1, Batch: 3})
	assert.True(t, slices.IsSortedFunc(list, asListed))
	all := Items(gold(OrderShuffledAll), Key{Seed: 1, Batch: 3})
	assert.ElementsMatch(t, list, all)
	assert.NotEqual(t, 1, all[0].Set*all[1].Set*all[2].Set*all[3].Set, "sets are mixed")
	assert.Equal(t, "batch003/01-000-2MB.bin", list[0].Name)
}

// Every permutation is as likely as any other, within what 12,000 draws show.
func TestShuffleIsFair(t *testing.T) {
	count := map[string]int{}
	for seed := range uint64(12_000) {
		list := []byte("abc")
		shuffle(list, Key{Seed: seed}.source("write", 1))
		count[string(list)]++
	}
	require.Len(t, count, 6)
	for order, n := range count {
		assert.InDelta(t, 2000, n, 200, order) // 5 standard deviations
	}
}

// The published choreography: delete the 40 largest of the batch just written, or
// the last 8 of 10 sets; what remains is what was published.
func TestSelectAsPublished(t *testing.T) {
	k := Key{Seed: 1, Round: 1, Step: "s", Batch: 1}
	live := Items(gold(OrderShuffled), k)
	gone := Select(live, plan.Step{Do: "delete", LastSets: 8}, k)
	rest := Without(live, gone)
	assert.Equal(t, int64(10_660_000_000), Total(rest))
	assert.Equal(t, live[:32], rest)

	live = nil
	for batch := 1; batch <= 5; batch++ {
		k.Batch = batch
		live = append(live, Items(gold(OrderShuffled), k)...)
		if batch == 5 {
			break
		}
		gone := Select(live, plan.Step{Do: "delete", Largest: 40}, k)
		require.Len(t, gone, 40)
		for _, it := range gone {
			assert.Equal(t, batch, it.Batch)
			assert.GreaterOrEqual(t, it.Size, int64(600e6))
		}
		live = Without(live, gone)
		assert.Len(t, live, 120*batch)
	}
	assert.Len(t, live, 640)
	assert.Equal(t, int64(90_500_000_000), Total(live))
	assert.Equal(t, live, Select(live, plan.Step{All: true}, k))
	assert.Equal(t, LastBatch(live), Select(live, plan.Step{All: true, Batch: "last"}, k))
	assert.Nil(t, Select(live, plan.Step{}, k))
}

func TestSelections(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		sizes := rapid.SliceOfN(rapid.Int64Range(1, 5), 0, 40).Draw(t, "sizes")
		live := items(sizes...)
		k := Key{Seed: rapid.Uint64().Draw(t, "seed")}
		share := rapid.Float64Range(0.01, 1).Draw(t, "share")
		some := Select(live, plan.Step{Share: units.Share(share)}, k)
		require.Equal(t, some, Select(live, plan.Step{Share: units.Share(share)}, k))
		require.InDelta(t, share*float64(len(live)), len(some), 0.5)
		require.Len(t, Without(live, some), len(live)-len(some))
		require.True(t, slices.IsSortedFunc(some, asListed), "in the order of writing")
		require.Len(t, Select(live, plan.Step{Every: true}, k), len(live)/2)
		n := rapid.IntRange(1, 50).Draw(t, "n")
		big := Select(live, plan.Step{Largest: n}, k)
		require.Len(t, big, min(n, len(live)))
		for _, it := range Without(live, big) {
			for _, b := range big {
				require.LessOrEqual(t, it.Size, b.Size)
			}
		}
	})
}

// Drawn numbers are the same for the same key and use, and in the range.
func TestDrawDependsOnItsKeyOnly(t *testing.T) {
	drawn := func(k Key, use string) (out []int64) {
		draw := k.Draw(use)
		for n := range int64(50) {
			v := draw(n + 1)
			assert.GreaterOrEqual(t, v, int64(0))
			assert.LessOrEqual(t, v, n)
			out = append(out, v)
		}
		return out
	}
	k := Key{Seed: 1, Round: 1, Step: "hurt", Batch: 1}
	first := drawn(k, "damage")
	assert.Equal(t, first, drawn(k, "damage"))
	assert.NotEqual(t, first, drawn(k, "other"))
	k.Round = 2
	assert.NotEqual(t, first, drawn(k, "damage"))
}

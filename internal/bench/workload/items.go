package workload

import (
	"cmp"
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"math"
	"math/bits"
	"math/rand/v2"
	"path"
	"slices"
	"strings"

	"dmgbench/internal/plan"
)

// Orders in which files are written and read.
const (
	OrderShuffled      = "shuffled"        // within each set; a read shuffles anew
	OrderAsListed      = "as-listed"       // as the plan lists the sizes, set by set
	OrderShuffledAll   = "shuffled-all"    // over all sets of the batch
	OrderSameAsWritten = "same-as-written" // reads only
)

// Key is what the order of files depends on. It does not contain the case: in
// one round every case transfers the same sizes in the same order, so that
// cases can be compared in pairs.
type Key struct {
	Seed  uint64
	Round int    // from 1
	Step  string // name of the step, the same in every case
	Batch int    // number of the batch in the case's round, from 1
}

// Item is one file of a batch.
type Item struct {
	Name  string // on the volume, with its folder
	Size  int64  // bytes
	Batch int    // from 1
	Set   int    // from 1
	Index int    // position in its set as the plan lists it, from 0
	// Made is the name that the data was made for, if the file has another one
	// now, and Version how often it was overwritten: together they give the data.
	Made    string `json:",omitempty"`
	Version int    `json:",omitempty"`
}

// dataKey is that of the data that the file has: a renamed file keeps its data,
// an overwritten one has other data.
func (it Item) dataKey() FileKey {
	name := cmp.Or(it.Made, it.Name)
	if it.Version > 0 {
		name += fmt.Sprintf("\x00%d", it.Version)
	}
	return KeyOf(name)
}

// BatchFolder is the folder of the files of a batch. [Write] makes it before
// its clock starts.
func BatchFolder(batch int) string { return fmt.Sprintf("batch%03d", batch) }

// Items draws the files of one batch in the order in which they are to be
// written. The same set and key give the same items, on any machine.
func Items(set plan.FileSet, key Key) []Item {
	var all []Item
	for s, sizes := range set.Draw(key.Seed) {
		one := make([]Item, len(sizes))
		for i, size := range sizes {
			// The name has set, position and size: "batch001/02-007-200MB.bin".
			name := fmt.Sprintf("%02d-%03d-%s.bin", s+1, i, strings.ReplaceAll(size.String(), " ", ""))
			one[i] = Item{Name: path.Join(BatchFolder(key.Batch), name), Size: int64(size), Batch: key.Batch,
				Set: s + 1, Index: i}
		}
		if set.Order == OrderShuffled || set.Order == "" {
			shuffle(one, key.source("write", s+1))
		}
		all = append(all, one...)
	}
	if set.Order == OrderShuffledAll {
		shuffle(all, key.source("write", 0))
	}
	return all
}

// ReadOrder arranges items, given in the order in which they were written, for
// reading: [OrderSameAsWritten] (also ""), [OrderAsListed], [OrderShuffledAll]
// or [OrderShuffled], which shuffles anew within each set.
func ReadOrder(items []Item, order string, key Key) []Item {
	list := slices.Clone(items)
	if order == OrderSameAsWritten || order == "" {
		return list
	}
	slices.SortStableFunc(list, asListed)
	if order == OrderShuffledAll {
		shuffle(list, key.source("read", 0))
	}
	for from, to := 0, 0; from < len(list) && order == OrderShuffled; from = to {
		for to < len(list) && list[to].Set == list[from].Set && list[to].Batch == list[from].Batch {
			to++
		}
		key.Batch = list[from].Batch
		shuffle(list[from:to], key.source("read", list[from].Set))
	}
	return list
}

// asListed orders items as the plan lists them.
func asListed(a, b Item) int {
	return cmp.Or(cmp.Compare(a.Batch, b.Batch), cmp.Compare(a.Set, b.Set), cmp.Compare(a.Index, b.Index))
}

// Total is the sum of the items' sizes in bytes.
func Total(items []Item) int64 {
	var n int64
	for _, it := range items {
		n += it.Size
	}
	return n
}

// source is the random source for one use of the key.
func (k Key) source(use string, set int) *rand.PCG {
	h := sha256.New()
	fmt.Fprintf(h, "dmgbench order 1\x00%d\x00%d\x00%q\x00%d\x00%s\x00%d", k.Seed, k.Round, k.Step, k.Batch, use, set)
	sum := h.Sum(nil)
	return rand.NewPCG(binary.BigEndian.Uint64(sum), binary.BigEndian.Uint64(sum[8:]))
}

// Draw returns a function that draws numbers from 0 to n-1, for one use of the
// key: the same ones for the same key.
func (k Key) Draw(use string) func(n int64) int64 {
	src := k.source(use, 0)
	return func(n int64) int64 { return int64(below(src, uint64(n))) }
}

// below draws a number from 0 to n-1 without bias (Lemire 2019). That of the
// standard library may change between Go releases; a published order must not.
func below(src *rand.PCG, n uint64) uint64 {
	drawn, low := bits.Mul64(src.Uint64(), n)
	for smallest := -n % n; low < smallest; {
		drawn, low = bits.Mul64(src.Uint64(), n)
	}
	return drawn
}

// shuffle is that of Fisher and Yates with PCG.
func shuffle[T any](list []T, src *rand.PCG) {
	for i := len(list) - 1; i > 0; i-- {
		j := below(src, uint64(i+1))
		list[i], list[j] = list[j], list[i]
	}
}

// LastBatch is the items of the newest batch.
func LastBatch(items []Item) []Item {
	newest := 0
	for _, it := range items {
		newest = max(newest, it.Batch)
	}
	return slices.DeleteFunc(slices.Clone(items), func(it Item) bool { return it.Batch != newest })
}

// Select is the items that a delete step deletes, in the order of live, which
// is the order in which they were written: all of them, the last N sets, the N
// largest (of equal ones the later), every other file, or a random share of
// round(share × n) files. Sets and largest are those of the last batch; the
// other selections are among the batch that the step names, by default among
// all items.
func Select(live []Item, st plan.Step, key Key) []Item {
	pool := live
	if st.Batch == "last" || st.LastSets > 0 || st.Largest > 0 {
		pool = LastBatch(live)
	}
	at := make([]int, len(pool)) // positions in the pool; those that remain are selected
	for i := range at {
		at[i] = i
	}
	switch {
	case st.LastSets > 0:
		top := 0
		for _, it := range pool {
			top = max(top, it.Set)
		}
		at = slices.DeleteFunc(at, func(i int) bool { return pool[i].Set <= top-st.LastSets })
	case st.Largest > 0:
		slices.SortFunc(at, func(a, b int) int {
			return cmp.Or(cmp.Compare(pool[b].Size, pool[a].Size), cmp.Compare(b, a))
		})
		at = at[:min(st.Largest, len(at))]
	case st.Every:
		at = slices.DeleteFunc(at, func(i int) bool { return i%2 == 0 })
	case st.Share > 0:
		shuffle(at, key.source("delete", 0))
		at = at[:int(math.Round(min(float64(st.Share), 1)*float64(len(at))))]
	case !st.All:
		return nil
	}
	slices.Sort(at)
	picked := make([]Item, len(at))
	for i, p := range at {
		picked[i] = pool[p]
	}
	return picked
}

// Without is the items that are not among gone.
func Without(items, gone []Item) []Item {
	names := make(map[string]bool, len(gone))
	for _, it := range gone {
		names[it.Name] = true
	}
	return slices.DeleteFunc(slices.Clone(items), func(it Item) bool { return names[it.Name] })
}

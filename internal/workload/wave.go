package workload

import (
	"math"
	"slices"

	"dmgbench/internal/hostio"
)

// Files are timed in waves. The files of a wave are opened and their data made
// while no clock runs; then one gate opens, workers take files from an atomic
// counter until none is left, and when the last is done the clock stops and the
// files are closed. With one worker a wave is one file. With several it is as
// many files as a quarter of the memory holds: data made while a clock runs
// would take a core and memory bandwidth from the workers that are being
// timed, while data stamped from a template would not be unique. The fewer the
// waves, the less their tails (when some worker is idle) weigh.

// maxOpen is the most files that a wave holds open. Each may be two descriptors.
const maxOpen = 128

// Rings replace the buffers of files that are too large for memory.
const (
	ringBlock  = 8 << 20
	ringBlocks = 4
)

// job is one file of a wave.
type job struct {
	item    Item
	order   int     // position in the step, from 0
	file    File    // open
	buf     []byte  // the whole file (write) or one call (read, set by the worker)
	ring    *ring   // instead of buf, for files that memory cannot hold
	skipper Skipper // instead of buf, for files that hold no bytes
	asked   hostio.SyncMode
	found   string // reads: what was found of the cache before

	begun, done bool
	start, end  int64 // ns on the step's clock
	worker      int
	synced      hostio.SyncMode
	err         error
}

// layout is how a step divides its items into waves and its memory into buffers.
type layout struct {
	waves    [][]Item
	memory   int64 // bytes that the largest wave needs
	call     int64 // largest call in bytes
	whole    int64 // largest file that gets a buffer of its own
	block    int   // ring block in bytes
	rings    int   // files that go through a ring
	tight    bool  // memory made the calls smaller than was asked
	dataless bool  // there are no data
}

// layoutDataless is the layout of files that hold no bytes and need no memory.
func layoutDataless(items []Item, o Options) layout {
	l := layout{call: callSize(o), whole: math.MaxInt64, dataless: true}
	step := maxOpen
	if o.Workers == 1 {
		step = 1
	}
	l.waves = slices.Collect(slices.Chunk(items, step))
	return l
}

// cost is what the data of one file takes of the memory.
func (l *layout) cost(it Item) int64 {
	if l.dataless {
		return 0
	}
	if it.Size > l.whole {
		return int64(l.block) * ringBlocks
	}
	return pageUp(it.Size)
}

// layoutWrite puts whole files into memory as far as a quarter of it goes.
func layoutWrite(items []Item, o Options) layout {
	l := layout{call: callSize(o), whole: o.budget() / int64(o.Workers), block: ringBlock}
	if o.Block > 0 && o.Block <= 8*ringBlock {
		l.block = int(o.Block)
	}
	for int64(l.block)*ringBlocks > l.whole && l.block > bufferAlign {
		l.block /= 2
	}
	var used int64
	from := 0
	for i, it := range items {
		c := l.cost(it)
		if it.Size > l.whole {
			l.rings++
		}
		single := o.Workers == 1 && o.Gate == nil
		if i > from && (single || used+c > o.budget() || i-from == maxOpen) {
			l.waves, from, used = append(l.waves, items[from:i]), i, 0
		}
		used += c
		l.memory = max(l.memory, used)
	}
	if from < len(items) {
		l.waves = append(l.waves, items[from:])
	}
	return l
}

// layoutRead needs one call's buffer for each worker, used again and again.
func layoutRead(items []Item, o Options) layout {
	l := layout{call: callSize(o)}
	var largest int64
	for _, it := range items {
		largest = max(largest, it.Size)
	}
	need := min(l.call, pageUp(largest))
	for need*int64(o.Workers) > o.budget() && need > 1<<20 {
		need = pageUp(need / 2)
		l.call, l.tight = need, true
	}
	l.memory = need * int64(o.Workers)
	step := maxOpen
	if o.Workers == 1 {
		step = 1
	}
	for from := 0; from < len(items); from += step {
		l.waves = append(l.waves, items[from:min(from+step, len(items))])
	}
	return l
}

// callSize is the most bytes of one call.
func callSize(o Options) int64 {
	if o.Block > 0 {
		return min(o.Block, MaxCall)
	}
	return MaxCall
}

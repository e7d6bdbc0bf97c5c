package workload

import (
	"fmt"
	"math"
	"slices"
	"sync"

	"dmgbench/internal/system/hostio"
)

// Files are timed in waves. The files of a wave are opened and their data made
// while no clock runs. Then one gate opens, workers take files from an atomic
// counter until none is left, and when the last is done the clock stops and the
// files are closed. With one worker a wave is one file. With several it is as
// many files as a quarter of the memory contains: making data while a clock
// runs would take a core and memory bandwidth from the workers that are being
// timed, while data copied from a template would not be unique. The fewer the
// waves, the smaller the effect of their ends, when some workers are idle.

// maxOpen is the most files that a wave holds open. Each may be two
// descriptors.
const maxOpen = 128

// Rings replace the buffers of files that are too large for memory.
const (
	ringBlock  = 8 << 20 // bytes
	ringBlocks = 4
)

// minReadCall is the smallest call in bytes that the layout of a read chooses.
const minReadCall = 1 << 20

// layout is how a step divides its items into waves and its memory into
// buffers.
type layout struct {
	waves    [][]Item
	memory   int64 // bytes that the largest wave needs
	call     int64 // largest call in bytes
	whole    int64 // largest file that gets a buffer of its own
	block    int   // ring block in bytes
	rings    int   // files that go through a ring
	limited  bool  // memory made the calls smaller than requested
	dataless bool  // the files hold no bytes and need no memory
}

// layoutDataless is the layout of files that hold no bytes.
func layoutDataless(items []Item, o Options) layout {
	return layout{call: callSize(o), whole: math.MaxInt64, dataless: true, waves: equalWaves(items, o)}
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
	single := o.Workers == 1 && o.Gate == nil
	var used int64
	from := 0
	for i, it := range items {
		c := l.cost(it)
		if it.Size > l.whole {
			l.rings++
		}
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

// layoutRead needs one call's buffer for each worker, used for all its files.
func layoutRead(items []Item, o Options) layout {
	l := layout{call: callSize(o), waves: equalWaves(items, o)}
	var largest int64
	for _, it := range items {
		largest = max(largest, it.Size)
	}
	need := min(l.call, roundUpPage(largest))
	for need*int64(o.Workers) > o.budget() && need > minReadCall {
		need = roundUpPage(need / 2)
		l.call, l.limited = need, true
	}
	l.memory = need * int64(o.Workers)
	return l
}

// equalWaves are waves of one file for one worker, else of as many as may be
// open.
func equalWaves(items []Item, o Options) [][]Item {
	n := maxOpen
	if o.Workers == 1 {
		n = 1
	}
	return slices.Collect(slices.Chunk(items, n))
}

// cost is how many bytes of memory the data of one file takes.
func (l *layout) cost(it Item) int64 {
	switch {
	case l.dataless:
		return 0
	case it.Size > l.whole:
		return int64(l.block) * ringBlocks
	}
	return roundUpPage(it.Size)
}

// callSize is the most bytes of one call.
func callSize(o Options) int64 {
	if o.Block > 0 {
		return min(o.Block, MaxCall)
	}
	return MaxCall
}

// bufferAlign is the alignment of every file's buffer in bytes: enough for
// direct transfers of any medium, and no two workers share a page.
const bufferAlign = 4096

// roundUpPage rounds n bytes up to whole pages.
func roundUpPage(n int64) int64 { return (n + bufferAlign - 1) / bufferAlign * bufferAlign }

// Buffers keeps memory for file I/O mapped and touched from step to step, since
// a transfer into fresh pages runs at a quarter of the speed. The zero value is
// ready for use; it is safe for concurrent use.
type Buffers struct {
	mu   sync.Mutex
	idle []*hostio.Buffer
}

// get returns a buffer of at least n bytes; if none is large enough, it unmaps
// all first.
func (b *Buffers) get(n int64) (*hostio.Buffer, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	i := slices.IndexFunc(b.idle, func(buf *hostio.Buffer) bool { return int64(len(buf.Bytes())) >= n })
	if i >= 0 {
		buf := b.idle[i]
		b.idle = slices.Delete(b.idle, i, i+1)
		return buf, nil
	}
	b.free()
	buf, err := hostio.AlignedBuffer(int(max(n, bufferAlign)))
	if err != nil {
		return nil, fmt.Errorf("preparing buffers: %w", err)
	}
	return buf, nil
}

// put gives a buffer back.
func (b *Buffers) put(buf *hostio.Buffer) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.idle = append(b.idle, buf)
}

// Free unmaps every buffer that is not in use.
func (b *Buffers) Free() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.free()
}

// free unmaps the idle buffers; the caller holds the lock.
func (b *Buffers) free() {
	for _, buf := range b.idle {
		buf.Free()
	}
	b.idle = nil
}

package workload

import (
	"cmp"
	"math"
	"slices"
	"sync"
	"time"

	"dmgbench/internal/system/clock"
	"dmgbench/internal/system/hostio"
	"dmgbench/internal/system/units"
)

// MaxCall is the most bytes that one read or write call transfers: Darwin
// cannot transfer 2 GiB in one call.
const MaxCall = 1 << 30

// defaultMemory is the assumed memory of the machine in bytes where Options
// does not contain it.
const defaultMemory = 4 << 30

// Options of one step.
type Options struct {
	Clock clock.Clock // required
	Data  *Data       // required by Write and Verify

	Workers int   // goroutines doing file I/O; 0 means 1
	Block   int64 // bytes a call; 0: one call a file up to MaxCall
	Sync    hostio.SyncMode
	Cache   string // direct | buffered | cold; "" is buffered
	QoS     string // default | utility | background; "" is default

	Preallocate bool
	// Memory is how many bytes the program may use. Buffers take at most a
	// quarter.
	Memory int64
	// Buffers are reused from step to step; nil maps and frees them in the
	// call.
	Buffers *Buffers
	// Virtual is set where a hypervisor may cache what the guest believes to be
	// on a disk.
	Virtual bool
	// Gate, if not nil, holds the first timed span until every step of the gate
	// is ready.
	Gate *Gate
	// Progress, if not nil, is called between files when no clock of this step
	// runs.
	Progress func(Progress)
}

// Progress is how far a step has come.
type Progress struct {
	Files, OfFiles int
	Bytes, OfBytes int64
	Timed          time.Duration // timed spans so far
}

// withDefaults fills in defaults. A plan has no invalid options.
func (o Options) withDefaults() Options {
	o.Workers = max(o.Workers, 1)
	o.Memory = cmp.Or(max(o.Memory, 0), defaultMemory)
	o.Cache = cmp.Or(o.Cache, CacheBuffered)
	o.Sync = cmp.Or(o.Sync, hostio.SyncNone)
	o.QoS = cmp.Or(o.QoS, QoSDefault)
	return o
}

// budget is how many bytes the buffers of the step may take: a quarter of the
// memory, shared by the steps of a gate.
func (o Options) budget() int64 {
	b := o.Memory / 4
	if o.Gate != nil {
		b /= int64(o.Gate.shared.parties)
	}
	return b
}

// fileOptions are the options of one file that the worker is likely to
// transfer.
func (o Options) fileOptions(worker int) FileOptions {
	mode := hostio.CacheBuffered
	if o.Cache == CacheDirect {
		mode = hostio.CacheDirect
	}
	return FileOptions{Cache: mode, Preallocate: o.Preallocate, Worker: worker}
}

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

// newLayout is a layout without memory, as files that hold no bytes need. Its
// waves are of one file for one worker, else of as many as may be open.
func newLayout(vol Volume, items []Item, o Options) layout {
	d, ok := vol.(Dataless)
	l := layout{call: min(cmp.Or(o.Block, MaxCall), MaxCall), whole: math.MaxInt64, dataless: ok && d.Dataless()}
	n := maxOpen
	if o.Workers == 1 {
		n = 1
	}
	l.waves = slices.Collect(slices.Chunk(items, n))
	return l
}

// layoutWrite puts whole files into memory as far as a quarter of it goes.
func layoutWrite(vol Volume, items []Item, o Options) layout {
	l := newLayout(vol, items, o)
	if l.dataless {
		return l
	}
	l.whole, l.block, l.waves = o.budget()/int64(o.Workers), ringBlock, nil
	if o.Block > 0 && o.Block <= 8*ringBlock {
		l.block = int(o.Block)
	}
	for int64(l.block)*ringBlocks > l.whole && l.block > bufferAlign {
		l.block /= 2
	}
	single := o.Workers == 1 && o.Gate == nil
	var used int64
	from := 0 // the first item of the last wave
	for i, it := range items {
		c := l.cost(it)
		if it.Size > l.whole {
			l.rings++
		}
		if i == 0 || single || used+c > o.budget() || i-from == maxOpen {
			l.waves, from, used = append(l.waves, nil), i, 0
		}
		l.waves[len(l.waves)-1] = items[from : i+1]
		used += c
		l.memory = max(l.memory, used)
	}
	return l
}

// layoutRead needs one call's buffer for each worker, used for all its files.
func layoutRead(vol Volume, items []Item, o Options) layout {
	l := newLayout(vol, items, o)
	if l.dataless {
		return l
	}
	var largest int64
	for _, it := range items {
		largest = max(largest, it.Size)
	}
	need := min(l.call, units.RoundUp(largest, bufferAlign))
	for need*int64(o.Workers) > o.budget() && need > minReadCall {
		need = units.RoundUp(need/2, bufferAlign)
		l.call, l.limited = need, true
	}
	l.memory = need * int64(o.Workers)
	return l
}

// cost is how many bytes of memory the data of one written file takes.
func (l *layout) cost(it Item) int64 {
	if it.Size > l.whole {
		return int64(l.block) * ringBlocks
	}
	return units.RoundUp(it.Size, bufferAlign)
}

// bufferAlign is the alignment of every file's buffer in bytes: enough for
// direct transfers of any medium, and no two workers share a page.
const bufferAlign = 4096

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
	for i, buf := range b.idle {
		if int64(len(buf.Bytes())) >= n {
			b.idle = slices.Delete(b.idle, i, i+1)
			b.mu.Unlock()
			return buf, nil
		}
	}
	b.mu.Unlock()
	b.Free()
	return hostio.AlignedBuffer(int(max(n, bufferAlign)))
}

// memory is n bytes of the buffers of the step, and what gives them back.
func (o Options) memory(n int64) (mem []byte, free func(), err error) {
	pool := o.Buffers
	if pool == nil {
		pool = &Buffers{}
	}
	buf, err := pool.get(n)
	if err != nil {
		return nil, nil, err
	}
	return buf.Bytes(), func() {
		if pool.put(buf); o.Buffers == nil {
			pool.Free()
		}
	}, nil
}

// put gives a buffer back. It unmaps none: other steps may be timed.
func (b *Buffers) put(buf *hostio.Buffer) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.idle = append(b.idle, buf)
}

// Free unmaps every buffer that is not in use.
func (b *Buffers) Free() {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, buf := range b.idle {
		buf.Free()
	}
	b.idle = nil
}

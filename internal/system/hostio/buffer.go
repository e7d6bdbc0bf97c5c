package hostio

import (
	"fmt"
	"io/fs"
	"sync/atomic"
)

// Buffer is memory outside the Go heap: page-aligned, so that direct
// transfers take it, and touched, so that the first timed use pays no page
// faults. From 256 KiB on it is asked for in huge pages, without which direct
// transfers were measured at a third of the rate on a virtual disk; such a
// buffer takes whole multiples of 2 MiB of memory. It is not collected: call
// Free.
type Buffer struct {
	mem  []byte // touched
	all  []byte // mapped
	n    int
	gone atomic.Bool
}

// AlignedBuffer maps n bytes (at least 1) and touches every page.
func AlignedBuffer(n int) (*Buffer, error) {
	if n < 1 {
		return nil, fmt.Errorf("mapping a buffer of %d bytes: %w", n, fs.ErrInvalid)
	}
	mem, all, err := sysMapMemory(n)
	if err != nil {
		return nil, fmt.Errorf("mapping a buffer of %d bytes: %w", n, err)
	}
	for i := 0; i < n; i += 4096 {
		mem[i] = 0
	}
	return &Buffer{mem: mem, all: all, n: n}, nil
}

// Bytes returns the memory; it must not be used after Free.
func (b *Buffer) Bytes() []byte { return b.mem[:b.n:b.n] }

// Free unmaps the memory. A second call has no effect.
func (b *Buffer) Free() {
	if b.gone.CompareAndSwap(false, true) {
		sysUnmapMemory(b.all)
		b.mem, b.all, b.n = nil, nil, 0
	}
}

// bounceSize is the memory through which misaligned direct transfers go.
const bounceSize = 1 << 20

// spareBounce keeps a few bounce buffers mapped. Not a sync.Pool: what the
// collector drops from a pool would stay mapped for ever.
var spareBounce = make(chan *Buffer, 8)

// Warm maps the memory that n misaligned direct transfers at once go through,
// at most 8, so that the first of them, which may be timed, need not. What
// cannot be mapped now is asked for again by the transfer.
func Warm(n int) {
	var held []*Buffer
	for range min(n, cap(spareBounce)) {
		b, err := getBounce()
		if err != nil {
			break
		}
		held = append(held, b)
	}
	for _, b := range held {
		putBounce(b)
	}
}

func getBounce() (*Buffer, error) {
	select {
	case b := <-spareBounce:
		return b, nil
	default:
		return AlignedBuffer(bounceSize)
	}
}

func putBounce(b *Buffer) {
	select {
	case spareBounce <- b:
	default:
		b.Free()
	}
}

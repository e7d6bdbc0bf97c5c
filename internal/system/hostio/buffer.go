package hostio

import (
	"fmt"
	"unsafe"

	"golang.org/x/sys/unix"
)

// hugePage is the size of a transparent huge page on amd64 and arm64.
const hugePage = 2 << 20

// Buffer is memory outside the Go heap: page-aligned, so that direct
// transfers take it, and touched, so that the first timed use pays no page
// faults. From 256 KiB on it starts at a huge page and is made of huge pages
// only: direct transfers of small pages have to name each of them to the device,
// and were measured at a third of the rate on a virtual disk. Such a buffer takes
// whole multiples of 2 MiB of memory. It is not collected: call Free.
type Buffer struct {
	mem []byte // touched
	all []byte // mapped
}

// AlignedBuffer maps n bytes (at least 1) and touches every page.
func AlignedBuffer(n int) (*Buffer, error) {
	size := n
	if n >= hugePage/8 {
		size = roundUp(n, hugePage) + hugePage
	}
	all, err := unix.Mmap(-1, 0, size, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_ANON|unix.MAP_PRIVATE)
	if err != nil {
		return nil, fmt.Errorf("mapping a buffer of %d bytes: %w", n, err)
	}
	mem := all
	if size > n {
		skip := -int(uintptr(unsafe.Pointer(&all[0]))) & (hugePage - 1)
		mem = all[skip:][:roundUp(n, hugePage)]
		adviseHuge(mem)
	}
	for i := 0; i < n; i += 4096 {
		mem[i] = 0
	}
	return &Buffer{mem: mem[:n:n], all: all}, nil
}

// Bytes returns the memory; it must not be used after Free.
func (b *Buffer) Bytes() []byte { return b.mem }

// Free unmaps the memory. A second call has no effect, nor has one of nil.
func (b *Buffer) Free() {
	if b != nil && b.all != nil {
		_ = unix.Munmap(b.all)
		b.mem, b.all = nil, nil
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

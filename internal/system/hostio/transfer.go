package hostio

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

// maxTransfer is the most bytes that one system call moves: Darwin refuses 2
// GiB and more, and package os caps at the same 1 GiB. Tests lower it.
var maxTransfer = 1 << 30

// ReadAt reads len(p) bytes from off, whatever their alignment, and returns
// io.EOF when the file ends before that.
func (f *File) ReadAt(p []byte, off int64) (int, error) {
	return f.transfer(OpRead, "reading", p, off)
}

// WriteAt writes len(p) bytes at off, whatever their alignment. In direct
// mode whole blocks go straight from p to the disk, and the rest through the
// page cache until the next Sync.
func (f *File) WriteAt(p []byte, off int64) (int, error) {
	return f.transfer(OpWrite, "writing", p, off)
}

func (f *File) transfer(k Kind, doing string, p []byte, off int64) (n int, err error) {
	if len(p) == 0 {
		return 0, nil
	}
	if off < 0 {
		return 0, f.wrapErr(doing, fmt.Errorf("offset %d: %w", off, fs.ErrInvalid))
	}
	if err := f.acquire(); err != nil {
		return 0, err
	}
	unit := f.off
	if k == OpWrite {
		unit = f.unit
	}
	switch {
	case f.direct < 0 || f.degraded.Load():
		n, err = f.loop(k, f.fd, p, off)
	case memAligned(p, f.mem) && off%int64(unit) == 0 && len(p)%unit == 0:
		n, err = f.loop(k, f.direct, p, off)
	case k == OpRead:
		n, err = f.readUnaligned(p, off)
	default:
		n, err = f.writeUnaligned(p, off)
	}
	f.release()
	if err == nil || err == io.EOF {
		return n, err
	}
	return n, fmt.Errorf("%s %d bytes at %d of %q: %w", doing, len(p), off, f.Path(), err)
}

func memAligned(p []byte, mem int) bool {
	return uintptr(unsafe.Pointer(unsafe.SliceData(p)))%uintptr(mem) == 0
}

// loop moves all of p with as many system calls as it takes. What a direct
// transfer leaves unaligned or the kernel refuses is moved buffered.
func (f *File) loop(k Kind, fd int, p []byte, off int64) (n int, err error) {
	for n < len(p) {
		m, err := f.move(k, fd, p[n:min(len(p), n+maxTransfer)], off+int64(n))
		n += max(m, 0)
		switch {
		case err == nil && m > 0:
			if fd == f.direct && m%f.off != 0 {
				fd = f.buffered()
			}
		case errors.Is(err, syscall.EINTR):
		case errors.Is(err, syscall.EINVAL) && fd == f.direct:
			f.degraded.Store(true)
			fd = f.buffered()
		case err != nil:
			return n, err
		case k == OpRead:
			return n, io.EOF
		default:
			return n, io.ErrShortWrite
		}
	}
	return n, nil
}

// buffered returns the descriptor of the page cache and notes that closing
// has to drop what goes through it.
func (f *File) buffered() int {
	f.tail.Store(true)
	return f.fd
}

// move is one system call, between the hook's calls if there is one.
func (f *File) move(k Kind, fd int, p []byte, off int64) (int, error) {
	call := unix.Pwrite
	if k == OpRead {
		call = unix.Pread
	}
	if f.hook == nil {
		return call(fd, p, off)
	}
	op := Op{Kind: k, Path: f.rel, Off: off, Len: int64(len(p)), Data: p}
	if cut, ok := f.hook.(Shortener); ok {
		n := min(max(cut.Shorten(op), 1), len(p))
		if fd == f.direct {
			n = min(max(n-n%f.unit, f.unit), len(p))
		}
		p = p[:n]
		op.Len, op.Data = int64(n), p
	}
	if err := f.hook.Before(op); err != nil {
		return 0, err
	}
	n, err := call(fd, p, off)
	f.hook.After(op, n, err)
	return n, err
}

// readUnaligned reads past the page cache where the offset, the length or the
// memory of p forbids the direct way: in one call, or through bounce memory.
func (f *File) readUnaligned(p []byte, off int64) (n int, err error) {
	b, err := getBounce()
	if err != nil {
		return f.loop(OpRead, f.buffered(), p, off)
	}
	defer putBounce(b)
	n, done, err := f.readScattered(b.Bytes(), p, off)
	for !done && err == nil && n < len(p) {
		rest, at := p[n:], off+int64(n)
		skip := int(at % int64(f.off))
		whole := min(roundUp(skip+len(rest), f.off), bounceSize)
		var m int
		m, err = f.loop(OpRead, f.direct, b.Bytes()[:whole], at-int64(skip))
		m = min(max(m-skip, 0), len(rest))
		n += copy(rest[:m], b.Bytes()[skip:])
		if err == io.EOF && m == min(len(rest), whole-skip) {
			err = nil // the file ends inside the block, but not before p does
		}
	}
	return n, err
}

// readScattered reads p in one system call, the blocks that p has a part of
// into bounce memory and the others straight into p: a read of its own for
// the last 128 bytes of a 2 MB file would double the time. Unless done, the
// caller reads the rest after the first n bytes. Hooks see plain reads only,
// so with one this reads no byte.
func (f *File) readScattered(bounce, p []byte, off int64) (n int, done bool, err error) {
	skip := int(off % int64(f.off))
	head := (f.off - skip) % f.off
	if f.hook != nil || len(p) > maxTransfer || head >= len(p) || !memAligned(p[head:], f.mem) {
		return 0, false, nil
	}
	tail := (len(p) - head) % f.off
	first, last := bounce[:f.off], bounce[bounceSize/2:][:f.off]
	body := p[head : len(p)-tail]
	if head == 0 {
		first = nil
	}
	if tail == 0 {
		last = nil
	}
	m, err := vectored(callReadv, f.direct, [3][]byte{first, body, last}, off-int64(skip))
	if err != nil || m <= skip {
		return 0, false, nil // the plain way meets the same, and handles it
	}
	n = min(m-skip, len(p))
	copy(p[:min(n, head)], bounce[skip:])
	if rest := n - head - len(body); rest > 0 {
		copy(p[n-rest:n], last)
	}
	if n < len(p) && m%f.off != 0 {
		return n, true, io.EOF
	}
	return n, n == len(p), nil
}

// writeUnaligned sends the head and the tail through the page cache and what
// is between directly, over bounce memory where p is misaligned.
func (f *File) writeUnaligned(p []byte, off int64) (n int, err error) {
	unit := int64(f.unit)
	end := off + int64(len(p))
	first, last := roundUp(off, unit), end-end%unit
	if first >= last {
		return f.loop(OpWrite, f.buffered(), p, off)
	}
	head, body := p[:first-off], p[first-off:last-off]
	if len(head) > 0 {
		if n, err = f.loop(OpWrite, f.buffered(), head, off); err != nil {
			return n, err
		}
	}
	m := 0
	if memAligned(body, f.mem) {
		m, err = f.loop(OpWrite, f.direct, body, first)
	} else {
		m, err = f.bounceWrite(body, first)
	}
	if n += m; err != nil || last == end {
		return n, err
	}
	m, err = f.loop(OpWrite, f.buffered(), p[last-off:], last)
	return n + m, err
}

func (f *File) bounceWrite(p []byte, off int64) (n int, err error) {
	b, err := getBounce()
	if err != nil {
		return f.loop(OpWrite, f.buffered(), p, off)
	}
	defer putBounce(b)
	for n < len(p) {
		k := copy(b.Bytes(), p[n:])
		m, err := f.loop(OpWrite, f.direct, b.Bytes()[:k], off+int64(n))
		if n += m; err != nil {
			return n, err
		}
	}
	return n, nil
}

func roundUp[T int | int64](v, unit T) T { return (v + unit - 1) / unit * unit }

// padLimit is one more than the most zeros that WritePadded adds: a page.
const padLimit = 4096

// WritePadded writes p at off and pad zeros after it, at most 4095, and returns
// how many bytes of p are written. Where the end of p is padded to a whole
// block that is one system call: a call of its own for the last part of a small
// file would be a round trip to the disk more.
func (f *File) WritePadded(p []byte, off int64, pad int) (int, error) {
	if pad == 0 {
		return f.WriteAt(p, off)
	}
	b, err := getBounce()
	if err != nil {
		return 0, f.wrapErr("writing", err)
	}
	defer putBounce(b)
	// The tail is what of p shares a page with the padding.
	tail := min(len(p), int((off+int64(len(p)))%padLimit))
	body, last := p[:len(p)-tail], b.Bytes()[:tail+pad]
	clear(last[copy(last, p[len(body):]):])
	if f.writeGathered(body, last, off) {
		return len(p), nil
	}
	if n, err := f.WriteAt(body, off); err != nil {
		return n, err
	}
	n, err := f.WriteAt(last, off+int64(len(body)))
	return len(body) + min(n, tail), err
}

// writeGathered writes both parts in one system call. Unless it did so in full,
// the caller writes them again, one by one, and meets what was wrong. Hooks see
// plain writes only, so with one this returns false.
func (f *File) writeGathered(body, last []byte, off int64) bool {
	n := len(body) + len(last)
	if f.hook != nil || off < 0 || len(body) == 0 || n > maxTransfer || f.acquire() != nil {
		return false
	}
	defer f.release()
	fd := f.fd
	if f.direct >= 0 && !f.degraded.Load() {
		// last is aligned in memory and follows body.
		if !memAligned(body, f.mem) || off%int64(f.unit) != 0 || len(body)%f.unit != 0 || len(last)%f.unit != 0 {
			return false
		}
		fd = f.direct
	}
	m, err := vectored(callWritev, fd, [3][]byte{body, last}, off)
	return err == nil && m == n
}

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
// cannot be mapped now is asked for again by the transfer. The table of
// descriptors is made large enough: to enlarge it, Linux waits for other threads.
func Warm(n int) {
	if fd, err := unix.FcntlInt(0, unix.F_DUPFD_CLOEXEC, min(MaxOpen(), 1<<14)-1); err == nil {
		unix.Close(fd)
	}
	for range min(n, cap(spareBounce)) - len(spareBounce) {
		b, err := AlignedBuffer(bounceSize)
		if err != nil {
			return
		}
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

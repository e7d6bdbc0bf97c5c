// Package blockdevtest has a block device in memory, for tests: sparse, and
// with a hook by which a test observes operations or makes them fail.
package blockdevtest

import (
	"io"
	"sync"

	"dmgbench/internal/image/blockdev"
)

const memPage = 64 << 10

// Op names the method of a device for which a hook of [MemDevice] is called.
type Op string

// The operations.
const (
	OpRead    Op = "read"
	OpWrite   Op = "write"
	OpDiscard Op = "discard"
	OpFlush   Op = "flush"
	OpEvict   Op = "evict"
)

// MemDevice is a sparse device in memory; [NewMem] makes one. Do not change its
// fields while the device is in use.
type MemDevice struct {
	// Hook, if set, is called before every operation, without any lock held. If
	// it returns an error, the operation returns that and does not happen. For
	// a flush the range is empty.
	Hook func(op Op, off, n int64) error
	// Extent is what PreferredExtent returns, in bytes.
	Extent int64

	mu    sync.RWMutex
	size  int64
	pages map[int64]*[memPage]byte
}

// NewMem returns a device of size bytes, all zero; memory is taken as it is
// written.
func NewMem(size int64) *MemDevice {
	return &MemDevice{size: size, pages: map[int64]*[memPage]byte{}}
}

// Size implements [blockdev.Device].
func (m *MemDevice) Size() int64 {
	m.mu.RLock()
	defer m.mu.RUnlock()
	return m.size
}

// Resize changes the size; data beyond a smaller size is lost.
func (m *MemDevice) Resize(size int64) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if size < m.size {
		m.zero(size, m.size-size)
	}
	m.size = size
}

// PreferredExtent implements [blockdev.Geometry].
func (m *MemDevice) PreferredExtent() int64 { return m.Extent }

// Evict implements [blockdev.Evicter]; there is no cache, so it only calls the
// hook.
func (m *MemDevice) Evict(off, n int64) error { return m.enter(OpEvict, off, n) }

// Flush implements [blockdev.Device].
func (m *MemDevice) Flush() error { return m.enter(OpFlush, 0, 0) }

// ReadAt implements [blockdev.Device].
func (m *MemDevice) ReadAt(p []byte, off int64) (int, error) {
	if err := m.enter(OpRead, off, 0); err != nil {
		return 0, err
	}
	m.mu.RLock()
	defer m.mu.RUnlock()
	n := int(min(int64(len(p)), max(0, m.size-off)))
	clear(p[:n])
	m.eachPage(off, int64(n), func(index, in, part, done int64) {
		if page := m.pages[index]; page != nil {
			copy(p[done:][:part], page[in:])
		}
	})
	if n < len(p) {
		return n, io.EOF
	}
	return n, nil
}

// WriteAt implements [blockdev.Device].
func (m *MemDevice) WriteAt(p []byte, off int64) (int, error) {
	if err := m.enter(OpWrite, off, int64(len(p))); err != nil {
		return 0, err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.eachPage(off, int64(len(p)), func(index, in, _, done int64) {
		if m.pages[index] == nil {
			m.pages[index] = new([memPage]byte)
		}
		copy(m.pages[index][in:], p[done:])
	})
	return len(p), nil
}

// Discard implements [blockdev.Device].
func (m *MemDevice) Discard(off, n int64) error {
	if err := m.enter(OpDiscard, off, n); err != nil {
		return err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.zero(off, n)
	return nil
}

// Allocated is the memory held, in bytes: a multiple of 64 KiB.
func (m *MemDevice) Allocated() int64 {
	m.mu.RLock()
	defer m.mu.RUnlock()
	return int64(len(m.pages)) * memPage
}

// CopyTo writes the parts that hold memory to w, such as a sparse file of the
// same size.
func (m *MemDevice) CopyTo(w io.WriterAt) error {
	m.mu.RLock()
	defer m.mu.RUnlock()
	for i, page := range m.pages {
		if _, err := w.WriteAt(page[:min(memPage, m.size-i*memPage)], i*memPage); err != nil {
			return err
		}
	}
	return nil
}

// Clone returns an independent copy without the hook, as a crash would leave
// it.
func (m *MemDevice) Clone() *MemDevice {
	m.mu.RLock()
	defer m.mu.RUnlock()
	c := &MemDevice{Extent: m.Extent, size: m.size, pages: map[int64]*[memPage]byte{}}
	for i, page := range m.pages {
		p := *page
		c.pages[i] = &p
	}
	return c
}

func (m *MemDevice) enter(op Op, off, n int64) error {
	err := blockdev.CheckRange(off, n, m.Size())
	if err == nil && m.Hook != nil {
		err = m.Hook(op, off, n)
	}
	return err
}

func (m *MemDevice) zero(off, n int64) {
	m.eachPage(off, n, func(index, in, part, _ int64) {
		if part == memPage {
			delete(m.pages, index)
		} else if page := m.pages[index]; page != nil {
			clear(page[in : in+part])
		}
	})
}

// eachPage calls do for the part of n bytes from off in each page: the page,
// where the part starts in it, its length, and the bytes before it.
func (m *MemDevice) eachPage(off, n int64, do func(index, in, part, done int64)) {
	for done, part := int64(0), int64(0); done < n; done += part {
		index, in := (off+done)/memPage, (off+done)%memPage
		part = min(n-done, memPage-in)
		do(index, in, part, done)
	}
}

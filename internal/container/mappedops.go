package container

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"

	"dmgbench/internal/blockdev"
	"dmgbench/internal/hostio"
	"dmgbench/internal/image"
)

// Discard drops the chunks that lie wholly in the range, where the layout can,
// and punches the rest.
func (m *mapped) Discard(off, n int64) error {
	if err := m.change(off, n); err != nil {
		return err
	}
	defer m.RUnlock()
	for n > 0 {
		part, err := m.discardSome(off, n)
		if err != nil {
			return err
		}
		off, n = off+part, n-part
	}
	return nil
}

func (m *mapped) discardSome(off, n int64) (int64, error) {
	i, in := off/m.chunk, off%m.chunk
	if capacity := m.capacity(i); m.layout.drops() {
		if in == 0 && n >= capacity {
			return capacity, m.layout.drop(i)
		}
		n = min(n, m.chunk-in)
	}
	first, last, n := m.run(off, n)
	m.layout.hold(first, last)
	defer m.layout.release(first, last)
	at, n, _ := m.extent(off, n)
	if at == 0 {
		return n, nil
	}
	return n, m.f.PunchHole(at, n)
}

// capacity is how many bytes of the device chunk i holds.
func (m *mapped) capacity(i int64) int64 { return min(m.chunk, m.size-i*m.chunk) }

// Flush makes everything durable, the data before the table that shows it.
func (m *mapped) Flush() error {
	if err := m.enter(m.path); err != nil {
		return err
	}
	defer m.RUnlock()
	return m.flush()
}

func (m *mapped) flush() error {
	if m.opts.ReadOnly {
		return nil
	}
	err := m.turns.take(func() error {
		if err := m.fate.get(); err != nil {
			return err
		}
		if err := m.layout.commit(); err != nil {
			return m.fate.set(err)
		}
		return nil
	})
	if err != nil {
		return err
	}
	return m.f.Check()
}

// Evict drops the host's cached pages of the range.
func (m *mapped) Evict(off, n int64) error {
	if err := m.enter(m.path); err != nil {
		return err
	}
	defer m.RUnlock()
	if err := blockdev.CheckRange(off, n, m.size); err != nil {
		return err
	}
	for n > 0 {
		at, part, _ := m.extent(off, n)
		if at != 0 {
			if err := m.f.EvictRange(at, part); err != nil {
				return err
			}
		}
		off, n = off+part, n-part
	}
	return nil
}

// Resident implements [Resident].
func (m *mapped) Resident(off, n int64) (share float64, err error) {
	if err := m.enter(m.path); err != nil {
		return 0, err
	}
	defer m.RUnlock()
	if err := blockdev.CheckRange(off, n, m.size); err != nil || n == 0 {
		return 0, err
	}
	sum, whole := 0.0, n
	for n > 0 {
		at, part, _ := m.extent(off, n)
		if at != 0 {
			s, err := m.f.Resident(at, part)
			if err != nil {
				return 0, err
			}
			sum += s * float64(part)
		}
		off, n = off+part, n-part
	}
	return sum / float64(whole), nil
}

func (m *mapped) Close() error {
	m.Lock()
	defer m.Unlock()
	if m.closed {
		return fmt.Errorf("closing %q: %w", m.path, fs.ErrClosed)
	}
	err := m.flush()
	m.closed = true
	return errors.Join(err, m.f.Close())
}

func (m *mapped) Usage() (Usage, error) {
	if err := m.enter(m.path); err != nil {
		return Usage{}, err
	}
	defer m.RUnlock()
	if err := m.f.Check(); err != nil {
		return Usage{}, err
	}
	return mappedUsage(m.f, m.layout)
}

// mappedUsage counts chunks as bands. Which of them have holes the host does
// not tell, so that they are full all or, in a sparse file, none.
func mappedUsage(f interface{ Stat() (hostio.Stat, error) }, l layout) (Usage, error) {
	u, err := fileUsage(f)
	u.Bands = l.count()
	if u.Allocated >= u.Apparent {
		u.BandsFull = u.Bands
	}
	return u, err
}

// alone begins a call that nothing else runs beside; leave with m.Unlock.
func (m *mapped) alone(doing string) error {
	m.Lock()
	err := m.writable()
	if m.closed {
		err = fmt.Errorf("%s %q: %w", doing, m.path, fs.ErrClosed)
	}
	if err == nil {
		err = m.flush()
	}
	if err != nil {
		m.Unlock()
	}
	return err
}

// Compact drops chunks and shortens the file; see [Image].
func (m *mapped) Compact(used func(off, n int64) bool) (reclaimed int64, err error) {
	if err := m.alone("compacting"); err != nil {
		return 0, err
	}
	defer m.Unlock()
	before, err := m.f.Stat()
	if err != nil {
		return 0, err
	}
	buf := make([]byte, min(m.chunk, 1<<20))
	err = m.layout.compact(func(i int64) (bool, error) {
		if used != nil {
			return used(i*m.chunk, m.capacity(i)), nil
		}
		zero, err := m.zero(i, buf)
		return !zero, err
	})
	after, e := m.f.Stat()
	if err = errors.Join(err, e); err != nil {
		// What the file and the table now are is only known after opening.
		return max(before.Allocated-after.Allocated, 0), m.fate.set(err)
	}
	return max(before.Allocated-after.Allocated, 0), m.f.Check()
}

// zero says whether chunk i of the device reads as zeros.
func (m *mapped) zero(i int64, buf []byte) (bool, error) {
	blank := make([]byte, len(buf))
	for in, n := int64(0), m.capacity(i); in < n; in += int64(len(buf)) {
		p := buf[:min(int64(len(buf)), n-in)]
		if _, err := m.readRun(p, i*m.chunk+in); err != nil {
			return false, err
		}
		if !bytes.Equal(p, blank[:len(p)]) {
			return false, nil
		}
	}
	return true, nil
}

// Resize changes the length of the device; see [Image].
func (m *mapped) Resize(newSize int64) error {
	if err := image.CheckSize(newSize); err != nil {
		return fmt.Errorf("resizing %q: %w", m.path, err)
	}
	if err := m.alone("resizing"); err != nil {
		return err
	}
	defer m.Unlock()
	if newSize > m.size {
		if err := room(m.f, newSize); err != nil {
			return fmt.Errorf("resizing %q: %w", m.path, err)
		}
	}
	if err := m.layout.resize(newSize); err != nil {
		if !errors.Is(err, errBadSize) {
			err = m.fate.set(err)
		}
		return fmt.Errorf("resizing %q: %w", m.path, err)
	}
	m.size = newSize
	return m.f.Check()
}

// errBadSize is returned by layouts for sizes that they cannot have; nothing
// was changed then.
var errBadSize = errors.New("not a size that this kind of container can have")

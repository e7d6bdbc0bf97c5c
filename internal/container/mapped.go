package container

import (
	"errors"
	"fmt"
	"io"
	"io/fs"

	"dmgbench/internal/blockdev"
	"dmgbench/internal/hostio"
)

// mapped is an image in one file that keeps the device in chunks (UDSP calls
// them bands), where a table says which chunk lies where. Transfers look their
// chunks up, allocate under a short lock those that are missing, and move all
// that lies together in the file in one call.
type mapped struct {
	gate
	path   string
	opts   OpenOptions
	f      store
	chunk  int64
	size   int64 // of the device, guarded by gate
	layout layout
	turns  turns
	fate   fate
}

// layout is a format's table of chunks. Chunks are counted from 0, and callers
// ask only for those inside the device. Unless said otherwise its methods may
// be called concurrently.
type layout interface {
	format() string
	// find tells where in the file chunk i begins; 0: nowhere, it reads as
	// zeros. A chunk that is partly written has sectors that read as zeros
	// whatever lies in the file: it is read with readPartly, and made whole
	// with settle before it is written.
	find(i int64) (at int64, partly bool)
	// gap is how many chunks from i on are known at once to have no place, some
	// of them perhaps behind the device; 0 if i has one.
	gap(i int64) int64
	readPartly(i int64, p []byte, in int64) error
	settle(i int64) error
	// hold keeps chunks first to last where they are until release.
	hold(first, last int64)
	release(first, last int64)
	// claim gives a place that reads as zeros to each of chunks first to last
	// that has none, or to none of them after an error.
	claim(first, last int64) error
	// drop gives chunk i up. Layouts that cannot say that drops is false.
	drops() bool
	drop(i int64) error
	// commit makes durable what was written and claimed before the call, in
	// an order that leaves a sound container at any moment. One call at a time.
	commit() error
	// count is how many chunks have a place.
	count() int
	// compact drops the chunks for which keep is false, moves those at the end
	// of the file down and cuts it. Called alone and after commit.
	compact(keep func(i int64) (bool, error)) error
	// resize is called alone and after commit.
	resize(size int64) error
}

var (
	_ Image           = (*mapped)(nil)
	_ blockdev.Padder = (*mapped)(nil)
	_ Resident        = (*mapped)(nil)
)

// mappedRun is the most chunks that one step of a transfer spans.
const mappedRun = 64

// change begins a call that changes n bytes from off; leave with m.RUnlock.
func (m *mapped) change(off, n int64) error {
	if err := m.enter(m.path); err != nil {
		return err
	}
	err := m.writable()
	if err == nil {
		err = blockdev.CheckRange(off, n, m.size)
	}
	if err != nil {
		m.RUnlock()
	}
	return err
}

func (m *mapped) writable() error {
	if m.opts.ReadOnly {
		return fmt.Errorf("changing %q: %w", m.path, ErrReadOnly)
	}
	return nil
}

func (m *mapped) ReadAt(p []byte, off int64) (done int, err error) {
	if err := m.enter(m.path); err != nil {
		return 0, err
	}
	defer m.RUnlock()
	p, cut, err := clip(p, off, m.size)
	for done < len(p) && err == nil {
		var n int
		n, err = m.readRun(p[done:], off+int64(done))
		done += n
	}
	return eof(cut, done, err)
}

// run is what of n bytes from off one step moves: up to and with which chunk,
// and how many bytes.
func (m *mapped) run(off, n int64) (first, last, part int64) {
	first = off / m.chunk
	last = min((off+n-1)/m.chunk, first+mappedRun-1)
	return first, last, min(n, (last+1)*m.chunk-off)
}

// extent is how many of n bytes from off lie together in the file, and where;
// at is 0 for bytes that lie nowhere.
func (m *mapped) extent(off, n int64) (at, part int64, partly bool) {
	i, in := off/m.chunk, off%m.chunk
	first, partly := m.layout.find(i)
	part = min(n, m.chunk-in)
	for k := int64(1); part < n && !partly; k++ {
		next, odd := m.layout.find(i + k)
		if odd || (next == 0) != (first == 0) || first != 0 && next != first+k*m.chunk {
			break
		}
		part = min(n, part+m.chunk)
	}
	if first != 0 {
		first += in
	}
	return first, part, partly
}

func (m *mapped) readRun(p []byte, off int64) (done int, err error) {
	first, last, n := m.run(off, int64(len(p)))
	p = p[:n]
	m.layout.hold(first, last)
	defer m.layout.release(first, last)
	for done < len(p) {
		at, n, partly := m.extent(off+int64(done), int64(len(p)-done))
		part, k := p[done:done+int(n)], int(n)
		switch {
		case at == 0:
			clear(part)
		case partly:
			in := off + int64(done)
			err = m.layout.readPartly(in/m.chunk, part, in%m.chunk)
		default:
			k, err = m.f.ReadAt(part, at)
		}
		if errors.Is(err, io.EOF) && k == len(part) {
			err = nil
		}
		if errors.Is(err, io.EOF) {
			// Somebody cut the file: zeros here would be an invention.
			return done + k, fmt.Errorf("reading %q: file ends inside a chunk at %d: %w", m.path, at+int64(k), ErrCorrupt)
		}
		if err != nil {
			return done, err
		}
		done += k
	}
	return done, nil
}

func (m *mapped) WriteAt(p []byte, off int64) (int, error) {
	if err := m.change(off, int64(len(p))); err != nil {
		return 0, err
	}
	defer m.RUnlock()
	return m.write(p, off, 0)
}

// WritePadded implements [blockdev.Padder], where data and padding end in the
// same chunk.
func (m *mapped) WritePadded(p []byte, off int64, pad int) (int, error) {
	end := off + int64(len(p))
	if err := m.change(off, int64(len(p))+int64(pad)); err != nil {
		return 0, err
	}
	defer m.RUnlock()
	if len(p) == 0 || pad < 0 || (end-1)/m.chunk != (end+int64(pad)-1)/m.chunk {
		return 0, errors.ErrUnsupported
	}
	return m.write(p, off, pad)
}

func (m *mapped) write(p []byte, off int64, pad int) (done int, err error) {
	for done < len(p) && err == nil {
		var n int
		n, err = m.writeRun(p[done:], off+int64(done), pad)
		done += n
	}
	return done, err
}

// writeRun writes the start of p, and the padding if it comes to the end of p.
func (m *mapped) writeRun(p []byte, off int64, pad int) (done int, err error) {
	first, last, n := m.run(off, int64(len(p)))
	if n < int64(len(p)) {
		p, pad = p[:n], 0
	}
	if err := m.prepare(first, last); err != nil {
		return 0, err
	}
	defer m.layout.release(first, last)
	for done < len(p) {
		at, n, _ := m.extent(off+int64(done), int64(len(p)-done))
		part, zeros := p[done:done+int(n)], 0
		if done+int(n) == len(p) {
			zeros = pad
		}
		k, err := m.f.WritePadded(part, at, zeros)
		if done += k; err != nil {
			return done, err
		}
	}
	return done, nil
}

// prepare holds the chunks and sees to it that all have a place to be written.
func (m *mapped) prepare(first, last int64) error {
	for {
		m.layout.hold(first, last)
		missing, odd := false, int64(-1)
		for i := first; i <= last; i++ {
			at, partly := m.layout.find(i)
			missing = missing || at == 0
			if partly {
				odd = i
			}
		}
		if odd < 0 {
			var err error
			if missing {
				err = m.layout.claim(first, last)
			}
			if err != nil {
				m.layout.release(first, last)
			}
			return err
		}
		m.layout.release(first, last)
		if err := m.layout.settle(odd); err != nil {
			return err
		}
	}
}

func (m *mapped) Size() int64 {
	m.RLock()
	defer m.RUnlock()
	return m.size
}

func (m *mapped) Cache() hostio.CacheMode { return m.f.Cache() }
func (m *mapped) Format() string          { return m.layout.format() }
func (m *mapped) BandSize() int64         { return m.chunk }

// enter begins a call under the shared gate.
func (g *gate) enter(path string) error {
	g.RLock()
	if g.closed {
		g.RUnlock()
		return fmt.Errorf("using %q: %w", path, fs.ErrClosed)
	}
	return nil
}

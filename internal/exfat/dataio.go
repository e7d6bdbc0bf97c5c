package exfat

import (
	"errors"
	"io"
	"sync"
	"unsafe"
)

// scratch is one block, aligned for direct I/O.
type scratch struct {
	raw [2*block - 1]byte
}

func (s *scratch) block() []byte {
	off := -uintptr(unsafe.Pointer(&s.raw)) % block
	return s.raw[off : off+block : off+block]
}

var scratches = sync.Pool{New: func() any { return new(scratch) }}

// tailStart is where the last, incomplete block of a transfer [off, end) that ends at the end of the file begins; end if
// there is none that could be done as a whole block.
func (n *node) tailStart(off, end int64) int64 {
	start := end &^ (block - 1)
	if !n.v.pageable || start < off || start == end || end != n.size.Load() {
		return end
	}
	return start
}

// put writes p at off, one call to the device for each extent, and the tail padded with zeros to a whole block: what
// lies behind the end of the file in its last cluster belongs to nobody.
func (n *node) put(p []byte, off int64) (int, error) {
	end := off + int64(len(p))
	tail := n.tailStart(off, end)
	if tail == end {
		return n.putWhole(p, off)
	}
	if done, err := n.putPadded(p, off, end); !errors.Is(err, errors.ErrUnsupported) {
		return done, err
	}
	done, err := n.putWhole(p[:tail-off], off)
	if err != nil {
		return done, err
	}
	n.grow.Lock()
	defer n.grow.Unlock()
	if n.size.Load() != end { // grown meanwhile: the padding is no longer ours
		more, err := n.putWhole(p[done:], tail)
		return done + more, err
	}
	s := scratches.Get().(*scratch)
	defer scratches.Put(s)
	b := s.block()
	clear(b[copy(b, p[done:]):])
	if _, err := n.putWhole(b, tail); err != nil {
		return done, err
	}
	return len(p), nil
}

// putPadded is put in one call to the device, where that can pad and data and padding lie in one extent; elsewhere it
// gives errors.ErrUnsupported.
func (n *node) putPadded(p []byte, off, end int64) (int, error) {
	extents := *n.extents.Load()
	e := &extents[find(extents, off)]
	in, pad := off-e.File, alignUp(end, block)-end
	if n.v.padder == nil || e.Length-in < int64(len(p))+pad {
		return 0, errors.ErrUnsupported
	}
	n.grow.Lock()
	defer n.grow.Unlock()
	if n.size.Load() != end {
		return 0, errors.ErrUnsupported
	}
	return n.v.padder.WritePadded(p, e.Device+in, int(pad))
}

func (n *node) putWhole(p []byte, off int64) (done int, err error) {
	extents := *n.extents.Load()
	for done < len(p) {
		e := &extents[find(extents, off)]
		in := off - e.File
		part := p[done:min(len(p), done+int(min(e.Length-in, int64(len(p)))))]
		w, err := n.v.dev.WriteAt(part, e.Device+in)
		done += w
		if err != nil {
			return done, err
		}
		off += int64(len(part))
	}
	return done, nil
}

// get reads p from off; all of it must be valid data. The tail is not treated apart as in put: devices read lengths that
// are no multiple of a block in one call, too.
func (n *node) get(p []byte, off int64) error {
	extents := *n.extents.Load()
	for len(p) > 0 {
		e := &extents[find(extents, off)]
		in := off - e.File
		part := p[:min(int64(len(p)), e.Length-in)]
		if r, err := n.v.dev.ReadAt(part, e.Device+in); r < len(part) {
			if err == nil || err == io.EOF {
				err = io.ErrUnexpectedEOF
			}
			return err
		}
		p, off = p[len(part):], off+int64(len(part))
	}
	return nil
}

// readSparse reads from a file that is not valid to the end of p: what was never written is zeros.
func (n *node) readSparse(p []byte, off int64) error {
	end := off + int64(len(p))
	n.mu.Lock()
	spans := append([]span{{0, n.valid.Load()}}, n.pending...)
	n.mu.Unlock()
	at := off
	for _, s := range spans {
		from, to := max(s.from, at), min(s.to, end)
		if from >= to {
			continue
		}
		clear(p[at-off : from-off])
		if err := n.get(p[from-off:to-off], from); err != nil {
			return err
		}
		at = to
	}
	clear(p[at-off:])
	return nil
}

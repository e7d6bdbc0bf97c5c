package exfat

import (
	"errors"
	"fmt"
	"io"
	"math"
	"sync"
	"sync/atomic"
	"unsafe"

	"dmgbench/internal/image/blockdev"
	"dmgbench/internal/system/units"
)

// File is a handle of an open file. Its methods may be called from many
// goroutines; reads and writes of one file or of many do not wait for one
// another.
type File struct {
	n      *node
	name   string
	closed atomic.Bool
}

// fail adds the operation and the file to an error, without the cost of a
// deferred call on the data path.
func (f *File) fail(doing string, err error) error {
	return fmt.Errorf("%s %q: %w", doing, f.name, err)
}

// Name is the path with which the file was opened.
func (f *File) Name() string { return f.name }

// Size is the length of the file in bytes.
func (f *File) Size() int64 { return f.n.size.Load() }

// ReadAt implements io.ReaderAt. What was never written reads as zeros.
func (f *File) ReadAt(p []byte, off int64) (int, error) {
	if f.closed.Load() {
		return 0, f.fail("reading", ErrClosed)
	}
	if off < 0 {
		return 0, f.fail("reading", blockdev.ErrOutOfRange)
	}
	n := f.n
	n.io.RLock()
	defer n.io.RUnlock()
	size := n.size.Load()
	want := len(p)
	if off >= size {
		if want == 0 {
			return 0, nil
		}
		return 0, io.EOF
	}
	p = p[:min(int64(want), size-off)]
	var err error
	if off+int64(len(p)) <= n.valid.Load() {
		err = n.get(p, off)
	} else {
		err = n.readSparse(p, off)
	}
	if err != nil {
		return 0, f.fail("reading", err)
	}
	if len(p) < want {
		return len(p), io.EOF
	}
	return len(p), nil
}

// WriteAt implements io.WriterAt. It grows the file if it must; ErrNoSpace
// leaves the file as it was.
func (f *File) WriteAt(p []byte, off int64) (int, error) {
	if f.closed.Load() {
		return 0, f.fail("writing", ErrClosed)
	}
	if off < 0 || off > math.MaxInt64-int64(len(p)) {
		return 0, f.fail("writing", blockdev.ErrOutOfRange)
	}
	if len(p) == 0 {
		return 0, nil
	}
	n := f.n
	if err := n.v.markDirty(); err != nil {
		return 0, f.fail("writing", err)
	}
	n.io.RLock()
	defer n.io.RUnlock()
	if end := off + int64(len(p)); end > n.size.Load() {
		if err := n.growTo(end); err != nil {
			return 0, f.fail("writing", err)
		}
	}
	done, err := n.put(p, off)
	n.published(off, off+int64(done))
	if err != nil {
		return done, f.fail("writing", err)
	}
	return done, nil
}

// markDirty sets the dirty flag of the volume before its first change; later calls
// cost one atomic load.
func (v *Volume) markDirty() error {
	if v.marked.Load() {
		return nil
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	return v.touch()
}

// Sync makes the file durable: data, then FAT and bitmap, then the directory
// entry. A file with the same size and place costs one flush of the device,
// others two, and three after a move between directories. If only the modification
// time changed, Sync does not write the directory entry.
func (f *File) Sync() (err error) {
	defer annotate(&err, "synchronising %q", f.name)
	if f.closed.Load() {
		return ErrClosed
	}
	n, v := f.n, f.n.v
	if err := n.fillGaps(); err != nil {
		return err
	}
	v.mu.Lock()
	changed := v.persist(n, false)
	want := n.e.gen
	v.mu.Unlock()
	if !changed { // else commit flushes the data
		if err := v.dev.Flush(); err != nil {
			return err
		}
	}
	return v.commit(want)
}

// Close releases the handle. The directory entry is brought up to date in memory;
// only Sync makes it durable. The last Close of a removed file frees its clusters.
func (f *File) Close() (err error) {
	defer annotate(&err, "closing %q", f.name)
	if f.closed.Swap(true) {
		return ErrClosed
	}
	n, v := f.n, f.n.v
	err = n.fillGaps()
	v.mu.Lock()
	defer v.mu.Unlock()
	n.refs--
	v.open--
	if !v.readOnly {
		v.persist(n, true)
	}
	if n.refs == 0 {
		if n.e.node = nil; n.removed {
			v.discardLater(v.g.runs(*n.extents.Load()))
			v.changed()
		}
	}
	return err
}

// Truncate changes the size. What a larger size adds reads as zeros. A smaller size
// is durable when the call returns, and the clusters that were cut off can be used
// again.
func (f *File) Truncate(size int64) (err error) {
	defer annotate(&err, "truncating %q", f.name)
	if f.closed.Load() {
		return ErrClosed
	}
	if size < 0 {
		return blockdev.ErrOutOfRange
	}
	n := f.n
	if err := n.v.markDirty(); err != nil {
		return err
	}
	n.io.Lock()
	defer n.io.Unlock()
	if err := n.growTo(size); err != nil || size >= n.size.Load() { // growTo never makes a file shorter
		return err
	}
	return n.shrinkTo(size)
}

// shrinkTo cuts the file. The shorter entry is on the device before the
// clusters are freed and the chain is cut: in the other order a crash would
// leave an entry that names clusters of another file. If the commit fails, the
// clusters are freed by the next one.
func (n *node) shrinkTo(size int64) error {
	v := n.v
	keep, rest := cut(*n.extents.Load(), v.g.clustersFor(size)*v.g.clusterSize())
	n.mu.Lock()
	n.valid.Store(min(n.valid.Load(), size))
	var spans []span
	for _, s := range n.pending {
		if s.from < size {
			spans = append(spans, span{s.from, min(s.to, size)})
		}
	}
	n.pending = spans
	n.markWritten()
	n.mu.Unlock()
	v.mu.Lock()
	n.size.Store(size)
	n.extents.Store(&keep)
	n.noChain = n.noChain && len(keep) > 0
	v.persist(n, true)
	want := n.e.gen
	v.mu.Unlock()
	if len(rest) == 0 {
		return nil
	}
	err := v.commit(want)
	v.mu.Lock()
	defer v.mu.Unlock()
	if err != nil {
		v.discardLater(v.g.runs(rest))
		return err
	}
	v.alloc.release(v.g.runs(rest))
	v.changed()
	if len(keep) == 0 || n.noChain {
		return nil
	}
	return v.fat.set(lastCluster(v.g.runs(keep)), endOfChain)
}

// Extents returns the places of the file on the device, in the order of the
// file.
func (f *File) Extents() []Extent {
	return append([]Extent(nil), *f.n.extents.Load()...)
}

// Evict drops the host's cache of the file's clusters. It returns
// errors.ErrUnsupported if the device has no such operation.
func (f *File) Evict() (err error) {
	defer annotate(&err, "evicting %q", f.name)
	ev, ok := f.n.v.dev.(blockdev.Evicter)
	if !ok {
		return errors.ErrUnsupported
	}
	for _, e := range f.Extents() {
		if err := ev.Evict(e.Device, e.Length); err != nil {
			return err
		}
	}
	return nil
}

// scratch is one block, aligned for direct I/O.
type scratch struct {
	raw [2*block - 1]byte
}

// block is the aligned part of the memory.
func (s *scratch) block() []byte {
	off := -uintptr(unsafe.Pointer(&s.raw)) % block
	return s.raw[off : off+block : off+block]
}

var scratches = sync.Pool{New: func() any { return new(scratch) }}

// put writes p at off, one call to the device for each extent. A write up to the end
// of the file is padded with zeros to a whole block, so that devices opened for
// direct I/O get whole blocks: the rest of the last cluster after the end of the
// file is unused. Where the device cannot pad, the last block is a call of its own.
func (n *node) put(p []byte, off int64) (int, error) {
	end := off + int64(len(p))
	tail := end &^ (block - 1) // the last, incomplete block
	if !n.v.pageable || tail < off || tail == end || end != n.size.Load() {
		return n.putUnpadded(p, off)
	}
	if done, err := n.putPadded(p, off, end); !errors.Is(err, errors.ErrUnsupported) {
		return done, err
	}
	done, err := n.putUnpadded(p[:tail-off], off)
	if err != nil {
		return done, err
	}
	n.grow.Lock()
	defer n.grow.Unlock()
	if n.size.Load() != end { // grown meanwhile: the padding would overwrite data
		more, err := n.putUnpadded(p[done:], tail)
		return done + more, err
	}
	s := scratches.Get().(*scratch)
	defer scratches.Put(s)
	b := s.block()
	clear(b[copy(b, p[done:]):])
	if _, err := n.putUnpadded(b, tail); err != nil {
		return done, err
	}
	return len(p), nil
}

// putPadded writes p and its padding in one call to the device. It returns
// errors.ErrUnsupported, with nothing written, if the device cannot pad, if p and
// the padding do not fit in one extent, or if the file has grown meanwhile.
func (n *node) putPadded(p []byte, off, end int64) (int, error) {
	extents := *n.extents.Load()
	e := &extents[find(extents, off)]
	in, pad := off-e.File, units.RoundUp(end, block)-end
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

// putUnpadded writes p at off without padding.
func (n *node) putUnpadded(p []byte, off int64) (int, error) {
	return transfer(n.v.dev.WriteAt, *n.extents.Load(), p, off)
}

// get reads p from off; all of it must be valid data. Unlike put it does not
// treat the tail separately: devices read any length in one call.
func (n *node) get(p []byte, off int64) error {
	_, err := transfer(n.v.dev.ReadAt, *n.extents.Load(), p, off)
	return err
}

// readSparse reads from a file that is not valid to the end of p: what was
// never written is zeros.
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

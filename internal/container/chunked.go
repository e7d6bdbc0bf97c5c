package container

import (
	"errors"
	"fmt"
	"io"
	"sync"
	"sync/atomic"

	"dmgbench/internal/blockdev"
	"dmgbench/internal/container/udif"
)

// chunked is an image in one file that stores the device in chunks (bands, in
// UDSP) at places that a map gives. A transfer looks its chunks up, allocates
// those without a place under a short lock, and moves all chunks that are
// adjacent in the file with one call.
type chunked struct {
	fileDevice
	chunks  chunkMap
	partial partialChunks // the same map, nil if the format has only whole chunks
	locks   [chunkLocks]sync.RWMutex
	flushes coalescer
}

// chunkMap is a format's table of chunks. Chunks are counted from 0, and
// callers ask only for those inside the device. Unless stated otherwise its
// methods may be called concurrently.
type chunkMap interface {
	format() string
	// find returns the offset in the file of chunk i, 0 for a chunk without a
	// place, which reads as zeros, and whether the chunk is partial (see
	// partialChunks).
	find(i int64) (at int64, partial bool)
	// unmapped is a number of chunks from i on that have no place, some of them
	// perhaps after the end of the device; 0 if chunk i has one.
	unmapped(i int64) int64
	// allocate gives a place that reads as zeros to each of chunks first to
	// last without one, or to none after an error.
	allocate(first, last int64) error
	// commit makes durable what was written and allocated before the call, in
	// an order in which the file is a valid container at any moment. One call
	// at a time.
	commit() error
	// count is how many chunks have a place.
	count() int
	// compact drops the chunks for which keep returns false, moves chunks from
	// the end of the file forward and cuts the file. Called alone and after
	// commit.
	compact(keep func(i int64) (bool, error)) error
	// resize is called alone and after commit.
	resize(size int64) error
	// findings are defects that opening ignores.
	findings() ([]Finding, error)
}

// partialChunks is implemented by maps of formats with partial chunks, in which
// a bitmap marks the written sectors; the others read as zeros whatever the
// file contains. Such formats can unmap a chunk, too. The caller of complete
// and drop has locked chunk i.
type partialChunks interface {
	readPartial(i int64, p []byte, in int64) error
	// complete fills chunk i with zeros where it was not written, and marks it
	// as whole.
	complete(i int64) error
	// drop unmaps chunk i.
	drop(i int64) error
}

var (
	_ Image             = (*chunked)(nil)
	_ ResidencyReporter = (*chunked)(nil)
	_ udif.Map          = (*chunked)(nil)
)

const (
	stepChunks = 64             // most chunks that one step of a transfer covers
	chunkLocks = 4 * stepChunks // more than a step covers, so that a step takes no lock twice
)

// openChunked opens the map in f; f stays the caller's after an error.
func openChunked(f store, format string, o OpenOptions) (*chunked, error) {
	load := openUDSP
	if format == ASIF {
		load = openASIF
	}
	chunks, chunk, size, err := load(syncStore{f, o.sync()}, o.ReadOnly)
	if what, ok := errors.AsType[*unknownError](err); ok {
		return nil, &UnsupportedError{Path: f.Path(), Found: what.what, Doing: "opening"}
	}
	if err != nil {
		return nil, err
	}
	c := &chunked{fileDevice: fileDevice{device{path: f.Path(), opts: o, chunk: chunk, size: size}, f}, chunks: chunks}
	c.partial, _ = chunks.(partialChunks)
	c.layout = c
	return c, nil
}

// Format implements [Image].
func (c *chunked) Format() string { return c.chunks.format() }

// hold keeps chunks first to last in their places until release. It takes the
// locks in the order of their numbers, as every caller that takes more than one
// must.
func (c *chunked) hold(first, last int64) {
	if c.partial == nil {
		return // places never change
	}
	low, high := first%chunkLocks, last%chunkLocks
	if low > high {
		for i := range high + 1 {
			c.locks[i].RLock()
		}
		high = chunkLocks - 1
	}
	for i := low; i <= high; i++ {
		c.locks[i].RLock()
	}
}

// release ends hold.
func (c *chunked) release(first, last int64) {
	if c.partial == nil {
		return
	}
	for i := first; i <= last; i++ {
		c.locks[i%chunkLocks].RUnlock()
	}
}

// locked calls do while no transfer uses chunk i.
func (c *chunked) locked(i int64, do func(i int64) error) error {
	lock := &c.locks[i%chunkLocks]
	lock.Lock()
	defer lock.Unlock()
	return do(i)
}

// step is the part of n bytes from off that one step moves: its first and last
// chunk, and its bytes.
func (c *chunked) step(off, n int64) (first, last, part int64) {
	first = off / c.chunk
	last = min((off+n-1)/c.chunk, first+stepChunks-1)
	return first, last, min(n, (last+1)*c.chunk-off)
}

// extent is how many of n bytes from off are adjacent in the file, and where;
// at is 0 for bytes without a place.
func (c *chunked) extent(off, n int64) (at, part int64, partial bool) {
	i, in, part := c.locate(off, n)
	first, partial := c.chunks.find(i)
	for k := int64(1); part < n && !partial; k++ {
		next, odd := c.chunks.find(i + k)
		if odd || (next == 0) != (first == 0) || first != 0 && next != first+k*c.chunk {
			break
		}
		part = min(n, part+c.chunk)
	}
	if first != 0 {
		first += in
	}
	return first, part, partial
}

// readAt implements layout.
func (c *chunked) readAt(p []byte, off int64) (done int, err error) {
	for done < len(p) && err == nil {
		var n int
		n, err = c.readStep(p[done:], off+int64(done))
		done += n
	}
	return done, err
}

// readStep reads the start of p.
func (c *chunked) readStep(p []byte, off int64) (done int, err error) {
	first, last, n := c.step(off, int64(len(p)))
	p = p[:n]
	c.hold(first, last)
	defer c.release(first, last)
	for done < len(p) {
		at, n, partial := c.extent(off+int64(done), int64(len(p)-done))
		part, k := p[done:done+int(n)], int(n)
		switch {
		case at == 0:
			clear(part)
		case partial:
			i, in, _ := c.locate(off+int64(done), n)
			err = c.partial.readPartial(i, part, in)
		default:
			k, err = c.f.ReadAt(part, at)
		}
		if errors.Is(err, io.EOF) && k == len(part) {
			err = nil
		}
		if errors.Is(err, io.EOF) {
			// The file was cut by another program: zeros would be invented
			// data.
			err = fmt.Errorf("reading %q: file ends inside a chunk at %d: %w", c.path, at+int64(k), ErrCorrupt)
			return done + k, err
		}
		if err != nil {
			return done, err
		}
		done += k
	}
	return done, nil
}

// writeAt implements layout.
func (c *chunked) writeAt(p []byte, off int64, pad int) (done int, err error) {
	for done < len(p) && err == nil {
		var n int
		n, err = c.writeStep(p[done:], off+int64(done), pad)
		done += n
	}
	return done, err
}

// writeStep writes the start of p, and the padding if it reaches the end of p.
func (c *chunked) writeStep(p []byte, off int64, pad int) (done int, err error) {
	first, last, n := c.step(off, int64(len(p)))
	if n < int64(len(p)) {
		p, pad = p[:n], 0
	}
	if err := c.prepare(first, last); err != nil {
		return 0, err
	}
	defer c.release(first, last)
	for done < len(p) {
		at, n, _ := c.extent(off+int64(done), int64(len(p)-done))
		part, zeros := p[done:done+int(n)], 0
		if done+int(n) == len(p) {
			zeros = pad
		}
		k, err := c.f.WritePadded(part, at, zeros)
		if done += k; err != nil {
			return done, err
		}
	}
	return done, nil
}

// prepare holds the chunks and makes sure that each has a place and is not
// partial.
func (c *chunked) prepare(first, last int64) error {
	for {
		c.hold(first, last)
		missing, odd := false, int64(-1)
		for i := first; i <= last; i++ {
			at, partial := c.chunks.find(i)
			missing = missing || at == 0
			if partial {
				odd = i
			}
		}
		if odd < 0 {
			var err error
			if missing {
				err = c.chunks.allocate(first, last)
			}
			if err != nil {
				c.release(first, last)
			}
			return err
		}
		c.release(first, last)
		if err := c.locked(odd, c.partial.complete); err != nil {
			return err
		}
	}
}

// discard drops the chunks that are entirely in the range, where the format
// can, and punches the rest.
func (c *chunked) discard(off, n int64) error {
	for n > 0 {
		part, err := c.discardStep(off, n)
		if err != nil {
			return err
		}
		off, n = off+part, n-part
	}
	return nil
}

// discardStep discards the start of the range and returns its length.
func (c *chunked) discardStep(off, n int64) (int64, error) {
	if c.partial != nil {
		i, in, part := c.locate(off, n)
		if capacity := c.capacity(i); in == 0 && n >= capacity {
			return capacity, c.locked(i, c.partial.drop)
		}
		n = part
	}
	first, last, n := c.step(off, n)
	c.hold(first, last)
	defer c.release(first, last)
	at, n, _ := c.extent(off, n)
	if at == 0 {
		return n, nil
	}
	return n, c.f.PunchHole(at, n)
}

// flush makes the data durable before the table that refers to it.
func (c *chunked) flush() error {
	err := c.flushes.do(func() error {
		if err := c.failed.get(); err != nil {
			return err
		}
		if err := c.chunks.commit(); err != nil {
			return c.failed.set(err)
		}
		return nil
	})
	if err != nil {
		return err
	}
	return c.f.Check()
}

// eachExtent calls do for the parts of n bytes from off that have a place in
// the file.
func (c *chunked) eachExtent(off, n int64, do func(at, n int64) error) error {
	for n > 0 {
		at, part, _ := c.extent(off, n)
		if at != 0 {
			if err := do(at, part); err != nil {
				return err
			}
		}
		off, n = off+part, n-part
	}
	return nil
}

// evict implements layout.
func (c *chunked) evict(off, n int64) error { return c.eachExtent(off, n, c.f.EvictRange) }

// Resident implements [ResidencyReporter].
func (c *chunked) Resident(off, n int64) (share float64, err error) {
	if err := c.enterRange(off, n, false); err != nil || n == 0 {
		if err == nil {
			c.mu.RUnlock()
		}
		return 0, err
	}
	defer c.mu.RUnlock()
	err = c.eachExtent(off, n, func(at, part int64) error {
		s, err := c.f.Resident(at, part)
		share += s * float64(part)
		return err
	})
	return share / float64(n), err
}

// usage counts chunks as bands. The host does not report which of them have
// holes: all are full, or in a sparse file none.
func (c *chunked) usage() (Usage, error) {
	u, err := c.fileDevice.usage()
	if err != nil {
		return Usage{}, err
	}
	u.Bands = c.chunks.count()
	if u.Allocated >= u.Apparent {
		u.BandsFull = u.Bands
	}
	return u, nil
}

// Compact drops chunks and shortens the file; see [Image].
func (c *chunked) Compact(used func(off, n int64) bool) (reclaimed int64, err error) {
	if err := c.lockAlone("compacting"); err != nil {
		return 0, err
	}
	defer c.mu.Unlock()
	if err := c.flush(); err != nil {
		return 0, err
	}
	before, err := c.f.Stat()
	if err != nil {
		return 0, err
	}
	err = c.chunks.compact(func(i int64) (bool, error) {
		if used != nil {
			return used(i*c.chunk, c.capacity(i)), nil
		}
		zero, err := readsAsZeros(io.NewSectionReader(readerAt(c.readAt), i*c.chunk, c.capacity(i)), c.capacity(i))
		return !zero, err
	})
	after, e := c.f.Stat()
	if err = errors.Join(err, e); err != nil {
		// The state of file and table is known only after the next opening.
		return max(before.Allocated-after.Allocated, 0), c.failed.set(err)
	}
	return max(before.Allocated-after.Allocated, 0), c.f.Check()
}

// readerAt makes an [io.ReaderAt] of a function.
type readerAt func(p []byte, off int64) (int, error)

// ReadAt implements [io.ReaderAt].
func (r readerAt) ReadAt(p []byte, off int64) (int, error) { return r(p, off) }

// resize implements layout. After an error of the host the state of the file is
// known only after the next opening.
func (c *chunked) resize(size int64) error {
	if err := c.flush(); err != nil {
		return err
	}
	if size > c.size {
		if err := checkEncryptedSize(c.f, size); err != nil {
			return err
		}
	}
	if err := c.chunks.resize(size); err != nil {
		if !errors.Is(err, errBadSize) {
			err = c.failed.set(err)
		}
		return err
	}
	c.size = size
	return c.f.Check()
}

// errBadSize is returned for sizes that a format cannot have, before any
// change.
var errBadSize = errors.New("not a size that this kind of container can have")

// Next implements [udif.Map]: chunks without a place are zeros.
func (c *chunked) Next(off int64) (end int64, state udif.State) {
	c.mu.RLock()
	defer c.mu.RUnlock()
	first, last := off/c.chunk, ceil(c.size, c.chunk)
	i := first
	for i < last {
		n := c.chunks.unmapped(i)
		if n == 0 {
			break
		}
		i += n
	}
	state = udif.StateZero
	if i == first {
		state = udif.StateData
		for i++; i < min(first+stepChunks, last) && c.chunks.unmapped(i) == 0; i++ {
		}
	}
	return min(min(i, last)*c.chunk, c.size), state
}

var _ blockdev.Padder = (*chunked)(nil)

// pageLen is how many chunks a page of a table covers.
const pageLen = 512

// pagedTable maps chunks to numbers, 0 where none was stored. It takes memory
// only around stored numbers, and a lookup waits for no store.
type pagedTable struct {
	mu    sync.RWMutex
	pages map[int64]*[pageLen]atomic.Int64
}

// page returns the page of chunk i, nil if it has none.
func (t *pagedTable) page(i int64) *[pageLen]atomic.Int64 {
	t.mu.RLock()
	defer t.mu.RUnlock()
	return t.pages[i/pageLen]
}

// get returns the number of chunk i.
func (t *pagedTable) get(i int64) int64 {
	p := t.page(i)
	if p == nil {
		return 0
	}
	return p[i%pageLen].Load()
}

// set stores the number of chunk i.
func (t *pagedTable) set(i, v int64) {
	p := t.page(i)
	if p == nil {
		t.mu.Lock()
		if t.pages == nil {
			t.pages = map[int64]*[pageLen]atomic.Int64{}
		}
		if p = t.pages[i/pageLen]; p == nil {
			p = new([pageLen]atomic.Int64)
			t.pages[i/pageLen] = p
		}
		t.mu.Unlock()
	}
	p[i%pageLen].Store(v)
}

// clear removes all numbers.
func (t *pagedTable) clear() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.pages = nil
}

package container

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"slices"
	"sync"
	"sync/atomic"

	"dmgbench/internal/image/container/udif"
)

// chunked is an image in one file that stores the device in chunks (bands, in
// UDSP) at places that a map gives. A transfer looks its chunks up, allocates
// those without a place under a short lock, and moves all chunks that are
// adjacent in the file with one call. Places change only while no transfer
// runs.
type chunked struct {
	fileDevice
	format string
	chunks chunkMap
	asif   *asif // the same map, nil for UDSP, where no chunk is partial

	calls   atomic.Int64 // of flush
	commits sync.Mutex   // held by the commit that runs
	covered int64        // how many of calls the last commit covers
}

// chunkMap is a format's table of chunks. Chunks are counted from 0, and
// callers ask only for those inside the device. Unless stated otherwise its
// methods may be called concurrently.
type chunkMap interface {
	// geometry returns the bytes of a chunk and of the device. Called alone.
	geometry() (chunk, size int64)
	// find returns the offset in the file of chunk i, 0 for a chunk without a
	// place, which reads as zeros, and whether the chunk is partial: a bitmap
	// marks the written sectors.
	find(i int64) (at int64, partial bool)
	// list returns the numbers of the chunks that have a place, in order.
	list() []int64
	// allocate gives a place that reads as zeros to each of chunks first to
	// last without one, or to none after an error.
	allocate(first, last int64) error
	// commit makes durable what was written and allocated before the call, in
	// an order in which the file is a valid container at any moment. One call
	// at a time.
	commit() error
	// compact drops the chunks for which keep returns false and cuts the file.
	// Called alone and after commit.
	compact(keep func(i int64) (bool, error)) error
	// resize is called alone and after commit.
	resize(size int64) error
}

// openChunked opens the map in f; f stays the caller's after an error.
func openChunked(f store, format string, o OpenOptions) (*chunked, error) {
	chunks, err := drivers[format].chunks(syncStore{f, o.sync()}, o.ReadOnly)
	if unknown, ok := errors.AsType[*UnsupportedError](err); ok {
		unknown.Path = f.Path()
		return nil, unknown
	}
	if err != nil {
		return nil, err
	}
	c := &chunked{fileDevice: fileDevice{device{path: f.Path(), opts: o}, f}, format: format, chunks: chunks}
	c.chunk, c.size = chunks.geometry()
	c.asif, _ = chunks.(*asif)
	c.layout = c
	return c, nil
}

// Format implements [Image].
func (c *chunked) Format() string { return c.format }

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
		at, n, partial := c.extent(off+int64(done), int64(len(p)-done))
		part, k := p[done:done+int(n)], int(n)
		switch {
		case at == 0:
			clear(part)
		case partial:
			i, in, _ := c.locate(off+int64(done), n)
			if err = c.asif.readPartial(i, part, in); err != nil {
				k = 0
			}
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
		}
		done += k
	}
	return done, err
}

// writeAt implements layout.
func (c *chunked) writeAt(p []byte, off int64, pad int) (done int, err error) {
	missing := false
	first, last := off/c.chunk, (off+int64(len(p))-1)/c.chunk
	for i := first; i <= last && err == nil; i++ {
		at, partial := c.chunks.find(i)
		missing = missing || at == 0
		if partial {
			err = c.asif.complete(i)
		}
	}
	if missing && err == nil {
		err = c.chunks.allocate(first, last)
	}
	for done < len(p) && err == nil {
		at, n, _ := c.extent(off+int64(done), int64(len(p)-done))
		part, zeros := p[done:done+int(n)], 0
		if done+int(n) == len(p) {
			zeros = pad
		}
		var k int
		k, err = c.f.WritePadded(part, at, zeros)
		done += k
	}
	return done, err
}

// discard implements layout. Chunks keep their places, which others may be
// looking up, until a compaction.
func (c *chunked) discard(off, n int64) error { return c.eachPlace(off, n, bandFile.PunchHole) }

// flush makes the data durable before the table that refers to it. Calls that
// wait for a commit share the next one.
func (c *chunked) flush() error {
	call := c.calls.Add(1)
	c.commits.Lock()
	err := c.failed.get()
	if err == nil && c.covered < call {
		c.covered = c.calls.Load()
		if err = c.chunks.commit(); err != nil {
			err = c.failed.set(err)
		}
	}
	c.commits.Unlock()
	return cmp.Or(err, c.f.Check())
}

// eachPlace implements layout.
func (c *chunked) eachPlace(off, n int64, do func(f bandFile, at, n int64) error) (err error) {
	for n > 0 && err == nil {
		at, part, _ := c.extent(off, n)
		if at != 0 {
			err = do(c.f, at, part)
		}
		off, n = off+part, n-part
	}
	return err
}

// usage counts chunks as bands. The host does not report which of them have
// holes: all are full, or in a sparse file none.
func (c *chunked) usage() (Usage, error) {
	u, err := c.fileDevice.usage()
	u.Bands = len(c.chunks.list())
	if u.Allocated >= u.Apparent {
		u.BandsFull = u.Bands
	}
	return u, err
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
	err := c.flush()
	if err == nil && size > c.size {
		err = checkEncryptedSize(c.f, size)
	}
	if err != nil {
		return err
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

// holes implements holeMapper: chunks without a place are zeros.
func (c *chunked) holes() udif.Map {
	c.mu.RLock()
	defer c.mu.RUnlock()
	return &chunkList{size: c.size, chunk: c.chunk, list: c.chunks.list()}
}

// chunkList is the chunks of a device that are stored, in order; everything
// outside of them is zeros.
type chunkList struct {
	size, chunk int64 // bytes
	list        []int64
}

// Next implements [udif.Map].
func (m *chunkList) Next(off int64) (end int64, state udif.State) {
	i := off / m.chunk
	k, found := slices.BinarySearch(m.list, i)
	if found {
		return min((i+1)*m.chunk, m.size), udif.StateData
	}
	if k == len(m.list) || m.list[k] >= ceil(m.size, m.chunk) {
		return m.size, udif.StateZero
	}
	return m.list[k] * m.chunk, udif.StateZero
}

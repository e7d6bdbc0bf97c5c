package udif

import (
	"cmp"
	"container/list"
	"fmt"
	"io"
	"sync"
	"sync/atomic"

	"dmgbench/internal/image/container/codec"
)

// reader is the part of an Image that serves random access.
type reader struct {
	cache   cache
	decodes chan struct{} // a token for each chunk that is decoded on demand
	aheads  chan struct{} // and in advance
	window  int           // most chunks that are decoded in advance
	latest  atomic.Int64  // the run read last, plus one
	stored  sync.Pool     // of *[]byte: payloads
	closed  atomic.Bool
	closing sync.RWMutex // against starting work while Close waits
	working sync.WaitGroup
}

// init sizes the cache and the read-ahead. The window of read-ahead takes at
// most half of the cache, so that chunks that are read now are not dropped for
// chunks that may be read later.
func (r *reader) init(im *Image) {
	r.cache.limit, r.cache.entries, r.cache.chunk = im.options.Cache, map[int]*entry{}, im.chunk
	r.decodes, r.aheads = make(chan struct{}, im.options.Workers), make(chan struct{}, im.options.Workers)
	window := cmp.Or(im.options.ReadAhead, 2*im.options.Workers)
	if im.chunk > 0 {
		window = int(min(int64(window), im.options.Cache/2/im.chunk))
	}
	r.window = max(window, 0)
}

// Close ends read-ahead and drops the cache. Reading afterwards fails with
// ErrClosed. The source stays open.
func (im *Image) Close() error {
	im.closing.Lock()
	im.closed.Store(true)
	im.closing.Unlock()
	im.working.Wait()
	im.cache.mu.Lock()
	defer im.cache.mu.Unlock()
	im.cache.trim(0)
	return nil
}

// ReadAt reads from the device. It is an io.ReaderAt: io.EOF comes with the
// bytes before the end.
func (im *Image) ReadAt(p []byte, off int64) (int, error) {
	switch {
	case im.closed.Load():
		return 0, ErrClosed
	case off < 0:
		return 0, fmt.Errorf("reading at %d: negative offset", off)
	case off >= im.Size():
		return 0, io.EOF
	}
	want := min(int64(len(p)), im.Size()-off)
	n, last := int64(0), off+want
	for i := im.find(off); n < want; i++ {
		r := &im.runs[i]
		inside := off + n - r.deviceOffset()
		part := p[n:min(want, n+r.bytes()-inside)]
		if err := im.readRun(i, part, inside, last); err != nil {
			return int(n), err
		}
		n += int64(len(part))
	}
	if want < int64(len(p)) {
		return int(n), io.EOF
	}
	return int(n), nil
}

// readRun fills p from byte inside of run i. The whole request ends at byte
// last of the device.
func (im *Image) readRun(i int, p []byte, inside, last int64) error {
	r := &im.runs[i]
	switch {
	case r.kind.hole():
		clear(p)
		return nil
	case r.kind == KindRaw:
		if err := readFull(im.src, p, int64(r.offset)+inside); err != nil {
			return fmt.Errorf("reading sector %d: %w", r.start+uint64(inside)/SectorSize, err)
		}
		im.keepSum(r, inside, p)
		return nil
	}
	im.readAhead(i, last)
	e := im.loadChunk(i, im.decodes)
	defer im.cache.release(e)
	if e.err == nil {
		copy(p, e.data[inside:])
	}
	return e.err
}

// loadChunk returns the entry of run i, which the caller releases. If it is not
// in the cache, the chunk is decoded with one of the tokens.
func (im *Image) loadChunk(i int, tokens chan struct{}) *entry {
	e, decode := im.cache.acquire(i)
	if !decode {
		<-e.ready
		return e
	}
	tokens <- struct{}{}
	defer func() { <-tokens }()
	r := &im.runs[i]
	data := im.cache.buffer(r.bytes())
	stored, _ := im.stored.Get().(*[]byte)
	if stored == nil {
		stored = new([]byte)
	}
	defer im.stored.Put(stored)
	err := im.decode(r, data, stored)
	if err == nil {
		im.keepSum(r, 0, data)
	}
	im.cache.publish(e, data, err)
	return e
}

// decode decodes a compressed run into dst, which has its length. stored is a
// buffer for the payload, made larger if needed.
func (im *Image) decode(r *run, dst []byte, stored *[]byte) error {
	if uint64(cap(*stored)) < r.length {
		*stored = make([]byte, r.length)
	}
	payload := (*stored)[:r.length]
	if err := readFull(im.src, payload, int64(r.offset)); err != nil {
		return fmt.Errorf("reading the chunk at sector %d: %w", r.start, err)
	}
	if _, err := im.options.decode(codec.ID(r.kind), dst, payload); err != nil {
		return fmt.Errorf("decoding the %s chunk at sector %d: %w: %w", r.kind, r.start, ErrCorrupt, err)
	}
	return nil
}

// strideRuns is how many runs without payload a sequential reader may pass over
// and still counts as one.
const strideRuns = 3

// readAhead starts decoding the rest of a request that reads run i and ends at
// byte last, and what a sequential reader will want next. It never waits.
func (im *Image) readAhead(i int, last int64) {
	most := min(i+im.window, len(im.runs)-1)
	to := i
	for to < most && int64(im.runs[to].end())*SectorSize < last {
		to++
	}
	if im.window == 0 || im.latest.Swap(int64(i)+1) == int64(i)+1 && to == i { // most reads stay in a run
		return
	}
	// The compressed run before this one was read lately, as by a sequential
	// reader.
	for k := i - 1; k >= max(0, i-1-strideRuns); k-- {
		if im.runs[k].kind.Compressed() {
			if im.cache.has(k) {
				to = most
			}
			break
		}
	}
	for k := i + 1; k <= to; k++ {
		if im.runs[k].kind.Compressed() && !im.cache.has(k) {
			im.start(k)
		}
	}
}

// start decodes run i in the background, unless the image is being closed.
func (im *Image) start(i int) {
	im.closing.RLock()
	defer im.closing.RUnlock()
	if im.closed.Load() {
		return
	}
	im.working.Go(func() { im.cache.release(im.loadChunk(i, im.aheads)) })
}

// cache keeps decoded chunks by the index of their run, those used last, up to
// limit bytes. A chunk is decoded once however many callers ask for it at the
// same time.
type cache struct {
	limit   int64
	chunk   int64      // bytes of the longest chunk
	mu      sync.Mutex // of the fields below, and of users and element of entries
	used    int64      // bytes of the buffers of all entries
	entries map[int]*entry
	latest  list.List // of *entry, the one used last first
	spare   sync.Pool // of *[]byte: buffers of dropped chunks
}

// entry is one chunk. data and err are set before ready is closed.
type entry struct {
	ready   chan struct{}
	data    []byte
	err     error
	index   int
	users   int           // callers between acquire and release
	element *list.Element // in latest; nil: no longer in the cache, the last user frees it
}

// acquire returns the entry of the chunk, and whether the caller has to decode
// it and publish the result. Every caller releases the entry.
func (c *cache) acquire(index int) (e *entry, decode bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if e = c.entries[index]; e != nil {
		e.users++
		c.latest.MoveToFront(e.element)
		return e, false
	}
	e = &entry{ready: make(chan struct{}), index: index, users: 1}
	e.element = c.latest.PushFront(e)
	c.entries[index] = e
	return e, true
}

// has reports whether the chunk is in the cache or being decoded.
func (c *cache) has(index int) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.entries[index] != nil
}

// publish gives the result to all callers that wait. Errors are not kept: the
// next caller tries again.
func (c *cache) publish(e *entry, data []byte, err error) {
	c.mu.Lock()
	e.data, e.err = data, err
	c.used += int64(cap(data))
	if err != nil {
		c.drop(e)
	}
	c.mu.Unlock()
	close(e.ready)
}

// drop removes the entry from the cache; c.mu is held.
func (c *cache) drop(e *entry) {
	c.latest.Remove(e.element)
	delete(c.entries, e.index)
	e.element = nil
	c.used -= int64(cap(e.data))
}

// release ends the caller's use of the entry, and drops the chunks used longest
// ago while the cache is too large.
func (c *cache) release(e *entry) {
	c.mu.Lock()
	defer c.mu.Unlock()
	e.users--
	if e.element == nil {
		c.free(e)
	}
	c.trim(c.limit)
}

// trim drops chunks that are not in use until at most limit bytes are left;
// c.mu is held.
func (c *cache) trim(limit int64) {
	for at := c.latest.Back(); at != nil && c.used > limit; {
		e := at.Value.(*entry)
		at = at.Prev()
		if e.users == 0 {
			c.drop(e)
			c.free(e)
		}
	}
}

// free keeps the buffer of a dropped chunk without users for another one; c.mu
// is held.
func (c *cache) free(e *entry) {
	if data := e.data; data != nil && e.users == 0 {
		e.data = nil
		c.spare.Put(&data)
	}
}

// buffer is a slice of length bytes, at most a chunk, with any content. All
// buffers have room for the longest chunk: in an image with chunks of many
// lengths each would otherwise be of no use for most of the others.
func (c *cache) buffer(length int64) []byte {
	if spare, _ := c.spare.Get().(*[]byte); spare != nil {
		return (*spare)[:length]
	}
	return make([]byte, length, c.chunk)
}

package udif

import (
	"container/list"
	"sync"
)

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

package udif

import (
	"math/bits"
	"sync"
	"sync/atomic"
)

// cacheShards is how many locks the cache has; neighbouring chunks lie in different shards.
const cacheShards = 8

// cache keeps decoded chunks by the index of their run, the latest used ones up to limit bytes. Each chunk is decoded
// once however many ask for it at the same time.
type cache struct {
	limit  int64
	used   atomic.Int64
	shards [cacheShards]shard
	spare  [maxClass + 1]sync.Pool // of *[]byte: buffers of dropped chunks, by class
}

// maxClass is the class of the largest chunks. Buffers are a power of two long: images with chunks of all lengths would
// otherwise find no buffer of the right one, and discard so many that the heap grows to many times the cache.
const maxClass = 26

// class is that of the buffers for so many bytes: 1 << class is the least power of two that holds them.
func class(length int64) int { return bits.Len64(uint64(max(length, 1) - 1)) }

// shard is a part of the cache with a lock of its own.
type shard struct {
	mu      sync.Mutex
	entries map[int]*entry
	latest  entry // head of the ring of entries by use: next is the latest, prev the oldest
}

// entry is one chunk. data and err are set before ready is closed; the rest is guarded by the shard's lock.
type entry struct {
	ready      chan struct{}
	data       []byte
	err        error
	index      int
	users      int
	done       bool // ready is closed
	dropped    bool // no longer in the cache, the last user frees it
	prev, next *entry
}

// init makes an empty cache of at most limit bytes.
func (c *cache) init(limit int64) {
	c.limit = limit
	for i := range c.shards {
		s := &c.shards[i]
		s.entries = map[int]*entry{}
		s.latest.prev, s.latest.next = &s.latest, &s.latest
	}
}

// shard returns the part of the cache for a run.
func (c *cache) shard(index int) *shard { return &c.shards[index%cacheShards] }

// unlink takes the entry out of the ring. The caller holds the lock of the shard.
func (e *entry) unlink() { e.prev.next, e.next.prev = e.next, e.prev }

// linkLatest makes the entry the latest of the ring. The caller holds the lock of the shard.
func (s *shard) linkLatest(e *entry) {
	e.prev, e.next = &s.latest, s.latest.next
	e.prev.next, e.next.prev = e, e
}

// acquire returns the entry of the chunk, and whether the caller has to decode it and publish the result. Whoever
// acquires releases.
func (c *cache) acquire(index int) (e *entry, decode bool) {
	s := c.shard(index)
	s.mu.Lock()
	defer s.mu.Unlock()
	if e = s.entries[index]; e != nil {
		e.users++
		e.unlink()
		s.linkLatest(e)
		return e, false
	}
	e = &entry{ready: make(chan struct{}), index: index, users: 1}
	s.entries[index] = e
	s.linkLatest(e)
	return e, true
}

// has reports whether the chunk is there or being decoded.
func (c *cache) has(index int) bool {
	s := c.shard(index)
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.entries[index] != nil
}

// publish hands the result to all who wait. Errors are not kept: the next one tries again.
func (c *cache) publish(e *entry, data []byte, err error) {
	s := c.shard(e.index)
	s.mu.Lock()
	e.data, e.err, e.done = data, err, true
	if err != nil {
		s.drop(e)
	}
	s.mu.Unlock()
	if err == nil {
		c.used.Add(int64(cap(data)))
	}
	close(e.ready)
}

// drop takes the entry out of the shard. The caller holds the lock.
func (s *shard) drop(e *entry) {
	e.unlink()
	delete(s.entries, e.index)
	e.dropped = true
}

// release ends the caller's use of the entry, and makes room if the cache is too full.
func (c *cache) release(e *entry) {
	s := c.shard(e.index)
	s.mu.Lock()
	e.users--
	free := e.dropped && e.users == 0
	s.mu.Unlock()
	if free {
		c.free(e)
	}
	c.trim(e.index)
}

// trim drops the oldest idle chunks until the cache is within its limit, starting in the next shard.
func (c *cache) trim(index int) {
	for i := range cacheShards {
		for c.used.Load() > c.limit && c.dropOldest(c.shard(index+1+i)) {
		}
	}
}

// dropOldest drops the shard's oldest chunk that is not in use.
func (c *cache) dropOldest(s *shard) bool {
	s.mu.Lock()
	e := s.latest.prev
	for e != &s.latest && (e.users > 0 || !e.done) {
		e = e.prev
	}
	found := e != &s.latest
	if found {
		s.drop(e)
	}
	s.mu.Unlock()
	if found {
		c.used.Add(-int64(cap(e.data)))
		c.free(e)
	}
	return found
}

// free keeps the buffer of a dropped chunk for the next one.
func (c *cache) free(e *entry) {
	if data := e.data; data != nil {
		e.data = nil
		c.spare[class(int64(cap(data)))].Put(&data)
	}
}

// buffer is a slice of that length, at most MaxChunk, with any content.
func (c *cache) buffer(length int64) []byte {
	k := class(length)
	if spare, _ := c.spare[k].Get().(*[]byte); spare != nil {
		return (*spare)[:length]
	}
	return make([]byte, length, 1<<k)
}

// clear drops everything that is idle.
func (c *cache) clear() {
	for i := range c.shards {
		for c.dropOldest(&c.shards[i]) {
		}
	}
}

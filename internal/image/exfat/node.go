package exfat

import (
	"slices"
	"sync"
	"sync/atomic"
)

// span is a range of bytes [from, to) of a file.
type span struct{ from, to int64 }

// node is an open file, shared by all its handles. Locks are taken in the order
// io, grow, Volume.mu, mu.
type node struct {
	v *Volume
	e *entry
	// stripe is the number of the writer, see Volume.CreateStriped.
	stripe int
	// refs counts the handles, under Volume.mu.
	refs int

	// io is held shared by reads and writes, which therefore do not wait for
	// one another, and exclusively by what takes clusters away or fills gaps.
	io sync.RWMutex
	// grow is held while the size goes up, and while the padded last block is
	// written: so the padding never meets data.
	grow sync.Mutex
	// size in bytes, and the places on the device. Both are read without a
	// lock; a slice of extents never changes.
	size    atomic.Int64
	extents atomic.Pointer[[]Extent]
	// noChain means that the clusters are contiguous and the FAT is not used;
	// under Volume.mu.
	noChain bool

	// mu guards the rest.
	mu sync.Mutex
	// valid is how many bytes from the start were written: ValidDataLength of
	// the entry. It is written under mu.
	valid atomic.Int64
	// pending was written, but is not yet joined to [0, valid): ascending,
	// disjoint, not touching.
	pending []span
	// written means that data was written, or the file grown, since the
	// modification time was set.
	written bool
	// removed means that the file has no directory entry any more. It is
	// written under both locks, and read under either.
	removed bool
}

// newNode makes the node of an entry when its file is opened for the first
// time. Under Volume.mu.
func (v *Volume) newNode(e *entry, extents []Extent) *node {
	n := &node{v: v, e: e, noChain: e.noChain}
	n.size.Store(e.size)
	n.valid.Store(e.valid)
	n.extents.Store(&extents)
	e.node = n
	return n
}

// published records that [from, to) has been written. Concurrent writers finish
// in any order: what does not continue the valid part waits in pending until
// the gap before it is written.
func (n *node) published(from, to int64) {
	if from >= to {
		return
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	n.markWritten()
	valid := n.valid.Load()
	if to <= valid {
		return
	}
	i := 0
	for i < len(n.pending) && n.pending[i].to < from {
		i++
	}
	j := i
	for ; j < len(n.pending) && n.pending[j].from <= to; j++ {
		from, to = min(from, n.pending[j].from), max(to, n.pending[j].to)
	}
	if from > valid {
		n.pending = slices.Replace(n.pending, i, j, span{from, to})
		return
	}
	n.pending = slices.Delete(n.pending, i, j)
	n.valid.Store(to)
}

// markWritten records that the directory entry lacks something of the file.
// Under mu.
func (n *node) markWritten() {
	if !n.written && !n.removed {
		n.written = true
		n.v.unsaved.Add(1)
	}
}

// clearWritten reverses markWritten. Under mu.
func (n *node) clearWritten() {
	if n.written {
		n.written = false
		n.v.unsaved.Add(-1)
	}
}

// fillGaps writes zeros into the gaps between the written parts: exFAT records
// only one offset up to which a file is valid (ValidDataLength).
func (n *node) fillGaps() error {
	n.mu.Lock()
	none := len(n.pending) == 0
	n.mu.Unlock()
	if none {
		return nil
	}
	n.io.Lock()
	defer n.io.Unlock()
	zeros := make([]byte, 1<<20)
	n.mu.Lock()
	valid, spans := n.valid.Load(), n.pending
	n.mu.Unlock()
	for _, s := range spans {
		for valid < s.from {
			part := min(int64(len(zeros)), s.from-valid)
			if _, err := n.put(zeros[:part], valid); err != nil {
				return err
			}
			valid += part
		}
		valid = s.to
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	n.valid.Store(valid)
	n.pending = n.pending[:0]
	return nil
}

// persist updates the directory entry of an open file, if it still has one, and
// reports whether its allocation or sizes changed. The modification time alone is stored only if
// times is set. Under Volume.mu.
func (v *Volume) persist(n *node, times bool) bool {
	n.mu.Lock()
	size, valid, written := n.size.Load(), n.valid.Load(), n.written
	extents := *n.extents.Load()
	var first uint32
	if len(extents) > 0 {
		first = v.g.cluster(extents[0].Device)
	}
	e := n.e
	same := e.size == size && e.valid == valid && e.first == first && e.noChain == n.noChain
	if n.removed || same && !(times && written) {
		n.mu.Unlock()
		return false
	}
	n.clearWritten()
	n.mu.Unlock()
	e.size, e.valid, e.first, e.noChain = size, valid, first, n.noChain
	if written {
		now := v.now()
		e.modified = makeStamp(now)
		e.access(now)
	}
	e.attr |= attrArchive
	e.store()
	return !same
}

// extend gives the file more clusters. The caller holds io and grow.
func (n *node) extend(clusters int64) error {
	v := n.v
	if clusters > int64(maxClusters) {
		return ErrNoSpace
	}
	return v.withSpace(func(whole bool) error {
		old := *n.extents.Load()
		runs := v.g.runs(old)
		last := lastCluster(runs)
		more, err := v.alloc.allocate(uint32(clusters), last, n.stripe, whole)
		if err != nil {
			return err
		}
		inOne := len(more) == 1 && (last == 0 || n.noChain && more[0].first == last+1)
		if !inOne {
			if err := v.fat.extendChain(runs, more, n.noChain); err != nil {
				v.alloc.release(more)
				return err
			}
		}
		n.noChain = inOne
		extents := v.g.appendRuns(old, more)
		n.extents.Store(&extents)
		v.changed()
		return nil
	})
}

// growTo raises the size to end, with the clusters for it.
func (n *node) growTo(end int64) error {
	n.grow.Lock()
	defer n.grow.Unlock()
	if end <= n.size.Load() {
		return nil
	}
	if more := n.v.g.clustersFor(end) - extentsLen(*n.extents.Load())/n.v.g.clusterSize(); more > 0 {
		if err := n.extend(more); err != nil {
			return err
		}
	}
	n.size.Store(end)
	n.mu.Lock()
	defer n.mu.Unlock()
	n.markWritten()
	return nil
}

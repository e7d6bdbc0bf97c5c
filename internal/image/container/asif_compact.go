package container

import (
	"fmt"
	"maps"
	"slices"
)

// compact implements chunkMap. First it removes the entries of the dropped
// chunks. Then it copies the chunks at the end of the file into the free ones
// and, when that is durable, changes their entries. Then it cuts the file. The
// entries change one at a time, so that after a crash a chunk is in one of its
// two places.
func (a *asif) compact(keep func(i int64) (bool, error)) error {
	for _, i := range a.list() {
		ok, err := keep(i)
		if err != nil {
			return err
		}
		if !ok { // the place is cut off or overwritten: drop would punch it
			a.mu.Lock()
			a.setEntry(a.slot(i), asifUnmapped)
			a.mu.Unlock()
		}
	}
	if err := a.commit(); err != nil {
		return err
	}
	return a.moveDown(a.planMoves())
}

// eachUsed calls do for every entry with a chunk of the file, in order.
func (a *asif) eachUsed(do func(slot, n int64)) {
	for _, slot := range slices.Sorted(maps.Keys(a.entries)) {
		_, n := splitEntry(a.entries[slot])
		do(slot, n)
	}
}

// asifMoves is a plan to make the file as short as possible.
type asifMoves struct {
	limit  int64   // chunks of the file that are needed
	slots  []int64 // entries of chunks after them, bitmaps included
	tables []int64 // tables after them
	free   []int64 // unused chunks before them
}

// planMoves counts the chunks of the file that are in use, and finds those that
// are too far at the end and the free places for them.
func (a *asif) planMoves() asifMoves {
	used := map[int64]bool{}
	m := asifMoves{limit: a.head.firstFree}
	take := func(_, n int64) {
		used[n] = true
		m.limit++
	}
	a.eachUsed(take)
	for _, n := range a.dir {
		if n != 0 {
			take(0, n)
		}
	}
	a.eachUsed(func(slot, n int64) {
		if n >= m.limit {
			m.slots = append(m.slots, slot)
		}
	})
	for t, n := range a.dir {
		if n >= m.limit {
			m.tables = append(m.tables, int64(t))
		}
	}
	for n := a.head.firstFree; n < m.limit; n++ {
		if !used[n] {
			m.free = append(m.free, n)
		}
	}
	return m
}

// moveDown carries out the plan and cuts the file.
func (a *asif) moveDown(m asifMoves) error {
	free := m.free
	for k, slot := range m.slots {
		state, n := a.entry(slot)
		if err := a.copyBytes(free[k]*a.head.chunk, n*a.head.chunk, a.head.chunk); err != nil {
			return fmt.Errorf("moving chunk %d: %w", n, err)
		}
		a.mu.Lock()
		a.setEntry(slot, state|uint64(free[k]))
		a.mu.Unlock()
	}
	if err := a.commit(); err != nil {
		return err
	}
	free = free[len(m.slots):]
	for k, t := range m.tables {
		if err := a.copyBytes(free[k]*a.head.chunk, a.dir[t]*a.head.chunk, a.head.chunk); err != nil {
			return fmt.Errorf("moving table %d: %w", t, err)
		}
		a.dir[t] = free[k]
	}
	// Twice, so that neither directory refers to the old places of the tables.
	for range 2 * min(1, len(m.tables)) {
		a.moved = true
		if err := a.commit(); err != nil {
			return err
		}
	}
	a.next, a.free, a.dropped = m.limit, nil, nil
	if err := a.f.Truncate(m.limit * a.head.chunk); err != nil {
		return err
	}
	return a.sync()
}

// resize implements chunkMap. What an earlier, larger size left after the end
// is removed before a larger size can show it, and after a smaller one has
// hidden it.
func (a *asif) resize(size int64) error {
	if size%a.head.block != 0 || size > min(a.head.most*a.head.block, a.head.meta*a.head.chunk) {
		return fmt.Errorf("%d bytes in blocks of %d, up to %d of them: %w", size, a.head.block, a.head.most, errBadSize)
	}
	if old := a.head.size(); size > old {
		if err := a.clearEnd(old); err != nil {
			return err
		}
		if err := a.dropFrom(old); err != nil {
			return err
		}
	}
	a.head.blocks = size / a.head.block
	if err := a.put(a.head.encode(), 0); err != nil {
		return err
	}
	if err := a.sync(); err != nil {
		return err
	}
	return a.dropFrom(size)
}

// clearEnd writes zeros into the chunk across the end of a device of size
// bytes, after that end.
func (a *asif) clearEnd(size int64) error {
	i, in := size/a.head.chunk, size%a.head.chunk
	if in == 0 {
		return nil
	}
	if err := a.complete(i); err != nil {
		return err
	}
	at, _ := a.find(i)
	if at == 0 {
		return nil
	}
	return a.writeZeros(at+in, a.head.chunk-in)
}

// dropFrom unmaps the chunks between the end of a device of size bytes and the
// metadata.
func (a *asif) dropFrom(size int64) error {
	first := ceil(size, a.head.chunk)
	var list []int64
	a.eachUsed(func(slot, _ int64) {
		if i, bitmap := a.chunkOf(slot); !bitmap && i >= first && i < a.head.meta {
			list = append(list, i)
		}
	})
	for _, i := range list {
		if err := a.drop(i); err != nil {
			return err
		}
	}
	return a.commit()
}

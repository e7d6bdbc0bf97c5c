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
			a.setEntry(a.head.slot(i), asifUnmapped)
			a.mu.Unlock()
		}
	}
	if err := a.commit(); err != nil {
		return err
	}
	needed, moved, err := a.moveChunks()
	// The second time neither directory refers to the old places of tables any
	// more.
	for k := 0; k < 2 && err == nil; k++ {
		a.moved = moved
		err = a.commit()
	}
	if err != nil {
		return err
	}
	a.next = needed
	return a.syncAfter(a.f.Truncate(needed * a.head.chunk))
}

// moveChunks copies the last chunks of the file, of data, bitmaps and tables,
// into the free ones. It returns how many chunks of the file are needed, and
// whether a table has moved.
func (a *asif) moveChunks() (needed int64, moved bool, err error) {
	users := map[int64]int64{} // by chunk of the file: a slot, or -1-t for table t
	for slot, v := range a.entries {
		_, n := splitEntry(v)
		users[n] = slot
	}
	for t, n := range a.dir {
		if n != 0 {
			users[n] = -1 - int64(t)
		}
	}
	needed = a.head.firstFree + int64(len(users))
	free := a.head.firstFree
	for _, from := range slices.Sorted(maps.Keys(users)) {
		if from < needed {
			continue
		}
		for _, used := users[free]; used; _, used = users[free] {
			free++
		}
		if err := a.copyBytes(free*a.head.chunk, from*a.head.chunk, a.head.chunk); err != nil {
			return 0, false, fmt.Errorf("moving chunk %d: %w", from, err)
		}
		a.mu.Lock()
		if slot := users[from]; slot < 0 {
			a.dir[-1-slot], moved = free, true
		} else {
			a.setEntry(slot, a.entries[slot]&^asifNumber|uint64(free))
		}
		a.mu.Unlock()
		free++
	}
	return needed, moved, nil
}

// resize implements chunkMap. What an earlier, larger size left after the end
// is removed before a larger size can show it, and after a smaller one has
// hidden it.
func (a *asif) resize(size int64) error {
	if size%a.head.block != 0 || size > min(a.head.MaxBlocks*a.head.block, a.head.Meta*a.head.chunk) {
		return fmt.Errorf("%d bytes in blocks of %d, up to %d of them: %w", size, a.head.block, a.head.MaxBlocks,
			errBadSize)
	}
	if old := a.head.size(); size > old {
		if err := a.dropAfter(old); err != nil {
			return err
		}
	}
	a.head.Blocks = size / a.head.block
	if err := a.syncAfter(a.put(encodeFields(a.head.asifFields), 0)); err != nil {
		return err
	}
	return a.dropAfter(size)
}

// dropAfter unmaps the chunks between the end of a device of size bytes and the
// metadata, and writes zeros into the one across the end.
func (a *asif) dropAfter(size int64) error {
	i, in := size/a.head.chunk, size%a.head.chunk
	if at, _ := a.find(i); in > 0 && at > 0 {
		err := a.complete(i)
		if err == nil {
			err = a.writeZeros(at+in, a.head.chunk-in)
		}
		if err != nil {
			return err
		}
		i++
	}
	for _, slot := range slices.Sorted(maps.Keys(a.entries)) {
		if k, bitmap := a.chunkOf(slot); !bitmap && k >= i && k < a.head.Meta {
			if err := a.drop(k); err != nil {
				return err
			}
		}
	}
	return a.commit()
}

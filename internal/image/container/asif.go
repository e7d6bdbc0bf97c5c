package container

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"

	"dmgbench/internal/system/hostio"
)

func init() {
	create := func(dir *hostio.Dir, name string, s Spec) error {
		h := newASIF(s.Size, s.ID)
		return s.Encryption.createFile(dir, name, 0, h.write)
	}
	drivers[ASIF] = driver{create: create, magic: string(asifMagic[:]), chunks: openASIF}
}

// openASIF reads the tables of the image in s. For writing it makes the file
// end with a whole chunk, which all writing code relies on. That must not
// invent the rest of a chunk in use.
func openASIF(s syncStore, readOnly bool) (chunkMap, error) {
	a, err := loadASIF(s)
	if err != nil || readOnly {
		return a, err
	}
	if a.cut {
		return nil, unknownASIF("a last chunk that is cut off, which is opened read-only alone")
	}
	have, err := s.f.Size()
	if err == nil && have < a.next*a.head.chunk {
		err = s.f.Truncate(a.next * a.head.chunk)
	}
	return a, err
}

// geometry implements chunkMap.
func (a *asif) geometry() (chunk, size int64) { return a.head.chunk, a.head.size() }

// chunkOf is the chunk of a slot, or the slot is of a bitmap.
func (a *asif) chunkOf(slot int64) (i int64, bitmap bool) {
	g, k := slot/(a.head.perGroup+1), slot%(a.head.perGroup+1)
	return g*a.head.perGroup + k, k == a.head.perGroup
}

// entry is the entry of a slot.
func (a *asif) entry(slot int64) (state uint64, n int64) {
	a.mu.RLock()
	defer a.mu.RUnlock()
	return splitEntry(a.entries[slot])
}

// setEntry changes an entry; a.mu is held.
func (a *asif) setEntry(slot int64, v uint64) {
	a.changed[slot] = v
	if a.entries[slot] = v; v == asifUnmapped {
		delete(a.entries, slot)
	}
}

// find implements chunkMap.
func (a *asif) find(i int64) (at int64, partial bool) {
	state, n := a.entry(a.head.slot(i))
	return n * a.head.chunk, state == asifPartial
}

// list implements chunkMap.
func (a *asif) list() (list []int64) {
	a.mu.RLock()
	defer a.mu.RUnlock()
	for _, slot := range slices.Sorted(maps.Keys(a.entries)) {
		if i, bitmap := a.chunkOf(slot); !bitmap && i < ceil(a.head.size(), a.head.chunk) {
			list = append(list, i)
		}
	}
	return list
}

// allocate takes chunks after the end of the file, for tables, too. The file is
// lengthened before another call can find them.
func (a *asif) allocate(first, last int64) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	next := a.next
	take := func() uint64 {
		next++
		return uint64(next - 1)
	}
	tables, made := map[int64]int64{}, map[int64]uint64{}
	for i := first; i <= last; i++ {
		slot := a.head.slot(i)
		if a.entries[slot] != 0 {
			continue
		}
		if t, _ := a.head.entryOf(slot); a.dir[t] == 0 && tables[t] == 0 {
			tables[t] = int64(take())
		}
		made[slot] = asifWhole | take()
	}
	if err := a.f.Truncate(next * a.head.chunk); err != nil {
		return err
	}
	a.next = next
	for t, n := range tables {
		a.dir[t], a.moved = n, true
	}
	for slot, v := range made {
		a.setEntry(slot, v)
	}
	return nil
}

// drop unmaps chunk i; no other call may run. Its place becomes a hole, where
// the host can make one.
func (a *asif) drop(i int64) error {
	at, _ := a.find(i)
	if at == 0 {
		return nil
	}
	if err := a.f.PunchHole(at, a.head.chunk); err != nil && !errors.Is(err, hostio.ErrUnsupported) {
		return err
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	a.setEntry(a.head.slot(i), asifUnmapped)
	return nil
}

// Codes of a block in a bitmap, of two bits each. 0 is a block that was not
// written.
const (
	bitmapWritten = 1
	bitmapZeros   = 2 // as documented; in no image so far
)

// readPartial fills p from byte in of partial chunk i, of which a bitmap marks
// the written sectors; the others read as zeros whatever the file contains.
func (a *asif) readPartial(i int64, p []byte, in int64) error {
	at, _ := a.find(i)
	have, err := a.f.ReadAt(p, at+in)
	if have < len(p) && !errors.Is(err, io.EOF) {
		return err
	}
	return a.eachWritten(i, func(from, n int64, written bool) error {
		low, high := max(from, in), min(from+n, in+int64(len(p)))
		switch {
		case low >= high:
		case !written:
			clear(p[low-in : high-in])
		case high-in > int64(have):
			return unexpectedEOF(io.EOF)
		}
		return nil
	})
}

// complete fills partial chunk i with zeros where it was not written, and marks
// it as whole. Reads of the chunk may run meanwhile, and two writers of a chunk
// complete it once.
func (a *asif) complete(i int64) error {
	a.completing.Lock()
	defer a.completing.Unlock()
	at, partial := a.find(i)
	if !partial {
		return nil // another call completed it
	}
	err := a.eachWritten(i, func(in, n int64, written bool) error {
		if written {
			return nil
		}
		return a.writeZeros(at+in, n)
	})
	if err != nil {
		return err
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	a.setEntry(a.head.slot(i), asifWhole|uint64(at/a.head.chunk))
	return nil
}

// commit syncs the data, and writes the changed entries to the tables, to new
// ones while no directory refers to them. If there are new tables it then
// writes a new version of the directory over the older one: first all but its
// first sector, and when that is durable the first sector, which contains the
// version. Changes that come during the commit are those of the next one.
func (a *asif) commit() error {
	a.mu.Lock()
	changed := a.changed
	a.changed = map[int64]uint64{}
	var dir []byte
	if a.moved {
		dir, a.moved = make([]byte, a.head.dirLen), false
		binary.BigEndian.PutUint64(dir, a.version+1)
		for t, n := range a.dir {
			binary.BigEndian.PutUint64(dir[8+8*t:], uint64(n))
		}
	}
	a.mu.Unlock()
	err := a.sync()
	if err != nil || len(changed) == 0 && dir == nil {
		return err
	}
	err = a.putEntries(changed)
	at := a.head.Dirs[1-a.active]
	if err == nil && dir != nil {
		err = a.put(dir[SectorSize:], at+SectorSize)
	}
	if err = a.syncAfter(err); err == nil && dir != nil {
		a.active, a.version = 1-a.active, a.version+1
		err = a.syncAfter(a.put(dir[:SectorSize], at))
	}
	return err
}

// compact implements chunkMap. Chunks stay where they are: the places of
// dropped ones are holes, and the file is cut after the last one in use.
func (a *asif) compact(keep func(i int64) (bool, error)) error {
	for _, i := range a.list() {
		ok, err := keep(i)
		if err == nil && !ok {
			err = a.drop(i)
		}
		if err != nil {
			return err
		}
	}
	if err := a.commit(); err != nil {
		return err
	}
	a.next = a.head.firstFree
	for _, v := range a.entries {
		_, n := splitEntry(v)
		a.next = max(a.next, n+1)
	}
	for _, n := range a.dir {
		a.next = max(a.next, n+1)
	}
	return a.syncAfter(a.f.Truncate(a.next * a.head.chunk))
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

// putEntries writes adjacent entries of a group with one call.
func (a *asif) putEntries(changed map[int64]uint64) error {
	var b []byte
	var first int64
	for _, slot := range append(slices.Sorted(maps.Keys(changed)), -1) {
		if slot != first+int64(len(b)/8) || slot%(a.head.perGroup+1) == 0 {
			if len(b) > 0 {
				a.mu.RLock()
				t, at := a.head.entryOf(first)
				at += a.dir[t] * a.head.chunk
				a.mu.RUnlock()
				if err := a.put(b, at); err != nil {
					return err
				}
			}
			b, first = nil, slot
		}
		b = binary.BigEndian.AppendUint64(b, changed[slot])
	}
	return nil
}

package container

import (
	"encoding/binary"
	"errors"
	"io"
	"maps"
	"slices"

	"dmgbench/internal/system/hostio"
)

var (
	_ chunkMap      = (*asif)(nil)
	_ partialChunks = (*asif)(nil)
)

func init() {
	drivers[ASIF] = driver{create: createASIF, magic: "shdw", open: func(f store, _ contents, o OpenOptions) (Image, error) {
		return openChunked(f, ASIF, o)
	}}
}

// createASIF makes a blank image.
func createASIF(dir *hostio.Dir, name string, s Spec) error {
	h := newASIF(s.Size, s.ID)
	return createFile(dir, name, 0, h.write)
}

// write makes a new file a blank image.
func (h *asifHead) write(f *hostio.File) error {
	if err := f.Truncate((h.firstFree + 3) * h.chunk); err != nil {
		return err
	}
	for at, p := range h.blank() {
		if _, err := f.WriteAt(p, at); err != nil {
			return err
		}
	}
	return nil
}

// openASIF reads the tables of the image in s. For writing it makes the file
// end with a whole chunk, which all writing code relies on. That must not
// invent the rest of a chunk in use.
func openASIF(s syncStore, readOnly bool) (chunks chunkMap, chunk, size int64, err error) {
	a, err := loadASIF(s)
	if err == nil && !readOnly && a.cut {
		err = unknownASIF("a last chunk that is cut off, which is opened read-only alone")
	}
	if err == nil && !readOnly {
		var have int64
		if have, err = s.f.Size(); err == nil && have < a.next*a.head.chunk {
			err = s.f.Truncate(a.next * a.head.chunk)
		}
	}
	if err != nil {
		return nil, 0, 0, err
	}
	return a, a.head.chunk, a.head.size(), nil
}

// format implements chunkMap.
func (a *asif) format() string { return ASIF }

// slot is the number of the entry of chunk i. Slots count the entries of all
// groups, with those of bitmaps.
func (a *asif) slot(i int64) int64 {
	return i/a.head.perGroup*(a.head.perGroup+1) + i%a.head.perGroup
}

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
	state, n := a.entry(a.slot(i))
	return n * a.head.chunk, state == asifPartial
}

// list implements chunkMap.
func (a *asif) list() (list []int64) {
	a.mu.RLock()
	defer a.mu.RUnlock()
	a.eachUsed(func(slot, _ int64) {
		if i, bitmap := a.chunkOf(slot); !bitmap && i < ceil(a.head.size(), a.head.chunk) {
			list = append(list, i)
		}
	})
	return list
}

// allocate takes chunks that were unmapped, and then new ones after the end of
// the file. The file is lengthened before another call can find them.
func (a *asif) allocate(first, last int64) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	next, free := a.next, a.free
	tables := map[int64]int64{}
	var made []int64
	for i := first; i <= last; i++ {
		if a.entries[a.slot(i)] != 0 {
			made = append(made, 0)
			continue
		}
		if t, _ := a.head.entryOf(i); a.dir[t] == 0 && tables[t] == 0 {
			tables[t] = a.takeFree()
		}
		made = append(made, a.takeFree())
	}
	if a.next > next {
		if err := a.f.Truncate(a.next * a.head.chunk); err != nil {
			a.next, a.free = next, free
			return err
		}
	}
	for t, n := range tables {
		a.dir[t], a.moved = n, true
	}
	for k, n := range made {
		if n != 0 {
			a.setEntry(a.slot(first+int64(k)), asifWhole|uint64(n))
		}
	}
	return nil
}

// takeFree returns a chunk of the file that is not in use.
func (a *asif) takeFree() (n int64) {
	if len(a.free) > 0 {
		n, a.free = a.free[0], a.free[1:]
		return n
	}
	a.next++
	return a.next - 1
}

// drop implements partialChunks. The place of the chunk is used again only when
// the change of its entry is durable, and only if it was punched.
func (a *asif) drop(i int64) error {
	at, _ := a.find(i)
	if at == 0 {
		return nil
	}
	err := a.f.PunchHole(at, a.head.chunk)
	if err != nil && !errors.Is(err, hostio.ErrUnsupported) {
		return err
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	a.setEntry(a.slot(i), asifUnmapped)
	if err == nil {
		a.dropped = append(a.dropped, at/a.head.chunk)
	}
	return nil
}

// Codes of a block in a bitmap, of two bits each.
const (
	bitmapWritten  = 1
	bitmapUnproven = 2 // in no image so far; documented as zeros
)

// readPartial implements partialChunks.
func (a *asif) readPartial(i int64, p []byte, in int64) error {
	at, _ := a.find(i)
	have, err := a.f.ReadAt(p, at+in)
	if have < len(p) && !errors.Is(err, io.EOF) {
		return err
	}
	return a.eachWritten(i, false, func(from, n int64, written bool) error {
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

// complete implements partialChunks. Two writers of a chunk complete it once.
func (a *asif) complete(i int64) error {
	a.completing.Lock()
	defer a.completing.Unlock()
	at, partial := a.find(i)
	if !partial {
		return nil // another call completed it
	}
	err := a.eachWritten(i, true, func(in, n int64, written bool) error {
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
	a.setEntry(a.slot(i), asifWhole|uint64(at/a.head.chunk))
	return nil
}

// asifChanges is what a commit writes.
type asifChanges struct {
	slots   []int64
	values  map[int64]uint64
	dir     []int64 // nil: unchanged
	dropped []int64
}

// takeChanges empties the lists of changes for a commit. Changes that come
// later are those of the next one.
func (a *asif) takeChanges() asifChanges {
	a.mu.Lock()
	defer a.mu.Unlock()
	c := asifChanges{slots: slices.Sorted(maps.Keys(a.changed)), values: a.changed, dropped: a.dropped}
	a.changed, a.dropped = map[int64]uint64{}, nil
	if a.moved {
		c.dir, a.moved = slices.Clone(a.dir), false
	}
	return c
}

// commit syncs the data, and writes the changed entries to the tables, to new
// ones while no directory refers to them. If there are new tables it then
// writes a new version of the directory over the older one: first all but its
// first sector, and when that is durable the first sector, which contains the
// version.
func (a *asif) commit() error {
	c := a.takeChanges()
	if err := a.sync(); err != nil {
		return err
	}
	if len(c.slots) == 0 && c.dir == nil {
		return nil
	}
	if err := a.putEntries(c); err != nil {
		return err
	}
	var raw []byte
	at := a.head.dirs[1-a.active]
	if c.dir != nil {
		raw = a.encodeDir(c.dir, a.version+1)
		if err := a.put(raw[SectorSize:], at+SectorSize); err != nil {
			return err
		}
	}
	if err := a.sync(); err != nil {
		return err
	}
	if c.dir != nil {
		if err := a.put(raw[:SectorSize], at); err != nil {
			return err
		}
		if err := a.sync(); err != nil {
			return err
		}
		a.active, a.version = 1-a.active, a.version+1
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	a.free = append(slices.Clone(a.free), c.dropped...)
	slices.Sort(a.free)
	return nil
}

// putEntries writes adjacent entries of a group with one call.
func (a *asif) putEntries(c asifChanges) error {
	isNext := func(k int, first int64, b []byte) bool {
		return c.slots[k] == first+int64(len(b)/8) && (len(b) == 0 || c.slots[k]%(a.head.perGroup+1) != 0)
	}
	for k := 0; k < len(c.slots); {
		first := c.slots[k]
		var b []byte
		for ; k < len(c.slots) && isNext(k, first, b); k++ {
			b = binary.BigEndian.AppendUint64(b, c.values[c.slots[k]])
		}
		if err := a.put(b, a.offsetOf(first)); err != nil {
			return err
		}
	}
	return nil
}

// offsetOf is the offset in the file of the entry of a slot.
func (a *asif) offsetOf(slot int64) int64 {
	a.mu.RLock()
	defer a.mu.RUnlock()
	group, i := slot/(a.head.perGroup+1), slot%(a.head.perGroup+1)
	return a.dir[group/a.head.groups]*a.head.chunk + group%a.head.groups*a.head.groupLen + 8*i
}

// encodeDir is a directory as it is in the file: the version, and the chunk of
// each table.
func (a *asif) encodeDir(dir []int64, version uint64) []byte {
	b := make([]byte, a.head.dirLen)
	binary.BigEndian.PutUint64(b, version)
	for t, n := range dir {
		binary.BigEndian.PutUint64(b[8+8*t:], uint64(n))
	}
	return b
}

// findings checks the metadata, which no other call reads.
func (a *asif) findings() (list []Finding, err error) {
	at, partial := a.find(a.head.meta)
	if at == 0 {
		return []Finding{{Path: "metadata", Problem: "missing"}}, nil
	}
	p := make([]byte, 0x400)
	if partial {
		err = a.readPartial(a.head.meta, p, 0)
	} else {
		_, err = a.f.ReadAt(p, at)
	}
	if err == nil && string(p[:4]) != "meta" {
		list = []Finding{{Path: "metadata", Problem: "no header"}}
	}
	return list, err
}

package container

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"slices"
	"sync"

	"dmgbench/internal/hostio"
)

// asif is the table of an ASIF image.
//
// New chunks are all written as "fully initialised": they are zeros in the
// file from the start, so that what a bitmap would call not written reads as
// zeros all the same, to readers that ignore bitmaps too. Bitmaps are read,
// and a chunk that has one is completed with zeros before it is written.
type asif struct {
	syncStore
	head asifHead

	groupsMu sync.RWMutex
	groups   map[int64]asifGroup

	mu      sync.Mutex // of what follows, and of changes of entries
	dir     []int64    // tables
	next    int64      // chunk behind the file's last
	chunks  int        // of data, in use
	changed map[int64]struct{}
	moved   bool    // a table of dir is not in the file's directory
	dropped []int64 // chunks given up since the last commit, all zeros
	free    []int64 // chunks given up before, all zeros

	// Of the directory in the file, for the one commit that runs.
	version uint64
	active  int
}

var (
	_ chunkMap      = (*asif)(nil)
	_ partialChunks = (*asif)(nil)
)

func createASIF(dir *hostio.Dir, name string, s Spec) error {
	h := newASIF(s.Size, s.ID)
	return createFile(dir, name, 0, func(f *hostio.File) error { return h.write(f) })
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

// openASIF reads the tables of the image in s.
func openASIF(s syncStore, readOnly bool) (chunks chunkMap, chunk, size int64, err error) {
	a, err := loadASIF(s)
	if err == nil && !readOnly {
		err = a.completeLastChunk()
	}
	if err != nil {
		return nil, 0, 0, err
	}
	return a, a.head.chunk, a.head.size(), nil
}

// completeLastChunk makes the file end with a whole chunk, which all writing code relies on.
func (a *asif) completeLastChunk() error {
	size, err := a.f.Size()
	if err != nil || size >= a.next*a.head.chunk {
		return err
	}
	return a.f.Truncate(a.next * a.head.chunk)
}

func (a *asif) format() string { return ASIF }

func (a *asif) group(n int64) asifGroup {
	a.groupsMu.RLock()
	defer a.groupsMu.RUnlock()
	return a.groups[n]
}

func (a *asif) find(i int64) (at int64, partial bool) {
	g := a.group(i / a.head.perGroup)
	if g == nil {
		return 0, false
	}
	state, n := asifState(g[i%a.head.perGroup].Load())
	return n * a.head.chunk, state == asifPartial
}

// unmapped implements chunkMap.
func (a *asif) unmapped(i int64) int64 {
	if a.group(i/a.head.perGroup) == nil {
		return a.head.perGroup - i%a.head.perGroup
	}
	if at, _ := a.find(i); at == 0 {
		return 1
	}
	return 0
}

func (a *asif) count() int {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.chunks
}

// slot numbers entries through all groups, bitmaps included.
func (a *asif) slot(i int64) int64 {
	return i/a.head.perGroup*(a.head.perGroup+1) + i%a.head.perGroup
}

// entry is where the entry of a slot is kept.
func (a *asif) entry(slot int64) *asifEntry {
	g, i := slot/(a.head.perGroup+1), slot%(a.head.perGroup+1)
	return &asifEntry{a.groups[g], i}
}

type asifEntry struct {
	group asifGroup
	i     int64
}

func (e *asifEntry) get() uint64 { return e.group[e.i].Load() }

// set changes an entry; a.mu is held.
func (a *asif) set(slot int64, v uint64) {
	e := a.entry(slot)
	e.group[e.i].Store(v)
	a.changed[slot] = struct{}{}
}

// allocate takes chunks that were given up, and then new ones behind the file's
// end. The file is made longer before anybody can find them.
func (a *asif) allocate(first, last int64) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	next, free := a.next, a.free
	tables := map[int64]int64{}
	var made []int64
	for i := first; i <= last; i++ {
		if at, _ := a.find(i); at != 0 {
			made = append(made, 0)
			continue
		}
		if t, _ := a.head.where(i); a.dir[t] == 0 && tables[t] == 0 {
			tables[t] = a.take()
		}
		made = append(made, a.take())
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
			a.ensureGroup((first + int64(k)) / a.head.perGroup)
			a.set(a.slot(first+int64(k)), asifWhole|uint64(n))
			a.chunks++
		}
	}
	return nil
}

func (a *asif) take() (n int64) {
	if len(a.free) > 0 {
		n, a.free = a.free[0], a.free[1:]
		return n
	}
	a.next++
	return a.next - 1
}

func (a *asif) ensureGroup(n int64) {
	if a.group(n) != nil {
		return
	}
	a.groupsMu.Lock()
	defer a.groupsMu.Unlock()
	a.groups[n] = make(asifGroup, a.head.perGroup+1)
}

// drop marks chunk i as unmapped. Its place is used again only when that mark
// is durable, and only if it was punched.
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
	a.set(a.slot(i), asifUnmapped)
	a.chunks--
	if err == nil {
		a.dropped = append(a.dropped, at/a.head.chunk)
	}
	return nil
}

// Codes of a sector in a bitmap.
const (
	asifUnwritten = 0
	asifWritten   = 1
	asifUnknown   = 2 // never seen; said to read as zeros
)

// written calls do for the runs of blocks of chunk i that are written or not,
// by the bitmap, in bytes from the start of the chunk. strict refuses codes
// that were never seen, of which one may be read as not written.
func (a *asif) written(i int64, strict bool, do func(in, n int64, written bool) error) error {
	group := a.group(i / a.head.perGroup)
	blocks := a.head.chunk / a.head.block
	first := i % a.head.perGroup * blocks
	p := make([]byte, (first+blocks-1)/4-first/4+1)
	if n, err := a.f.ReadAt(p, int64(group[a.head.perGroup].Load())*a.head.chunk+first/4); n < len(p) {
		return unexpectedEOF(err)
	}
	is := func(b int64) (bool, error) {
		code := p[(first+b)/4-first/4] >> ((first + b) % 4 * 2) & 3
		if code > asifUnknown || strict && code == asifUnknown {
			return false, &UnsupportedError{Path: a.f.Path(), Doing: "reading", Found: fmt.Sprintf("Apple sparse image format (ASIF) with bitmap code %d", code)}
		}
		return code == asifWritten, nil
	}
	for b := int64(0); b < blocks; {
		now, err := is(b)
		from := b
		for same := now; err == nil && same == now; {
			if b++; b == blocks {
				break
			}
			same, err = is(b)
		}
		if err != nil {
			return err
		}
		if err := do(from*a.head.block, (b-from)*a.head.block, now); err != nil {
			return err
		}
	}
	return nil
}

// readPartial reads a chunk of which only those blocks count that are written.
func (a *asif) readPartial(i int64, p []byte, in int64) error {
	at, _ := a.find(i)
	have, err := a.f.ReadAt(p, at+in)
	if have < len(p) && !errors.Is(err, io.EOF) {
		return err
	}
	return a.written(i, false, func(from, n int64, written bool) error {
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

// complete completes a partial written chunk with zeros, so that all of it counts.
func (a *asif) complete(i int64) error {
	at, partial := a.find(i)
	if !partial {
		return nil // another call did it
	}
	err := a.written(i, true, func(in, n int64, written bool) error {
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
	a.set(a.slot(i), asifWhole|uint64(at/a.head.chunk))
	return nil
}

// asifPart is what a commit took off the lists of what is to be written.
type asifPart struct {
	slots   []int64
	values  map[int64]uint64
	dir     []int64 // nil: unchanged
	dropped []int64
}

func (a *asif) part() asifPart {
	a.mu.Lock()
	defer a.mu.Unlock()
	p := asifPart{dropped: a.dropped, values: map[int64]uint64{}}
	for s := range a.changed {
		p.slots = append(p.slots, s)
		p.values[s] = a.entry(s).get()
	}
	slices.Sort(p.slots)
	clear(a.changed)
	a.dropped = nil
	if a.moved {
		p.dir, a.moved = slices.Clone(a.dir), false
	}
	return p
}

// commit syncs the data, writes the entries that changed to the tables, where
// nothing may lead to yet, and then, if there are new tables, a new version of
// the directory over the older one: all of it but the first sector, and that,
// which holds the version, when the rest is on the disk.
func (a *asif) commit() error {
	p := a.part()
	if err := a.sync(); err != nil {
		return err
	}
	if len(p.slots) == 0 && p.dir == nil {
		return nil
	}
	if err := a.putEntries(p); err != nil {
		return err
	}
	var raw []byte
	at := a.head.dirs[1-a.active]
	if p.dir != nil {
		raw = a.encodeDir(p.dir, a.version+1)
		if err := a.put(raw[SectorSize:], at+SectorSize); err != nil {
			return err
		}
	}
	if err := a.sync(); err != nil {
		return err
	}
	if p.dir != nil {
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
	a.free = append(slices.Clone(a.free), p.dropped...)
	slices.Sort(a.free)
	return nil
}

// putEntries writes neighbours in one call.
func (a *asif) putEntries(p asifPart) error {
	for k := 0; k < len(p.slots); {
		first := p.slots[k]
		var b []byte
		for ; k < len(p.slots) && p.slots[k] == first+int64(len(b)/8) && (len(b) == 0 || p.slots[k]%(a.head.perGroup+1) != 0); k++ {
			b = binary.BigEndian.AppendUint64(b, p.values[p.slots[k]])
		}
		if err := a.put(b, a.entryAt(first)); err != nil {
			return err
		}
	}
	return nil
}

// entryAt is where the entry of a slot lies in the file.
func (a *asif) entryAt(slot int64) int64 {
	a.mu.Lock()
	defer a.mu.Unlock()
	group, i := slot/(a.head.perGroup+1), slot%(a.head.perGroup+1)
	return a.dir[group/a.head.groups]*a.head.chunk + group%a.head.groups*a.head.groupLen + 8*i
}

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
	report := func(problem string) { list = append(list, Finding{Path: "metadata", Problem: problem}) }
	at, partial := a.find(a.head.meta)
	if at == 0 {
		report("missing")
		return list, nil
	}
	p := make([]byte, 0x400)
	if partial {
		err = a.readPartial(a.head.meta, p, 0)
	} else {
		_, err = a.f.ReadAt(p, at)
	}
	if err != nil {
		return nil, err
	}
	if string(p[:4]) != "meta" {
		report("no header")
	}
	return list, nil
}

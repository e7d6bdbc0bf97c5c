package container

import (
	"encoding/binary"
	"slices"
)

// asifPart is what a commit took off the lists of what is to be written.
type asifPart struct {
	slots  []int64
	values map[int64]uint64
	dir    []int64 // nil: unchanged
	gone   []int64
}

func (a *asif) part() asifPart {
	a.mu.Lock()
	defer a.mu.Unlock()
	p := asifPart{gone: a.gone, values: map[int64]uint64{}}
	for s := range a.changed {
		p.slots = append(p.slots, s)
		p.values[s] = a.entry(s).get()
	}
	slices.Sort(p.slots)
	clear(a.changed)
	a.gone = nil
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
	a.free = append(slices.Clone(a.free), p.gone...)
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

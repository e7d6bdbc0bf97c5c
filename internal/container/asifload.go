package container

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"slices"
	"sync/atomic"
)

// asifMostTables bounds the tables of an image that is opened. Each covers
// 126 GiB of the device in the images that macOS makes, and 1 MiB of memory at
// most, if all its groups are in use.
const asifMostTables = 4096

// asifGroup is one group of a table: its data entries, and behind them that of
// the bitmap.
type asifGroup []atomic.Uint64

func asifState(v uint64) (state uint64, number int64) {
	return v & (3 << 62), int64(v & asifNumber)
}

// loadASIF reads header, the newer directory and all tables. It refuses what
// has not been seen (reserved bits, a chunk under a state that has none), chunks
// outside the file or among the directories, and two entries for one chunk.
func loadASIF(m medium) (*asif, error) {
	a := &asif{medium: m, groups: map[int64]asifGroup{}, changed: map[int64]struct{}{}}
	err := a.load()
	if err != nil {
		return nil, fmt.Errorf("reading %q: %w", m.f.Path(), err)
	}
	return a, nil
}

func (a *asif) load() error {
	size, err := a.f.Size()
	if err != nil {
		return err
	}
	b, err := a.get(0, asifHeader, size)
	if err != nil {
		return err
	}
	if a.head, err = parseASIF(b); err != nil {
		return err
	}
	if err := a.loadDir(size); err != nil {
		return err
	}
	a.next = ceil(size, a.head.chunk)
	l := asifLoader{asif: a, size: size}
	for t, table := range a.dir {
		if table == 0 {
			continue
		}
		if l.tables++; l.tables > asifMostTables {
			return unknown("Apple sparse image format (ASIF) with more than %d tables", asifMostTables)
		}
		if err := l.take(uint64(table), false); err != nil {
			return fmt.Errorf("table %d: %w", t, err)
		}
		if err := l.table(int64(t), table); err != nil {
			return fmt.Errorf("table %d: %w", t, err)
		}
	}
	return nil
}

// get reads n bytes that must be there.
func (m medium) get(at, n, size int64) ([]byte, error) {
	if at > size-n {
		return nil, corrupt("file of %d bytes ends before %d", size, at+n)
	}
	p := make([]byte, n)
	if k, err := m.f.ReadAt(p, at); k < len(p) {
		return nil, short(err)
	}
	return p, nil
}

// loadDir reads the directory with the higher number.
func (a *asif) loadDir(size int64) error {
	var raw [2][]byte
	for i, at := range a.head.dirs {
		var err error
		if raw[i], err = a.get(at, a.head.dirLen, size); err != nil {
			return err
		}
	}
	zero, one := binary.BigEndian.Uint64(raw[0]), binary.BigEndian.Uint64(raw[1])
	if zero == one && !bytes.Equal(raw[0], raw[1]) {
		return corrupt("both directories are of version %d, and differ", zero)
	}
	if one > zero {
		a.active = 1
	}
	a.version = max(zero, one)
	if a.version == 1<<64-1 {
		return corrupt("directory of version %d", a.version)
	}
	a.dir = make([]int64, a.head.tables)
	for t := range a.dir {
		v := binary.BigEndian.Uint64(raw[a.active][8+8*t:])
		if v > asifNumber {
			return unknown("Apple sparse image format (ASIF) with directory entry %#x", v)
		}
		a.dir[t] = int64(v)
	}
	return nil
}

// asifLoader checks what the tables say.
type asifLoader struct {
	*asif
	size   int64 // of the file
	tables int
	seen   bits
}

// take notes that something lies in a chunk, which is the last one of the file and cut off by its end at most where
// some of it is enough.
func (l *asifLoader) take(v uint64, some bool) error {
	chunks := l.size / l.head.chunk
	if some {
		chunks = l.next
	}
	if v < uint64(l.head.firstFree) || v >= uint64(chunks) {
		return corrupt("chunk %d, want one from %d to %d", v, l.head.firstFree, chunks-1)
	}
	if l.seen.set(int64(v)) {
		return corrupt("chunk %d for the second time", v)
	}
	return nil
}

func (l *asifLoader) table(t, at int64) error {
	p := make([]byte, l.head.groupLen)
	zero := make([]byte, len(p))
	last := ceil(l.head.most*l.head.block, l.head.chunk) // chunks that there can be
	for g := range l.head.groups {
		if n, err := l.f.ReadAt(p, at*l.head.chunk+g*l.head.groupLen); n < len(p) {
			return short(err)
		}
		if bytes.Equal(p, zero) {
			continue
		}
		number := t*l.head.groups + g
		if err := l.group(p, number, last-number*l.head.perGroup); err != nil {
			return fmt.Errorf("group %d: %w", g, err)
		}
	}
	return nil
}

// group reads one group, of whose entries the first room can be in use.
func (l *asifLoader) group(p []byte, number, room int64) error {
	entries := make(asifGroup, l.head.perGroup+1)
	bitmap := binary.BigEndian.Uint64(p[8*l.head.perGroup:])
	if bitmap > asifNumber {
		return unknown("Apple sparse image format (ASIF) with bitmap entry %#x", bitmap)
	}
	for i := range l.head.perGroup {
		v := binary.BigEndian.Uint64(p[8*i:])
		if v == 0 {
			continue
		}
		state, n := asifState(v)
		switch {
		case v&^uint64(3<<62|asifNumber) != 0, (state == asifNone || state == asifGone) && n != 0:
			return unknown("Apple sparse image format (ASIF) with table entry %#x", v)
		case i >= room:
			return corrupt("entry %d behind the last chunk that there can be", i)
		case state == asifPartly && bitmap == 0:
			return corrupt("entry %d is of a partly written chunk, but there is no bitmap", i)
		}
		if state != asifGone {
			if err := l.take(uint64(n), state == asifPartly); err != nil {
				return fmt.Errorf("entry %d: %w", i, err)
			}
			if number*l.head.perGroup+i != l.head.meta {
				l.chunks++
			}
		}
		entries[i].Store(v)
	}
	if bitmap != 0 {
		if err := l.take(bitmap, true); err != nil {
			return fmt.Errorf("bitmap: %w", err)
		}
		entries[l.head.perGroup].Store(bitmap)
	}
	l.groups[number] = entries
	return l.end(number, entries)
}

// end looks at what of a group lies in the last chunk of a file that ends inside of it: all that is written has to be
// there, and the bitmap has to say so. Whether macOS leaves such files is not known; nothing is missing in them.
func (l *asifLoader) end(number int64, entries asifGroup) error {
	if l.size%l.head.chunk == 0 {
		return nil
	}
	last, blocks := l.next-1, l.head.chunk/l.head.block
	_, bitmap := asifState(entries[l.head.perGroup].Load())
	for i := range l.head.perGroup {
		state, n := asifState(entries[i].Load())
		if state != asifPartly {
			continue
		}
		if bitmap == last && bitmap*l.head.chunk+ceil((i+1)*blocks, 4) > l.size {
			return corrupt("file of %d bytes ends inside the bitmap of entry %d", l.size, i)
		}
		if n != last {
			continue
		}
		err := l.written(number*l.head.perGroup+i, false, func(in, m int64, written bool) error {
			if written && n*l.head.chunk+in+m > l.size {
				return corrupt("file of %d bytes ends inside the chunk of entry %d", l.size, i)
			}
			return nil
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// bits is a set of numbers that takes memory only around its members.
type bits map[int64]*[512]uint64

// set adds i and says whether it was in already.
func (b *bits) set(i int64) bool {
	if *b == nil {
		*b = bits{}
	}
	p := (*b)[i>>15]
	if p == nil {
		p = new([512]uint64)
		(*b)[i>>15] = p
	}
	had := p[i>>6&511]&(1<<(i&63)) != 0
	p[i>>6&511] |= 1 << (i & 63)
	return had
}

func (b bits) has(i int64) bool {
	p := b[i>>15]
	return p != nil && p[i>>6&511]&(1<<(i&63)) != 0
}

// numbers are the groups in use, in order.
func (a *asif) numbers() []int64 {
	var list []int64
	for n := range a.groups {
		list = append(list, n)
	}
	slices.Sort(list)
	return list
}

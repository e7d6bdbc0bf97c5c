package container

import (
	"bytes"
	"crypto/rand"
	"encoding/binary"
	"fmt"
	"slices"
	"sync/atomic"

	"dmgbench/internal/image"
)

// The layout of ASIF. Source: blank images of macOS 26 for header, geometry
// and metadata; for the states of entries the notes of huven/asif-format, who
// watched macOS write.
const (
	asifHeader = 0x200
	// What macOS writes into the header, and we into new images.
	asifChunk    = 1 << 20
	asifBlock    = 512
	asifMaxBlock = 1 << 43
	asifMeta     = 1<<32 - 1 // the logical chunk that holds the metadata: the last one

	// Bounds of what is read, of which only the values above have been seen.
	asifMostChunk = 64 << 20
	asifMostBlock = 64 << 10
	asifMostDir   = 16 << 20 // bytes of a directory

	// States of a data entry, in its two highest bits.
	asifNumber   = 1<<55 - 1
	asifNone     = 0 << 62
	asifWhole    = 1 << 62
	asifUnmapped = 2 << 62 // unmapped by TRIM
	asifPartial  = 3 << 62
)

// asifHead is the header with what follows from it.
type asifHead struct {
	dirs   [2]int64 // offsets of the directories
	uuid   [16]byte
	blocks int64 // of the device
	most   int64 // blocks that the device can have
	chunk  int64 // bytes
	block  int64 // bytes
	meta   int64 // logical chunk of the metadata

	perGroup  int64 // data chunks in a group
	groupLen  int64 // bytes of a group in a table
	groups    int64 // in a table
	tables    int64 // in a directory
	dirLen    int64 // bytes of a directory
	firstFree int64 // first chunk behind header and directories
}

func (h *asifHead) size() int64 { return h.blocks * h.block }

// derive fills in the geometry.
func (h *asifHead) derive() {
	h.perGroup = 4 * h.block
	h.groupLen = 8 * (h.perGroup + 1)
	h.groups = h.chunk / h.groupLen
	if h.groups == 0 {
		return
	}
	h.tables = ceil(ceil(h.most*h.block, h.chunk), h.groups*h.perGroup)
	h.dirLen = roundUp(8*(h.tables+1), h.block)
	h.firstFree = ceil(max(h.dirs[0], h.dirs[1])+h.dirLen, h.chunk)
}

// newASIF is the header of a new image; an id of zeros means a random one.
func newASIF(size int64, id [16]byte) asifHead {
	h := asifHead{dirs: [2]int64{asifHeader, 0}, blocks: size / asifBlock, most: asifMaxBlock, chunk: asifChunk, block: asifBlock, meta: asifMeta}
	h.derive()
	h.dirs[1] = h.dirs[0] + h.dirLen
	h.derive()
	if h.uuid = id; id == [16]byte{} {
		_, _ = rand.Read(h.uuid[:])
	}
	h.uuid[6], h.uuid[8] = h.uuid[6]&0x0f|0x40, h.uuid[8]&0x3f|0x80
	return h
}

// parseASIF reads the header. It refuses versions, flags, segments and
// anything else in it whose meaning is not known.
func parseASIF(b []byte) (h asifHead, err error) {
	be := binary.BigEndian
	u64 := func(at int) uint64 { return be.Uint64(b[at:]) }
	if len(b) < asifHeader || string(b[:4]) != "shdw" {
		return h, corrupt("reading ASIF image: no header")
	}
	for _, f := range []struct {
		name      string
		has, want uint32
	}{
		{"version", be.Uint32(b[4:]), 1}, {"header size", be.Uint32(b[8:]), asifHeader},
		{"flags", be.Uint32(b[0xc:]), 0}, {"segments", uint32(be.Uint16(b[0x46:])), 0},
	} {
		if f.has != f.want {
			return h, unknown("Apple sparse image format (ASIF) with %s %#x", f.name, f.has)
		}
	}
	for _, v := range b[0x50:asifHeader] {
		if v != 0 {
			return h, unknown("Apple sparse image format (ASIF) with something in the reserved part of its header")
		}
	}
	h.chunk, h.block = int64(be.Uint32(b[0x40:])), int64(be.Uint16(b[0x44:]))
	if h.block == 0 || h.block%SectorSize != 0 || h.chunk == 0 || h.chunk%h.block != 0 {
		return h, corrupt("reading ASIF image: chunks of %d bytes and blocks of %d", h.chunk, h.block)
	}
	if h.chunk > asifMostChunk || h.block > asifMostBlock {
		return h, unknown("Apple sparse image format (ASIF) with chunks of %d bytes and blocks of %d", h.chunk, h.block)
	}
	for _, at := range []int{0x10, 0x18, 0x30, 0x38, 0x48} {
		if u64(at) > image.MaxSize {
			return h, corrupt("reading ASIF image: %#x at %#x of the header", u64(at), at)
		}
	}
	copy(h.uuid[:], b[0x20:])
	h.dirs = [2]int64{int64(u64(0x10)), int64(u64(0x18))}
	h.blocks, h.most, h.meta = int64(u64(0x30)), int64(u64(0x38)), int64(u64(0x48))
	return h, h.check()
}

func (h *asifHead) check() error {
	if h.most > image.MaxSize/h.block || h.blocks > h.most {
		return corrupt("reading ASIF image: %d of at most %d blocks", h.blocks, h.most)
	}
	h.derive()
	if h.groups == 0 {
		return corrupt("reading ASIF image: chunks of %d bytes are too unexpectedEOF for a table", h.chunk)
	}
	if h.dirLen > asifMostDir {
		return unknown("Apple sparse image format (ASIF) with directories of %d bytes", h.dirLen)
	}
	low, high := min(h.dirs[0], h.dirs[1]), max(h.dirs[0], h.dirs[1])
	if low < asifHeader || high < low+h.dirLen || low%SectorSize != 0 || high%SectorSize != 0 {
		return corrupt("reading ASIF image: directories at %d and %d", h.dirs[0], h.dirs[1])
	}
	if h.meta < ceil(h.size(), h.chunk) || h.meta >= ceil(h.most*h.block, h.chunk) {
		return corrupt("reading ASIF image: metadata in chunk %d", h.meta)
	}
	return nil
}

func (h *asifHead) encode() []byte {
	b := make([]byte, asifHeader)
	copy(b, "shdw")
	be := binary.BigEndian
	be.PutUint32(b[4:], 1)
	be.PutUint32(b[8:], asifHeader)
	be.PutUint64(b[0x10:], uint64(h.dirs[0]))
	be.PutUint64(b[0x18:], uint64(h.dirs[1]))
	copy(b[0x20:], h.uuid[:])
	be.PutUint64(b[0x30:], uint64(h.blocks))
	be.PutUint64(b[0x38:], uint64(h.most))
	be.PutUint32(b[0x40:], uint32(h.chunk))
	be.PutUint16(b[0x44:], uint16(h.block))
	be.PutUint64(b[0x48:], uint64(h.meta))
	return b
}

// metadata is the chunk of metadata of a new image: a header and a property
// list that is not longer than 512 bytes, because a field of the header is
// either its offset or its padded length.
func (h *asifHead) metadata() []byte {
	b := make([]byte, 0x400)
	copy(b, "meta")
	be := binary.BigEndian
	be.PutUint32(b[4:], 1)
	be.PutUint32(b[8:], 0x200)
	be.PutUint64(b[0xc:], 0x200)
	u := h.uuid
	copy(b[0x200:], fmt.Sprintf(`<?xml version="1.0" encoding="UTF-8"?>
<!DOCTYPE plist PUBLIC "-//Apple//DTD PLIST 1.0//EN" "http://www.apple.com/DTDs/PropertyList-1.0.dtd">
<plist version="1.0">
<dict>
	<key>internal metadata</key>
	<dict>
		<key>stable uuid</key>
		<string>%x-%x-%x-%x-%x</string>
	</dict>
	<key>user metadata</key>
	<dict/>
</dict>
</plist>
`, u[:4], u[4:6], u[6:8], u[8:10], u[10:]))
	return b
}

// where is the place of the entry of logical chunk i: its table, and the
// offset in that.
func (h *asifHead) where(i int64) (table, at int64) {
	group := i / h.perGroup
	return group / h.groups, group%h.groups*h.groupLen + i%h.perGroup*8
}

// blank is what a new image has in it, by offset: header, directories, one
// table with the entry of the metadata, and the group's bitmap, which says that
// two sectors of them are written.
func (h *asifHead) blank() map[int64][]byte {
	number := func(v uint64) []byte { return binary.BigEndian.AppendUint64(nil, v) }
	t, at := h.where(h.meta)
	table, meta, bitmap := h.firstFree, h.firstFree+1, h.firstFree+2
	sector := h.meta % h.perGroup * (h.chunk / h.block)
	bits := at - h.meta%h.perGroup*8 + h.perGroup*8 // of the group's bitmap entry
	return map[int64][]byte{
		0:                         h.encode(),
		h.dirs[1]:                 number(1),
		h.dirs[0] + 8 + 8*t:       number(uint64(table)),
		h.dirs[1] + 8 + 8*t:       number(uint64(table)),
		table*h.chunk + at:        number(asifPartial | uint64(meta)),
		table*h.chunk + bits:      number(uint64(bitmap)),
		meta * h.chunk:            h.metadata(),
		bitmap*h.chunk + sector/4: {0x05},
	}
}

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
func loadASIF(m syncStore) (*asif, error) {
	a := &asif{syncStore: m, groups: map[int64]asifGroup{}, changed: map[int64]struct{}{}}
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
			return unexpectedEOF(err)
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
		case v&^uint64(3<<62|asifNumber) != 0, (state == asifNone || state == asifUnmapped) && n != 0:
			return unknown("Apple sparse image format (ASIF) with table entry %#x", v)
		case i >= room:
			return corrupt("entry %d behind the last chunk that there can be", i)
		case state == asifPartial && bitmap == 0:
			return corrupt("entry %d is of a partial written chunk, but there is no bitmap", i)
		}
		if state != asifUnmapped {
			if err := l.take(uint64(n), state == asifPartial); err != nil {
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
		if state != asifPartial {
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

package container

import (
	"bytes"
	"crypto/rand"
	_ "embed"
	"encoding/binary"
	"fmt"
	"sync"

	"dmgbench/internal/image"
	"dmgbench/internal/system/units"
)

// The format of ASIF, all big-endian. Sources: blank images of macOS 26 for
// header, geometry and metadata; for the states of entries the notes in the
// repository huven/asif-format, made while macOS wrote.
const (
	asifHeader = 0x200 // bytes
	// What macOS writes into the header, and we write into new images.
	asifChunk     = 1 << 20
	asifBlock     = 512
	asifMaxBlocks = 1 << 43
	asifMeta      = 1<<32 - 1 // the logical chunk that contains the metadata: the last one

	// Limits for reading. Only the values above are known from images.
	asifMostChunk = 64 << 20
	asifMostDir   = 16 << 20 // bytes of a directory
	// asifMostTables bounds the tables of an image. Each covers 126 GiB of the
	// device in the images of macOS, and takes 1 MiB of memory at most, if all
	// its groups are in use.
	asifMostTables = 4096

	// An entry of a table is the number of a chunk of the file, and in its two
	// highest bits the state of the chunk.
	asifNumber   = 1<<55 - 1
	asifNone     = 0 << 62
	asifWhole    = 1 << 62
	asifUnmapped = 2 << 62 // by TRIM
	asifPartial  = 3 << 62 // only what the bitmap marks is written
)

// asifMagic starts the header.
var asifMagic = [4]byte{'s', 'h', 'd', 'w'}

// splitEntry returns the state and the chunk of the file of an entry.
func splitEntry(v uint64) (state uint64, number int64) {
	return v & (3 << 62), int64(v & asifNumber)
}

// asifFields is the header as it is in the file.
type asifFields struct {
	Magic             [4]byte
	Version           uint32
	HeaderSize        uint32
	Flags             uint32
	Dirs              [2]int64 // offsets of the directories
	UUID              [16]byte
	Blocks, MaxBlocks int64  // that the device has, and can have
	Chunk             uint32 // bytes
	Block, Segments   uint16 // bytes of a block
	Meta              int64  // logical chunk of the metadata
	Reserved          [asifHeader - 0x50]byte
}

// asifHead is the header with the geometry that follows from it.
type asifHead struct {
	asifFields
	chunk, block int64 // bytes
	capacity     int64 // chunks that the device can have
	perGroup     int64 // data chunks in a group
	groupLen     int64 // bytes of a group in a table
	groups       int64 // in a table
	tables       int64 // in a directory
	dirLen       int64 // bytes of a directory
	firstFree    int64 // first chunk after header and directories
}

// size is the length of the device in bytes.
func (h *asifHead) size() int64 { return h.Blocks * h.block }

// setGeometry computes the geometry of a header with valid sizes.
func (h *asifHead) setGeometry() {
	h.chunk, h.block = int64(h.Chunk), int64(h.Block)
	h.capacity = ceil(h.MaxBlocks*h.block, h.chunk)
	h.perGroup = 4 * h.block
	h.groupLen = 8 * (h.perGroup + 1)
	h.groups = max(h.chunk/h.groupLen, 1)
	h.tables = ceil(h.capacity, h.groups*h.perGroup)
	h.dirLen = units.RoundUp(8*(h.tables+1), h.block)
	h.firstFree = ceil(max(h.Dirs[0], h.Dirs[1])+h.dirLen, h.chunk)
}

// newASIF is the header of a new image; an id of zeros means a random one.
func newASIF(size int64, id [16]byte) asifHead {
	h := asifHead{asifFields: asifFields{Magic: asifMagic, Version: 1, HeaderSize: asifHeader, UUID: id,
		Blocks: size / asifBlock, MaxBlocks: asifMaxBlocks, Chunk: asifChunk, Block: asifBlock, Meta: asifMeta}}
	h.placeDirs()
	if id == [16]byte{} {
		_, _ = rand.Read(h.UUID[:])
	}
	h.UUID[6], h.UUID[8] = h.UUID[6]&0x0f|0x40, h.UUID[8]&0x3f|0x80 // RFC 9562: a random UUID
	return h
}

// placeDirs computes the geometry with the directories after the header.
func (h *asifHead) placeDirs() {
	h.setGeometry()
	h.Dirs = [2]int64{asifHeader, asifHeader + h.dirLen}
	h.setGeometry()
}

// unknownASIF is the error for an image with features that are not known.
func unknownASIF(format string, args ...any) error {
	return unknown("Apple sparse image format (ASIF) with "+format, args...)
}

// parseASIF reads the header and computes the geometry. It refuses unknown
// versions and flags, segments, data in the reserved part, and contradictions.
func parseASIF(b []byte) (h asifHead, err error) {
	decodeFields(b, &h.asifFields)
	known := asifFields{Magic: asifMagic, Version: 1, HeaderSize: asifHeader, Dirs: h.Dirs, UUID: h.UUID,
		Blocks: h.Blocks, MaxBlocks: h.MaxBlocks, Chunk: h.Chunk, Block: h.Block, Meta: h.Meta}
	chunk, block := int64(h.Chunk), int64(h.Block)
	contradictory := corrupt("reading ASIF image: chunks of %d bytes, %d of %d blocks of %d bytes, directories at %d, "+
		"metadata in chunk %d", chunk, h.Blocks, h.MaxBlocks, block, h.Dirs, h.Meta)
	switch {
	case h.Magic != asifMagic:
		return h, corrupt("reading ASIF image: no header")
	case h.asifFields != known:
		return h, unknownASIF("version %d, %d bytes of header, flags %#x, %d segments, or data in the reserved part",
			h.Version, h.HeaderSize, h.Flags, h.Segments)
	case block == 0 || block%SectorSize != 0 || chunk == 0 || chunk%block != 0,
		min(h.Dirs[0], h.Dirs[1], h.Blocks) < 0 || max(h.Dirs[0], h.Dirs[1]) > image.MaxSize,
		h.MaxBlocks > image.MaxSize/block || h.Blocks > h.MaxBlocks:
		return h, contradictory
	case chunk > asifMostChunk:
		return h, unknownASIF("chunks of %d bytes", chunk)
	}
	h.setGeometry()
	low, high := min(h.Dirs[0], h.Dirs[1]), max(h.Dirs[0], h.Dirs[1])
	switch {
	case h.dirLen > asifMostDir:
		return h, unknownASIF("directories of %d bytes", h.dirLen)
	case h.groupLen > h.chunk, h.Meta < ceil(h.size(), h.chunk) || h.Meta >= h.capacity,
		low < asifHeader || high < low+h.dirLen || low%SectorSize != 0 || high%SectorSize != 0:
		return h, contradictory
	}
	return h, nil
}

//go:embed asif_metadata.plist
var asifMetadata string

// metadata is the chunk of metadata of a new image: a header and a property
// list of at most 512 bytes, because a field of the header is either its offset
// or its padded length.
func (h *asifHead) metadata() []byte {
	b := make([]byte, 0x400)
	copy(b, "meta")
	be := binary.BigEndian
	be.PutUint32(b[4:], 1)
	be.PutUint32(b[8:], 0x200)
	be.PutUint64(b[0xc:], 0x200)
	u := h.UUID
	copy(b[0x200:], fmt.Sprintf(asifMetadata, u[:4], u[4:6], u[6:8], u[8:10], u[10:]))
	return b
}

// slot is the number of the entry of chunk i. Slots count the entries of all
// groups, with those of bitmaps.
func (h *asifHead) slot(i int64) int64 { return i/h.perGroup*(h.perGroup+1) + i%h.perGroup }

// bitmapSlot is the slot of the bitmap of chunk i.
func (h *asifHead) bitmapSlot(i int64) int64 { return i/h.perGroup*(h.perGroup+1) + h.perGroup }

// entryOf returns the table with the entry of a slot, and the offset of the
// entry in the table.
func (h *asifHead) entryOf(slot int64) (table, at int64) {
	group, i := slot/(h.perGroup+1), slot%(h.perGroup+1)
	return group / h.groups, group%h.groups*h.groupLen + i*8
}

// write makes a new file a blank image: header, directories, one table with the
// entry of the metadata, and the bitmap of its group, which marks two sectors of
// the metadata as written.
func (h *asifHead) write(f store) error {
	number := func(v uint64) []byte { return binary.BigEndian.AppendUint64(nil, v) }
	t, at := h.entryOf(h.slot(h.Meta))
	_, bitmapEntry := h.entryOf(h.bitmapSlot(h.Meta))
	table, meta, bitmap := h.firstFree, h.firstFree+1, h.firstFree+2
	sector := h.Meta % h.perGroup * (h.chunk / h.block)
	err := f.Truncate((h.firstFree + 3) * h.chunk)
	for at, p := range map[int64][]byte{
		0:                           encodeFields(h.asifFields),
		h.Dirs[1]:                   number(1),
		h.Dirs[0] + 8 + 8*t:         number(uint64(table)),
		h.Dirs[1] + 8 + 8*t:         number(uint64(table)),
		table*h.chunk + at:          number(asifPartial | uint64(meta)),
		table*h.chunk + bitmapEntry: number(uint64(bitmap)),
		meta * h.chunk:              h.metadata(),
		bitmap*h.chunk + sector/4:   {0x05},
	} {
		if err == nil {
			_, err = f.WriteAt(p, at)
		}
	}
	return err
}

// asifLoader reads the tables of an image and checks them.
type asifLoader struct {
	*asif
	size   int64          // of the file
	seen   map[int64]bool // chunks of the file in use
	tables int            // read so far
}

// loadASIF reads header, the newer directory and all tables, in the order in
// which they refer to each other. It refuses reserved bits, a chunk in a state
// without chunks, chunks outside the file or in the directories, and two
// entries with one chunk.
func loadASIF(s syncStore) (a *asif, err error) {
	a = &asif{syncStore: s, entries: map[int64]uint64{}, changed: map[int64]uint64{}}
	l := asifLoader{asif: a, seen: map[int64]bool{}}
	defer func() {
		if err != nil {
			err = fmt.Errorf("reading %q: %w", s.f.Path(), err)
		}
	}()
	if l.size, err = s.f.Size(); err != nil {
		return nil, err
	}
	b, err := l.get(0, asifHeader, l.size)
	if err != nil {
		return nil, err
	}
	if a.head, err = parseASIF(b); err != nil {
		return nil, err
	}
	if err := l.loadDir(); err != nil {
		return nil, err
	}
	a.next = ceil(l.size, a.head.chunk)
	for t, table := range a.dir {
		if err := l.loadTable(int64(t), table); err != nil {
			return nil, fmt.Errorf("table %d: %w", t, err)
		}
	}
	a.cut = l.size%a.head.chunk != 0 && l.seen[a.next-1]
	return a, nil
}

// loadDir reads the directory with the higher version.
func (l *asifLoader) loadDir() error {
	var raw [2][]byte
	var version [2]uint64
	for i, at := range l.head.Dirs {
		var err error
		if raw[i], err = l.get(at, l.head.dirLen, l.size); err != nil {
			return err
		}
		version[i] = binary.BigEndian.Uint64(raw[i])
	}
	if version[0] == version[1] && !bytes.Equal(raw[0], raw[1]) {
		return corrupt("both directories are of version %d, and differ", version[0])
	}
	if version[1] > version[0] {
		l.active = 1
	}
	l.version = version[l.active]
	if l.version == 1<<64-1 {
		return corrupt("directory of version %d", l.version)
	}
	l.dir = make([]int64, l.head.tables)
	for t := range l.dir {
		v := binary.BigEndian.Uint64(raw[l.active][8+8*t:])
		if v > asifNumber {
			return unknownASIF("directory entry %#x", v)
		}
		l.dir[t] = int64(v)
	}
	return nil
}

// takeChunk records that chunk v of the file is in use. With cut it may be the
// last one, cut off by the end of the file: whether macOS leaves such files is
// not known. What they lack is found when it is read.
func (l *asifLoader) takeChunk(v uint64, cut bool) error {
	chunks := l.size / l.head.chunk
	if cut {
		chunks = l.next
	}
	if v < uint64(l.head.firstFree) || v >= uint64(chunks) {
		return corrupt("chunk %d, want one from %d to %d", v, l.head.firstFree, chunks-1)
	}
	if l.seen[int64(v)] {
		return corrupt("chunk %d for the second time", v)
	}
	l.seen[int64(v)] = true
	return nil
}

// loadTable reads table t, which is in chunk number of the file, 0 for none.
func (l *asifLoader) loadTable(t, number int64) error {
	if number == 0 {
		return nil
	}
	if l.tables++; l.tables > asifMostTables {
		return unknownASIF("more than %d tables", asifMostTables)
	}
	if err := l.takeChunk(uint64(number), false); err != nil {
		return err
	}
	p := make([]byte, l.head.groupLen)
	zero := make([]byte, len(p))
	for g := range l.head.groups {
		if n, err := l.f.ReadAt(p, number*l.head.chunk+g*l.head.groupLen); n < len(p) {
			return unexpectedEOF(err)
		}
		if bytes.Equal(p, zero) {
			continue
		}
		if err := l.loadGroup(p, t*l.head.groups+g); err != nil {
			return fmt.Errorf("group %d: %w", g, err)
		}
	}
	return nil
}

// loadGroup reads one group: entries, and after them that of the bitmap, which
// has no state.
func (l *asifLoader) loadGroup(p []byte, group int64) error {
	count := l.head.perGroup
	bitmap := binary.BigEndian.Uint64(p[8*count:])
	for i := range count + 1 {
		v := binary.BigEndian.Uint64(p[8*i:])
		state, n := splitEntry(v)
		isBitmap := i == count
		switch {
		case v == 0, v == asifUnmapped && !isBitmap:
			continue
		case v&^uint64(3<<62|asifNumber) != 0, state == asifUnmapped, isBitmap == (state != asifNone):
			return unknownASIF("table entry %#x", v)
		case group*count+i >= l.head.capacity && !isBitmap:
			return corrupt("entry %d after the last chunk that a device can have", i)
		case state == asifPartial && bitmap == 0:
			return corrupt("entry %d is of a partial chunk, and the group has no bitmap", i)
		}
		if err := l.takeChunk(uint64(n), isBitmap || state == asifPartial); err != nil {
			return fmt.Errorf("entry %d: %w", i, err)
		}
		l.entries[group*(count+1)+i] = v
	}
	return nil
}

// asif is the chunk map of an ASIF image.
//
// All new chunks are written as "fully initialised": they are zeros in the file
// from the start, so that they read as zeros in readers that ignore bitmaps,
// too. Bitmaps are read, and a partial chunk is completed with zeros before it
// is written.
type asif struct {
	syncStore
	head asifHead

	completing sync.Mutex

	mu      sync.RWMutex     // of the fields below
	entries map[int64]uint64 // by slot, those with a chunk of the file
	changed map[int64]uint64 // since the last commit
	dir     []int64          // chunk of the file of each table, 0 for none
	next    int64            // chunk after the file's last
	cut     bool             // the file ended inside its last chunk, which is in use
	moved   bool             // dir differs from the directory in the file

	// Of the directory in the file; used by the one commit that runs.
	version uint64
	active  int // 0 or 1
}

// eachWritten calls do for the runs of blocks of chunk i that its bitmap marks
// as written or not, in bytes from the start of the chunk.
func (a *asif) eachWritten(i int64, do func(in, n int64, written bool) error) error {
	_, bitmap := a.entry(a.head.bitmapSlot(i))
	blocks := a.head.chunk / a.head.block
	first := i % a.head.perGroup * blocks
	p := make([]byte, (first+blocks-1)/4-first/4+1)
	if n, err := a.f.ReadAt(p, bitmap*a.head.chunk+first/4); n < len(p) {
		return unexpectedEOF(err)
	}
	code := func(b int64) byte { return p[(first+b)/4-first/4] >> ((first + b) % 4 * 2) & 3 }
	for b := int64(0); b < blocks; {
		from, c := b, code(b)
		for b < blocks && code(b) == c {
			b++
		}
		if c > bitmapZeros {
			found := fmt.Sprintf("Apple sparse image format (ASIF) with bitmap code %d", c)
			return &UnsupportedError{Path: a.f.Path(), Doing: "reading", Found: found}
		}
		if err := do(from*a.head.block, (b-from)*a.head.block, c == bitmapWritten); err != nil {
			return err
		}
	}
	return nil
}

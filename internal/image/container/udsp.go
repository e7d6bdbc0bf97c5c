package container

import (
	"encoding/binary"
	"fmt"
	"maps"
	"math"
	"slices"
	"sync"

	"dmgbench/internal/image"
	"dmgbench/internal/system/hostio"
)

// The format of a sparse image, all big-endian: a header node, bands in slots,
// and where those are more than its table holds, an index node after them with
// its own bands, and so on. Sources: hdiutil's files with one node; for chained
// nodes the readers of apfs-fuse and fstool, which agree.
const (
	udspNode     = 4096 // bytes of a node
	udspHeadAt   = 0x40 // of the header node's table
	udspIndexAt  = 0x38 // of an index node's table
	udspHeadLen  = (udspNode - udspHeadAt) / 4
	udspIndexLen = (udspNode - udspIndexAt) / 4
	// udspMaxBands bounds the bands of a device: entries count from 1 in 32
	// bits.
	udspMaxBands = math.MaxUint32 - 1
)

// Marks in the entries of a table while a compaction runs, so that the image is
// valid after every single write: the slot is not in use, or it contains a copy
// of the band in the lower bits, which counts when no other slot has that band.
// They are larger than the last band of every image that is compacted. Opening
// for writing completes the compaction.
const (
	udspMark      = 0xD0000000
	udspMarkBands = 0x0FFFFFFF
)

// splitMark returns the band of a mark, 0 for a slot that is not in use, and
// whether v is a mark.
func splitMark(v uint32, bands int64) (band uint32, ok bool) {
	band = v & udspMarkBands
	return band, v&^uint32(udspMarkBands) == udspMark && bands <= udspMarkBands && int64(band) <= bands
}

// udspHeadFields is the header node before its table.
type udspHeadFields struct {
	Magic       [4]byte
	Version     uint32
	BandSectors uint32
	Used        uint32 // 1 if there are bands
	LowSectors  uint32 // Sectors, or 0 if it needs more bits
	Next        uint64 // offset of the next node, 0: none
	Sectors     uint64
	Reserved    [udspHeadAt - 0x24]byte
}

// udspIndexFields is an index node before its table.
type udspIndexFields struct {
	Magic    [4]byte
	Number   uint32 // from 0
	Used     uint32
	Next     uint64
	Reserved [udspIndexAt - 0x14]byte
}

// udspMagic starts every node.
var udspMagic = [4]byte{'s', 'p', 'r', 's'}

// udspHead is the header node apart from its table.
type udspHead struct {
	band int64 // bytes
	size int64 // of the device, bytes
	next int64 // offset of the next node, 0: none
}

// bands is how many bands the device has, stored or not.
func (h udspHead) bands() int64 { return ceil(h.size, h.band) }

// parseUDSPHead reads the header node.
func parseUDSPHead(b []byte) (h udspHead, err error) {
	var f udspHeadFields
	if _, err := binary.Decode(b, binary.BigEndian, &f); err != nil || f.Magic != udspMagic {
		return h, corrupt("reading sparse image: no header")
	}
	switch {
	case f.Version != 3:
		return h, unknown("sparse image (UDSP) of version %d", f.Version)
	case f.Used > 1:
		return h, unknown("sparse image (UDSP) with flags %#x", f.Used)
	case f.Reserved != [len(f.Reserved)]byte{}:
		return h, unknown("sparse image (UDSP) with data in the reserved part of its header")
	case f.BandSectors == 0:
		return h, corrupt("reading sparse image: bands of 0 sectors")
	case f.Sectors > image.MaxSize/SectorSize:
		return h, corrupt("reading sparse image: %d sectors", f.Sectors)
	case f.LowSectors != 0 && uint64(f.LowSectors) != f.Sectors,
		f.LowSectors == 0 && f.Sectors != 0 && f.Sectors <= math.MaxUint32:
		return h, corrupt("reading sparse image: its header has both %d and %d sectors", f.LowSectors, f.Sectors)
	case f.Next > image.MaxSize:
		return h, corrupt("reading sparse image: next node at %d", f.Next)
	}
	h = udspHead{band: int64(f.BandSectors) * SectorSize, size: int64(f.Sectors) * SectorSize, next: int64(f.Next)}
	if h.bands() > udspMaxBands {
		return h, corrupt("reading sparse image: %d bands", h.bands())
	}
	return h, nil
}

// parseUDSPIndex reads an index node and returns the offset of the next one.
func parseUDSPIndex(b []byte) (next int64, err error) {
	var f udspIndexFields
	_, err = binary.Decode(b, binary.BigEndian, &f)
	switch {
	case err != nil || f.Magic != udspMagic:
		return 0, corrupt("reading sparse image: no index node where one should be")
	case f.Used > 1:
		return 0, unknown("sparse image (UDSP) with index flags %#x", f.Used)
	case f.Reserved != [len(f.Reserved)]byte{}:
		return 0, unknown("sparse image (UDSP) with data in the reserved part of an index node")
	case f.Next > image.MaxSize:
		return 0, corrupt("reading sparse image: next node at %d", f.Next)
	}
	return int64(f.Next), nil
}

// encode writes the header node with a table.
func (h udspHead) encode(entries []uint32) []byte {
	f := udspHeadFields{Magic: udspMagic, Version: 3, BandSectors: uint32(h.band / SectorSize), Next: uint64(h.next),
		Sectors: uint64(h.size / SectorSize)}
	if len(entries) > 0 {
		f.Used = 1
	}
	if f.Sectors <= math.MaxUint32 {
		f.LowSectors = uint32(f.Sectors)
	}
	return encodeUDSPNode(f, entries)
}

// encodeUDSPIndex writes index node number n, counted from 0.
func encodeUDSPIndex(n int, next int64, entries []uint32) []byte {
	return encodeUDSPNode(udspIndexFields{Magic: udspMagic, Number: uint32(n), Used: 1, Next: uint64(next)}, entries)
}

// encodeUDSPNode writes a node: its fields, and then its table.
func encodeUDSPNode(fields any, entries []uint32) []byte {
	b, err := binary.Append(make([]byte, 0, udspNode), binary.BigEndian, fields)
	if err != nil {
		panic(err) // the fields have fixed sizes
	}
	for _, v := range entries {
		b = binary.BigEndian.AppendUint32(b, v)
	}
	return b[:udspNode]
}

// udspTable is the offset of the table in node k, and its length.
func udspTable(k int) (at, n int) {
	if k == 0 {
		return udspHeadAt, udspHeadLen
	}
	return udspIndexAt, udspIndexLen
}

// udspNodeInfo is one node of the file. A slot that is not in use is an entry
// of 0; the last entry is not 0.
type udspNodeInfo struct {
	at      int64
	cap     int // slots that have room
	entries []uint32
}

// slot is the offset of slot i.
func (n *udspNodeInfo) slot(i int, band int64) int64 { return n.at + udspNode + int64(i)*band }

// slotRef is a slot by node and number.
type slotRef struct{ node, i int }

// udsp is the chunk map of a sparse image. Bands are in slots in the order of
// their first writes. A discarded band is only punched, since the table has no
// holes; a compaction moves the last bands into the slots of dropped ones.
type udsp struct {
	syncStore
	head        udspHead           // head.next is not kept
	fileSize    int64              // when it was opened
	interrupted bool               // there are marks of a compaction
	copied      map[slotRef]uint32 // slots with the only copy of their band, by the marks of that compaction

	mu     sync.RWMutex    // of the fields below; entries are only ever appended
	places map[int64]int64 // from band to the offset of its slot
	nodes  []udspNodeInfo
	end    int64 // of the last slot

	// The part of nodes that is in the file; used by the one commit that runs.
	savedNodes, savedEntries int
}

var _ chunkMap = (*udsp)(nil)

func init() {
	drivers[UDSP] = driver{create: createUDSP, magic: "sprs", open: func(f store, _ contents, o OpenOptions) (Image, error) {
		return openChunked(f, UDSP, o)
	}}
}

// createUDSP makes an image without bands.
func createUDSP(dir *hostio.Dir, name string, s Spec) error {
	head := udspHead{band: s.BandSize, size: s.Size}
	return s.Encryption.createFile(dir, name, udspNode, func(f target) error {
		_, err := f.WriteAt(head.encode(nil), 0)
		return err
	})
}

// openUDSP reads the table of the image in s. For writing it completes what a
// crash interrupted.
func openUDSP(s syncStore, readOnly bool) (chunks chunkMap, chunk, size int64, err error) {
	u, err := loadUDSP(s)
	if err == nil && !readOnly && u.interrupted {
		err = u.rewrite(func(int64) bool { return true })
	}
	if err == nil && !readOnly && u.fileSize > u.end {
		err = s.f.Truncate(u.end) // bytes that a crash left after the last slot would appear in the next one
	}
	if err != nil {
		return nil, 0, 0, err
	}
	return u, u.head.band, u.head.size, nil
}

// loadUDSP reads the whole table. Its memory is at most twenty times the bytes
// of the nodes in the file. It refuses nodes that are not one after the other
// (so that no chain can loop), bands outside the device or the file, two slots
// with one band, and entries after the end of a table, which readers treat
// differently: hdiutil stops at the first 0, apfs-fuse does not.
func loadUDSP(s syncStore) (*udsp, error) {
	size, err := s.f.Size()
	if err != nil {
		return nil, err
	}
	u := &udsp{syncStore: s, fileSize: size, places: map[int64]int64{}, copied: map[slotRef]uint32{}}
	for k, at := 0, int64(0); k == 0 || at != 0; k++ {
		if at, err = u.loadNode(k, at); err != nil {
			return nil, fmt.Errorf("reading node %d of %q: %w", k, s.f.Path(), err)
		}
	}
	if err := u.loadCopies(); err != nil {
		return nil, fmt.Errorf("reading %q: %w", s.f.Path(), err)
	}
	last := &u.nodes[len(u.nodes)-1]
	u.end = last.slot(len(last.entries), u.head.band)
	u.markSaved()
	return u, nil
}

// loadNode reads node k at an offset and returns the offset of the next one, 0
// for none.
func (u *udsp) loadNode(k int, at int64) (next int64, err error) {
	b, err := u.get(at, udspNode, u.fileSize)
	if err != nil {
		return 0, err
	}
	if k == 0 {
		u.head, err = parseUDSPHead(b)
		next = u.head.next
	} else {
		next, err = parseUDSPIndex(b)
	}
	if err != nil {
		return 0, err
	}
	from, room := udspTable(k)
	if next != 0 {
		if next < at+udspNode {
			return 0, corrupt("next node at %d, before this one's end", next)
		}
		room = int(min(int64(room), (next-at-udspNode)/u.head.band))
	}
	return next, u.loadTable(udspNodeInfo{at: at, cap: room}, b[from:])
}

// loadTable reads the table of the node after the loaded ones.
func (u *udsp) loadTable(n udspNodeInfo, table []byte) error {
	bands := u.head.bands()
	used := 0 // entries up to and with the last one that is not 0
	for i := range len(table) / 4 {
		v := binary.BigEndian.Uint32(table[4*i:])
		if v == 0 {
			continue
		}
		band, mark := splitMark(v, bands)
		if !mark && used < i {
			return corrupt("entry %d after the end of the table", i)
		}
		if i >= n.cap {
			return corrupt("entry %d is for a slot inside the next node", i)
		}
		for ; used < i; used++ {
			n.entries = append(n.entries, 0)
		}
		used++
		if mark {
			u.interrupted = true
			if band != 0 {
				u.copied[slotRef{len(u.nodes), i}] = band
			}
			v = 0
		} else if err := u.loadSlot(n.slot(i, u.head.band), v, bands); err != nil {
			return fmt.Errorf("entry %d: %w", i, err)
		}
		n.entries = append(n.entries, v)
	}
	u.nodes = append(u.nodes, n)
	return nil
}

// loadSlot records that a slot contains band v, which counts from 1.
func (u *udsp) loadSlot(at int64, v uint32, bands int64) error {
	switch {
	case int64(v) > bands:
		return corrupt("band %d of %d", v, bands)
	case at > u.fileSize-u.head.band:
		return corrupt("file of %d bytes ends inside the slot at %d", u.fileSize, at)
	case u.places[int64(v)-1] != 0:
		return corrupt("band %d for the second time", v)
	}
	u.places[int64(v)-1] = at
	return nil
}

// loadCopies records the copies of bands that are in no other slot, and forgets
// the others.
func (u *udsp) loadCopies() error {
	only := map[slotRef]uint32{}
	for s, band := range u.copied {
		if u.places[int64(band)-1] == 0 {
			only[s] = band
		}
	}
	for s, band := range only {
		if err := u.loadSlot(u.offsetOf(s), band, u.head.bands()); err != nil {
			return err
		}
	}
	u.copied = only
	return nil
}

// offsetOf is the offset of a slot.
func (u *udsp) offsetOf(s slotRef) int64 { return u.nodes[s.node].slot(s.i, u.head.band) }

// markSaved records that all nodes are in the file.
func (u *udsp) markSaved() {
	u.savedNodes = len(u.nodes)
	u.savedEntries = len(u.nodes[u.savedNodes-1].entries)
}

// format implements chunkMap.
func (u *udsp) format() string { return UDSP }

// find implements chunkMap; no chunk is partial.
func (u *udsp) find(i int64) (at int64, partial bool) {
	u.mu.RLock()
	defer u.mu.RUnlock()
	return u.places[i], false
}

// list implements chunkMap.
func (u *udsp) list() []int64 {
	u.mu.RLock()
	defer u.mu.RUnlock()
	return slices.Sorted(maps.Keys(u.places))
}

// findings leaves out bytes after the last band: every crash may leave them,
// and opening for writing cuts them off.
func (u *udsp) findings() (list []Finding, err error) {
	if u.interrupted {
		list = append(list, Finding{Problem: "a compaction was interrupted; opening for writing completes it"})
	}
	return list, nil
}

// allocate appends slots, and a node when the last one is full. The file is
// lengthened before another call can find the slots.
func (u *udsp) allocate(first, last int64) error {
	u.mu.Lock()
	defer u.mu.Unlock()
	type place struct{ band, at int64 }
	var made []place
	nodes, end := len(u.nodes), u.end
	entries := len(u.nodes[nodes-1].entries)
	for i := first; i <= last; i++ {
		if u.places[i] != 0 {
			continue
		}
		n := &u.nodes[len(u.nodes)-1]
		if len(n.entries) == n.cap {
			u.nodes = append(u.nodes, udspNodeInfo{at: u.end, cap: udspIndexLen})
			n = &u.nodes[len(u.nodes)-1]
			u.end += udspNode
		}
		n.entries = append(n.entries, uint32(i)+1)
		made = append(made, place{i, u.end})
		u.end += u.head.band
	}
	if len(made) == 0 {
		return nil
	}
	if err := u.f.Truncate(u.end); err != nil {
		u.nodes, u.end = u.nodes[:nodes], end
		u.nodes[nodes-1].entries = u.nodes[nodes-1].entries[:entries]
		return err
	}
	for _, p := range made {
		u.places[p.band] = p.at
	}
	return nil
}

// commit syncs the data and then writes what was added to the table: new nodes
// while no other node refers to them, the new entries of the node that was the
// last, and then its reference to the new nodes.
func (u *udsp) commit() error {
	u.mu.Lock()
	nodes := slices.Clone(u.nodes)
	u.mu.Unlock()
	if err := u.sync(); err != nil {
		return err
	}
	old, last := u.savedNodes-1, len(nodes)-1
	if old < last {
		for k := old + 1; k <= last; k++ {
			if err := u.putNode(nodes, k, last); err != nil {
				return err
			}
		}
		if err := u.sync(); err != nil {
			return err
		}
	}
	if err := u.addEntries(nodes, old); err != nil {
		return err
	}
	if old < last {
		if err := u.putNode(nodes, old, last); err != nil {
			return err
		}
		if err := u.sync(); err != nil {
			return err
		}
	}
	u.savedNodes, u.savedEntries = len(nodes), len(nodes[last].entries)
	return nil
}

// addEntries writes the entries of node k sector by sector, and makes each
// durable before the next: disks write a sector as a whole, but two in any
// order, and a table with an entry after a 0 is damaged.
func (u *udsp) addEntries(nodes []udspNodeInfo, k int) error {
	n := nodes[k]
	at, _ := udspTable(k)
	for done := u.savedEntries; done < len(n.entries); {
		done = min(len(n.entries), ((at+4*done)/SectorSize+1)*SectorSize/4-at/4)
		part := slices.Clone(nodes[:k+1])
		part[k].entries = n.entries[:done]
		if err := u.putNode(part, k, k); err != nil {
			return err
		}
		if err := u.sync(); err != nil {
			return err
		}
	}
	return nil
}

// putNode writes node k of a chain with the last node last.
func (u *udsp) putNode(nodes []udspNodeInfo, k, last int) error {
	next := int64(0)
	if k < last {
		next = nodes[k+1].at
	}
	b := encodeUDSPIndex(k-1, next, nodes[k].entries)
	if k == 0 {
		h := u.head
		h.next = next
		b = h.encode(nodes[0].entries)
	}
	return u.put(b, nodes[k].at)
}

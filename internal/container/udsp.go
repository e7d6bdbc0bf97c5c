package container

import (
	"encoding/binary"
	"fmt"
	"math"
	"sync"

	"dmgbench/internal/hostio"
	"dmgbench/internal/image"
)

// The layout of a sparse image: a header node, bands, and where those are more
// than its table holds, an index node behind them with its own bands, and so
// on. All big-endian. Source: hdiutil's files with one node; for chained nodes
// the readers of apfs-fuse and fstool, which agree.
const (
	udspNode     = 4096 // bytes of a node
	udspHeadAt   = 0x40 // of the header node's table
	udspIndexAt  = 0x38 // of an index node's table
	udspHeadLen  = (udspNode - udspHeadAt) / 4
	udspIndexLen = (udspNode - udspIndexAt) / 4
	// udspMaxBands bounds the bands of a device: entries count from 1 in 32 bits.
	udspMaxBands = math.MaxUint32 - 1
)

// Marks of an entry that a compaction under way leaves in the table, so that
// every single write keeps the image sound: the slot is not in use, or it
// holds a copy of the band in the lower bits that counts once no other slot
// has that band. They lie beyond the last band of every image that is
// compacted. Opening for writing finishes the compaction.
const (
	udspMark      = 0xD0000000
	udspMarkBands = 0x0FFFFFFF
)

// udspMarked takes a mark apart; band is 0 for a slot that is not in use.
func udspMarked(v uint32, bands int64) (band uint32, ok bool) {
	band = v & udspMarkBands
	return band, v&^uint32(udspMarkBands) == udspMark && bands <= udspMarkBands && int64(band) <= bands
}

// udspNodeInfo is one node as it lies in the file. A slot that is not in use
// is an entry of 0; there is none at the end of the list.
type udspNodeInfo struct {
	at      int64
	cap     int // slots that have room
	entries []uint32
}

func (n *udspNodeInfo) slot(i int, band int64) int64 { return n.at + udspNode + int64(i)*band }

// udspHead is what the header node says besides its table.
type udspHead struct {
	band int64 // bytes
	size int64 // of the device, bytes
	next int64 // offset of the next node, 0: none
}

func (h udspHead) bands() int64 { return ceil(h.size, h.band) }

// parseUDSPHead reads the header node.
func parseUDSPHead(b []byte) (h udspHead, err error) {
	u32 := func(at int) uint32 { return binary.BigEndian.Uint32(b[at:]) }
	if len(b) != udspNode || string(b[:4]) != "sprs" {
		return h, corrupt("reading sparse image: no header")
	}
	if v := u32(4); v != 3 {
		return h, unknown("sparse image (UDSP) of version %d", v)
	}
	if f := u32(0x0c); f > 1 {
		return h, unknown("sparse image (UDSP) with flags %#x", f)
	}
	for _, v := range b[0x24:udspHeadAt] {
		if v != 0 {
			return h, unknown("sparse image (UDSP) with something in the reserved part of its header")
		}
	}
	low, sectors, next := u32(0x10), binary.BigEndian.Uint64(b[0x1c:]), binary.BigEndian.Uint64(b[0x14:])
	switch {
	case u32(8) == 0:
		return h, corrupt("reading sparse image: bands of 0 sectors")
	case sectors > image.MaxSize/SectorSize:
		return h, corrupt("reading sparse image: %d sectors", sectors)
	case low != 0 && uint64(low) != sectors, low == 0 && sectors != 0 && sectors <= math.MaxUint32:
		return h, corrupt("reading sparse image: its header says both %d and %d sectors", low, sectors)
	case next > image.MaxSize:
		return h, corrupt("reading sparse image: next node at %d", next)
	}
	h = udspHead{band: int64(u32(8)) * SectorSize, size: int64(sectors) * SectorSize, next: int64(next)}
	if h.bands() > udspMaxBands {
		return h, corrupt("reading sparse image: %d bands", h.bands())
	}
	return h, nil
}

// parseUDSPIndex reads what an index node says besides its table.
func parseUDSPIndex(b []byte) (next int64, err error) {
	if string(b[:4]) != "sprs" {
		return 0, corrupt("reading sparse image: no index node where one should be")
	}
	if f := binary.BigEndian.Uint32(b[8:]); f > 1 {
		return 0, unknown("sparse image (UDSP) with index flags %#x", f)
	}
	v := binary.BigEndian.Uint64(b[0x0c:])
	if v > image.MaxSize {
		return 0, corrupt("reading sparse image: next node at %d", v)
	}
	for _, v := range b[0x14:udspIndexAt] {
		if v != 0 {
			return 0, unknown("sparse image (UDSP) with something in the reserved part of an index node")
		}
	}
	return int64(v), nil
}

// encode writes the header node with a table.
func (h udspHead) encode(entries []uint32) []byte {
	b := make([]byte, udspNode)
	copy(b, "sprs")
	be := binary.BigEndian
	be.PutUint32(b[4:], 3)
	be.PutUint32(b[8:], uint32(h.band/SectorSize))
	if len(entries) > 0 {
		be.PutUint32(b[0x0c:], 1)
	}
	if sectors := h.size / SectorSize; sectors <= math.MaxUint32 {
		be.PutUint32(b[0x10:], uint32(sectors))
	}
	be.PutUint64(b[0x14:], uint64(h.next))
	be.PutUint64(b[0x1c:], uint64(h.size/SectorSize))
	putTable(b[udspHeadAt:], entries)
	return b
}

// encodeUDSPIndex writes index node number n, counted from 0.
func encodeUDSPIndex(n int, next int64, entries []uint32) []byte {
	b := make([]byte, udspNode)
	copy(b, "sprs")
	binary.BigEndian.PutUint32(b[4:], uint32(n))
	binary.BigEndian.PutUint32(b[8:], 1)
	binary.BigEndian.PutUint64(b[0x0c:], uint64(next))
	putTable(b[udspIndexAt:], entries)
	return b
}

func putTable(b []byte, entries []uint32) {
	for i, v := range entries {
		binary.BigEndian.PutUint32(b[4*i:], v)
	}
}

// udspTable is where the table of node k begins in the node, and its length.
func udspTable(k int) (at, n int) {
	if k == 0 {
		return udspHeadAt, udspHeadLen
	}
	return udspIndexAt, udspIndexLen
}

// udsp is the table of a sparse image. Bands lie in slots in the order in
// which they were first written; a slot given up is only punched, since the
// table has no holes, until a compaction moves the last ones down.
type udsp struct {
	syncStore
	head        udspHead           // head.next is not kept
	fileSize    int64              // when it was opened
	places      pagedTable         // from band to the offset of its slot
	interrupted bool               // an interrupted compaction was found
	copied      map[slotRef]uint32 // by it, copies that are the only one of their band

	mu    sync.Mutex // of what follows; entries are only ever appended
	nodes []udspNodeInfo
	end   int64 // of the last slot
	bands int

	// What of nodes is in the file, for the one commit that runs.
	savedNodes, savedEntries int
}

var _ chunkMap = (*udsp)(nil)

// createUDSP makes an image without bands.
func createUDSP(dir *hostio.Dir, name string, s Spec) error {
	head := udspHead{band: s.BandSize, size: s.Size}
	return s.Encryption.createFile(dir, name, udspNode, func(f target) error {
		_, err := f.WriteAt(head.encode(nil), 0)
		return err
	})
}

// openUDSP reads the table of the image in s. For writing it completes what a crash interrupted.
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

func (u *udsp) format() string { return UDSP }

func (u *udsp) find(i int64) (at int64, partial bool) { return u.places.get(i), false }

// unmapped implements chunkMap.
func (u *udsp) unmapped(i int64) int64 {
	switch {
	case u.places.page(i) == nil:
		return pageLen - i%pageLen
	case u.places.get(i) == 0:
		return 1
	}
	return 0
}

// findings leaves out bytes after the last band: every crash may leave them, and opening for writing cuts them off.
func (u *udsp) findings() (list []Finding, err error) {
	if u.interrupted {
		list = append(list, Finding{Problem: "a compaction was interrupted; opening for writing completes it"})
	}
	return list, nil
}

func (u *udsp) count() int {
	u.mu.Lock()
	defer u.mu.Unlock()
	return u.bands
}

// allocate appends slots, and nodes where the last one is full. The file is made
// longer before anybody can find the slots.
func (u *udsp) allocate(first, last int64) error {
	u.mu.Lock()
	defer u.mu.Unlock()
	type place struct{ band, at int64 }
	var made []place
	nodes, end := len(u.nodes), u.end
	entries := len(u.nodes[nodes-1].entries)
	for i := first; i <= last; i++ {
		if u.places.get(i) != 0 {
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
	for _, h := range made {
		u.places.set(h.band, h.at)
	}
	u.bands += len(made)
	return nil
}

// markSaved records that all nodes are in the file.
func (u *udsp) markSaved() {
	u.savedNodes = len(u.nodes)
	u.savedEntries = len(u.nodes[u.savedNodes-1].entries)
}

// commit syncs the data and then writes what was added to the table: new nodes
// while nothing leads to them, the entries of the node that was the last, and
// then the way to the new ones.
func (u *udsp) commit() error {
	u.mu.Lock()
	nodes := append([]udspNodeInfo(nil), u.nodes...)
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

// addEntries writes the entries of node k sector by sector, each on the disk
// before the next: disks keep a sector whole, but not the order of two, and a
// table that goes on behind a 0 is none.
func (u *udsp) addEntries(nodes []udspNodeInfo, k int) error {
	n := nodes[k]
	at, _ := udspTable(k)
	for done := u.savedEntries; done < len(n.entries); {
		done = min(len(n.entries), ((at+4*done)/SectorSize+1)*SectorSize/4-at/4)
		part := append([]udspNodeInfo(nil), nodes[:k+1]...)
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

// putNode writes node k of a chain whose last one is last.
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

// loadUDSP reads the whole table of a sparse image. Its memory is at most
// eight times what the nodes take in the file. It refuses nodes that do not
// lie one behind the other (so that no chain can loop), bands outside the
// device or the file, two slots for one band, and entries behind the end of a
// table, about which readers differ: hdiutil stops at the first 0, apfs-fuse
// goes on.
func loadUDSP(m syncStore) (*udsp, error) {
	size, err := m.f.Size()
	if err != nil {
		return nil, err
	}
	u := &udsp{syncStore: m, fileSize: size}
	u.copied = map[slotRef]uint32{}
	for k, at := 0, int64(0); ; k++ {
		next, err := u.loadNode(k, at)
		if err != nil {
			return nil, fmt.Errorf("reading node %d of %q: %w", k, m.f.Path(), err)
		}
		if next == 0 {
			break
		}
		at = next
	}
	if err := u.loadCopies(); err != nil {
		return nil, fmt.Errorf("reading %q: %w", m.f.Path(), err)
	}
	last := len(u.nodes) - 1
	u.end = u.nodes[last].slot(len(u.nodes[last].entries), u.head.band)
	u.markSaved()
	return u, nil
}

// loadNode reads node k at an offset and returns the next one's, 0 for none.
func (u *udsp) loadNode(k int, at int64) (next int64, err error) {
	if at > u.fileSize-udspNode {
		return 0, corrupt("file ends before %d", at+udspNode)
	}
	b := make([]byte, udspNode)
	if n, err := u.f.ReadAt(b, at); n < len(b) {
		return 0, unexpectedEOF(err)
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
			return 0, corrupt("next node at %d, in front of this one's end", next)
		}
		room = int(min(int64(room), (next-at-udspNode)/u.head.band))
	}
	n := udspNodeInfo{at: at, cap: room}
	return next, u.loadTable(&n, b[from:])
}

func (u *udsp) loadTable(n *udspNodeInfo, table []byte) error {
	bands := u.head.bands()
	used := 0 // up to and with the last entry that is not 0
	for i := range len(table) / 4 {
		v := binary.BigEndian.Uint32(table[4*i:])
		if v == 0 {
			continue
		}
		band, mark := udspMarked(v, bands)
		if !mark && used < i {
			return corrupt("entry %d behind the end of the table", i)
		}
		if i >= n.cap {
			return corrupt("entry %d is for a slot inside the next node", i)
		}
		for ; used < i; used++ {
			n.entries = append(n.entries, 0)
		}
		used++
		at := n.slot(i, u.head.band)
		if mark {
			u.interrupted = true
			if band != 0 {
				u.copied[slotRef{len(u.nodes), i}] = band
			}
			v = 0
		} else if err := u.loadSlot(at, v, bands); err != nil {
			return fmt.Errorf("entry %d: %w", i, err)
		}
		n.entries = append(n.entries, v)
	}
	u.nodes = append(u.nodes, *n)
	return nil
}

// loadSlot notes that a slot holds band v, which counts from 1.
func (u *udsp) loadSlot(at int64, v uint32, bands int64) error {
	switch {
	case int64(v) > bands:
		return corrupt("band %d of %d", v, bands)
	case at > u.fileSize-u.head.band:
		return corrupt("file of %d bytes ends inside the slot at %d", u.fileSize, at)
	case u.places.get(int64(v)-1) != 0:
		return corrupt("band %d for the second time", v)
	}
	u.places.set(int64(v)-1, at)
	u.bands++
	return nil
}

// loadCopies makes copies of bands that no slot holds count, and forgets the others.
func (u *udsp) loadCopies() error {
	counts := map[slotRef]uint32{}
	for s, band := range u.copied {
		if u.places.get(int64(band)-1) == 0 {
			counts[s] = band
		}
	}
	for s, band := range counts {
		if err := u.loadSlot(u.at(s), band, u.head.bands()); err != nil {
			return err
		}
	}
	u.copied = counts
	return nil
}

package container

import (
	"bytes"
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
	udspVersion  = 3
	// udspCompacting is the version while a compaction runs: other programs do
	// not read such an image.
	udspCompacting = 1<<31 | udspVersion
	// udspMaxBands bounds the bands of a device: entries count from 1 in 32
	// bits.
	udspMaxBands = math.MaxUint32 - 1
)

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
	band       int64 // bytes
	size       int64 // of the device, bytes
	compacting bool  // a compaction runs, or was interrupted
}

// bands is how many bands the device has, stored or not.
func (h udspHead) bands() int64 { return ceil(h.size, h.band) }

// parseUDSPHead reads the header node, and returns the offset of the next one.
func parseUDSPHead(b []byte) (h udspHead, next int64, err error) {
	var f udspHeadFields
	decodeFields(b, &f)
	next, err = checkUDSPNode(udspIndexFields{Magic: f.Magic, Used: f.Used, Next: f.Next}, f.Reserved[:])
	switch {
	case err != nil:
		return h, 0, err
	case f.Version != udspVersion && f.Version != udspCompacting:
		return h, 0, unknown("sparse image (UDSP) of version %d", f.Version)
	case f.BandSectors == 0:
		return h, 0, corrupt("reading sparse image: bands of 0 sectors")
	case f.Sectors > image.MaxSize/SectorSize:
		return h, 0, corrupt("reading sparse image: %d sectors", f.Sectors)
	case f.LowSectors != 0 && uint64(f.LowSectors) != f.Sectors,
		f.LowSectors == 0 && f.Sectors != 0 && f.Sectors <= math.MaxUint32:
		return h, 0, corrupt("reading sparse image: its header has both %d and %d sectors", f.LowSectors, f.Sectors)
	}
	h = udspHead{int64(f.BandSectors) * SectorSize, int64(f.Sectors) * SectorSize, f.Version == udspCompacting}
	if h.bands() > udspMaxBands {
		err = corrupt("reading sparse image: %d bands", h.bands())
	}
	return h, next, err
}

// checkUDSPNode checks what all nodes have, and returns the offset of the next
// one.
func checkUDSPNode(f udspIndexFields, reserved []byte) (next int64, err error) {
	switch {
	case f.Magic != udspMagic:
		return 0, corrupt("reading sparse image: no node where one should be")
	case f.Used > 1:
		return 0, unknown("sparse image (UDSP) with flags %#x", f.Used)
	case len(bytes.Trim(reserved, "\x00")) > 0:
		return 0, unknown("sparse image (UDSP) with data in the reserved part of a node")
	case f.Next > image.MaxSize:
		return 0, corrupt("reading sparse image: next node at %d", f.Next)
	}
	return int64(f.Next), nil
}

// encode writes the header node of a chain that continues at next, with a
// table.
func (h udspHead) encode(next int64, entries []uint32) []byte {
	f := udspHeadFields{Magic: udspMagic, Version: udspVersion, BandSectors: uint32(h.band / SectorSize),
		Next: uint64(next), Sectors: uint64(h.size / SectorSize)}
	if len(entries) > 0 {
		f.Used = 1
	}
	if f.Sectors <= math.MaxUint32 {
		f.LowSectors = uint32(f.Sectors)
	}
	if h.compacting {
		f.Version = udspCompacting
	}
	return encodeUDSPNode(f, entries)
}

// encodeUDSPNode writes a node: its fields, and then its table.
func encodeUDSPNode(fields any, entries []uint32) []byte {
	b := make([]byte, udspNode)
	at := copy(b, encodeFields(fields))
	for i, v := range entries {
		binary.BigEndian.PutUint32(b[at+4*i:], v)
	}
	return b
}

// udspTable is the offset of the table in node k, and its length.
func udspTable(k int) (at, n int) {
	if k == 0 {
		return udspHeadAt, udspHeadLen
	}
	return udspIndexAt, udspIndexLen
}

// udspNodeInfo is one node of the file.
type udspNodeInfo struct {
	at      int64
	cap     int      // slots that have room
	entries []uint32 // the band in each slot, from 1; 0 only while a compaction runs
}

// slot is the offset of slot i.
func (n *udspNodeInfo) slot(i int, band int64) int64 { return n.at + udspNode + int64(i)*band }

// udsp is the chunk map of a sparse image. Bands are in slots in the order of
// their first writes. A discarded band is only punched, since the table has no
// holes; a compaction moves the last bands into the slots of dropped ones.
type udsp struct {
	syncStore
	head     udspHead
	fileSize int64 // when it was opened

	mu     sync.RWMutex    // of the fields below; entries are only ever appended
	places map[int64]int64 // from band to the offset of its slot
	nodes  []udspNodeInfo
	end    int64 // of the last slot

	// The part of nodes that is in the file; used by the one commit that runs.
	savedNodes, savedEntries int
}

func init() {
	drivers[UDSP] = driver{create: createUDSP, magic: string(udspMagic[:]), chunks: openUDSP}
}

// createUDSP makes an image without bands.
func createUDSP(dir *hostio.Dir, name string, s Spec) error {
	h := udspHead{band: s.BandSize, size: s.Size}
	return s.Encryption.createFile(dir, name, udspNode, func(f store) error {
		_, err := f.WriteAt(h.encode(0, nil), 0)
		return err
	})
}

// openUDSP reads the whole table of the image in s. Its memory is at most twenty
// times the bytes of the nodes in the file. It refuses nodes that are not one
// after the other (so that no chain can loop) and bands outside the device or
// the file. Unless a compaction runs it also refuses two slots with one band,
// and entries after the end of a table, which readers treat differently: hdiutil
// stops at the first 0, apfs-fuse does not. For writing it ends a compaction
// that was interrupted.
func openUDSP(s syncStore, readOnly bool) (_ chunkMap, err error) {
	u := &udsp{syncStore: s, places: map[int64]int64{}}
	if u.fileSize, err = s.f.Size(); err != nil {
		return nil, err
	}
	for k, at := 0, int64(0); k == 0 || at != 0; k++ {
		if at, err = u.loadNode(k, at); err != nil {
			return nil, fmt.Errorf("reading node %d of %q: %w", k, s.f.Path(), err)
		}
	}
	u.markSaved()
	if u.head.compacting && !readOnly {
		err = u.fillSlots()
	}
	if err == nil && !readOnly && u.fileSize > u.end {
		err = s.f.Truncate(u.end) // bytes that a crash left after the last slot would appear in the next one
	}
	return u, err
}

// loadNode reads node k at an offset and returns the offset of the next one, 0
// for none.
func (u *udsp) loadNode(k int, at int64) (next int64, err error) {
	b, err := u.get(at, udspNode, u.fileSize)
	if err != nil {
		return 0, err
	}
	if k == 0 {
		u.head, next, err = parseUDSPHead(b)
	} else {
		var f udspIndexFields
		decodeFields(b, &f)
		next, err = checkUDSPNode(f, f.Reserved[:])
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
	for i := range len(table) / 4 {
		v := int64(binary.BigEndian.Uint32(table[4*i:]))
		if v == 0 {
			continue
		}
		at := n.slot(i, u.head.band)
		switch {
		case i > len(n.entries) && !u.head.compacting:
			return corrupt("entry %d after the end of the table", i)
		case i >= n.cap:
			return corrupt("entry %d is for a slot inside the next node", i)
		case v > u.head.bands():
			return corrupt("entry %d: band %d of %d", i, v, u.head.bands())
		case at > u.fileSize-u.head.band:
			return corrupt("entry %d: file of %d bytes ends inside the slot at %d", i, u.fileSize, at)
		case u.places[v-1] != 0 && !u.head.compacting:
			return corrupt("entry %d: band %d for the second time", i, v)
		}
		u.places[v-1] = at
		n.entries = append(append(n.entries, make([]uint32, i-len(n.entries))...), uint32(v))
	}
	u.nodes = append(u.nodes, n)
	return nil
}

// markSaved records that all nodes are in the file.
func (u *udsp) markSaved() {
	u.savedNodes = len(u.nodes)
	last := &u.nodes[u.savedNodes-1]
	u.savedEntries = len(last.entries)
	u.end = last.slot(u.savedEntries, u.head.band)
}

// geometry implements chunkMap.
func (u *udsp) geometry() (chunk, size int64) { return u.head.band, u.head.size }

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
	err := u.sync()
	old, last := u.savedNodes-1, len(nodes)-1
	for k := old + 1; k <= last && err == nil; k++ {
		if err = u.putNode(nodes, k); k == last {
			err = u.syncAfter(err)
		}
	}
	// The entries sector by sector, each durable before the next: disks write a
	// sector as a whole, but two in any order, and a table with an entry after a 0
	// is damaged.
	at, _ := udspTable(old)
	for done, all := u.savedEntries, nodes[old].entries; done < len(all) && err == nil; {
		done = min(len(all), ((at+4*done)/SectorSize+1)*SectorSize/4-at/4)
		part := slices.Clone(nodes[:old+1])
		part[old].entries = all[:done]
		err = u.syncAfter(u.putNode(part, old))
	}
	if err == nil && old < last {
		err = u.syncAfter(u.putNode(nodes, old))
	}
	if err == nil {
		u.savedNodes, u.savedEntries = len(nodes), len(nodes[last].entries)
	}
	return err
}

// putNode writes node k of a chain.
func (u *udsp) putNode(nodes []udspNodeInfo, k int) error {
	next, n := int64(0), nodes[k]
	if k+1 < len(nodes) {
		next = nodes[k+1].at
	}
	if k == 0 {
		return u.put(u.head.encode(next, n.entries), n.at)
	}
	f := udspIndexFields{Magic: udspMagic, Number: uint32(k - 1), Used: 1, Next: uint64(next)}
	return u.put(encodeUDSPNode(f, n.entries), n.at)
}

// compact implements chunkMap.
func (u *udsp) compact(keep func(i int64) (bool, error)) error {
	dropped := map[int64]bool{}
	for _, i := range u.list() {
		ok, err := keep(i)
		if err != nil {
			return err
		}
		dropped[i] = !ok
	}
	return u.rewrite(func(i int64) bool { return !dropped[i] })
}

// udspSlot is an entry of the table and the offset of its slot.
type udspSlot struct {
	band *uint32
	at   int64
}

// slots are all entries of a chain.
func (u *udsp) slots(nodes []udspNodeInfo) (list []udspSlot) {
	for _, n := range nodes {
		for i := range n.entries {
			list = append(list, udspSlot{&n.entries[i], n.slot(i, u.head.band)})
		}
	}
	return list
}

// rewrite drops the bands for which keep returns false, fills their slots with
// the last bands, and cuts the file. While the header has the mark of a
// compaction, an entry of 0 is a slot that is not in use, and of two slots with
// one band the later one counts, as in readers that fill a list from the table.
//
//  1. the header gets the mark,
//  2. the slots to fill get the bands that will be copied there; their former
//     slots are later ones, and count,
//  3. the bands are copied,
//  4. the table is cut, so that the copies count,
//  5. the header loses the mark,
//  6. the file is cut.
//
// Each step is durable before the next, and the order of writes inside a step
// does not matter. After a failure or a crash, fillSlots makes the table one
// without a mark.
func (u *udsp) rewrite(keep func(i int64) bool) error {
	u.mu.Lock()
	defer u.mu.Unlock()
	nodes, moves, left := u.planMoves(keep)
	if left < 0 {
		return nil
	}
	steps := []func() error{
		func() error { return u.putMark(u.nodes, true) },
		func() error { return u.putNodes(nodes) },
		func() error {
			for _, m := range moves {
				if err := u.copyBytes(m[1].at, m[0].at, u.head.band); err != nil {
					return fmt.Errorf("moving band %d: %w", *m[0].band-1, err)
				}
			}
			return nil
		},
		func() error {
			nodes = cutNodes(nodes, left)
			return u.putNodes(nodes)
		},
		func() error { return u.putMark(nodes, false) },
		func() error {
			u.nodes = nodes
			clear(u.places)
			for _, s := range u.slots(nodes) {
				u.places[int64(*s.band)-1] = s.at
			}
			u.markSaved()
			return u.f.Truncate(u.end)
		},
	}
	for _, step := range steps {
		if err := u.syncAfter(step()); err != nil {
			return err
		}
	}
	return nil
}

// planMoves returns the moves, each from a slot to another, the chain with the
// moved bands in both, and how many of its slots are needed; -1 if no band is
// dropped.
func (u *udsp) planMoves(keep func(i int64) bool) (nodes []udspNodeInfo, moves [][2]udspSlot, left int) {
	nodes = slices.Clone(u.nodes)
	for k := range nodes {
		nodes[k].entries = slices.Clone(nodes[k].entries)
	}
	all := u.slots(nodes)
	kept := slices.DeleteFunc(slices.Clone(all), func(s udspSlot) bool { return !keep(int64(*s.band) - 1) })
	if left = len(kept); left == len(all) {
		return nil, nil, -1
	}
	for _, to := range all[:left] {
		if !keep(int64(*to.band) - 1) {
			from := kept[left-1-len(moves)]
			*to.band = *from.band
			moves = append(moves, [2]udspSlot{from, to})
		}
	}
	return nodes, moves, left
}

// putMark writes the header node with or without the mark of a compaction.
func (u *udsp) putMark(nodes []udspNodeInfo, compacting bool) error {
	u.head.compacting = compacting
	return u.putNode(nodes, 0)
}

// putNodes writes a whole chain.
func (u *udsp) putNodes(nodes []udspNodeInfo) error {
	for k := range nodes {
		if err := u.putNode(nodes, k); err != nil {
			return err
		}
	}
	return nil
}

// cutNodes ends a chain after the first left entries.
func cutNodes(nodes []udspNodeInfo, left int) []udspNodeInfo {
	for k := range nodes {
		n := &nodes[k]
		n.entries = n.entries[:min(len(n.entries), left)]
		if left -= len(n.entries); left == 0 {
			_, n.cap = udspTable(k) // no node follows
			return nodes[:k+1]
		}
	}
	return nodes
}

// fillSlots ends a compaction that was interrupted or has failed. Slots without
// a band that counts get zeros, and then the number of a band without a slot,
// which reads as zeros, too: unlike the completion of the compaction, this
// takes no space on a full disk.
func (u *udsp) fillSlots() error {
	absent := int64(0)
	for _, s := range u.slots(u.nodes) {
		if *s.band != 0 && u.places[int64(*s.band)-1] == s.at {
			continue
		}
		for u.places[absent] != 0 {
			absent++
		}
		if absent >= u.head.bands() {
			return corrupt("reading %q: more slots than bands", u.f.Path())
		}
		if err := u.writeZeros(s.at, u.head.band); err != nil {
			return err
		}
		*s.band, u.places[absent] = uint32(absent)+1, s.at
	}
	err := u.sync()
	if err == nil {
		err = u.syncAfter(u.putNodes(u.nodes))
	}
	if err == nil {
		err = u.syncAfter(u.putMark(u.nodes, false))
	}
	return err
}

// resize implements chunkMap. Bands after a smaller size are removed before the
// header has that size, since a table that refers to them would be damaged.
// What an earlier, larger size left in the last band is cleared before a larger
// size can show it.
func (u *udsp) resize(size int64) error {
	next := u.head
	next.size = size
	if next.bands() > udspMaxBands {
		return errBadSize
	}
	if err := u.rewrite(func(i int64) bool { return i < next.bands() }); err != nil {
		return err
	}
	u.mu.Lock()
	defer u.mu.Unlock()
	// The end of the device is in this band, before and after.
	at, in := u.places[u.head.size/u.head.band], u.head.size%u.head.band
	if size > u.head.size && at != 0 && in > 0 {
		if err := u.syncAfter(u.writeZeros(at+in, u.head.band-in)); err != nil {
			return err
		}
	}
	u.head = next
	return u.syncAfter(u.putNode(u.nodes, 0))
}

package container

import (
	"encoding/binary"
	"math"

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

func ceil(v, unit int64) int64 {
	n := v / unit
	if v%unit != 0 {
		n++
	}
	return n
}

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

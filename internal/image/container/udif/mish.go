package udif

import (
	"cmp"
	"encoding/binary"
	"fmt"
	"math/bits"
	"slices"
)

// The layout of a block table: a header that starts with the magic, then the
// runs.
const (
	mishMagic  = "mish"
	mishHeader = 204 // bytes before the first run
	mishRun    = 40  // bytes of a run
)

// mishFields are the first part of a block table after its magic, field by
// field.
type mishFields struct {
	Version        uint32
	First, Sectors uint64
	DataOffset     uint64 // that the offsets of the runs count from, in bytes of the data fork
	Buffers        uint32 // sectors that a reader needs for one chunk
	Descriptor     uint32
	_              [24]byte
	Checksum       Checksum
	Runs           uint32
}

// run is a stretch of the device that is stored in one way. start and count are
// sectors of the device, offset and length bytes of the file.
type run struct {
	start, count   uint64
	offset, length uint64
	kind           Kind
}

// end is the first sector after the run.
func (r *run) end() uint64 { return r.start + r.count }

// bytes is the decoded length, and deviceOffset where it starts in the device;
// Open made sure that both are an int64.
func (r *run) bytes() int64        { return int64(r.count) * SectorSize }
func (r *run) deviceOffset() int64 { return int64(r.start) * SectorSize }

// pieceLength is the length of the pieces in which the run is handled, the last
// one apart: raw runs are cut.
func (r *run) pieceLength() int64 {
	if r.kind == KindRaw {
		return pieceSize
	}
	return r.bytes()
}

// Region is a part of the device with a block table of its own: a partition, a
// partition table or a gap. First and Sectors are sectors of the device.
type Region struct {
	Name       string
	ID         int // number of the resource, -1 for the first of a partitioned device
	Descriptor uint32
	First      uint64
	Sectors    uint64
	Checksum   Checksum // of the decoded bytes without those of KindIgnore
}

// byFirst orders regions as they are in the device.
func byFirst(a, b *Region) int {
	return cmp.Or(cmp.Compare(a.First, b.First), cmp.Compare(a.Sectors, b.Sectors))
}

// table is a block table as it was read: its region, and its runs in device
// order without comments, terminators and runs of no sectors.
type table struct {
	Region
	runs []run
}

// parseMish reads a block table. The offsets of its runs count from the data
// fork, which starts at byte fork of the file. It takes 40 bytes for each of at
// most maxRuns runs.
func parseMish(b []byte, fork uint64, maxRuns int) (*table, error) {
	if len(b) < mishHeader || string(b[:4]) != mishMagic {
		return nil, corrupt("no block table in %d bytes", len(b))
	}
	var h mishFields
	_, _ = binary.Decode(b[len(mishMagic):], binary.BigEndian, &h) // it is long enough
	t := &table{Region: Region{First: h.First, Sectors: h.Sectors, Descriptor: h.Descriptor, Checksum: h.Checksum}}
	base, carry := bits.Add64(fork, h.DataOffset, 0)
	switch count := uint64(h.Runs); {
	case h.Version != 1:
		return nil, unsupported("block table of version %d", h.Version)
	case carry != 0:
		return nil, corrupt("data offset %d", h.DataOffset)
	case t.First > maxSectors || t.Sectors > maxSectors-t.First:
		return nil, corrupt("region of %d sectors at sector %d", t.Sectors, t.First)
	case count > uint64(len(b)-mishHeader)/mishRun:
		return nil, corrupt("%d runs in a block table of %d bytes", count, len(b))
	case count > uint64(maxRuns):
		return nil, unsupported("more than %d runs", MaxRuns)
	}
	t.runs = make([]run, 0, h.Runs)
	for i := range int(h.Runs) {
		end, err := t.add(b[mishHeader+i*mishRun:], base)
		if err != nil {
			return nil, fmt.Errorf("run %d: %w", i, err)
		}
		if end {
			break
		}
	}
	return t, t.cover()
}

// add appends the run that b starts with, and reports whether it was the
// terminator.
func (t *table) add(b []byte, base uint64) (end bool, err error) {
	u32, u64 := binary.BigEndian.Uint32, binary.BigEndian.Uint64
	r := run{kind: Kind(u32(b)), start: u64(b[8:]), count: u64(b[16:]), offset: u64(b[24:]), length: u64(b[32:])}
	switch {
	case r.kind == kindTerminator:
		return true, nil
	case r.kind == kindComment, r.count == 0: // Apple writes ignore runs of no sectors
		return false, nil
	case r.start > t.Sectors || r.count > t.Sectors-r.start:
		return false, corrupt("%d sectors at %d in a region of %d", r.count, r.start, t.Sectors)
	}
	r.start += t.First
	var carry uint64
	if r.kind.hole() {
		r.offset, r.length = 0, 0 // these fields have no meaning
	} else {
		r.offset, carry = bits.Add64(r.offset, base, 0)
	}
	switch {
	case carry != 0:
		return false, corrupt("payload offset")
	case r.kind.hole():
	case r.kind == KindRaw:
		if r.length != r.count*SectorSize {
			return false, corrupt("%d bytes for %d raw sectors", r.length, r.count)
		}
	case !r.kind.Compressed():
		return false, unsupported("unknown type %#x", uint32(r.kind))
	case r.count > MaxChunk/SectorSize || r.length > maxPayload:
		return false, unsupported("%d sectors in %d bytes, more than %d bytes decoded", r.count, r.length, MaxChunk)
	case r.length == 0:
		return false, corrupt("%d sectors without payload", r.count)
	}
	t.runs = append(t.runs, r)
	return false, nil
}

// cover makes sure that the runs cover the region exactly once.
func (t *table) cover() error {
	slices.SortFunc(t.runs, func(a, b run) int { return cmp.Compare(a.start, b.start) })
	at := t.First
	for _, r := range t.runs {
		if r.start != at {
			return corrupt("runs overlap or leave a gap at sector %d", min(at, r.start))
		}
		at = r.end()
	}
	if at != t.First+t.Sectors {
		return corrupt("runs end at sector %d of %d", at-t.First, t.Sectors)
	}
	return nil
}

// appendMishHeader appends the first part of a block table; the runs follow.
func (g *Region) appendMishHeader(b []byte, buffers uint32, runs int) []byte {
	b, err := binary.Append(append(b, mishMagic...), binary.BigEndian, mishFields{Version: 1, First: g.First,
		Sectors: g.Sectors, Buffers: buffers, Descriptor: g.Descriptor, Checksum: g.Checksum, Runs: uint32(runs)})
	if err != nil {
		panic(err) // the fields have fixed sizes
	}
	return b
}

// append appends the run as it is in the table of a region that starts at
// sector first.
func (r *run) append(b []byte, first uint64) []byte {
	b = binary.BigEndian.AppendUint32(b, uint32(r.kind))
	b = binary.BigEndian.AppendUint32(b, 0)
	b = binary.BigEndian.AppendUint64(b, r.start-first)
	b = binary.BigEndian.AppendUint64(b, r.count)
	b = binary.BigEndian.AppendUint64(b, r.offset)
	return binary.BigEndian.AppendUint64(b, r.length)
}

package udif

import (
	"bytes"
	"errors"
	"fmt"
	"hash"
	"hash/crc32"

	"dmgbench/internal/image/container/codec"
)

// Shortest stretches of zero sectors that are worth a run of their own, which
// costs some 54 bytes of property list and ends a stream: at an edge of a
// chunk, where no other run is split, and inside of one.
const (
	zeroEdge       = 8
	zeroInRaw      = 64
	zeroInChunk    = 256
	minHole        = 128      // sectors of a hole of the Map that are worth leaving out
	rawRun         = 16 << 10 // most sectors of a raw run; QEMU reads runs whole, and refuses more than 128 Ki
	defaultSectors = 2048     // sectors of a chunk, as Apple's tools use since OS X 10.11
)

// chunk is a part of the device on its way into the image, with its buffers.
type chunk struct {
	region       *builder
	first, count uint64
	state        State
	data         []byte   // as read
	parts        []part   // of data
	encoded      []byte   // payloads, one after the other
	stored       []stored // what becomes of it, in order
	crc          uint32   // of the sectors, without unallocated ones
}

// stored is a run and its payload.
type stored struct {
	run     run
	payload []byte
}

// store reads the chunk, sums it up and encodes it.
func (w *writer) store(c *chunk) error {
	c.stored, c.encoded, c.crc = c.stored[:0], c.encoded[:0], 0
	if c.state != StateData {
		kind := KindIgnore
		if c.state == StateZero {
			c.crc, kind = zeroCRC(int64(c.count)*SectorSize), KindZero
		}
		c.stored = append(c.stored, stored{run: run{start: c.first, count: c.count, kind: kind}})
		return nil
	}
	size := int(c.count) * SectorSize
	if cap(c.data) < size {
		c.data = make([]byte, size)
	}
	c.data = c.data[:size]
	if err := readFull(w.dev, c.data, int64(c.first)*SectorSize); err != nil {
		return fmt.Errorf("reading sector %d: %w", c.first, err)
	}
	c.crc = crc32.ChecksumIEEE(c.data)
	if w.options.Format == UFBI {
		return w.storeData(c, 0, int(c.count))
	}
	inner := zeroInChunk
	if w.kind == KindRaw {
		inner = zeroInRaw
	}
	c.parts = split(c.parts[:0], c.data, zeroEdge, inner)
	for _, p := range c.parts {
		if p.zero {
			r := run{start: c.first + uint64(p.first), count: uint64(p.count), kind: KindZero}
			c.stored = append(c.stored, stored{run: r})
		} else if err := w.storeData(c, p.first, p.count); err != nil {
			return err
		}
	}
	return nil
}

// storeData encodes count sectors of the chunk, or stores them as they are when
// they do not shrink.
func (w *writer) storeData(c *chunk, first, count int) error {
	plain := c.data[first*SectorSize : (first+count)*SectorSize]
	s := stored{run: run{start: c.first + uint64(first), count: uint64(count), kind: KindRaw}, payload: plain}
	if w.kind.Compressed() {
		from := len(c.encoded)
		encoded, err := codec.Encode(codec.ID(w.kind), c.encoded, plain, w.options.Level)
		switch {
		case errors.Is(err, codec.ErrIncompressible):
		case err != nil:
			return fmt.Errorf("encoding the chunk at sector %d: %w", s.run.start, err)
		default:
			c.encoded = encoded
			s.payload, s.run.kind = encoded[from:], w.kind
		}
	}
	s.run.length = uint64(len(s.payload))
	c.stored = append(c.stored, s)
	return nil
}

// part is a stretch of a chunk in sectors.
type part struct {
	first, count int
	zero         bool
}

// split appends the stretches of data to list, in order: zeros that are long
// enough, and the data between them.
func split(list []part, data []byte, edge, inner int) []part {
	n := len(data) / SectorSize
	isZero := func(i int) bool { return bytes.Equal(data[i*SectorSize:(i+1)*SectorSize], zeros[:SectorSize]) }
	from := 0
	for i := 0; i < n; {
		if !isZero(i) {
			i++
			continue
		}
		end := i + 1
		for end < n && isZero(end) {
			end++
		}
		limit := inner
		switch {
		case i == 0 && end == n:
			limit = 1
		case i == 0 || end == n:
			limit = edge
		}
		if end-i >= limit {
			if i > from {
				list = append(list, part{from, i - from, false})
			}
			list = append(list, part{i, end - i, true})
			from = end
		}
		i = end
	}
	if from < n {
		list = append(list, part{from, n - from, false})
	}
	return list
}

// builder collects the block table of one region.
type builder struct {
	Region
	table      []byte // room for the header, and all runs but the last
	last       run
	crc        uint32
	md5        hash.Hash // in images with checksums of MD5, nil in others
	compressed bool
}

// add appends a run, or lengthens the last one: by neighbouring holes, and by
// raw data that follows it in the file. It returns how many runs that makes
// more.
func (b *builder) add(r run) int {
	b.compressed = b.compressed || r.kind.Compressed()
	last := &b.last
	if last.count > 0 {
		if last.kind == r.kind && !r.kind.Compressed() && (r.kind.hole() || last.count+r.count <= rawRun) {
			last.count += r.count
			last.length += r.length
			return 0
		}
		b.table = last.append(b.table, b.First)
	}
	*last = r
	return 1
}

// finish returns the block table. The payloads of the image end at byte end;
// chunkSectors is how long a chunk is at most.
func (b *builder) finish(end uint64, chunkSectors int) []byte {
	if b.last.count > 0 {
		b.table = b.last.append(b.table, b.First)
	}
	stop := run{kind: kindTerminator, start: b.First + b.Sectors, offset: end}
	b.table = stop.append(b.table, b.First)
	buffers := uint32(0)
	if b.compressed {
		buffers = uint32(min(uint64(chunkSectors), b.Sectors)) + 8
	}
	b.appendMishHeader(b.table[:0], buffers, (len(b.table)-mishHeader)/mishRun)
	return b.table
}

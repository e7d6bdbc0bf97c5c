package udif

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"crypto/md5"
	"crypto/rand"
	"errors"
	"fmt"
	"hash"
	"hash/crc32"
	"io"
	"runtime"

	"dmgbench/internal/image/container/codec"
	"dmgbench/internal/system/pipeline"
)

// Map is what is known of a device without reading it.
type Map interface {
	// Next returns the state of the device at a byte offset inside it, and
	// where that stretch ends, at a sector after the offset.
	Next(off int64) (end int64, state State)
}

// WriteOptions are the choices of Write.
type WriteOptions struct {
	// Format is one of the package's formats.
	Format Format
	// Layout is how the device is cut into regions, which cover it; one without
	// regions is found out with ProbeLayout.
	Layout Layout
	// Map, if set, spares reading holes. Unallocated stretches become runs that
	// are not part of any checksum and read as zeros, whatever the device has
	// there; of short ones the data is stored. UFBI ignores it.
	Map Map
	// Level is that of [codec.Encode].
	Level int
	// ChunkSectors is the length of a chunk, at most MaxChunk; 0 takes 2048
	// sectors, Apple's choice.
	ChunkSectors int
	// Workers is how many chunks are encoded at once; 0 takes GOMAXPROCS.
	Workers int
	// Memory bounds the buffers of chunks in bytes; 0 takes 64 MiB. One chunk
	// at a time and its encoding is always possible. In addition, every run
	// takes 40 bytes until the end: some 40 MB for each TiB that has data.
	Memory int64
	// Progress, if set, is called from one goroutine with the bytes of the
	// device that are done, and all.
	Progress func(done, total int64)
}

// writer is one Write.
type writer struct {
	dev     io.ReaderAt
	size    int64
	options WriteOptions
	kind    Kind

	out     *bufio.Writer
	offset  uint64 // bytes of payloads so far
	regions []*builder
	runs    int       // of all regions
	sums    uint32    // type of the checksums
	sum     hash.Hash // of the data fork
}

// Write writes the size bytes of dev as an image, from the first byte to the
// last, as hdiutil convert lays it out: the payloads in the order of the
// device, the property list, the trailer. Chunks are read and encoded by all
// workers, which read dev at the same time. It returns the length of the image
// in bytes. When it fails, what was written is not an image.
func Write(ctx context.Context, out io.Writer, dev io.ReaderAt, size int64, o WriteOptions) (length int64, err error) {
	count := &counter{w: out}
	w := &writer{dev: dev, size: size, options: o, out: bufio.NewWriterSize(count, 1<<20)}
	if err = w.prepare(); err == nil {
		buffers := make([]chunk, slots(w.options.Memory, 2*int64(w.options.ChunkSectors)*SectorSize, w.options.Workers))
		err = pipeline.Run(ctx, w.options.Workers, buffers, w.cut, w.store, w.append)
	}
	if err == nil {
		err = w.finish(count)
	}
	if err != nil {
		return 0, fmt.Errorf("writing the image: %w", err)
	}
	return count.n, nil
}

// prepare checks the options and fills in what they leave open.
func (w *writer) prepare() (err error) {
	o := &w.options
	o.ChunkSectors = cmp.Or(o.ChunkSectors, defaultSectors)
	o.Workers = cmp.Or(o.Workers, runtime.GOMAXPROCS(0))
	var known bool
	w.kind, known = formatKinds[o.Format]
	switch {
	case !known:
		return unsupported("writing the format %q", string(o.Format))
	case w.size <= 0 || w.size%SectorSize != 0:
		return fmt.Errorf("a device of %d bytes is not a number of sectors", w.size)
	case o.ChunkSectors < 0 || o.ChunkSectors > MaxChunk/SectorSize:
		return unsupported("chunks of %d sectors", o.ChunkSectors)
	case len(o.Layout.Parts) == 0:
		if o.Layout, err = ProbeLayout(w.dev, w.size); err != nil {
			return err
		}
	}
	w.sums = ChecksumCRC32
	if o.Format == UFBI {
		o.Map, w.sums = nil, ChecksumMD5
	}
	w.sum = newHash(w.sums)
	for _, g := range o.Layout.Regions() {
		b := &builder{Region: g, table: make([]byte, mishHeader)}
		if o.Format == UFBI {
			b.md5 = md5.New()
		}
		w.regions = append(w.regions, b)
	}
	return nil
}

// cut submits the chunks of the device in order. Each region and each stretch
// after a hole starts a new chunk.
func (w *writer) cut(submit func(fill func(*chunk)) bool) {
	for _, g := range w.regions {
		for at, end := g.First, g.First+g.Sectors; at < end; {
			to, state := w.stretch(at, end)
			for at < to {
				count := to - at
				if state == StateData {
					count = min(count, uint64(w.options.ChunkSectors))
				}
				if !submit(func(c *chunk) { c.region, c.first, c.count, c.state = g, at, count, state }) {
					return
				}
				at += count
			}
		}
	}
}

// stretch is the longest stretch from sector at that is stored in one way: a
// hole, or data up to a hole that is long enough or reaches the end.
func (w *writer) stretch(at, end uint64) (to uint64, state State) {
	if w.options.Map == nil {
		return end, StateData
	}
	hole := func(to uint64, from uint64, state State) bool {
		return state != StateData && (to-from >= minHole || to == end)
	}
	if to, state = w.next(at, end); hole(to, at, state) {
		return to, state
	}
	for to < end {
		next, state := w.next(to, end)
		if hole(next, to, state) {
			break
		}
		to = next
	}
	return to, StateData
}

// next asks the Map in sectors.
func (w *writer) next(at, end uint64) (to uint64, state State) {
	bytes, state := w.options.Map.Next(int64(at) * SectorSize)
	return min(uint64(bytes)/SectorSize, end), state
}

// append writes the payloads of the next chunk and notes its runs.
func (w *writer) append(c *chunk) error {
	b := c.region
	for _, s := range c.stored {
		s.run.offset = w.offset
		if _, err := w.out.Write(s.payload); err != nil {
			return err
		}
		_, _ = w.sum.Write(s.payload)
		w.offset += s.run.length
		if w.runs += b.add(s.run); w.runs > MaxRuns {
			return unsupported("more than %d runs", MaxRuns)
		}
	}
	if c.state != StateUnallocated {
		b.crc = combineCRC(b.crc, c.crc, int64(c.count)*SectorSize)
	}
	if b.md5 != nil {
		_, _ = b.md5.Write(c.data)
	}
	if w.options.Progress != nil {
		w.options.Progress(int64(c.first+c.count)*SectorSize, w.size)
	}
	return nil
}

// finish writes the property list and the trailer. count is what reaches the
// output.
func (w *writer) finish(count *counter) error {
	list := newPlistWriter(w.out)
	var sums []byte
	for _, b := range w.regions {
		sum := crcBytes(b.crc)
		if b.md5 != nil {
			sum = b.md5.Sum(nil)
		}
		b.Checksum = newChecksum(w.sums, sum)
		sums = append(sums, sum...)
		list.resource(b.Name, b.ID, true, b.finish(w.offset, w.options.ChunkSectors))
	}
	if err := list.end(); err != nil {
		return err
	}
	t := &Trailer{
		Version: kolyVersion, Flags: FlagFlattened, DataLength: w.offset, Segment: 1, Segments: 1,
		PlistOffset: w.offset, PlistLength: uint64(count.n) - w.offset, Sectors: uint64(w.size) / SectorSize,
		DataChecksum: newChecksum(w.sums, w.sum.Sum(nil)), Master: newChecksum(w.sums, sumOf(w.sums, sums)),
		Variant: VariantDevice,
	}
	id := &t.SegmentID // RFC 9562: a random UUID
	_, _ = rand.Read(id[:])
	id[6], id[8] = id[6]&0x0F|0x40, id[8]&0x3F|0x80
	if w.options.Layout.Scheme == SchemeNone {
		t.Variant = VariantPartition
	}
	_, _ = w.out.Write(t.Marshal())
	return w.out.Flush() // bufio keeps the first error
}

// counter counts what goes through.
type counter struct {
	w io.Writer
	n int64
}

// Write counts what the writer below has taken.
func (c *counter) Write(p []byte) (int, error) {
	n, err := c.w.Write(p)
	c.n += int64(n)
	return n, err
}

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
	b.table = b.last.append(b.table, b.First)
	stop := run{kind: kindTerminator, start: b.First + b.Sectors, offset: end}
	b.table = stop.append(b.table, b.First)
	buffers := uint32(0)
	if b.compressed {
		buffers = uint32(min(uint64(chunkSectors), b.Sectors)) + 8
	}
	b.appendMishHeader(b.table[:0], buffers, (len(b.table)-mishHeader)/mishRun)
	return b.table
}

package udif

import (
	"bufio"
	"cmp"
	"context"
	"crypto/md5"
	"crypto/rand"
	"fmt"
	"hash"
	"io"
	"runtime"

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
		err = w.payloads(ctx)
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

// payloads writes the data fork.
func (w *writer) payloads(ctx context.Context) error {
	o := &w.options
	count := slots(o.Memory, 2*int64(o.ChunkSectors)*SectorSize, o.Workers)
	return pipeline.Run(ctx, o.Workers, make([]chunk, count), w.cut, w.store, func(c *chunk) error {
		err := w.append(c)
		if err == nil && o.Progress != nil {
			o.Progress(int64(c.first+c.count)*SectorSize, w.size)
		}
		return err
	})
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
	if c.state == StateUnallocated {
		return nil
	}
	b.crc = combineCRC(b.crc, c.crc, int64(c.count)*SectorSize)
	if b.md5 != nil {
		_, _ = b.md5.Write(c.data)
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
		DataChecksum: newChecksum(w.sums, w.sum.Sum(nil)), PlistOffset: w.offset,
		PlistLength: uint64(count.n) - w.offset,
		Master:      newChecksum(w.sums, sumOf(w.sums, sums)), Variant: VariantDevice, Sectors: uint64(w.size) / SectorSize,
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

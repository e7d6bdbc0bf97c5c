package udif

import (
	"cmp"
	"fmt"
	"io"
	"maps"
	"runtime"
	"slices"

	"dmgbench/internal/image/container/codec"
)

// Options are the choices of Open.
type Options struct {
	// Workers is how many chunks are decoded at once; 0 takes GOMAXPROCS.
	Workers int
	// Cache bounds the decoded chunks that random access keeps, in bytes; 0
	// takes 64 MiB. A chunk in use is never dropped, so at least one stays
	// however small this is. Beyond it random access takes at most 2·Workers
	// chunks with their payloads while they are being decoded.
	Cache int64
	// ReadAhead is how many chunks sequential reading keeps decoding in
	// advance, at most half of the cache; 0 takes 2·Workers, negative turns it
	// off.
	ReadAhead int

	// decode is [codec.Decode]; tests replace it.
	decode func(id codec.ID, dst, src []byte) (int, error)
}

// defaultCache is the usual size of the cache, in bytes: 64 chunks of the
// length that Apple uses.
const defaultCache = 64 << 20

// Image is an open UDIF image: an io.ReaderAt of the device in it, for any
// number of goroutines.
type Image struct {
	License bool  // the image has a licence agreement
	Beyond  int64 // sectors at the end of the device that no table describes: only the trailer counts them

	src     io.ReaderAt
	options Options
	trailer *Trailer
	stub    bool      // raw data and a trailer without tables
	listed  []*Region // as the image lists them: the order of the master checksum
	runs    []run     // the whole device without gaps, in order
	sectors uint64
	chunk   int64 // largest decoded compressed run
	payload int64 // and the largest stored one
	sums    *readSums
	reader
}

// Open reads the structure of the image in src, which is size bytes long. The
// device itself is not read. See the package for what is refused and how much
// memory it takes.
func Open(src io.ReaderAt, size int64, o Options) (*Image, error) {
	if size < TrailerSize {
		return nil, fmt.Errorf("reading the trailer: a file of %d bytes: %w", size, ErrNotUDIF)
	}
	block := make([]byte, TrailerSize)
	if err := readFull(src, block, size-TrailerSize); err != nil {
		return nil, fmt.Errorf("reading the trailer: %w", err)
	}
	trailer, err := ParseTrailer(block)
	if err == nil {
		err = trailer.check(uint64(size))
	}
	if err != nil {
		return nil, err
	}
	o.Workers, o.Cache = cmp.Or(o.Workers, runtime.GOMAXPROCS(0)), cmp.Or(o.Cache, defaultCache)
	if o.decode == nil {
		o.decode = codec.Decode
	}
	im := &Image{src: src, options: o, trailer: trailer}
	if err := im.load(); err != nil {
		return nil, err
	}
	im.reader.init(im)
	return im, nil
}

// load reads the tables, or makes do without them.
func (im *Image) load() error {
	t := im.trailer
	if t.PlistLength == 0 && t.ForkLength == 0 {
		return im.loadStub()
	}
	var tables []*table
	runs := 0
	add := func(r resource) error {
		t, err := parseMish(r.data, im.trailer.DataOffset, MaxRuns-runs)
		if err != nil {
			return fmt.Errorf("%q: %w", r.name, err)
		}
		t.Name, t.ID = r.name, r.id
		runs += len(t.runs)
		tables = append(tables, t)
		return nil
	}
	err := unsupported("they are in a resource fork alone")
	if t.PlistLength > 0 {
		list := io.NewSectionReader(im.src, int64(t.PlistOffset), int64(t.PlistLength))
		err = parsePlist(list, add, func() { im.License = true })
	}
	if err == nil {
		err = im.assemble(tables)
	}
	if err == nil {
		err = im.checkPayloads()
	}
	if err != nil {
		return fmt.Errorf("reading the block tables: %w", err)
	}
	return nil
}

// loadStub takes the data fork as the device: old images in the raw formats end
// in a trailer without tables. Their data starts the file, which lets programs
// that know raw images read them.
func (im *Image) loadStub() error {
	t := im.trailer
	sectors := t.DataLength / SectorSize
	if t.DataOffset != 0 || t.DataLength == 0 || t.DataLength%SectorSize != 0 ||
		t.Sectors != 0 && t.Sectors != sectors {
		return corrupt("reading the trailer: no tables, %d raw bytes at %d for %d sectors", t.DataLength, t.DataOffset,
			t.Sectors)
	}
	im.stub, im.sectors = true, sectors
	im.runs = []run{{count: sectors, length: t.DataLength, kind: KindRaw}}
	return nil
}

// assemble joins the tables to one list of runs over the whole device. Space
// that no table describes reads as zeros.
func (im *Image) assemble(tables []*table) error {
	if len(tables) == 0 {
		return corrupt("there are none")
	}
	total := 0
	for _, t := range tables {
		im.listed = append(im.listed, &t.Region)
		total += len(t.runs)
	}
	slices.SortStableFunc(tables, func(a, b *table) int { return byFirst(&a.Region, &b.Region) })
	im.runs = make([]run, 0, total+len(tables)+1)
	at := uint64(0)
	fill := func(end uint64) {
		if end > at {
			im.runs = append(im.runs, run{start: at, count: end - at, kind: KindIgnore})
			at = end
		}
	}
	for _, t := range tables {
		if t.Sectors == 0 {
			continue
		}
		if t.First < at {
			return corrupt("%q overlaps the region before it at sector %d", t.Name, t.First)
		}
		fill(t.First)
		im.runs = append(im.runs, t.runs...)
		t.runs = nil
		at = t.First + t.Sectors
	}
	im.sectors = im.trailer.Sectors
	if im.sectors == 0 { // as libdmg-hfsplus writes it
		im.sectors = at
	}
	im.Beyond = int64(im.sectors - min(at, im.sectors))
	switch fill(im.sectors); {
	case at > im.sectors:
		return corrupt("they describe %d sectors, the trailer %d", at, im.sectors)
	case im.sectors == 0:
		return corrupt("a device of no sectors")
	}
	return nil
}

// checkPayloads makes sure that payloads lie in the data fork and that no two
// share bytes: shared ones are how a small file would pretend to be a large
// one, and no known writer makes them.
func (im *Image) checkPayloads() error {
	low, high := im.trailer.DataOffset, im.trailer.DataOffset+im.trailer.DataLength
	order := make([]uint32, 0, len(im.runs))
	for i := range im.runs {
		r := &im.runs[i]
		if r.kind.hole() {
			continue
		}
		if r.offset < low || r.offset > high || r.length > high-r.offset {
			return corrupt("payload of %d bytes at %d is outside of the data fork", r.length, r.offset)
		}
		if r.kind.Compressed() {
			im.chunk, im.payload = max(im.chunk, r.bytes()), max(im.payload, int64(r.length))
		}
		order = append(order, uint32(i))
	}
	slices.SortFunc(order, func(a, b uint32) int { return cmp.Compare(im.runs[a].offset, im.runs[b].offset) })
	end := uint64(0)
	for _, i := range order {
		r := &im.runs[i]
		if r.offset < end {
			return corrupt("payloads overlap at byte %d", r.offset)
		}
		end = r.offset + r.length
	}
	return nil
}

// Size is the length of the device in bytes.
func (im *Image) Size() int64 { return int64(im.sectors) * SectorSize }

// Trailer is the image's trailer. It must not be changed.
func (im *Image) Trailer() *Trailer { return im.trailer }

// Regions are the regions of the device in the order in which the image lists
// them; none for raw data without tables.
func (im *Image) Regions() (list []Region) {
	for _, g := range im.listed {
		list = append(list, *g)
	}
	return list
}

// Usage is how much of an image is stored in one way.
type Usage struct {
	Runs          int
	Bytes, Stored int64 // of the device, and in the file
}

// Usage sums up the runs by their kind.
func (im *Image) Usage() map[Kind]Usage {
	usage := map[Kind]Usage{}
	for i := range im.runs {
		r := &im.runs[i]
		u := usage[r.kind]
		u.Runs, u.Bytes, u.Stored = u.Runs+1, u.Bytes+r.bytes(), u.Stored+int64(r.length)
		usage[r.kind] = u
	}
	return usage
}

// Format is the four-letter name of the image's format, by the kind of run that
// stores most of the device; UDRO when no run is compressed, UFBI when the
// checksums are of MD5, UDRW for raw data without tables.
func (im *Image) Format() Format {
	if im.stub {
		return "UDRW"
	}
	if im.trailer.Master.Type == ChecksumMD5 {
		return UFBI
	}
	best, most := UDRO, int64(0)
	usage := im.Usage()
	for _, format := range slices.Sorted(maps.Keys(formatKinds)) {
		if kind := formatKinds[format]; kind.Compressed() && usage[kind].Bytes > most {
			best, most = format, usage[kind].Bytes
		}
	}
	return best
}

// State is what is known of a stretch of a device without reading it.
type State int

// The states of a stretch: it has data, or is all zeros, or belongs to no file
// so that its content does not matter.
const (
	StateData State = iota
	StateZero
	StateUnallocated
)

// Next returns the state of the device at a byte offset inside it, and where
// that stretch ends. An Image is a Map by it.
func (im *Image) Next(off int64) (end int64, state State) {
	r := &im.runs[im.find(off)]
	end = int64(r.end()) * SectorSize
	switch r.kind {
	case KindZero:
		return end, StateZero
	case KindIgnore:
		return end, StateUnallocated
	}
	return end, StateData
}

// Stored is the stretch of the image's file, in bytes, that holds the device's
// data at a byte offset inside the device, in whatever form. n is 0 where there
// is none: the device has zeros there, or bytes that belong to no file.
func (im *Image) Stored(off int64) (at, n int64) {
	r := &im.runs[im.find(off)]
	return int64(r.offset), int64(r.length) // 0 of a hole
}

// find is the index of the run that holds the byte, which must lie inside the
// device.
func (im *Image) find(off int64) int {
	sector := uint64(off) / SectorSize
	i, found := slices.BinarySearchFunc(im.runs, sector, func(r run, s uint64) int { return cmp.Compare(r.start, s) })
	if !found {
		i--
	}
	return i
}

// readFull fills p from off. A file that ends early is damaged.
func readFull(src io.ReaderAt, p []byte, off int64) error {
	n, err := src.ReadAt(p, off)
	switch {
	case n == len(p):
		return nil
	case err == nil || err == io.EOF:
		return fmt.Errorf("%d bytes of %d at %d: %w", n, len(p), off, io.ErrUnexpectedEOF)
	}
	return err
}

// zeros is what holes are written from; it is never changed.
var zeros [64 << 10]byte

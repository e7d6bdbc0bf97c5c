package container

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math"
	"sync"
	"sync/atomic"

	"dmgbench/internal/image"
	"dmgbench/internal/image/container/crypt"
	"dmgbench/internal/system/hostio"
)

// encryptedStore is the decrypted content of a file, with its header in front.
// The header states the length of the content. For a sparse image the length of
// the file counts instead, which may be ahead of the header after a crash.
type encryptedStore struct {
	store  // the file
	blocks *encrypter
	header *crypt.Header
	sparse bool // blocks that were never written exist, and holes make more of them
	size   atomic.Int64

	mu    sync.Mutex
	saved atomic.Int64 // length in the header of the file
}

// newEncryptedStore makes the store of a new or an opened file.
func newEncryptedStore(f store, h *crypt.Header, e *encrypter) *encryptedStore {
	s := &encryptedStore{store: f, header: h, blocks: e}
	s.size.Store(h.DataLength)
	s.saved.Store(h.DataLength)
	return s
}

// probe identifies the content, and finds out how much of it a file of fileSize
// bytes contains. A length of 0 in the header (as in tokens of bundles) states
// no length: then only a sparse image can be identified.
func (s *encryptedStore) probe(fileSize int64) (probeResult, error) {
	block := s.blocks.block
	have := max(fileSize-s.header.DataOffset, 0)
	size := s.header.DataLength
	if s.header.Version == 1 {
		size = min(size, have) // the trailer follows, not the rest of a block
	} else if size == 0 || s.header.CipherLength(size) > have {
		size = min(cmp.Or(size, have), have/block*block)
	}
	s.size.Store(size)
	end, err := readEnds(s, size)
	c := end.identify()
	switch s.sparse = c.format == UDSP; {
	case s.sparse:
		size = have / block * block
	case s.header.DataLength == 0:
		size, c = 0, probeResult{unsupported: "file of 0 bytes"}
	}
	s.size.Store(size)
	if size/block > math.MaxUint32 {
		return probeResult{unsupported: fmt.Sprintf("more blocks than 32 bits count: %d bytes", size)}, nil
	}
	return c, err
}

// file is the ciphertext of a content of size bytes.
func (s *encryptedStore) file(size int64) cipherFile {
	end := size
	if s.header.Version == 2 {
		end = s.header.CipherLength(size)
	}
	return cipherFile{f: s.store, base: s.header.DataOffset, end: end, complete: true}
}

// Size implements store.
func (s *encryptedStore) Size() (int64, error) { return s.size.Load(), nil }

// ReadAt implements store.
func (s *encryptedStore) ReadAt(p []byte, off int64) (int, error) {
	size := s.size.Load()
	return readClipped(p, off, size, func(p []byte, off int64) (int, error) {
		return s.blocks.read(s.file(size), p, off)
	})
}

// WriteAt implements store.
func (s *encryptedStore) WriteAt(p []byte, off int64) (int, error) { return s.WritePadded(p, off, 0) }

// WritePadded implements store.
func (s *encryptedStore) WritePadded(p []byte, off int64, pad int) (int, error) {
	if err := s.checkChange(off + int64(len(p)+pad)); err != nil {
		return 0, err
	}
	n, err := s.blocks.write(s.file(s.size.Load()), p, off, pad)
	end := off + int64(n)
	if err == nil {
		end += int64(pad)
	}
	for size := s.size.Load(); end > size && !s.size.CompareAndSwap(size, end); size = s.size.Load() {
	}
	return n, err
}

// checkChange returns an error for changes up to byte end that are not
// possible.
func (s *encryptedStore) checkChange(end int64) error {
	if end/s.blocks.block >= math.MaxUint32 {
		return fmt.Errorf("changing %q: the encryption counts blocks in 32 bits: %w", s.Path(), errBadSize)
	}
	return nil
}

// checkEncryptedSize returns an error for a device of size bytes that is larger
// than the encryption of f can count, together with the tables of a format.
func checkEncryptedSize(f store, size int64) error {
	if s, ok := f.(*encryptedStore); ok {
		return s.checkChange(size + image.MaxBandSize)
	}
	return nil
}

// Truncate implements store. It makes the new length of a content that is not
// sparse durable before the file becomes shorter, so that the header never
// states more than the file contains.
func (s *encryptedStore) Truncate(n int64) error {
	if err := s.checkChange(n); err != nil {
		return err
	}
	var err error
	size := s.size.Load()
	switch {
	case n > size:
		// The rest of the last block becomes visible now.
		err = s.blocks.writeZeros(s.file(size), size, min(s.blocks.roundUp(size), n))
	case !s.sparse && n < size:
		s.size.Store(n)
		err = s.saveLength(hostio.SyncFull)
	}
	if err == nil {
		err = s.store.Truncate(s.header.DataOffset + s.header.CipherLength(n))
	}
	if err == nil {
		s.size.Store(n)
	}
	return err
}

// Allocate is not possible: blocks that were not written are not zeros.
func (s *encryptedStore) Allocate(int64, int64) error { return hostio.ErrUnsupported }

// PunchHole is for sparse contents only: in others all blocks are written, and
// not every reader accepts holes.
func (s *encryptedStore) PunchHole(off, n int64) error {
	if err := s.checkChange(off + n); err != nil {
		return err
	}
	if !s.sparse {
		return hostio.ErrUnsupported
	}
	return s.blocks.punch(s.file(s.size.Load()), off, n, s.store.PunchHole)
}

// Sync updates the header first. For a content that is not sparse it makes the
// data durable before that, so that the header states only durable data.
func (s *encryptedStore) Sync(mode hostio.SyncMode) (hostio.SyncMode, error) {
	if s.size.Load() != s.saved.Load() {
		var err error
		if !s.sparse {
			_, err = s.store.Sync(mode)
		}
		if err == nil {
			err = s.saveLength("")
		}
		if err != nil {
			return mode, err
		}
	}
	return s.store.Sync(mode)
}

// saveLength writes the eight bytes of the length, which are in one sector, and
// syncs them unless mode is empty.
func (s *encryptedStore) saveLength(mode hostio.SyncMode) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.header.DataLength = s.size.Load()
	off, b := s.header.LengthField()
	_, err := s.store.WriteAt(b, off)
	if err == nil && mode != "" {
		_, err = s.store.Sync(mode)
	}
	if err == nil {
		s.saved.Store(s.header.DataLength)
	}
	return err
}

// EvictRange drops the pages of the blocks that the range touches.
func (s *encryptedStore) EvictRange(off, n int64) error {
	return s.store.EvictRange(s.header.DataOffset+off, n)
}

// Resident implements store.
func (s *encryptedStore) Resident(off, n int64) (float64, error) {
	return s.store.Resident(s.header.DataOffset+off, n)
}

// Close wipes the keys and closes the file.
func (s *encryptedStore) Close() error {
	s.blocks.cipher.Wipe()
	return s.store.Close()
}

// decryptStore opens the encryption of f, which a probe found, and identifies
// the content. f stays the caller's after an error.
func decryptStore(f store, found probeResult, o OpenOptions) (store, probeResult, error) {
	size, err := f.Size()
	if err != nil {
		return nil, found, err
	}
	found.path = f.Path()
	h, err := crypt.ReadHeader(f, size)
	if err != nil {
		return nil, found, found.encryptionError(err)
	}
	e, err := found.unlock(h, o)
	if err != nil {
		return nil, found, err
	}
	s := newEncryptedStore(f, h, e)
	c, err := s.probe(size)
	c.path = f.Path()
	if c.format == ASIF {
		c.unsupported = ASIF
	}
	switch {
	case err != nil:
	case c.unsupported != "":
		c.unsupported = found.encryption + ", inside " + c.unsupported
		err = c.checkSupported("opening")
	case !s.sparse:
		err = found.encryptionError(h.Fits(size))
	}
	if err == nil && !o.ReadOnly {
		err = c.checkWritable()
	}
	if err != nil {
		e.cipher.Wipe()
	}
	return s, c, err
}

// A transfer of an encrypted file is cut at regions of the file. Helpers
// encrypt and write, or read and decrypt, a region each: the second step of a
// piece finds it in the CPU's cache, and the disk works while the next piece is
// encrypted.
const (
	regionSize  = 1 << 20 // bytes of a file, counted from its start
	regionLocks = 64
	filePage    = 4096
	// encryptedPerm are the permissions of files with keys or ciphertext.
	encryptedPerm fs.FileMode = 0o600
)

// encrypter reads and writes files of encrypted blocks. Each byte of a block
// depends on those before it, so a block is written as a whole: a change of a
// part of one reads it first, with its region locked. Other transfers share
// regions.
type encrypter struct {
	cipher  *crypt.Cipher
	block   int64 // bytes
	regions [regionLocks]sync.RWMutex
}

// cipherFile is a file with encrypted blocks from base on. Content after end,
// counted from base, reads as zeros. So does content that the file lacks,
// unless it is complete: then the file is damaged.
type cipherFile struct {
	f interface {
		io.ReaderAt
		io.WriterAt
	}
	base, end int64
	complete  bool
	number    int64 // distinguishes the files of one encrypter
}

// newEncrypter takes the cipher over.
func newEncrypter(c *crypt.Cipher) *encrypter {
	return &encrypter{cipher: c, block: int64(c.BlockSize())}
}

// roundDown and roundUp are the block borders around an offset.
func (e *encrypter) roundDown(off int64) int64 { return off / e.block * e.block }
func (e *encrypter) roundUp(off int64) int64   { return ceil(off, e.block) * e.block }

// region is the number of the region of the file that contains off.
func (e *encrypter) region(c *cipherFile, off int64) int64 {
	return (c.base + e.roundDown(off)) / regionSize
}

// lockOf is the lock of the region of off. Files of one encrypter share locks,
// by their number.
func (e *encrypter) lockOf(c *cipherFile, off int64) *sync.RWMutex {
	return &e.regions[uint64(e.region(c, off)+c.number*17)%regionLocks]
}

// regionEnd is where the region of off ends.
func (e *encrypter) regionEnd(c *cipherFile, off int64) int64 {
	return e.roundUp((e.region(c, off)+1)*regionSize - c.base)
}

// read fills p from off.
func (e *encrypter) read(c cipherFile, p []byte, off int64) (int, error) {
	if off+int64(len(p)) <= e.regionEnd(&c, off) {
		return e.readRegion(&c, p, off, 0)
	}
	return e.eachRegion(c, p, off, 0, e.readRegion)
}

// write writes p and then pad zeros at off; it does not change p.
func (e *encrypter) write(c cipherFile, p []byte, off int64, pad int) (int, error) {
	if off+int64(len(p)+pad) <= e.regionEnd(&c, off) {
		return e.writeRegion(&c, p, off, pad)
	}
	return e.eachRegion(c, p, off, pad, e.writeRegion)
}

// eachRegion moves p, with pad zeros after it, region by region.
func (e *encrypter) eachRegion(c cipherFile, p []byte, off int64, pad int,
	move func(c *cipherFile, p []byte, off int64, pad int) (int, error)) (int, error) {
	return inPieces(ioHelpers, p, off, pad, e.regionEnd(&c, off), regionSize,
		func(p []byte, off int64, pad int) (int, error) { return move(&c, p, off, pad) })
}

// decrypt reads whole blocks and decrypts them in place. Blocks of zeros were
// never written: encryption practically never produces one.
func (e *encrypter) decrypt(c *cipherFile, p []byte, at int64) error {
	n := 0
	if have := min(int64(len(p)), max(c.end-at, 0)); have > 0 {
		var err error
		n, err = c.f.ReadAt(p[:have], c.base+at)
		switch {
		case int64(n) == have:
		case err != nil && !errors.Is(err, io.EOF):
			return err
		case c.complete:
			return unexpectedEOF(io.EOF)
		case int64(n)%e.block != 0:
			return corrupt("file ends inside block %d of the encryption", (at+int64(n))/e.block)
		}
	}
	clear(p[n:])
	e.cipher.DecryptSparse(p, p, uint32(at/e.block))
	return nil
}

// readRegion reads whole blocks into p, and anything else by way of scratch
// memory. After an error it has read no byte.
func (e *encrypter) readRegion(c *cipherFile, p []byte, off int64, _ int) (int, error) {
	end := off + int64(len(p))
	lo, hi := e.roundDown(off), e.roundUp(end)
	b := p
	if lo != off || hi != end {
		scratch, err := getScratch()
		if err != nil {
			return 0, err
		}
		defer putScratch(scratch)
		b = scratch.Bytes()[:hi-lo]
		defer clear(b) // of plaintext
	}
	mu := e.lockOf(c, off)
	mu.RLock()
	defer mu.RUnlock()
	if err := e.decrypt(c, b, lo); err != nil {
		return 0, err
	}
	if len(b) != len(p) {
		copy(p, b[off-lo:])
	}
	return len(p), nil
}

// writeRegion encrypts into scratch memory. Plaintext is in there only in a
// transfer of anything but whole blocks, until it is encrypted too.
func (e *encrypter) writeRegion(c *cipherFile, p []byte, off int64, pad int) (int, error) {
	if len(p)+pad == 0 {
		return 0, nil
	}
	end := off + int64(len(p)+pad)
	lo, hi := e.roundDown(off), e.roundUp(end)
	scratch, err := getScratch()
	if err != nil {
		return 0, err
	}
	defer putScratch(scratch)
	// Direct transfers need no copy where a page of memory is a page of the
	// file.
	b := scratch.Bytes()[(c.base+lo)%filePage:][:hi-lo]
	mu := e.lockOf(c, off)
	if off == lo && end == hi {
		mu.RLock()
		defer mu.RUnlock()
	} else {
		mu.Lock()
		defer mu.Unlock()
		if err := e.readEdges(c, b, lo, off, end); err != nil {
			return 0, err
		}
	}
	plain := p
	if len(b) != len(p) {
		copy(b[off-lo:], p)
		clear(b[end-int64(pad)-lo : end-lo])
		plain = b
	}
	e.cipher.Encrypt(b, plain, uint32(lo/e.block))
	n, err := c.f.WriteAt(b, c.base+lo)
	if err != nil {
		n = int(e.roundDown(int64(n))) // a block that was written in part is lost
	}
	return min(len(p), max(0, n-int(off-lo))), err
}

// readEdges reads those blocks of b, which starts at lo, that off to end cover
// in part.
func (e *encrypter) readEdges(c *cipherFile, b []byte, lo, off, end int64) (err error) {
	last := e.roundDown(end)
	if off > lo {
		err = e.decrypt(c, b[:e.block], lo)
	}
	if err == nil && end > last && (off == lo || last > lo) {
		err = e.decrypt(c, b[last-lo:][:e.block], last)
	}
	if err != nil {
		clear(b)
	}
	return err
}

// punch makes n bytes from off read as zeros: whole blocks by a hole, which
// reads as never written, and parts of blocks by writing. After an error of the
// hole the content is unchanged.
func (e *encrypter) punch(c cipherFile, off, n int64, hole func(at, n int64) error) error {
	lo, hi := e.roundUp(off), e.roundDown(off+n)
	if lo < hi {
		for i := range e.regions {
			e.regions[i].RLock()
		}
		err := hole(c.base+lo, hi-lo)
		for i := range e.regions {
			e.regions[i].RUnlock()
		}
		if err != nil {
			return err
		}
	}
	if lo > hi { // inside a block
		return e.writeZeros(c, off, off+n)
	}
	return errors.Join(e.writeZeros(c, off, lo), e.writeZeros(c, hi, off+n))
}

// writeZeros writes zeros into one block.
func (e *encrypter) writeZeros(c cipherFile, from, to int64) error {
	if from >= to {
		return nil
	}
	_, err := e.write(c, zeroBlock[:to-from], from, 0)
	return err
}

// Scratch memory is outside the Go heap and in huge pages, which direct
// transfers need. The number of buffers bounds the memory of all transfers
// together.
const (
	scratchSize    = 2 << 20 // a region, the offset in its page, and a block at either end
	scratchBuffers = 12
)

var (
	scratchTokens = make(chan struct{}, scratchBuffers)
	scratchFree   = make(chan *hostio.Buffer, scratchBuffers)
)

// getScratch waits for a buffer. Callers take it before they lock a region.
func getScratch() (*hostio.Buffer, error) {
	scratchTokens <- struct{}{}
	select {
	case b := <-scratchFree:
		return b, nil
	default:
	}
	b, err := hostio.AlignedBuffer(scratchSize)
	if err != nil {
		<-scratchTokens
	}
	return b, err
}

// putScratch returns a buffer.
func putScratch(b *hostio.Buffer) {
	scratchFree <- b
	<-scratchTokens
}

// encryptedBand is the open band file of an encrypted bundle. Its offsets and
// lengths are those of the content; block numbers start at 0 in every band.
type encryptedBand struct {
	*hostio.File
	e      *encrypter
	number int64 // of the band
}

// blocks is the band's ciphertext, of unlimited length.
func (b encryptedBand) blocks() cipherFile {
	return cipherFile{f: b.File, end: math.MaxInt64, number: b.number}
}

// ReadAt fills p: content that the file lacks is zeros.
func (b encryptedBand) ReadAt(p []byte, off int64) (int, error) { return b.e.read(b.blocks(), p, off) }

// WritePadded implements bandFile.
func (b encryptedBand) WritePadded(p []byte, off int64, pad int) (int, error) {
	return b.e.write(b.blocks(), p, off, pad)
}

// PunchHole implements bandFile.
func (b encryptedBand) PunchHole(off, n int64) error {
	return b.e.punch(b.blocks(), off, n, b.File.PunchHole)
}

// Truncate cuts or lengthens the file to the block in which byte n is, and
// clears the rest of that block when it cuts: what was cut off must not return
// when the band grows.
func (b encryptedBand) Truncate(n int64) error {
	st, err := b.Stat()
	if err != nil {
		return err
	}
	end := b.e.roundUp(n)
	if n < st.Size {
		if err := b.e.writeZeros(b.blocks(), n, end); err != nil {
			return err
		}
	}
	return b.File.Truncate(end)
}

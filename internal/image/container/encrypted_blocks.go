package container

import (
	"errors"
	"io"
	"io/fs"
	"math"
	"sync"

	"dmgbench/internal/image/container/crypt"
	"dmgbench/internal/system/hostio"
)

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

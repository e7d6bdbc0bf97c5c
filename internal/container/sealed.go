package container

import (
	"errors"
	"io"
	"math"
	"sync"

	"dmgbench/internal/container/crypt"
	"dmgbench/internal/hostio"
)

// A transfer of an encrypted file is cut into pieces of at most one region of
// the file, which are encrypted and written, or read and decrypted, by as many
// helpers as spanning transfers have: a piece is still in the CPU's cache when
// its second step comes, and the disk works while the next is encrypted.
const (
	regionSize  = 1 << 20 // bytes of a file, from its start
	regionLocks = 64
	sealHelpers = 3 // besides the caller
	filePage    = 4096
)

// sealer reads and writes files whose blocks are encrypted. A block is written
// whole: what changes a part of one reads it first, alone in its region, since
// every byte of a block depends on those before it. All others share regions.
type sealer struct {
	cipher  *crypt.Cipher
	block   int64
	regions [regionLocks]sync.RWMutex
}

// sealedFile is a file whose blocks begin at base. What lies behind end, which
// is counted from base, reads as zeros; so does what the file does not have,
// unless it is fixed: then that is damage.
type sealedFile struct {
	f interface {
		io.ReaderAt
		io.WriterAt
	}
	base, end int64
	fixed     bool
	number    int64 // tells files apart that have one sealer
}

func newSealer(c *crypt.Cipher) *sealer { return &sealer{cipher: c, block: int64(c.BlockSize())} }

func (s *sealer) down(off int64) int64 { return off / s.block * s.block }
func (s *sealer) up(off int64) int64   { return ceil(off, s.block) * s.block }

func (s *sealer) region(c *sealedFile, off int64) int64 { return (c.base + s.down(off)) / regionSize }

func (s *sealer) lock(c *sealedFile, off int64) *sync.RWMutex {
	return &s.regions[uint64(s.region(c, off)+c.number*17)%regionLocks]
}

// pieceEnd is where the region of off ends.
func (s *sealer) pieceEnd(c *sealedFile, off int64) int64 {
	return s.up((s.region(c, off)+1)*regionSize - c.base)
}

// read fills p from off.
func (s *sealer) read(c sealedFile, p []byte, off int64) (int, error) {
	if off+int64(len(p)) <= s.pieceEnd(&c, off) {
		return s.readPiece(&c, p, off)
	}
	return s.pieces(c, p, off, func(c *sealedFile, p []byte, off int64, _ bool) (int, error) { return s.readPiece(c, p, off) })
}

// write puts p and pad zeros behind it at off; p stays as it is.
func (s *sealer) write(c sealedFile, p []byte, off int64, pad int) (int, error) {
	if off+int64(len(p)+pad) <= s.pieceEnd(&c, off) {
		return s.writePiece(&c, p, off, pad)
	}
	n, err := s.pieces(c, p, off, func(c *sealedFile, p []byte, off int64, last bool) (int, error) {
		if last && off+int64(len(p)+pad) <= s.pieceEnd(c, off) {
			return s.writePiece(c, p, off, pad)
		}
		return s.writePiece(c, p, off, 0)
	})
	if end := off + int64(len(p)); err == nil && pad > 0 && end+int64(pad) > s.pieceEnd(&c, max(end-1, off)) {
		// Padding is less than a page: it reaches into the next region only.
		_, err = s.write(c, zeroBlock[:pad], end, 0)
	}
	return n, err
}

// pieces moves p piece by piece. After an error it gives the bytes that were
// moved before the first one that was not.
func (s *sealer) pieces(c sealedFile, p []byte, off int64, move func(c *sealedFile, p []byte, off int64, last bool) (int, error)) (int, error) {
	first, end := s.pieceEnd(&c, off), off+int64(len(p))
	all := shared{n: 1 + ceil(max(end-first, 0), regionSize)}
	all.do = func(i int64) (int64, error) {
		from, to := off, min(first, end)
		if i > 0 {
			from, to = first+(i-1)*regionSize, min(first+i*regionSize, end)
		}
		m, err := move(&c, p[from-off:to-off], from, to == end)
		return from - off + int64(m), err
	}
	for range min(sealHelpers, all.n-1) {
		all.helpers.Go(all.work)
	}
	all.work()
	all.helpers.Wait()
	if all.err != nil {
		return int(all.upto), all.err
	}
	return len(p), nil
}

// fetch reads ciphertext of whole blocks.
func (s *sealer) fetch(c *sealedFile, p []byte, at int64) error {
	have := min(int64(len(p)), max(c.end-at, 0))
	n := 0
	if have > 0 {
		var err error
		n, err = c.f.ReadAt(p[:have], c.base+at)
		switch {
		case int64(n) == have:
		case err != nil && !errors.Is(err, io.EOF):
			return err
		case c.fixed:
			return short(io.EOF)
		case int64(n)%s.block != 0:
			return corrupt("file ends inside block %d of the encryption", (at+int64(n))/s.block)
		}
	}
	clear(p[n:])
	return nil
}

// plain reads whole blocks and decrypts them in place. Those of zeros were
// never written: a ciphertext like that does not happen.
func (s *sealer) plain(c *sealedFile, p []byte, at int64) error {
	if err := s.fetch(c, p, at); err != nil {
		return err
	}
	s.cipher.DecryptSparse(p, p, uint32(at/s.block))
	return nil
}

func (s *sealer) readPiece(c *sealedFile, p []byte, off int64) (int, error) {
	if len(p) == 0 {
		return 0, nil
	}
	mu := s.lock(c, off)
	mu.RLock()
	defer mu.RUnlock()
	end := off + int64(len(p))
	lo, hi := s.up(off), s.down(end)
	if lo < hi {
		if err := s.plain(c, p[lo-off:hi-off], lo); err != nil {
			return 0, err
		}
	}
	if lo == off && hi == end {
		return len(p), nil
	}
	edge := make([]byte, s.block)
	defer clear(edge)
	if lo > off {
		if err := s.plain(c, edge, s.down(off)); err != nil {
			return 0, err
		}
		copy(p, edge[off-s.down(off):])
	}
	if hi < end && hi >= lo {
		if err := s.plain(c, edge, hi); err != nil {
			return int(hi - off), err
		}
		copy(p[hi-off:], edge)
	}
	return len(p), nil
}

// writePiece encrypts into scratch memory, which so holds no plaintext but for
// the blocks that are changed in part, until those are encrypted too.
func (s *sealer) writePiece(c *sealedFile, p []byte, off int64, pad int) (int, error) {
	if len(p)+pad == 0 {
		return 0, nil
	}
	end := off + int64(len(p)+pad)
	lo, hi := s.down(off), s.up(end)
	scratch, err := getScratch()
	if err != nil {
		return 0, err
	}
	defer putScratch(scratch)
	// As direct transfers like it: a page of memory is a page of the file.
	b := scratch.Bytes()[(c.base+lo)%filePage:][:hi-lo]
	mu := s.lock(c, off)
	if off == lo && end == hi {
		mu.RLock()
		defer mu.RUnlock()
	} else {
		mu.Lock()
		defer mu.Unlock()
		if err := s.edges(c, b, lo, off, end); err != nil {
			return 0, err
		}
	}
	s.seal(b, p, int(off-lo), pad, lo)
	n, err := c.f.WriteAt(b, c.base+lo)
	if err != nil {
		n = int(s.down(int64(n))) // a part of a block is none
	}
	return min(len(p), max(0, n-int(off-lo))), err
}

// edges reads the blocks of b, which begins at lo, of which off to end leave
// a part out.
func (s *sealer) edges(c *sealedFile, b []byte, lo, off, end int64) (err error) {
	last := s.down(end)
	if off > lo {
		err = s.plain(c, b[:s.block], lo)
	}
	if err == nil && end > last && (off == lo || last > lo) {
		err = s.plain(c, b[last-lo:][:s.block], last)
	}
	if err != nil {
		clear(b)
	}
	return err
}

// seal puts p and pad zeros into b from head on, and encrypts b, which begins
// at lo and holds what else is in its first and last block.
func (s *sealer) seal(b, p []byte, head, pad int, lo int64) {
	tail := head + len(p)
	from, to := int(s.up(int64(head))), int(s.down(int64(tail)))
	if from > to { // inside a block
		from, to = len(b), len(b)
	}
	first := uint32(lo / s.block)
	if from < to {
		s.cipher.Encrypt(b[from:to], p[from-head:to-head], first+uint32(int64(from)/s.block))
	}
	for _, r := range [2][2]int{{0, from}, {to, len(b)}} {
		if r[0] == r[1] {
			continue
		}
		if x, y := max(r[0], head), min(r[1], tail); x < y {
			copy(b[x:y], p[x-head:])
		}
		if x, y := max(r[0], tail), min(r[1], tail+pad); x < y {
			clear(b[x:y])
		}
		s.cipher.Encrypt(b[r[0]:r[1]], b[r[0]:r[1]], first+uint32(int64(r[0])/s.block))
	}
}

// punch makes n bytes from off read as zeros: whole blocks by a hole, which
// reads as never written, and parts of blocks by writing. After an error of
// the hole nothing has changed.
func (s *sealer) punch(c sealedFile, off, n int64, hole func(at, n int64) error) error {
	lo, hi := s.up(off), s.down(off+n)
	if lo < hi {
		for i := range s.regions {
			s.regions[i].RLock()
		}
		err := hole(c.base+lo, hi-lo)
		for i := range s.regions {
			s.regions[i].RUnlock()
		}
		if err != nil {
			return err
		}
	}
	if lo > hi { // inside a block
		return s.zero(c, off, off+n)
	}
	return errors.Join(s.zero(c, off, lo), s.zero(c, hi, off+n))
}

var zeroBlock [1 << 16]byte // as long as blocks can be

// zero writes zeros, into one block.
func (s *sealer) zero(c sealedFile, from, to int64) error {
	if from >= to {
		return nil
	}
	_, err := s.write(c, zeroBlock[:to-from], from, 0)
	return err
}

// Wipe overwrites the keys.
func (s *sealer) wipe() { s.cipher.Wipe() }

// whole is an end that files do not reach.
const whole = math.MaxInt64

// Scratch memory is outside the Go heap, in huge pages, as direct transfers
// want it, and of a number that bounds what all transfers together take.
const (
	scratchSize = 2 << 20 // a region, the place in its page, and a block at either end
	scratches   = 12
)

var (
	scratchTurns = make(chan struct{}, scratches)
	scratchSpare = make(chan *hostio.Buffer, scratches)
)

// getScratch waits until there is some: take it before a region.
func getScratch() (*hostio.Buffer, error) {
	scratchTurns <- struct{}{}
	select {
	case b := <-scratchSpare:
		return b, nil
	default:
	}
	b, err := hostio.AlignedBuffer(scratchSize)
	if err != nil {
		<-scratchTurns
	}
	return b, err
}

func putScratch(b *hostio.Buffer) {
	scratchSpare <- b
	<-scratchTurns
}

package container

import (
	"cmp"
	"fmt"
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
	store    // the file
	blocks   *encrypter
	header   *crypt.Header
	readOnly bool
	sparse   bool // blocks that were never written exist, and holes make more of them
	size     atomic.Int64

	mu    sync.Mutex
	saved atomic.Int64 // length in the header of the file
}

// newEncryptedStore makes the store of a new or an opened file.
func newEncryptedStore(f store, h *crypt.Header, c *crypt.Cipher) *encryptedStore {
	s := &encryptedStore{store: f, header: h, blocks: newEncrypter(c)}
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
	if s.readOnly {
		return fmt.Errorf("changing %q: %w", s.Path(), ErrReadOnly)
	}
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
	if !s.readOnly && s.size.Load() != s.saved.Load() {
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
	cipher, err := found.unlock(h, o)
	if err != nil {
		return nil, found, err
	}
	s := newEncryptedStore(f, h, cipher)
	s.readOnly = o.ReadOnly
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
		cipher.Wipe()
	}
	return s, c, err
}

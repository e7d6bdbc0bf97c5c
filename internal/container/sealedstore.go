package container

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"sync"
	"sync/atomic"

	"dmgbench/internal/container/crypt"
	"dmgbench/internal/hostio"
	"dmgbench/internal/image"
)

// sealedStore is what the encryption of a file hides: the store of the layout
// inside. The header in front says how long the content is. Of a sparse image
// the file's own length counts instead, which a crash may leave ahead of it.
type sealedStore struct {
	store  // the file
	seal   *sealer
	header *crypt.Header
	locked bool // nothing may be changed
	sparse bool // blocks that were never written exist, and holes make more
	size   atomic.Int64

	mu    sync.Mutex
	saved atomic.Int64 // length in the header of the file
}

// sealStore makes the store of a new or an opened file.
func sealStore(f store, h *crypt.Header, c *crypt.Cipher) *sealedStore {
	s := &sealedStore{store: f, header: h, seal: newSealer(c)}
	s.size.Store(h.DataLength)
	s.saved.Store(h.DataLength)
	return s
}

// look finds out what is inside, and how much of it the file of so many bytes has. A length of 0 says nothing (tokens of
// bundles have it): a sparse image is known by what is there.
func (c *sealedStore) look(file int64) (kind, error) {
	block := c.seal.block
	have := max(file-c.header.DataOffset, 0)
	size := c.header.DataLength
	if c.header.Version == 1 {
		size = min(size, have) // what follows is the trailer, not the rest of a block
	} else if size == 0 || c.header.CipherLength(size) > have {
		size = min(cmp.Or(size, have), have/block*block)
	}
	c.size.Store(size)
	k, err := probeContent(c, size)
	switch c.sparse = k.format == UDSP; {
	case c.sparse:
		size = have / block * block
	case c.header.DataLength == 0:
		size, k = 0, kind{refused: "file of 0 bytes"}
	}
	c.size.Store(size)
	if size/block > math.MaxUint32 {
		return kind{refused: fmt.Sprintf("more blocks than 32 bits count: %d bytes", size)}, nil
	}
	return k, err
}

// file is the ciphertext of a content of so many bytes.
func (c *sealedStore) file(size int64) sealedFile {
	end := size
	if c.header.Version == 2 {
		end = c.header.CipherLength(size)
	}
	return sealedFile{f: c.store, base: c.header.DataOffset, end: end, fixed: true}
}

func (c *sealedStore) Size() (int64, error) { return c.size.Load(), nil }

func (c *sealedStore) ReadAt(p []byte, off int64) (int, error) {
	size := c.size.Load()
	p, cut, err := clip(p, off, size)
	if err != nil {
		return 0, err
	}
	n, err := c.seal.read(c.file(size), p, off)
	return eof(cut, n, err)
}

func (c *sealedStore) WriteAt(p []byte, off int64) (int, error) { return c.WritePadded(p, off, 0) }

func (c *sealedStore) WritePadded(p []byte, off int64, pad int) (int, error) {
	if err := c.writable(off + int64(len(p)+pad)); err != nil {
		return 0, err
	}
	n, err := c.seal.write(c.file(c.size.Load()), p, off, pad)
	end := off + int64(n)
	if err == nil {
		end += int64(pad)
	}
	for size := c.size.Load(); end > size && !c.size.CompareAndSwap(size, end); size = c.size.Load() {
	}
	return n, err
}

// writable is for changes that reach up to end.
func (c *sealedStore) writable(end int64) error {
	if c.locked {
		return fmt.Errorf("changing %q: %w", c.Path(), ErrReadOnly)
	}
	if end/c.seal.block >= math.MaxUint32 {
		return fmt.Errorf("changing %q: the encryption counts blocks in 32 bits: %w", c.Path(), errBadSize)
	}
	return nil
}

// room is the error for a device of so many bytes that is more than the encryption of f counts, with what a layout adds.
func room(f store, size int64) error {
	if c, ok := f.(*sealedStore); ok {
		return c.writable(size + image.MaxBandSize)
	}
	return nil
}

// Truncate makes the length of a content that is not sparse durable before the
// file becomes shorter, so that the header never promises what is not there.
func (c *sealedStore) Truncate(n int64) error {
	if err := c.writable(n); err != nil {
		return err
	}
	size := c.size.Load()
	switch {
	case n > size:
		// What fills the last block up shows now.
		if err := c.seal.zero(c.file(size), size, min(c.seal.up(size), n)); err != nil {
			return err
		}
	case !c.sparse && n < size:
		c.size.Store(n)
		if err := c.saveLength(hostio.SyncFull); err != nil {
			return err
		}
	}
	if err := c.store.Truncate(c.header.DataOffset + c.header.CipherLength(n)); err != nil {
		return err
	}
	c.size.Store(n)
	return nil
}

// Allocate has no meaning here: what was not written is not zeros.
func (c *sealedStore) Allocate(int64, int64) error { return hostio.ErrUnsupported }

// PunchHole is for sparse contents only: others have no block that was never
// written, and not every reader knows such.
func (c *sealedStore) PunchHole(off, n int64) error {
	if err := c.writable(off + n); err != nil {
		return err
	}
	if !c.sparse {
		return hostio.ErrUnsupported
	}
	return c.seal.punch(c.file(c.size.Load()), off, n, c.store.PunchHole)
}

// Sync brings the header up to date first. Of a content that is not sparse it
// promises nothing that is not durable.
func (c *sealedStore) Sync(mode hostio.SyncMode) (hostio.SyncMode, error) {
	if !c.locked && c.size.Load() != c.saved.Load() {
		if !c.sparse {
			if _, err := c.store.Sync(mode); err != nil {
				return mode, err
			}
		}
		if err := c.saveLength(""); err != nil {
			return mode, err
		}
	}
	return c.store.Sync(mode)
}

// saveLength writes the eight bytes of the length, which lie in one sector,
// and syncs them where a mode is given.
func (c *sealedStore) saveLength(mode hostio.SyncMode) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.header.DataLength = c.size.Load()
	off, b := c.header.LengthField()
	if _, err := c.store.WriteAt(b, off); err != nil {
		return err
	}
	if mode != "" {
		if _, err := c.store.Sync(mode); err != nil {
			return err
		}
	}
	c.saved.Store(c.header.DataLength)
	return nil
}

// EvictRange drops the pages of the blocks that the range touches.
func (c *sealedStore) EvictRange(off, n int64) error {
	return c.store.EvictRange(c.header.DataOffset+off, n)
}

func (c *sealedStore) Resident(off, n int64) (float64, error) {
	return c.store.Resident(c.header.DataOffset+off, n)
}

func (c *sealedStore) Close() error {
	c.seal.wipe()
	return c.store.Close()
}

// openEncrypted opens what lies in the encrypted file f, and takes f over.
func openEncrypted(f *hostStore, k kind, o OpenOptions) (Image, error) {
	c, inner, err := decrypted(f, k.encrypted, o)
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	o.Passphrase, o.Keys = nil, nil
	return openContent(c, inner, o)
}

// decrypted opens the encryption of f, which stays the caller's after an error,
// and looks at what is inside.
func decrypted(f store, found string, o OpenOptions) (*sealedStore, kind, error) {
	size, err := f.Size()
	if err != nil {
		return nil, kind{}, err
	}
	h, err := crypt.ReadHeader(f, size)
	if err != nil {
		return nil, kind{}, encryptionError(f.Path(), found, err)
	}
	if h.Version == 1 && !o.ReadOnly {
		return nil, kind{}, &UnsupportedError{Path: f.Path(), Found: found, Doing: "opening for writing"}
	}
	cipher, err := unlock(h, f.Path(), found, o)
	if err != nil {
		return nil, kind{}, err
	}
	c := sealStore(f, h, cipher)
	c.locked = o.ReadOnly
	k, err := c.look(size)
	if err == nil {
		err = c.refuse(k, found, size, o.ReadOnly)
	}
	if err != nil {
		cipher.Wipe()
		return nil, kind{}, err
	}
	return c, k, nil
}

// refuse is the error for what is inside a file of so many bytes, where it
// cannot be served.
func (c *sealedStore) refuse(k kind, found string, size int64, readOnly bool) error {
	inside := k.refused
	if k.format == ASIF {
		inside = ASIF
	}
	if inside != "" {
		return &UnsupportedError{Path: c.Path(), Found: found + ", inside " + inside, Doing: "opening"}
	}
	if !c.sparse {
		if err := c.header.Fits(size); err != nil {
			return encryptionError(c.Path(), found, err)
		}
	}
	if readOnly {
		return nil
	}
	return unchangeable(c.Path(), k)
}

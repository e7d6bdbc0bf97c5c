package container

import (
	"errors"
	"fmt"
	"io"
	"math"
	"path/filepath"

	"dmgbench/internal/container/crypt"
	"dmgbench/internal/hostio"
)

// EncryptionOf reads the encryption header of a container: nil, without an
// error, when it is not encrypted. It needs no passphrase.
func EncryptionOf(dir *hostio.Dir, name string) (*crypt.Header, error) {
	k, err := probe(dir, name)
	if err != nil {
		return nil, err
	}
	path := filepath.Join(dir.Path(), name)
	if k.encrypted == "" {
		if k.refused != "" && k.format == "" {
			return nil, &UnsupportedError{Path: path, Found: k.refused, Doing: "opening"}
		}
		return nil, nil
	}
	if k.format == UDSB {
		sub, err := dir.Sub(name)
		if err != nil {
			return nil, err
		}
		defer sub.Close()
		h, err := readToken(sub)
		return h, encryptionError(path, k.encrypted, err)
	}
	f, err := dir.Open(name, hostio.OpenOptions{})
	if err != nil {
		return nil, err
	}
	defer f.Close()
	h, err := readHeader(f)
	return h, encryptionError(path, k.encrypted, err)
}

func readHeader(f *hostio.File) (*crypt.Header, error) {
	st, err := f.Stat()
	if err != nil {
		return nil, err
	}
	return crypt.ReadHeader(f, st.Size)
}

func readToken(dir *hostio.Dir) (*crypt.Header, error) {
	f, err := dir.Open("token", hostio.OpenOptions{})
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return readHeader(f)
}

// encryptionError says about a container what package crypt says about a header.
func encryptionError(path, found string, err error) error {
	switch {
	case err == nil:
		return nil
	case errors.Is(err, crypt.ErrUnsupported), errors.Is(err, crypt.ErrNotEncrypted):
		return &UnsupportedError{Path: path, Found: fmt.Sprintf("%s: %v", found, err), Doing: "opening"}
	case errors.Is(err, crypt.ErrDamaged):
		return fmt.Errorf("opening %q: %s: %w: %w", path, found, ErrCorrupt, err)
	}
	return fmt.Errorf("opening %q: %s: %w", path, found, err)
}

// noPassphrase is the error for an encrypted container without a passphrase.
type noPassphrase struct{ path, found string }

func (e *noPassphrase) Error() string {
	return fmt.Sprintf("opening %q: %s: no passphrase given", e.path, e.found)
}

func (e *noPassphrase) Is(target error) bool { return target == ErrPassphrase }

func unlock(h *crypt.Header, path, found string, pass []byte) (*crypt.Cipher, error) {
	if len(pass) == 0 {
		return nil, &noPassphrase{path, found}
	}
	c, err := h.Unlock(pass)
	return c, encryptionError(path, found, err)
}

// plainStore is what the encryption of a file hides. It cannot be changed.
type plainStore struct {
	store
	cipher *crypt.Cipher
	header *crypt.Header
	size   int64 // of the content
	stored int64 // bytes of ciphertext
	sparse bool  // blocks of zeros were never written
}

// openEncrypted opens what lies in the encrypted file f, and takes f over.
func openEncrypted(f *hostStore, k kind, o OpenOptions) (Image, error) {
	c, inner, err := decrypted(f, k.encrypted, o.Passphrase)
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	o.Passphrase = nil
	return openContent(c, inner, o)
}

// decrypted opens the encryption of f, which stays the caller's after an error,
// and looks at what is inside.
func decrypted(f *hostStore, found string, pass []byte) (*plainStore, kind, error) {
	h, err := readHeader(f.File)
	if err != nil {
		return nil, kind{}, encryptionError(f.Path(), found, err)
	}
	size, err := f.Size()
	if err != nil {
		return nil, kind{}, err
	}
	cipher, err := unlock(h, f.Path(), found, pass)
	if err != nil {
		return nil, kind{}, err
	}
	c := &plainStore{store: f, cipher: cipher, header: h}
	k, err := c.look(size)
	switch {
	case err == nil && k.refused != "":
		err = &UnsupportedError{Path: f.Path(), Found: found + ", inside " + k.refused, Doing: "opening"}
	case err == nil && k.format == ASIF:
		err = &UnsupportedError{Path: f.Path(), Found: found + ", inside ASIF", Doing: "opening"}
	case err == nil && !c.sparse:
		err = encryptionError(f.Path(), found, h.Fits(size))
	}
	if err != nil {
		cipher.Wipe()
		return nil, kind{}, err
	}
	return c, k, nil
}

// look finds out what is inside, and how much of it the file of so many bytes has.
func (c *plainStore) look(file int64) (kind, error) {
	block := int64(c.cipher.BlockSize())
	have := max(file-c.header.DataOffset, 0)
	c.size, c.stored = c.header.DataLength, c.header.CipherLength(c.header.DataLength)
	if c.header.Version == 1 {
		c.stored = c.size // what follows is the trailer, not the rest of a block
	}
	if c.stored > have {
		c.stored = have / block * block
		c.size = min(c.size, c.stored)
	}
	if c.stored/block > math.MaxUint32 {
		return kind{refused: fmt.Sprintf("more blocks than 32 bits count: %d bytes", c.size)}, nil
	}
	k, err := probeContent(c, c.size)
	c.sparse = k.format == UDSP
	return k, err
}

func (c *plainStore) Size() (int64, error) { return c.size, nil }

func (c *plainStore) ReadAt(p []byte, off int64) (int, error) {
	p, cut, err := clip(p, off, c.size)
	if err != nil {
		return 0, err
	}
	n, err := readBlocks(p, off, int64(c.cipher.BlockSize()), c.blocks)
	return eof(cut, n, err)
}

// blocks reads whole blocks and decrypts them in place.
func (c *plainStore) blocks(p []byte, first int64) error {
	at := first * int64(c.cipher.BlockSize())
	have := min(int64(len(p)), c.stored-at)
	if n, err := c.store.ReadAt(p[:have], c.header.DataOffset+at); int64(n) < have {
		return short(err)
	}
	clear(p[have:])
	if c.sparse {
		c.cipher.DecryptSparse(p, p, uint32(first))
	} else {
		c.cipher.Decrypt(p, p, uint32(first))
	}
	return nil
}

func (c *plainStore) refuse() error { return fmt.Errorf("changing %q: %w", c.Path(), ErrReadOnly) }

func (c *plainStore) WriteAt([]byte, int64) (int, error)          { return 0, c.refuse() }
func (c *plainStore) WritePadded([]byte, int64, int) (int, error) { return 0, c.refuse() }
func (c *plainStore) Truncate(int64) error                        { return c.refuse() }
func (c *plainStore) Allocate(int64, int64) error                 { return c.refuse() }
func (c *plainStore) PunchHole(int64, int64) error                { return c.refuse() }

// EvictRange drops the pages of the blocks that the range touches.
func (c *plainStore) EvictRange(off, n int64) error {
	return c.store.EvictRange(c.header.DataOffset+off, n)
}

func (c *plainStore) Resident(off, n int64) (float64, error) {
	return c.store.Resident(c.header.DataOffset+off, n)
}

func (c *plainStore) Close() error {
	c.cipher.Wipe()
	return c.store.Close()
}

// decryptStep is how many bytes are read before they are decrypted: they should
// still be in the CPU's cache then.
const decryptStep = 256 << 10

// readBlocks fills p from off with what get makes of whole blocks.
func readBlocks(p []byte, off, block int64, get func(p []byte, first int64) error) (done int, err error) {
	var partly []byte
	for done < len(p) {
		at, rest := off+int64(done), int64(len(p)-done)
		if at%block == 0 && rest >= block {
			n := min(rest/block*block, max(decryptStep, block))
			if err := get(p[done:][:n], at/block); err != nil {
				return done, err
			}
			done += int(n)
			continue
		}
		if partly == nil {
			partly = make([]byte, block)
		}
		if err := get(partly, at/block); err != nil {
			return done, err
		}
		done += copy(p[done:], partly[at%block:])
	}
	return done, nil
}

// unlock opens the encryption of the bundle, whose bands count their blocks
// from 0 each.
func (b *bundle) unlock(found string) error {
	h, err := readToken(b.dir)
	if err != nil {
		return encryptionError(b.path, found, err)
	}
	if h.Version != 2 || b.info.bandSize%int64(h.BlockSize) != 0 || b.info.bandSize/int64(h.BlockSize) > math.MaxUint32 {
		return &UnsupportedError{Path: b.path, Doing: "opening",
			Found: fmt.Sprintf("%s: bands of %d bytes, blocks of %d", found, b.info.bandSize, h.BlockSize)}
	}
	b.cipher, err = unlock(h, b.path, found, b.opts.Passphrase)
	if err == nil {
		b.cipher.KeepIVs(uint32(b.info.bandSize / int64(h.BlockSize)))
	}
	return err
}

// readBand reads from in of an encrypted band. What the file does not have, and
// blocks of zeros in it, were never written.
func readBand(f io.ReaderAt, c *crypt.Cipher, p []byte, in int64) (int, error) {
	block := int64(c.BlockSize())
	return readBlocks(p, in, block, func(p []byte, first int64) error {
		n, err := f.ReadAt(p, first*block)
		if err != nil && !errors.Is(err, io.EOF) {
			return err
		}
		if int64(n)%block != 0 {
			return corrupt("band ends inside block %d of the encryption", first+int64(n)/block)
		}
		clear(p[n:])
		c.DecryptSparse(p, p, uint32(first))
		return nil
	})
}

func encryptedUsage(dir *hostio.Dir, name string) (u Usage, err error) {
	f, err := openStore(dir, name, OpenOptions{ReadOnly: true})
	if err != nil {
		return Usage{}, err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	return fileUsage(f)
}

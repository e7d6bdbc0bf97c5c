package container

import (
	"errors"
	"fmt"
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
			return nil, &UnsupportedError{Path: path, Found: k.refused, Doing: "opening", Foreign: k.foreign}
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

func unlock(h *crypt.Header, path, found string, o OpenOptions) (c *crypt.Cipher, err error) {
	switch {
	case o.Keys != nil:
		c, err = h.UnlockWith(o.Keys)
	case len(o.Passphrase) == 0:
		return nil, &noPassphrase{path, found}
	default:
		c, err = h.Unlock(o.Passphrase)
	}
	return c, encryptionError(path, found, err)
}

// UnwrapKeys derives the keys of an encrypted container from its passphrase, for
// those who open it more than once ([OpenOptions].Keys); nil, without an error,
// when it is not encrypted. Without a passphrase, or with a wrong one, the error
// is [ErrPassphrase]. The caller wipes the keys.
func UnwrapKeys(dir *hostio.Dir, name string, pass []byte) (*crypt.Keys, error) {
	h, err := EncryptionOf(dir, name)
	if h == nil || err != nil {
		return nil, err
	}
	path, found := filepath.Join(dir.Path(), name), "encrypted image (encrcdsa v2)"
	if h.Version == 1 {
		found = "encrypted image (cdsaencr v1)"
	}
	if len(pass) == 0 {
		return nil, &noPassphrase{path, found}
	}
	k, err := h.Unwrap(pass)
	return k, encryptionError(path, found, err)
}

// unlock opens the encryption of the bundle, whose bands count their blocks
// from 0 each.
func (b *bundle) unlock(found string) error {
	h, err := readToken(b.dir)
	if err != nil {
		return encryptionError(b.path, found, err)
	}
	if h.Version == 1 && !b.opts.ReadOnly {
		return &UnsupportedError{Path: b.path, Found: found, Doing: "opening for writing"}
	}
	if b.info.bandSize%int64(h.BlockSize) != 0 || b.info.bandSize/int64(h.BlockSize) > math.MaxUint32 {
		return &UnsupportedError{Path: b.path, Doing: "opening",
			Found: fmt.Sprintf("%s: bands of %d bytes, blocks of %d", found, b.info.bandSize, h.BlockSize)}
	}
	c, err := unlock(h, b.path, found, b.opts)
	if err != nil {
		return err
	}
	c.KeepIVs(uint32(b.info.bandSize / int64(h.BlockSize)))
	b.seal = newSealer(c)
	return nil
}

func encryptedUsage(dir *hostio.Dir, name string) (u Usage, err error) {
	f, err := openStore(dir, name, OpenOptions{ReadOnly: true})
	if err != nil {
		return Usage{}, err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	return fileUsage(f)
}

package container

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"path/filepath"

	"dmgbench/internal/image"
	"dmgbench/internal/image/container/crypt"
	"dmgbench/internal/system/hostio"
)

// The ciphers of an [Encryption].
const (
	EncryptionNone = image.NotEncrypted
	AES128         = "AES-128"
	AES256         = "AES-256"
)

// Encryption configures the encryption of a new container.
type Encryption struct {
	Cipher string // AES128 or AES256; "" or EncryptionNone for none
	// Passphrase opens an encrypted container. It is neither kept nor changed:
	// the caller wipes it.
	Passphrase []byte
	// Iterations of the key derivation, as in [crypt.Options]; 0 means
	// crypt.DefaultIterations.
	Iterations int

	block int // bytes; 0 means 512, as in Apple's tools today. Set by tests.
}

// none reports whether the container is not encrypted.
func (e Encryption) none() bool { return e.Cipher == "" || e.Cipher == EncryptionNone }

// check returns an error for a container that cannot be made.
func (e Encryption) check(format string, size int64) error {
	switch {
	case e.none():
		return nil
	case e.Cipher != AES128 && e.Cipher != AES256:
		return fmt.Errorf("encryption %.20q, want %s or %s", e.Cipher, AES128, AES256)
	case len(e.Passphrase) == 0:
		return fmt.Errorf("encryption %s: %w", e.Cipher, noPassphrase{})
	case format == ASIF:
		return &UnsupportedError{Found: "encrypted ASIF, a layout that is not known", Doing: "creating"}
	case format != UDSB && size > math.MaxUint32*SectorSize-image.MaxBandSize:
		return fmt.Errorf("size of %d bytes: an encrypted file counts its blocks in 32 bits: %w", size, errBadSize)
	}
	return nil
}

// newHeader makes new keys, for a content of length bytes.
func (e Encryption) newHeader(length int64) (*crypt.Header, *crypt.Cipher, error) {
	o := crypt.Options{KeyBits: 128, Passphrase: e.Passphrase, Iterations: e.Iterations, BlockSize: e.block,
		DataLength: length}
	if e.Cipher == AES256 {
		o.KeyBits = 256
	}
	return crypt.New(o)
}

// EncryptionOf reads the encryption header of a container, without a
// passphrase. It returns nil and no error for an unencrypted container.
func EncryptionOf(dir *hostio.Dir, name string) (*crypt.Header, error) {
	h, _, err := encryptionOf(dir, name)
	return h, err
}

// encryptionOf is EncryptionOf; it returns the result of the probe, too.
func encryptionOf(dir *hostio.Dir, name string) (*crypt.Header, probeResult, error) {
	c, err := probe(dir, name)
	if err != nil || c.encryption == "" {
		return nil, c, cmp.Or(err, c.checkSupported("opening"))
	}
	h, err := readHeader(dir, name, c)
	return h, c, err
}

// readHeader reads the header of an encrypted file, or in the token of a
// bundle.
func readHeader(dir *hostio.Dir, name string, c probeResult) (*crypt.Header, error) {
	if c.format == UDSB {
		name = filepath.Join(name, "token")
	}
	f, err := dir.Open(name, hostio.OpenOptions{})
	if err != nil {
		return nil, err
	}
	defer f.Close()
	st, err := f.Stat()
	if err != nil {
		return nil, err
	}
	h, err := crypt.ReadHeader(f, st.Size)
	return h, c.encryptionError(err)
}

// encryptionError makes an error of package crypt one about a container.
func (c *probeResult) encryptionError(err error) error {
	switch {
	case err == nil:
		return nil
	case errors.Is(err, crypt.ErrUnsupported), errors.Is(err, crypt.ErrNotEncrypted):
		return &UnsupportedError{Path: c.path, Found: fmt.Sprintf("%s: %v", c.encryption, err), Doing: "opening"}
	case errors.Is(err, crypt.ErrDamaged):
		err = fmt.Errorf("%w: %w", ErrCorrupt, err)
	}
	return fmt.Errorf("opening %q: %s: %w", c.path, c.encryption, err)
}

// noPassphrase is the error for an encrypted container without a passphrase. It
// matches ErrPassphrase without its text, "wrong passphrase".
type noPassphrase struct{}

// Error implements error.
func (noPassphrase) Error() string { return "no passphrase given" }

// Is makes the error match ErrPassphrase.
func (noPassphrase) Is(target error) bool { return target == ErrPassphrase }

// unlock opens the encryption of a container with the keys or the passphrase in
// o.
func (c *probeResult) unlock(h *crypt.Header, o OpenOptions) (_ *encrypter, err error) {
	var cipher *crypt.Cipher
	switch {
	case h.Version == 1 && !o.ReadOnly:
		return nil, &UnsupportedError{Path: c.path, Found: c.encryption, Doing: "opening for writing"}
	case o.Keys != nil:
		cipher, err = h.UnlockWith(o.Keys)
	case len(o.Passphrase) == 0:
		err = noPassphrase{}
	default:
		cipher, err = h.Unlock(o.Passphrase)
	}
	if err != nil {
		return nil, c.encryptionError(err)
	}
	return newEncrypter(cipher), nil
}

// UnwrapKeys derives the keys of an encrypted container from its passphrase,
// for callers that open it more than once ([OpenOptions].Keys). It returns nil
// and no error for an unencrypted container, and [ErrPassphrase] for a missing
// or wrong passphrase. The caller wipes the keys.
func UnwrapKeys(dir *hostio.Dir, name string, pass []byte) (keys crypt.Keys, err error) {
	h, c, err := encryptionOf(dir, name)
	if h == nil || err != nil {
		return nil, err
	}
	if len(pass) == 0 {
		return nil, c.encryptionError(noPassphrase{})
	}
	keys, err = h.Unwrap(pass)
	return keys, c.encryptionError(err)
}

// ErrNotEncrypted is returned by [ChangePassphrase] for a container without a
// passphrase.
var ErrNotEncrypted = crypt.ErrNotEncrypted

// ChangePassphrase replaces the passphrase old of a container by next. It wraps
// the keys anew and leaves the data unchanged. After a crash one of the two
// opens the container. A container that is open for writing is [ErrInUse], a
// wrong old passphrase [ErrPassphrase]. Neither passphrase is kept or changed.
// The key derivation gets at least fewest iterations; 0 means
// crypt.DefaultIterations.
func ChangePassphrase(dir *hostio.Dir, name string, old, next []byte, fewest int) (err error) {
	c, err := probe(dir, name)
	switch {
	case err != nil:
		return err
	case c.encryption == "":
		err := fmt.Errorf("changing the passphrase of %q: %w", c.path, ErrNotEncrypted)
		return cmp.Or(c.checkSupported("opening"), err)
	case len(old) == 0:
		return c.encryptionError(noPassphrase{})
	}
	if err := c.checkWritable(); err != nil {
		return err
	}
	// The lock is held until the end.
	var replace func(h *crypt.Header, was []byte) error
	if c.format == UDSB {
		b := newBundle(dir, name, c, OpenOptions{})
		defer func() { err = errors.Join(err, b.release()) }()
		err, replace = b.openFolders(c.encryption), b.replaceToken
	} else {
		var f *hostStore
		if f, err = openStore(dir, name, OpenOptions{}); err == nil {
			defer func() { err = errors.Join(err, f.Close()) }()
			replace = f.replaceHeader
		}
	}
	if err != nil {
		return err
	}
	h, err := readHeader(dir, name, c)
	if err != nil {
		return err
	}
	was := h.Marshal()
	if err := h.ChangePassphrase(old, next, fewest, nil); err != nil {
		return c.encryptionError(err)
	}
	return replace(h, was)
}

// replaceHeader writes into the header of a file, which was another. Each step
// is durable before the next.
func (s *hostStore) replaceHeader(h *crypt.Header, was []byte) error {
	steps, err := h.Steps(was)
	if err == nil {
		err = s.Check()
	}
	for _, step := range steps {
		if err == nil {
			_, err = s.WriteAt(step.Data, step.Off)
		}
		if err == nil {
			_, err = s.Sync(hostio.SyncFull)
		}
	}
	return err
}

// replaceToken writes the header of a bundle.
func (b *bundle) replaceToken(h *crypt.Header, _ []byte) error {
	if err := b.check(); err != nil {
		return err
	}
	st, err := b.dir.Lstat("token")
	if err != nil {
		return err
	}
	return b.dir.WriteFileAtomic("token", h.Marshal(), st.Mode().Perm())
}

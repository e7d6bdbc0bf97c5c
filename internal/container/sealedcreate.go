package container

import (
	"errors"
	"fmt"
	"math"
	"strings"

	"dmgbench/internal/container/crypt"
	"dmgbench/internal/hostio"
	"dmgbench/internal/image"
)

// The ciphers of an [Encryption].
const (
	EncryptionNone = "none"
	AES128         = "AES-128"
	AES256         = "AES-256"
)

// Encryption says how a new container is encrypted.
type Encryption struct {
	Cipher string // AES128 or AES256; "" or EncryptionNone for none
	// Passphrase opens an encrypted container. It is neither kept nor changed:
	// the caller wipes it.
	Passphrase []byte
	// Iterations of the key derivation, as [crypt.Options] has them; 0 means
	// crypt.DefaultIterations.
	Iterations int

	block int // bytes; 0 means 512, what Apple's tools write today. Tests set it.
}

func (e Encryption) none() bool { return e.Cipher == "" || e.Cipher == EncryptionNone }

// options are those of the header.
func (e Encryption) options() (crypt.Options, error) {
	o := crypt.Options{Passphrase: e.Passphrase, Iterations: e.Iterations, BlockSize: e.block}
	switch e.Cipher {
	case AES128:
		o.KeyBits = 128
	case AES256:
		o.KeyBits = 256
	default:
		return o, fmt.Errorf("encryption %.20q, want %s or %s", e.Cipher, AES128, AES256)
	}
	if len(e.Passphrase) == 0 {
		return o, fmt.Errorf("encryption %s: %w", e.Cipher, errNoPassphrase)
	}
	return o, nil
}

// errNoPassphrase matches [ErrPassphrase].
var errNoPassphrase = fmt.Errorf("no passphrase given: %w", ErrPassphrase)

// check refuses what cannot be made.
func (e Encryption) check(format string, size int64) error {
	if e.none() {
		return nil
	}
	if _, err := e.options(); err != nil {
		return err
	}
	if format == ASIF {
		return &UnsupportedError{Found: "encrypted ASIF, of which the layout is not known", Doing: "creating"}
	}
	if format != UDSB && size > math.MaxUint32*SectorSize-image.MaxBandSize {
		return fmt.Errorf("size of %d bytes: an encrypted file counts its blocks in 32 bits: %w", size, errBadSize)
	}
	return nil
}

// header makes new keys, for a content of so many bytes.
func (e Encryption) header(length int64) (*crypt.Header, *crypt.Cipher, error) {
	o, err := e.options()
	if err != nil {
		return nil, nil, err
	}
	o.DataLength = length
	return crypt.New(o)
}

// createFile makes a container of one file, which write fills with a content
// of so many bytes: encrypted, if e says so. Whatever write leaves out of an
// encrypted file that is not sparse is no content, but damage.
func (e Encryption) createFile(dir *hostio.Dir, name string, length int64, write func(f target) error) error {
	if e.none() {
		return createFile(dir, name, 0, func(f *hostio.File) error { return write(f) })
	}
	h, c, err := e.header(length)
	if err != nil {
		return err
	}
	defer c.Wipe()
	return createFile(dir, name, sealedPerm, func(f *hostio.File) error {
		s := sealStore(&hostStore{File: f}, h, c)
		s.size.Store(0) // what write writes makes it longer
		if _, err := f.WriteAt(h.Marshal(), 0); err != nil {
			return err
		}
		if err := write(s); err != nil {
			return err
		}
		_, err := s.Sync(hostio.SyncFull)
		return err
	})
}

// token is the header of a new bundle, nil for a plain one.
func (e Encryption) token() ([]byte, error) {
	if e.none() {
		return nil, nil
	}
	h, c, err := e.header(0)
	if err != nil {
		return nil, err
	}
	c.Wipe()
	return h.Marshal(), nil
}

// ParseEncryption knows the words of [Encryption] in any case.
func ParseEncryption(word string) (string, error) {
	for _, e := range []string{EncryptionNone, AES128, AES256} {
		if strings.EqualFold(word, e) {
			return e, nil
		}
	}
	return "", errors.New("want AES-128 or AES-256")
}

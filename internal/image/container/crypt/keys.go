package crypt

import (
	"bytes"
	"cmp"
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"errors"
	"fmt"
	"io"
	"slices"
)

// Options configure the encryption of a new image.
type Options struct {
	// KeyBits is 128 or 256.
	KeyBits int
	// BlockSize is 512 (also when 0), as Apple writes it today, or 4096, as
	// 10.5 and 10.6 did.
	BlockSize int
	// Passphrase opens the image; it may not be empty. The caller wipes it
	// after use.
	Passphrase []byte
	// Iterations of the key derivation, 1000 to MaxIterations; 0 means
	// DefaultIterations.
	Iterations int
	// Wrap of the keys; empty means WrapAES192.
	Wrap Wrap
	// DataLength is the plaintext length in bytes; 0 for the token of a bundle.
	DataLength int64
	// Random gives keys, salt and UUID; nil means crypto/rand. Only tests set
	// it.
	Random io.Reader
}

// errEmpty refuses an image that opens without a passphrase.
var errEmpty = errors.New("the passphrase is empty")

// New makes a version 2 header with new keys and one passphrase record, and the
// cipher for its blocks. The error wraps ErrUnsupported where an option is out
// of range.
func New(o Options) (h *Header, c *Cipher, err error) {
	defer annotate(&err, "making an encryption header")
	o.BlockSize, o.Iterations = cmp.Or(o.BlockSize, 512), cmp.Or(o.Iterations, DefaultIterations)
	o.Wrap, o.Random = cmp.Or(o.Wrap, WrapAES192), cmp.Or(o.Random, rand.Reader)
	switch {
	case o.Iterations < 1000 || o.Iterations > MaxIterations:
		return nil, nil, unsupported("%d iterations, only 1000 to %d", o.Iterations, MaxIterations)
	case len(o.Passphrase) == 0:
		return nil, nil, errEmpty
	}
	k := keys{make([]byte, o.KeyBits/8), make([]byte, hmacKeySize)}
	defer k.wipe()
	var uuid [16]byte
	for _, b := range [][]byte{k.aes, k.hmac, uuid[:]} {
		if _, err := io.ReadFull(o.Random, b); err != nil {
			return nil, nil, fmt.Errorf("drawing keys: %w", err)
		}
	}
	uuid[6], uuid[8] = uuid[6]&0x0f|0x40, uuid[8]&0x3f|0x80 // version 4, RFC 9562
	p, err := wrapKeys(k, o.Passphrase, o.Wrap, o.Iterations, o.Random)
	if err != nil {
		return nil, nil, err
	}
	offset := DataOffset
	if o.BlockSize == 4096 {
		offset = dataOffset4096
	}
	raw := make([]byte, offset)
	encodeFields(raw, fixedFields{Magic: [8]byte(markV2), Version: 2, IVSize: 16, BlockMode: modeCBC,
		BlockAlgorithm: algorithmAES, KeyBits: uint32(o.KeyBits), IVAlgorithm: algorithmHMAC,
		IVKeyBits: hmacKeySize * 8, UUID: uuid, BlockSize: uint32(o.BlockSize), DataLength: uint64(o.DataLength),
		DataOffset: uint64(offset), Records: 1})
	encodeFields(raw[fixedSize:], entryFields{Kind: passphrase, Offset: fixedSize + entrySize, Length: recordSize})
	encodeFields(raw[fixedSize+entrySize:], p)
	if h, err = parseV2(raw); err != nil {
		return nil, nil, err
	}
	c, err = newCipher(k, o.BlockSize)
	return h, c, err
}

// Unlock returns the cipher of the image. The error wraps ErrPassphrase when
// the passphrase is wrong, ErrDamaged or ErrUnsupported when no passphrase can
// be right. It does not change pass, which the caller wipes. It takes some
// milliseconds for every 10,000 iterations.
func (h *Header) Unlock(pass []byte) (*Cipher, error) {
	k, err := h.Unwrap(pass)
	if err != nil {
		return nil, err
	}
	defer k.Wipe()
	return h.UnlockWith(k)
}

// ChangePassphrase wraps the keys anew, under next, in the record that old
// opens; the data and all other records stay as they are. The caller writes
// Marshal back. The record keeps its wrap, so that whoever could read the image
// still can, and its iterations, raised to fewest (0: DefaultIterations) where
// they were fewer. Version 1 is refused with ErrUnsupported. The errors are
// those of Unlock; on any error the header is as before. Random gives the salt,
// as in [Options].
func (h *Header) ChangePassphrase(old, next []byte, fewest int, random io.Reader) (err error) {
	defer annotate(&err, "changing the passphrase")
	switch {
	case h.Version == 1:
		return unsupported("cdsaencr version 1 is only read")
	case len(next) == 0:
		return errEmpty
	}
	record, k, err := h.open(old)
	if err != nil {
		return err
	}
	defer k.wipe()
	was, err := decodeRecord(h.bytes(record))
	if err != nil {
		return err
	}
	iterations := max(int(was.Iterations), cmp.Or(fewest, DefaultIterations))
	p, err := wrapKeys(k, next, wraps[was.WrapAlgorithm], iterations, cmp.Or(random, rand.Reader))
	if err != nil {
		return err
	}
	before := bytes.Clone(h.bytes(record))
	encodeFields(h.bytes(record), p)
	if err := h.summarise(); err != nil {
		copy(h.bytes(record), before)
		return errors.Join(err, h.summarise())
	}
	return nil
}

// Keys are the keys of one image, out of their wrap: what the derivation from
// the passphrase has cost its time for. Whoever has to open an image more than
// once, or to have another process open it, derives once and passes the bytes
// on, through a pipe too. They open the image as the passphrase does, and are to
// be wiped like it. They start with a fingerprint of the records that they are
// from; the AES key and that of the IVs follow.
type Keys []byte

// Unwrap derives the keys of the image from the passphrase. Errors and time are
// those of Unlock, and pass stays the caller's.
func (h *Header) Unwrap(pass []byte) (_ Keys, err error) {
	defer annotate(&err, "unlocking the image")
	_, k, err := h.open(pass)
	if err != nil {
		return nil, err
	}
	defer k.wipe()
	return slices.Concat(h.fingerprint(), k.aes, k.hmac), nil
}

// UnlockWith is Unlock with keys that Unwrap took from the same header, or from
// another reading of it. Other bytes, such as the keys of another image, or of
// before a change of the passphrase, are an error that wraps ErrPassphrase. It
// keeps no reference to k.
func (h *Header) UnlockWith(k Keys) (*Cipher, error) {
	of, aes := h.fingerprint(), h.KeyBits/8
	if len(k) != len(of)+aes+hmacKeySize || subtle.ConstantTimeCompare(of, k[:len(of)]) != 1 {
		return nil, fmt.Errorf("unlocking the image: the keys are those of another header: %w", ErrPassphrase)
	}
	rest := k[len(of):]
	return newCipher(keys{rest[:aes], rest[aes:]}, h.BlockSize)
}

// fingerprint identifies image and key records, whatever the length of the data
// is now.
func (h *Header) fingerprint() []byte {
	d := sha256.New()
	fmt.Fprintf(d, "%d %d %d %x\n", h.Version, h.KeyBits, h.BlockSize, h.UUID)
	if h.Version == 1 {
		d.Write(h.raw)
	}
	for _, r := range h.Records {
		fmt.Fprintf(d, "%d %d\n", r.Kind, r.Length)
		d.Write(h.bytes(r))
	}
	return d.Sum(nil)
}

// Wipe overwrites the keys.
func (k Keys) Wipe() { clear(k) }

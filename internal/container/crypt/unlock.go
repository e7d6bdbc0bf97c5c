package crypt

import (
	"crypto/sha256"
	"crypto/subtle"
	"fmt"
)

// Keys are the keys of one image, out of their wrap: what the derivation from
// the passphrase has cost its time for. Whoever has to open an image more than
// once, or to have another process open it, derives once and passes them on.
// They open the image as the passphrase does, and are to be wiped like it.
type Keys struct {
	of [sha256.Size]byte // fingerprint of the records they come from
	k  keys
}

// Unwrap derives the keys of the image from the passphrase. Errors and time are
// those of Unlock, and pass stays the caller's.
func (h *Header) Unwrap(pass []byte) (*Keys, error) {
	k, err := h.keys(pass)
	if err != nil {
		return nil, fmt.Errorf("unlocking the image: %w", err)
	}
	return &Keys{h.fingerprint(), k}, nil
}

// UnlockWith is Unlock with keys that Unwrap took from the same header, or from
// another reading of it. Keys of other records (of another image, or of before
// a change of the passphrase) are an error that wraps ErrPassphrase. It keeps
// no reference to k.
func (h *Header) UnlockWith(k *Keys) (*Cipher, error) {
	if of := h.fingerprint(); subtle.ConstantTimeCompare(of[:], k.of[:]) != 1 || len(k.k.aes) != h.KeyBits/8 {
		return nil, fmt.Errorf("unlocking the image: the keys are those of another header: %w", ErrPassphrase)
	}
	return newCipher(k.k, h.BlockSize)
}

// fingerprint identifies image and key records, whatever the length of the data
// is now.
func (h *Header) fingerprint() (sum [sha256.Size]byte) {
	d := sha256.New()
	fmt.Fprintf(d, "%d %d %d %x\n", h.Version, h.KeyBits, h.BlockSize, h.UUID)
	if h.Version == 1 {
		d.Write(h.raw)
	}
	for _, r := range h.Records {
		fmt.Fprintf(d, "%d %d\n", r.Kind, r.Length)
		d.Write(h.bytes(r))
	}
	return [sha256.Size]byte(d.Sum(sum[:0]))
}

// Wipe overwrites the keys. It may be called again, and on nil.
func (k *Keys) Wipe() {
	if k != nil {
		k.k.wipe()
	}
}

// Marshal returns the keys as bytes for a pipe to another process, which the
// caller wipes.
func (k *Keys) Marshal() []byte {
	out := make([]byte, 0, sha256.Size+len(k.k.aes)+len(k.k.hmac)) // no append allocates and leaves a copy
	return append(append(append(out, k.of[:]...), k.k.aes...), k.k.hmac...)
}

// ParseKeys reads what Marshal made; the error wraps ErrDamaged. It copies b,
// which the caller wipes.
func ParseKeys(b []byte) (*Keys, error) {
	n := len(b) - sha256.Size - hmacKeySize
	if n != 16 && n != 32 {
		return nil, damaged("%d bytes are not keys", len(b))
	}
	k := &Keys{of: [sha256.Size]byte(b), k: keys{aes: make([]byte, n), hmac: make([]byte, hmacKeySize)}}
	copy(k.k.aes, b[sha256.Size:])
	copy(k.k.hmac, b[sha256.Size+n:])
	return k, nil
}

package crypt

import (
	"crypto/sha256"
	"crypto/subtle"
	"fmt"
	"slices"
)

// Keys are the keys of one image, out of their wrap: what the derivation from
// the passphrase has cost its time for. Whoever has to open an image more than
// once, or to have another process open it, derives once and passes the bytes
// on, through a pipe too. They open the image as the passphrase does, and are to
// be wiped like it. They start with a fingerprint of the records that they are
// from; the AES key and that of the IVs follow.
type Keys []byte

// Unwrap derives the keys of the image from the passphrase. Errors and time are
// those of Unlock, and pass stays the caller's.
func (h *Header) Unwrap(pass []byte) (Keys, error) {
	k, err := h.keys(pass)
	if err != nil {
		return nil, fmt.Errorf("unlocking the image: %w", err)
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

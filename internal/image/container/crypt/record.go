package crypt

import (
	"bytes"
	"crypto/aes"
	"crypto/cipher"
	"crypto/des"
	"crypto/pbkdf2"
	"crypto/sha1"
	"crypto/subtle"
	"errors"
	"fmt"
	"io"
	"unsafe"
)

const (
	recordSize = 0x268 // a passphrase record
	saltSize   = 20
	saltField  = 32
	wrapIVSize = 8
	blobField  = 512
	kekSize    = 24 // 192 bits for both wraps
)

// recordFields is a passphrase record as it is in the file.
type recordFields struct {
	KDF, PRF      uint32
	Iterations    uint32
	SaltSize      uint32
	Salt          [saltField]byte
	IVSize        uint32
	IV            [32]byte
	WrapBits      uint32
	WrapAlgorithm uint32
	WrapPadding   uint32
	WrapMode      uint32
	BlobSize      uint32
	Blob          [blobField]byte
}

// wraps are the key wraps by their codes.
var wraps = map[uint32]Wrap{algorithm3DES: Wrap3DES, algorithmAES: WrapAES192}

// decodeRecord reads the passphrase record b; the error wraps ErrDamaged or
// ErrUnsupported.
func decodeRecord(b []byte) (f recordFields, err error) {
	if len(b) < recordSize {
		return f, damaged("a passphrase record of %d bytes, not %d", len(b), recordSize)
	}
	decodeFields(b, &f)
	known := f
	known.KDF, known.PRF, known.IVSize, known.WrapBits = kdfPBKDF2, 0, wrapIVSize, kekSize*8
	known.WrapPadding, known.WrapMode = paddingPKCS7, modeCBCPadded
	if f != known {
		return f, unsupported("key derivation %d, function %d, wrap of %d bits, padding %d, mode %d, IV of %d bytes",
			f.KDF, f.PRF, f.WrapBits, f.WrapPadding, f.WrapMode, f.IVSize)
	}
	if err := checkDerivation(f.Iterations, f.SaltSize); err != nil {
		return f, err
	}
	switch {
	case f.BlobSize == 0 || f.BlobSize > blobField:
		return f, damaged("%d bytes of wrapped keys, not 1 to %d", f.BlobSize, blobField)
	case wraps[f.WrapAlgorithm] == "":
		return f, unsupported("wrap algorithm %#x", f.WrapAlgorithm)
	}
	return f, nil
}

// checkDerivation checks the rounds and the salt of one record.
func checkDerivation(iterations, salt uint32) error {
	switch {
	case iterations == 0:
		return damaged("no iterations of the key derivation")
	case iterations > MaxIterations:
		return unsupported("%d iterations of the key derivation, more than %d", iterations, MaxIterations)
	case salt > saltField:
		return damaged("a salt of %d bytes, more than %d", salt, saltField)
	}
	return nil
}

// bytes returns the record in the header.
func (h *Header) bytes(r Record) []byte { return h.raw[r.Offset:][:r.Length:r.Length] }

// summarise sets the fields that describe the passphrase records. Records that
// cannot be used are skipped: Unlock reports what is wrong with them.
func (h *Header) summarise() error {
	sum := 0
	h.Iterations, h.Wrap, h.Passphrases = 0, "", 0
	for _, record := range h.Records {
		if record.Kind != passphrase {
			continue
		}
		h.Passphrases++
		p, err := decodeRecord(h.bytes(record))
		if err != nil {
			continue
		}
		sum += int(p.Iterations)
		if h.Iterations == 0 {
			h.Iterations, h.Wrap = int(p.Iterations), wraps[p.WrapAlgorithm]
		}
	}
	if sum > MaxIterations {
		return unsupported("%d iterations of the key derivation in all records, more than %d", sum, MaxIterations)
	}
	return nil
}

// open looks for the record that the passphrase opens, and returns it with the
// keys, which the caller wipes. Version 1 has no records. A wrong passphrase is
// the error of any record that can be used.
func (h *Header) open(pass []byte) (Record, keys, error) {
	if h.Version == 1 {
		k, err := h.openV1(pass)
		return Record{}, k, err
	}
	refused := unsupported("the header has no passphrase record")
	for _, record := range h.Records {
		if record.Kind != passphrase {
			continue
		}
		p, err := decodeRecord(h.bytes(record))
		if err == nil {
			var k keys
			if k, err = p.unwrap(pass, h.KeyBits/8); err == nil {
				return record, k, nil
			}
		}
		if !errors.Is(refused, ErrPassphrase) {
			refused = err
		}
	}
	return Record{}, keys{}, refused
}

// keys are the two keys of an image.
type keys struct{ aes, hmac []byte }

// wipe overwrites both keys.
func (k keys) wipe() {
	clear(k.aes)
	clear(k.hmac)
}

// tail ends the plaintext of a wrapped key. The padding alone would let one
// wrong passphrase in 256 through.
var tail = []byte("CKIE\x00")

// derive makes the key that wraps the keys: PBKDF2-HMAC-SHA1 (RFC 8018) over
// the bytes of the passphrase.
func derive(pass, salt []byte, iterations int) ([]byte, error) {
	// A converted string would be one more copy of the passphrase that cannot
	// be wiped. pass is not changed while Key runs, and Key keeps no reference.
	kek, err := pbkdf2.Key(sha1.New, unsafe.String(unsafe.SliceData(pass), len(pass)), salt, iterations, kekSize)
	if err != nil {
		return nil, fmt.Errorf("deriving the key of the passphrase: %w", err)
	}
	return kek, nil
}

// blockOf returns the cipher of the wrap and the IV in its length: AES gets the
// eight bytes extended by zeros.
func blockOf(wrap Wrap, kek, iv []byte) (cipher.Block, []byte, error) {
	full := make([]byte, des.BlockSize, aes.BlockSize)
	copy(full, iv[:wrapIVSize])
	if wrap == Wrap3DES {
		block, err := des.NewTripleDESCipher(kek)
		return block, full, err
	}
	block, err := aes.NewCipher(kek)
	return block, full[:aes.BlockSize], err
}

// unwrap returns the keys of the record with an AES key of aesSize bytes.
// ErrPassphrase means that the passphrase is not that of this record.
func (f *recordFields) unwrap(pass []byte, aesSize int) (keys, error) {
	kek, err := derive(pass, f.Salt[:f.SaltSize], int(f.Iterations))
	if err != nil {
		return keys{}, err
	}
	defer clear(kek)
	block, iv, err := blockOf(wraps[f.WrapAlgorithm], kek, f.IV[:])
	if err != nil {
		return keys{}, fmt.Errorf("unwrapping the keys: %w", err)
	}
	if int(f.BlobSize)%block.BlockSize() != 0 {
		return keys{}, damaged("%d bytes of wrapped keys are no whole blocks", f.BlobSize)
	}
	plain := make([]byte, f.BlobSize)
	defer clear(plain)
	cipher.NewCBCDecrypter(block, iv).CryptBlocks(plain, f.Blob[:f.BlobSize])
	body, ok := unpad(plain, block.BlockSize())
	if !ok || len(body) != aesSize+hmacKeySize+len(tail) ||
		subtle.ConstantTimeCompare(body[aesSize+hmacKeySize:], tail) != 1 {
		return keys{}, ErrPassphrase
	}
	return keys{bytes.Clone(body[:aesSize]), bytes.Clone(body[aesSize : aesSize+hmacKeySize])}, nil
}

// unpad removes PKCS#7 padding of blocks of size bytes.
func unpad(b []byte, size int) ([]byte, bool) {
	if len(b) == 0 {
		return nil, false
	}
	n := int(b[len(b)-1])
	if n == 0 || n > min(size, len(b)) || !bytes.HasSuffix(b, padding(n)) {
		return nil, false
	}
	return b[:len(b)-n], true
}

// padding is n bytes of PKCS#7 padding.
func padding(n int) []byte { return bytes.Repeat([]byte{byte(n)}, n) }

// wrapKeys makes a record with new salt and IV from random that opens with the
// passphrase and holds the keys.
func wrapKeys(k keys, pass []byte, wrap Wrap, iterations int, random io.Reader) (f recordFields, err error) {
	f = recordFields{KDF: kdfPBKDF2, Iterations: uint32(iterations), SaltSize: saltSize, IVSize: wrapIVSize,
		WrapBits: kekSize * 8, WrapAlgorithm: algorithmAES, WrapPadding: paddingPKCS7, WrapMode: modeCBCPadded}
	if wrap == Wrap3DES {
		f.WrapAlgorithm = algorithm3DES
	}
	for _, b := range [][]byte{f.Salt[:saltSize], f.IV[:wrapIVSize]} {
		if _, err := io.ReadFull(random, b); err != nil {
			return f, fmt.Errorf("drawing a salt: %w", err)
		}
	}
	kek, err := derive(pass, f.Salt[:saltSize], iterations)
	if err != nil {
		return f, err
	}
	defer clear(kek)
	block, iv, err := blockOf(wrap, kek, f.IV[:])
	if err != nil {
		return f, fmt.Errorf("wrapping the keys: %w", err)
	}
	plain := make([]byte, 0, 128) // enough that no append allocates and leaves a copy
	plain = append(append(append(plain, k.aes...), k.hmac...), tail...)
	plain = append(plain, padding(block.BlockSize()-len(plain)%block.BlockSize())...)
	defer clear(plain)
	f.BlobSize = uint32(len(plain))
	cipher.NewCBCEncrypter(block, iv).CryptBlocks(f.Blob[:f.BlobSize], plain)
	return f, nil
}

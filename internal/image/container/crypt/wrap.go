package crypt

import (
	"bytes"
	"crypto/aes"
	"crypto/cipher"
	"crypto/des"
	"crypto/pbkdf2"
	"crypto/sha1"
	"crypto/subtle"
	"fmt"
	"io"
	"unsafe"
)

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
	if n == 0 || n > size || n > len(b) {
		return nil, false
	}
	for _, v := range b[len(b)-n:] {
		if int(v) != n {
			return nil, false
		}
	}
	return b[:len(b)-n], true
}

// pad appends PKCS#7 padding.
func pad(b []byte, size int) []byte {
	n := size - len(b)%size
	for range n {
		b = append(b, byte(n))
	}
	return b
}

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
	plain = pad(plain, block.BlockSize())
	defer clear(plain)
	f.BlobSize = uint32(len(plain))
	cipher.NewCBCEncrypter(block, iv).CryptBlocks(f.Blob[:f.BlobSize], plain)
	return f, nil
}

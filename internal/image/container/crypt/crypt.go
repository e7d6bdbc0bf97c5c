// Package crypt reads and writes the encryption of disk images: encrcdsa
// version 2 (since Mac OS X
// 10.5; a header in front of the data, or in the token file of a sparse bundle) and cdsaencr
// version 1 (10.4 and older; a trailer, read only). It turns a passphrase into a Cipher for the
// blocks of the image, makes headers, and changes a passphrase without touching data. The layouts
// were found out by others on Apple's files; none is documented by Apple.
//
// It reads from an io.ReaderAt only, and does not interpret the plaintext:
// package container puts it under the formats. It refuses algorithms, modes and
// sizes that no such image was seen with, records that overlap or lie outside
// the header, and headers over MaxHeader bytes or MaxIterations rounds of key
// derivation, so that a hostile header costs at most two MiB and some seconds.
// Neither format authenticates its data: damage there shows in the plaintext
// only.
//
// Keys and passphrases are overwritten after use where this package holds them.
// What the standard library copies while deriving (PBKDF2, DES) is out of
// reach, and is garbage as soon as a call returns.
package crypt

import (
	"errors"
	"fmt"
)

var (
	// ErrNotEncrypted is returned by ReadHeader for anything without the mark
	// of either format.
	ErrNotEncrypted = errors.New("not encrypted")
	// ErrPassphrase means that the header is sound, but that none of its
	// passphrase records opens with the passphrase.
	ErrPassphrase = errors.New("wrong passphrase")
	// ErrDamaged means that a header contradicts itself or its file.
	ErrDamaged = errors.New("damaged encryption header")
	// ErrUnsupported means that a header is legible, but asks for something
	// that this package refuses.
	ErrUnsupported = errors.New("unsupported encryption")
)

const (
	// DefaultIterations is the number of PBKDF2 rounds of new passphrase
	// records. Apple calibrates the number on each machine (121,951 to 769,230
	// were seen), which no two machines could compare.
	DefaultIterations = 250_000
	// MaxIterations bounds the rounds of all passphrase records of an image
	// together: about three seconds.
	MaxIterations = 10_000_000
	// MaxHeader bounds the bytes in front of the data. Apple's headers have
	// 122,368 or 122,880.
	MaxHeader = 1 << 20
	// DataOffset is where the data of new images starts: what Apple writes with
	// blocks of 512 bytes.
	DataOffset = 0x1DE00
	// dataOffset4096 is the same with blocks of 4096 bytes.
	dataOffset4096 = 0x1E000
	// maxRecords bounds the key records of a header; one or two were seen.
	maxRecords = 64
	// hmacKeySize is the length of the key that makes the IVs.
	hmacKeySize = 20
)

// Wrap names the cipher under which a passphrase record keeps the keys.
type Wrap string

const (
	// WrapAES192 is what hdiutil writes since about 2025.
	WrapAES192 Wrap = "aes-192"
	// Wrap3DES is what hdiutil wrote before, and what older systems and tools
	// read.
	Wrap3DES Wrap = "3des-ede"
)

// annotate adds to an error what was being done.
func annotate(err *error, doing string) {
	if *err != nil {
		*err = fmt.Errorf("%s: %w", doing, *err)
	}
}

// damaged makes an error that wraps ErrDamaged.
func damaged(format string, args ...any) error {
	return fmt.Errorf("%w: %s", ErrDamaged, fmt.Sprintf(format, args...))
}

// unsupported makes an error that wraps ErrUnsupported.
func unsupported(format string, args ...any) error {
	return fmt.Errorf("%w: %s", ErrUnsupported, fmt.Sprintf(format, args...))
}

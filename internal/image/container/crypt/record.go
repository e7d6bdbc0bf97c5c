package crypt

import "errors"

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
	if err := checkExpected(expected{"key derivation", f.KDF, kdfPBKDF2}, expected{"pseudo-random function", f.PRF, 0},
		expected{"wrap IV length", f.IVSize, wrapIVSize}, expected{"wrap key bits", f.WrapBits, kekSize * 8},
		expected{"wrap padding", f.WrapPadding, paddingPKCS7},
		expected{"wrap mode", f.WrapMode, modeCBCPadded}); err != nil {
		return f, err
	}
	if _, err := iterationsOf(f.Iterations); err != nil {
		return f, err
	}
	switch {
	case f.SaltSize > saltField:
		return f, damaged("a salt of %d bytes, more than %d", f.SaltSize, saltField)
	case f.BlobSize == 0 || f.BlobSize > blobField:
		return f, damaged("%d bytes of wrapped keys, not 1 to %d", f.BlobSize, blobField)
	case wraps[f.WrapAlgorithm] == "":
		return f, unsupported("wrap algorithm %#x", f.WrapAlgorithm)
	}
	return f, nil
}

// iterationsOf checks the rounds of one record.
func iterationsOf(n uint32) (int, error) {
	if n == 0 {
		return 0, damaged("no iterations of the key derivation")
	}
	if n > MaxIterations {
		return 0, unsupported("%d iterations of the key derivation, more than %d", n, MaxIterations)
	}
	return int(n), nil
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
// keys. The caller wipes them.
func (h *Header) open(pass []byte) (Record, keys, error) {
	refused, usable := unsupported("the header has no passphrase record"), false
	for _, record := range h.Records {
		if record.Kind != passphrase {
			continue
		}
		p, err := decodeRecord(h.bytes(record))
		if err != nil {
			refused = err
			continue
		}
		k, err := p.unwrap(pass, h.KeyBits/8)
		if err == nil {
			return record, k, nil
		}
		if !errors.Is(err, ErrPassphrase) {
			refused = err
			continue
		}
		usable = true
	}
	if usable {
		return Record{}, keys{}, ErrPassphrase
	}
	return Record{}, keys{}, refused
}

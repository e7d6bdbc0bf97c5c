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

// passRecord is the content of a passphrase record.
type passRecord struct {
	iterations int
	wrap       Wrap
	salt, iv   []byte
	blob       []byte
}

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

// wrapAlgorithms are the codes of the wraps.
var wrapAlgorithms = map[Wrap]uint32{Wrap3DES: algorithm3DES, WrapAES192: algorithmAES}

// decodeRecord reads the passphrase record b; the error wraps ErrDamaged or
// ErrUnsupported.
func decodeRecord(b []byte) (passRecord, error) {
	if len(b) < recordSize {
		return passRecord{}, damaged("a passphrase record of %d bytes, not %d", len(b), recordSize)
	}
	var f recordFields
	decodeFields(b, &f)
	if err := checkExpected(expected{"key derivation", f.KDF, kdfPBKDF2}, expected{"pseudo-random function", f.PRF, 0},
		expected{"wrap IV length", f.IVSize, wrapIVSize}, expected{"wrap key bits", f.WrapBits, kekSize * 8},
		expected{"wrap padding", f.WrapPadding, paddingPKCS7},
		expected{"wrap mode", f.WrapMode, modeCBCPadded}); err != nil {
		return passRecord{}, err
	}
	iterations, err := iterationsOf(f.Iterations)
	switch {
	case err != nil:
		return passRecord{}, err
	case f.SaltSize > saltField:
		return passRecord{}, damaged("a salt of %d bytes, more than %d", f.SaltSize, saltField)
	case f.BlobSize == 0 || f.BlobSize > blobField:
		return passRecord{}, damaged("%d bytes of wrapped keys, not 1 to %d", f.BlobSize, blobField)
	}
	p := passRecord{iterations: iterations, salt: f.Salt[:f.SaltSize], iv: f.IV[:wrapIVSize], blob: f.Blob[:f.BlobSize]}
	for wrap, algorithm := range wrapAlgorithms {
		if algorithm == f.WrapAlgorithm {
			p.wrap = wrap
			return p, nil
		}
	}
	return passRecord{}, unsupported("wrap algorithm %#x", f.WrapAlgorithm)
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

// encode fills b, of recordSize bytes.
func (p passRecord) encode(b []byte) {
	f := recordFields{KDF: kdfPBKDF2, Iterations: uint32(p.iterations), SaltSize: uint32(len(p.salt)),
		IVSize: wrapIVSize, WrapBits: kekSize * 8, WrapAlgorithm: wrapAlgorithms[p.wrap], WrapPadding: paddingPKCS7,
		WrapMode: modeCBCPadded, BlobSize: uint32(len(p.blob))}
	copy(f.Salt[:], p.salt)
	copy(f.IV[:], p.iv)
	copy(f.Blob[:], p.blob)
	encodeFields(b, f)
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
		sum += p.iterations
		if h.Iterations == 0 {
			h.Iterations, h.Wrap = p.iterations, p.wrap
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

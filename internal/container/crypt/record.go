package crypt

import (
	"encoding/binary"
	"errors"
)

const (
	recordSize = 0x268 // a passphrase record
	saltSize   = 20
	saltField  = 32
	wrapIVSize = 8
	blobField  = 512
	kekSize    = 24 // 192 bits for both wraps
)

// passRecord is the content of a passphrase record. Slices point into the header.
type passRecord struct {
	iterations int
	wrap       Wrap
	salt, iv   []byte
	blob       []byte
}

// decodeRecord reads the passphrase record b; the error wraps ErrDamaged or ErrUnsupported.
func decodeRecord(b []byte) (passRecord, error) {
	if len(b) < recordSize {
		return passRecord{}, damaged("a passphrase record of %d bytes, not %d", len(b), recordSize)
	}
	u32 := func(off int) uint32 { return binary.BigEndian.Uint32(b[off:]) }
	for _, field := range []struct {
		name     string
		off      int
		expected uint32
	}{
		{"key derivation", 0x00, kdfPBKDF2}, {"pseudo-random function", 0x04, 0}, {"wrap IV length", 0x30, wrapIVSize},
		{"wrap key bits", 0x54, kekSize * 8}, {"wrap padding", 0x5C, paddingPKCS7}, {"wrap mode", 0x60, modeCBCPadded},
	} {
		if got := u32(field.off); got != field.expected {
			return passRecord{}, unsupported("%s %d, expected %d", field.name, got, field.expected)
		}
	}
	iterations, err := iterationsOf(u32(0x08))
	if err != nil {
		return passRecord{}, err
	}
	salt, blob := u32(0x0C), u32(0x64)
	if salt > saltField {
		return passRecord{}, damaged("a salt of %d bytes, more than %d", salt, saltField)
	}
	if blob == 0 || blob > blobField {
		return passRecord{}, damaged("%d bytes of wrapped keys, not 1 to %d", blob, blobField)
	}
	p := passRecord{iterations: iterations, salt: b[0x10:][:salt], iv: b[0x34:][:wrapIVSize], blob: b[0x68:][:blob]}
	switch algorithm := u32(0x58); algorithm {
	case algorithm3DES:
		p.wrap = Wrap3DES
	case algorithmAES:
		p.wrap = WrapAES192
	default:
		return passRecord{}, unsupported("wrap algorithm %#x", algorithm)
	}
	return p, nil
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

// encode fills b, of recordSize zero bytes.
func (p passRecord) encode(b []byte) {
	put := func(off int, v uint32) { binary.BigEndian.PutUint32(b[off:], v) }
	clear(b)
	put(0x00, kdfPBKDF2)
	put(0x08, uint32(p.iterations))
	put(0x0C, uint32(len(p.salt)))
	copy(b[0x10:], p.salt)
	put(0x30, wrapIVSize)
	copy(b[0x34:], p.iv)
	put(0x54, kekSize*8)
	put(0x58, algorithmAES)
	if p.wrap == Wrap3DES {
		put(0x58, algorithm3DES)
	}
	put(0x5C, paddingPKCS7)
	put(0x60, modeCBCPadded)
	put(0x64, uint32(len(p.blob)))
	copy(b[0x68:], p.blob)
}

// bytes returns the record in the header.
func (h *Header) bytes(r Record) []byte { return h.raw[r.Offset:][:r.Length:r.Length] }

// summarise sets the fields that describe the passphrase records. One that cannot be used is no
// error here: Unlock reports what is wrong with it.
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

// open looks for the record that the passphrase opens, and returns it with the keys. The caller
// wipes them.
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

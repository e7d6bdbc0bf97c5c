package crypt

import (
	"crypto/cipher"
	"crypto/des"
	"encoding/binary"
	"fmt"
	"slices"
)

const (
	// TrailerSize is that of a header of version 1, which is at the end of its
	// file, and TrailerStart where it has the offset at which it starts.
	TrailerSize  = 1276
	TrailerStart = 0x4E8

	slotAES  = 0x60
	slotHMAC = 0x18C
	slotBlob = 256
)

// rfc3217IV starts the outer pass of the Triple-DES key wrap, RFC 3217 section
// 3.
var rfc3217IV = []byte{0x4a, 0xdd, 0xa2, 0x2c, 0x79, 0xe8, 0x21, 0x05}

// parseV1 takes over raw, a trailer at byte start of its file. A file of only
// the trailer is the token of a bundle.
func parseV1(raw []byte, start int64) (*Header, error) {
	u32 := func(off int) uint32 { return binary.BigEndian.Uint32(raw[off:]) }
	for _, field := range [][2]uint32{ // offset and the only known value
		{0x4F0, 1}, {0x14, algorithm3DES}, {0x18, paddingPKCS7}, {0x1C, modeCBCPadded}, {0x20, kekSize * 8},
		{0x24, wrapIVSize}, {0x28, kdfPBKDF2}, {0x2C, 0}, {0x58, 16}, {0x5C, modeCBC}, {slotAES, algorithmAES},
		{slotHMAC, algorithmHMAC}, {slotHMAC + 4, hmacKeySize * 8},
	} {
		if got := u32(int(field[0])); got != field[1] {
			return nil, unsupported("cdsaencr trailer with %#x at %#x, expected %#x", got, field[0], field[1])
		}
	}
	h := &Header{Version: 1, UUID: [16]byte(raw), Iterations: int(u32(0x30)), Wrap: Wrap3DES, Passphrases: 1, raw: raw}
	if err := h.setSizes(u32(slotAES+4), u32(0x10)); err != nil {
		return nil, err
	}
	if err := checkDerivation(u32(0x30), u32(0x34)); err != nil {
		return nil, err
	}
	if start == 0 {
		return h, nil
	}
	stated := binary.BigEndian.Uint64(raw[TrailerStart:])
	if stated != uint64(start) {
		return nil, damaged("the trailer states that it starts at byte %d and starts at %d", stated, start)
	}
	h.DataLength = start
	return h, nil
}

// openV1 unwraps the keys of a trailer.
func (h *Header) openV1(pass []byte) (keys, error) {
	salt := binary.BigEndian.Uint32(h.raw[0x34:])
	kek, err := derive(pass, h.raw[0x38:][:salt], h.Iterations)
	if err != nil {
		return keys{}, err
	}
	defer clear(kek)
	block, err := des.NewTripleDESCipher(kek)
	if err != nil {
		return keys{}, fmt.Errorf("unwrapping the keys: %w", err)
	}
	var k keys
	if k.aes, err = h.slot(block, slotAES, h.KeyBits/8); err != nil {
		return keys{}, err
	}
	if k.hmac, err = h.slot(block, slotHMAC, hmacKeySize); err != nil {
		k.wipe()
		return keys{}, err
	}
	return k, nil
}

// slot unwraps the key of size bytes in the slot at off as in RFC 3217, section
// 3.2: decrypt, reverse, and decrypt with the IV that the reversed bytes start
// with. Apple pads both passes and puts four zero bytes before the key.
func (h *Header) slot(block cipher.Block, off, size int) ([]byte, error) {
	length := binary.BigEndian.Uint32(h.raw[off+40:])
	if length == 0 || length > slotBlob || length%des.BlockSize != 0 {
		return nil, damaged("%d bytes of wrapped key", length)
	}
	outer := make([]byte, length)
	defer clear(outer)
	cipher.NewCBCDecrypter(block, rfc3217IV).CryptBlocks(outer, h.raw[off+44:][:length])
	inner, ok := unpad(outer, des.BlockSize)
	if !ok || len(inner) < 2*des.BlockSize || len(inner)%des.BlockSize != 0 {
		return nil, ErrPassphrase
	}
	slices.Reverse(inner)
	iv, body := inner[:des.BlockSize], inner[des.BlockSize:]
	cipher.NewCBCDecrypter(block, iv).CryptBlocks(body, body)
	key, ok := unpad(body, des.BlockSize)
	if !ok || len(key) != 4+size || binary.BigEndian.Uint32(key) != 0 {
		return nil, ErrPassphrase
	}
	return slices.Clone(key[4:]), nil
}

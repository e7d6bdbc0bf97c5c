package aescbc

import (
	"crypto/cipher"
	"unsafe"
)

// blockMode is what the CBC modes of crypto/cipher implement: reusing one for
// every block saves an allocation each.
type blockMode interface {
	cipher.BlockMode
	SetIV(iv []byte)
}

const (
	encrypting = iota
	decrypting
)

// mode takes a CBC object from the pool, or makes one. All that the standard
// library makes of its own AES have SetIV.
func (k *Key) mode(direction int) blockMode {
	if m, ok := k.modes[direction].Get().(blockMode); ok {
		return m
	}
	zero := make([]byte, Size)
	if direction == decrypting {
		return cipher.NewCBCDecrypter(k.block, zero).(blockMode)
	}
	return cipher.NewCBCEncrypter(k.block, zero).(blockMode)
}

// encryptGeneric is a kernel of the standard library.
func (k *Key) encryptGeneric(dst, src, ivs []byte, unit int) {
	k.crypt(encrypting, dst, src, ivs, unit)
}

// decryptGeneric is a kernel of the standard library.
func (k *Key) decryptGeneric(dst, src, ivs []byte, unit int) {
	k.crypt(decrypting, dst, src, ivs, unit)
}

// crypt runs the mode over block after block.
func (k *Key) crypt(direction int, dst, src, ivs []byte, unit int) {
	m := k.mode(direction)
	for i := range len(ivs) / Size {
		m.SetIV(ivs[i*Size : (i+1)*Size])
		m.CryptBlocks(dst[i*unit:(i+1)*unit], src[i*unit:(i+1)*unit])
	}
	k.modes[direction].Put(m)
}

// overlap reports whether the slices, of one length, share memory without
// starting at the same byte.
func overlap(a, b []byte) bool {
	if len(a) == 0 || &a[0] == &b[0] {
		return false
	}
	p, q := uintptr(unsafe.Pointer(&a[0])), uintptr(unsafe.Pointer(&b[0]))
	return p < q+uintptr(len(b)) && q < p+uintptr(len(a))
}

package aescbc

import (
	"crypto/cipher"
	"unsafe"
)

// genericKernel is a kernel of the standard library. It allocates a mode for
// every block: only CPUs without instructions for AES use it.
func genericKernel(newMode func(b cipher.Block, iv []byte) cipher.BlockMode) kernel {
	return func(k *Key, dst, src, ivs []byte, unit int) {
		for i := range len(ivs) / Size {
			newMode(k.block, ivs[i*Size:][:Size]).CryptBlocks(dst[i*unit:][:unit], src[i*unit:][:unit])
		}
	}
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

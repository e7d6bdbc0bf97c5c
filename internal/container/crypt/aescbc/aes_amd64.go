package aescbc

import "golang.org/x/sys/cpu"

var (
	aesNI   = set{"aes-ni", (*Key).encryptNI, (*Key).decryptNI}
	vaes512 = set{"vaes-512", (*Key).encryptVAES, (*Key).decryptVAES}
)

// supported lists the sets of this CPU. Package cpu reports AVX only if the system saves its
// registers.
func supported() []set {
	sets := []set{generic}
	if cpu.X86.HasAES && cpu.X86.HasAVX {
		sets = append([]set{aesNI}, sets...)
		if cpu.X86.HasAVX512VAES && cpu.X86.HasAVX512F && cpu.X86.HasAVX512VL && cpu.X86.HasAVX512DQ {
			sets = append([]set{vaes512}, sets...)
		}
	}
	return sets
}

//go:noescape
func encryptTwelve(rk *byte, rounds int, dst, src, ivs *byte, length int, lanes *[12]int)

//go:noescape
func decryptUnits(rk *byte, rounds int, dst, src, ivs *byte, unit, units int)

//go:noescape
func encryptVAES(rk *byte, rounds int, dst, src, ivs *byte, unit, length int, lanes *[8]int)

//go:noescape
func decryptVAES(rk *byte, rounds int, dst, src, ivs *byte, unit, units int)

// encryptNI encrypts twelve blocks at a time.
func (k *Key) encryptNI(dst, src, ivs []byte, unit int) {
	k.encryptLanes(lanesNI, dst, src, ivs, unit)
}

// fewVAES is the number of blocks up to which the kernel for twelve is quicker than the one for 32.
const fewVAES = 12

// encryptVAES encrypts 32 blocks at a time, and the rest after a multiple of four with the other
// kernel.
func (k *Key) encryptVAES(dst, src, ivs []byte, unit int) {
	n := len(ivs) / Size &^ 3
	if unit%64 != 0 || n <= fewVAES {
		n = 0
	}
	if n > 0 {
		k.encryptLanes(lanesVAES, dst[:n*unit], src[:n*unit], ivs[:n*Size], unit)
	}
	if n*Size < len(ivs) {
		k.encryptLanes(lanesNI, dst[n*unit:], src[n*unit:], ivs[n*Size:], unit)
	}
}

// decryptNI decrypts one block after the other: inside a block all steps are independent.
func (k *Key) decryptNI(dst, src, ivs []byte, unit int) {
	decryptUnits(&k.dec[0], k.rounds, &dst[0], &src[0], &ivs[0], unit, len(ivs)/Size)
}

func (k *Key) decryptVAES(dst, src, ivs []byte, unit int) {
	if unit%512 != 0 {
		k.decryptNI(dst, src, ivs, unit)
		return
	}
	decryptVAES(&k.dec[0], k.rounds, &dst[0], &src[0], &ivs[0], unit, len(ivs)/Size)
}

package aescbc

import "golang.org/x/sys/cpu"

var (
	aesNI   = set{"aes-ni", (*Key).encryptLanes, (*Key).decryptSerial}
	vaes512 = set{"vaes-512", (*Key).encryptVAES, (*Key).decryptVAES}
)

// supported lists the sets of this CPU. The cpu package says yes to AVX only when the system saves its registers, too.
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
func encryptEight(rk *byte, rounds int, dst, src, ivs *byte, unit int, lanes *[8]int)

//go:noescape
func decryptUnits(rk *byte, rounds int, dst, src, ivs *byte, unit, units int)

//go:noescape
func encryptVAES(rk *byte, rounds int, dst, src, ivs *byte, unit int)

//go:noescape
func decryptVAES(rk *byte, rounds int, dst, src, ivs *byte, unit, units int)

// encryptVAES encrypts 32 blocks at a time, and the rest in eights.
func (k *Key) encryptVAES(dst, src, ivs []byte, unit int) {
	const n = 32
	for unit%64 == 0 && len(ivs) >= n*Size {
		encryptVAES(&k.enc[0], k.rounds, &dst[0], &src[0], &ivs[0], unit)
		dst, src, ivs = dst[n*unit:], src[n*unit:], ivs[n*Size:]
	}
	if len(ivs) > 0 {
		k.encryptLanes(dst, src, ivs, unit)
	}
}

func (k *Key) decryptVAES(dst, src, ivs []byte, unit int) {
	if unit%512 != 0 {
		k.decryptSerial(dst, src, ivs, unit)
		return
	}
	decryptVAES(&k.dec[0], k.rounds, &dst[0], &src[0], &ivs[0], unit, len(ivs)/Size)
}

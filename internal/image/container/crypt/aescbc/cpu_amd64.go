package aescbc

import (
	"golang.org/x/sys/cpu"
)

var (
	aesNI   = set{"aes-ni", (*Key).encryptNI, (*Key).decryptUnitByUnit}
	vaes512 = set{"vaes-512", (*Key).encryptVAES, (*Key).decryptVAES}

	lanesNI   = lanes{slots: 12, width: 1}
	lanesVAES = lanes{slots: 8, width: 4}
)

// supported lists the sets of this CPU. Package cpu reports AVX only if the
// system saves its registers.
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

// fewVAES is the number of blocks up to which the kernel for twelve is quicker
// than the one for 32.
const fewVAES = 12

// encryptVAES encrypts 32 blocks at a time, and the rest after a multiple of
// four with the other kernel.
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

// runLanes runs the kernel of l over whole blocks of all slots.
func (k *Key) runLanes(l lanes, dst, src, ivs *byte, unit int, at *[mostSlots]int) {
	if l.width > 1 {
		encryptVAES(&k.enc[0], k.rounds, dst, src, ivs, unit, unit, (*[8]int)(at[:]))
		return
	}
	encryptTwelve(&k.enc[0], k.rounds, dst, src, ivs, unit, at)
}

// decryptVAES uses the wide kernel for blocks of a multiple of 512 bytes.
func (k *Key) decryptVAES(dst, src, ivs []byte, unit int) {
	if unit%512 != 0 {
		k.decryptUnitByUnit(dst, src, ivs, unit)
		return
	}
	decryptVAES(&k.dec[0], k.rounds, &dst[0], &src[0], &ivs[0], unit, len(ivs)/Size)
}

var ivsSHANI = ivSet{"sha-ni", (*IVKey).fillSHANI}

// supportedIVs lists the sets of this CPU, the best first.
func supportedIVs() []ivSet {
	if hasSHANI {
		return []ivSet{ivsSHANI, genericIVs}
	}
	return []ivSet{genericIVs}
}

// hasSHANI reports the SHA instructions, which package cpu does not know. They
// need no more of the system than SSE. CPUID leaf 7 exists where AVX2 does.
var hasSHANI = cpu.X86.HasAVX2 && leaf7()&(1<<29) != 0

// leaf7 is the register EBX of CPUID leaf 7, subleaf 0.
func leaf7() (ebx uint32)

//go:noescape
func fillSHANI(dst *byte, groups int, first uint32, states *[2][5]uint32)

// fillSHANI makes four IVs at a time.
func (v *IVKey) fillSHANI(dst []byte, first uint32) {
	const group = 4
	if n := len(dst) / Size / group; n > 0 {
		fillSHANI(&dst[0], n, first, &v.states)
		dst, first = dst[n*group*Size:], first+uint32(n*group)
	}
	if len(dst) > 0 {
		var rest [group * Size]byte
		fillSHANI(&rest[0], 1, first, &v.states)
		copy(dst, rest[:])
	}
}

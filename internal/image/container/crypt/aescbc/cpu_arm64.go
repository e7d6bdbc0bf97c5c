package aescbc

import (
	"runtime"

	"golang.org/x/sys/cpu"
)

var (
	armv8      = set{"armv8-aes", (*Key).encryptARM, (*Key).decryptUnitByUnit}
	lanesARMv8 = lanes{slots: 8, width: 1}
)

// supported lists the sets of this CPU. Every Mac with an ARM CPU has the
// instructions.
func supported() []set {
	if cpu.ARM64.HasAES || runtime.GOOS == "darwin" {
		return []set{armv8, generic}
	}
	return []set{generic}
}

//go:noescape
func encryptEight(rk *byte, rounds int, dst, src, ivs *byte, unit int, lanes *[8]int)

//go:noescape
func decryptUnits(rk *byte, rounds int, dst, src, ivs *byte, unit, units int)

// encryptARM encrypts eight blocks at a time.
func (k *Key) encryptARM(dst, src, ivs []byte, unit int) {
	k.encryptLanes(lanesARMv8, dst, src, ivs, unit)
}

// runLanes runs the kernel over whole blocks of all slots.
func (k *Key) runLanes(_ lanes, dst, src, ivs *byte, unit int, at *[mostSlots]int) {
	encryptEight(&k.enc[0], k.rounds, dst, src, ivs, unit, (*[8]int)(at[:]))
}

var ivsSHA1 = ivSet{"armv8-sha1", (*IVKey).fillPairs}

// supportedIVs lists the sets of this CPU. Every Mac with an ARM CPU has the
// instructions.
func supportedIVs() []ivSet {
	if cpu.ARM64.HasSHA1 || runtime.GOOS == "darwin" {
		return []ivSet{ivsSHA1, genericIVs}
	}
	return []ivSet{genericIVs}
}

//go:noescape
func fillSHA1(dst *byte, pairs int, first uint32, states *[2][5]uint32)

// fillPairs makes two IVs at a time.
func (v *IVKey) fillPairs(dst []byte, first uint32) {
	if n := len(dst) / Size / 2; n > 0 {
		fillSHA1(&dst[0], n, first, &v.states)
		dst, first = dst[n*2*Size:], first+uint32(n*2)
	}
	if len(dst) > 0 {
		var rest [2 * Size]byte
		fillSHA1(&rest[0], 1, first, &v.states)
		copy(dst, rest[:])
	}
}

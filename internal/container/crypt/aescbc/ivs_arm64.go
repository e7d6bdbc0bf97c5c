package aescbc

import (
	"runtime"

	"golang.org/x/sys/cpu"
)

var ivsSHA1 = ivSet{"armv8-sha1", (*IVKey).fillPairs}

// supportedIVs lists the sets of this CPU. Every Mac with an ARM CPU has the instructions.
func supportedIVs() []ivSet {
	if cpu.ARM64.HasSHA1 || runtime.GOOS == "darwin" {
		return []ivSet{ivsSHA1, genericIVs}
	}
	return []ivSet{genericIVs}
}

//go:noescape
func fillSHA1(dst *byte, pairs int, first uint32, states *[2][5]uint32)

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

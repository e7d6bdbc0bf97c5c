package aescbc

import "golang.org/x/sys/cpu"

var ivsSHANI = ivSet{"sha-ni", (*IVKey).fillSHANI}

// supportedIVs lists the sets of this CPU, the best first.
func supportedIVs() []ivSet {
	if hasSHANI {
		return []ivSet{ivsSHANI, genericIVs}
	}
	return []ivSet{genericIVs}
}

// hasSHANI reports the SHA instructions, which package cpu does not know. They need no more of the
// system than SSE. CPUID leaf 7 exists where AVX2 does.
var hasSHANI = cpu.X86.HasAVX2 && leaf7()&(1<<29) != 0

func leaf7() (ebx uint32)

//go:noescape
func fillSHANI(dst *byte, groups int, first uint32, states *[2][5]uint32)

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

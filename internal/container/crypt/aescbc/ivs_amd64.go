package aescbc

import "golang.org/x/sys/cpu"

var (
	ivsAVX512 = ivSet{"avx-512", (*IVKey).fillAVX512}
	ivsSHANI  = ivSet{"sha-ni", (*IVKey).fillSHANI}
	ivsAVX2   = ivSet{"avx2", (*IVKey).fillAVX2}
)

func supportedIVs() []ivSet {
	sets := []ivSet{genericIVs}
	if cpu.X86.HasAVX2 {
		sets = append([]ivSet{ivsAVX2}, sets...)
		if hasSHANI {
			sets = append([]ivSet{ivsSHANI}, sets...)
		}
	}
	if cpu.X86.HasAVX512F && cpu.X86.HasAVX512BW && cpu.X86.HasAVX512DQ {
		sets = append([]ivSet{ivsAVX512}, sets...)
	}
	return sets
}

// hasSHANI tells of the SHA instructions, which the cpu package does not know. They need nothing of the system but SSE.
// Leaf 7 of CPUID is where AVX2 is told as well.
var hasSHANI = cpu.X86.HasAVX2 && leaf7()&(1<<29) != 0

func leaf7() (ebx uint32)

//go:noescape
func fillAVX512(dst *byte, groups int, first uint32, states *[2][5]uint32)

//go:noescape
func fillSHANI(dst *byte, groups int, first uint32, states *[2][5]uint32)

//go:noescape
func fillAVX2(dst *byte, groups int, first uint32, states *[2][5]uint32)

func (v *IVKey) fillAVX512(dst []byte, first uint32) {
	const group = 32
	if n := len(dst) / Size / group; n > 0 {
		fillAVX512(&dst[0], n, first, &v.states)
		dst, first = dst[n*group*Size:], first+uint32(n*group)
	}
	if len(dst) > 0 {
		var rest [group * Size]byte
		fillAVX512(&rest[0], 1, first, &v.states)
		copy(dst, rest[:])
	}
}

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

func (v *IVKey) fillAVX2(dst []byte, first uint32) {
	const group = 8
	if n := len(dst) / Size / group; n > 0 {
		fillAVX2(&dst[0], n, first, &v.states)
		dst, first = dst[n*group*Size:], first+uint32(n*group)
	}
	if len(dst) > 0 {
		var rest [group * Size]byte
		fillAVX2(&rest[0], 1, first, &v.states)
		copy(dst, rest[:])
	}
}

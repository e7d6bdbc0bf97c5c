package aescbc

import "golang.org/x/sys/cpu"

var (
	aesNI   = set{"aes-ni", (*Key).encryptLanes, (*Key).decryptNI}
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
func encryptNI(rk *byte, rounds int, dst, src, ivs *byte, unit int, lanes *[8]int)

//go:noescape
func decryptNI(rk *byte, rounds int, dst, src, ivs *byte, unit, units int)

//go:noescape
func encryptVAES(rk *byte, rounds int, dst, src, ivs *byte, unit int)

//go:noescape
func decryptVAES(rk *byte, rounds int, dst, src, ivs *byte, unit, units int)

// encryptLanes encrypts eight blocks at a time. Where fewer are left the last one fills the spare lanes, which costs
// no more: CBC keeps the AES units waiting either way.
func (k *Key) encryptLanes(dst, src, ivs []byte, unit int) {
	for count := len(ivs) / Size; count > 0; {
		n := min(count, 8)
		var lanes [8]int
		var chains [8 * Size]byte
		copy(chains[:], ivs[:n*Size])
		for i := range lanes {
			lanes[i] = min(i, n-1) * unit
			if i >= n {
				copy(chains[i*Size:(i+1)*Size], ivs[(n-1)*Size:n*Size])
			}
		}
		encryptNI(&k.enc[0], k.rounds, &dst[0], &src[0], &chains[0], unit, &lanes)
		if count -= n; count > 0 {
			dst, src, ivs = dst[n*unit:], src[n*unit:], ivs[n*Size:]
		}
	}
}

func (k *Key) decryptNI(dst, src, ivs []byte, unit int) {
	decryptNI(&k.dec[0], k.rounds, &dst[0], &src[0], &ivs[0], unit, len(ivs)/Size)
}

// encryptVAES encrypts 32 blocks at a time, and the rest in eights.
func (k *Key) encryptVAES(dst, src, ivs []byte, unit int) {
	const n = 32
	for len(ivs) >= n*Size {
		encryptVAES(&k.enc[0], k.rounds, &dst[0], &src[0], &ivs[0], unit)
		dst, src, ivs = dst[n*unit:], src[n*unit:], ivs[n*Size:]
	}
	if len(ivs) > 0 {
		k.encryptLanes(dst, src, ivs, unit)
	}
}

func (k *Key) decryptVAES(dst, src, ivs []byte, unit int) {
	if unit%512 != 0 {
		k.decryptNI(dst, src, ivs, unit)
		return
	}
	decryptVAES(&k.dec[0], k.rounds, &dst[0], &src[0], &ivs[0], unit, len(ivs)/Size)
}

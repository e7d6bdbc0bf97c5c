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
	var room [8 * stagedUnit]byte
	for count := len(ivs) / Size; count > 0; {
		n := min(count, 8)
		var chains [8 * Size]byte
		copy(chains[:], ivs[:n*Size])
		if unit >= stageFrom && unit%stagedUnit == 0 {
			staged(room[:n*stagedUnit], dst, src, chains[:n*Size], unit, k.encryptUpTo8)
		} else {
			k.encryptUpTo8(dst, src, chains[:n*Size], unit)
		}
		if count -= n; count > 0 {
			dst, src, ivs = dst[n*unit:], src[n*unit:], ivs[n*Size:]
		}
	}
}

// encryptUpTo8 encrypts one to eight blocks.
func (k *Key) encryptUpTo8(dst, src, ivs []byte, unit int) {
	var lanes [8]int
	var chains [8 * Size]byte
	n := len(ivs) / Size
	for i := range lanes {
		lane := min(i, n-1)
		lanes[i] = lane * unit
		copy(chains[i*Size:], ivs[lane*Size:(lane+1)*Size])
	}
	encryptNI(&k.enc[0], k.rounds, &dst[0], &src[0], &chains[0], unit, &lanes)
}

const (
	// stageFrom is the block length from which the eight lanes are copied into one place first. All lanes of a step lie
	// a block apart: with 4096 bytes in one set of the first cache, which has room for eight to twelve of them.
	stageFrom  = 2048
	stagedUnit = 512
)

// staged encrypts len(chains)/Size blocks of unit bytes in pieces of stagedUnit, by way of room. It leaves the last
// ciphertext of each block in chains.
func staged(room, dst, src, chains []byte, unit int, encrypt func(dst, src, ivs []byte, unit int)) {
	n := len(chains) / Size
	for piece := 0; piece < unit; piece += stagedUnit {
		for i := range n {
			copy(room[i*stagedUnit:(i+1)*stagedUnit], src[i*unit+piece:])
		}
		encrypt(room, room, chains, stagedUnit)
		for i := range n {
			part := room[i*stagedUnit : (i+1)*stagedUnit]
			copy(dst[i*unit+piece:], part)
			copy(chains[i*Size:], part[stagedUnit-Size:])
		}
	}
}

func (k *Key) decryptNI(dst, src, ivs []byte, unit int) {
	decryptNI(&k.dec[0], k.rounds, &dst[0], &src[0], &ivs[0], unit, len(ivs)/Size)
}

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
		k.decryptNI(dst, src, ivs, unit)
		return
	}
	decryptVAES(&k.dec[0], k.rounds, &dst[0], &src[0], &ivs[0], unit, len(ivs)/Size)
}

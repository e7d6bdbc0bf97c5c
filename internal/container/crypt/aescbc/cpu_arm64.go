package aescbc

import (
	"runtime"

	"golang.org/x/sys/cpu"
)

var armv8 = set{"armv8-aes", (*Key).encryptLanes, (*Key).decryptSerial}

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

// encryptLanes encrypts eight blocks at a time. Where fewer are left the last
// one fills the spare lanes, which costs no more: CBC keeps the AES units
// waiting either way.
func (k *Key) encryptLanes(dst, src, ivs []byte, unit int) {
	var room [8 * stagedUnit]byte
	for count := len(ivs) / Size; count > 0; {
		n := min(count, 8)
		var chains [8 * Size]byte
		copy(chains[:], ivs[:n*Size])
		if unit >= stageFrom && unit%stagedUnit == 0 {
			k.encryptStaged(room[:n*stagedUnit], dst, src, chains[:n*Size], unit)
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
	encryptEight(&k.enc[0], k.rounds, &dst[0], &src[0], &chains[0], unit, &lanes)
}

const (
	// stageFrom is the block length from which the eight lanes are copied into
	// one place first. All lanes of a step lie a block apart: with 4096 bytes
	// in one set of the first cache, which has room for eight to twelve of
	// them.
	stageFrom  = 2048
	stagedUnit = 512
)

// encryptStaged encrypts len(chains)/Size blocks of unit bytes in pieces of
// stagedUnit, by way of room. It leaves the last ciphertext of each block in
// chains.
func (k *Key) encryptStaged(room, dst, src, chains []byte, unit int) {
	n := len(chains) / Size
	for piece := 0; piece < unit; piece += stagedUnit {
		for i := range n {
			copy(room[i*stagedUnit:(i+1)*stagedUnit], src[i*unit+piece:])
		}
		k.encryptUpTo8(room, room, chains, stagedUnit)
		for i := range n {
			part := room[i*stagedUnit : (i+1)*stagedUnit]
			copy(dst[i*unit+piece:], part)
			copy(chains[i*Size:], part[stagedUnit-Size:])
		}
	}
}

// decryptSerial decrypts one block after the other: inside a block all steps
// are independent.
func (k *Key) decryptSerial(dst, src, ivs []byte, unit int) {
	decryptUnits(&k.dec[0], k.rounds, &dst[0], &src[0], &ivs[0], unit, len(ivs)/Size)
}

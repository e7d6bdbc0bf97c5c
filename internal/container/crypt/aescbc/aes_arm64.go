package aescbc

import (
	"runtime"

	"golang.org/x/sys/cpu"
)

var armv8 = set{"armv8-aes", (*Key).encryptLanes, (*Key).decryptSerial}

// supported lists the sets of this CPU. Every Mac with an ARM CPU has the instructions.
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

//go:build amd64 || arm64

package aescbc

// lanes is how a kernel encrypts several blocks at once: in slots, each of
// width blocks that follow one another.
type lanes struct{ slots, width int }

const (
	mostSlots  = 12
	mostBlocks = 32 // of all slots of a kernel
)

// encryptLanes encrypts len(ivs)/Size blocks, a multiple of the width of l.
func (k *Key) encryptLanes(l lanes, dst, src, ivs []byte, unit int) {
	for len(ivs) > 0 {
		n := min(l.slots*l.width, len(ivs)/Size)
		k.encryptBatch(l, dst, src, ivs[:n*Size], unit)
		dst, src, ivs = dst[n*unit:], src[n*unit:], ivs[n*Size:]
	}
}

// encryptBatch encrypts as many blocks as there are lanes, or fewer. Then the
// last slot fills the spare ones, which costs no more: CBC keeps the AES units
// waiting either way.
func (k *Key) encryptBatch(l lanes, dst, src, ivs []byte, unit int) {
	var at [mostSlots]int
	last := len(ivs)/Size/l.width - 1
	for i := range l.slots {
		at[i] = min(i, last) * l.width * unit
	}
	if last == l.slots-1 {
		k.runLanes(l, &dst[0], &src[0], &ivs[0], unit, &at)
		return
	}
	var chains [mostBlocks * Size]byte
	slot := l.width * Size
	for i := range l.slots {
		copy(chains[i*slot:(i+1)*slot], ivs[min(i, last)*slot:])
	}
	k.runLanes(l, &dst[0], &src[0], &chains[0], unit, &at)
}

// decryptUnitByUnit decrypts one block after the other: inside a block all
// steps are independent.
func (k *Key) decryptUnitByUnit(dst, src, ivs []byte, unit int) {
	decryptUnits(&k.dec[0], k.rounds, &dst[0], &src[0], &ivs[0], unit, len(ivs)/Size)
}

package aescbc

import "math"

// shape is how a kernel encrypts: in so many slots, each of them width blocks
// that follow one another.
type shape struct {
	slots, width int
	vaes         bool
	abreast      int // slots that may run at the same offset of their blocks
}

var (
	lanesNI   = shape{slots: 12, width: 1, abreast: 2}
	lanesVAES = shape{slots: 8, width: 4, abreast: 1, vaes: true}
)

const (
	mostSlots = 12
	mostChain = 4 * Size // IVs of one slot

	// staggerFrom is the block length from which lanes abreast get into each
	// other's way: all lie in a few sets of the first cache, with 4096 bytes in
	// a single one, and that has room for eight to twelve cache lines.
	staggerFrom = 2048
	// stagger is how far one lane follows the other then: a cache line.
	stagger = 64
)

// encryptLanes encrypts len(ivs)/Size blocks, a multiple of the width of s.
// unit is a multiple of 64 for VAES.
func (k *Key) encryptLanes(s shape, dst, src, ivs []byte, unit int) {
	if unit >= staggerFrom && unit%stagger == 0 {
		k.encryptStaggered(s, dst, src, ivs, unit)
		return
	}
	var lanes [mostSlots]int
	for i := range s.slots {
		lanes[i] = i * s.width * unit
	}
	batch := s.slots * s.width
	for len(ivs) >= batch*Size {
		k.encryptSlots(s, dst, src, ivs, unit, unit, &lanes)
		dst, src, ivs = dst[batch*unit:], src[batch*unit:], ivs[batch*Size:]
	}
	if len(ivs) > 0 {
		k.encryptStaggered(s, dst, src, ivs, unit)
	}
}

// encryptSlots runs the kernel over length bytes of all slots.
func (k *Key) encryptSlots(s shape, dst, src, ivs []byte, unit, length int, lanes *[mostSlots]int) {
	if s.vaes {
		encryptVAES(&k.enc[0], k.rounds, &dst[0], &src[0], &ivs[0], unit, length, (*[8]int)(lanes[:]))
		return
	}
	encryptTwelve(&k.enc[0], k.rounds, &dst[0], &src[0], &ivs[0], length, lanes)
}

// course is the course of the slots of encryptStaggered through the blocks.
type course struct {
	shape
	unit   int
	lanes  [mostSlots]int              // the position of each
	chains [mostSlots * mostChain]byte // its last ciphertext
	until  [mostSlots]int              // the time, in bytes of each slot, when it ends or starts
	busy   [mostSlots]bool
}

// encryptStaggered gives each slot new blocks as soon as it has ended those it
// had. From staggerFrom on the slots start at different times, and so never get
// abreast.
func (k *Key) encryptStaggered(s shape, dst, src, ivs []byte, unit int) {
	c := course{shape: s, unit: unit}
	if unit >= staggerFrom && unit%stagger == 0 {
		for i := range s.slots {
			c.until[i] = i / s.abreast * stagger
		}
	}
	for now, next := 0, 0; ; {
		next = c.assign(ivs, now, next)
		first, end := c.sooner()
		if first < 0 {
			return
		}
		c.spare(first)
		length := end - now
		k.encryptSlots(s, dst, src, c.chains[:], unit, length, &c.lanes)
		c.advance(dst, length)
		now = end
	}
}

// assign gives the slots that are due the next blocks, as far as there are any,
// and returns which come then.
func (c *course) assign(ivs []byte, now, next int) int {
	chain := c.width * Size
	for i := range c.slots {
		if c.until[i] != now {
			continue
		}
		if c.busy[i] = next*Size < len(ivs); !c.busy[i] {
			c.until[i] = math.MaxInt
			continue
		}
		copy(c.chains[i*chain:(i+1)*chain], ivs[next*Size:])
		c.lanes[i], c.until[i] = next*c.unit, now+c.unit
		next += c.width
	}
	return next
}

// sooner returns a busy slot, or -1, and the time of the next change.
func (c *course) sooner() (first, end int) {
	first, end = -1, math.MaxInt
	for i := range c.slots {
		if c.busy[i] {
			first = i
		}
		end = min(end, c.until[i])
	}
	return first, end
}

// spare lets slots without blocks repeat the work of another, which costs as
// much as leaving them out.
func (c *course) spare(like int) {
	chain := c.width * Size
	for i := range c.slots {
		if !c.busy[i] {
			c.lanes[i] = c.lanes[like]
			copy(c.chains[i*chain:(i+1)*chain], c.chains[like*chain:])
		}
	}
}

// advance takes the chains on from the ciphertext.
func (c *course) advance(dst []byte, length int) {
	for i := range c.slots {
		c.lanes[i] += length
		if !c.busy[i] {
			continue
		}
		for j := range c.width {
			// A slot at the end of its block has the last ciphertext copied in
			// vain, before it gets new IVs.
			at := c.lanes[i] + j*c.unit
			copy(c.chains[(i*c.width+j)*Size:][:Size], dst[at-Size:at])
		}
	}
}

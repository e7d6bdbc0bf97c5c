package xz

// The LZMA decoder: literals and matches under an adaptive binary range coder. Names follow the format's description
// (lzma-specification of the LZMA SDK): 12 states, four remembered distances, and probabilities of 11 bits.

const (
	states      = 12
	maxPos      = 1 << 4 // combinations of the pb low bits of the position
	probOne     = 1 << 11
	probShift   = 5
	topValue    = 1 << 24
	minMatch    = 2
	maxLiterals = 0x300 << 4 // lc + lp ≤ 4, as LZMA2 has it
)

// lengths is the model of match lengths.
type lengths struct {
	choice, choice2 uint16
	low, mid        [maxPos][8]uint16
	high            [256]uint16
}

// model is all the probabilities.
type model struct {
	isMatch    [states * maxPos]uint16
	isRep      [states]uint16
	isRepG0    [states]uint16
	isRepG1    [states]uint16
	isRepG2    [states]uint16
	isRep0Long [states * maxPos]uint16
	slot       [4][64]uint16
	special    [128]uint16
	align      [16]uint16
	match, rep lengths
	literal    [maxLiterals]uint16
}

// decoder decodes LZMA into dst[at:]; the dictionary is what dst holds from start on.
type decoder struct {
	dst       []byte
	at, start int

	rc         rangeDecoder
	lc, lp, pb uint
	state      uint
	rep        [4]uint32 // distances less one
	model      model
}

func (d *decoder) begin(dst []byte) {
	d.dst, d.at, d.start = dst, 0, 0
	d.rc.src = nil
}

// properties sets lc, lp and pb from the byte that packs them. It refuses lc + lp > 4, which LZMA2 and liblzma do too.
func (d *decoder) properties(b byte) bool {
	d.lc, d.lp, d.pb = uint(b%9), uint(b/9%5), uint(b/45)
	return b < 225 && d.lc+d.lp <= 4
}

// reset puts state and probabilities to where every stream begins.
func (d *decoder) reset() {
	d.state, d.rep = 0, [4]uint32{}
	m := &d.model
	for _, table := range [][]uint16{m.isMatch[:], m.isRep[:], m.isRepG0[:], m.isRepG1[:], m.isRepG2[:], m.isRep0Long[:],
		m.special[:], m.align[:], m.literal[:0x300<<(d.lc+d.lp)]} {
		fill(table)
	}
	for i := range m.slot {
		fill(m.slot[i][:])
	}
	for _, l := range []*lengths{&m.match, &m.rep} {
		l.choice, l.choice2 = probOne/2, probOne/2
		for i := range maxPos {
			fill(l.low[i][:])
			fill(l.mid[i][:])
		}
		fill(l.high[:])
	}
}

func fill(table []uint16) {
	for i := range table {
		table[i] = probOne / 2
	}
}

// run decodes until dst is full up to end, or until an end mark, which it reports. It reports false for what is
// invalid. Running out of input shows in rc.over.
func (d *decoder) run(end int) (marked, ok bool) {
	m, rc := &d.model, &d.rc
	for d.at < end {
		if rc.over() {
			return false, false
		}
		pos := uint(d.at-d.start) & (1<<d.pb - 1)
		if rc.bit(&m.isMatch[d.state*maxPos+pos]) == 0 {
			if !d.literal() {
				return false, false
			}
			continue
		}
		var n int
		switch {
		case rc.bit(&m.isRep[d.state]) == 0:
			d.rep[3], d.rep[2], d.rep[1] = d.rep[2], d.rep[1], d.rep[0]
			n = rc.length(&m.match, pos)
			d.state = after(d.state, 7, 10)
			d.rep[0] = d.distance(n)
			if d.rep[0] == 1<<32-1 {
				return true, true
			}
		default:
			n = d.repeated(pos)
		}
		distance := int(d.rep[0]) + 1
		if distance > d.at-d.start || n > end-d.at {
			return false, false
		}
		d.copy(distance, n)
	}
	return false, true
}

// after is the next state: few after literals, many after matches.
func after(state, few, many uint) uint {
	if state < 7 {
		return few
	}
	return many
}

// repeated decodes a match at one of the remembered distances, which becomes the first of them.
func (d *decoder) repeated(pos uint) int {
	m, rc := &d.model, &d.rc
	if rc.bit(&m.isRepG0[d.state]) == 0 {
		if rc.bit(&m.isRep0Long[d.state*maxPos+pos]) == 0 {
			d.state = after(d.state, 9, 11)
			return 1
		}
	} else {
		r := d.rep[1]
		if rc.bit(&m.isRepG1[d.state]) != 0 {
			r = d.rep[2]
			if rc.bit(&m.isRepG2[d.state]) != 0 {
				r, d.rep[3] = d.rep[3], d.rep[2]
			}
			d.rep[2] = d.rep[1]
		}
		d.rep[1], d.rep[0] = d.rep[0], r
	}
	d.state = after(d.state, 8, 11)
	return rc.length(&m.rep, pos)
}

// literal decodes one byte; behind a match, the byte that the match would have gone on with helps to predict it.
func (d *decoder) literal() bool {
	position, before := uint(d.at-d.start), uint(0)
	if position > 0 {
		before = uint(d.dst[d.at-1])
	}
	context := (position&(1<<d.lp-1))<<d.lc + before>>(8-d.lc)
	probs := (*[0x300]uint16)(d.model.literal[0x300*context:])
	if d.state < 7 {
		d.dst[d.at] = byte(d.rc.tree(probs[:0x100]))
	} else {
		distance := int(d.rep[0]) + 1
		if distance > d.at-d.start {
			return false
		}
		d.dst[d.at] = d.rc.matched(probs, d.dst[d.at-distance])
	}
	d.at++
	switch {
	case d.state < 4:
		d.state = 0
	case d.state < 10:
		d.state -= 3
	default:
		d.state -= 6
	}
	return true
}

// distance decodes the distance, less one, of a match of n bytes; all ones is the end mark.
func (d *decoder) distance(n int) uint32 {
	m, rc := &d.model, &d.rc
	slot := rc.tree(m.slot[min(n-minMatch, 3)][:])
	if slot < 4 {
		return slot
	}
	bits := slot>>1 - 1
	distance := (2 | slot&1) << bits
	if slot < 14 {
		return distance + rc.reverse(m.special[distance-slot:], bits)
	}
	distance += rc.direct(bits-4) << 4
	return distance + rc.reverse(m.align[:], 4)
}

// copy copies n bytes from distance back; where they overlap, they repeat. The caller has checked both.
func (d *decoder) copy(distance, n int) {
	from := d.at - distance
	out := d.dst[d.at : d.at+n]
	d.at += n
	for done := copy(out, d.dst[from:from+min(n, distance)]); done < n; {
		done += copy(out[done:], out[:done])
	}
}

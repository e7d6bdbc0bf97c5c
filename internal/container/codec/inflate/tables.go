package inflate

import "math/bits"

// Sizes of the decoding tables. The first bits of a code index a table of 1<<literalBits or 1<<distanceBits entries;
// longer codes go on in subtables behind it. The rooms are the most that any complete code needs (zlib's enough.c:
// 2342 for 288 symbols at 11 bits, 402 for 32 symbols at 8 bits).
const (
	literalBits, distanceBits         = 11, 8
	literalRoom, distanceRoom         = 2342, 402
	maxLiteralCodes, maxDistanceCodes = 288, 32
	maxCode                           = 15
	endSymbol                         = 256
)

// An entry of a table, from the low bits up: all bits to remove, code and extra bits together (8); those of the code
// alone (4); unused (1); then three flags for what is neither length nor distance; then the value (15 or 16). A
// subtable's entry has the bits of the table before it, the subtable's own, and where it begins.
//
// Literals and the three exceptions leave the flags of lengths and distances clear, whose base fits 15 bits.
const (
	endOfBlock  = 1 << 13
	subtable    = 1 << 14
	exceptional = 1 << 15 // also set with endOfBlock and subtable; alone: no symbol
	literal     = 1 << 31
)

var (
	literalEntries  [maxLiteralCodes]uint32
	distanceEntries [maxDistanceCodes]uint32
)

func init() {
	for i := range 256 {
		literalEntries[i] = literal | uint32(i)<<16
	}
	literalEntries[endSymbol] = exceptional | endOfBlock
	base := uint32(3)
	for i := uint32(0); i < 28; i++ {
		extra := uint32(0)
		if i >= 8 {
			extra = i/4 - 1
		}
		literalEntries[257+i] = base<<16 | extra
		base += 1 << extra
	}
	literalEntries[285] = 258 << 16
	literalEntries[286], literalEntries[287] = exceptional, exceptional
	base = 1
	for i := range uint32(30) {
		extra := uint32(0)
		if i >= 4 {
			extra = i/2 - 1
		}
		distanceEntries[i] = base<<16 | extra
		base += 1 << extra
	}
	distanceEntries[30], distanceEntries[31] = exceptional, exceptional
}

// fixedTables sets the codes of blocks without a description.
func (d *decoder) fixedTables() {
	lengths := d.lengths[:maxLiteralCodes+maxDistanceCodes]
	for i := range lengths {
		switch {
		case i < 144, i >= 280 && i < 288:
			lengths[i] = 8
		case i < 256:
			lengths[i] = 9
		case i < 280:
			lengths[i] = 7
		default:
			lengths[i] = 5
		}
	}
	build(d.literals[:], literalBits, lengths[:maxLiteralCodes], literalEntries[:])
	build(d.distances[:], distanceBits, lengths[maxLiteralCodes:], distanceEntries[:])
	d.fixed = true
}

// order is the order in which the lengths of the code for code lengths are stored.
var order = [19]uint8{16, 17, 18, 0, 8, 7, 9, 6, 10, 5, 11, 4, 12, 3, 13, 2, 14, 1, 15}

// lengthEntries are the symbols of the code for code lengths.
var lengthEntries = func() (entries [19]uint32) {
	for i := range entries {
		entries[i] = uint32(i) << 16
	}
	return entries
}()

// dynamicTables reads the description of a block's codes. It refuses what zlib refuses.
func (d *decoder) dynamicTables() bool {
	if !d.need(14) {
		return false
	}
	literals, distances, n := int(d.take(5))+257, int(d.take(5))+1, int(d.take(4))+4
	if literals > 286 || distances > 30 {
		return false
	}
	var short [19]uint8
	for _, i := range order[:n] {
		if !d.need(3) {
			return false
		}
		short[i] = uint8(d.take(3))
	}
	// The table of distances is free for now; seven bits are the longest.
	if table := d.distances[:1<<7]; !build(table, 7, short[:], lengthEntries[:]) || !d.readLengths(table, literals+distances) {
		return false
	}
	lengths := d.lengths[:literals+distances]
	return lengths[endSymbol] != 0 &&
		build(d.literals[:], literalBits, lengths[:literals], literalEntries[:]) &&
		build(d.distances[:], distanceBits, lengths[literals:], distanceEntries[:])
}

// readLengths reads n code lengths, which are run-length coded.
func (d *decoder) readLengths(table []uint32, n int) bool {
	for i := 0; i < n; {
		d.need(14) // may be fewer, at the end of the input: each use is checked
		e := table[d.acc&(1<<7-1)]
		if e&exceptional != 0 || uint(e&63) > d.have {
			return false
		}
		d.take(uint(e & 63))
		symbol := uint8(e >> 16)
		if symbol < 16 {
			d.lengths[i] = symbol
			i++
			continue
		}
		extra, repeat, value := uint(symbol&1+2), 3, uint8(0)
		switch {
		case symbol == 18:
			extra, repeat = 7, 11
		case symbol == 16:
			if i == 0 {
				return false
			}
			value = d.lengths[i-1]
		}
		if d.have < extra {
			return false
		}
		repeat += int(d.take(extra))
		if repeat > n-i {
			return false
		}
		for range repeat {
			d.lengths[i] = value
			i++
		}
	}
	return true
}

// build fills table with the canonical code of the given lengths, whose symbols have the given entries. It refuses
// codes that are over-subscribed, and incomplete ones but for a single code of one bit and none at all.
func build(table []uint32, primary uint, lengths []uint8, entries []uint32) bool {
	var count, next [maxCode + 2]int
	for _, n := range lengths {
		count[n]++
	}
	left, longest := 1, 0
	for n := 1; n <= maxCode; n++ {
		left = left<<1 - count[n]
		if left < 0 {
			return false
		}
		if count[n] > 0 {
			longest = n
		}
		next[n+1] = next[n] + count[n]
	}
	if left > 0 {
		if longest > 1 {
			return false
		}
		for i := range 1 << primary {
			table[i] = exceptional | 1 | 1<<8
		}
	}
	var sorted [maxLiteralCodes]uint16
	for symbol, n := range lengths {
		if n > 0 {
			sorted[next[n]] = uint16(symbol)
			next[n]++
		}
	}
	return fillTable(table, primary, lengths, entries, sorted[:next[maxCode]], &count)
}

// fillTable enters the symbols, which come in the order of their codes; count says how many have each length.
func fillTable(table []uint32, primary uint, lengths []uint8, entries []uint32, sorted []uint16, count *[maxCode + 2]int) bool {
	code, length, end := uint32(0), uint(0), uint32(1)<<primary
	prefix, start, sub := ^uint32(0), uint32(0), uint(0)
	for _, symbol := range sorted {
		n := uint(lengths[symbol])
		code <<= n - length
		length = n
		reversed := bits.Reverse32(code) >> (32 - n)
		entry := entries[symbol]
		if n <= primary {
			entry += uint32(n | n<<8)
			for i := reversed; i < 1<<primary; i += 1 << n {
				table[i] = entry
			}
		} else {
			if p := reversed & (1<<primary - 1); p != prefix {
				prefix, start, sub = p, end, subtableBits(n, primary, count)
				if end += 1 << sub; int(end) > len(table) {
					return false
				}
				table[p] = exceptional | subtable | start<<16 | uint32(sub)<<8 | uint32(primary)
			}
			entry += uint32(n - primary | (n-primary)<<8)
			for i := reversed >> primary; i < 1<<sub; i += 1 << (n - primary) {
				table[start+i] = entry
			}
		}
		count[n]--
		code++
	}
	return true
}

// subtableBits is how many bits index the subtable whose first code has n bits: as many as the codes with the same
// prefix need, which are the next ones.
func subtableBits(n, primary uint, count *[maxCode + 2]int) uint {
	sub := n - primary
	for left := 1 << sub; primary+sub < maxCode; sub++ {
		left -= count[primary+sub]
		if left <= 0 {
			break
		}
		left <<= 1
	}
	return sub
}

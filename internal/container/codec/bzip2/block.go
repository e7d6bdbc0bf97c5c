package bzip2

// Limits of the format.
const (
	maxSymbols   = 258
	maxTables    = 6
	maxSelectors = 18002 // what a block of 900,000 can use; more may be stored, and are skipped
	groupSize    = 50
	maxCode      = 20
	lookupBits   = 10
	runB         = 1
)

// table decodes one of a block's prefix codes: codes of up to lookupBits bits by lookup (symbol<<5 | bits, 0 for
// none), longer ones by where the codes of each length begin.
type table struct {
	lookup [1 << lookupBits]uint16
	first  [maxCode + 1]uint32 // code
	count  [maxCode + 1]uint32
	index  [maxCode + 1]uint32 // in sorted, of the first code
	sorted [maxSymbols]uint16
}

// decoder is the state of one Decode, pooled. links is first the bytes of a block's transform, and then also, above
// their low 8 bits, which position follows each.
type decoder struct {
	dst       []byte
	out       int
	in        reader
	links     []uint32
	counts    [256]uint32
	tables    [maxTables]table
	lengths   [maxSymbols]uint8
	selectors [maxSelectors]uint8
	front     [256]byte // the bytes in use, the last used first
}

func (d *decoder) release() {
	d.dst, d.in.src = nil, nil
	decoders.Put(d)
}

// block decodes a block behind its magic and checksum, and says what is wrong with it, if anything.
func (d *decoder) block() string {
	r := &d.in
	if r.take(1) != 0 {
		return "a randomized block"
	}
	origin := r.take(24)
	used := 0
	for groups, i := r.take(16), 0; i < 16; i++ {
		if groups<<i&0x8000 == 0 {
			continue
		}
		for members, k := r.take(16), 0; k < 16; k++ {
			if members<<k&0x8000 != 0 {
				d.front[used] = byte(i<<4 | k)
				used++
			}
		}
	}
	if used == 0 {
		return "no bytes in use"
	}
	tables, selectors := int(r.take(3)), int(r.take(15))
	if tables < 2 || tables > maxTables || selectors == 0 || !d.readSelectors(tables, selectors) {
		return "bad selectors"
	}
	for i := range tables {
		if !d.readLengths(used+2) || !d.tables[i].build(d.lengths[:used+2]) {
			return "bad code lengths"
		}
	}
	n, cause := d.symbols(used+1, min(selectors, maxSelectors))
	if cause != "" {
		return cause
	}
	if int(origin) >= n {
		return "an origin that does not exist"
	}
	return d.invert(origin, n)
}

// readSelectors reads which table each group of symbols uses.
func (d *decoder) readSelectors(tables, n int) bool {
	front := [maxTables]uint8{0, 1, 2, 3, 4, 5}
	for i := range n {
		k := 0
		for d.in.take(1) != 0 {
			if k++; k >= tables {
				return false
			}
		}
		selected := front[k]
		copy(front[1:k+1], front[:k])
		front[0] = selected
		if i < maxSelectors {
			d.selectors[i] = selected
		}
	}
	return !d.in.over()
}

// readLengths reads the code lengths of n symbols, each as steps from the one before.
func (d *decoder) readLengths(n int) bool {
	length := int(d.in.take(5))
	for i := range n {
		for {
			if length < 1 || length > maxCode {
				return false
			}
			if d.in.take(1) == 0 {
				break
			}
			length += 1 - 2*int(d.in.take(1))
		}
		d.lengths[i] = uint8(length)
	}
	return !d.in.over()
}

// build makes the table of a canonical code. It refuses one that is over-subscribed.
func (t *table) build(lengths []uint8) bool {
	clear(t.count[:])
	clear(t.lookup[:])
	for _, n := range lengths {
		t.count[n]++
	}
	code, index := uint32(0), uint32(0)
	for n := 1; n <= maxCode; n++ {
		code <<= 1
		t.first[n], t.index[n] = code, index
		code, index = code+t.count[n], index+t.count[n]
		if code > 1<<n {
			return false
		}
	}
	next := t.index
	for symbol, n := range lengths {
		t.sorted[next[n]] = uint16(symbol)
		if n <= lookupBits {
			code := t.first[n] + next[n] - t.index[n]
			own := t.lookup[code<<(lookupBits-n):][:1<<(lookupBits-n)]
			for i := range own {
				own[i] = uint16(symbol)<<5 | uint16(n)
			}
		}
		next[n]++
	}
	return true
}

// long decodes a code longer than lookupBits from the top of acc, or gives no bits when there is none.
func (t *table) long(acc uint64) (symbol uint16, n uint) {
	for n = lookupBits + 1; n <= maxCode; n++ {
		if k := uint32(acc>>(64-n)) - t.first[n]; k < t.count[n] {
			return t.sorted[t.index[n]+k], n
		}
	}
	return 0, 0
}

// symbols decodes the symbols of the block up to its end mark, undoes the zero runs and the moves to the front, and
// puts the bytes to links. It says how many they are.
func (d *decoder) symbols(end, selectors int) (n int, cause string) {
	clear(d.counts[:])
	r := d.in
	links, run, weight := d.links, 0, 1
	for _, selected := range d.selectors[:selectors] {
		if r.over() {
			return 0, "ends too early"
		}
		t := &d.tables[selected]
		for range groupSize {
			if r.have < maxCode {
				r.refill()
			}
			entry := t.lookup[r.acc>>(64-lookupBits)]
			symbol, size := entry>>5, uint(entry&31)
			if entry == 0 {
				if symbol, size = t.long(r.acc); size == 0 {
					return 0, "a code that stands for nothing"
				}
			}
			r.acc, r.have = r.acc<<(size&63), r.have-size
			if symbol <= runB {
				run += weight << symbol
				if weight <<= 1; run > len(links)-n {
					return 0, "a block that is too long"
				}
				continue
			}
			if run > 0 {
				b := d.front[0]
				d.counts[b] += uint32(run)
				for i := range links[n : n+run] {
					links[n+i] = uint32(b)
				}
				n, run = n+run, 0
			}
			weight = 1
			if int(symbol) == end {
				d.in = r
				return n, ""
			}
			if n == len(links) {
				return 0, "a block that is too long"
			}
			b := d.toFront(int(symbol) - 1)
			d.counts[b]++
			links[n] = uint32(b)
			n++
		}
	}
	return 0, "a block without an end"
}

// toFront moves the k-th byte to the front and gives it.
func (d *decoder) toFront(k int) byte {
	k &= 255
	b := d.front[k]
	if k < 16 {
		for ; k > 0; k-- {
			d.front[k] = d.front[k-1]
		}
	} else {
		copy(d.front[1:k+1], d.front[:k])
	}
	d.front[0] = b
	return b
}

// invert undoes the Burrows-Wheeler transform of the first n links, and the run-length coding under it: four equal
// bytes are followed by how many more there are.
func (d *decoder) invert(origin uint32, n int) string {
	sum := uint32(0)
	for i, c := range d.counts {
		d.counts[i], sum = sum, sum+c
	}
	links := d.links[:n]
	for i, l := range links {
		b := byte(l)
		links[d.counts[b]] |= uint32(i) << 8
		d.counts[b]++
	}
	dst, out := d.dst, d.out
	link := links[origin] >> 8
	before, equal := -1, 0
	for range n {
		entry := links[link]
		b := int(entry & 255)
		link = entry >> 8
		if equal == 4 {
			if b > len(dst)-out {
				return "decodes to more bytes than wanted"
			}
			more := dst[out : out+b]
			for i := range more {
				more[i] = byte(before)
			}
			out, before, equal = out+b, -1, 0
			continue
		}
		if b != before {
			before, equal = b, 0
		}
		equal++
		if out >= len(dst) {
			return "decodes to more bytes than wanted"
		}
		dst[out] = byte(b)
		out++
	}
	d.out = out
	return ""
}

package xz

import "encoding/binary"

// Control bytes of LZMA2 chunks.
const (
	chunkEnd       = 0
	chunkRawReset  = 1 // stored, dictionary reset
	chunkRaw       = 2 // stored
	chunkLZMA      = 0x80
	resetState     = 1 << 5
	resetProps     = 2 << 5
	resetAll       = 3 << 5
	aloneSize      = 13
	unknownRawSize = 1<<64 - 1
)

// lzma2 decodes the LZMA2 chunks at the start of src, end mark included, and says how many bytes they took.
func (d *decoder) lzma2(src []byte) (used int, err error) {
	needDict, needProps, needState := true, true, true
	for at := 0; at < len(src); {
		control := src[at]
		switch reset := control & resetAll; {
		case control == chunkEnd:
			return at + 1, nil
		case control == chunkRawReset || control >= chunkLZMA && reset == resetAll:
			d.start, needDict = d.at, false
			needProps = needProps || control == chunkRawReset
		case needDict:
			return 0, corrupt("LZMA2 that does not begin with a new dictionary")
		case control > chunkRaw && control < chunkLZMA:
			return 0, corrupt("LZMA2 with an unknown control byte")
		}
		n := 0
		if control < chunkLZMA {
			n = d.stored(src[at:])
		} else {
			reset := control & resetAll
			if needProps && reset < resetProps || needState && reset == 0 {
				return 0, corrupt("LZMA2 without properties or state")
			}
			needProps, needState = needProps && reset < resetProps, false
			n = d.chunk(src[at:], reset)
		}
		if n == 0 {
			return 0, corrupt("bad LZMA2 chunk")
		}
		at += n
	}
	return 0, corrupt("LZMA2 without an end")
}

// stored copies a chunk that is not compressed, and gives its length with the header, or 0 when it does not fit.
func (d *decoder) stored(src []byte) int {
	if len(src) < 3 {
		return 0
	}
	n := int(binary.BigEndian.Uint16(src[1:])) + 1
	if n > len(src)-3 || n > len(d.dst)-d.at {
		return 0
	}
	d.at += copy(d.dst[d.at:], src[3:3+n])
	return 3 + n
}

// chunk decodes a chunk of LZMA likewise.
func (d *decoder) chunk(src []byte, reset byte) int {
	header := 5
	if reset >= resetProps {
		header = 6
	}
	if len(src) < header {
		return 0
	}
	raw := int(src[0]&0x1f)<<16 + int(binary.BigEndian.Uint16(src[1:])) + 1
	packed := int(binary.BigEndian.Uint16(src[3:])) + 1
	if header == 6 && !d.properties(src[5]) || packed > len(src)-header || raw > len(d.dst)-d.at {
		return 0
	}
	if reset >= resetState {
		d.reset()
	}
	if !d.rc.begin(src[header : header+packed]) {
		return 0
	}
	if marked, ok := d.run(d.at + raw); !ok || marked || !d.rc.finished() {
		return 0
	}
	return header + packed
}

// alone decodes a .lzma stream: properties, dictionary size, decoded size or all ones, then LZMA to the end mark or
// to that size.
func (d *decoder) alone(src []byte) error {
	if len(src) < aloneSize || !d.properties(src[0]) {
		return corrupt("neither an xz nor an lzma header")
	}
	raw := binary.LittleEndian.Uint64(src[5:])
	if raw != unknownRawSize && raw != uint64(len(d.dst)) {
		return corrupt("lzma of another size than wanted")
	}
	d.reset()
	if !d.rc.begin(src[aloneSize:]) {
		return corrupt("bad lzma stream")
	}
	marked, ok := d.run(len(d.dst))
	if !ok || marked && d.at < len(d.dst) || raw == unknownRawSize && !marked && !d.endMark() || d.rc.over() {
		return corrupt("bad lzma stream")
	}
	return nil
}

// endMark decodes what has to be the end mark: a match whose distance is all ones.
func (d *decoder) endMark() bool {
	m, rc := &d.model, &d.rc
	pos := uint(d.at-d.start) & (1<<d.pb - 1)
	if rc.bit(&m.isMatch[d.state*maxPos+pos]) == 0 || rc.bit(&m.isRep[d.state]) != 0 {
		return false
	}
	return d.distance(rc.length(&m.match, pos)) == 1<<32-1
}

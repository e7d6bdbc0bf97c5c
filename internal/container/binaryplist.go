package container

import (
	"bytes"
	"encoding/binary"
	"math"
	"unicode/utf16"
)

// Bounds of a binary property list. That of a bundle has five entries.
const (
	binaryMark    = "bplist00"
	binaryTail    = 32  // bytes after the table of offsets
	binaryEntries = 256 // of the dictionary
	binaryText    = 256 // bytes of a string; longer strings are not read
)

// plistObjects is a binary property list (CoreFoundation, CFBinaryPList.c): objects, a table of their offsets, and 32 bytes
// with the position of the table. References are followed one level deep only: a library would copy shared objects
// without bound.
type plistObjects struct {
	data      []byte
	table     []byte // of offsets
	offset    int    // bytes of an offset
	reference int    // bytes of a reference to an object
}

// parseBinaryPlist decodes a dictionary of integers and strings like parsePlist; other values are nil.
func parseBinaryPlist(data []byte) (map[string]any, error) {
	l, top, err := openBinaryPlist(data)
	if err != nil {
		return nil, err
	}
	dict := map[string]any{}
	err = l.eachEntry(top, func(name string, at int) (err error) {
		dict[name], err = l.scalar(bigEndian(l.data[at:][:l.reference]))
		return err
	})
	if err != nil {
		return nil, err
	}
	return dict, nil
}

func binaryError(format string, args ...any) error {
	return corrupt("reading binary property list: "+format, args...)
}

// openBinaryPlist reads the end of the list, and returns the number of the outermost object.
func openBinaryPlist(data []byte) (l plistObjects, top uint64, err error) {
	if len(data) < len(binaryMark)+binaryTail {
		return l, 0, binaryError("%d bytes", len(data))
	}
	t := data[len(data)-binaryTail:]
	l = plistObjects{data: data[:len(data)-binaryTail], offset: int(t[6]), reference: int(t[7])}
	count, at, room := binary.BigEndian.Uint64(t[8:]), binary.BigEndian.Uint64(t[24:]), uint64(len(l.data))
	if l.offset < 1 || l.offset > 8 || l.reference < 1 || l.reference > 8 || at > room ||
		count > (room-at)/uint64(l.offset) {
		return l, 0, binaryError("a table of %d offsets at %d", count, at)
	}
	l.table = l.data[at:][:count*uint64(l.offset)]
	return l, binary.BigEndian.Uint64(t[16:]), nil
}

func bigEndian(b []byte) (v uint64) {
	for _, c := range b {
		v = v<<8 | uint64(c)
	}
	return v
}

// object finds object number i: its kind, its length in the unit of its kind, and the bytes that follow, which may be
// fewer than the length requires.
func (l *plistObjects) object(i uint64) (kind byte, n uint64, body []byte, err error) {
	if i >= uint64(len(l.table)/l.offset) {
		return 0, 0, nil, binaryError("object %d does not exist", i)
	}
	at := bigEndian(l.table[int(i)*l.offset:][:l.offset])
	if at >= uint64(len(l.data)) {
		return 0, 0, nil, binaryError("object %d at %d", i, at)
	}
	kind, n, body = l.data[at]>>4, uint64(l.data[at]&15), l.data[at+1:]
	if n < 15 || kind <= 2 {
		return kind, n, body, nil
	}
	if len(body) == 0 || body[0]>>4 != 1 || body[0]&15 > 3 || len(body) < 1+1<<(body[0]&15) {
		return 0, 0, nil, binaryError("the length of object %d", i)
	}
	size := 1 << (body[0] & 15)
	return kind, bigEndian(body[1:][:size]), body[1+size:], nil
}

// eachEntry calls do for the entries of dictionary number i with a name, and with the position in the list of the
// reference to the value.
func (l *plistObjects) eachEntry(i uint64, do func(name string, at int) error) error {
	kind, n, body, err := l.object(i)
	if err != nil {
		return err
	}
	if kind != 0xD || n > binaryEntries || 2*n*uint64(l.reference) > uint64(len(body)) {
		return binaryError("it is no dictionary of at most %d entries", binaryEntries)
	}
	values := len(l.data) - len(body) + int(n)*l.reference
	for k := range int(n) {
		key, err := l.scalar(bigEndian(body[k*l.reference:][:l.reference]))
		if err != nil {
			return err
		}
		if name, ok := key.(string); ok {
			if err := do(name, values+k*l.reference); err != nil {
				return err
			}
		}
	}
	return nil
}

// scalar is object number i, if it is a short string or an integer; else nil.
func (l *plistObjects) scalar(i uint64) (any, error) {
	kind, n, body, err := l.object(i)
	if err != nil {
		return nil, err
	}
	size := n
	switch {
	case kind == 1 && n <= 3:
		size = 1 << n
	case kind == 5 && n <= binaryText:
	case kind == 6 && n <= binaryText/2:
		size = 2 * n
	default:
		return nil, nil
	}
	if size > uint64(len(body)) {
		return nil, binaryError("object %d is cut off", i)
	}
	body = body[:size]
	switch {
	case kind == 5:
		return string(body), nil
	case kind == 6:
		units := make([]uint16, n)
		for k := range units {
			units[k] = binary.BigEndian.Uint16(body[2*k:])
		}
		return string(utf16.Decode(units)), nil
	case size == 8: // the only signed integers
		return int64(bigEndian(body)), nil
	}
	return bigEndian(body), nil
}

// replaceBinarySize adds an integer to a binary property list and lets the key "size" refer to it: other keys may refer to
// the old one. All other objects stay in their places.
func replaceBinarySize(data []byte, size int64) ([]byte, error) {
	l, top, err := openBinaryPlist(data)
	if err != nil {
		return nil, err
	}
	at := -1
	err = l.eachEntry(top, func(name string, reference int) error {
		if name == "size" {
			at = reference // decoders use the last one
		}
		return nil
	})
	if err == nil && at < 0 {
		err = binaryError("it has no key %q", "size")
	}
	if err != nil {
		return nil, err
	}
	count := uint64(len(l.table) / l.offset)
	if l.reference < 8 && count >= 1<<(8*l.reference) {
		return nil, binaryError("object %d needs a longer reference", count)
	}
	out := bytes.Clone(l.data)
	if tableAt := int(binary.BigEndian.Uint64(data[len(data)-8:])); tableAt+len(l.table) == len(out) {
		out = out[:tableAt] // the new table replaces one at the end
	}
	if at+l.reference > len(out) {
		return nil, binaryError("its dictionary is at %d", at)
	}
	copy(out[at:], lastBytes(count, l.reference))
	const width = 4 // of an offset, since a list has less than infoLimit bytes
	var table []byte
	for i := range int(count) {
		v := bigEndian(l.table[i*l.offset:][:l.offset])
		table = append(table, lastBytes(min(v, math.MaxUint32), width)...)
	}
	table = append(table, lastBytes(uint64(len(out)), width)...)
	out = append(out, 0x13) // an integer of 8 bytes
	out = binary.BigEndian.AppendUint64(out, uint64(size))
	end := bytes.Clone(data[len(data)-binaryTail:])
	end[6] = width
	binary.BigEndian.PutUint64(end[8:], count+1)
	binary.BigEndian.PutUint64(end[24:], uint64(len(out)))
	return append(append(out, table...), end...), nil
}

// lastBytes is v in n bytes, the most significant first.
func lastBytes(v uint64, n int) []byte { return binary.BigEndian.AppendUint64(nil, v)[8-n:] }

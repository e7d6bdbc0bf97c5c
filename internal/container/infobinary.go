package container

import (
	"encoding/binary"
	"fmt"
	"unicode/utf16"
)

// Bounds of a binary property list. The one of a bundle has five entries.
const (
	binaryEntries = 256 // of the dictionary
	binaryText    = 256 // bytes of a string that is looked at; longer ones are something else
)

// binaryList is a binary property list (CoreFoundation, CFBinaryPList.c): objects, a table of their offsets, and 32 bytes
// that say where both are.
type binaryList struct {
	data      []byte
	table     []byte // of offsets
	offset    int    // bytes of an offset
	reference int    // bytes of a reference to an object
}

// parseBinaryPlist decodes a dictionary of integers and strings, as parsePlist gives it; other values are nil. References
// are followed one level deep: a library would unfold what is shared, without bound.
func parseBinaryPlist(data []byte) (map[string]any, error) {
	l, top, err := newBinaryList(data)
	if err != nil {
		return nil, err
	}
	dict := map[string]any{}
	err = l.entries(top, func(name string, at int) (err error) {
		dict[name], err = l.scalar(bigEndian(l.data[at:][:l.reference]))
		return err
	})
	if err != nil {
		return nil, err
	}
	return dict, nil
}

func binaryError(format string, args ...any) error {
	return fmt.Errorf("reading binary property list: %s: %w", fmt.Sprintf(format, args...), ErrCorrupt)
}

// newBinaryList reads the end of the list, and which object is the whole.
func newBinaryList(data []byte) (l binaryList, top uint64, err error) {
	const head, tail = 8, 32
	if len(data) < head+tail {
		return l, 0, binaryError("%d bytes", len(data))
	}
	t := data[len(data)-tail:]
	l = binaryList{data: data[:len(data)-tail], offset: int(t[6]), reference: int(t[7])}
	count, at := binary.BigEndian.Uint64(t[8:]), binary.BigEndian.Uint64(t[24:])
	room := uint64(len(l.data))
	if l.offset < 1 || l.offset > 8 || l.reference < 1 || l.reference > 8 || at > room || count > (room-at)/uint64(l.offset) {
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

// object finds object number i: its kind, its length as its kind counts it, and what follows, which may be shorter.
func (l *binaryList) object(i uint64) (kind byte, n uint64, body []byte, err error) {
	if i >= uint64(len(l.table)/l.offset) {
		return 0, 0, nil, binaryError("object %d is not there", i)
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

// entries calls do for the entries of dictionary number i that have a name: with that, and with where in the list the
// reference to the value lies.
func (l *binaryList) entries(i uint64, do func(name string, at int) error) error {
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
func (l *binaryList) scalar(i uint64) (any, error) {
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
	case size == 8: // the only signed ones
		return int64(bigEndian(body)), nil
	}
	return bigEndian(body), nil
}

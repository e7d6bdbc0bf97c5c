package container

import (
	"bytes"
	"encoding/binary"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"math"
	"strconv"
)

// errInfoKept is why a property list cannot be changed without losing something of it.
var errInfoKept = errors.New("its property list cannot be changed without losing what else is in it")

// onto is the property list text with the size of i in it and all else as it was: keys of others, their order, and
// whether it is XML or binary. XML that is no UTF-8 becomes it. It refuses rather than lose something.
func (i info) onto(text []byte) ([]byte, error) {
	var out []byte
	var err error
	if bytes.HasPrefix(text, []byte("bplist00")) {
		out, err = withBinarySize(text, i.size)
	} else {
		out, err = withXMLSize(text, i.size)
	}
	if err != nil {
		return nil, fmt.Errorf("%w: %w", errInfoKept, err)
	}
	if got, err := parseInfo(out); err != nil || got != i {
		return nil, fmt.Errorf("%w: the outcome would read as %+v (%w)", errInfoKept, got, errors.Join(err, ErrCorrupt))
	}
	return out, nil
}

// withXMLSize puts another integer behind the key "size" of the outermost dictionary.
func withXMLSize(text []byte, size int64) ([]byte, error) {
	plain := utf8Of(text)
	from, to, err := sizeInXML(plain)
	if err != nil {
		return nil, err
	}
	var out []byte
	if first := bytes.TrimSpace(plain); !bytes.HasPrefix(first, []byte("<?xml")) && len(plain) != len(text) {
		out = append(out, `<?xml version="1.0" encoding="UTF-8"?>`...) // that of UTF-16 went with it
	}
	out = append(out, plain[:from]...)
	out = strconv.AppendInt(out, size, 10)
	return append(out, plain[to:]...), nil
}

// sizeInXML finds the text of the last integer under "size", which is the one that counts.
func sizeInXML(text []byte) (from, to int64, err error) {
	const inDict = 3 // plist, dict, key
	d := xml.NewDecoder(bytes.NewReader(text))
	depth, element, key, start := 0, "", "", int64(0)
	for {
		before := d.InputOffset()
		token, err := d.Token()
		if err == io.EOF {
			break
		}
		if err != nil {
			return 0, 0, fmt.Errorf("reading property list: %w: %w", ErrCorrupt, err)
		}
		switch t := token.(type) {
		case xml.StartElement:
			if depth++; depth == inDict {
				element, start = t.Name.Local, d.InputOffset()
				if element == "key" {
					key = ""
				}
			}
		case xml.CharData:
			if depth == inDict && element == "key" {
				key += string(t)
			}
		case xml.EndElement:
			if depth == inDict && element == "integer" && key == "size" {
				from, to = start, before
			}
			depth--
		}
	}
	if to <= from {
		return 0, 0, fmt.Errorf("no integer of the key %q: %w", "size", ErrCorrupt)
	}
	return from, to, nil
}

// withBinarySize adds an integer to a binary property list and refers the key "size" to it: the old one may be that of
// other keys as well. All other objects stay where they are.
func withBinarySize(data []byte, size int64) ([]byte, error) {
	const tail = 32
	l, top, err := newBinaryList(data)
	if err != nil {
		return nil, err
	}
	at := -1
	err = l.entries(top, func(name string, there int) error {
		if name == "size" {
			at = there // the last one counts
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
		return nil, binaryError("it has no room for object %d", count)
	}
	out := bytes.Clone(l.data)
	if tableAt := int(binary.BigEndian.Uint64(data[len(data)-8:])); tableAt+len(l.table) == len(out) {
		out = out[:tableAt] // nothing behind it: the new one takes its place
	}
	if at+l.reference > len(out) {
		return nil, binaryError("its dictionary lies at %d", at)
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
	end := bytes.Clone(data[len(data)-tail:])
	end[6] = width
	binary.BigEndian.PutUint64(end[8:], count+1)
	binary.BigEndian.PutUint64(end[24:], uint64(len(out)))
	return append(append(out, table...), end...), nil
}

// lastBytes is v in n bytes, the most significant first.
func lastBytes(v uint64, n int) []byte { return binary.BigEndian.AppendUint64(nil, v)[8-n:] }

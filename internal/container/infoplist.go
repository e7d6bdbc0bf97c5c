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
	"unicode/utf16"

	"howett.net/plist"

	"dmgbench/internal/hostio"
	"dmgbench/internal/image"
)

const (
	bundleType = "com.apple.diskimage.sparsebundle"
	// infoLimit bounds Info.plist in bytes; Apple writes 494 to 496.
	infoLimit = 64 << 10
	maxBands  = 1 << 40
)

// info is the content of a bundle's Info.plist; sizes are bytes.
type info struct {
	version  int64
	bandSize int64
	size     int64 // of the device
}

var (
	// errNotBundle is returned for a property list of something else.
	errNotBundle = errors.New("not a sparse bundle's property list")
	// errInfoKept is returned when a change of a property list would lose other
	// keys.
	errInfoKept = errors.New("its property list cannot be changed without losing other keys")
)

// readInfo reads a property list of a bundle, and returns its text, too.
func readInfo(dir *hostio.Dir, name string) (i info, text []byte, err error) {
	text, err = dir.ReadFile(name, infoLimit)
	if err != nil {
		return info{}, nil, err
	}
	i, err = parseInfo(text)
	if err != nil {
		return info{}, nil, fmt.Errorf("reading %q: %w", dir.Path()+"/"+name, err)
	}
	return i, text, nil
}

// encode writes the property list byte for byte as Apple does for backing-store
// version 1: these keys, this order, tabs.
func (i info) encode() []byte {
	return fmt.Appendf(nil, `<?xml version="1.0" encoding="UTF-8"?>
<!DOCTYPE plist PUBLIC "-//Apple//DTD PLIST 1.0//EN" "http://www.apple.com/DTDs/PropertyList-1.0.dtd">
<plist version="1.0">
<dict>
	<key>CFBundleInfoDictionaryVersion</key>
	<string>6.0</string>
	<key>band-size</key>
	<integer>%d</integer>
	<key>bundle-backingstore-version</key>
	<integer>1</integer>
	<key>diskimage-bundle-type</key>
	<string>com.apple.diskimage.sparsebundle</string>
	<key>size</key>
	<integer>%d</integer>
</dict>
</plist>
`, i.bandSize, i.size)
}

// infoKeys are the keys of Info.plist that are read; nil for missing ones.
type infoKeys struct {
	Type     string `plist:"diskimage-bundle-type"`
	Version  *int64 `plist:"bundle-backingstore-version"`
	BandSize *int64 `plist:"band-size"`
	Size     *int64 `plist:"size"`
}

// parseInfo reads a bundle's property list and refuses contradictions.
func parseInfo(data []byte) (info, error) {
	var keys infoKeys
	if err := parsePlist(data, &keys); err != nil {
		return info{}, err
	}
	if keys.Type != bundleType {
		return info{}, fmt.Errorf("diskimage-bundle-type is %.80q: %w", keys.Type, errNotBundle)
	}
	for _, field := range []struct {
		key            string
		v              *int64
		min, max, unit int64
	}{
		{"bundle-backingstore-version", keys.Version, 1, math.MaxInt32, 1},
		{"band-size", keys.BandSize, SectorSize, image.MaxSize, SectorSize},
		{"size", keys.Size, 0, image.MaxSize, SectorSize},
	} {
		switch {
		case field.v == nil:
			return info{}, corrupt("%s is missing", field.key)
		case *field.v < field.min || *field.v > field.max || *field.v%field.unit != 0:
			return info{}, corrupt("%s is %d, want a multiple of %d from %d to %d", field.key, *field.v, field.unit,
				field.min, field.max)
		}
	}
	i := info{version: *keys.Version, bandSize: *keys.BandSize, size: *keys.Size}
	if n := ceil(i.size, i.bandSize); n > maxBands {
		return info{}, corrupt("%d bands, more than %d", n, int64(maxBands))
	}
	return i, nil
}

// binaryMark starts a binary property list.
const binaryMark = "bplist00"

// parsePlist decodes a property list that is a dictionary into the struct to:
// XML, as Apple writes into bundles, or binary, as `defaults write` leaves it.
// The library takes empty input and bare words for OpenStep lists and ignores
// what follows </plist>; both are refused here. Decoding into a struct bounds
// the memory: shared objects of other keys of a binary list are not copied.
func parsePlist(data []byte, to any) (err error) {
	binaryList := bytes.HasPrefix(data, []byte(binaryMark))
	text := data
	if !binaryList {
		text = bytes.TrimSpace(toUTF8(data))
	}
	switch {
	case len(data) > infoLimit:
		return corrupt("reading property list: %d bytes, more than %d", len(data), infoLimit)
	case binaryList:
	case len(text) == 0:
		return corrupt("reading property list: it is empty")
	case !startsXMLPlist(text):
		return corrupt("reading property list: no XML")
	case !bytes.HasSuffix(text, []byte("</plist>")) || bytes.Count(text, []byte("</plist>")) != 1:
		return corrupt("reading property list: cut off, or followed by more data")
	}
	defer func() {
		if r := recover(); r != nil {
			err = corrupt("reading property list: %v", r)
		}
	}()
	format, err := plist.Unmarshal(text, to)
	if err != nil {
		return fmt.Errorf("reading property list: %w: %w", ErrCorrupt, err)
	}
	if format != plist.XMLFormat && format != plist.BinaryFormat {
		return corrupt("reading property list: neither XML nor binary")
	}
	return nil
}

// startsXMLPlist reports whether text starts as an XML property list may: with
// a declaration, a comment, a document type or the list.
func startsXMLPlist(text []byte) bool {
	for _, start := range []string{"<?xml", "<!--", "<!DOCTYPE", "<plist"} {
		if bytes.HasPrefix(text, []byte(start)) {
			return true
		}
	}
	return false
}

// toUTF8 removes the byte order mark, and converts text from UTF-16 if the mark
// shows that. Then the declaration, which names UTF-16, is removed, too.
func toUTF8(data []byte) []byte {
	var order binary.ByteOrder
	switch {
	case bytes.HasPrefix(data, []byte("\xfe\xff")):
		order = binary.BigEndian
	case bytes.HasPrefix(data, []byte("\xff\xfe")):
		order = binary.LittleEndian
	default:
		return bytes.TrimPrefix(data, []byte("\xef\xbb\xbf"))
	}
	var units []uint16
	for data = data[2:]; len(data) >= 2; data = data[2:] {
		units = append(units, order.Uint16(data))
	}
	text := []byte(string(utf16.Decode(units)))
	if _, after, declared := bytes.Cut(text, []byte("?>")); declared && bytes.HasPrefix(text, []byte("<?xml")) {
		return after
	}
	return text
}

// replaceSize returns the property list text with the size of i and everything
// else unchanged: the keys of other programs, their order, and whether it is
// XML or binary. XML in UTF-16 becomes UTF-8. It fails rather than lose
// something.
func (i info) replaceSize(text []byte) ([]byte, error) {
	replace := replaceXMLSize
	if bytes.HasPrefix(text, []byte(binaryMark)) {
		replace = replaceBinarySize
	}
	out, err := replace(text, i.size)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", errInfoKept, err)
	}
	if got, err := parseInfo(out); err != nil || got != i {
		return nil, fmt.Errorf("%w: it would read as %+v (%w)", errInfoKept, got, errors.Join(err, ErrCorrupt))
	}
	return out, nil
}

// replaceXMLSize replaces the integer of the key "size" of the outermost
// dictionary.
func replaceXMLSize(text []byte, size int64) ([]byte, error) {
	plain := toUTF8(text)
	from, to, err := findXMLSize(plain)
	if err != nil {
		return nil, err
	}
	var out []byte
	if first := bytes.TrimSpace(plain); !bytes.HasPrefix(first, []byte("<?xml")) && len(plain) != len(text) {
		out = append(out, `<?xml version="1.0" encoding="UTF-8"?>`...) // replaces that of UTF-16
	}
	out = append(out, plain[:from]...)
	out = strconv.AppendInt(out, size, 10)
	return append(out, plain[to:]...), nil
}

// findXMLSize finds the text of the last integer with the key "size": decoders
// use the last one.
func findXMLSize(text []byte) (from, to int64, err error) {
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
		return 0, 0, corrupt("no integer of the key %q", "size")
	}
	return from, to, nil
}

// binaryTail is the length of the end of a binary property list
// (CoreFoundation, CFBinaryPList.c), which describes the table of the objects'
// offsets before it.
const binaryTail = 32

// replaceBinarySize adds an integer to a binary property list and lets the key
// "size" refer to it: other keys may refer to the old one. All other objects
// stay in their places. The list was parsed before, so that all offsets are
// inside it.
func replaceBinarySize(data []byte, size int64) (out []byte, err error) {
	defer func() {
		if r := recover(); r != nil {
			err = corrupt("changing binary property list: %v", r)
		}
	}()
	end := bytes.Clone(data[len(data)-binaryTail:])
	width, reference := int(end[6]), int(end[7]) // of an offset and of a reference to an object, in bytes
	count, top := binary.BigEndian.Uint64(end[8:]), binary.BigEndian.Uint64(end[16:])
	tableAt := int(binary.BigEndian.Uint64(end[24:]))
	offset := func(i uint64) int { return int(bigEndian(data[tableAt+int(i)*width:][:width])) }
	at := findBinarySize(data, offset(top), reference, offset)
	if at < 0 || reference < 8 && count >= 1<<(8*reference) {
		return nil, corrupt("changing binary property list: no key %q, or no reference for object %d", "size", count)
	}
	out = bytes.Clone(data[:tableAt])
	copy(out[at:], lastBytes(count, reference))
	const newWidth = 4 // bytes of an offset, since a list has less than infoLimit bytes
	var table []byte
	for i := range count {
		table = append(table, lastBytes(uint64(offset(i)), newWidth)...)
	}
	table = append(table, lastBytes(uint64(len(out)), newWidth)...)
	out = append(out, 0x13) // an integer of 8 bytes
	out = binary.BigEndian.AppendUint64(out, uint64(size))
	end[6] = newWidth
	binary.BigEndian.PutUint64(end[8:], count+1)
	binary.BigEndian.PutUint64(end[24:], uint64(len(out)))
	return append(append(out, table...), end...), nil
}

// findBinarySize returns the position of the reference to the value of the last
// key "size" (decoders use the last one) in the dictionary at byte at, -1
// without that key.
func findBinarySize(data []byte, at, reference int, offset func(i uint64) int) int {
	n := int(data[at] & 15) // of a dictionary, 0xD in the upper half
	if at++; n == 15 {      // the number of entries is an integer object
		length := 1 << (data[at] & 15)
		n, at = int(bigEndian(data[at+1:][:length])), at+1+length
	}
	found := -1
	for k := range n {
		key := offset(bigEndian(data[at+k*reference:][:reference]))
		if bytes.HasPrefix(data[key:], []byte("\x54size")) { // an ASCII string of 4 bytes
			found = at + (n+k)*reference
		}
	}
	return found
}

// bigEndian is the number in b, of at most 8 bytes.
func bigEndian(b []byte) (v uint64) {
	for _, c := range b {
		v = v<<8 | uint64(c)
	}
	return v
}

// lastBytes is v in n bytes, the most significant first.
func lastBytes(v uint64, n int) []byte { return binary.BigEndian.AppendUint64(nil, v)[8-n:] }

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
	// errInfoKept is returned when a change of a property list would lose other keys.
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

// encode writes the property list byte for byte as Apple does for backing-store version 1: these keys, this order, tabs.
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

// capacity is how many bytes of the device band n contains: fewer than a band at the end, 0 after it.
func (i info) capacity(n int64) int64 {
	if n < 0 || n >= ceil(i.size, i.bandSize) {
		return 0
	}
	return min(i.bandSize, i.size-n*i.bandSize)
}

// parseInfo reads a bundle's property list and refuses contradictions.
func parseInfo(data []byte) (info, error) {
	dict, err := parsePlist(data)
	if err != nil {
		return info{}, err
	}
	if found := dict["diskimage-bundle-type"]; found != bundleType {
		return info{}, fmt.Errorf("diskimage-bundle-type is %.80q: %w", fmt.Sprint(found), errNotBundle)
	}
	var i info
	for _, field := range []struct {
		key      string
		to       *int64
		min, max int64
		unit     int64
	}{
		{"bundle-backingstore-version", &i.version, 1, math.MaxInt32, 1},
		{"band-size", &i.bandSize, SectorSize, image.MaxSize, SectorSize},
		{"size", &i.size, 0, image.MaxSize, SectorSize},
	} {
		v, err := plistInteger(dict, field.key)
		if err != nil {
			return info{}, err
		}
		if v < field.min || v > field.max || v%field.unit != 0 {
			return info{}, corrupt("%s is %d, want a multiple of %d from %d to %d", field.key, v, field.unit, field.min,
				field.max)
		}
		*field.to = v
	}
	if n := ceil(i.size, i.bandSize); n > maxBands {
		return info{}, corrupt("%d bands, more than %d", n, int64(maxBands))
	}
	return i, nil
}

// plistInteger takes a whole number out of a decoded dictionary. The decoder returns int64 for negative numbers, uint64
// for others.
func plistInteger(dict map[string]any, key string) (int64, error) {
	switch v := dict[key].(type) {
	case uint64:
		if v <= math.MaxInt64 {
			return int64(v), nil
		}
	case int64:
		return v, nil
	case nil:
		return 0, corrupt("%s is missing", key)
	}
	return 0, corrupt("%s is %.80q, want an integer", key, fmt.Sprint(dict[key]))
}

// parsePlist decodes a property list that is a dictionary: XML, as Apple writes into bundles, or binary, as `defaults
// write` leaves it. The library's XML decoder takes empty input and bare words for OpenStep lists and ignores what follows
// </plist>; both are refused here.
func parsePlist(data []byte) (dict map[string]any, err error) {
	if len(data) > infoLimit {
		return nil, corrupt("reading property list: %d bytes, more than %d", len(data), infoLimit)
	}
	if bytes.HasPrefix(data, []byte(binaryMark)) {
		return parseBinaryPlist(data)
	}
	text := bytes.TrimSpace(toUTF8(data))
	switch {
	case len(text) == 0:
		return nil, corrupt("reading property list: it is empty")
	case !startsXMLPlist(text):
		return nil, corrupt("reading property list: no XML")
	case !bytes.HasSuffix(text, []byte("</plist>")) || bytes.Count(text, []byte("</plist>")) != 1:
		return nil, corrupt("reading property list: cut off, or followed by more data")
	}
	defer func() {
		if r := recover(); r != nil {
			dict, err = nil, corrupt("reading property list: %v", r)
		}
	}()
	format, err := plist.Unmarshal(text, &dict)
	if err != nil {
		return nil, fmt.Errorf("reading property list: %w: %w", ErrCorrupt, err)
	}
	if format != plist.XMLFormat || dict == nil {
		return nil, corrupt("reading property list: no XML dictionary")
	}
	return dict, nil
}

// startsXMLPlist reports whether text starts as an XML property list may: with a declaration, a comment, a document type
// or the list.
func startsXMLPlist(text []byte) bool {
	for _, start := range []string{"<?xml", "<!--", "<!DOCTYPE", "<plist"} {
		if bytes.HasPrefix(text, []byte(start)) {
			return true
		}
	}
	return false
}

// toUTF8 removes the byte order mark, and converts text from UTF-16 if the mark shows that. Then the declaration, which
// names UTF-16, is removed, too.
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

// replaceSize returns the property list text with the size of i and everything else unchanged: the keys of other programs,
// their order, and whether it is XML or binary. XML in UTF-16 becomes UTF-8. It fails rather than lose something.
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

// replaceXMLSize replaces the integer of the key "size" of the outermost dictionary.
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

// findXMLSize finds the text of the last integer with the key "size": decoders use the last one.
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

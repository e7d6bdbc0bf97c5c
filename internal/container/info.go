package container

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"unicode/utf16"

	"howett.net/plist"

	"dmgbench/internal/image"
)

const (
	bundleType = "com.apple.diskimage.sparsebundle"
	// infoLimit bounds Info.plist in bytes; Apple writes 494 to 496.
	infoLimit = 64 << 10
	maxBands  = 1 << 40
)

// info is the content of a bundle's Info.plist.
type info struct {
	version  int64
	bandSize int64
	size     int64
}

// errNotBundle is returned for a property list of something else.
var errNotBundle = errors.New("not a sparse bundle's property list")

// encode writes the property list byte for byte as Apple does for
// backing-store version 1: these keys, this order, tabs.
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

// parseInfo reads a bundle's property list and refuses contradictions.
func parseInfo(data []byte) (info, error) {
	dict, err := parsePlist(data)
	if err != nil {
		return info{}, err
	}
	if dict["diskimage-bundle-type"] != bundleType {
		return info{}, fmt.Errorf("diskimage-bundle-type is %.80q: %w", fmt.Sprint(dict["diskimage-bundle-type"]), errNotBundle)
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
		v, err := integer(dict, field.key)
		if err != nil {
			return info{}, err
		}
		if v < field.min || v > field.max || v%field.unit != 0 {
			return info{}, fmt.Errorf("%s is %d, want a multiple of %d from %d to %d: %w",
				field.key, v, field.unit, field.min, field.max, ErrCorrupt)
		}
		*field.to = v
	}
	if n := i.bandCount(); n > maxBands {
		return info{}, fmt.Errorf("%d bands, more than %d: %w", n, int64(maxBands), ErrCorrupt)
	}
	return i, nil
}

// integer takes a whole number out of a decoded dictionary. The decoder gives
// int64 for negative numbers, uint64 for others.
func integer(dict map[string]any, key string) (int64, error) {
	switch v := dict[key].(type) {
	case uint64:
		if v <= math.MaxInt64 {
			return int64(v), nil
		}
	case int64:
		return v, nil
	case nil:
		return 0, fmt.Errorf("%s is missing: %w", key, ErrCorrupt)
	}
	return 0, fmt.Errorf("%s is %.80q, want an integer: %w", key, fmt.Sprint(dict[key]), ErrCorrupt)
}

// parsePlist decodes a property list that is a dictionary: of XML, as Apple
// writes into bundles, or binary, as `defaults write` leaves it. The decoder of
// XML takes empty input and bare words for OpenStep lists and ignores what
// follows </plist>; neither passes here.
func parsePlist(data []byte) (dict map[string]any, err error) {
	if len(data) > infoLimit {
		return nil, fmt.Errorf("reading property list: %d bytes, more than %d: %w", len(data), infoLimit, ErrCorrupt)
	}
	if bytes.HasPrefix(data, []byte("bplist00")) {
		return parseBinaryPlist(data)
	}
	text := bytes.TrimSpace(utf8Of(data))
	switch {
	case len(text) == 0:
		return nil, fmt.Errorf("reading property list: it is empty: %w", ErrCorrupt)
	case !xmlStart(text):
		return nil, fmt.Errorf("reading property list: no XML: %w", ErrCorrupt)
	case !bytes.HasSuffix(text, []byte("</plist>")) || bytes.Count(text, []byte("</plist>")) != 1:
		return nil, fmt.Errorf("reading property list: cut off, or followed by something: %w", ErrCorrupt)
	}
	defer func() {
		if r := recover(); r != nil {
			dict, err = nil, fmt.Errorf("reading property list: %v: %w", r, ErrCorrupt)
		}
	}()
	format, err := plist.Unmarshal(text, &dict)
	if err != nil {
		return nil, fmt.Errorf("reading property list: %w: %w", ErrCorrupt, err)
	}
	if format != plist.XMLFormat || dict == nil {
		return nil, fmt.Errorf("reading property list: no XML dictionary: %w", ErrCorrupt)
	}
	return dict, nil
}

// utf8Of is text without its byte order mark, from UTF-16 if that says so; the declaration, which says so too, is left
// out then.
func utf8Of(data []byte) []byte {
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

// xmlStart says whether text begins as an XML property list may: with a declaration, a comment, a document type or the list.
func xmlStart(text []byte) bool {
	for _, start := range []string{"<?xml", "<!--", "<!DOCTYPE", "<plist"} {
		if bytes.HasPrefix(text, []byte(start)) {
			return true
		}
	}
	return false
}

// bandCount is the number of bands that the size needs.
func (i info) bandCount() int64 {
	n := i.size / i.bandSize
	if i.size%i.bandSize != 0 {
		n++
	}
	return n
}

// capacity is how many bytes of the device band n holds: less than the band
// size for the last one, 0 beyond.
func (i info) capacity(n int64) int64 {
	if n < 0 || n >= i.bandCount() {
		return 0
	}
	return min(i.bandSize, i.size-n*i.bandSize)
}

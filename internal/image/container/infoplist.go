package container

import (
	"bytes"
	_ "embed"
	"errors"
	"fmt"
	"math"
	"regexp"
	"slices"
	"strconv"

	"howett.net/plist"

	"dmgbench/internal/image"
	"dmgbench/internal/system/hostio"
)

const (
	bundleType = "com.apple.diskimage.sparsebundle"
	// infoLimit bounds Info.plist in bytes; Apple writes 494 to 496.
	infoLimit = 64 << 10
	maxBands  = 1 << 40
)

// info is the content of a bundle's Info.plist; sizes are bytes.
type info struct {
	Type     string `plist:"diskimage-bundle-type"` // empty once it was checked
	Version  int64  `plist:"bundle-backingstore-version"`
	BandSize int64  `plist:"band-size"`
	Size     int64  `plist:"size"` // of the device
}

var (
	// errNotBundle is returned for a property list of something else.
	errNotBundle = errors.New("not a sparse bundle's property list")
	// errInfoKept is returned for a property list in which the size cannot be
	// replaced without losing other keys.
	errInfoKept = errors.New("the size in its property list cannot be replaced: it is no XML (plutil -convert xml1)")
)

// readInfo reads a property list of a bundle, and returns its text, too.
func readInfo(dir *hostio.Dir, name string) (i info, text []byte, err error) {
	if text, err = dir.ReadFile(name, infoLimit); err != nil {
		return i, nil, err
	}
	if i, err = parseInfo(text); err != nil {
		err = fmt.Errorf("reading %q: %w", dir.Path()+"/"+name, err)
	}
	return i, text, err
}

//go:embed info.plist
var infoTemplate string

// encode writes the property list byte for byte as Apple does for backing-store
// version 1: these keys, this order, tabs.
func (i info) encode() []byte {
	return fmt.Appendf(nil, infoTemplate, i.BandSize, i.Size)
}

// parseInfo reads a bundle's property list and refuses contradictions.
func parseInfo(data []byte) (info, error) {
	i := info{Size: -1} // 0 is a size
	if err := parsePlist(data, &i); err != nil {
		return info{}, err
	}
	if i.Type != bundleType {
		return info{}, fmt.Errorf("diskimage-bundle-type is %.80q: %w", i.Type, errNotBundle)
	}
	i.Type = ""
	for _, field := range []struct {
		key               string
		v, min, max, unit int64
	}{
		{"bundle-backingstore-version", i.Version, 1, math.MaxInt32, 1},
		{"band-size", i.BandSize, SectorSize, image.MaxSize, SectorSize},
		{"size", i.Size, 0, image.MaxSize, SectorSize},
	} {
		if field.v < field.min || field.v > field.max || field.v%field.unit != 0 {
			return info{}, corrupt("%s is missing or %d, want a multiple of %d from %d to %d", field.key, field.v,
				field.unit, field.min, field.max)
		}
	}
	if n := ceil(i.Size, i.BandSize); n > maxBands {
		return info{}, corrupt("%d bands, more than %d", n, int64(maxBands))
	}
	return i, nil
}

// parsePlist decodes a property list that is a dictionary into the struct to:
// XML, as Apple writes into bundles, or binary, as `defaults write` leaves it.
// The library takes empty input and bare words for OpenStep lists and ignores
// what follows </plist>; both are refused here. Decoding into a struct bounds
// the memory: shared objects of other keys of a binary list are not copied.
func parsePlist(data []byte, to any) (err error) {
	text := bytes.TrimSpace(bytes.TrimPrefix(data, []byte("\xef\xbb\xbf")))
	switch {
	case len(data) > infoLimit:
		return corrupt("reading property list: %d bytes, more than %d", len(data), infoLimit)
	case bytes.HasPrefix(data, []byte("bplist00")):
		text = data
	case !bytes.HasSuffix(text, []byte("</plist>")) || bytes.Count(text, []byte("</plist>")) != 1:
		return corrupt("reading property list: no XML, cut off, or followed by more data")
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

// sizeValue is the integer of a key "size" in XML.
var sizeValue = regexp.MustCompile(`<key>size</key>\s*<integer>([^<]*)</integer>`)

// replaceSize returns the property list text with the size of i and everything
// else unchanged: the keys of other programs and their order. It fails rather
// than lose something, as for a binary list.
func (i info) replaceSize(text []byte) ([]byte, error) {
	if was, err := parseInfo(text); err == nil && was == i {
		return text, nil
	}
	for _, m := range slices.Backward(sizeValue.FindAllSubmatchIndex(text, -1)) {
		out := slices.Concat(text[:m[2]], strconv.AppendInt(nil, i.Size, 10), text[m[3]:])
		if got, err := parseInfo(out); err == nil && got == i { // not one of another dictionary
			return out, nil
		}
	}
	return nil, errInfoKept
}

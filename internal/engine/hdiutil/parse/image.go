package parse

import (
	"fmt"
	"math"
	"regexp"
	"strconv"
	"strings"

	"dmgbench/internal/engine/hdiutil/parse/plist"
)

// Image describes an image file.
type Image struct {
	Format      string // four letters; "" when the tool printed none
	Description string
	Class       string
	Size        int64 // of the device in bytes, 0 when not told
	Encryption  string
	Encrypted   bool
	Checksum    string // type of the stored checksum; "" or "none" means that there is nothing to verify
	Scheme      string // partition scheme: "GUID", "none", …
	Partitions  []string
	NonEmpty    int64 // bytes that hold something, 0 when not told
	Compressed  int64 // bytes, 0 when not told
}

// ImageInfo reads `hdiutil imageinfo -plist` and `diskutil image info --plist`.
func ImageInfo(out []byte) (Image, string, error) {
	d, around, err := plist.Find(out)
	if err != nil {
		return Image{}, around, fmt.Errorf("%w: %w", ErrNoResult, err)
	}
	size, props, store, parts := d.Dict("Size Information"), d.Dict("Properties"), d.Dict("Backing Store Information"), d.Dict("partitions")
	i := Image{
		Format: d.String("Format"), Description: d.String("Format Description"), Class: d.String("Class Name"),
		Encryption: store.String("Encryption"), Encrypted: props.Bool("Encrypted"),
		Checksum: d.String("Checksum Type"), Scheme: parts.String("partition-scheme"),
	}
	if i.Format == "" {
		i.Format = d.String("Image Format")
	}
	i.Size = firstInt(size, "Total Bytes")
	i.NonEmpty, i.Compressed = firstInt(size, "Total Non-Empty Bytes"), firstInt(size, "Compressed Bytes")
	for _, at := range []plist.Dict{d.Dict("Size Info"), d} {
		if i.Size == 0 {
			i.Size = firstInt(at, "Total Bytes", "Size")
		}
	}
	locked := len(d.Dict("Encryption Info")) > 0 // diskutil's, also without the passphrase
	i.Encrypted = i.Encrypted || locked || i.Encryption != "" && i.Encryption != "none"
	for _, p := range parts.Dicts("partitions") {
		if h := p.String("partition-hint"); h != "" {
			i.Partitions = append(i.Partitions, h)
		}
	}
	if i.Format == "" && i.Size == 0 && !locked {
		return Image{}, around, fmt.Errorf("%w: neither format nor size", ErrNoResult)
	}
	return i, around, nil
}

func firstInt(d plist.Dict, keys ...string) int64 {
	for _, k := range keys {
		if n, ok := d.Int(k); ok && n > 0 {
			return n
		}
	}
	return 0
}

var encryptedLine = regexp.MustCompile(`(?m)^encrypted: (YES|NO)\r?$`)

// IsEncrypted reads `hdiutil isencrypted`, as a property list or as text.
func IsEncrypted(out []byte) (bool, error) {
	if d, _, err := plist.Find(out); err == nil {
		if _, ok := d["encrypted"]; ok {
			return d.Bool("encrypted"), nil
		}
	}
	m := encryptedLine.FindSubmatch(out)
	if m == nil {
		return false, fmt.Errorf("%w: no line %q", ErrNoResult, "encrypted: YES|NO")
	}
	return string(m[1]) == "YES", nil
}

// Limits of a resize, in bytes.
type Limits struct{ Min, Current, Max int64 }

const sector = 512

// ResizeLimits reads `hdiutil resize -limits`: a line of three sector counts. Counts beyond
// int64 bytes (the tool prints some for sparse kinds) are the largest whole sector instead.
func ResizeLimits(out []byte) (Limits, error) {
	for line := range strings.Lines(string(out)) {
		f := strings.Fields(line)
		if len(f) != 3 {
			continue
		}
		var n [3]int64
		ok := true
		for i, word := range f {
			v, err := strconv.ParseUint(word, 10, 64)
			ok = ok && err == nil
			n[i] = int64(min(v, math.MaxInt64/sector)) * sector
		}
		if ok && n[0] <= n[1] && n[1] <= n[2] {
			return Limits{n[0], n[1], n[2]}, nil
		}
	}
	return Limits{}, fmt.Errorf("%w: no line of three sector counts", ErrNoResult)
}

// ResizeImageLimits reads `diskutil image resize --plist` without a size.
func ResizeImageLimits(out []byte) (Limits, error) {
	d, _, err := plist.Find(out)
	if err != nil {
		return Limits{}, fmt.Errorf("%w: %w", ErrNoResult, err)
	}
	var l Limits
	for key, to := range map[string]*int64{"min": &l.Min, "current": &l.Current, "max": &l.Max} {
		n, ok := d.Int(key)
		if !ok || n < 0 {
			return Limits{}, fmt.Errorf("%w: no %q", ErrNoResult, key)
		}
		*to = n
	}
	if l.Min > l.Current || l.Current > l.Max {
		return Limits{}, fmt.Errorf("%w: limits contradict each other", ErrNoResult)
	}
	return l, nil
}

package command

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// Image describes an image file.
type Image struct {
	Format    string // Apple's four letters; "" if the tool printed none
	Size      int64  // of the device in bytes, 0 if the tool printed none
	Encrypted bool
	Scheme    string // partition scheme: "GUID", "none", …
}

// ParseImageInfo parses `hdiutil imageinfo -plist` and `diskutil image info
// --plist`.
func ParseImageInfo(out []byte) (Image, error) {
	d, _, err := findPlist(out)
	if err != nil {
		return Image{}, fmt.Errorf("%w: %w", ErrNoResult, err)
	}
	i := Image{Format: cmp.Or(d.String("Format"), d.String("Image Format")),
		Scheme: d.Dict("partitions").String("partition-scheme")}
	for _, at := range []Dict{d.Dict("Size Information"), d.Dict("Size Info"), d} {
		for _, key := range []string{"Total Bytes", "Size"} {
			if n, ok := at.Int(key); ok && n > 0 && i.Size == 0 {
				i.Size = n
			}
		}
	}
	locked := len(d.Dict("Encryption Info")) > 0 // diskutil prints it without the passphrase, too
	encryption := d.Dict("Backing Store Information").String("Encryption")
	i.Encrypted = d.Dict("Properties").Bool("Encrypted") || locked || encryption != "" && encryption != "none"
	if i.Format == "" && i.Size == 0 && !locked {
		return Image{}, fmt.Errorf("%w: neither format nor size", ErrNoResult)
	}
	return i, nil
}

var encryptedLine = regexp.MustCompile(`(?m)^encrypted: (YES|NO)\r?$`)

// ParseIsEncrypted parses `hdiutil isencrypted`, as a property list or as text.
func ParseIsEncrypted(out []byte) (bool, error) {
	if d, _, err := findPlist(out); err == nil {
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

// SizeLimits are the sizes that a resize accepts, in bytes.
type SizeLimits struct{ Min, Current, Max int64 }

// ParseLimits parses `hdiutil resize -limits`: a line of three sector counts.
// For counts beyond int64 bytes, which the tool prints for sparse formats, it
// returns the largest whole sector.
func ParseLimits(out []byte) (SizeLimits, error) {
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
			n[i] = int64(min(v, math.MaxInt64/Sector)) * Sector
		}
		if ok && n[0] <= n[1] && n[1] <= n[2] {
			return SizeLimits{n[0], n[1], n[2]}, nil
		}
	}
	return SizeLimits{}, fmt.Errorf("%w: no line of three sector counts", ErrNoResult)
}

var reclaimedLine = regexp.MustCompile(
	`(?m)^Reclaimed [0-9][0-9.]* (bytes|KB|MB|GB|TB|PB|EB) out of [0-9][0-9.]* (bytes|KB|MB|GB|TB|PB|EB) possible\.\r?$`)

// ParseCompact returns the line "Reclaimed 4 MB out of 1023.6 GB possible." of
// `hdiutil compact`. Its figures are rounded, and the second is free space of
// the volume and not of the host: for display only.
func ParseCompact(out []byte) (string, error) {
	line := reclaimedLine.Find(out)
	if line == nil {
		return "", fmt.Errorf("%w: no line %q", ErrNoResult, "Reclaimed … out of … possible.")
	}
	return strings.TrimSpace(string(line)), nil
}

// maxTrims is how many messages of one attachment are kept.
const maxTrims = 32

var diskOfSlice = regexp.MustCompile(`^/dev/(disk[0-9]+)(s[0-9]+)*$`)

// ParseTrims parses `log show --style ndjson`: the messages of APFS that name
// the container of the volume on the device ("/dev/disk9s1" is in disk9), in
// the order of the log, without their time. Messages about other containers,
// which come and go at the same time, are left out. An output without any line
// of a log is [ErrNoResult].
func ParseTrims(out []byte, device string) ([]string, error) {
	m := diskOfSlice.FindStringSubmatch(device)
	if m == nil {
		return nil, fmt.Errorf("%w: %q is in no container", ErrNoResult, device)
	}
	namesContainer := func(word string) bool {
		rest, ok := strings.CutPrefix(word, m[1])
		return ok && (rest == "" || rest[0] == 's')
	}
	var list []string
	lines := 0
	for line := range bytes.Lines(out) {
		var entry struct {
			Message string `json:"eventMessage"`
		}
		if json.Unmarshal(line, &entry) != nil {
			continue // headings
		}
		lines++
		if slices.ContainsFunc(strings.Fields(entry.Message), namesContainer) && len(list) < maxTrims {
			list = append(list, cleanLine(entry.Message))
		}
	}
	if lines == 0 {
		return nil, fmt.Errorf("%w: no line of the log", ErrNoResult)
	}
	return list, nil
}

package attach

import (
	"bytes"
	"encoding/binary"
	"io"
	"strings"
	"unicode/utf16"
	"unicode/utf8"
)

// found is what a volume says it is.
type found struct {
	fs    string // the kernel's name, "apfs" for one that no kernel here mounts, empty when nothing was recognised
	label string
}

// identify looks at the places where the file systems that we know put their signatures; sources: the kernel's headers
// of each, Microsoft's exFAT and FAT specifications, Apple's TN1150. What cannot be read is not recognised.
func identify(r io.ReaderAt) found {
	head := make([]byte, 4096)
	if n, err := r.ReadAt(head, 0); err != nil && n < 1024+512 {
		return found{}
	}
	sb := head[1024:]
	switch {
	case string(head[:4]) == "XFSB":
		return found{"xfs", text(head[108:120])}
	case string(head[3:11]) == "EXFAT   ":
		return found{"exfat", ""} // the label lies in the root directory
	case string(head[32:36]) == "NXSB":
		return found{"apfs", ""}
	case binary.LittleEndian.Uint16(sb[56:]) == 0xef53:
		return found{"ext4", text(sb[120:136])}
	case string(sb[:2]) == "H+" || string(sb[:2]) == "HX":
		return found{"hfsplus", ""}
	case string(head[510:512]) == "\x55\xaa" && string(head[82:90]) == "FAT32   ":
		return found{"vfat", fatLabel(head[71:82])}
	case string(head[510:512]) == "\x55\xaa" && (string(head[54:62]) == "FAT16   " || string(head[54:62]) == "FAT12   "):
		return found{"vfat", fatLabel(head[43:54])}
	}
	const btrfs = 64 << 10
	sb = make([]byte, 4096)
	if n, _ := r.ReadAt(sb, btrfs); n == len(sb) && string(sb[64:72]) == "_BHRfS_M" {
		return found{"btrfs", text(sb[299 : 299+256])}
	}
	return found{}
}

// text ends at the first zero; what is not UTF-8 becomes U+FFFD.
func text(b []byte) string {
	b, _, _ = bytes.Cut(b, []byte{0})
	if !utf8.Valid(b) {
		return strings.ToValidUTF8(string(b), "\ufffd")
	}
	return string(b)
}

func fatLabel(b []byte) string {
	s := strings.TrimRight(text(b), " ")
	if s == "NO NAME" {
		return ""
	}
	return s
}

// cut shortens a label to n bytes or UTF-16 units, never inside a character.
func cut(label string, n int, units bool) string {
	size := 0
	for i, r := range label {
		if units {
			size += max(utf16.RuneLen(r), 1)
		} else {
			size += utf8.RuneLen(r)
		}
		if size > n {
			return label[:i]
		}
	}
	return label
}

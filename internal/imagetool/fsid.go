package imagetool

import (
	"bytes"
	"cmp"
	"errors"
	"io"
	"slices"
	"strings"
	"unicode/utf16"

	"dmgbench/internal/blockdev"
	"dmgbench/internal/exfat"
	"dmgbench/internal/gpt"
)

// kind is what a volume is by its first blocks.
type kind struct {
	name  string // as -fs calls it; "" unknown
	short string // of volume-kind
	label string
}

// signature is where a file system is known by, and where its label is.
type signature struct {
	kind    kind
	at      int64
	magic   string
	label   int64 // offset of the label; 0: none is read
	length  int
	padding string
}

// signatures after the file systems' own documents: ext4 (kernel, ext4/super), XFS (xfs_format.h), Btrfs
// (btrfs_tree.h), FAT32 (fatgen103), HFS+ (TN1150), APFS (Apple File System Reference).
var signatures = []signature{
	{kind{name: "ExFAT", short: "exfat"}, 3, "EXFAT   ", 0, 0, ""},
	{kind{name: "ext4", short: "ext4"}, 1080, "\x53\xef", 1144, 16, "\x00"},
	{kind{name: "xfs", short: "xfs"}, 0, "XFSB", 108, 12, "\x00"},
	{kind{name: "btrfs", short: "btrfs"}, 65600, "_BHRfS_M", 65835, 256, "\x00"},
	{kind{name: "MS-DOS FAT32", short: "msdos"}, 82, "FAT32   ", 71, 11, " "},
	{kind{name: "MS-DOS FAT16", short: "msdos"}, 54, "FAT16   ", 43, 11, " "},
	{kind{name: "MS-DOS FAT12", short: "msdos"}, 54, "FAT12   ", 43, 11, " "},
	{kind{name: "HFS+", short: "hfs"}, 1024, "H+", 0, 0, ""},
	{kind{name: "Case-sensitive HFS+", short: "hfs"}, 1024, "HX", 0, 0, ""},
	{kind{name: "APFS", short: "apfs"}, 32, "NXSB", 0, 0, ""},
}

// identify says what volume a device holds, without trusting more than its signature.
func identify(dev blockdev.Device) kind {
	head := make([]byte, min(128<<10, dev.Size()))
	n, err := dev.ReadAt(head, 0)
	if err != nil && !errors.Is(err, io.EOF) {
		return kind{}
	}
	head = head[:n]
	for _, s := range signatures {
		if end := s.at + int64(len(s.magic)); end > int64(n) || string(head[s.at:end]) != s.magic {
			continue
		}
		k := s.kind
		if s.length > 0 && s.label+int64(s.length) <= int64(n) {
			field, _, _ := bytes.Cut(head[s.label:s.label+int64(s.length)], []byte{0})
			k.label = strings.ToValidUTF8(strings.TrimRight(string(field), s.padding), "\uFFFD")
		}
		if k.name == "ExFAT" {
			k.label = exfatLabel(dev)
		}
		if k.short == "msdos" && k.label == "NO NAME" {
			k.label = ""
		}
		return k
	}
	return kind{}
}

func exfatLabel(dev blockdev.Device) string {
	v, err := exfat.Mount(dev, exfat.MountOptions{ReadOnly: true})
	if err != nil {
		return ""
	}
	defer v.Unmount()
	return v.Label()
}

// hint is how the attach list calls an unpartitioned volume.
func (k kind) hint() string {
	switch k.short {
	case "":
		return ""
	case "hfs":
		return "Apple_HFS"
	case "apfs":
		return "Apple_APFS"
	case "exfat":
		return "Windows_NTFS" // the type code 7 is common to both
	case "msdos":
		return "DOS_FAT_32"
	}
	return "Linux"
}

// hintOf is how lists call a partition of this type.
func hintOf(g gpt.GUID) string {
	if g == gpt.EFISystem {
		return "EFI"
	}
	return gpt.TypeName(g)
}

func inOrder(list []gpt.Partition) []gpt.Partition {
	list = slices.Clone(list)
	slices.SortFunc(list, func(a, b gpt.Partition) int { return cmp.Compare(a.First, b.First) })
	return list
}

// units16 is the length of a name in UTF-16 units.
func units16(s string) int { return len(utf16.Encode([]rune(s))) }

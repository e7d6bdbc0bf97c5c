package imagetool

import (
	"bytes"
	"path/filepath"
	"strings"

	"dmgbench/internal/attach"
	"dmgbench/internal/container"
	"dmgbench/internal/container/codec"
	"dmgbench/internal/image"
)

// streams are the first bytes of a chunk in a compressed UDIF image. ADC has no
// signature.
var streams = []struct {
	start string
	id    codec.ID
	name  string
}{
	{"\x78\x01", codec.Zlib, "zlib"}, {"\x78\x5e", codec.Zlib, "zlib"}, {"\x78\x9c", codec.Zlib, "zlib"},
	{"\x78\xda", codec.Zlib, "zlib"}, {"BZh", codec.Bzip2, "bzip2"}, {"bvx", codec.LZFSE, "LZFSE"},
	{"\xfd7zXZ\x00", codec.LZMA, "xz"},
}

// Bounds of the first chunk, in bytes: those of Apple's are 1 MiB at most.
const (
	chunkLimit  = 8 << 20
	streamLimit = chunkLimit + 64<<10
)

// warnOfRaw warns of a file that is taken for a raw image and does not look
// like one: a raw image has no signature, so that every file of whole sectors
// can be one. The error is that of the device.
func (c *call) warnOfRaw(i *imageFile) error {
	if i.Format() != image.UDRW || c.isForcedRaw() {
		return nil
	}
	found, err := container.ForeignFormat(i.Image)
	switch {
	case err != nil:
		return err
	case found != "":
		c.warn("%q looks like a %s, and is taken for raw sectors because of its name", i.name, found)
		return nil
	case looksRaw(i):
		return nil
	}
	// A file named like a UDIF image, and instead of a partition map or a
	// volume a stream that decompresses, checksums included, to whole sectors:
	// the trailer is missing.
	if name := firstStream(i); name != "" && strings.EqualFold(filepath.Ext(i.name), ".dmg") {
		c.warn("%q starts with compressed data (%s) and has no trailer: it looks like a truncated UDIF image, "+
			"and is taken for raw sectors", i.name, name)
		return nil
	}
	c.warn("%q has no partition map and no known file system, and is taken for raw sectors", i.name)
	return nil
}

// rawMarks are of contents that have no kind here and still show a raw image:
// NTFS, ISO 9660, UDF, LUKS, LVM, HFS and SquashFS. Offsets are in bytes.
var rawMarks = []struct {
	at    int64
	magic string
}{
	{3, "NTFS    "}, {32769, "CD001"}, {32769, "BEA01"}, {0, "LUKS\xba\xbe"}, {512, "LABELONE"}, {1024, "BD"},
	{0, "hsqs"},
}

// looksRaw reports whether a device has a partition map or a volume, or starts
// with zeros as a blank one does.
func looksRaw(i *imageFile) bool {
	info, err := i.inspect()
	if err != nil || info.Scheme != attach.SchemeNone || info.Whole.AppleName != "" {
		return true // the verb reports what cannot be read
	}
	head, err := readHead(i, 64<<10)
	if err != nil {
		return true
	}
	for _, m := range rawMarks {
		if m.at < int64(len(head)) && bytes.HasPrefix(head[m.at:], []byte(m.magic)) {
			return true
		}
	}
	return len(bytes.Trim(head, "\x00")) == 0
}

// firstStream is the codec of the compressed sectors at the start of a device,
// "" if there are none.
func firstStream(i *imageFile) string {
	head, err := readHead(i, 6)
	for _, s := range streams {
		if err != nil || !strings.HasPrefix(string(head), s.start) {
			continue
		}
		src, err := readHead(i, streamLimit)
		dst := make([]byte, chunkLimit)
		// The length is not known: the first call finds it, the second makes
		// sure that the stream is whole.
		length, _ := codec.Decode(s.id, dst, src)
		if err != nil || length == 0 || length%sector != 0 {
			return ""
		}
		if _, err := codec.Decode(s.id, dst[:length], src); err != nil {
			return ""
		}
		return s.name
	}
	return ""
}

package imagetool

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"strings"

	"dmgbench/internal/attach"
	"dmgbench/internal/container"
	"dmgbench/internal/container/codec"
)

// streams are what the first chunk of a compressed UDIF image begins with. ADC has no signature.
var streams = []struct {
	begins string
	id     codec.ID
	name   string
}{
	{"\x78\x01", codec.Zlib, "zlib"}, {"\x78\x5e", codec.Zlib, "zlib"}, {"\x78\x9c", codec.Zlib, "zlib"}, {"\x78\xda", codec.Zlib, "zlib"},
	{"BZh", codec.Bzip2, "bzip2"}, {"bvx", codec.LZFSE, "LZFSE"}, {"\xfd7zXZ\x00", codec.LZMA, "xz"},
}

// Bounds of a chunk that is looked at, in bytes: those of Apple's are 1 MiB at most.
const (
	chunkLimit  = 8 << 20
	streamLimit = chunkLimit + 64<<10
)

// remarkRaw warns of a file that is taken for a raw image and does not look like one.
func (c *call) remarkRaw(p place, img container.Image) error {
	if img.Format() != container.UDRW || c.forcedRaw() {
		return nil
	}
	found, err := container.Foreign(img)
	switch {
	case err != nil:
		return err
	case found != "":
		c.warn("%q looks like a %s, and is taken for raw sectors because of its name", p.name, found)
		return nil
	case structured(img):
		return nil
	}
	// The name of a UDIF image, and instead of a partition map or a volume a stream that decompresses, checksums included, to
	// whole sectors: the trailer was cut off.
	if name := firstStream(img); name != "" && strings.EqualFold(filepath.Ext(p.name), ".dmg") {
		c.warn("%q begins with compressed data (%s) and has no trailer: it looks like a UDIF image that was cut off, and is taken for raw sectors", p.name, name)
		return nil
	}
	c.warn("%q has no partition map and no file system that is known, and is taken for raw sectors", p.name)
	return nil
}

func (c *call) warn(format string, args ...any) {
	fmt.Fprintf(c.err, "%s: %s: WARNING: %s\n", c.tool, c.verb.name, fmt.Sprintf(format, args...))
}

// otherMarks are of contents that are no volume here, and still tell a raw image: NTFS, ISO 9660, UDF, LUKS, LVM, HFS and
// SquashFS.
var otherMarks = []struct {
	at    int64
	magic string
}{{3, "NTFS    "}, {32769, "CD001"}, {32769, "BEA01"}, {0, "LUKS\xba\xbe"}, {512, "LABELONE"}, {1024, "BD"}, {0, "hsqs"}}

// structured says whether a device has a partition map or a volume on it, or begins with zeros as a blank one does.
func structured(img container.Image) bool {
	if attach.Identify(img).AppleName != "" {
		return true
	}
	if _, scheme, err := regions(img); err != nil || scheme != "none" {
		return true // what cannot be read is told by the verb
	}
	head := make([]byte, min(64<<10, img.Size()))
	if n, err := img.ReadAt(head, 0); err != nil && n < len(head) {
		return true
	}
	for _, m := range otherMarks {
		if m.at < int64(len(head)) && bytes.HasPrefix(head[m.at:], []byte(m.magic)) {
			return true
		}
	}
	return len(bytes.Trim(head, "\x00")) == 0
}

// firstStream is the codec of the compressed sectors that a device begins with, "" if it does not.
func firstStream(dev io.ReaderAt) string {
	head := make([]byte, 6)
	if n, err := dev.ReadAt(head, 0); n < len(head) || err != nil && !errors.Is(err, io.EOF) {
		return ""
	}
	for _, s := range streams {
		if !strings.HasPrefix(string(head), s.begins) {
			continue
		}
		src, dst := make([]byte, streamLimit), make([]byte, chunkLimit)
		n, err := dev.ReadAt(src, 0)
		if err != nil && !errors.Is(err, io.EOF) {
			return ""
		}
		// The length is not known: the first look finds it, the second makes sure that the stream is whole.
		length, _ := codec.Decode(s.id, dst, src[:n])
		if length == 0 || length%sector != 0 {
			return ""
		}
		if _, err := codec.Decode(s.id, dst[:length], src[:n]); err != nil {
			return ""
		}
		return s.name
	}
	return ""
}

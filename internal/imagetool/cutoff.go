package imagetool

import (
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"strings"

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

// remarkCutOff warns of a raw image that is one only since its trailer was cut off: its name is that of a UDIF image, and
// instead of a partition map or a volume it begins with a stream that decompresses, checksums included, to whole sectors.
func (c *call) remarkCutOff(p place, img container.Image) {
	if img.Format() != container.UDRW || !strings.EqualFold(filepath.Ext(p.name), ".dmg") {
		return
	}
	name := firstStream(img)
	if name == "" || identify(img).name != "" {
		return
	}
	if _, scheme, err := regions(img); err != nil || scheme != "none" {
		return
	}
	fmt.Fprintf(c.err, "%s: %s: WARNING: %q begins with compressed data (%s) and has no trailer: it looks like a UDIF image that was cut off, and is taken for raw sectors\n",
		c.tool, c.verb.name, p.name, name)
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

package imagetool

import (
	"crypto/md5"
	"crypto/sha1"
	"crypto/sha256"
	"crypto/sha512"
	"errors"
	"fmt"
	"hash"
	"hash/crc32"
	"io"
	"strings"

	"dmgbench/internal/container"
)

// checksumTypes are those of hdiutil(1).
const checksumTypes = "UDIF-CRC32 UDIF-MD5 CRC32 MD5 SHA SHA1 SHA256 SHA384 SHA512"

// newHash is the hash of a type, and whether it is taken of the parts first.
func newHash(name string) (make func() hash.Hash, parts bool) {
	name, parts = strings.CutPrefix(strings.ToUpper(name), "UDIF-")
	return map[string]func() hash.Hash{
		"CRC32": func() hash.Hash { return crc32.NewIEEE() }, "MD5": md5.New, "SHA": sha1.New, "SHA1": sha1.New,
		"SHA256": sha256.New, "SHA384": sha512.New384, "SHA512": sha512.New,
	}[name], parts
}

// checksum computes a checksum of the device.
func (c *call) checksum() error {
	if !c.has("-type") {
		return misused("no type: want -type, one of %s", checksumTypes)
	}
	kind := strings.ToUpper(c.value("-type"))
	newSum, parts := newHash(kind)
	return c.read(c.operands[0], func(p place, img container.Image) error {
		list := []region{{count: img.Size() / sector}}
		var err error
		if parts {
			if list, _, err = regions(img); err != nil {
				return err
			}
		}
		sums := newSum()
		var sum []byte
		progress, done := c.newProgress(img.Size()), int64(0)
		for _, r := range list {
			h := newSum()
			if err := c.hashRegion(h, img, r, progress, &done); err != nil {
				return err
			}
			if sum = h.Sum(nil); r.free {
				sum = make([]byte, len(sum))
			}
			sums.Write(sum)
		}
		if parts {
			sum = sums.Sum(nil)
		}
		return c.tellSum(kind, sum)
	})
}

func (c *call) tellSum(kind string, sum []byte) error {
	if c.has("-plist") {
		return c.printPlist(list{"checksum-type": kind, "checksum-value": fmt.Sprintf("%x", sum)})
	}
	_, err := fmt.Fprintf(c.out, "calculated   %s $%X\n", kind, sum)
	return err
}

// hashRegion reads a part of the device into h; free space is left out of what is stored.
func (c *call) hashRegion(h hash.Hash, img container.Image, r region, p *progress, done *int64) error {
	buf := make([]byte, 1<<20)
	for off, end := r.first*sector, (r.first+r.count)*sector; off < end && !r.free; off += int64(len(buf)) {
		if err := c.canceled(); err != nil {
			return err
		}
		piece := buf[:min(int64(len(buf)), end-off)]
		if n, err := img.ReadAt(piece, off); err != nil && (n < len(piece) || !errors.Is(err, io.EOF)) {
			return fmt.Errorf("reading %d bytes at %d: %w", len(piece), off, err)
		}
		h.Write(piece)
		*done += int64(len(piece))
		p.at(*done)
	}
	return nil
}

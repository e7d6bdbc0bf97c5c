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
	"dmgbench/internal/container/udif"
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
		list, left := []udif.Region{{Sectors: uint64(img.Size() / sector)}}, (*udif.Image)(nil)
		var err error
		if parts {
			if list, left, err = summedParts(img); err != nil {
				return err
			}
		}
		sums := newSum()
		var sum []byte
		progress, done := c.newProgress(img.Size()), int64(0)
		for i := range list {
			h := newSum()
			if err := c.hashRegion(h, img, &list[i], left, progress, &done); err != nil {
				return err
			}
			sum = h.Sum(nil)
			sums.Write(sum)
		}
		if parts {
			sum = sums.Sum(nil)
		}
		return c.tellSum(kind, sum)
	})
}

// summedParts are the parts whose checksums a UDIF image stores, and the image whose tables leave space out of them: its own
// parts of one that has tables, of others those that convert would cut it into, where nothing is left out.
func summedParts(img container.Image) ([]udif.Region, *udif.Image, error) {
	if t, ok := img.(container.Tabled); ok {
		if list := t.UDIF().Regions(); len(list) > 0 {
			return list, t.UDIF(), nil
		}
	}
	layout, err := udif.ProbeLayout(img, img.Size())
	return layout.Regions, nil, err
}

func (c *call) tellSum(kind string, sum []byte) error {
	if c.has("-plist") {
		return c.printPlist(list{"checksum-type": kind, "checksum-value": fmt.Sprintf("%x", sum)})
	}
	_, err := fmt.Fprintf(c.out, "calculated   %s $%X\n", kind, sum)
	return err
}

// hashRegion reads a part of the device into h, without what the tables of left, if there are any, leave out.
func (c *call) hashRegion(h hash.Hash, img container.Image, r *udif.Region, left *udif.Image, p *progress, done *int64) error {
	buf := make([]byte, 1<<20)
	for off, end := int64(r.First)*sector, int64(r.First+r.Sectors)*sector; off < end; {
		if err := c.canceled(); err != nil {
			return err
		}
		to := min(off+int64(len(buf)), end)
		state := udif.StateData
		if left != nil {
			var stretch int64
			stretch, state = left.Next(off)
			if to = min(to, stretch); state == udif.StateUnallocated {
				to = min(stretch, end)
			}
		}
		if state != udif.StateUnallocated {
			piece := buf[:to-off]
			if n, err := img.ReadAt(piece, off); err != nil && (n < len(piece) || !errors.Is(err, io.EOF)) {
				return fmt.Errorf("reading %d bytes at %d: %w", len(piece), off, err)
			}
			h.Write(piece)
		}
		*done += to - off
		off = to
		p.at(*done)
	}
	return nil
}

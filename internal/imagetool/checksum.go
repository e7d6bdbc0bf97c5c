package imagetool

import (
	"cmp"
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

// tablesOf returns the tables of a UDIF image, nil for other images.
func tablesOf(i *image) *udif.Image {
	if t, ok := i.Image.(container.Tabled); ok {
		return t.UDIF()
	}
	return nil
}

// keepSums prepares checkRead, before the image is read.
func keepSums(i *image) {
	if im := tablesOf(i); im != nil {
		im.KeepSums()
	}
}

// checkRead compares what was read of an image with its stored checksums; it reads what was not read yet. With
// -noverify a difference is a warning.
func (c *call) checkRead(i *image) error {
	im := tablesOf(i)
	if im == nil {
		return nil
	}
	report, err := im.VerifyRead(c.ctx, udif.StreamOptions{})
	if err != nil {
		return err
	}
	bad := report.Err()
	if bad != nil && c.has("-noverify") {
		c.warn("%v", bad)
		bad = nil
	}
	if bad != nil {
		return fmt.Errorf("%w: %w", container.ErrData, bad)
	}
	return nil
}

// hashes are the checksum types of hdiutil(1) but for UDIF-CRC32 and UDIF-MD5, which are of the parts first.
var hashes = map[string]func() hash.Hash{
	"CRC32": func() hash.Hash { return crc32.NewIEEE() }, "MD5": md5.New, "SHA": sha1.New, "SHA1": sha1.New,
	"SHA256": sha256.New, "SHA384": sha512.New384, "SHA512": sha512.New,
}

// checksum computes a checksum of the device.
func (c *call) checksum() error {
	if !c.has("-type") {
		o, _ := c.verb.option("-type")
		return misused("no type: want -type, one of %s", o.values)
	}
	kind := strings.ToUpper(c.value("-type"))
	name, ofParts := strings.CutPrefix(kind, "UDIF-")
	newHash := hashes[name]
	return c.withImage(c.operands[0], read, func(i *image) (err error) {
		parts, tables := []udif.Region{{Sectors: uint64(i.Size() / sector)}}, (*udif.Image)(nil)
		if ofParts {
			if parts, tables, err = summedParts(i); err != nil {
				return err
			}
		}
		r := &deviceReader{c: c, progress: c.newProgress(i.Size()), dev: i.Image, tables: tables}
		sums := newHash()
		var sum []byte
		for _, p := range parts {
			r.at, r.end = int64(p.First)*sector, int64(p.First+p.Sectors)*sector
			h := newHash()
			if _, err := io.CopyBuffer(h, r, make([]byte, 1<<20)); err != nil {
				return err
			}
			sum = h.Sum(nil)
			sums.Write(sum)
		}
		if ofParts {
			sum = sums.Sum(nil)
		}
		return c.printResult(dict{"checksum-type": kind, "checksum-value": fmt.Sprintf("%x", sum)},
			"calculated   %s $%X\n", kind, sum)
	})
}

// summedParts are the parts with checksums of their own in a UDIF image, and its tables, which leave space out of them;
// of other images the parts that convert would cut, with nil.
func summedParts(i *image) ([]udif.Region, *udif.Image, error) {
	if im := tablesOf(i); im != nil && len(im.Regions()) > 0 {
		return im.Regions(), im, nil
	}
	layout, err := udif.ProbeLayout(i.Image, i.Size())
	return layout.Regions, nil, err
}

// deviceReader reads a part of a device without the stretches that tables, if there are any, leave out.
type deviceReader struct {
	c        *call
	progress *progress
	dev      io.ReaderAt
	tables   *udif.Image
	at, end  int64 // bytes
	done     int64 // of all parts
}

// Read reads the next stretch. It ends with the context of the command.
func (r *deviceReader) Read(p []byte) (n int, err error) {
	for r.at < r.end {
		if err := r.c.canceled(); err != nil {
			return 0, err
		}
		n, skip := min(int64(len(p)), r.end-r.at), false
		if r.tables != nil {
			stretch, state := r.tables.Next(r.at)
			if skip = state == udif.StateUnallocated; skip {
				n = r.end - r.at
			}
			n = min(n, stretch-r.at)
		}
		if !skip {
			if got, err := r.dev.ReadAt(p[:n], r.at); err != nil && (got < int(n) || !errors.Is(err, io.EOF)) {
				return 0, fmt.Errorf("reading %d bytes at %d: %w", n, r.at, err)
			}
		}
		r.at, r.done = r.at+n, r.done+n
		if r.progress.at(r.done); !skip {
			return int(n), nil
		}
	}
	return 0, io.EOF
}

// verify checks the stored checksums, which only UDIF images with tables have; of other images it checks the structure.
func (c *call) verify() error {
	err := c.withImage(c.operands[0], peek, func(i *image) error {
		if err := c.warnOfRaw(i); err != nil {
			return err
		}
		if im := tablesOf(i); im != nil {
			return c.verifyTables(i, im)
		}
		findings, err := container.VerifyWith(i.dir, i.name, container.OpenOptions{Keys: c.secrets.keys[i.path]})
		for _, f := range findings {
			c.printf("%s", f)
		}
		if err != nil {
			return err
		}
		return c.reportNoChecksum(i, "")
	})
	if isNoImage(err) {
		p, e := c.existing(c.operands[0])
		if e != nil {
			return e
		}
		defer p.close()
		c.printf("unable to recognize %q as a disk image.", p.name)
		return &exitStatus{1}
	}
	return err
}

// reportNoChecksum is the result of verify for an image without a checksum of some kind: status 1, as from Apple's tool.
func (c *call) reportNoChecksum(i *image, which string) error {
	c.printf("%q has no checksum%s.", i.name, which)
	return &exitStatus{1}
}

// verifyTables computes and compares every checksum of a UDIF image. Findings go to stderr, as from Apple's tool.
func (c *call) verifyTables(i *image, im *udif.Image) error {
	progress := c.newProgress(im.Size())
	o := udif.StreamOptions{Progress: func(done, _ int64) { progress.at(done) }}
	report, err := im.Verify(c.ctx, o)
	if err != nil {
		return err
	}
	if n := im.Beyond(); n > 0 {
		c.warn("the last %d of %d sectors are in no table and have no checksum: the device is shorter, or sectors are "+
			"lost", n, im.Size()/sector)
	}
	known, unknown := 0, 0
	for _, check := range report.Checks {
		kind := checksumName(check.Type)
		switch check.Result {
		case udif.Agrees:
			known++
			if c.has("-verbose") {
				fmt.Fprintf(c.err, "   verified   %s $%X %s\n", kind, check.Want, check.What)
			}
		case udif.Differs:
			c.printf("%s: %s is $%X, should be $%X", check.What, kind, check.Got, check.Want)
		case udif.Unreadable:
			c.printf("%s: %v", check.What, check.Err)
		case udif.Unchecked:
			unknown++
			c.printf("%s: its checksum (%s) is not checked here", check.What, kind)
		}
	}
	valid := report.Err() == nil
	switch {
	case known == 0 && unknown > 0 && valid:
		return c.reportNoChecksum(i, " that is checked here")
	case known == 0 && valid:
		return c.reportNoChecksum(i, "")
	}
	if c.has("-plist") {
		d := dict{"verified": valid}
		if sum := im.Trailer().Master; sum.Type != udif.ChecksumNone {
			d["checksum-type"], d["checksum-value"] = checksumName(sum.Type), fmt.Sprintf("%x", sum.Value())
		}
		if err := c.printPlist(d); err != nil {
			return err
		}
	}
	if !valid {
		c.printf("checksum of %q is INVALID", i.name)
		return &exitStatus{1}
	}
	c.printf("checksum of %q is VALID", i.name)
	return nil
}

// checksumName is the name of a checksum type in messages and lists.
func checksumName(typ uint32) string {
	names := map[uint32]string{udif.ChecksumNone: "none", udif.ChecksumCRC32: "CRC32", udif.ChecksumMD5: "MD5"}
	return cmp.Or(names[typ], fmt.Sprintf("type %d", typ))
}

// storedChecksum is the checksum over the whole image: its kind, and its value, "" if there is none.
func storedChecksum(i *image) (kind, value string) {
	im := tablesOf(i)
	if im == nil || im.Trailer().Master.Type == udif.ChecksumNone {
		return "none", ""
	}
	sum := im.Trailer().Master
	return checksumName(sum.Type), fmt.Sprintf("$%X", sum.Value())
}

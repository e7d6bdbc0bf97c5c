package imagetool

import (
	"cmp"
	"context"
	"crypto/md5"
	"crypto/sha1"
	"crypto/sha256"
	"crypto/sha512"
	"fmt"
	"hash"
	"hash/crc32"
	"io"
	"strings"

	"dmgbench/internal/image/container"
	"dmgbench/internal/image/container/udif"
)

// keepSums prepares checkRead, before the image is read: the image sums up what
// is read from now on, so that most data is read once.
func keepSums(i *imageFile) {
	if im := i.tables(); im != nil {
		im.KeepSums()
	}
}

// checkRead compares what was read of an image with its stored checksums; it
// reads what was not read yet. With
// -noverify a difference is a warning.
func (c *call) checkRead(i *imageFile) error {
	bad, err := c.compareSums(i, "noverify", (*udif.Image).VerifyRead)
	if bad != nil {
		return fmt.Errorf("%w: %w", container.ErrData, bad)
	}
	return err
}

// compareSums computes the checksums of a UDIF image and returns how they
// differ from those stored. With the option allow a difference is a warning.
func (c *call) compareSums(i *imageFile, allow string,
	verify func(*udif.Image, context.Context, udif.StreamOptions) (*udif.Report, error)) (bad, err error) {
	im := i.tables()
	if im == nil {
		return nil, nil
	}
	report, err := verify(im, c.ctx, udif.StreamOptions{})
	if err != nil {
		return nil, err
	}
	if bad = report.Err(); bad != nil && c.has(allow) {
		c.warn("%v", bad)
		return nil, nil
	}
	return bad, nil
}

// hashes are the checksum types of hdiutil(1) but for UDIF-CRC32 and UDIF-MD5,
// which are of the parts first.
var hashes = map[string]func() hash.Hash{
	"CRC32": func() hash.Hash { return crc32.NewIEEE() }, "MD5": md5.New, "SHA": sha1.New, "SHA1": sha1.New,
	"SHA256": sha256.New, "SHA384": sha512.New384, "SHA512": sha512.New,
}

// checksum computes a checksum of the device. Types that start with UDIF- are
// what a read-only image stores: a checksum over the checksums of its parts, in
// binary form. Of other images it is what convert would store.
func (c *call) checksum() error {
	kind := strings.ToUpper(c.value("type"))
	name, ofParts := strings.CutPrefix(kind, "UDIF-")
	newHash := hashes[name]
	return c.withImage(c.operands[0], read, func(i *imageFile) (err error) {
		parts, tables := []udif.Region{{Sectors: uint64(i.Size() / sector)}}, (*udif.Image)(nil)
		if ofParts {
			if parts, tables, err = summedParts(i); err != nil {
				return err
			}
		}
		p := c.newProgress(i.Size())
		sums := newHash()
		var sum []byte
		for _, part := range parts {
			h := newHash()
			at := int64(part.First) * sector
			if err := c.hashPart(h, i.Image, tables, at, at+int64(part.Sectors)*sector, p); err != nil {
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

// summedParts are the parts with checksums of their own in a UDIF image, and
// its tables, which leave space out of them; of other images the parts that
// convert would cut, with nil.
func summedParts(i *imageFile) ([]udif.Region, *udif.Image, error) {
	if im := i.tables(); im != nil && len(im.Regions()) > 0 {
		return im.Regions(), im, nil
	}
	layout, err := udif.ProbeLayout(i.Image, i.Size())
	return layout.Regions, nil, err
}

// hashPart adds the bytes of a device from at to end to a hash, without the
// stretches that tables, if there are any, leave out.
func (c *call) hashPart(h hash.Hash, dev io.ReaderAt, tables *udif.Image, at, end int64, p *progress) error {
	buf := make([]byte, 1<<20)
	for at < end {
		next, state := end, udif.StateData
		if tables != nil {
			next, state = tables.Next(at)
			next = min(next, end)
		}
		if state != udif.StateUnallocated {
			err := c.readPieces(dev, buf, at, next, func(b []byte, off int64) error {
				_, err := h.Write(b)
				p.at(off + int64(len(b)))
				return err
			})
			if err != nil {
				return err
			}
		}
		at = next
		p.at(at)
	}
	return nil
}

// readPieces calls take with each piece of src from at to end and with its
// offset. It reads into buf, and ends with the context of the command.
func (c *call) readPieces(src io.ReaderAt, buf []byte, at, end int64, take func(b []byte, off int64) error) error {
	for ; at < end; at += int64(len(buf)) {
		if err := c.canceled(); err != nil {
			return err
		}
		piece := buf[:min(int64(len(buf)), end-at)]
		if n, err := src.ReadAt(piece, at); n < len(piece) {
			return &unreadableError{fmt.Errorf("reading %d bytes at %d: %w", len(piece), at, err)}
		}
		if err := take(piece, at); err != nil {
			return err
		}
	}
	return nil
}

// unreadableError is the error of a file or folder on an image, not of the host
// it is copied to.
type unreadableError struct{ err error }

func (e *unreadableError) Error() string { return e.err.Error() }
func (e *unreadableError) Unwrap() error { return e.err }

// verify checks the stored checksums, which only UDIF images with tables have;
// of other images it checks the structure. As from Apple's tool the status is 1
// for an image without a checksum, and the message names what differs. A file
// that is not an image has a message of its own.
func (c *call) verify() error {
	err := c.withImage(c.operands[0], peek, func(i *imageFile) error {
		if err := c.warnOfRaw(i); err != nil {
			return err
		}
		if im := i.tables(); im != nil {
			return c.verifyTables(i, im)
		}
		findings, err := container.Verify(i.dir, i.name, container.OpenOptions{Keys: c.secrets.keys[i.path]})
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

// reportNoChecksum is the result of verify for an image without a checksum of
// some kind: status 1, as from Apple's tool.
func (c *call) reportNoChecksum(i *imageFile, which string) error {
	c.printf("%q has no checksum%s.", i.name, which)
	return &exitStatus{1}
}

// verifyTables computes and compares every checksum of a UDIF image. Findings
// go to stderr, as from Apple's tool, and the result to the property list if
// there is one. Checksums of an unknown type are neither valid nor missing: if
// an image has no others, the status is 1.
func (c *call) verifyTables(i *imageFile, im *udif.Image) error {
	p := c.newProgress(im.Size())
	report, err := im.Verify(c.ctx, udif.StreamOptions{Progress: func(done, _ int64) { p.at(done) }})
	if err != nil {
		return err
	}
	if n := im.Beyond(); n > 0 {
		c.warn("the last %d of %d sectors are in no table and have no checksum: the device is shorter, or sectors are "+
			"lost", n, im.Size()/sector)
	}
	known, unknown := c.printChecks(report)
	valid := report.Err() == nil
	if known == 0 && valid {
		which := ""
		if unknown > 0 {
			which = " that is checked here"
		}
		return c.reportNoChecksum(i, which)
	}
	if c.has("plist") {
		d := dict{"verified": valid}
		if sum := im.Trailer().Master; sum.Type != udif.ChecksumNone {
			d["checksum-type"], d["checksum-value"] = checksumName(sum.Type), fmt.Sprintf("%x", sum.Value())
		}
		if err := c.printResult(d, ""); err != nil {
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

// printChecks prints what is wrong with checksums, and those of types that are
// not computed here. It returns how many agree, and how many were not computed.
func (c *call) printChecks(report *udif.Report) (known, unknown int) {
	for _, check := range report.Checks {
		kind := checksumName(check.Type)
		switch check.Result {
		case udif.Agrees:
			known++
			if c.has("verbose") {
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
	return known, unknown
}

// checksumName is the name of a checksum type in messages and lists.
func checksumName(typ uint32) string {
	names := map[uint32]string{udif.ChecksumNone: "none", udif.ChecksumCRC32: "CRC32", udif.ChecksumMD5: "MD5"}
	return cmp.Or(names[typ], fmt.Sprintf("type %d", typ))
}

// storedChecksum is the checksum over the whole image: its kind, and its value,
// "" if there is none.
func storedChecksum(i *imageFile) (kind, value string) {
	im := i.tables()
	if im == nil || im.Trailer().Master.Type == udif.ChecksumNone {
		return "none", ""
	}
	sum := im.Trailer().Master
	return checksumName(sum.Type), fmt.Sprintf("$%X", sum.Value())
}

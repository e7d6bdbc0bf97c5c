package imagetool

import (
	"cmp"
	"fmt"
	"strconv"

	"dmgbench/internal/container"
	"dmgbench/internal/container/udif"
)

// verify checks the stored checksums, which only UDIF images with tables have.
func (c *call) verify() error {
	p, err := c.existing(c.operands[0])
	if err != nil {
		return err
	}
	defer p.close()
	img, err := c.open(p, true)
	if noImage(err) {
		fmt.Fprintf(c.err, "hdiutil: verify: unable to recognize %s as a disk image.\n", strconv.Quote(p.name))
		return &said{1}
	}
	if err != nil {
		return err
	}
	defer img.Close()
	if err := c.remarkRaw(p, img); err != nil {
		return err
	}
	t, ok := img.(container.Tabled)
	if !ok {
		if err := c.tellFindings(p); err != nil {
			return err
		}
		fmt.Fprintf(c.err, "hdiutil: verify: %s has no checksum.\n", strconv.Quote(p.name))
		return &said{1}
	}
	return c.verifyTables(p, t.UDIF())
}

// tellFindings prints what is wrong with the structure of an image without checksums.
func (c *call) tellFindings(p place) error {
	list, err := container.VerifyWith(p.dir, p.name, container.OpenOptions{Keys: c.secrets.keys[p.path]})
	for _, f := range list {
		fmt.Fprintf(c.err, "hdiutil: verify: %s\n", f)
	}
	return err
}

func (c *call) verifyTables(p place, im *udif.Image) error {
	progress := c.newProgress(im.Size())
	report, err := im.Verify(c.ctx, udif.StreamOptions{Progress: func(done, _ int64) { progress.at(done) }})
	if err != nil {
		return err
	}
	if n := im.Beyond(); n > 0 {
		c.warn("the last %d of %d sectors are in no table, and no checksum is over them: the device is shorter, or sectors are lost", n, im.Size()/sector)
	}
	known, unknown := 0, 0
	for _, check := range report.Checks {
		switch check.Result {
		case udif.Agrees:
			known++
			if c.has("-verbose") {
				fmt.Fprintf(c.err, "   verified   %s $%X %s\n", checksumName(check.Type), check.Want, check.What)
			}
		case udif.Differs:
			fmt.Fprintf(c.err, "hdiutil: verify: %s: %s is $%X, should be $%X\n", check.What, checksumName(check.Type), check.Got, check.Want)
		case udif.Unreadable:
			fmt.Fprintf(c.err, "hdiutil: verify: %s: %v\n", check.What, check.Err)
		case udif.Unchecked:
			unknown++
			fmt.Fprintf(c.err, "hdiutil: verify: %s: its checksum (%s) is not checked here\n", check.What, checksumName(check.Type))
		}
	}
	if known == 0 && unknown > 0 && report.Err() == nil {
		fmt.Fprintf(c.err, "hdiutil: verify: %s has no checksum that is checked here.\n", strconv.Quote(p.name))
		return &said{1}
	}
	if known == 0 && report.Err() == nil {
		fmt.Fprintf(c.err, "hdiutil: verify: %s has no checksum.\n", strconv.Quote(p.name))
		return &said{1}
	}
	return c.tellVerdict(p, im, report.Err() == nil)
}

// tellVerdict says whether all checksums agree, and as a property list the one of the whole image too.
func (c *call) tellVerdict(p place, im *udif.Image, valid bool) error {
	if c.has("-plist") {
		d := list{"verified": valid}
		if sum := im.Trailer().Master; sum.Type != udif.ChecksumNone {
			d["checksum-type"], d["checksum-value"] = checksumName(sum.Type), fmt.Sprintf("%x", sum.Value())
		}
		if err := c.printPlist(d); err != nil {
			return err
		}
	}
	word, status := "VALID", error(nil)
	if !valid {
		word, status = "INVALID", &said{1}
	}
	fmt.Fprintf(c.err, "hdiutil: verify: checksum of %s is %s\n", strconv.Quote(p.name), word)
	return status
}

func checksumName(typ uint32) string {
	name := map[uint32]string{udif.ChecksumNone: "none", udif.ChecksumCRC32: "CRC32", udif.ChecksumMD5: "MD5"}[typ]
	return cmp.Or(name, fmt.Sprintf("type %d", typ))
}

// storedChecksum is the checksum over the whole image: its kind, and its value or nothing.
func storedChecksum(img container.Image) (kind, value string) {
	t, ok := img.(container.Tabled)
	if !ok {
		return "none", ""
	}
	sum := t.UDIF().Trailer().Master
	if sum.Type == udif.ChecksumNone {
		return "none", ""
	}
	return checksumName(sum.Type), fmt.Sprintf("$%X", sum.Value())
}

// describeTables puts what a UDIF image knows of itself into its description.
func describeTables(d list, img container.Image, im *udif.Image) {
	kind, value := storedChecksum(img)
	d["Checksum Type"] = kind
	props, sizes := d["Properties"].(list), d["Size Information"].(list)
	if value != "" {
		d["Checksum Value"], props["Checksummed"] = value, true
	}
	var full, stored int64
	compressed := false
	for k, u := range im.Usage() {
		if k != udif.KindZero && k != udif.KindIgnore {
			full, stored, compressed = full+u.Bytes, stored+u.Stored, compressed || k.Compressed()
		}
	}
	props["Compressed"], props["Software License Agreement"] = compressed, im.License()
	sizes["Total Non-Empty Bytes"], sizes["Total Empty Bytes"], sizes["Compressed Bytes"] = full, im.Size()-full, stored
	if full > 0 {
		sizes["Compressed Ratio"] = float64(stored) / float64(full)
	}
}

package imagetool

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/url"
	"path/filepath"
	"strings"

	"dmgbench/internal/attach"
	"dmgbench/internal/blockdev"
	"dmgbench/internal/container"
)

// imageinfo describes an image file.
func (c *call) imageinfo() error {
	return c.look(c.operands[0], func(p place, img container.Image) error {
		if err := c.remarkRaw(p, img); err != nil {
			return err
		}
		switch {
		case c.has("-format"):
			fmt.Fprintln(c.out, formatOf(p, img).name)
			return nil
		case c.has("-checksum"):
			_, value := storedChecksum(img)
			fmt.Fprintln(c.out, cmp.Or(value, "none"))
			return nil
		}
		d, err := describe(p, img)
		if err != nil {
			return err
		}
		if c.has("-plist") {
			return c.printPlist(d)
		}
		var b strings.Builder
		printTree(&b, d, 0)
		_, err = io.WriteString(c.out, b.String())
		return err
	})
}

func describe(p place, img container.Image) (list, error) {
	f := formatOf(p, img)
	nonEmpty, err := nonEmptyBytes(p, img)
	if err != nil {
		return nil, err
	}
	parts, scheme, err := partitions(img)
	if err != nil {
		return nil, err
	}
	d := list{
		"Format": f.name, "Format Description": f.description, "Class Name": f.class, "Checksum Type": "none",
		"Backing Store Information": list{"Class Name": f.store, "Name": p.name, "URL": (&url.URL{Scheme: "file", Path: p.path}).String()},
		"Properties": list{"Checksummed": false, "Compressed": "no", "Encrypted": false, "Kernel Compatible": true,
			"Partitioned": scheme != "none", "Software License Agreement": false},
		"Size Information": list{"Total Bytes": img.Size(), "Sector Count": img.Size() / sector, "Total Non-Empty Bytes": nonEmpty,
			"Total Empty Bytes": img.Size() - nonEmpty, "Compressed Bytes": nonEmpty, "Compressed Ratio": 1.0},
		"partitions": list{"partition-scheme": scheme, "block-size": sector, "appendable": false, "burnable": false, "partitions": parts},
		"Segments":   list{"0": p.path},
	}
	if b := img.BandSize(); b > 0 {
		d["band-size"] = b
	}
	if t, ok := img.(container.Tabled); ok {
		describeTables(d, img, t.UDIF())
	}
	h, err := container.EncryptionOf(p.dir, p.name)
	if err == nil && h != nil {
		d["Properties"].(list)["Encrypted"] = true
		store := d["Backing Store Information"].(list)
		store["Class Name"], store["Encryption"] = "CEncryptedEncoding", fmt.Sprintf("AES-%d", h.KeyBits)
	}
	return d, err
}

// nonEmptyBytes is how much of the device is stored: the bands of a bundle, the file of other
// sparse kinds, and all of a raw image.
func nonEmptyBytes(p place, img container.Image) (int64, error) {
	switch {
	case img.BandSize() == 0:
		return img.Size(), nil
	case img.Format() != container.UDSB:
		usage, err := container.UsageOf(p.dir, p.name)
		return min(img.Size(), usage.Apparent), err
	}
	var sum int64
	entries, err := p.dir.ReadDir(filepath.Join(p.name, "bands"))
	if errors.Is(err, fs.ErrNotExist) { // a bundle without bands is all zeros
		return 0, nil
	}
	for _, e := range entries {
		if fi, err := e.Info(); err == nil && fi.Mode().IsRegular() {
			sum += fi.Size()
		}
	}
	return min(img.Size(), sum), err
}

// partitions are the parts of a device as imageinfo lists them.
func partitions(img blockdev.Device) ([]list, string, error) {
	regions, scheme, err := regions(img)
	var out []list
	for _, r := range regions {
		d := list{"partition-name": r.name, "partition-start": r.first, "partition-length": r.count, "partition-hint": r.hint}
		if !r.content || scheme == "none" {
			d["partition-synthesized"] = true
		}
		if r.part != nil {
			d["partition-number"], d["partition-UUID"] = r.number, r.part.ID.String()
		}
		if r.content {
			dev, err := blockdev.Section(img, r.first*sector, r.count*sector)
			if err != nil {
				return nil, "", err
			}
			if k := attach.Identify(dev); k.AppleName != "" {
				d["partition-filesystems"] = list{k.AppleName: k.Label}
			}
		}
		out = append(out, d)
	}
	return out, scheme, err
}

// pmap shows the partition map.
func (c *call) pmap() error {
	return c.look(c.operands[0], func(p place, img container.Image) error {
		regions, scheme, err := regions(img)
		if err != nil {
			return err
		}
		title := map[string]string{"GUID": `1 GPT, "GPT Partition Scheme"`, "none": `0 NONE, "no partition map"`}[scheme]
		for _, other := range otherSchemes {
			if other.name == scheme {
				title = other.title
			}
		}
		fmt.Fprintf(c.out, "MEDIA: %q; Size %s [%d x %d]\nSCHEME: %s\n", p.name, appleSize(img.Size()), img.Size()/sector, sector, title)
		fmt.Fprintf(c.out, "ID Type                 Offset       Size             Name\n-- -------------------- ------------ ---------------- -------------------------\n")
		for _, r := range regions {
			if c.has("-simple") && !r.content {
				continue
			}
			id := "  "
			if r.number > 0 {
				id = fmt.Sprintf("%2d", r.number)
			}
			fmt.Fprintf(c.out, "%s %-20s %12d %-16s %s\n", id, r.hint, r.first, appleSize(r.count*sector), shown(r.name))
			if c.has("-complete") && r.part != nil {
				fmt.Fprintf(c.out, "   type %s, identifier %s, attributes %#x, sectors %d to %d\n", r.part.Type, r.part.ID, r.part.Attributes, r.part.First, r.part.Last)
			}
		}
		return nil
	})
}

package imagetool

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"path/filepath"

	"dmgbench/internal/container"
	"dmgbench/internal/container/udif"
)

// imageinfo describes an image file.
func (c *call) imageinfo() error {
	return c.withImage(c.operands[0], peek, func(i *image) error {
		if err := c.warnOfRaw(i); err != nil {
			return err
		}
		switch {
		case c.has("-format"):
			fmt.Fprintln(c.out, i.formatInfo().name)
			return nil
		case c.has("-checksum"):
			_, value := storedChecksum(i)
			fmt.Fprintln(c.out, cmp.Or(value, "none"))
			return nil
		}
		d, err := describeImage(i)
		if err != nil {
			return err
		}
		return c.printResult(d, "%s", formatTree(d, ""))
	})
}

// describeImage is the dictionary of imageinfo.
func describeImage(i *image) (dict, error) {
	f := i.formatInfo()
	full, err := nonEmptyBytes(i)
	if err != nil {
		return nil, err
	}
	parts, scheme, err := describePartitions(i)
	if err != nil {
		return nil, err
	}
	store := dict{"Class Name": f.store, "Name": i.name, "URL": (&url.URL{Scheme: "file", Path: i.path}).String()}
	properties := dict{"Checksummed": false, "Compressed": "no", "Encrypted": false, "Kernel Compatible": true,
		"Partitioned": scheme != "none", "Software License Agreement": false}
	sizes := dict{"Total Bytes": i.Size(), "Sector Count": i.Size() / sector, "Total Non-Empty Bytes": full,
		"Total Empty Bytes": i.Size() - full, "Compressed Bytes": full, "Compressed Ratio": 1.0}
	d := dict{
		"Format": f.name, "Format Description": f.description, "Class Name": f.class, "Checksum Type": "none",
		"Backing Store Information": store, "Properties": properties, "Size Information": sizes,
		"partitions": dict{"partition-scheme": scheme, "block-size": sector, "appendable": false, "burnable": false,
			"partitions": parts},
		"Segments": dict{"0": i.path},
	}
	if b := i.BandSize(); b > 0 {
		d["band-size"] = b
	}
	if im := tablesOf(i); im != nil {
		describeTables(im, properties, sizes)
		kind, value := storedChecksum(i)
		if d["Checksum Type"] = kind; value != "" {
			d["Checksum Value"], properties["Checksummed"] = value, true
		}
	}
	h, err := container.EncryptionOf(i.dir, i.name)
	if err == nil && h != nil {
		properties["Encrypted"] = true
		store["Class Name"], store["Encryption"] = "CEncryptedEncoding", fmt.Sprintf("AES-%d", h.KeyBits)
	}
	return d, err
}

// describeTables fills in what the tables of a UDIF image contain.
func describeTables(im *udif.Image, properties, sizes dict) {
	var full, stored int64 // bytes
	compressed := false
	for k, u := range im.Usage() {
		if k != udif.KindZero && k != udif.KindIgnore {
			full, stored, compressed = full+u.Bytes, stored+u.Stored, compressed || k.Compressed()
		}
	}
	properties["Compressed"], properties["Software License Agreement"] = compressed, im.License()
	sizes["Total Non-Empty Bytes"], sizes["Total Empty Bytes"] = full, im.Size()-full
	if sizes["Compressed Bytes"] = stored; full > 0 {
		sizes["Compressed Ratio"] = float64(stored) / float64(full)
	}
}

// nonEmptyBytes is how much of the device is stored: the bands of a bundle, the file of other sparse kinds, and all of
// a raw image.
func nonEmptyBytes(i *image) (int64, error) {
	switch {
	case i.BandSize() == 0:
		return i.Size(), nil
	case i.Format() != container.UDSB:
		usage, err := container.UsageOf(i.dir, i.name)
		return min(i.Size(), usage.Apparent), err
	}
	entries, err := i.dir.ReadDir(filepath.Join(i.name, "bands"))
	if errors.Is(err, fs.ErrNotExist) { // a bundle without bands is all zeros
		return 0, nil
	}
	var sum int64
	for _, e := range entries {
		if fi, err := e.Info(); err == nil && fi.Mode().IsRegular() {
			sum += fi.Size()
		}
	}
	return min(i.Size(), sum), err
}

// describePartitions is the list of the parts of a device in imageinfo, and the scheme.
func describePartitions(i *image) ([]dict, string, error) {
	regions, scheme, err := i.partitionMap()
	if err != nil {
		return nil, "", err
	}
	var out []dict
	for _, r := range regions {
		d := dict{"partition-name": r.name, "partition-start": r.first, "partition-length": r.count,
			"partition-hint": r.hint}
		if !r.content || scheme == "none" {
			d["partition-synthesized"] = true
		}
		if r.part != nil {
			d["partition-number"], d["partition-UUID"] = r.number, r.part.ID.String()
		}
		if r.volume.AppleName != "" {
			d["partition-filesystems"] = dict{r.volume.AppleName: r.volume.Label}
		}
		out = append(out, d)
	}
	return out, scheme, nil
}

// pmap shows the partition map.
func (c *call) pmap() error {
	return c.withImage(c.operands[0], peek, func(i *image) error {
		regions, scheme, err := i.partitionMap()
		if err != nil {
			return err
		}
		titles := map[string]string{"GUID": `1 GPT, "GPT Partition Scheme"`, "none": `0 NONE, "no partition map"`}
		for _, other := range otherSchemes {
			if other.name == scheme {
				titles[scheme] = other.title
			}
		}
		fmt.Fprintf(c.out, "MEDIA: %q; Size %s [%d x %d]\nSCHEME: %s\n", i.name, appleSize(i.Size()), i.Size()/sector,
			sector, titles[scheme])
		fmt.Fprint(c.out, "ID Type                 Offset       Size             Name\n"+
			"-- -------------------- ------------ ---------------- -------------------------\n")
		for _, r := range regions {
			if c.has("-simple") && !r.content {
				continue
			}
			id := "  "
			if r.number > 0 {
				id = fmt.Sprintf("%2d", r.number)
			}
			fmt.Fprintf(c.out, "%s %-20s %12d %-16s %s\n", id, r.hint, r.first, appleSize(r.count*sector),
				printable(r.name))
			if c.has("-complete") && r.part != nil {
				fmt.Fprintf(c.out, "   type %s, identifier %s, attributes %#x, sectors %d to %d\n", r.part.Type,
					r.part.ID, r.part.Attributes, r.part.First, r.part.Last)
			}
		}
		return nil
	})
}

// infoImage is `diskutil image info`.
func (c *call) infoImage() error {
	return c.withImage(c.operands[0], peek, func(i *image) error {
		f := i.formatInfo()
		d := dict{"Image Format": cmp.Or(f.image, f.name), "Format Description": f.description,
			"Encryption Info": dict{"Is Encrypted": c.secrets.encrypted},
			"Size Info":       dict{"Total Bytes": i.Size(), "Sector Count": i.Size() / sector}}
		if c.has("--extra") {
			parts, scheme, err := describePartitions(i)
			if err != nil {
				return err
			}
			d["Partition Info"] = dict{"partition-scheme": scheme, "partitions": parts}
		}
		return c.printResult(d, "%s", formatTree(d, ""))
	})
}

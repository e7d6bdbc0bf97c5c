package imagetool

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"path/filepath"

	"dmgbench/internal/attach"
	"dmgbench/internal/container"
	"dmgbench/internal/container/files"
	"dmgbench/internal/container/udif"
	"dmgbench/internal/image"
)

// imageinfo describes an image file.
func (c *call) imageinfo() error {
	return c.withImage(c.operands[0], peek, func(i *imageFile) error {
		if err := c.warnOfRaw(i); err != nil {
			return err
		}
		switch {
		case c.has("format"):
			fmt.Fprintln(c.out, i.format().Name)
			return nil
		case c.has("checksum"):
			_, value := storedChecksum(i)
			fmt.Fprintln(c.out, cmp.Or(value, "none"))
			return nil
		}
		d, err := describeImage(i)
		if err != nil {
			return err
		}
		return c.printTree(d)
	})
}

// describeImage is the dictionary of imageinfo, with Apple's keys. What has no
// meaning here has the value that Apple's tool prints for most images.
func describeImage(i *imageFile) (dict, error) {
	f := i.format()
	full, err := nonEmptyBytes(i)
	if err != nil {
		return nil, err
	}
	info, err := i.inspect()
	if err != nil {
		return nil, err
	}
	store := dict{"Class Name": f.Store, "Name": i.name, "URL": (&url.URL{Scheme: "file", Path: i.path}).String()}
	properties := dict{"Checksummed": false, "Compressed": "no", "Encrypted": false, "Kernel Compatible": true,
		"Partitioned": info.Scheme != attach.SchemeNone, "Software License Agreement": false}
	sizes := dict{"Total Bytes": i.Size(), "Sector Count": i.Size() / sector, "Total Non-Empty Bytes": full,
		"Total Empty Bytes": i.Size() - full, "Compressed Bytes": full, "Compressed Ratio": 1.0}
	d := dict{
		"Format": f.Name, "Format Description": f.Description, "Class Name": f.Class, "Checksum Type": "none",
		"Backing Store Information": store, "Properties": properties, "Size Information": sizes,
		"partitions": dict{"partition-scheme": info.Scheme, "block-size": sector, "appendable": false,
			"burnable": false, "partitions": describePartitions(info)},
		"Segments": dict{"0": i.path},
	}
	if b := i.BandSize(); b > 0 {
		d["band-size"] = b
	}
	if im := i.tables(); im != nil {
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

// describeTables fills in what the tables of a UDIF image contain: sizes are
// sums over their runs, the ratio is of stored to full bytes.
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

// nonEmptyBytes is how much of the device is stored: the bands of a bundle, the
// file of other sparse kinds, and all of a raw image.
func nonEmptyBytes(i *imageFile) (int64, error) {
	name := i.name
	switch {
	case i.BandSize() == 0:
		return i.Size(), nil
	case i.Format() == image.UDSB:
		name = filepath.Join(i.name, "bands")
	}
	usage, err := files.UsageOf(context.Background(), i.dir, name, 0, 0)
	if errors.Is(err, fs.ErrNotExist) { // a bundle without bands is all zeros
		err = nil
	}
	return min(i.Size(), usage.Apparent), err
}

// describePartitions is the list of the parts of a device in imageinfo.
func describePartitions(info *attach.ImageInfo) (list []dict) {
	for _, r := range info.Regions {
		d := dict{"partition-name": r.Name, "partition-start": r.First, "partition-length": r.Count,
			"partition-hint": r.Hint}
		if !r.Content || info.Scheme == attach.SchemeNone {
			d["partition-synthesized"] = true
		}
		if r.Part != nil {
			d["partition-number"], d["partition-UUID"] = r.Number, r.Part.ID.String()
		}
		if r.Volume.AppleName != "" {
			d["partition-filesystems"] = dict{r.Volume.AppleName: r.Volume.Label}
		}
		list = append(list, d)
	}
	return list
}

// schemes are the partition schemes: their content hint in lists of devices,
// and their line in pmap.
var schemes = map[string]struct{ hint, title string }{
	attach.SchemeGUID: {"GUID_partition_scheme", `1 GPT, "GPT Partition Scheme"`},
	"fdisk":           {"FDisk_partition_scheme", `1 FDISK, "FDisk Partition Scheme"`},
	"Apple":           {"Apple_partition_scheme", `1 APM, "Apple Partition Scheme"`},
	attach.SchemeNone: {"", `0 NONE, "no partition map"`},
}

// pmap shows the partition map: with -simple only what has content, with
// -complete types and identifiers too. Offsets are in sectors.
func (c *call) pmap() error {
	return c.withImage(c.operands[0], peek, func(i *imageFile) error {
		info, err := i.inspect()
		if err != nil {
			return err
		}
		fmt.Fprintf(c.out, "MEDIA: %q; Size %s [%d x %d]\nSCHEME: %s\n", i.name, appleSize(i.Size()), i.Size()/sector,
			sector, schemes[info.Scheme].title)
		fmt.Fprint(c.out, "ID Type                 Offset       Size             Name\n"+
			"-- -------------------- ------------ ---------------- -------------------------\n")
		for _, r := range info.Regions {
			if c.has("simple") && !r.Content {
				continue
			}
			id := ""
			if r.Number > 0 {
				id = fmt.Sprint(r.Number)
			}
			fmt.Fprintf(c.out, "%2s %-20s %12d %-16s %s\n", id, r.Hint, r.First, appleSize(r.Count*sector),
				printable(r.Name))
			if c.has("complete") && r.Part != nil {
				fmt.Fprintf(c.out, "   type %s, identifier %s, attributes %#x, sectors %d to %d\n", r.Part.Type,
					r.Part.ID, r.Part.Attributes, r.Part.First, r.Part.Last)
			}
		}
		return nil
	})
}

// infoImage is `diskutil image info`, which has other keys than imageinfo, and
// partitions only with --extra.
func (c *call) infoImage() error {
	return c.withImage(c.operands[0], peek, func(i *imageFile) error {
		f := i.format()
		d := dict{"Image Format": cmp.Or(f.ImageType, f.Name), "Format Description": f.Description,
			"Encryption Info": dict{"Is Encrypted": c.secrets.encrypted},
			"Size Info":       dict{"Total Bytes": i.Size(), "Sector Count": i.Size() / sector}}
		if c.has("extra") {
			info, err := i.inspect()
			if err != nil {
				return err
			}
			d["Partition Info"] = dict{"partition-scheme": info.Scheme, "partitions": describePartitions(info)}
		}
		return c.printTree(d)
	})
}

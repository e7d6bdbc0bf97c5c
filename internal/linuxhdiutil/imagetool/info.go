package imagetool

import (
	"cmp"
	"context"
	"fmt"
	"net/url"
	"os/user"
	"path/filepath"
	"strconv"
	"strings"

	"dmgbench/internal/image"
	"dmgbench/internal/image/container"
	"dmgbench/internal/image/container/files"
	"dmgbench/internal/image/container/udif"
	"dmgbench/internal/image/gpt"
	"dmgbench/internal/linuxhdiutil/attach"
)

// entity is one device of an attached image, as both tools list them.
type entity struct {
	attach.Attached
	// device is the path of the device; in mode fuse no such device exists, and
	// the path only names it.
	device string
	// hint is Apple's content-hint, guid the type of the partition as it is on
	// the disk.
	hint, guid string
	// volume is set for the device with the file system that is or can be
	// mounted.
	volume bool
}

// entities are the devices of an attached image, the whole disk first.
func entities(a attach.Attached) []entity {
	whole, scheme := deviceName(a), schemes[a.Scheme].hint
	listed := whole == a.Partition
	list := []entity{{Attached: a, device: whole, hint: cmp.Or(scheme, a.Hint), guid: scheme, volume: listed}}
	for _, p := range a.Parts {
		device := fmt.Sprintf("%sp%d", whole, p.Number)
		listed = listed || device == a.Partition
		list = append(list, entity{a, device, p.Hint, p.Type, device == a.Partition})
	}
	if a.Partition == "" || a.Mode == attach.ModeFUSE { // no partition has a device of its own
		list[len(list)-1].volume = true
	} else if !listed {
		list = append(list, entity{Attached: a, device: a.Partition, volume: true})
	}
	return list
}

// deviceName is the device of the whole image. Without a loop device only a
// process serves the image, which is then named by its number.
func deviceName(a attach.Attached) string {
	if a.Mode != attach.ModeFUSE {
		return a.Device
	}
	return fmt.Sprintf("/dev/fuse%d", a.HelperPID)
}

// shortName is a device in messages.
func shortName(a attach.Attached) string { return strings.TrimPrefix(deviceName(a), "/dev/") }

// printAttached prints the warnings and the result of attach: a line for each
// device, or the list in the tool's dialect.
func (c *call) printAttached(a attach.Attached) error {
	for _, w := range a.Warnings {
		c.warn("%s", w)
	}
	if a.Mode == attach.ModeFUSE && a.MountPoint == "" {
		c.messagef("no loop device: the device is the file %s", a.Device)
	}
	var list []dict
	var text strings.Builder
	for n, e := range entities(a) {
		list = append(list, e.dict(c.tool, n == 0))
		if c.tool == "hdiutil" {
			text.WriteString(e.format())
		} else {
			fmt.Fprintln(&text, e.device)
		}
	}
	return c.printResult(dict{"system-entities": list}, "%s", text.String())
}

// format is the line of a device in attach and info. Programs cut it at the
// TABs; hints are cut at 31 characters, as hdiutil does it.
func (e entity) format() string {
	point := ""
	if e.volume {
		point = e.MountPoint
	}
	return fmt.Sprintf("%-20s\t%-31.31s\t%s\n", e.device, e.hint, point)
}

// dict is the entry of a device in a list, in the dialect of attach of one of
// the tools, or of info. Keys of the volume without a value are left out, and
// diskutil has no /dev/.
func (e entity) dict(dialect string, first bool) dict {
	kind, name := attach.AppleNames(e.Filesystem)
	d, volume := dict{"dev-entry": e.device, "content-hint": e.hint}, dict{"mount-point": e.MountPoint}
	switch dialect {
	case "hdiutil":
		d["unmapped-content-hint"], d["potentially-mountable"] = e.guid, e.volume && e.Filesystem != ""
		volume["volume-kind"] = kind
	case "diskutil":
		d["dev-entry"] = filepath.Base(e.device)
		if first && e.Size > 0 {
			d["size"] = e.Size
		}
		volume["filesystem-type"], volume["filesystem-name"], volume["volume-name"] = kind, name, e.VolumeName
	}
	for key, v := range volume {
		if e.volume && v != "" {
			d[key] = v
		}
	}
	return d
}

// info lists the attached images, and once those with a process that died.
// Programs find their images by the key image-path and take the devices and
// mount points from system-entities, so that keys and types are Apple's. Keys
// without a meaning on Linux have Apple's usual values.
func (c *call) info() error {
	all, err := c.env.Attacher.List(c.ctx)
	if err != nil {
		return err
	}
	name := strconv.Itoa(c.env.UID)
	if u, err := user.LookupId(name); err == nil {
		name = u.Username
	}
	var lost []dict
	images := []dict{}
	text := formatText("driver", c.env.Version)
	for _, a := range all {
		if a.Dead {
			text += formatText("lost", dict{"image": a.Image, "death": describeDeath(a)})
			lost = append(lost, dict{"image-path": a.Image, "dev-entry": deviceName(a), "hdid-pid": a.HelperPID})
			continue
		}
		f, _ := image.FormatNamed(a.Format)
		d := dict{"image-path": a.Image, "image-type": f.Attached, "blockcount": a.Size / sector, "blocksize": sector,
			"writeable": !a.ReadOnly, "autodiskmount": true, "removable": true, "image-encrypted": a.Encrypted,
			"diskimages2": false, "hdid-pid": a.HelperPID, "owner-uid": c.env.UID}
		text += formatText("attached", dict{"d": d, "user": name, "mode": a.Mode})
		var list []dict
		for _, e := range entities(a) {
			if e.guid != (gpt.GUID{}).String() { // info has GUIDs as they are on the disk
				e.hint = cmp.Or(e.guid, e.hint)
			}
			list = append(list, e.dict("info", false))
			text += e.format()
		}
		d["system-entities"] = list
		images = append(images, d)
	}
	d := dict{"framework": c.env.Version, "revision": c.env.Version, "vendor": "dmgbench", "images": images}
	if lost != nil {
		d["dmgbench-lost"] = lost
	}
	return c.printResult(d, "%s", text)
}

// describeDeath describes what a dead process has left of an attachment. The
// attacher has released it by now.
func describeDeath(a attach.Attached) string {
	if a.Unfinished {
		return "the command that attached it was ended before it was done; its device and mounts were removed"
	}
	return "the process that served " + deviceName(a) + " died; device and mount were released, unflushed data is lost"
}

// imageinfo describes an image file: a dictionary with Apple's keys. What has no
// meaning here has the value that Apple's tool prints for most images.
func (c *call) imageinfo(i *imageFile) error {
	f, im := i.format(), i.tables()
	kind, value := "none", ""
	if im != nil && im.Trailer().Master.Type != udif.ChecksumNone {
		sum := im.Trailer().Master
		kind, value = checksumName(sum.Type), fmt.Sprintf("$%X", sum.Value())
	}
	switch {
	case c.has("format"):
		return c.printf("%s\n", f.Name)
	case c.has("checksum"):
		return c.printf("%s\n", cmp.Or(value, "none"))
	}
	full, err1 := nonEmptyBytes(i)
	info, err2 := i.inspect()
	h, err3 := container.EncryptionOf(i.dir, i.name)
	if err := cmp.Or(err1, err2, err3); err != nil {
		return err
	}
	store := dict{"Class Name": f.Store, "Name": i.name, "URL": (&url.URL{Scheme: "file", Path: i.path}).String()}
	if h != nil {
		store["Class Name"], store["Encryption"] = "CEncryptedEncoding", fmt.Sprintf("AES-%d", h.KeyBits)
	}
	properties := dict{"Checksummed": false, "Compressed": "no", "Encrypted": h != nil, "Kernel Compatible": true,
		"Partitioned": info.Scheme != attach.SchemeNone, "Software License Agreement": false}
	sizes := dict{"Total Bytes": i.Size(), "Sector Count": i.Size() / sector, "Total Non-Empty Bytes": full,
		"Total Empty Bytes": i.Size() - full, "Compressed Bytes": full, "Compressed Ratio": 1.0}
	d := dict{
		"Format": f.Name, "Format Description": f.Description, "Class Name": f.Class, "Checksum Type": kind,
		"Backing Store Information": store, "Properties": properties, "Size Information": sizes,
		"partitions": dict{"partition-scheme": info.Scheme, "block-size": sector, "appendable": false,
			"burnable": false, "partitions": describePartitions(info)},
		"Segments": dict{"0": i.path},
	}
	if b := i.BandSize(); b > 0 {
		d["band-size"] = b
	}
	if value != "" {
		d["Checksum Value"], properties["Checksummed"] = value, true
	}
	if im != nil {
		describeTables(im, properties, sizes)
	}
	return c.printTree(d)
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
	properties["Compressed"], properties["Software License Agreement"] = compressed, im.License
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
func (c *call) pmap(i *imageFile) error {
	info, err := i.inspect()
	if err != nil {
		return err
	}
	return c.printf("%s", formatText("pmap", dict{"name": i.name, "sectors": i.Size() / sector,
		"title": schemes[info.Scheme].title, "regions": info.Regions, "simple": c.has("simple"),
		"complete": c.has("complete")}))
}

// infoImage is `diskutil image info`, which has other keys than imageinfo, and
// partitions only with --extra.
func (c *call) infoImage(i *imageFile) error {
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
}

package imagetool

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"

	"dmgbench/internal/attach"
	"dmgbench/internal/blockdev"
	"dmgbench/internal/container"
	"dmgbench/internal/gpt"
)

// entity is one device of an attached image, as both tools list them.
type entity struct {
	device, hint, guid string // hint for people, guid of the partition type
	volume             bool   // carries the file system
}

// entities are the devices of an attached image, the whole disk first. Where neither the device nor the image can be looked
// at, or something else has the image's name by now, they are without what is known of them.
func (c *call) entities(a Attached) []entity {
	list := c.listed(a)
	if a.Mode != attach.ModeFUSE && a.Partition != "" && !slices.ContainsFunc(list, func(e entity) bool { return e.volume }) {
		list = append(list, entity{device: a.Partition, volume: true})
	}
	return list
}

func (c *call) listed(a Attached) []entity {
	disk := entity{device: whole(a), volume: a.Partition == "" || a.Partition == whole(a) || a.Mode == attach.ModeFUSE}
	regions, scheme := c.regionsOf(a)
	if scheme != "GUID" {
		if len(regions) == 1 {
			disk.hint = regions[0].hint
		}
		for _, other := range otherSchemes {
			if other.name == scheme {
				disk.hint, disk.guid = other.hint, other.hint
			}
		}
		return []entity{disk}
	}
	disk.hint, disk.guid = "GUID_partition_scheme", "GUID_partition_scheme"
	list := []entity{disk}
	last := -1
	for _, r := range regions {
		if r.part != nil {
			list = append(list, entity{device: fmt.Sprintf("%sp%d", whole(a), r.number), hint: r.hint, guid: r.part.Type.String()})
			last = len(list) - 1
		}
	}
	list[0].volume = false
	for n := range list {
		list[n].volume = list[n].device == a.Partition
	}
	if last > 0 && (a.Partition == "" || a.Mode == attach.ModeFUSE) {
		list[last].volume = true
	}
	return list
}

// regionsOf finds the regions of an attached image. Of an encrypted one, or one that was deleted or renamed, the device
// tells, which shows the content; without a device the passphrase does, if the command was given it.
func (c *call) regionsOf(a Attached) ([]region, string) {
	if a.Encrypted {
		if d, err := openDevice(a.Device); err == nil {
			defer d.Close()
			return known(d)
		}
	}
	if p, err := at(a.Image); err == nil {
		defer p.close()
		if img, err := container.Open(p.dir, p.name, container.OpenOptions{ReadOnly: true, Keys: c.secrets.keys[p.path]}); err == nil {
			defer img.Close()
			return known(img)
		}
	}
	d, err := openDevice(a.Device)
	if err != nil {
		return nil, ""
	}
	defer d.Close()
	return known(d)
}

// known are the regions of a device as far as they can be read.
func known(dev blockdev.Device) ([]region, string) {
	regions, scheme, err := regions(dev)
	if err != nil {
		return nil, ""
	}
	return regions, scheme
}

// attachedDevice is the device of an attached image, for reading.
type attachedDevice struct {
	*os.File
	size int64
}

func openDevice(path string) (*attachedDevice, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	size, err := f.Seek(0, io.SeekEnd)
	if err != nil {
		f.Close()
		return nil, err
	}
	return &attachedDevice{f, size}, nil
}

func (d *attachedDevice) Size() int64                        { return d.size }
func (d *attachedDevice) Discard(int64, int64) error         { return container.ErrReadOnly }
func (d *attachedDevice) WriteAt([]byte, int64) (int, error) { return 0, container.ErrReadOnly }
func (d *attachedDevice) Flush() error                       { return nil }

// printAttached prints what attach prints: a line for each device, or the list in the tool's dialect.
func (c *call) printAttached(a Attached) error {
	switch {
	case c.tool == "diskutil" && c.has("--plist"):
		return c.printPlist(list{"system-entities": c.diskutilEntities(a)})
	case c.tool == "diskutil":
		for _, e := range c.entities(a) {
			fmt.Fprintf(c.out, "%s\n", e.device)
		}
		return nil
	case c.has("-plist"):
		return c.printPlist(list{"system-entities": c.hdiutilEntities(a)})
	}
	for _, e := range c.entities(a) {
		c.printLine(a, e, e.hint)
	}
	return nil
}

func (c *call) printLine(a Attached, e entity, hint string) {
	point := ""
	if e.volume {
		point = a.MountPoint
	}
	fmt.Fprintf(c.out, "%-20s\t%-31.31s\t%s\n", e.device, hint, point)
}

func (c *call) hdiutilEntities(a Attached) []list {
	var out []list
	for _, e := range c.entities(a) {
		d := list{"dev-entry": e.device, "content-hint": e.hint, "unmapped-content-hint": e.guid, "potentially-mountable": e.volume && a.Filesystem != ""}
		if e.volume && a.Filesystem != "" {
			d["volume-kind"], _ = attach.AppleNames(a.Filesystem)
		}
		if e.volume && a.MountPoint != "" {
			d["mount-point"] = a.MountPoint
		}
		out = append(out, d)
	}
	return out
}

// diskutilEntities are the same in diskutil's dialect: no /dev/, other keys.
func (c *call) diskutilEntities(a Attached) []list {
	var out []list
	for n, e := range c.entities(a) {
		d := list{"dev-entry": filepath.Base(e.device), "content-hint": e.hint}
		if n == 0 && a.Size > 0 {
			d["size"] = a.Size
		}
		if e.volume && a.Filesystem != "" {
			d["filesystem-type"], d["filesystem-name"] = attach.AppleNames(a.Filesystem)
		}
		if e.volume && a.VolumeName != "" {
			d["volume-name"] = a.VolumeName
		}
		if e.volume && a.MountPoint != "" {
			d["mount-point"] = a.MountPoint
		}
		out = append(out, d)
	}
	return out
}

// rawHint is the hint of the info list: GUIDs as they are on the disk.
func (e entity) rawHint() string {
	if e.guid != "" && e.guid != (gpt.GUID{}).String() {
		return e.guid
	}
	return e.hint
}

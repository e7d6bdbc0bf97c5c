package imagetool

import (
	"cmp"
	"errors"
	"io"
	"slices"

	"dmgbench/internal/attach"
	"dmgbench/internal/blockdev"
	"dmgbench/internal/container/udif"
	"dmgbench/internal/exfat"
	"dmgbench/internal/gpt"
)

// region is a part of a device: a partition, a table, or free space.
type region struct {
	name, hint   string // as imageinfo prints them
	first, count int64  // sectors
	number       int    // of a partition of a GUID table, from 1; 0 for others
	content      bool   // a partition, or the whole device if it has no partition map: no table and no gap
	part         *gpt.Partition
	volume       attach.Volume // of content
}

// section is the region as a device.
func (r region) section(dev blockdev.Device) (blockdev.Device, error) {
	return blockdev.Section(dev, r.first*sector, r.count*sector)
}

// otherSchemes are what imageinfo and attach call the schemes that are shown but not changed.
var otherSchemes = map[udif.Scheme]struct{ name, hint, title string }{
	udif.SchemeMBR: {"fdisk", "FDisk_partition_scheme", `1 FDISK, "FDisk Partition Scheme"`},
	udif.SchemeAPM: {"Apple", "Apple_partition_scheme", `1 APM, "Apple Partition Scheme"`},
}

// readRegions returns all parts of a device in order, and the scheme that divides it: GUID, fdisk, Apple, or none.
func readRegions(dev blockdev.Device) (list []region, scheme string, err error) {
	t, _, err := gpt.Read(dev)
	switch {
	case err == nil:
		list, err = guidRegions(t, dev.Size()/sector)
		scheme = "GUID"
	case gpt.IsUnusable(err):
		list, scheme, err = otherRegions(dev)
	}
	for i := range list {
		if r := &list[i]; r.content && err == nil {
			var d blockdev.Device
			if d, err = r.section(dev); err == nil {
				r.volume = attach.Identify(d)
			}
		}
	}
	if err != nil {
		return nil, "", err
	}
	if scheme == "none" {
		list[0].hint = list[0].volume.Hint
	}
	return list, scheme, nil
}

// guidRegions are the parts of a device with a GUID table.
func guidRegions(t *gpt.Table, sectors int64) (list []region, err error) {
	layout, err := udif.Partitioned(udif.SchemeGPT, uint64(sectors), udif.GPTParts(t))
	for _, p := range layout.Parts {
		r := region{name: p.Name, hint: p.Type, first: int64(p.First), count: int64(p.Sectors)}
		i := slices.IndexFunc(t.Partitions, func(q gpt.Partition) bool { return q.First == p.First })
		if i >= 0 {
			r.part, r.content, r.number = &t.Partitions[i], true, t.Partitions[i].Index+1
			if r.part.Type == gpt.EFISystem {
				r.hint = "EFI"
			}
		}
		list = append(list, r)
	}
	return list, err
}

// otherRegions are the parts of a device without a GUID table.
func otherRegions(dev blockdev.Device) ([]region, string, error) {
	layout, err := udif.ProbeLayout(dev, dev.Size())
	if err != nil {
		return nil, "", err
	}
	other, ok := otherSchemes[layout.Scheme]
	if !ok {
		return []region{{name: "whole disk", count: dev.Size() / sector, content: true}}, "none", nil
	}
	var list []region
	for _, p := range layout.Parts {
		list = append(list, region{name: p.Name, hint: p.Type, first: int64(p.First), count: int64(p.Sectors),
			content: p.First > 0 && p.Type != "Apple_Free" && p.Type != "Apple_partition_map"})
	}
	return list, other.name, nil
}

// findVolume returns the device of the file system of an image: the last partition of a GUID table, which grows and
// shrinks with the image, or the whole device. It is nil if there are none.
func findVolume(dev blockdev.Device) (vol blockdev.Device, p *gpt.Partition, err error) {
	t, _, err := gpt.Read(dev)
	switch {
	case errors.Is(err, gpt.ErrNoTable):
		return dev, nil, nil
	case err != nil:
		return nil, nil, err
	case len(t.Partitions) == 0:
		return nil, nil, nil
	}
	last := slices.MaxFunc(t.Partitions, func(a, b gpt.Partition) int { return cmp.Compare(a.First, b.First) })
	vol, err = blockdev.Section(dev, last.Offset(), last.Size())
	return vol, &last, err
}

// mountExFAT mounts the ExFAT volume of an image in this process, without writing. On a device without a GUID table it
// is the last partition with a file system.
func (i *image) mountExFAT() (*exfat.Volume, error) {
	vol, _, err := findVolume(i.Image)
	if err != nil {
		return nil, err
	}
	kind := attach.Volume{}
	if vol != nil {
		if _, err := vol.ReadAt(make([]byte, min(sector, vol.Size())), 0); err != nil && !errors.Is(err, io.EOF) {
			return nil, err // an unreadable volume is not a missing one
		}
		kind = attach.Identify(vol)
	}
	if vol != nil && kind.AppleName == "" {
		list, scheme, err := i.partitionMap()
		if err != nil {
			return nil, err
		}
		for _, r := range list {
			if scheme != "GUID" && r.volume.AppleName != "" {
				kind = r.volume
				if vol, err = r.section(i.Image); err != nil {
					return nil, err
				}
			}
		}
	}
	switch kind.AppleName {
	case ours:
		return exfat.Mount(vol, exfat.MountOptions{ReadOnly: true})
	case "":
		return nil, refuse("no ExFAT volume on the image")
	}
	return nil, refuse("%s volumes cannot be read without mounting", kind.AppleName)
}

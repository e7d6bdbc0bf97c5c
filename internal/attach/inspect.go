package attach

import (
	"errors"
	"fmt"
	"path/filepath"
	"slices"

	"dmgbench/internal/blockdev"
	"dmgbench/internal/container"
	"dmgbench/internal/container/crypt"
	"dmgbench/internal/container/udif"
	"dmgbench/internal/gpt"
	"dmgbench/internal/hostio"
)

// Region is a part of a device: a partition, a partition table, or free space.
type Region struct {
	Name, Hint   string         // as imageinfo prints them
	First, Count int64          // sectors of 512 bytes
	Number       int            // of a partition of a GUID table, from 1; 0 for others
	Content      bool           // a partition, or the whole device if it has no partition map
	Part         *gpt.Partition // of a GUID table
	Volume       Volume         // of content
	Err          error          // why the start of the content cannot be read
}

// Section is the region as a device.
func (r Region) Section(dev blockdev.Device) (blockdev.Device, error) {
	return blockdev.Section(dev, r.First*gpt.SectorSize, r.Count*gpt.SectorSize)
}

// ImageInfo is what [Inspect] found on a device.
type ImageInfo struct {
	Scheme   string        // that divides the device: SchemeGUID, "fdisk", "Apple" or SchemeNone
	Regions  []Region      // all parts of the device, in order
	Table    *gpt.Table    // nil if there is none
	Warnings []gpt.Warning // about the table
	Damage   error         // why a GUID table that is there cannot be used; nil if it can, or there is none
	Whole    Volume        // without a usable GUID table: the volume that starts with the device

	format string
	size   int64 // bytes
	mount  int   // index in Regions of the partition to be mounted; -1: the whole device
	// keys are those of an encrypted image, derived once for all that is
	// opened; the caller's own, or ours to wipe.
	keys crypt.Keys
}

// Schemes that callers branch on.
const (
	SchemeGUID = "GUID"
	SchemeNone = "none"
)

// otherSchemes are the names of the schemes that are shown but not changed.
var otherSchemes = map[udif.Scheme]string{udif.SchemeMBR: "fdisk", udif.SchemeAPM: "Apple"}

// Inspect finds out how a device is divided and which volumes it has. It reads
// the partition tables and the first blocks of every partition, once. The error
// is the device's.
func Inspect(dev blockdev.Device) (info *ImageInfo, err error) {
	info = &ImageInfo{Scheme: SchemeNone, size: dev.Size(), mount: -1}
	if image, ok := dev.(container.Image); ok {
		info.format = image.Format()
	}
	info.Table, info.Warnings, err = gpt.Read(dev)
	switch {
	case err == nil:
		err = info.addPartitions()
	case gpt.IsUnusable(err):
		if !errors.Is(err, gpt.ErrNoTable) {
			info.Damage = err
		}
		err = info.addOthers(dev)
	}
	if err != nil {
		return nil, err
	}
	for n := range info.Regions {
		if r := &info.Regions[n]; r.Content && info.Scheme != SchemeNone {
			part, err := r.Section(dev)
			if err != nil {
				return nil, err
			}
			r.Volume, r.Err = Identify(part)
		}
	}
	info.chooseVolume()
	return info, nil
}

// addPartitions lists the parts of a device with a GUID table.
func (s *ImageInfo) addPartitions() error {
	t := s.Table
	s.Scheme = SchemeGUID
	layout, err := udif.Partitioned(udif.SchemeGPT, uint64(s.size/gpt.SectorSize), udif.GPTParts(t))
	for _, p := range layout.Parts {
		r := Region{Name: p.Name, Hint: p.Type, First: int64(p.First), Count: int64(p.Sectors)}
		i := slices.IndexFunc(t.Partitions, func(q gpt.Partition) bool { return q.First == p.First })
		if i >= 0 {
			r.Part, r.Content, r.Number = &t.Partitions[i], true, t.Partitions[i].Index+1
			if r.Part.Type == gpt.EFISystem {
				r.Hint = "EFI"
			}
		}
		s.Regions = append(s.Regions, r)
	}
	return err
}

// addOthers lists the parts of a device without a usable GUID table.
func (s *ImageInfo) addOthers(dev blockdev.Device) error {
	layout, err := udif.ProbeLayout(dev, s.size)
	if err != nil {
		return err
	}
	var unreadable error
	s.Whole, unreadable = Identify(dev)
	scheme, ok := otherSchemes[layout.Scheme]
	if !ok {
		s.Regions = []Region{{Name: "whole disk", Hint: s.Whole.Hint, Count: s.size / gpt.SectorSize, Content: true,
			Volume: s.Whole, Err: unreadable}}
		return nil
	}
	s.Scheme = scheme
	for _, p := range layout.Parts {
		s.Regions = append(s.Regions, Region{
			Name: p.Name, Hint: p.Type, First: int64(p.First), Count: int64(p.Sectors),
			Content: p.First > 0 && p.Type != udif.FreeType && p.Type != "Apple_partition_map",
		})
	}
	return nil
}

// chooseVolume takes the first partition with a file system that can be
// mounted, else the first that is not for booting. Only GUID tables count: what
// else divides a device is left to the kernel.
func (s *ImageInfo) chooseVolume() {
	for _, p := range s.partitions() {
		if p.Type == gpt.EFISystem && len(s.Table.Partitions) > 1 {
			continue
		}
		n := slices.IndexFunc(s.Regions, func(r Region) bool { return r.Number == p.Index+1 })
		_, mountable := FilesystemOf(s.Regions[n].Volume.Kernel)
		if s.mount < 0 || mountable {
			s.mount = n
		}
		if mountable {
			return
		}
	}
}

// Last returns the region of the last partition of a GUID table, which grows
// and shrinks with the image; nil without a table or for one without
// partitions.
func (s *ImageInfo) Last() *Region {
	for n := range slices.Backward(s.Regions) {
		if s.Regions[n].Part != nil {
			return &s.Regions[n]
		}
	}
	return nil
}

// Owners reports whether the volume to be mounted has a file system with
// owners.
func (s *ImageInfo) Owners() bool { return s.volume().Owners }

// volume is the volume to be mounted.
func (s *ImageInfo) volume() Volume {
	if s.mount < 0 {
		return s.Whole
	}
	return s.Regions[s.mount].Volume
}

// extent is the offset and length of the volume to be mounted, in bytes.
func (s *ImageInfo) extent() (off, n int64) {
	if s.mount < 0 {
		return 0, s.size
	}
	p := s.Regions[s.mount].Part
	return p.Offset(), p.Size()
}

// partitions are those of the GUID table.
func (s *ImageInfo) partitions() []gpt.Partition {
	if s.Table == nil {
		return nil
	}
	return s.Table.Partitions
}

// section is a part of the device that the serving process offers as a file of
// its own.
type section struct {
	Name      string
	Off, Size int64
}

// sectionOf is a partition under the name of its number.
func sectionOf(p gpt.Partition) section {
	return section{fmt.Sprintf("p%d", p.Index+1), p.Offset(), p.Size()}
}

// notes are the warnings of an attachment about the partition table. Data can
// still be recovered from the device of an image with a damaged table, as on a
// Mac, which shows it without partitions.
func (s *ImageInfo) notes() (list []string) {
	for _, w := range s.Warnings {
		list = append(list, string(w))
	}
	if s.Damage != nil {
		list = append(list, "the partition table and its backup cannot be used, and the device is shown without "+
			"partitions: "+s.Damage.Error())
	}
	return list
}

// openAndInspect opens the container read-only, even if another process has it
// open, and inspects it. It derives the keys of an encrypted image unless the
// caller has them.
func openAndInspect(path string, pass []byte, keys crypt.Keys) (info *ImageInfo, err error) {
	dir, err := hostio.OpenDir(filepath.Dir(path))
	if err != nil {
		return nil, err
	}
	defer dir.Close()
	if keys == nil {
		if keys, err = container.UnwrapKeys(dir, filepath.Base(path), pass); err != nil {
			return nil, err
		}
		defer func() {
			if err != nil {
				keys.Wipe()
			}
		}()
	}
	image, err := container.Open(dir, filepath.Base(path), container.OpenOptions{ReadOnly: true, Keys: keys})
	if err != nil {
		return nil, err
	}
	defer image.Close()
	if info, err = Inspect(image); err == nil {
		info.keys = keys
	}
	return info, err
}

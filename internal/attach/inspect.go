package attach

import (
	"errors"
	"fmt"
	"path/filepath"

	"dmgbench/internal/blockdev"
	"dmgbench/internal/container"
	"dmgbench/internal/container/crypt"
	"dmgbench/internal/gpt"
	"dmgbench/internal/hostio"
)

// ImageInfo is what [Inspect] found on a container.
type ImageInfo struct {
	format   string
	size     int64
	parts    []gpt.Partition
	volume   int // number of the partition to be mounted, from 0; -1: the whole device
	found    Volume
	warnings []string
	damage   error // why a partition table that is there cannot be used; nil if it can, or there is none
	// keys are those of an encrypted image, derived once for all that is opened; the caller's own, or ours to wipe.
	keys *crypt.Keys
}

// Owners reports whether the volume to be mounted has a file system with owners; false without an inspection.
func (s *ImageInfo) Owners() bool { return s != nil && s.found.Owners }

// extent is the offset and length of the volume to be mounted, in bytes.
func (s *ImageInfo) extent() (off, n int64) {
	if s.volume < 0 {
		return 0, s.size
	}
	p := s.parts[s.volume]
	return p.Offset(), p.Size()
}

// sections are the partitions under the names of their numbers.
func (s *ImageInfo) sections() []section {
	var list []section
	for _, p := range s.parts {
		list = append(list, section{fmt.Sprintf("p%d", p.Index+1), p.Offset(), p.Size()})
	}
	return list
}

// openAndInspect opens the container read-only, even if another process has it open, and inspects it. It derives the
// keys of an encrypted image unless the caller has them.
func openAndInspect(path string, pass []byte, keys *crypt.Keys) (info *ImageInfo, err error) {
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

// Inspect finds the volume of an open container that is to be attached.
func Inspect(image container.Image) (*ImageInfo, error) {
	s := &ImageInfo{format: image.Format(), size: image.Size(), volume: -1}
	table, warnings, err := gpt.Read(image)
	switch {
	case errors.Is(err, gpt.ErrNoTable):
		s.found = Identify(image)
		return s, nil
	case errors.Is(err, gpt.ErrDamaged) || errors.Is(err, gpt.ErrInvalid):
		// Data can still be recovered from the device of such an image, as on a Mac, which shows it without
		// partitions.
		s.damage = err
		s.warnings = append(s.warnings, "the partition table and its backup cannot be used, "+
			"and the device is shown without partitions: "+err.Error())
		s.found = Identify(image)
		return s, nil
	case err != nil:
		return nil, err
	}
	for _, w := range warnings {
		s.warnings = append(s.warnings, string(w))
	}
	s.parts = table.Partitions
	return s, s.choose(image)
}

// choose takes the first partition with a file system that can be mounted, else the first that is not for booting.
func (s *ImageInfo) choose(image blockdev.Device) error {
	for i, p := range s.parts {
		if p.Type == gpt.EFISystem && len(s.parts) > 1 {
			continue
		}
		dev, err := blockdev.Section(image, p.Offset(), p.Size())
		if err != nil {
			return err
		}
		f := Identify(dev)
		_, mountable := FilesystemOf(f.Kernel)
		if s.volume < 0 || mountable {
			s.volume, s.found = i, f
		}
		if mountable {
			return nil
		}
	}
	return nil
}

// section is a part of the device that the serving process offers as a file of its own.
type section struct {
	Name      string
	Off, Size int64
}

package attach

import (
	"errors"
	"strings"

	"dmgbench/internal/blockdev"
	"dmgbench/internal/exfat"
)

// removeOrphans takes away what a crash left of deleted files.
func (v *volumeFS) removeOrphans() {
	_, err := eachOrphan(v.volume, v.volume.Remove)
	v.fails.add("removing deleted files", err)
}

func eachOrphan(v *exfat.Volume, remove func(name string) error) (n int, err error) {
	list, err := v.List("")
	for _, i := range list {
		if strings.HasPrefix(i.Name, orphanPrefix) && !i.Dir {
			err = errors.Join(err, remove(i.Name))
			n++
		}
	}
	return n, err
}

// forgetOrphans takes away the names alone: a crash may have left the file its old one too, whose clusters are not to be freed.
func forgetOrphans(dev blockdev.Device) (n int, err error) {
	v, err := exfat.Mount(dev, exfat.MountOptions{})
	if err != nil {
		return 0, err
	}
	n, err = eachOrphan(v, v.RemoveName)
	return n, errors.Join(err, v.Unmount())
}

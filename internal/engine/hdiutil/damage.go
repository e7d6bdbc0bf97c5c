package hdiutil

import (
	"errors"

	"dmgbench/internal/container"
	"dmgbench/internal/container/files"
	"dmgbench/internal/gpt"
)

// harmDevice overwrites sectors inside the device, where they can be found without the tool.
func (c *image) harmDevice(kind string) (err error) {
	img, err := container.Open(c.dir, c.file, container.OpenOptions{})
	if errors.Is(err, errors.ErrUnsupported) {
		return c.e.refuse(c.backend, "damage "+kind+" of this container", "plain UDRW and UDSB can be harmed so")
	}
	if err != nil {
		return gone(err)
	}
	defer func() { err = errors.Join(err, img.Close()) }()
	places, n := []int64{512, img.Size() - 33*512}, 33*512
	if kind == "volume" {
		t, _, err := gpt.Read(img)
		if err != nil {
			return err
		}
		last := len(t.Partitions) - 1 // behind an EFI partition, where there is one
		if last < 0 {
			return gpt.ErrNoTable
		}
		start := t.Partitions[last].Offset()
		places, n = []int64{start}, 4096
		if c.fs.name == "btrfs" { // its first superblock lies at 64 KiB, and nothing before it
			places = append(places, start+64<<10)
		}
	}
	for _, off := range places {
		if _, err := img.WriteAt(files.Rubbish(n), off); err != nil {
			return err
		}
	}
	return img.Flush()
}

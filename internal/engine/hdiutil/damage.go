package hdiutil

import (
	"errors"

	"dmgbench/internal/container"
	"dmgbench/internal/container/files"
	"dmgbench/internal/gpt"
)

// harmDevice overwrites sectors inside the device, where they can be found without the tool: of read-only images what
// stores the volume's first data, so that their stored checksum is wrong.
func (c *image) harmDevice(kind string) (err error) {
	tables := c.seen.format == "UDIF" // nothing can be written into it
	img, err := container.Open(c.dir, c.file, container.OpenOptions{ReadOnly: tables, Passphrase: c.pass()})
	if err == nil && tables && kind != "volume" { // its table lies in no sectors of its own
		err = errors.Join(errors.ErrUnsupported, img.Close())
	}
	if errors.Is(err, errors.ErrUnsupported) {
		return c.e.refuse(c.backend, "damage "+kind+" of this container", "the volume of a plain image can be harmed, and the table of one that can be written to")
	}
	if err != nil {
		return gone(err)
	}
	defer func() { err = errors.Join(err, img.Close()) }()
	places, n := []int64{512, img.Size() - 33*512}, 33*512
	if kind == "volume" {
		if places, n, err = c.volumeStart(img); err != nil {
			return err
		}
	}
	if tables {
		return gone(container.RuinStored(c.dir, c.file, places[0], c.pass()))
	}
	for _, off := range places {
		if _, err := img.WriteAt(files.Rubbish(n), off); err != nil {
			return err
		}
	}
	return img.Flush()
}

// ext4Copy is where the first copy of an ext4 superblock begins in a volume with blocks of 4 KiB: without it
// e2fsck cannot mend a volume whose own is gone.
const ext4Copy = 128 << 20

// volumeStart is what of the device has to be overwritten so that the volume does not mount, and can be repaired.
func (c *image) volumeStart(img container.Image) (places []int64, n int, err error) {
	t, _, err := gpt.Read(img)
	if err != nil {
		return nil, 0, err
	}
	last := len(t.Partitions) - 1 // behind an EFI partition, where there is one
	if last < 0 {
		return nil, 0, gpt.ErrNoTable
	}
	start := t.Partitions[last].Offset()
	places = []int64{start}
	switch {
	case c.fs.name == "btrfs": // its first superblock lies at 64 KiB, and nothing before it
		places = append(places, start+64<<10)
	case c.fs.name == "ext4" && c.seen.format != "UDIF" && t.Partitions[last].Size() <= ext4Copy:
		return nil, 0, c.e.refuse(c.backend, "damage volume of ext4 below 128 MiB", "make the image at least 160 MB: a smaller volume has no copy of its superblock and cannot be repaired")
	}
	return places, 4096, nil
}

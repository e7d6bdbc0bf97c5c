package hdiutil

import (
	"bytes"
	"errors"
	"path"

	"dmgbench/internal/container"
	"dmgbench/internal/gpt"
	"dmgbench/internal/hostio"
)

// rubbish is nothing that any structure begins with.
func rubbish(n int) []byte { return bytes.Repeat([]byte{0xdb}, n) }

// harmHeader overwrites what describes the container.
func (c *image) harmHeader() error {
	if c.kind.format == "UDSB" {
		return c.dir.WriteFileAtomic(path.Join(c.file, "Info.plist"), rubbish(256), 0o644)
	}
	f, err := c.dir.Open(c.file, hostio.OpenOptions{Write: true})
	if err != nil {
		return gone(err)
	}
	defer f.Close()
	at, n := int64(0), 1024
	if c.seen.format == "UDIF" {
		st, err := f.Stat()
		if err != nil {
			return err
		}
		at, n = st.Size-512, 512
	}
	if _, err := f.WriteAt(rubbish(n), at); err != nil {
		return err
	}
	_, err = f.Sync(hostio.SyncFull)
	return err
}

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
		if _, err := img.WriteAt(rubbish(n), off); err != nil {
			return err
		}
	}
	return img.Flush()
}

package imagetool

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path"
	"path/filepath"
	"strings"
	"time"

	"dmgbench/internal/blockdev"
	"dmgbench/internal/exfat"
	"dmgbench/internal/hostio"
)

// tree is what folders of the host hold, to be copied into a volume.
type tree struct {
	dirs  []*hostio.Dir
	items []item
	lost  losses
}

// item is a file or folder: its name in a folder of the host and its path on the volume, parents before children.
type item struct {
	dir    *hostio.Dir
	name   string
	to     string
	folder bool
	size   int64
	time   time.Time // when it was changed last
}

// readTree lists folders. The content of a single one becomes the root of the volume, unless it is a bundle such as X.app;
// of several, each is a folder in it. What the volume cannot hold is an error: nothing is left out in silence.
func readTree(ctx context.Context, folders []string) (t tree, err error) {
	defer func() {
		if err != nil {
			t.close()
		}
	}()
	for _, folder := range folders {
		d, err := hostio.OpenDir(folder)
		if err != nil {
			return t, err
		}
		t.dirs = append(t.dirs, d)
		to := ""
		if len(folders) > 1 || isBundle(folder) {
			fi, err := d.Lstat(".")
			if err != nil {
				return t, err
			}
			to = filepath.Base(folder)
			t.items = append(t.items, item{to: to, folder: true, time: fi.ModTime()})
		}
		if err := t.read(ctx, d, ".", to); err != nil {
			return t, err
		}
	}
	return t, t.lost.refused()
}

func (t *tree) read(ctx context.Context, d *hostio.Dir, name, to string) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	entries, err := d.ReadDir(name)
	if err != nil {
		return err
	}
	for _, e := range entries {
		i := item{dir: d, name: path.Join(name, e.Name()), to: path.Join(to, e.Name()), folder: e.IsDir()}
		fi, err := d.Lstat(i.name)
		switch {
		case err != nil:
			return err
		case fi.Mode()&fs.ModeSymlink != 0:
			t.lost.addLink(filepath.Join(d.Path(), i.name))
			continue
		case !fi.IsDir() && !fi.Mode().IsRegular():
			return refuse("%q is neither a file nor a folder", filepath.Join(d.Path(), i.name))
		case !fi.IsDir():
			i.size = fi.Size()
		}
		i.time = fi.ModTime()
		t.lost.add(d, i.name, fi)
		t.items = append(t.items, i)
		if i.folder {
			if err := t.read(ctx, d, i.name, i.to); err != nil {
				return err
			}
		}
	}
	return nil
}

func (t tree) close() {
	for _, d := range t.dirs {
		d.Close()
	}
}

// imageSize is the size of an image that holds the tree, in bytes: whole clusters of
// the largest size that a volume of that size may have, a hundredth for tables, and 8 MiB.
func (t tree) imageSize(bare bool) int64 {
	total := int64(8 << 20)
	if bare {
		total -= 2 << 20
	}
	for _, cluster := range []int64{4 << 10, 32 << 10, 128 << 10} {
		sum := total
		for _, i := range t.items {
			sum += (i.size+cluster-1)/cluster*cluster + cluster/8
			if i.folder {
				sum += cluster
			}
		}
		sum += sum / 50
		if limit := map[int64]int64{4 << 10: 256 << 20, 32 << 10: 32 << 30}[cluster]; limit == 0 || sum <= limit {
			return (sum + 4095) / 4096 * 4096
		}
	}
	return total
}

// folderLabel is what of a folder's name fits as the name of a volume.
func folderLabel(folder string) string {
	name := strings.ToValidUTF8(filepath.Base(folder), "_")
	for i := range name {
		if units16(name[:i]) > 11 {
			return name[:lastFit(name[:i])]
		}
	}
	if units16(name) > 11 {
		return name[:lastFit(name)]
	}
	return name
}

func lastFit(name string) int {
	at := 0
	for i := range name {
		if units16(name[:i]) <= 11 {
			at = i
		}
	}
	return at
}

// copyTo puts the tree on a volume of ours.
func (t tree) copyTo(c *call, part blockdev.Device) (err error) {
	if len(t.items) == 0 {
		return nil
	}
	now := c.env.Now()
	v, err := exfat.Mount(part, exfat.MountOptions{Now: func() time.Time { return now }})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, v.Unmount()) }()
	buf, err := hostio.AlignedBuffer(4 << 20)
	if err != nil {
		return err
	}
	defer buf.Free()
	var total, done int64
	for _, i := range t.items {
		total += i.size
	}
	p := c.newProgress(total)
	for _, i := range t.items {
		if err := c.canceled(); err != nil {
			return err
		}
		now = i.time
		if i.folder {
			err = v.Mkdir(i.to)
		} else {
			err = i.copyTo(v, buf.Bytes())
		}
		switch {
		case errors.Is(err, fs.ErrExist):
			return t.twice(i)
		case errors.Is(err, exfat.ErrName):
			return refuse("%q: %s forbids this name", i.to, ours)
		case err != nil:
			return fmt.Errorf("copying %q: %w", i.to, err)
		}
		done += i.size
		p.at(done)
	}
	return nil
}

// twice says why an item has no place: another folder has the name too, or one that differs in case alone.
func (t tree) twice(i item) error {
	n := 0
	for _, other := range t.items {
		if other.to == i.to {
			n++
		}
	}
	if n > 1 {
		return refuse("%q is there twice: two of the folders have it", i.to)
	}
	return refuse("%q is there twice: %s does not tell capital letters from small ones", i.to, ours)
}

func (i item) copyTo(v *exfat.Volume, buf []byte) (err error) {
	from, err := i.dir.Open(i.name, hostio.OpenOptions{})
	if err != nil {
		return err
	}
	defer from.Close()
	to, err := v.Create(i.to, i.size)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, to.Close()) }()
	for off := int64(0); off < i.size; off += int64(len(buf)) {
		piece := buf[:min(int64(len(buf)), i.size-off)]
		if n, err := from.ReadAt(piece, off); n < len(piece) {
			if errors.Is(err, io.EOF) {
				err = fmt.Errorf("it became shorter while it was copied: %w", io.ErrUnexpectedEOF)
			}
			return err
		}
		if _, err := to.WriteAt(piece, off); err != nil {
			return err
		}
	}
	return nil
}

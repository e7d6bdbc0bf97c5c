package inprocess

import (
	"context"
	"errors"
	"fmt"
	"path"

	"dmgbench/internal/container"
	"dmgbench/internal/engine"
	"dmgbench/internal/hostio"
)

// Transfer copies the file, or the bundle's folder with all its files, byte
// for byte, and flushes the copy. Holes are copied as zeros, as by `cp` on a
// file system without clones. A copy that failed is deleted again.
func (c *image) Transfer(ctx context.Context, dir *hostio.Dir, name string) (engine.Container, error) {
	if err := c.same(ctx, "copying", true); err != nil {
		return nil, err
	}
	to := withExtension(name, c.spec.Format)
	if c.bundle() {
		if err := dir.Mkdir(to); err != nil {
			return nil, err
		}
	}
	if err := c.copyTo(ctx, dir, to); err != nil {
		// A name that was taken is somebody else's: nothing of it was touched.
		if !errors.Is(err, errTaken) {
			err = errors.Join(err, dir.RemoveAll(to))
		}
		return nil, fmt.Errorf("copying %q: %w", c.file, err)
	}
	return c.engine.find(dir, to, c.spec)
}

var errTaken = errors.New("the name of the copy is taken")

func (c *image) copyTo(ctx context.Context, dir *hostio.Dir, to string) error {
	if !c.bundle() {
		if _, err := dir.Lstat(to); err == nil {
			return errTaken
		}
	}
	buf, err := hostio.AlignedBuffer(copyBlock)
	if err != nil {
		return err
	}
	defer buf.Free()
	folders := []string{""}
	err = c.each(ctx, func(name string) error {
		return copyFile(ctx, c.dir, path.Join(c.file, name), dir, path.Join(to, name), buf.Bytes())
	}, func(name string) error {
		folders = append(folders, name)
		return dir.Mkdir(path.Join(to, name))
	})
	if err != nil {
		return err
	}
	if c.bundle() {
		for _, name := range folders {
			sub, err := dir.Sub(path.Join(to, name))
			if err != nil {
				return err
			}
			err = sub.Sync()
			sub.Close()
			if err != nil {
				return err
			}
		}
	}
	return dir.Sync()
}

func copyFile(ctx context.Context, from *hostio.Dir, name string, to *hostio.Dir, copied string, buf []byte) (err error) {
	src, err := from.Open(name, hostio.OpenOptions{})
	if err != nil {
		return gone(err)
	}
	defer src.Close()
	st, err := src.Stat()
	if err != nil {
		return err
	}
	dst, err := to.Open(copied, hostio.OpenOptions{Write: true, Create: true, Exclusive: true, Perm: st.Mode.Perm()})
	if err != nil {
		return err
	}
	defer func() {
		if e := dst.Close(); err == nil {
			err = e
		}
	}()
	for off := int64(0); off < st.Size; {
		if err := ctx.Err(); err != nil {
			return err
		}
		part := buf[:min(int64(len(buf)), st.Size-off)]
		if _, err := src.ReadAt(part, off); err != nil {
			return err
		}
		if _, err := dst.WriteAt(part, off); err != nil {
			return err
		}
		off += int64(len(part))
	}
	_, err = dst.Sync(hostio.SyncFull)
	return err
}

// Damage harms the container: "header" (partition table's first sectors, or
// the bundle's Info.plist), "band-missing" (a band in the middle), "table"
// (both partition tables), "truncated" (half of the file, or of the longest
// band), "volume" (the main boot region).
func (c *image) Damage(ctx context.Context, kind string) error {
	if err := c.same(ctx, "damaging", true); err != nil {
		return err
	}
	switch {
	case kind == "header" && c.bundle():
		return c.dir.WriteFileAtomic(path.Join(c.file, "Info.plist"), rubbish(256), 0o644)
	case kind == "header":
		return c.overwrite(ctx, func(container.Image) ([]int64, int, error) { return []int64{0}, 1024, nil })
	case kind == "table":
		return c.overwrite(ctx, func(img container.Image) ([]int64, int, error) {
			return []int64{512, img.Size() - 33*512}, 33 * 512, nil
		})
	case kind == "volume":
		return c.overwrite(ctx, func(img container.Image) ([]int64, int, error) {
			p, _, _, err := partition(img)
			return []int64{p.Offset()}, 512, err
		})
	case kind == "band-missing" && c.bundle():
		bands, err := c.bands()
		if err != nil {
			return err
		}
		return c.dir.Remove(bands[len(bands)/2].name)
	case kind == "truncated":
		return c.truncate()
	}
	return refuse("damage "+kind+" of "+c.spec.Format, "")
}

// rubbish is nothing that any structure begins with.
func rubbish(n int) []byte {
	b := make([]byte, n)
	for i := range b {
		b[i] = 0xdb
	}
	return b
}

func (c *image) overwrite(ctx context.Context, where func(container.Image) ([]int64, int, error)) error {
	return c.with(ctx, "damaging", false, func(img container.Image) error {
		list, n, err := where(img)
		if err != nil {
			return err
		}
		for _, off := range list {
			if _, err := img.WriteAt(rubbish(n), off); err != nil {
				return err
			}
		}
		return nil
	})
}

type bandFile struct {
	name string // in the place
	size int64
}

// bands are the band files by name; none is an error.
func (c *image) bands() ([]bandFile, error) {
	list, err := c.dir.ReadDir(path.Join(c.file, "bands"))
	if err != nil {
		return nil, gone(err)
	}
	var bands []bandFile
	for _, e := range list {
		fi, err := e.Info()
		if err != nil {
			return nil, err
		}
		bands = append(bands, bandFile{path.Join(c.file, "bands", e.Name()), fi.Size()})
	}
	if len(bands) == 0 {
		return nil, fmt.Errorf("damaging %q: it has no bands", c.file)
	}
	return bands, nil
}

func (c *image) truncate() error {
	fi, err := c.dir.Lstat(c.file)
	if err != nil {
		return gone(err)
	}
	longest := bandFile{c.file, fi.Size()}
	if c.bundle() {
		bands, err := c.bands()
		if err != nil {
			return err
		}
		longest = bands[0]
		for _, b := range bands {
			if b.size > longest.size {
				longest = b
			}
		}
	}
	f, err := c.dir.Open(longest.name, hostio.OpenOptions{Write: true})
	if err != nil {
		return gone(err)
	}
	defer f.Close()
	if err := f.Truncate(longest.size / 2 / container.SectorSize * container.SectorSize); err != nil {
		return err
	}
	_, err = f.Sync(hostio.SyncFull)
	return err
}

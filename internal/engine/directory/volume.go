package directory

import (
	"context"
	"errors"
	"io/fs"
	"path"
	"syscall"

	"dmgbench/internal/engine"
	"dmgbench/internal/hostio"
	"dmgbench/internal/workload"
	"dmgbench/internal/workload/folder"
)

// Volume is nil when the folder was attached without mounting.
func (a *attachment) Volume() workload.Volume {
	if a.vol == nil {
		return nil
	}
	return a.vol
}

// walk visits every file below the folder with its name.
func walk(ctx context.Context, d *hostio.Dir, name string, visit func(name string, fi fs.FileInfo) error) error {
	list, err := d.ReadDir(name)
	if err != nil {
		return err
	}
	for _, e := range list {
		if err := ctx.Err(); err != nil {
			return err
		}
		full := path.Join(name, e.Name())
		fi, err := d.Lstat(full)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return err
		}
		if err := visit(full, fi); err != nil {
			return err
		}
		if fi.IsDir() {
			if err := walk(ctx, d, full, visit); err != nil {
				return err
			}
		}
	}
	return nil
}

// Usage adds up what the files and folders occupy, from st_blocks, and the
// lengths of the files.
func (c *container) Usage(ctx context.Context) (engine.Usage, error) {
	var u engine.Usage
	root, err := c.open(ctx)
	if err != nil {
		return u, err
	}
	defer root.Close()
	err = walk(ctx, root, ".", func(_ string, fi fs.FileInfo) error {
		if st, ok := fi.Sys().(*syscall.Stat_t); ok {
			u.Allocated += int64(st.Blocks) * 512
		}
		if fi.Mode().IsRegular() {
			u.Apparent += fi.Size()
		}
		return nil
	})
	u.Sparse = u.Allocated < u.Apparent
	return u, err
}

// Evict drops the cached pages of every file.
func (c *container) Evict(ctx context.Context) error {
	root, err := c.open(ctx)
	if err != nil {
		return err
	}
	defer root.Close()
	return walk(ctx, root, ".", func(name string, fi fs.FileInfo) error {
		if !fi.Mode().IsRegular() {
			return nil
		}
		f, err := root.Open(name, hostio.OpenOptions{})
		if err != nil {
			return err
		}
		defer f.Close()
		return f.Evict()
	})
}

// Transfer copies the folder with its files, and flushes the copy.
func (c *container) Transfer(ctx context.Context, dir *hostio.Dir, name string) (engine.Container, error) {
	root, err := c.open(ctx)
	if err != nil {
		return nil, err
	}
	defer root.Close()
	if err := dir.Mkdir(name); err != nil {
		return nil, err
	}
	to, err := dir.Sub(name)
	if err != nil {
		return nil, err
	}
	defer to.Close()
	buf, err := hostio.AlignedBuffer(4 << 20)
	if err != nil {
		return nil, err
	}
	defer buf.Free()
	err = walk(ctx, root, ".", func(name string, fi fs.FileInfo) error {
		if fi.IsDir() {
			return to.Mkdir(name)
		}
		if !fi.Mode().IsRegular() {
			return nil
		}
		return copyFile(ctx, root, to, name, fi.Size(), buf.Bytes())
	})
	if err != nil {
		return nil, err
	}
	if err := folder.SyncTree(to); err != nil {
		return nil, err
	}
	return open(dir, name, c.spec)
}

func copyFile(ctx context.Context, from, to *hostio.Dir, name string, size int64, buf []byte) error {
	src, err := from.Open(name, hostio.OpenOptions{})
	if err != nil {
		return err
	}
	defer src.Close()
	dst, err := to.Open(name, hostio.OpenOptions{Write: true, Create: true, Exclusive: true})
	if err != nil {
		return err
	}
	defer dst.Close()
	for off := int64(0); off < size; {
		if err := ctx.Err(); err != nil {
			return err
		}
		part := buf[:min(int64(len(buf)), size-off)]
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

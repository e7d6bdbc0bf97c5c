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
)

// volume is a folder as a file system that files can be put on.
type volume struct {
	dir         *hostio.Dir
	preallocate bool
	readOnly    bool
}

var _ workload.Volume = (*volume)(nil)

// Volume is nil when the folder was attached without mounting.
func (a *attachment) Volume() workload.Volume {
	if a.vol == nil {
		return nil
	}
	return a.vol
}

// HostPath is where the host finds a file of the volume.
func (v *volume) HostPath(name string) string { return path.Join(v.dir.Path(), name) }

// Mkdir makes a folder, with those above it that are missing.
func (v *volume) Mkdir(name string) error {
	if v.readOnly {
		return syscall.EROFS
	}
	if up := path.Dir(path.Clean(name)); up != "." && up != "/" {
		if err := v.dir.MkdirAll(up); err != nil {
			return bare(err)
		}
	}
	return bare(v.dir.Mkdir(name))
}

func (v *volume) Create(name string, size int64, o workload.FileOptions) (workload.File, error) {
	if v.readOnly {
		return nil, syscall.EROFS
	}
	f, err := v.dir.Open(name, hostio.OpenOptions{Write: true, Create: true, Exclusive: true, Cache: o.Cache})
	if err != nil {
		return nil, bare(err)
	}
	if (v.preallocate || o.Preallocate) && size > 0 {
		if err := f.Allocate(0, size); err != nil {
			f.Close()
			return nil, errors.Join(bare(err), bare(v.dir.Remove(name)))
		}
	}
	return &file{f}, nil
}

func (v *volume) Open(name string, o workload.FileOptions) (workload.File, error) {
	f, err := v.dir.Open(name, hostio.OpenOptions{Cache: o.Cache})
	if err != nil {
		return nil, bare(err)
	}
	return &file{f}, nil
}

func (v *volume) Remove(name string) error {
	if v.readOnly {
		return syscall.EROFS
	}
	return bare(v.dir.Remove(name))
}

func (v *volume) List(dir string) ([]workload.Entry, error) {
	list, err := v.dir.ReadDir(path.Clean(dir))
	if err != nil {
		return nil, bare(err)
	}
	entries := make([]workload.Entry, 0, len(list))
	for _, e := range list {
		fi, err := e.Info()
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return nil, err
		}
		one := workload.Entry{Name: e.Name(), Dir: e.IsDir()}
		if !one.Dir {
			one.Size = fi.Size()
		}
		entries = append(entries, one)
	}
	return entries, nil
}

func (v *volume) Free() (int64, error) {
	free, _, _, err := v.dir.FreeSpace()
	return free, bare(err)
}

// Sync flushes every folder; the files were flushed as their writers asked.
func (v *volume) Sync() error {
	if v.readOnly {
		return nil
	}
	return syncTree(v.dir)
}

func syncTree(d *hostio.Dir) error {
	list, err := d.ReadDir(".")
	if err != nil {
		return bare(err)
	}
	for _, e := range list {
		if !e.IsDir() {
			continue
		}
		sub, err := d.Sub(e.Name())
		if err != nil {
			return bare(err)
		}
		err = syncTree(sub)
		sub.Close()
		if err != nil {
			return err
		}
	}
	return bare(d.Sync())
}

// file is one host file. Its transfers go straight through.
type file struct{ *hostio.File }

func (f *file) ReadAt(p []byte, off int64) (int, error) {
	n, err := f.File.ReadAt(p, off)
	return n, bare(err)
}

func (f *file) WriteAt(p []byte, off int64) (int, error) {
	n, err := f.File.WriteAt(p, off)
	return n, bare(err)
}

func (f *file) Sync(mode hostio.SyncMode) (hostio.SyncMode, error) {
	done, err := f.File.Sync(mode)
	return done, bare(err)
}

func (f *file) Evict() error { return bare(f.File.Evict()) }

func (f *file) Resident() (float64, error) {
	share, err := f.File.Resident(0, 0)
	if errors.Is(err, errors.ErrUnsupported) {
		return 0, workload.ErrUnknown
	}
	return share, bare(err)
}

// bare takes the host's path off an error: the caller names the file as the
// volume knows it, and results must not carry absolute paths.
func bare(err error) error {
	if cause := errors.Unwrap(err); cause != nil && !errors.Is(cause, errors.ErrUnsupported) {
		return cause
	}
	return err
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
	if err := syncTree(to); err != nil {
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

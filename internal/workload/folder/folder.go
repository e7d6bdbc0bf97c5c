// Package folder is a folder of the host as a volume: the native baseline, and
// every image that the system has mounted. Transfers go straight to the host's
// files. It refuses to leave the folder, and neither mounts nor measures anything.
package folder

import (
	"errors"
	"io/fs"
	"path"
	"syscall"

	"dmgbench/internal/hostio"
	"dmgbench/internal/workload"
)

// Volume is a folder as a file system that files can be put on.
type Volume struct {
	dir *hostio.Dir
	o   Options
}

// Options of a volume.
type Options struct {
	Preallocate bool // reserve a file's space before its timed write
	ReadOnly    bool // refuse every change with EROFS
}

var (
	_ workload.Volume     = (*Volume)(nil)
	_ workload.HostPather = (*Volume)(nil)
)

// New makes a volume of an opened folder. The caller closes the folder when the volume is used no more.
func New(dir *hostio.Dir, o Options) *Volume { return &Volume{dir: dir, o: o} }

// HostPath is where the host finds a file of the volume.
func (v *Volume) HostPath(name string) string { return path.Join(v.dir.Path(), name) }

// Mkdir makes a folder, with those above it that are missing.
func (v *Volume) Mkdir(name string) error {
	if v.o.ReadOnly {
		return syscall.EROFS
	}
	if up := path.Dir(path.Clean(name)); up != "." && up != "/" {
		if err := v.dir.MkdirAll(up); err != nil {
			return bare(err)
		}
	}
	return bare(v.dir.Mkdir(name))
}

// Create makes a new file of at last size bytes; it is reserved at once where that is asked for.
func (v *Volume) Create(name string, size int64, o workload.FileOptions) (workload.File, error) {
	if v.o.ReadOnly {
		return nil, syscall.EROFS
	}
	f, err := v.dir.Open(name, hostio.OpenOptions{Write: true, Create: true, Exclusive: true, Cache: o.Cache})
	if err != nil {
		return nil, bare(err)
	}
	if (v.o.Preallocate || o.Preallocate) && size > 0 {
		if err := f.Allocate(0, size); err != nil {
			f.Close()
			return nil, errors.Join(bare(err), bare(v.dir.Remove(name)))
		}
	}
	return &file{f}, nil
}

// Open opens an existing file for reading.
func (v *Volume) Open(name string, o workload.FileOptions) (workload.File, error) {
	f, err := v.dir.Open(name, hostio.OpenOptions{Cache: o.Cache})
	if err != nil {
		return nil, bare(err)
	}
	return &file{f}, nil
}

// Remove deletes a file or an empty folder.
func (v *Volume) Remove(name string) error {
	if v.o.ReadOnly {
		return syscall.EROFS
	}
	return bare(v.dir.Remove(name))
}

// List gives the entries of one folder, sorted by name.
func (v *Volume) List(dir string) ([]workload.Entry, error) {
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

// Free is what an unprivileged user may still write, in bytes.
func (v *Volume) Free() (int64, error) {
	free, _, _, err := v.dir.FreeSpace()
	return free, bare(err)
}

// Sync flushes every folder; the files were flushed as their writers asked.
func (v *Volume) Sync() error {
	if v.o.ReadOnly {
		return nil
	}
	return SyncTree(v.dir)
}

// SyncTree flushes the entries of a folder and of all folders below it. It passes over folders that
// this user may not open and those that are gone meanwhile: systems keep such on volumes (macOS
// ".fseventsd" and ".Trashes", ext4 "lost+found"), and no files of ours are in them.
func SyncTree(d *hostio.Dir) error {
	list, err := d.ReadDir(".")
	if err != nil {
		return bare(err)
	}
	for _, e := range list {
		if !e.IsDir() {
			continue
		}
		sub, err := d.Sub(e.Name())
		if errors.Is(err, fs.ErrPermission) || errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return bare(err)
		}
		err = SyncTree(sub)
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

// Package folder implements a volume by a folder of the host: the native
// baseline, and every image that the system has mounted. Transfers are calls on
// the host's files without a layer between. Names cannot leave the folder; the
// package neither mounts nor measures.
package folder

import (
	"errors"
	"io/fs"
	"path"
	"syscall"

	"dmgbench/internal/bench/workload"
	"dmgbench/internal/system/hostio"
)

// Volume is a folder of the host as a [workload.Volume].
type Volume struct {
	dir      *hostio.Dir
	readOnly bool
	known    bool // its files are the program's own, see [hostio.OpenOptions]
}

var (
	_ workload.Opener     = (*Volume)(nil)
	_ workload.HostPather = (*Volume)(nil)
	_ workload.Linker     = (*Volume)(nil)
)

// New makes a volume of an open folder, which refuses every change with EROFS if
// it is read-only. The caller closes the folder after the last use of the
// volume.
func New(dir *hostio.Dir, readOnly bool) *Volume { return &Volume{dir: dir, readOnly: readOnly} }

// OpenFolder opens a folder with files of this program, and follows no link.
func (v *Volume) OpenFolder(name string) (workload.Folder, error) {
	sub, err := v.dir.Sub(name)
	if err != nil {
		return nil, withoutPath(err)
	}
	return &Volume{sub, v.readOnly, true}, nil
}

// Close closes a folder that OpenFolder has opened.
func (v *Volume) Close() error { return v.dir.Close() }

// HostPath is the path of a file of the volume on the host.
func (v *Volume) HostPath(name string) string { return path.Join(v.dir.Path(), name) }

// change makes a change, unless the volume is read-only.
func (v *Volume) change(do func() error) error {
	if v.readOnly {
		return syscall.EROFS
	}
	return withoutPath(do())
}

// Mkdir makes a folder and the missing ones above it.
func (v *Volume) Mkdir(name string) error {
	return v.change(func() error {
		if up := path.Dir(path.Clean(name)); up != "." {
			if err := v.dir.MkdirAll(up); err != nil {
				return err
			}
		}
		return v.dir.Mkdir(name)
	})
}

// Create makes a new file of an expected size in bytes, which it reserves if
// the options request that.
func (v *Volume) Create(name string, size int64, o workload.FileOptions) (workload.File, error) {
	if v.readOnly {
		return nil, syscall.EROFS
	}
	f, err := v.dir.Open(name, hostio.OpenOptions{Write: true, Create: true, Exclusive: true, Cache: o.Cache,
		Known: v.known})
	if err != nil {
		return nil, withoutPath(err)
	}
	if o.Preallocate {
		if err := f.Allocate(0, size); err != nil {
			f.Close()
			return nil, errors.Join(withoutPath(err), withoutPath(v.dir.Remove(name)))
		}
	}
	return &file{f}, nil
}

// Open opens an existing file.
func (v *Volume) Open(name string, o workload.FileOptions) (workload.File, error) {
	if o.Write && v.readOnly {
		return nil, syscall.EROFS
	}
	f, err := v.dir.Open(name, hostio.OpenOptions{Write: o.Write, Cache: o.Cache, Known: v.known})
	if err != nil {
		return nil, withoutPath(err)
	}
	return &file{f}, nil
}

// Remove deletes a file or a link.
func (v *Volume) Remove(name string) error {
	return v.change(func() error { return v.dir.Unlink(name) })
}

// Rmdir deletes an empty folder.
func (v *Volume) Rmdir(name string) error {
	return v.change(func() error { return v.dir.Rmdir(name) })
}

// Rename gives a file another name, in place of the file that has it.
func (v *Volume) Rename(from, to string) error {
	return v.change(func() error { return v.dir.Rename(from, to) })
}

// Symlink makes a symbolic link.
func (v *Volume) Symlink(target, name string) error {
	return v.change(func() error { return v.dir.Symlink(target, name) })
}

// Chmod sets the permissions of a file.
func (v *Volume) Chmod(name string, mode fs.FileMode) error {
	return v.change(func() error { return v.dir.Chmod(name, mode) })
}

// List returns the names in a folder.
func (v *Volume) List(folder string) ([]string, error) { return bare(v.dir.Names(folder)) }

// Size is the length of a file in bytes, 0 of a folder.
func (v *Volume) Size(name string) (int64, error) { return bare(v.dir.Size(name)) }

// Free is how many bytes an unprivileged user may still write.
func (v *Volume) Free() (int64, error) {
	free, _, _, err := v.dir.FreeSpace()
	return free, withoutPath(err)
}

// Sync flushes every folder; the files are flushed by their writers.
func (v *Volume) Sync() error {
	if v.readOnly {
		return nil
	}
	return withoutPath(syncTree(v.dir))
}

// syncTree flushes the entries of a folder and of all folders below it. It
// omits folders that this user may not open or that disappear meanwhile:
// systems have such folders on volumes (macOS ".fseventsd" and ".Trashes", ext4
// "lost+found"), and they contain no files of this program.
func syncTree(d *hostio.Dir) error {
	list, err := d.ReadDir(".")
	if err != nil {
		return err
	}
	for _, e := range list {
		if !e.IsDir() {
			continue
		}
		sub, err := d.Sub(e.Name())
		if errors.Is(err, fs.ErrPermission) || errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err == nil {
			err = syncTree(sub)
			sub.Close()
		}
		if err != nil {
			return err
		}
	}
	return d.Sync()
}

// file is one host file.
type file struct{ *hostio.File }

func (f *file) ReadAt(p []byte, off int64) (int, error) { return bare(f.File.ReadAt(p, off)) }

func (f *file) WriteAt(p []byte, off int64) (int, error) { return bare(f.File.WriteAt(p, off)) }

func (f *file) Sync(mode hostio.SyncMode) (hostio.SyncMode, error) { return bare(f.File.Sync(mode)) }

func (f *file) Evict() error { return withoutPath(f.File.Evict()) }

func (f *file) Resident() (float64, error) {
	share, err := f.File.Resident(0, 0)
	if errors.Is(err, errors.ErrUnsupported) {
		return 0, workload.ErrUnknown
	}
	return share, withoutPath(err)
}

// bare is a result of a call with the error that withoutPath gives.
func bare[T any](v T, err error) (T, error) { return v, withoutPath(err) }

// withoutPath removes the host's path from an error: the caller names the file
// as the volume does, and results must not contain absolute paths.
func withoutPath(err error) error {
	if cause := errors.Unwrap(err); cause != nil && !errors.Is(cause, errors.ErrUnsupported) {
		return cause
	}
	return err
}

package inprocess

import (
	"errors"
	"fmt"
	"io/fs"
	"path"
	"sync"
	"syscall"

	"dmgbench/internal/bench/workload"
	"dmgbench/internal/image/container"
	"dmgbench/internal/image/exfat"
	"dmgbench/internal/system/hostio"
)

// volume is a folder of the mounted exFAT volume, at first the root, as the
// workload wants it.
type volume struct {
	*mounted
	at *exfat.Folder
}

// mounted is the mounted volume.
type mounted struct {
	vol   *exfat.Volume
	img   container.Image
	start int64           // of the volume on the image's device, bytes
	flush hostio.SyncMode // what a flush achieves
	mu    sync.Mutex
	open  map[*file]bool
}

var (
	_ workload.Opener    = (*volume)(nil)
	_ workload.Truncater = (*file)(nil)
)

// OpenFolder looks up a folder.
func (v *volume) OpenFolder(name string) (workload.Folder, error) {
	at, err := v.at.Sub(rooted(name))
	if err != nil {
		return nil, trimName(err)
	}
	return &volume{v.mounted, at}, nil
}

// rooted is a path in which "." is the folder that it starts at.
func rooted(name string) string { return path.Join("/", name) }

// Close has no effect: the volume stays mounted.
func (v *volume) Close() error { return nil }

// Mkdir makes a folder, with those above it that are missing.
func (v *volume) Mkdir(name string) error {
	if up := path.Dir(path.Clean(name)); up != "." && up != "/" {
		if _, err := v.at.Stat(up); errors.Is(err, fs.ErrNotExist) {
			if err := v.Mkdir(up); err != nil && !errors.Is(err, fs.ErrExist) {
				return err
			}
		}
	}
	return trimName(v.at.Mkdir(name))
}

// Create makes the file size bytes long at once, in space of its worker's own.
func (v *volume) Create(name string, size int64, o workload.FileOptions) (workload.File, error) {
	return v.handle(v.at.CreateStriped(name, size, o.Worker+1))
}

// Open opens a file. Cache and placement are those of the container: the options
// change neither.
func (v *volume) Open(name string, _ workload.FileOptions) (workload.File, error) {
	return v.handle(v.at.Open(name))
}

// Rename gives a file another name, in place of the file that has it.
func (v *volume) Rename(from, to string) error { return trimName(v.at.Replace(from, to)) }

// List returns the names in a folder in the order of the volume.
func (v *volume) List(folder string) ([]string, error) {
	infos, err := v.at.List(rooted(folder))
	out := make([]string, len(infos))
	for i := range infos {
		out[i] = infos[i].Name
	}
	return out, trimName(err)
}

// handle is an open file of the volume, remembered until it is closed: a detach
// by force closes what was forgotten.
func (v *volume) handle(f *exfat.File, err error) (workload.File, error) {
	if err != nil {
		return nil, trimName(err)
	}
	h := &file{File: f, vol: v}
	v.mu.Lock()
	v.open[h] = true
	v.mu.Unlock()
	return h, nil
}

// Remove deletes a file or an empty folder.
func (v *volume) Remove(name string) error { return volumeError(v.at.Remove(name)) }

// Rmdir deletes an empty folder.
func (v *volume) Rmdir(name string) error { return v.Remove(name) }

// Size is the length of a file in bytes, 0 of a folder.
func (v *volume) Size(name string) (int64, error) {
	i, err := v.at.Stat(name)
	if err != nil || i.Dir {
		return 0, trimName(err)
	}
	return i.Size, nil
}

// Free is the free space of the volume in bytes, all of it for files.
func (v *volume) Free() (int64, error) { return v.vol.Free(), nil }

// Sync makes names and sizes durable. A read-only volume has none that changed.
func (v *volume) Sync() error {
	if err := v.vol.Sync(); !errors.Is(err, exfat.ErrReadOnly) {
		return volumeError(err)
	}
	return nil
}

// file is one open file of the volume.
type file struct {
	*exfat.File
	vol *volume
}

// WriteAt writes past the end, too: the file grows. The volume serves several
// workers at once and keeps no copy of p.
func (f *file) WriteAt(p []byte, off int64) (int, error) {
	n, err := f.File.WriteAt(p, off)
	return n, trimName(err)
}

// ReadAt returns io.EOF as it is: callers compare it.
func (f *file) ReadAt(p []byte, off int64) (int, error) {
	n, err := f.File.ReadAt(p, off)
	return n, trimName(err)
}

// Sync flushes to the medium for both "fsync" and "full", and returns what the
// host achieved.
func (f *file) Sync(mode hostio.SyncMode) (hostio.SyncMode, error) {
	if mode == hostio.SyncNone || mode == "" {
		return hostio.SyncNone, nil
	}
	if err := f.File.Sync(); err != nil {
		return hostio.SyncNone, trimName(err)
	}
	return f.vol.flush, nil
}

// Resident asks the host about the container's pages that hold the file.
func (f *file) Resident() (float64, error) {
	var sum float64
	left := f.Size()
	for _, e := range f.Extents() {
		n := min(e.Length, left)
		share, err := f.vol.img.Resident(f.vol.start+e.Device, n)
		if errors.Is(err, errors.ErrUnsupported) {
			err = workload.ErrUnknown
		}
		if err != nil {
			return 0, err
		}
		sum, left = sum+share*float64(n), left-n
	}
	return sum / float64(max(f.Size()-left, 1)), nil
}

// Cache is what the container's files achieved: the volume has no cache of
// data.
func (f *file) Cache() hostio.CacheMode { return f.vol.img.Cache() }

// Truncate sets the length in bytes; new space reads as zeros.
func (f *file) Truncate(size int64) error { return volumeError(f.File.Truncate(size)) }

// Close releases the file. What was not flushed is written back later, at the
// latest when the volume is unmounted.
func (f *file) Close() error {
	f.vol.mu.Lock()
	delete(f.vol.open, f)
	f.vol.mu.Unlock()
	return trimName(f.File.Close())
}

// trimName removes the name of a file or folder from an error of the volume:
// the caller adds it.
func trimName(err error) error {
	if cause := errors.Unwrap(err); cause != nil {
		err = cause
	}
	return volumeError(err)
}

// volumeError adds to errors of the volume those that callers of any volume
// test for.
func volumeError(err error) error {
	switch {
	case errors.Is(err, exfat.ErrNoSpace):
		return fmt.Errorf("%w: %w", syscall.ENOSPC, err)
	case errors.Is(err, exfat.ErrReadOnly):
		return fmt.Errorf("%w: %w", syscall.EROFS, err)
	}
	return goneIfReplaced(err)
}

package container

import (
	"errors"
	"fmt"
	"io"

	"dmgbench/internal/system/hostio"
)

// store holds the bytes of one container file as its format sees them: the
// host's file itself, or its decrypted content. Offsets and lengths are bytes
// of that content. All methods may be called concurrently.
type store interface {
	bandFile
	io.WriterAt
	Size() (int64, error) // of the content; Stat has the space that the file takes on the host
	// Allocate is [hostio.File.Allocate].
	Allocate(off, n int64) error
	// Check returns hostio.ErrReplaced when the name no longer leads to this
	// file.
	Check() error
}

// bandFile is an open file of a container: that of the host, or its decrypted
// content.
type bandFile interface {
	io.ReaderAt
	// WritePadded is [hostio.File.WritePadded].
	WritePadded(p []byte, off int64, pad int) (int, error)
	// PunchHole makes the range read as zeros, or returns hostio.ErrUnsupported
	// and leaves the content unchanged.
	PunchHole(off, n int64) error
	// Truncate sets the length; new space reads as zeros, including what an
	// earlier Truncate cut off.
	Truncate(n int64) error
	EvictRange(off, n int64) error
	// Resident is [hostio.File.Resident].
	Resident(off, n int64) (float64, error)
	Stat() (hostio.Stat, error)
	// Sync makes everything durable that was written before, with length and
	// holes.
	Sync(mode hostio.SyncMode) (hostio.SyncMode, error)
	Cache() hostio.CacheMode
	Path() string
	Close() error
}

// hostStore is a store in the host's file.
type hostStore struct {
	*hostio.File
	dir  *hostio.Dir
	name string
	id   hostio.Stat
}

// openStore opens a container file, and locks it as the options require.
func openStore(dir *hostio.Dir, name string, o OpenOptions) (*hostStore, error) {
	f, err := dir.Open(name, hostio.OpenOptions{Write: !o.ReadOnly, Cache: o.Cache})
	if err != nil {
		return nil, err
	}
	s := &hostStore{File: f, dir: dir, name: name}
	if !o.ReadOnly || o.Hold {
		err = lock(f, !o.ReadOnly)
	}
	if err == nil {
		s.id, err = f.Stat()
	}
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return s, nil
}

// Size implements store.
func (s *hostStore) Size() (int64, error) {
	st, err := s.Stat()
	return st.Size, err
}

// Check compares the file that has the name now.
func (s *hostStore) Check() error {
	switch fi, err := s.dir.Lstat(s.name); {
	case err != nil:
		return fmt.Errorf("finding %q: %w: %w", s.Path(), hostio.ErrReplaced, err)
	case !hostio.StatOf(fi).Same(s.id):
		return fmt.Errorf("finding %q: %w", s.Path(), hostio.ErrReplaced)
	}
	return nil
}

// lock takes the lock of a writer, or of a reader that keeps writers away.
func lock(f *hostio.File, write bool) error {
	if write {
		return lockError(f.TryLock(), f.Path(), "opening %q for writing")
	}
	return lockError(f.TryLockShared(), f.Path(), "holding %q for reading")
}

// lockError is the error of taking a lock for an operation that is described by
// a format for the path. A host without locks is accepted: there no other
// process holds a lock either.
func lockError(err error, path, doing string) error {
	switch {
	case errors.Is(err, hostio.ErrLocked):
		return fmt.Errorf(doing+": %w", path, ErrInUse)
	case errors.Is(err, hostio.ErrUnsupported):
		return nil
	}
	return err
}

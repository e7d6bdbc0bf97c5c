package container

import (
	"errors"
	"fmt"
	"io"
	"path/filepath"

	"dmgbench/internal/hostio"
)

// store is the bytes of one container file, as the layout in it sees them: of
// the host's file itself, or of what its encryption hides. Offsets and lengths
// are bytes of that content. All methods may be called concurrently.
type store interface {
	io.ReaderAt
	io.WriterAt
	// WritePadded is [hostio.File.WritePadded].
	WritePadded(p []byte, off int64, pad int) (int, error)
	// Size is the length of the content, Stat what the file takes on the host.
	Size() (int64, error)
	Stat() (hostio.Stat, error)
	// Truncate sets the length; new space reads as zeros, also what an earlier
	// Truncate had cut off.
	Truncate(size int64) error
	// Allocate is [hostio.File.Allocate].
	Allocate(off, n int64) error
	// PunchHole makes the range read as zeros, or is hostio.ErrUnsupported and
	// leaves the content as it was.
	PunchHole(off, n int64) error
	EvictRange(off, n int64) error
	// Resident is [hostio.File.Resident].
	Resident(off, n int64) (float64, error)
	// Sync makes durable what was written before, length and holes included.
	Sync(mode hostio.SyncMode) (hostio.SyncMode, error)
	// Check is hostio.ErrReplaced once the name leads elsewhere.
	Check() error
	Cache() hostio.CacheMode
	Path() string
	Close() error
}

// hostStore is a store whose content is the host's file.
type hostStore struct {
	*hostio.File
	dir  *hostio.Dir
	name string
	id   hostio.Stat
}

var _ store = (*hostStore)(nil)

// openStore opens a container file and, for writing, locks it.
func openStore(dir *hostio.Dir, name string, o OpenOptions) (*hostStore, error) {
	f, err := dir.Open(name, hostio.OpenOptions{Write: !o.ReadOnly, Cache: o.Cache})
	if err != nil {
		return nil, err
	}
	s := &hostStore{File: f, dir: dir, name: name}
	switch {
	case !o.ReadOnly:
		err = lock(f)
	case o.Hold:
		err = hold(f)
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

// Check finds out whether the name still leads to the open file.
func (s *hostStore) Check() error {
	f, err := s.dir.Open(s.name, hostio.OpenOptions{})
	path := filepath.Join(s.dir.Path(), s.name)
	if err != nil {
		return fmt.Errorf("finding %q: %w: %w", path, hostio.ErrReplaced, err)
	}
	defer f.Close()
	st, err := f.Stat()
	if err == nil && !st.Same(s.id) {
		err = fmt.Errorf("finding %q: %w", path, hostio.ErrReplaced)
	}
	return err
}

func fileUsage(f interface{ Stat() (hostio.Stat, error) }) (Usage, error) {
	st, err := f.Stat()
	if err != nil {
		return Usage{}, err
	}
	var u Usage
	u.add(st)
	u.settle()
	return u, nil
}

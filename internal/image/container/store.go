package container

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"

	"dmgbench/internal/image/container/files"
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

// syncStore is a store with the operations that the chunk maps of UDSP and ASIF
// need.
type syncStore struct {
	f    store
	mode hostio.SyncMode
}

// sync makes the whole file durable.
func (s syncStore) sync() error {
	_, err := s.f.Sync(s.mode)
	return err
}

// syncAfter makes the whole file durable, unless a write before it failed with
// err.
func (s syncStore) syncAfter(err error) error {
	if err != nil {
		return err
	}
	return s.sync()
}

// put writes all of p.
func (s syncStore) put(p []byte, at int64) error {
	_, err := s.f.WriteAt(p, at)
	return err
}

// get reads n bytes that a file of size bytes must contain.
func (s syncStore) get(at, n, size int64) ([]byte, error) {
	if at > size-n {
		return nil, corrupt("file of %d bytes ends before %d", size, at+n)
	}
	p := make([]byte, n)
	if k, err := s.f.ReadAt(p, at); k < len(p) {
		return nil, unexpectedEOF(err)
	}
	return p, nil
}

// zeroBlock is a source of zeros, as long as blocks of an encryption can be; it
// is never changed.
var zeroBlock [1 << 16]byte

// writeZeros makes n bytes from at read as zeros, by a hole or by writing them.
func (s syncStore) writeZeros(at, n int64) error {
	if n <= 0 {
		return nil
	}
	err := s.f.PunchHole(at, n)
	if !errors.Is(err, hostio.ErrUnsupported) {
		return err
	}
	p := make([]byte, min(n, 1<<20))
	for ; n > 0; at, n = at+int64(len(p)), n-int64(len(p)) {
		if err := s.put(p[:min(n, int64(len(p)))], at); err != nil {
			return err
		}
	}
	return nil
}

// copyBytes copies n bytes inside the file. Blocks of zeros become holes: a
// compaction must not make the file take more space.
func (s syncStore) copyBytes(to, from, n int64) error {
	p := make([]byte, min(n, 1<<20))
	for done := int64(0); done < n; done += int64(len(p)) {
		part := p[:min(n-done, int64(len(p)))]
		if k, err := s.f.ReadAt(part, from+done); k < len(part) {
			return unexpectedEOF(err)
		}
		for run, zero := range files.ZeroRuns(part) {
			var err error
			if at := to + done + int64(run.From); zero {
				err = s.writeZeros(at, int64(run.To-run.From))
			} else {
				err = s.put(part[run.From:run.To], at)
			}
			if err != nil {
				return err
			}
		}
	}
	return nil
}

// readsAsZeros reads size bytes until a byte is not zero.
func readsAsZeros(r io.ReaderAt, size int64) (bool, error) {
	buf := make([]byte, min(size, 1<<20))
	zero := make([]byte, len(buf))
	for off := int64(0); off < size; off += int64(len(buf)) {
		p := buf[:min(int64(len(buf)), size-off)]
		if _, err := r.ReadAt(p, off); err != nil {
			return false, err
		}
		if !bytes.Equal(p, zero[:len(p)]) {
			return false, nil
		}
	}
	return true, nil
}

// decodeFields reads a struct of fixed size, big-endian, from the start of b,
// which is long enough.
func decodeFields(b []byte, to any) {
	if _, err := binary.Decode(b, binary.BigEndian, to); err != nil {
		panic(err)
	}
}

// encodeFields is a struct of fixed size as it is in a file, big-endian.
func encodeFields(from any) []byte {
	b, err := binary.Append(nil, binary.BigEndian, from)
	if err != nil {
		panic(err)
	}
	return b
}

// ceil is v/unit, rounded up, for a v of 0 or more.
func ceil(v, unit int64) int64 { return v/unit + min(v%unit, 1) }

// unexpectedEOF turns the end of a file where content should be into a damaged
// container.
func unexpectedEOF(err error) error {
	if errors.Is(err, io.EOF) {
		return fmt.Errorf("file ends inside the container: %w", ErrCorrupt)
	}
	return err
}

// unknown reports a container of a version or with features that this package
// does not know. The container may be intact.
func unknown(format string, args ...any) error {
	return &UnsupportedError{Found: fmt.Sprintf(format, args...), Doing: "opening"}
}

// corrupt makes an error that wraps ErrCorrupt.
func corrupt(format string, args ...any) error {
	return fmt.Errorf("%s: %w", fmt.Sprintf(format, args...), ErrCorrupt)
}

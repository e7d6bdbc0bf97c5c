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

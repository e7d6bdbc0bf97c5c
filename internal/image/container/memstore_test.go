package container

import (
	"bytes"
	"io"
	"slices"
	"sync"

	"dmgbench/internal/system/hostio"
)

// memStore is a container file in memory that keeps a log of what changed it.
type memStore struct {
	mu  sync.Mutex
	b   []byte
	log []hostio.Op
}

var _ store = (*memStore)(nil)

func (s *memStore) ReadAt(p []byte, off int64) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return bytes.NewReader(s.b).ReadAt(p, off)
}

func (s *memStore) WriteAt(p []byte, off int64) (int, error) {
	s.do(hostio.Op{Kind: hostio.OpWrite, Off: off, Len: int64(len(p)), Data: slices.Clone(p)})
	return len(p), nil
}

func (s *memStore) WritePadded(p []byte, off int64, pad int) (int, error) {
	return s.WriteAt(append(slices.Clone(p), make([]byte, pad)...), off)
}

func (s *memStore) Size() (int64, error) { return int64(len(s.b)), nil }
func (s *memStore) Stat() (hostio.Stat, error) {
	return hostio.Stat{Size: int64(len(s.b)), Allocated: int64(len(s.b))}, nil
}
func (s *memStore) Truncate(n int64) error {
	s.do(hostio.Op{Kind: hostio.OpTruncate, Len: n})
	return nil
}
func (s *memStore) Allocate(off, n int64) error { return hostio.ErrUnsupported }
func (s *memStore) PunchHole(off, n int64) error {
	s.do(hostio.Op{Kind: hostio.OpPunch, Off: off, Len: n})
	return nil
}
func (s *memStore) EvictRange(off, n int64) error          { return nil }
func (s *memStore) Resident(off, n int64) (float64, error) { return 1, nil }
func (s *memStore) Sync(m hostio.SyncMode) (hostio.SyncMode, error) {
	s.do(hostio.Op{Kind: hostio.OpSync})
	return m, nil
}
func (s *memStore) Check() error            { return nil }
func (s *memStore) Cache() hostio.CacheMode { return hostio.CacheBuffered }
func (s *memStore) Path() string            { return "memory" }
func (s *memStore) Close() error            { return nil }

func (s *memStore) do(op hostio.Op) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.log = append(s.log, op)
	s.b = applyOp(s.b, op)
}

// applyOp does what op did to a file.
func applyOp(b []byte, op hostio.Op) []byte {
	grow := func(n int64) {
		if n > int64(len(b)) {
			b = append(b, make([]byte, n-int64(len(b)))...)
		}
	}
	switch op.Kind {
	case hostio.OpWrite:
		grow(op.Off + op.Len)
		copy(b[op.Off:], op.Data)
	case hostio.OpTruncate:
		grow(op.Len)
		clear(b[op.Len:])
		b = b[:op.Len]
	case hostio.OpPunch:
		if end := min(op.Off+op.Len, int64(len(b))); op.Off < end {
			clear(b[op.Off:end])
		}
	}
	return b
}

var _ io.ReaderAt = (*memStore)(nil)

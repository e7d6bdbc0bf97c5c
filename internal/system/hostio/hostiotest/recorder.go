package hostiotest

import (
	"errors"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"sync"

	"dmgbench/internal/system/hostio"
)

// Recorder is a [hostio.Hook] that keeps every operation that changed or
// flushed something on the host, in the order in which they ended. Reads, opens
// of existing files and what failed are not kept; of a short write, what was
// written is. It is safe for concurrent use.
type Recorder struct {
	mu  sync.Mutex
	ops []hostio.Op
}

var _ hostio.Hook = (*Recorder)(nil)

// Before has no effect.
func (r *Recorder) Before(hostio.Op) error { return nil }

// After keeps op if it changed or flushed something.
func (r *Recorder) After(op hostio.Op, n int, err error) {
	switch op.Kind {
	case hostio.OpRead, hostio.OpOpen, hostio.OpEvict:
		return
	case hostio.OpWrite:
		if n <= 0 {
			return
		}
		op.Len, op.Data = int64(n), op.Data[:n]
	default:
		if err != nil {
			return
		}
	}
	op.Data = slices.Clone(op.Data)
	r.mu.Lock()
	defer r.mu.Unlock()
	r.ops = append(r.ops, op)
}

// Ops returns what was kept so far.
func (r *Recorder) Ops() []hostio.Op {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.ops)
}

// Reset forgets everything.
func (r *Recorder) Reset() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.ops = nil
}

// Replay does the operations from one to before another, counted from 0, again
// below dst: from the first on, what a crash right after them would leave if the
// disk kept every write and its order. A dst that holds what the recorded folder
// held at first gives what it held then. Tests can leave out operations for
// which keep is false, such as writes that no later flush covered: a crash may
// lose them. With the creation of a file go the operations on it.
func (r *Recorder) Replay(from, to int, dst *hostio.Dir, keep func(i int, op hostio.Op) bool) error {
	ops := r.Ops()
	if from < 0 || to < from || to > len(ops) {
		return fmt.Errorf("replaying operations %d to %d of %d: %w", from, to, len(ops), fs.ErrInvalid)
	}
	lost := map[string]bool{}
	for i, op := range ops[from:to] {
		kept := keep == nil || keep(i, op)
		if op.Kind == hostio.OpCreate || op.Kind == hostio.OpMkdir {
			lost[op.Path] = !kept
		}
		if !kept || lost[op.Path] || lost[path.Dir(op.Path)] {
			continue
		}
		if err := replay(op, dst); err != nil {
			return fmt.Errorf("replaying operation %d: %w", from+i, err)
		}
	}
	return nil
}

func replay(op hostio.Op, dst *hostio.Dir) error {
	switch op.Kind {
	case hostio.OpSync, hostio.OpDirSync:
		return nil
	case hostio.OpMkdir:
		return dst.Mkdir(op.Path)
	case hostio.OpRemove:
		return dst.Remove(op.Path)
	case hostio.OpRemoveAll:
		return dst.RemoveAll(op.Path)
	case hostio.OpRename:
		return dst.Rename(op.Path, op.To)
	}
	f, err := dst.Open(op.Path, hostio.OpenOptions{Write: true, Create: op.Kind == hostio.OpCreate})
	if err != nil {
		return err
	}
	switch op.Kind {
	case hostio.OpWrite:
		_, err = f.WriteAt(op.Data, op.Off)
	case hostio.OpTruncate:
		err = f.Truncate(op.Len)
	case hostio.OpAllocate:
		err = f.Allocate(op.Off, op.Len)
	case hostio.OpPunch:
		err = f.PunchHole(op.Off, op.Len)
	}
	return errors.Join(err, f.Close())
}

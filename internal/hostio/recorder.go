package hostio

import (
	"fmt"
	"io/fs"
	"path"
	"slices"
	"sync"
)

// Recorder is a [Hook] that keeps every operation that changed or flushed
// something on the host, in the order in which they ended. Reads, opens of
// existing files and what failed are not kept; of a short write, what was
// written is. It is safe for concurrent use.
type Recorder struct {
	mu   sync.Mutex
	data bool
	ops  []Op
}

var _ Hook = (*Recorder)(nil)

// NewRecorder returns a recorder. With keepData it copies what was written,
// which Replay needs.
func NewRecorder(keepData bool) *Recorder { return &Recorder{data: keepData} }

// Before does nothing.
func (r *Recorder) Before(Op) error { return nil }

// After keeps op if it changed or flushed something.
func (r *Recorder) After(op Op, n int, err error) {
	switch op.Kind {
	case OpRead, OpOpen, OpEvict:
		return
	case OpWrite:
		if n <= 0 {
			return
		}
		op.Len, op.Data = int64(n), op.Data[:n]
	default:
		if err != nil {
			return
		}
	}
	if op.Data != nil {
		if op.Data = slices.Clone(op.Data); !r.data {
			op.Data = nil
		}
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.ops = append(r.ops, op)
}

// Ops returns what was kept so far.
func (r *Recorder) Ops() []Op {
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

// Replay does the first upTo operations again below dst: what a crash right
// after them would leave if the disk kept every write and its order. A dst
// that holds what the recorded folder held at first gives what it held then.
func (r *Recorder) Replay(upTo int, dst *Dir) error {
	return r.ReplayOnly(upTo, dst, func(int, Op) bool { return true })
}

// ReplayNext does only operation n, counted from 0, on a dst to which Replay
// or ReplayNext has done all before it: tests look at every prefix this way.
func (r *Recorder) ReplayNext(n int, dst *Dir) error {
	ops := r.Ops()
	if n < 0 || n >= len(ops) {
		return fmt.Errorf("replaying operation %d of %d: %w", n, len(ops), fs.ErrInvalid)
	}
	if ops[n].Kind == OpWrite && !r.data {
		return fmt.Errorf("replaying a write to %q: the recorder kept no data: %w", ops[n].Path, fs.ErrInvalid)
	}
	if err := ops[n].replay(dst); err != nil {
		return fmt.Errorf("replaying operation %d: %w", n, err)
	}
	return nil
}

// ReplayOnly is Replay of those among the first upTo operations for which
// keep is true; tests drop writes that no later flush covered, as a crash may.
// Operations on a file whose creation was dropped are dropped too.
func (r *Recorder) ReplayOnly(upTo int, dst *Dir, keep func(i int, op Op) bool) error {
	ops := r.Ops()
	if upTo < 0 || upTo > len(ops) {
		return fmt.Errorf("replaying %d of %d operations: %w", upTo, len(ops), fs.ErrInvalid)
	}
	lost := map[string]bool{}
	for i, op := range ops[:upTo] {
		if !keep(i, op) {
			if op.Kind == OpCreate || op.Kind == OpMkdir {
				lost[op.Path] = true
			}
			continue
		}
		if op.Kind == OpCreate || op.Kind == OpMkdir {
			delete(lost, op.Path)
		}
		if lost[op.Path] || lost[path.Dir(op.Path)] {
			continue
		}
		if op.Kind == OpWrite && !r.data {
			return fmt.Errorf("replaying a write to %q: the recorder kept no data: %w", op.Path, fs.ErrInvalid)
		}
		if err := op.replay(dst); err != nil {
			return fmt.Errorf("replaying operation %d: %w", i, err)
		}
	}
	return nil
}

func (op Op) replay(dst *Dir) error {
	switch op.Kind {
	case OpSync, OpDirSync:
		return nil
	case OpMkdir:
		return dst.Mkdir(op.Path)
	case OpRemove:
		return dst.Remove(op.Path)
	case OpRemoveAll:
		return dst.RemoveAll(op.Path)
	case OpRename:
		return dst.Rename(op.Path, op.To)
	}
	f, err := dst.Open(op.Path, OpenOptions{Write: true, Create: op.Kind == OpCreate})
	if err != nil {
		return err
	}
	switch op.Kind {
	case OpWrite:
		_, err = f.WriteAt(op.Data, op.Off)
	case OpTruncate:
		err = f.Truncate(op.Len)
	case OpAllocate:
		err = f.Allocate(op.Off, op.Len)
	case OpPunch:
		err = f.PunchHole(op.Off, op.Len)
	}
	if e := f.Close(); err == nil {
		err = e
	}
	return err
}

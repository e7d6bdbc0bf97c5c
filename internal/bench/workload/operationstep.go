package workload

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"path"
	"slices"
	"sync/atomic"
	"time"

	"dmgbench/internal/result"
	"dmgbench/internal/system/hostio"
)

// operation is what has one latency.
type operation struct {
	kind, name string
	vol, to    Volume                                        // copy has both
	do         func(w *operationWorker, op *operation) error // is timed
	item       Item                                          // create, rewrite, read: the file

	// Of the wave: the open folders of vol and to, the name in them, and the data.
	at, toAt Volume
	base     string
	buf      []byte

	start, end int64 // ns on the step's clock
	done       bool
	err        error
	bytes      int64            // transferred
	cache      hostio.CacheMode // of a written file
	synced     hostio.SyncMode  // achieved
}

// operationStep is a step that times operations on names and files. Those of a
// wave start together, as the files of a [step] do. Data is made between waves:
// it is neither in a latency nor in the span, and nor is any bookkeeping.
type operationStep struct {
	step
	workers   []*operationWorker
	latencies []*result.Latencies   // of out.Operations
	spanNS    int64                 // of all waves
	mem       []byte                // for data, or divided among the workers
	folders   map[openFolder]Folder // of the wave
}

// openFolder is where a [Folder] is.
type openFolder struct {
	vol  Opener
	name string
}

// operationWorker is what one worker of an operationStep has.
type operationWorker struct {
	*span
	id  int
	job job
}

// waveOperations is the most operations of a wave: between waves the step
// reports its progress, and garbage is collected.
const waveOperations = 5000

// call is an operation on a name of a volume.
func (s *operationStep) call(kind, name string, vol Volume, call func(at Volume, name string) error) operation {
	return operation{kind: kind, name: name, vol: vol, do: func(_ *operationWorker, op *operation) error {
		err := call(op.at, op.base)
		if s.l.dataless && err == nil {
			err = s.vol.(Dataless).Operate(kind, 0)
		}
		return err
	}}
}

// calls are operations on names of a volume.
func (s *operationStep) calls(kind string, names []string, vol Volume, call func(at Volume, name string) error) []operation {
	ops := make([]operation, len(names))
	for i, name := range names {
		ops[i] = s.call(kind, name, vol, call)
	}
	return ops
}

// run times the operations of stages, one after the other: those of one stage do
// not depend on each other. s.items are the files that the step writes or reads.
func (s *operationStep) run(ctx context.Context, stages [][]operation) error {
	var total, largest int64
	for _, it := range s.items {
		total, largest = total+s.l.cost(it), max(largest, s.l.cost(it))
	}
	if !s.write || s.l.dataless {
		total = 0
	}
	mem, free, err := s.o.memory(max(s.l.memory, min(total, max(s.o.budget(), largest))))
	if err != nil {
		return err
	}
	defer free()
	s.mem = mem
	for id := range s.o.Workers {
		s.workers = append(s.workers, &operationWorker{span: s.newSpan(ctx, mem, id), id: id})
	}
	if !s.l.dataless { // a simulated time cannot be disturbed by a collection
		defer pauseGC(s.o.Workers)()
	}
	none := operation{do: func(*operationWorker, *operation) error { return nil }}
	s.out.OperationsSpan = &result.OperationsSpan{
		OwnNS: ownTime(s.o.Clock, func() { _ = none.do(s.workers[0], &none) })}
	for _, ops := range stages {
		if err == nil {
			err = s.timeStage(ctx, ops)
		}
	}
	s.out.OperationsSpan.DurationNS = s.spanNS
	for i, l := range s.latencies {
		s.out.Operations[i].Latency = l.Histogram()
	}
	if len(s.found) > 0 {
		s.recordCache()
	}
	if s.synced != "" {
		s.out.Sync = &result.Achieved{Asked: string(s.o.Sync), Achieved: string(s.synced)}
	}
	return err
}

// timeStage times operations that do not depend on each other, in waves.
func (s *operationStep) timeStage(ctx context.Context, ops []operation) error {
	for all := len(ops); len(ops) > 0; {
		n, err := s.fill(ops)
		if err == nil {
			err = s.timeWave(ops[:n])
		}
		closed := s.closeFolders()
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		if err := errors.Join(err, closed); err != nil {
			return err
		}
		ops = ops[n:]
		collectGarbage()
		if s.o.Progress != nil {
			s.o.Progress(Progress{Files: all - len(ops), OfFiles: all, Bytes: s.out.Bytes, OfBytes: Total(s.items),
				Timed: time.Duration(s.spanNS)})
		}
	}
	return nil
}

// fill opens the folders of the next wave and makes its data, as far as
// descriptors and memory go, and returns the number of its operations.
func (s *operationStep) fill(ops []operation) (n int, err error) {
	mem, most := s.mem, hostio.MaxOpen()/foldersShare
	for n < min(len(ops), waveOperations) && len(s.folders) < most {
		op := &ops[n]
		if s.write && op.item.Size > 0 && !s.l.dataless {
			cost := s.l.cost(op.item)
			if cost > int64(len(mem)) {
				break
			}
			op.buf, mem = mem[:op.item.Size], mem[cost:]
			s.o.Data.fillParallel(op.buf, op.item.dataKey())
		}
		op.at, op.base, err = s.resolve(op.vol, op.name)
		if err == nil && op.to != nil {
			op.toAt, _, err = s.resolve(op.to, op.name)
		}
		if err != nil {
			return 0, fmt.Errorf("operation %s of %q: opening its folder: %w", op.kind, op.name, err)
		}
		n++
	}
	return n, nil
}

// foldersShare of the descriptors may be those of open folders, of which each
// takes two.
const foldersShare = 8

// resolve opens the folder of a name and returns the name in it. On a volume that
// cannot do that, it is the volume itself.
func (s *operationStep) resolve(vol Volume, name string) (at Volume, base string, err error) {
	opener, ok := vol.(Opener)
	if !ok {
		return vol, name, nil
	}
	key := openFolder{opener, path.Dir(name)}
	if s.folders == nil {
		s.folders = map[openFolder]Folder{}
	}
	if s.folders[key] == nil {
		folder, err := opener.OpenFolder(key.name)
		if err != nil {
			return nil, "", err
		}
		s.folders[key] = folder
	}
	return s.folders[key], path.Base(name), nil
}

// closeFolders closes the folders of a wave.
func (s *operationStep) closeFolders() (err error) {
	for _, f := range s.folders {
		err = errors.Join(err, f.Close())
	}
	clear(s.folders)
	return err
}

// timeWave starts the workers on one wave, waits for them and records what they
// did.
func (s *operationStep) timeWave(ops []operation) error {
	var next atomic.Int64
	err := s.together(min(len(s.workers), len(ops)), func(id int) {
		w := s.workers[id]
		for i := next.Add(1) - 1; i < int64(len(ops)) && !w.stopped(); i = next.Add(1) - 1 {
			op := &ops[i]
			op.start = int64(w.clock.Now())
			op.err = op.do(w, op)
			op.end = int64(w.clock.Now())
			if op.done = op.err == nil; !op.done {
				w.stop.Store(true)
			}
			if !s.l.dataless {
				w.yield(op.end)
			}
		}
	})
	first, last := int64(math.MaxInt64), int64(0)
	for i := range ops {
		op := &ops[i]
		if op.done {
			first, last = min(first, op.start), max(last, op.end)
			s.record(op)
		} else if op.err != nil && err == nil && !errors.Is(op.err, errStopped) {
			err = fmt.Errorf("operation %s of %q: %w", op.kind, op.name, op.err)
		}
	}
	s.spanNS += max(last-first, 0)
	return err
}

// record adds an operation to the outcome.
func (s *operationStep) record(op *operation) {
	at := slices.IndexFunc(s.out.Operations, func(o result.Operations) bool { return o.Kind == op.kind })
	if at < 0 {
		at = len(s.out.Operations)
		s.out.Operations = append(s.out.Operations, result.Operations{Kind: op.kind})
		s.latencies = append(s.latencies, &result.Latencies{})
	}
	o := &s.out.Operations[at]
	o.Count, o.Bytes, s.out.Bytes = o.Count+1, o.Bytes+op.bytes, s.out.Bytes+op.bytes
	s.latencies[at].Add(op.end - op.start)
	if op.cache != "" {
		s.found[string(op.cache)]++
	}
	if op.synced != "" {
		s.recordSync(op.synced)
	}
}

// transferFile opens a file, transfers all of it, flushes and closes it.
func (s *operationStep) transferFile(w *operationWorker, op *operation) error {
	o, f, err := s.o.fileOptions(w.id), File(nil), error(nil)
	if op.kind == "create" {
		f, err = op.at.Create(op.base, op.item.Size, o)
	} else {
		o.Write = op.kind == "rewrite"
		f, err = op.at.Open(op.base, o)
	}
	if err != nil {
		return err
	}
	w.job = job{item: op.item, buf: op.buf, file: f, sync: s.o.Sync, synced: hostio.SyncNone}
	if s.l.dataless {
		w.job.skipper = f.(Skipper)
	}
	w.call(&w.job)
	if op.bytes = op.item.Size; s.write {
		op.cache, op.synced = f.Cache(), w.job.synced
	}
	return errors.Join(w.job.err, f.Close())
}

// copyFile copies a file to another volume, flushes and closes it.
func (s *operationStep) copyFile(ctx context.Context, w *operationWorker, op *operation) error {
	size, err := op.at.Size(op.base)
	if err != nil {
		return err
	}
	from, err := op.at.Open(op.base, s.o.fileOptions(w.id))
	if err != nil {
		return err
	}
	f, err := op.toAt.Create(op.base, size, s.o.fileOptions(w.id))
	if err != nil {
		return errors.Join(err, from.Close())
	}
	if op.bytes, op.synced = size, hostio.SyncNone; s.l.dataless {
		err = errors.Join(from.(Skipper).Skip(false, 0, size), f.(Skipper).Skip(true, 0, size))
	} else {
		out := &cancelWriter{ctx, io.NewOffsetWriter(f, 0)}
		op.bytes, err = io.CopyBuffer(out, io.NewSectionReader(from, 0, size), w.buf)
	}
	if err == nil && op.bytes < size {
		err = io.ErrUnexpectedEOF
	}
	if err == nil && s.o.Sync != hostio.SyncNone {
		op.synced, err = f.Sync(s.o.Sync)
	}
	return errors.Join(err, from.Close(), f.Close())
}

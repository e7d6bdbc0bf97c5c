package workload

import (
	"io"
	"sync/atomic"

	"dmgbench/internal/clock"
	"dmgbench/internal/hostio"
)

// span is one worker's view of a step: what it needs between start and stop of
// a file's clock. Its methods do not allocate, lock, log or send.
type span struct {
	clock clock.Clock
	call  int64
	done  <-chan struct{} // closed when the step is cancelled
	stop  *atomic.Bool    // set when another file has failed
	buf   []byte          // reads: where calls put their bytes
}

// stopped is asked between calls. Looking at an open channel takes no lock.
func (s *span) stopped() bool {
	select {
	case <-s.done:
		return true
	default:
		return s.stop.Load()
	}
}

// write times one file: its write calls and the flush.
func (s *span) write(j *job) {
	j.start = int64(s.clock.Now())
	switch {
	case j.skipper != nil:
		j.err = s.skipCalls(j, true)
	case j.ring != nil:
		j.err = j.ring.drain(j, s)
	default:
		j.err = s.writeCalls(j)
	}
	if j.err == nil && j.asked != hostio.SyncNone {
		j.synced, j.err = j.file.Sync(j.asked)
	}
	j.end = int64(s.clock.Now())
}

func (s *span) writeCalls(j *job) error {
	for off := int64(0); off < j.item.Size; off += s.call {
		if s.stopped() {
			return errStopped
		}
		part := j.buf[off:min(off+s.call, j.item.Size)]
		if err := put(j.file, part, off); err != nil {
			return err
		}
	}
	return nil
}

// skipCalls makes the calls of a file that holds no bytes.
func (s *span) skipCalls(j *job, write bool) error {
	for off := int64(0); off < j.item.Size; off += s.call {
		if s.stopped() {
			return errStopped
		}
		if err := j.skipper.Skip(write, off, min(s.call, j.item.Size-off)); err != nil {
			return err
		}
	}
	return nil
}

func put(f File, p []byte, off int64) error {
	n, err := f.WriteAt(p, off)
	if err == nil && n < len(p) {
		err = io.ErrShortWrite
	}
	return err
}

// read times one file: its read calls.
func (s *span) read(j *job) {
	j.start = int64(s.clock.Now())
	if j.skipper != nil {
		j.err = s.skipCalls(j, false)
	} else {
		j.err = s.readCalls(j)
	}
	j.end = int64(s.clock.Now())
}

func (s *span) readCalls(j *job) error {
	for off := int64(0); off < j.item.Size; off += s.call {
		if s.stopped() {
			return errStopped
		}
		part := s.buf[:min(s.call, j.item.Size-off)]
		n, err := j.file.ReadAt(part, off)
		if n == len(part) {
			continue
		}
		if err == nil || err == io.EOF {
			return io.ErrUnexpectedEOF
		}
		return err
	}
	return nil
}

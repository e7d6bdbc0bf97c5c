package main

import (
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"

	"dmgbench/internal/hostio"
	"dmgbench/internal/workload"
)

// metered adds up the processor time that files cost, from being made or opened to being closed. Its clock is that of
// the thread: the workload does all of a file's calls on locked threads. Making data, which is outside of the timed
// spans, is left out, as fio fills its buffers before it starts counting; so is looking for pages in the cache, which fio
// does not do.
type metered struct {
	workload.Volume
	ns *atomic.Int64
}

// threadCPU is the processor time of the calling thread.
func threadCPU() time.Duration {
	var t unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_THREAD_CPUTIME_ID, &t); err != nil {
		return 0
	}
	return time.Duration(t.Nano())
}

// since counts what the thread has used from the moment that it gave.
func since(ns *atomic.Int64, from time.Duration) { ns.Add(int64(threadCPU() - from)) }

func (v metered) Create(name string, size int64, o workload.FileOptions) (workload.File, error) {
	defer since(v.ns, threadCPU())
	return v.file(v.Volume.Create(name, size, o))
}

func (v metered) Open(name string, o workload.FileOptions) (workload.File, error) {
	defer since(v.ns, threadCPU())
	return v.file(v.Volume.Open(name, o))
}

func (v metered) file(f workload.File, err error) (workload.File, error) {
	if err != nil {
		return nil, err
	}
	return meteredFile{f, v.ns}, nil
}

type meteredFile struct {
	workload.File
	ns *atomic.Int64
}

func (f meteredFile) ReadAt(p []byte, off int64) (int, error) {
	defer since(f.ns, threadCPU())
	return f.File.ReadAt(p, off)
}

func (f meteredFile) WriteAt(p []byte, off int64) (int, error) {
	defer since(f.ns, threadCPU())
	return f.File.WriteAt(p, off)
}

func (f meteredFile) Sync(mode hostio.SyncMode) (hostio.SyncMode, error) {
	defer since(f.ns, threadCPU())
	return f.File.Sync(mode)
}

func (f meteredFile) Evict() error {
	defer since(f.ns, threadCPU())
	return f.File.Evict()
}

func (f meteredFile) Close() error {
	defer since(f.ns, threadCPU())
	return f.File.Close()
}

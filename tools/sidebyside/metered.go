package main

import (
	"sync/atomic"
	"time"

	"dmgbench/internal/hostio"
	"dmgbench/internal/workload"
)

// metered adds up the processor time of files, from their creation or opening to their closing. Its clock is that of the
// thread: the workload does all calls of a file on locked threads. Making data is left out, as fio fills its buffers
// before it starts counting; so is the check for cached pages, which fio does not do.
type metered struct {
	workload.Volume
	ns *atomic.Int64
}

// since adds the processor time of the thread since from.
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

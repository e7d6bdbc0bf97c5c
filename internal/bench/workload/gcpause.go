package workload

import (
	"runtime"
	"runtime/debug"
	"runtime/metrics"
	"sync"
)

// The garbage collector is off while a step is timed: its threads would compete
// with the workers. A memory limit bounds the heap, and garbage is collected
// between files, when no clock runs.
const (
	gcPauseRoom = 1 << 30  // heap growth in bytes after which the collector runs after all
	gcCollectAt = 64 << 20 // heap growth in bytes that is collected between files
)

// heapObjects is the metric of the memory of all objects on the heap, in bytes.
const heapObjects = "/memory/classes/heap/objects:bytes"

// gcPause is the state that nested pauses share, as the collector's settings
// are those of the process.
var gcPause struct {
	sync.Mutex
	depth   int    // pauses that have not ended
	percent int    // settings to restore
	limit   int64  // in bytes
	heap    uint64 // bytes after the last collection
}

// pauseGC turns the collector off until the function it returns is called.
// Calls nest.
func pauseGC() (restore func()) {
	p := &gcPause
	p.Lock()
	defer p.Unlock()
	if p.depth++; p.depth == 1 {
		runtime.GC()
		p.heap = readMetric(heapObjects)
		p.percent = debug.SetGCPercent(-1)
		p.limit = debug.SetMemoryLimit(-1)
		// What the limit counts: memory of the runtime that the system does not have back.
		used := readMetric("/memory/classes/total:bytes") - readMetric("/memory/classes/heap/released:bytes")
		debug.SetMemoryLimit(min(p.limit, int64(used)+gcPauseRoom))
	}
	return func() {
		p.Lock()
		defer p.Unlock()
		if p.depth--; p.depth == 0 {
			debug.SetGCPercent(p.percent)
			debug.SetMemoryLimit(p.limit)
		}
	}
}

// collectGarbage collects if the heap has grown since the last time. It is
// called between files. While several steps run it collects none, as the clock
// of another step may be running.
func collectGarbage() {
	p := &gcPause
	p.Lock()
	defer p.Unlock()
	if p.depth == 1 && readMetric(heapObjects) > p.heap+gcCollectAt {
		runtime.GC()
		p.heap = readMetric(heapObjects)
	}
}

// readMetric reads a figure of package [runtime/metrics].
func readMetric(name string) uint64 {
	samples := []metrics.Sample{{Name: name}}
	metrics.Read(samples)
	return samples[0].Value.Uint64()
}

package workload

import (
	"runtime"
	"runtime/debug"
	"runtime/metrics"
	"sync"
)

// While a step is timed the garbage collector is off: its workers would
// compete with ours. A memory limit is the safety net, and garbage is
// collected between files, when no clock runs.
const (
	quietRoom    = 1 << 30  // heap growth in bytes at which the collector may step in after all
	quietCollect = 64 << 20 // heap growth in bytes that is collected between files
)

var silence struct {
	sync.Mutex
	depth   int
	percent int
	limit   int64
	floor   uint64 // heap after the last collection
}

// quiet turns the collector off until the function it returns is called. Calls nest.
func quiet() (restore func()) {
	s := &silence
	s.Lock()
	defer s.Unlock()
	if s.depth++; s.depth == 1 {
		runtime.GC()
		s.floor = heapBytes()
		s.percent = debug.SetGCPercent(-1)
		s.limit = debug.SetMemoryLimit(-1)
		debug.SetMemoryLimit(min(s.limit, runtimeBytes()+quietRoom))
	}
	return sync.OnceFunc(func() {
		s.Lock()
		defer s.Unlock()
		if s.depth--; s.depth == 0 {
			debug.SetGCPercent(s.percent)
			debug.SetMemoryLimit(s.limit)
		}
	})
}

// tidy collects what piled up since the last time. It is called between files,
// and leaves it to others when their clocks may be running.
func tidy() {
	s := &silence
	s.Lock()
	defer s.Unlock()
	if s.depth != 1 {
		return
	}
	if heapBytes() > s.floor+quietCollect {
		runtime.GC()
		s.floor = heapBytes()
	}
}

func heapBytes() uint64 {
	one := []metrics.Sample{{Name: "/memory/classes/heap/objects:bytes"}}
	metrics.Read(one)
	return one[0].Value.Uint64()
}

// runtimeBytes is the memory that the limit counts, in bytes.
func runtimeBytes() int64 {
	two := []metrics.Sample{{Name: "/memory/classes/total:bytes"}, {Name: "/memory/classes/heap/released:bytes"}}
	metrics.Read(two)
	return int64(two[0].Value.Uint64() - two[1].Value.Uint64())
}

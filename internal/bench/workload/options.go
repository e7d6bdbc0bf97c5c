package workload

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"dmgbench/internal/result"
	"dmgbench/internal/system/clock"
	"dmgbench/internal/system/hostio"
)

// MaxCall is the most bytes that one read or write call transfers: Darwin
// cannot transfer 2 GiB in one call.
const MaxCall = 1 << 30

// DefaultMemory is the assumed memory of the machine in bytes where Options
// does not contain it.
const DefaultMemory = 4 << 30

// Options of one step.
type Options struct {
	Clock clock.Clock // required
	Data  *Data       // required by Write and Verify

	Workers int   // goroutines doing file I/O; 0 means 1
	Block   int64 // bytes a call; 0: one call a file up to MaxCall
	Sync    hostio.SyncMode
	Cache   string // direct | buffered | cold; "" is buffered
	QoS     string // default | utility | background; "" is default

	Preallocate bool
	// Memory is how many bytes the program may use. Buffers take at most a
	// quarter.
	Memory int64
	// Buffers are reused from step to step; nil maps and frees them in the
	// call.
	Buffers *Buffers
	// Virtual is set where a hypervisor may cache what the guest believes to be
	// on a disk.
	Virtual bool
	// Gate, if not nil, holds the first timed span until every step of the gate
	// is ready.
	Gate *Gate
	// Progress, if not nil, is called between files when no clock of this step
	// runs.
	Progress func(Progress)
}

// Progress is how far a step has come.
type Progress struct {
	Files, OfFiles int
	Bytes, OfBytes int64
	Timed          time.Duration // timed spans so far
}

// Outcome is what a step did. After an error it contains what was complete
// before it.
type Outcome struct {
	Samples  []result.Sample // in the order of the items
	Span     *result.Span    // nil if nothing was timed
	Cache    *result.Achieved
	Sync     *result.Achieved
	QoS      *result.Achieved // of the workers' threads; nil: the default, as asked
	Stream   *result.Stream
	Findings []string // of Verify, none means that every byte is right
	Warnings []result.Warning
	Bytes    int64 // bytes of complete files
	Flushes  int64 // calls of this process that flushed a file or folder of the host while files were timed
}

// warn adds a warning, once for each kind and text.
func (o *Outcome) warn(kind, format string, args ...any) {
	w := result.Warning{Kind: kind, Text: fmt.Sprintf(format, args...)}
	if !slices.Contains(o.Warnings, w) {
		o.Warnings = append(o.Warnings, w)
	}
}

// withDefaults fills in defaults. A plan has no invalid options.
func (o Options) withDefaults() Options {
	o.Workers = max(o.Workers, 1)
	o.Memory = cmp.Or(max(o.Memory, 0), DefaultMemory)
	o.Cache = cmp.Or(o.Cache, CacheBuffered)
	o.Sync = cmp.Or(o.Sync, hostio.SyncNone)
	o.QoS = cmp.Or(o.QoS, QoSDefault)
	return o
}

// budget is how many bytes the buffers of the step may take: a quarter of the
// memory, shared by the steps of a gate.
func (o Options) budget() int64 {
	b := o.Memory / 4
	if o.Gate != nil {
		b /= int64(o.Gate.shared.parties)
	}
	return b
}

// fileOptions are the options of one file that the worker is likely to
// transfer.
func (o Options) fileOptions(worker int) FileOptions {
	mode := hostio.CacheBuffered
	if o.Cache == CacheDirect {
		mode = hostio.CacheDirect
	}
	return FileOptions{Cache: mode, Preallocate: o.Preallocate, Worker: worker}
}

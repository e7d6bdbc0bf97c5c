package workload

import (
	"fmt"
	"time"

	"dmgbench/internal/clock"
	"dmgbench/internal/hostio"
	"dmgbench/internal/result"
)

// How files are to be reached, as in plans.
const (
	CacheDirect   = "direct"   // past the page cache
	CacheBuffered = "buffered" // through it, as it is
	CacheCold     = "cold"     // through it, evicted before reading
)

// What was found of the cache.
const (
	FoundDirect   = "direct"            // transfers went past the page cache
	FoundBuffered = "buffered"          // writes went through it
	FoundCold     = "buffered-cold"     // reads went through it and nothing of the file was there
	FoundResident = "buffered-resident" // reads went through it and found pages of the file there
	FoundUnknown  = "unknown"           // cannot be seen, or a virtual machine hides the host's cache
)

// MaxCall is the most that one read or write call transfers, 1 GiB: Darwin
// cannot move 2 GiB in one call.
const MaxCall = 1 << 30

// DefaultMemory is the machine's memory in bytes that is assumed where Options
// does not give it.
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
	// Memory is what the program may use of the machine's, in bytes. Buffers take at most a quarter.
	Memory int64
	// Buffers are reused from step to step; nil maps and frees them in the call.
	Buffers *Buffers
	// Virtual is set where a hypervisor may cache what the guest believes to be on a disk.
	Virtual bool
	// Gate, if not nil, holds the first timed span until every step of the gate is ready.
	Gate *Gate
	// Progress, if not nil, is called between files when no clock of this step runs.
	Progress func(Progress)
}

// Progress is how far a step has come.
type Progress struct {
	Files, OfFiles int
	Bytes, OfBytes int64
	Timed          time.Duration // timed spans so far
}

// Outcome is what a step did. After an error it holds what was complete before it.
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

// warn keeps one warning of a kind and text.
func (o *Outcome) warn(kind, format string, args ...any) {
	w := result.Warning{Kind: kind, Text: fmt.Sprintf(format, args...)}
	for _, have := range o.Warnings {
		if have == w {
			return
		}
	}
	o.Warnings = append(o.Warnings, w)
}

// settle fills in defaults and refuses what cannot be.
func (o Options) settle() (Options, error) {
	o.Workers = max(o.Workers, 1)
	if o.Memory <= 0 {
		o.Memory = DefaultMemory
	}
	if o.Cache == "" {
		o.Cache = CacheBuffered
	}
	if o.Sync == "" {
		o.Sync = hostio.SyncNone
	}
	if o.QoS == "" {
		o.QoS = QoSDefault
	}
	switch {
	case o.Clock == nil:
		return o, fmt.Errorf("preparing file I/O: no clock was given")
	case o.Block < 0:
		return o, fmt.Errorf("preparing file I/O: block of %d bytes", o.Block)
	case o.Cache != CacheDirect && o.Cache != CacheBuffered && o.Cache != CacheCold:
		return o, fmt.Errorf("preparing file I/O: unknown cache mode %q", o.Cache)
	case o.QoS != QoSDefault && o.QoS != QoSUtility && o.QoS != QoSBackground:
		return o, fmt.Errorf("preparing file I/O: unknown quality of service %q", o.QoS)
	}
	return o, nil
}

// budget is what the buffers of the step may take, in bytes.
func (o Options) budget() int64 {
	b := o.Memory / 4
	if o.Gate != nil {
		b /= int64(o.Gate.shared.parties)
	}
	return b
}

func (o Options) fileOptions(worker int) FileOptions {
	mode := hostio.CacheBuffered
	if o.Cache == CacheDirect {
		mode = hostio.CacheDirect
	}
	return FileOptions{Cache: mode, Preallocate: o.Preallocate, Worker: worker}
}

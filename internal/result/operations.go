package result

import (
	"fmt"
	"math"
	"math/bits"
)

// Operations are the timed calls of one kind that a step made: files created,
// blocks read, flushes. Single calls are not kept, but their distribution is.
type Operations struct {
	Kind  string `json:"kind"` // create | stat | read | …: a value of the selector key "operation"
	Count int64  `json:"count"`
	Bytes int64  `json:"bytes,omitempty"` // that the calls transferred
	// Latency are the times of the calls in nanoseconds.
	Latency Histogram `json:"latency"`
}

// OperationsSpan is the part of a step in which its operations ran, by one or
// several workers, and what the program itself adds to each.
type OperationsSpan struct {
	DurationNS int64 `json:"duration_ns"` // from the start of the first to the end of the last
	// OwnNS is the median time in nanoseconds of an operation that does no work,
	// measured before the step: clock and call are in every latency.
	OwnNS int64 `json:"own_ns"`
	// Prepared are bytes that were written before the first operation, outside
	// of the step's duration: the file that random steps access.
	Prepared int64 `json:"prepared_bytes,omitempty"`
}

// Histogram is how many values are in which bucket. A bucket is at most 1/128
// of its values wide; below 256 it has one value.
type Histogram struct {
	Sum     int64      `json:"sum_ns"`
	Min     int64      `json:"min_ns"`
	Max     int64      `json:"max_ns"`
	Buckets [][2]int64 `json:"buckets"` // bucket and its count, ascending, without empty ones
}

// subBuckets is how many buckets each power of two has: the middle of a bucket
// is at most 0.4 % from its values.
const (
	subBuckets = 1 << subBits
	subBits    = 7
	maxBucket  = (64-subBits)*subBuckets - 1
)

// bucketOf is the bucket of a value.
func bucketOf(v int64) int {
	shift := max(bits.Len64(uint64(v))-1-subBits, 0)
	return shift*subBuckets + int(v>>shift)
}

// bucketMiddle is the middle of a bucket.
func bucketMiddle(bucket int64) int64 {
	if bucket < 2*subBuckets {
		return bucket
	}
	shift := bucket/subBuckets - 1
	return (bucket%subBuckets+subBuckets)<<shift + (int64(1)<<shift-1)/2
}

// Latencies collects values for a [Histogram]. The zero value is empty. It is
// not safe for concurrent use.
type Latencies struct {
	counts   []int64 // by bucket
	n, sum   int64
	min, max int64
}

// Add counts a value in nanoseconds; a negative one counts as 0. It allocates
// memory only for a value that is larger than any before.
func (l *Latencies) Add(v int64) {
	v = max(v, 0)
	b := bucketOf(v)
	if b >= len(l.counts) {
		l.counts = append(l.counts, make([]int64, b+1-len(l.counts))...)
	}
	if l.n == 0 {
		l.min = v
	}
	l.counts[b]++
	l.n, l.sum = l.n+1, l.sum+v
	l.min, l.max = min(l.min, v), max(l.max, v)
}

// Merge adds the values of another collection.
func (l *Latencies) Merge(o *Latencies) {
	if o.n == 0 {
		return
	}
	if l.n == 0 {
		l.min = o.min
	}
	l.counts = append(l.counts, make([]int64, max(len(o.counts)-len(l.counts), 0))...)
	for b, n := range o.counts {
		l.counts[b] += n
	}
	l.n, l.sum = l.n+o.n, l.sum+o.sum
	l.min, l.max = min(l.min, o.min), max(l.max, o.max)
}

// Histogram is what was collected.
func (l *Latencies) Histogram() Histogram {
	h := Histogram{Sum: l.sum, Min: l.min, Max: l.max, Buckets: [][2]int64{}}
	for b, n := range l.counts {
		if n > 0 {
			h.Buckets = append(h.Buckets, [2]int64{int64(b), n})
		}
	}
	return h
}

// Count is the number of values.
func (h *Histogram) Count() (n int64) {
	for _, b := range h.Buckets {
		n += b[1]
	}
	return n
}

// Quantile is the value that the share q of all values does not exceed, as the
// middle of its bucket and within Min and Max; 0 without values. The largest value
// is known exactly.
func (h *Histogram) Quantile(q float64) int64 {
	n := h.Count()
	rank, seen := int64(math.Ceil(q*float64(n))), int64(0)
	if rank >= n {
		return h.Max
	}
	for _, b := range h.Buckets {
		if seen += b[1]; seen >= rank {
			return min(max(bucketMiddle(b[0]), h.Min), h.Max)
		}
	}
	return 0
}

// check rejects buckets that no value has, counts below 1 and ends that
// contradict the buckets.
func (h *Histogram) check() error {
	last := int64(-1)
	for _, b := range h.Buckets {
		if b[0] <= last || b[0] > maxBucket || b[1] < 1 || b[1] > maxIndex {
			return fmt.Errorf("bucket %d has %d values, after bucket %d", b[0], b[1], last)
		}
		last = b[0]
	}
	if n := len(h.Buckets); n > 0 && (h.Min < 0 || bucketOf(h.Min) != int(h.Buckets[0][0]) ||
		bucketOf(h.Max) != int(last)) {
		return fmt.Errorf("values from %d to %d ns are not in buckets %d to %d", h.Min, h.Max, h.Buckets[0][0], last)
	}
	return nil
}

// check rejects operations that contradict themselves or their step.
func (o *Operations) check(step *Step) error {
	err := o.Latency.check()
	if l := &o.Latency; err == nil && (o.Count != l.Count() || o.Bytes < 0 || l.Max > step.DurationNS) {
		err = fmt.Errorf("%d of %d bytes, with %d latencies up to %d ns in a step of %d ns",
			o.Count, o.Bytes, l.Count(), l.Max, step.DurationNS)
	}
	if err != nil {
		return fmt.Errorf("operations %q: %w", o.Kind, err)
	}
	return nil
}

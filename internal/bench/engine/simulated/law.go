// Package simulated is an engine with operations that take a time drawn from a
// given law, so that the results of the rest of the program can be compared
// with the true values.
//
// With a virtual clock no bytes are moved and no time passes: the volume is
// dataless (see [workload.Dataless]), a file is a name and a length, and a run
// of 53 GB takes milliseconds. With a real clock the device spins until its
// time is over and takes real data, which measures what the harness itself
// costs. All times follow from law and seed alone, whatever the order in which
// they are asked for.
//
// The package refuses more than one worker (one clock cannot be spun by two),
// content (what was written cannot be read back or verified), and whatever
// changes an image into another. It is for tests and selftest: no plan reaches
// it.
package simulated

import (
	"errors"
	"fmt"
	"hash/fnv"
	"maps"
	"math"
	"slices"
	"time"
)

// Law gives the duration of every operation. A call that moves n bytes takes
//
//	(latency + n/rate) · file · mount · session · own · drift
//
// where file is a log-normal factor of mean 1 with its outliers, its slow first
// and its slow mode, drawn for each file and direction, and mount, session and
// own are log-normal factors of median 1.
type Law struct {
	Write, Read float64       // bytes per second, more than 0
	Latency     time.Duration // of a call
	Flush       time.Duration // of a flush
	Step        time.Duration // of creating, attaching, detaching and all else

	FileNoise    float64 // standard deviation of the logarithm of a file's factor, as those below
	MountNoise   float64 // drawn at every attach
	SessionNoise float64 // drawn once a session, the same for all images
	OwnNoise     float64 // drawn once a session separately for each kind of image

	Outliers      float64 // share of files that take OutlierFactor times as long
	OutlierFactor float64
	First         float64 // factor of the first file of each direction after an attach; 0 is 1
	CliffAfter    int64   // bytes written since the attach after which writes take CliffFactor times as long; 0: none
	CliffFactor   float64
	Slow          float64 // share of stretches of SlowFiles files that take SlowFactor times as long
	SlowFactor    float64
	SlowFiles     int
	Drift         float64 // by what share times grow in an hour; above -1
}

// Machine is a law for all images, and laws of their own for some kinds.
type Machine struct {
	Law
	// Kinds are keyed by format ("UDSB"), format and encryption ("UDSB
	// AES-256"), or "native" for a plain folder.
	Kinds map[string]Law
}

// limits keep every time finite and within a clock's range.
const (
	maxNoise  = 2
	maxFactor = 1e6
)

// check reports values that are out of range.
func (l Law) check() error {
	var errs []error
	want := func(ok bool, format string, args ...any) {
		if !ok {
			errs = append(errs, fmt.Errorf(format, args...))
		}
	}
	for _, r := range []float64{l.Write, l.Read} {
		want(r >= 1 && r <= 1e15, "a rate of %g B/s is not between 1 B/s and 1 PB/s", r)
	}
	for _, d := range []time.Duration{l.Latency, l.Flush, l.Step} {
		want(d >= 0 && d <= time.Hour, "a time of %s is not between 0 and an hour", d)
	}
	for _, s := range []float64{l.FileNoise, l.MountNoise, l.SessionNoise, l.OwnNoise} {
		want(s >= 0 && s <= maxNoise, "a noise of %g is not between 0 and %d %%", s, 100*maxNoise)
	}
	for _, s := range []float64{l.Outliers, l.Slow} {
		want(s >= 0 && s <= 1, "a share of %g is not between 0 and 1", s)
	}
	for _, f := range []float64{l.OutlierFactor, l.First, l.CliffFactor, l.SlowFactor} {
		want(f >= 0 && f <= maxFactor, "a factor of %g is not between 0 and a million", f)
	}
	want(l.Outliers == 0 || l.OutlierFactor > 0, "outliers without a factor")
	want(l.CliffAfter == 0 || l.CliffAfter > 0 && l.CliffFactor > 0,
		"a cliff without a factor, or before the first byte")
	want(l.Slow == 0 || l.SlowFactor > 0 && l.SlowFiles > 0, "a slow mode without a factor or a length")
	want(l.Drift > -1 && l.Drift <= 100, "a drift of %g an hour is not between -100 %% and 10,000 %%", l.Drift)
	return errors.Join(errs...)
}

// Check reports values of m that are out of range.
func (m Machine) Check() error {
	if err := m.check(); err != nil {
		return fmt.Errorf("checking the law: %w", err)
	}
	for _, k := range slices.Sorted(maps.Keys(m.Kinds)) {
		if err := m.Kinds[k].check(); err != nil {
			return fmt.Errorf("checking the law of %q: %w", k, err)
		}
	}
	return nil
}

// Kind names the kind of an image in [Machine.Kinds].
func Kind(format, encryption string) string {
	switch {
	case format == "":
		return "native"
	case encryption == "" || encryption == "none":
		return format
	}
	return format + " " + encryption
}

// Of is the law of a kind.
func (m Machine) Of(kind string) Law {
	if l, ok := m.Kinds[kind]; ok {
		return l
	}
	return m.Law
}

// transfer is the time of moving n bytes, without latency and noise, in
// seconds, after moved bytes of the same direction.
func (l Law) transfer(write bool, moved, n int64) float64 {
	if !write {
		return float64(n) / l.Read
	}
	slow := int64(0)
	if l.CliffAfter > 0 {
		slow = n - min(max(l.CliffAfter-moved, 0), n)
	}
	return (float64(n-slow) + float64(slow)*l.CliffFactor) / l.Write
}

// drift is the factor of the times t after the device was made.
func (l Law) drift(t time.Duration) float64 {
	if l.Drift == 0 {
		return 1
	}
	return math.Pow(1+l.Drift, t.Hours())
}

// source is a stateless generator: what it gives follows from seed and names,
// so that no draw depends on what was drawn before.
type source uint64

// of is the source of something named within s.
func (s source) of(names ...string) source {
	h := fnv.New64a()
	var seed [8]byte
	for i := range seed {
		seed[i] = byte(s >> (8 * i))
	}
	h.Write(seed[:])
	for _, n := range names {
		h.Write([]byte(n))
		h.Write([]byte{0})
	}
	return source(mix(h.Sum64()))
}

// mix is the finaliser of SplitMix64 (Steele, Lea and Flood, 2014).
func mix(x uint64) uint64 {
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	return x ^ x>>31
}

// uniform is the k-th number of the source in (0, 1).
func (s source) uniform(k uint64) float64 {
	x := mix(uint64(s) + (k+1)*0x9e3779b97f4a7c15)
	return (float64(x>>11) + 0.5) / (1 << 53)
}

// normal is a standard normal number (Box and Muller, 1958) of numbers k and
// k+1.
func (s source) normal(k uint64) float64 {
	return math.Sqrt(-2*math.Log(s.uniform(k))) * math.Cos(2*math.Pi*s.uniform(k+1))
}

// lognormal has median 1 and a logarithm of standard deviation sigma.
func (s source) lognormal(sigma float64) float64 {
	if sigma == 0 {
		return 1
	}
	return math.Exp(sigma * s.normal(0))
}

// fileFactor is the factor of one file by law: noise of mean 1 and outliers,
// both from the source of that file alone.
func (l Law) fileFactor(s source) float64 {
	f := 1.0
	if l.FileNoise > 0 {
		f = math.Exp(l.FileNoise*s.normal(0) - l.FileNoise*l.FileNoise/2)
	}
	if l.Outliers > 0 && s.uniform(2) < l.Outliers {
		f *= l.OutlierFactor
	}
	return f
}

// slow reports whether the n-th file (from 0) of a direction is in a slow
// stretch, from the source of that direction.
func (l Law) slow(s source, n int) bool {
	return l.Slow > 0 && s.uniform(uint64(n/l.SlowFiles)) < l.Slow
}

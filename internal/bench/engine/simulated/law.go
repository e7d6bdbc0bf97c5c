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
	"encoding/binary"
	"fmt"
	"hash/fnv"
	"maps"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"dmgbench/internal/system/units"
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
	Drift         float64 // by what share times grow in an hour
}

// Machine is a law for all images, and laws of their own for some kinds.
type Machine struct {
	Law
	// Kinds are keyed by format ("UDSB"), format and encryption ("UDSB
	// AES-256"), or "native" for a plain folder.
	Kinds map[string]Law

	text string // that Parse read, in one line
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

// seconds is the time of a call that moves n bytes, without noise and drift,
// after moved bytes of the same direction.
func (l Law) seconds(write bool, moved, n int64) float64 {
	if !write {
		return l.Latency.Seconds() + float64(n)/l.Read
	}
	slow := int64(0)
	if l.CliffAfter > 0 {
		slow = n - min(max(l.CliffAfter-moved, 0), n)
	}
	return l.Latency.Seconds() + (float64(n-slow)+float64(slow)*l.CliffFactor)/l.Write
}

// source is a stateless generator: what it gives follows from seed and names,
// so that no draw depends on what was drawn before.
type source uint64

// of is the source of something named within s.
func (s source) of(names ...string) source {
	h := fnv.New64a()
	h.Write(binary.LittleEndian.AppendUint64(nil, uint64(s)))
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
	return l.Slow > 0 && s.uniform(uint64(n/max(l.SlowFiles, 1))) < l.Slow
}

// value parses the text of one value of a law.
type value func(text string) error

// to parses a value into the field at.
func to[T, U ~int | ~int64 | ~float64](at *T, parse func(string) (U, error)) value {
	return func(text string) error {
		v, err := parse(text)
		*at = T(v)
		return err
	}
}

// parseFactor parses a number above 0.
func parseFactor(text string) (f float64, err error) {
	if f, err = strconv.ParseFloat(text, 64); err == nil && !(f > 0) {
		err = fmt.Errorf("a factor of %s is not above 0", text)
	}
	return f, err
}

// lawLine is one line of the text form: "name = " and the form with the values in
// the places of %s.
type lawLine struct {
	form   string
	values []value
}

// lines are the lines of the text form by name.
func (l *Law) lines() map[string]lawLine {
	return map[string]lawLine{
		"write":         {"%s", []value{to(&l.Write, units.ParseRate)}},
		"read":          {"%s", []value{to(&l.Read, units.ParseRate)}},
		"latency":       {"%s", []value{to(&l.Latency, units.ParseDuration)}},
		"flush":         {"%s", []value{to(&l.Flush, units.ParseDuration)}},
		"step":          {"%s", []value{to(&l.Step, units.ParseDuration)}},
		"file_noise":    {"%s", []value{to(&l.FileNoise, units.ParseShare)}},
		"mount_noise":   {"%s", []value{to(&l.MountNoise, units.ParseShare)}},
		"session_noise": {"%s", []value{to(&l.SessionNoise, units.ParseShare)}},
		"own_noise":     {"%s", []value{to(&l.OwnNoise, units.ParseShare)}},
		"outliers":      {"%s x %s", []value{to(&l.Outliers, units.ParseShare), to(&l.OutlierFactor, parseFactor)}},
		"first":         {"x %s", []value{to(&l.First, parseFactor)}},
		"cliff":         {"%s x %s", []value{to(&l.CliffAfter, units.ParseBytes), to(&l.CliffFactor, parseFactor)}},
		"drift":         {"%s", []value{to(&l.Drift, units.ParseShare)}},
		"slow": {"%s x %s in %s files",
			[]value{to(&l.Slow, units.ParseShare), to(&l.SlowFactor, parseFactor), to(&l.SlowFiles, strconv.Atoi)}},
	}
}

// Parse reads the text form of a machine: lines "name = value" in the units of
// plans, "#" comments, and sections "[KIND]" that start with the values of all
// lines above the first section. Write and read have to be given.
//
//	write      = 5 GB/s
//	read       = 6 GB/s
//	latency    = 200 us
//	file_noise = 3%
//	outliers   = 2% x 8
//	cliff      = 20 GB x 5
//	[UDSB AES-256]
//	write      = 2.5 GB/s
func Parse(text string) (Machine, error) {
	m, kind := Machine{Kinds: map[string]Law{}}, ""
	law := &m.Law
	var lines []string
	for i, line := range strings.Split(text, "\n") {
		line, _, _ = strings.Cut(line, "#")
		if line = strings.TrimSpace(line); line == "" {
			continue
		}
		lines = append(lines, line)
		if line[0] == '[' && line[len(line)-1] == ']' {
			kind = line[1 : len(line)-1]
			law = new(m.Law)
		} else if err := law.readLine(line); err != nil {
			return Machine{}, fmt.Errorf("reading the law: line %d: %w", i+1, err)
		}
		if kind != "" {
			m.Kinds[kind] = *law
		}
	}
	m.text = strings.Join(lines, ", ")
	return m, m.check()
}

// readLine reads one line into the law.
func (l *Law) readLine(line string) error {
	name, text, _ := strings.Cut(line, "=")
	found, ok := l.lines()[strings.TrimSpace(name)]
	if !ok {
		return fmt.Errorf("%q is not a line of a law", line)
	}
	form := regexp.MustCompile("^" + strings.ReplaceAll(found.form, "%s", "(.+?)") + "$")
	parts := form.FindStringSubmatch(strings.TrimSpace(text))
	if parts == nil {
		return fmt.Errorf("parsing %q: want %q", text, strings.ReplaceAll(found.form, "%s", "…"))
	}
	for i, parse := range found.values {
		if err := parse(parts[i+1]); err != nil {
			return fmt.Errorf("parsing %q: %w", text, err)
		}
	}
	return nil
}

// check fails unless every law has rates.
func (m Machine) check() error {
	for _, kind := range append(slices.Collect(maps.Keys(m.Kinds)), "") {
		if l := m.Of(kind); !(l.Write >= 1 && l.Read >= 1) {
			return fmt.Errorf("checking the law of %q: a rate is below 1 B/s", kind)
		}
	}
	return nil
}

package selftest

import (
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"runtime/debug"
	"slices"
	"strings"
	"time"
)

// Report is the outcome of all studies.
type Report struct {
	Seed    uint64  `json:"seed"`
	Full    bool    `json:"full"`
	Studies []Study `json:"studies"`
	// Overhead is measured on this machine; all else follows from the seed.
	Overhead *Overhead `json:"overhead,omitempty"`
	Kept     bool      `json:"kept"` // every promise
}

// studies are all of them, in the order of the page.
var studies = []struct {
	id string
	do func(*Exam, context.Context) (Study, error)
}{
	{"recovery", (*Exam).recovery}, {"files", (*Exam).fileIntervals}, {"rounds", (*Exam).roundIntervals},
	{"speeds", (*Exam).twoSpeedIntervals},
	{"auto", (*Exam).autoRounds}, {"verdicts", (*Exam).falseAlarms}, {"power", (*Exam).power}, {"compare", (*Exam).comparing},
	{"require", (*Exam).requiring},
	{"warnings", (*Exam).fileWarnings}, {"drift", (*Exam).drift}, {"overhead", (*Exam).overhead},
}

// IDs are the names of all studies.
func IDs() []string {
	out := make([]string, len(studies))
	for i, s := range studies {
		out[i] = s.id
	}
	return out
}

// Options of [Run].
type Options struct {
	Seed uint64 // of all simulated runs
	Full bool   // every law and design of docs/accuracy.md, minutes; else a short form of seconds
	// Only are the studies to go through, by their names ([IDs]); none are all, a name of no study is an error.
	Only []string
	// Done is called with each study as it ends; nil is allowed.
	Done func(Study, time.Duration)
}

// scarceGC is how much the heap may grow between collections, in per cent: it is small, and
// a quarter of the time would else go into collecting it.
const scarceGC = 400

// Run goes through the studies.
func Run(ctx context.Context, o Options) (r Report, err error) {
	for _, id := range o.Only {
		if !slices.Contains(IDs(), id) {
			return Report{}, fmt.Errorf("choosing studies: there is no study %q, only %s", id, strings.Join(IDs(), ", "))
		}
	}
	st, err := newStage()
	if err != nil {
		return Report{}, err
	}
	defer func() { err = errors.Join(err, st.close()) }()
	defer debug.SetGCPercent(debug.SetGCPercent(scarceGC)) // thousands of short runs that keep nothing
	x := &Exam{Seed: o.Seed, Full: o.Full, stage: st}
	r = Report{Seed: o.Seed, Full: o.Full, Kept: true}
	for _, one := range studies {
		if len(o.Only) > 0 && !slices.Contains(o.Only, one.id) {
			continue
		}
		from := time.Now()
		s, err := one.do(x, ctx)
		if err != nil {
			return r, fmt.Errorf("study %q: %w", one.id, err)
		}
		for _, p := range s.Promises {
			r.Kept = r.Kept && p.Kept
		}
		r.Studies = append(r.Studies, s)
		if o.Done != nil {
			o.Done(s, time.Since(from))
		}
	}
	r.Overhead = x.cost
	return r, nil
}

// Exam is one pass over the studies.
type Exam struct {
	Seed  uint64
	Full  bool      // every law and design of docs/accuracy.md, else a short form
	cost  *Overhead // once it is measured
	stage *stage
}

// runs is how many runs a figure rests on.
func (x *Exam) runs(full, short int) int {
	if x.Full {
		return full
	}
	return short
}

// seed is the seed of one run of a study.
func (x *Exam) seed(names ...any) uint64 {
	h := fnv.New64a()
	fmt.Fprint(h, x.Seed, names)
	return h.Sum64()
}

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
	// Every promise
	Kept bool `json:"kept"`
}

// studies are all of them, in the order of the page.
var studies = []struct {
	id string
	do func(*exam, context.Context, *draft) error
}{
	{"recovery", (*exam).recovery},
	{"files", (*exam).fileIntervals},
	{"rounds", (*exam).roundIntervals},
	{"speeds", (*exam).twoSpeedIntervals},
	{"auto", (*exam).autoRounds},
	{"verdicts", (*exam).falseVerdicts},
	{"power", (*exam).power},
	{"compare", (*exam).comparisons},
	{"require", (*exam).requiredClaims},
	{"warnings", (*exam).fileWarnings},
	{"drift", (*exam).drift},
	{"overhead", (*exam).overhead},
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
	// Of all simulated runs
	Seed uint64
	// Every law and design of docs/accuracy.md, minutes; else a short form of seconds
	Full bool
	// Only are the studies to go through, by their names ([IDs]). The empty list means all of them; an unknown name is
	// an error.
	Only []string
	// Done is called with each study as it ends; nil is allowed.
	Done func(Study, time.Duration)
}

// gcPercent is how much the heap may grow between collections, in per cent: the heap is small, and
// collecting it would else take a quarter of the time.
const gcPercent = 400

// Run goes through the studies.
func Run(ctx context.Context, o Options) (r Report, err error) {
	for _, id := range o.Only {
		if !slices.Contains(IDs(), id) {
			return Report{}, fmt.Errorf("choosing studies: there is no study %q, only %s", id,
				strings.Join(IDs(), ", "))
		}
	}
	st, err := newStage()
	if err != nil {
		return Report{}, err
	}
	defer func() { err = errors.Join(err, st.close()) }()
	defer debug.SetGCPercent(debug.SetGCPercent(gcPercent))
	x := &exam{seed: o.Seed, full: o.Full, stage: st}
	r = Report{Seed: o.Seed, Full: o.Full, Kept: true}
	for _, one := range studies {
		if len(o.Only) > 0 && !slices.Contains(o.Only, one.id) {
			continue
		}
		from := time.Now()
		d := newDraft(one.id)
		if err := one.do(x, ctx, d); err != nil {
			return r, fmt.Errorf("study %q: %w", one.id, err)
		}
		s := d.finish()
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

// exam is one pass over the studies.
type exam struct {
	seed uint64
	// Every law and design of docs/accuracy.md, else a short form
	full bool
	// Nil before it is measured
	cost  *Overhead
	stage *stage
}

// runs is how many runs a figure has in the full form and in the short one.
func (x *exam) runs(full, short int) int {
	if x.full {
		return full
	}
	return short
}

// choose is the full list, or the short one.
func choose[T any](x *exam, full, short []T) []T {
	if x.full {
		return full
	}
	return short
}

// runSeed is the seed of one run of a study.
func (x *exam) runSeed(names ...any) uint64 {
	h := fnv.New64a()
	fmt.Fprint(h, x.seed, names)
	return h.Sum64()
}

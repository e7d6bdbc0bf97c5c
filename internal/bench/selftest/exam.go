// Package selftest shows that the numbers are right: it plays whole runs (plan,
// runner, journal, analysis) on the simulated device with a known law, and
// compares what the program reports with what is true.
//
// A study is many such runs. It gives figures with their Monte Carlo error and
// the bounds that they have to keep. Figures follow from the seed alone, except
// the harness's own cost, which is measured on this machine's clock. The truth
// comes from the law only, and no figure is stored: every one is simulated or
// measured when a study runs.
//
// studies.toml has the words and promises of each study, and [Run] goes through
// them. A study describes its runs as [trial] values, which play.go executes,
// and counts their results in a [grid].
package selftest

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"runtime/debug"
	"slices"
	"strings"
	"sync/atomic"
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

// Options of [Run].
type Options struct {
	// Of all simulated runs
	Seed uint64
	// Every law and design of docs/accuracy.md, minutes; else a short form of
	// seconds
	Full bool
	// Only are the studies to go through, by their names ([IDs]). The empty
	// list means all of them; an unknown name is an error.
	Only []string
	// Done is called with each study as it ends; nil is allowed.
	Done func(Study, time.Duration)
}

// gcPercent is how much the heap may grow between collections, in per cent: the
// heap is small, and collecting it would else take a quarter of the time.
const gcPercent = 400

// studies are all of them, in the order of the page and of studies.toml.
var studies = []struct {
	id string
	do func(*exam, *Study)
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
func IDs() (ids []string) {
	for _, s := range studies {
		ids = append(ids, s.id)
	}
	return ids
}

// exam is one pass over the studies. After an error it plays no more runs, so
// that studies check none: [Run] does after each of them.
type exam struct {
	ctx  context.Context // of Run, which the exam does not outlive
	seed uint64
	// Every law and design of docs/accuracy.md, else a short form
	full bool
	// Nil before it is measured
	cost *Overhead
	// Of run folders
	dir  string
	next atomic.Int64
	err  error // the first one
}

// newExam makes a folder for simulated runs; [exam.close] removes it.
func newExam(ctx context.Context, o Options) (*exam, error) {
	x := &exam{ctx: ctx, seed: o.Seed, full: o.Full}
	var err error
	// Memory instead of a disk where the system has a folder for that
	for _, base := range []string{"/dev/shm", os.TempDir()} {
		if x.dir, err = os.MkdirTemp(base, "dmgbench-selftest-"); err == nil {
			return x, nil
		}
	}
	return nil, fmt.Errorf("making a folder for simulated runs: %w", err)
}

func (x *exam) close() error { return os.RemoveAll(x.dir) }

// choose is what the full form of a study has, or the short one.
func choose[T any](x *exam, full, short T) T {
	if x.full {
		return full
	}
	return short
}

// Run goes through the studies.
func Run(ctx context.Context, o Options) (r Report, err error) {
	for _, id := range o.Only {
		if !slices.Contains(IDs(), id) {
			return Report{}, fmt.Errorf("choosing studies: there is no study %q, only %s", id,
				strings.Join(IDs(), ", "))
		}
	}
	x, err := newExam(ctx, o)
	if err != nil {
		return Report{}, err
	}
	defer func() { err = errors.Join(err, x.close()) }()
	defer debug.SetGCPercent(debug.SetGCPercent(gcPercent))
	r = Report{Seed: o.Seed, Full: o.Full, Kept: true}
	for i, s := range readStudies() {
		if len(o.Only) > 0 && !slices.Contains(o.Only, s.ID) {
			continue
		}
		from := time.Now()
		studies[i].do(x, &s)
		if x.err != nil {
			return r, fmt.Errorf("study %q: %w", s.ID, x.err)
		}
		for k := range s.Promises {
			s.Promises[k].Where = cmp.Or(s.Promises[k].Where, "no figure")
			r.Kept = r.Kept && s.Promises[k].Kept
		}
		r.Studies = append(r.Studies, s)
		if o.Done != nil {
			o.Done(s, time.Since(from))
		}
	}
	r.Overhead = x.cost
	return r, nil
}

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
// studies.toml has the words and promises of each study, [Run] goes through
// them, and the other files hold their laws, designs and what is counted of a
// run.
package selftest

import (
	"fmt"
	"hash/fnv"
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

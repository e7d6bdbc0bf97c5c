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

package selftest

import (
	"fmt"
	"hash/fnv"
)

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

package main

import (
	"fmt"
	"math"
	"slices"

	"dmgbench/internal/stats"
)

// level is the least confidence of the intervals.
const level = 0.95

// minPairs is the fewest pairs that a ratio is given for: of six values the
// extremes enclose the median with 96.9 %, and a seventh leaves room for a bad
// one.
const minPairs = 7

// maxSpread is the spread of a baseline, as a share of its median, above which
// a row carries a warning: the machine was busy with other work.
const maxSpread = 0.40

// schedule returns the order of the turns of one round of n sides: all of them
// there and back, A-B-B-A, so that each has the same mean place in time and a
// linear drift cancels. Each round starts with another side, so that none is
// always in the middle.
func schedule(n, round int) []int {
	order := make([]int, 0, 2*n)
	for i := range n {
		order = append(order, (i+round)%n)
	}
	for i := n - 1; i >= 0; i-- {
		order = append(order, order[i])
	}
	return order
}

// load is work done: bytes, the time that they took, and the processor time
// that they cost.
type load struct {
	bytes   int64
	seconds float64
	cpu     float64 // seconds, user and system, of the threads that do the I/O
	all     float64 // seconds, user and system, of the whole process
	peak    int64   // largest resident memory of the process, bytes
}

func (l load) plus(m load) load {
	return load{l.bytes + m.bytes, l.seconds + m.seconds, l.cpu + m.cpu, l.all + m.all, max(l.peak, m.peak)}
}

// rate is in bytes per second.
func (l load) rate() float64 { return float64(l.bytes) / l.seconds }

// cost is processor time in seconds per byte.
func (l load) cost() float64 { return l.cpu / float64(l.bytes) }

// gross is cost with everything else that the process did.
func (l load) gross() float64 { return l.all / float64(l.bytes) }

// estimate is a median of pairs with its interval.
type estimate struct {
	Median   float64
	Interval *stats.Interval // nil: too few pairs
	Pairs    int
}

// median of values with the exact interval between order statistics.
func median(values []float64) (estimate, error) {
	m, err := stats.Median(values)
	if err != nil {
		return estimate{}, err
	}
	e := estimate{Median: m, Pairs: len(values)}
	if iv, err := stats.MedianInterval(values, level); err == nil {
		e.Interval = &iv
	}
	return e, nil
}

// ratios is subject over baseline, pair by pair.
func ratios(subject, baseline []float64) ([]float64, error) {
	if len(subject) != len(baseline) {
		return nil, fmt.Errorf("pairing %d values with %d: %w", len(subject), len(baseline), stats.ErrRange)
	}
	r := make([]float64, len(subject))
	for i := range r {
		if !(subject[i] > 0) || !(baseline[i] > 0) || math.IsInf(subject[i]/baseline[i], 0) {
			return nil, fmt.Errorf("pairing %v with %v: %w", subject[i], baseline[i], stats.ErrRange)
		}
		r[i] = subject[i] / baseline[i]
	}
	return r, nil
}

// spread is the largest minus the smallest value, as a share of the median.
func spread(values []float64) float64 {
	mid, err := stats.Median(values)
	if err != nil || mid == 0 {
		return math.Inf(1)
	}
	return (slices.Max(values) - slices.Min(values)) / mid
}

// Verdicts on an aim.
const (
	met     = "met"
	missed  = "missed"
	unclear = "undecided"
)

// verdict compares the interval of a ratio with an aim: at least aim, or at
// most aim.
func (e estimate) verdict(aim float64, atMost bool) string {
	if e.Interval == nil {
		return unclear
	}
	low, high := e.Interval.Low, e.Interval.High
	if atMost {
		low, high, aim = -high, -low, -aim
	}
	switch {
	case low >= aim:
		return met
	case high < aim:
		return missed
	}
	return unclear
}

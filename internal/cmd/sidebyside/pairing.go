package main

import (
	"fmt"
	"math"
	"slices"

	"dmgbench/internal/stats"
)

// level is what intervals are asked for.
const level = 0.95

// noisy is the spread of a baseline, of its median, above which a ratio is called inconclusive: the machine was doing
// something else than this.
const noisy = 0.40

// schedule is the order of the turns of one round of n sides: all of them there and back, A-B-B-A, so that each has the
// same mean place in time and a drift that is linear cancels. Rounds start with another side each, so that none is
// always the one in the middle.
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

// load is work done: bytes, the time they took, and the processor time they cost.
type load struct {
	bytes   int64
	seconds float64
	cpu     float64 // seconds, user and system, of the threads that do the I/O
	all     float64 // seconds, user and system, of the whole process
}

func (l load) plus(m load) load {
	return load{l.bytes + m.bytes, l.seconds + m.seconds, l.cpu + m.cpu, l.all + m.all}
}

// rate is in bytes per second.
func (l load) rate() float64 { return float64(l.bytes) / l.seconds }

// cost is processor time in seconds per byte.
func (l load) cost() float64 { return l.cpu / float64(l.bytes) }

// gross is cost with everything that the process did besides.
func (l load) gross() float64 { return l.all / float64(l.bytes) }

// estimate is a median of pairs with its interval.
type estimate struct {
	Median   float64         `json:"median"`
	Interval *stats.Interval `json:"interval"` // nil: too few pairs
	Pairs    int             `json:"pairs"`
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

// spread is how far values lie apart, as a share of their median.
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
	unclear = "cannot tell"
)

// verdict judges a ratio that should be at least aim, or at most aim.
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

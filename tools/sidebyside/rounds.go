package main

import (
	"context"
	"fmt"
	"math"
	"slices"

	"dmgbench/internal/analysis/stats"
)

// level is the least confidence of the intervals.
const level = 0.95

// minPairs is the fewest pairs that a ratio is given for: of six values the
// extremes enclose the median with 96.9 %, and a seventh leaves room for a bad
// one.
const minPairs = 7

// load is work done: bytes, the time that they took, and the processor time
// that they cost.
type load struct {
	bytes   int64
	seconds float64
	cpu     float64 // seconds, user and system, of the threads that do the work
	peak    int64   // largest resident memory of the process, bytes
}

func (l load) plus(m load) load {
	return load{l.bytes + m.bytes, l.seconds + m.seconds, l.cpu + m.cpu, max(l.peak, m.peak)}
}

// quantity is what a ratio is of: bytes per second, or seconds of processor
// time per byte.
type quantity string

const (
	quantityRate quantity = "rate"
	quantityCPU  quantity = "cpu per byte"
)

func (q quantity) value(l load) float64 {
	if q == quantityCPU {
		return l.cpu / float64(l.bytes)
	}
	return float64(l.bytes) / l.seconds
}

// values are those of the rounds.
func (q quantity) values(loads []load) []float64 {
	values := make([]float64, len(loads))
	for i, l := range loads {
		values[i] = q.value(l)
	}
	return values
}

// side does the work once: it returns a load for each operation. In round 0,
// which is discarded, it checks what it did.
type side func(ctx context.Context, round int) ([]load, error)

// measureRounds runs the sides in pairs+1 rounds, of which the first is
// discarded, and returns loads by side, operation and round. endRound follows
// each round, outside of all that is timed.
func measureRounds(ctx context.Context, pairs int, sides []side, endRound func(round int) error) ([][][]load, error) {
	all := make([][][]load, len(sides))
	for round := range pairs + 1 {
		sums := make([][]load, len(sides))
		for _, i := range schedule(len(sides), round) {
			loads, err := sides[i](ctx, round)
			if err != nil {
				return nil, err
			}
			if sums[i] == nil {
				sums[i] = make([]load, len(loads))
			}
			for op, l := range loads {
				sums[i][op] = sums[i][op].plus(l)
			}
		}
		if err := endRound(round); err != nil {
			return nil, err
		}
		for i, loads := range sums {
			if round == 0 {
				all[i] = make([][]load, len(loads))
				continue
			}
			for op, l := range loads {
				all[i][op] = append(all[i][op], l)
			}
		}
	}
	return all, nil
}

// schedule returns the order of the turns of one round of n sides: all of them
// there and back, A-B-B-A, so that each has the same mean place in time and a
// linear drift cancels. Each round starts with another side, so that none is
// always in the middle.
func schedule(n, round int) []int {
	order := make([]int, 0, 2*n)
	for i := range n {
		order = append(order, (i+round)%n)
	}
	back := slices.Clone(order)
	slices.Reverse(back)
	return append(order, back...)
}

// estimate is the median of pairs with its exact interval between order
// statistics.
type estimate struct {
	Median   float64
	Interval *stats.Interval // nil: too few pairs
	Pairs    int
}

// compareRounds estimates the ratio of two sides, round by round.
func compareRounds(subject, baseline []float64) (e estimate, err error) {
	ratios := make([]float64, len(subject))
	for i, v := range subject {
		ratios[i] = v / baseline[i]
		if !(v > 0) || !(baseline[i] > 0) || math.IsInf(ratios[i], 0) {
			return e, fmt.Errorf("pairing %v with %v: %w", v, baseline[i], stats.ErrRange)
		}
	}
	if e.Median, err = stats.Median(ratios); err != nil {
		return e, err
	}
	e.Pairs = len(ratios)
	if iv, err := stats.MedianInterval(ratios, level); err == nil {
		e.Interval = &iv
	}
	return e, nil
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

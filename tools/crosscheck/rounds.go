package main

import (
	"context"
	"fmt"
	"io"
	"strings"

	"dmgbench/internal/result"
	"dmgbench/internal/system/host"
	"dmgbench/internal/system/units"
)

// load is work done: bytes, the time that they took, and the processor time
// that they cost.
type load struct {
	bytes   int64
	seconds float64
	cpu     float64 // seconds, user and system, of the threads that do the work
}

// line is the load in the format of Go benchmarks; figures that are not known
// are left out.
func (l load) line(op, by string) string {
	text := fmt.Sprintf("Benchmark%s/by=%s 1 %.6g s/op %.6g B/s", op, by, l.seconds, float64(l.bytes)/l.seconds)
	if l.cpu > 0 {
		text += fmt.Sprintf(" %.6g cpu-s/B", l.cpu/float64(l.bytes))
	}
	return text
}

// side is a program that does the work: it returns a load for each operation,
// by name.
type side struct {
	name string
	do   func(ctx context.Context, round int) (map[string]load, error)
}

// measureRounds runs the sides in pairs+1 rounds, of which the first, round 0,
// is discarded, and prints a line for each turn of the others, and for each
// round what a side took in times of the first: a ratio of neighbours in time
// varies less than either of them. endRound follows each round, outside of all
// that is timed.
func measureRounds(ctx context.Context, w io.Writer, pairs int, sides []side, endRound func(round int) error) error {
	for round := range pairs + 1 {
		seconds := map[string][]float64{} // of both turns, by operation and side
		for _, i := range schedule(len(sides), round) {
			loads, err := sides[i].do(ctx, round)
			if err != nil {
				return err
			}
			for op, l := range loads {
				if seconds[op] == nil {
					seconds[op] = make([]float64, len(sides))
				}
				seconds[op][i] += l.seconds
				if round > 0 {
					fmt.Fprintln(w, l.line(op, sides[i].name))
				}
			}
		}
		for op, s := range seconds {
			for i := 1; i < len(s) && round > 0; i++ {
				fmt.Fprintf(w, "Benchmark%s/by=%s 1 %.6g time-of-%s\n", op, sides[i].name, s[i]/s[0], sides[0].name)
			}
		}
		if err := endRound(round); err != nil {
			return err
		}
	}
	return nil
}

// schedule returns the order of the turns of one round of n sides: all of them
// there and back, A-B-B-A, so that each has the same mean place in time and a
// linear drift cancels. Each round starts with another side, so that none is
// always in the middle.
func schedule(n, round int) []int {
	order := make([]int, 2*n)
	for i := range n {
		order[i] = (i + round) % n
		order[2*n-1-i] = order[i]
	}
	return order
}

// header describes the machine and the work, as configuration of the benchmarks.
func header(w io.Writer, h result.Host, lines ...string) {
	machine := fmt.Sprintf("%s %s, %d processors (%s), %s memory", h.OS, h.Arch, h.CPUs, h.CPU,
		units.Bytes(h.Memory).Human())
	if host.Virtual(h) {
		machine += ", virtual (" + h.Virtual + "): the host may cache what the guest takes for a disk, for both sides"
	}
	fmt.Fprintf(w, "machine: %s\n%s\n\n", machine, strings.Join(lines, "\n"))
}

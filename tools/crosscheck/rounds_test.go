package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/perf/benchfmt"
	"pgregory.net/rapid"

	"dmgbench/internal/result"
)

func TestScheduleGoesThereAndBack(t *testing.T) {
	assert.Equal(t, []int{0, 1, 1, 0}, schedule(2, 0))
	assert.Equal(t, []int{1, 0, 0, 1}, schedule(2, 1))
	assert.Equal(t, []int{1, 2, 0, 0, 2, 1}, schedule(3, 4))
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(1, 9).Draw(t, "sides")
		order := schedule(n, rapid.IntRange(0, 50).Draw(t, "round"))
		sum, count := make([]int, n), make([]int, n)
		for place, side := range order {
			sum[side] += place
			count[side]++
		}
		for side := range n {
			require.Equal(t, 2, count[side])
			require.Equal(t, 2*n-1, sum[side], "same mean place for all: a linear drift cancels")
		}
	})
}

// A disk that gets steadily slower must not favour anybody.
func TestLinearDriftCancels(t *testing.T) {
	var times [2]float64
	for round := range 4 {
		for place, side := range schedule(2, round) {
			times[side] += 10 + 0.5*float64(4*round+place)
		}
	}
	assert.InDelta(t, times[0], times[1], 1e-9)
}

// Every turn after the discarded round is a line, and the order of the turns is there and back.
func TestMeasureRounds(t *testing.T) {
	turns := ""
	work := func(name string) side {
		return side{name, func(_ context.Context, round int) (map[string]load, error) {
			turns += name
			return map[string]load{"Op/size=1": {bytes: 10, seconds: float64(round), cpu: 1}}, nil
		}}
	}
	ends := 0
	var text bytes.Buffer
	require.NoError(t, measureRounds(t.Context(), &text, 2, []side{work("a"), work("b")}, func(round int) error { ends++; return nil }))
	assert.Equal(t, 3, ends)
	assert.Equal(t, "abba"+"baab"+"abba", turns)
	lines := strings.Split(strings.TrimSpace(text.String()), "\n")
	require.Len(t, lines, 2*(4+1))
	assert.Equal(t, "BenchmarkOp/size=1/by=b 1 1 time-of-a", lines[4], "each round has the ratio to the first side")
	assert.Equal(t, "BenchmarkOp/size=1/by=b 1 1 s/op 10 B/s 0.1 cpu-s/B", lines[0])
	assert.Equal(t, "BenchmarkOp/by=x 1 2 s/op 5 B/s", load{bytes: 10, seconds: 2}.line("Op", "x"))

	broken := errors.New("broken")
	err := measureRounds(t.Context(), &text, 3, []side{{"a", func(context.Context, int) (map[string]load, error) { return nil, broken }}},
		func(int) error { return nil })
	require.ErrorIs(t, err, broken)
	require.ErrorIs(t, measureRounds(t.Context(), &text, 3, []side{work("a")}, func(int) error { return broken }), broken)
}

// benchstat has to read what is printed: each figure of each side.
func TestBenchstatReadsTheLines(t *testing.T) {
	var text bytes.Buffer
	header(&text, result.Host{OS: "linux", Virtual: "kvm"}, "place: ext4")
	assert.Contains(t, text.String(), "virtual (kvm): the host may cache")
	fmt.Fprintln(&text, load{bytes: 10, seconds: 2, cpu: 1}.line("Op/size=1", "fio"))
	fmt.Fprintln(&text, load{bytes: 10, seconds: 1, cpu: 1}.line("Op/size=1", "dmgbench"))
	in := benchfmt.NewReader(&text, "text")
	results := 0
	for in.Scan() {
		r, ok := in.Result().(*benchfmt.Result)
		if !ok {
			continue
		}
		results++
		assert.Equal(t, "ext4", r.GetConfig("place"))
		rate, ok := r.Value("B/s")
		assert.True(t, ok)
		assert.Equal(t, 5.0*float64(results), rate)
	}
	require.NoError(t, in.Err())
	assert.Equal(t, 2, results)
}

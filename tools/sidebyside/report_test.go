package main

import (
	"bytes"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"dmgbench/internal/stats"
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

func TestRatiosArePairwise(t *testing.T) {
	pairs, err := ratios([]float64{1, 20, 3, 40, 5, 60, 7}, []float64{2, 40, 6, 80, 10, 120, 7})
	require.NoError(t, err)
	e, err := median(pairs)
	require.NoError(t, err)
	assert.Equal(t, 0.5, e.Median)
	assert.Equal(t, 7, e.Pairs)
	require.NotNil(t, e.Interval)
	assert.Equal(t, stats.MethodOrder, e.Interval.Method)
	assert.InDelta(t, 1-2.0/128, e.Interval.Level, 1e-12)
	assert.Equal(t, [2]float64{0.5, 1}, [2]float64{e.Interval.Low, e.Interval.High})

	few, err := median([]float64{1, 2, 3})
	require.NoError(t, err)
	assert.Nil(t, few.Interval)
	assert.Equal(t, unclear, few.verdict(0.1, false))

	for _, bad := range [][2][]float64{{{1}, {1, 2}}, {{0}, {1}}, {{1}, {0}}, {{1}, {-1}}, {{1e308}, {1e-308}}} {
		_, err := ratios(bad[0], bad[1])
		assert.ErrorIs(t, err, stats.ErrRange, "%v", bad)
	}
}

func TestVerdicts(t *testing.T) {
	of := func(low, high float64) estimate { return estimate{Interval: &stats.Interval{Low: low, High: high}} }
	for _, test := range []struct {
		low, high, aim float64
		atMost         bool
		want           string
	}{
		{0.91, 1.2, 0.9, false, met}, {0.9, 1.2, 0.9, false, met}, {0.8, 0.89, 0.9, false, missed}, {0.8, 0.95, 0.9, false, unclear},
		{0.5, 0.9, 1, true, met}, {1.1, 1.2, 1, true, missed}, {0.9, 1.1, 1, true, unclear},
	} {
		assert.Equal(t, test.want, of(test.low, test.high).verdict(test.aim, test.atMost), "%+v", test)
	}
}

func TestLoads(t *testing.T) {
	l := load{100, 2, 0.5, 1, 7}.plus(load{300, 2, 0.5, 3, 5})
	assert.Equal(t, load{400, 4, 1, 4, 7}, l)
	assert.Equal(t, 100.0, l.rate())
	assert.Equal(t, 0.0025, l.cost())
	assert.Equal(t, 0.01, l.gross())
	assert.InDelta(t, 0.5, spread([]float64{2, 1.5, 2.5, 2}), 1e-12)
}

func TestReportText(t *testing.T) {
	base := []float64{2e9, 2.1e9, 1.9e9, 2e9, 2e9, 2.2e9, 1e9}
	ours := []float64{1.9e9, 2e9, 1.8e9, 1.9e9, 2e9, 2.1e9, 1e9}
	r := row{workers: 2, op: "write", subject: "native folder", baseline: "fio", quantity: quantityRate, aim: 0.85}
	require.NoError(t, r.compare(ours, base))
	r.compareSizes(206, 100)
	cost := row{workers: 1, op: "read", size: 2 << 20, quantity: quantityGross}
	require.NoError(t, cost.compare([]float64{1e-10, 1e-10, 1e-10}, []float64{2e-10, 2e-10, 2e-10}))
	missing := row{workers: 1, op: "read", missing: "not measured: no tool"}
	rep := report{machine: "m", place: "ext4", rows: []row{r, cost, missing}, costs: [][]string{{"tool", "made"}}}

	var text bytes.Buffer
	require.NoError(t, rep.write(&text))
	for _, want := range []string{"0.952", "0.95–1.00", "98.4 %", "≥ 0.85", verdictLarger, "2.060", "[1][2]", "[1] noise:", "[2] size:",
		"1.90 GB/s", "read 2.10 MB", "100 ns/kB", "none", "not measured: no tool", "tool"} {
		assert.Contains(t, text.String(), want)
	}
}

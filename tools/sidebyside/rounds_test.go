package main

import (
	"bytes"
	"context"
	"errors"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"dmgbench/internal/analysis/stats"
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

// Sides with the same drift get the same time, and the round that warms up does not count.
func TestMeasureRounds(t *testing.T) {
	clock := 0.0
	work := func(seconds float64) side {
		return func(_ context.Context, round int) ([]load, error) {
			clock++
			if round == 0 {
				seconds += 100
				defer func() { seconds -= 100 }()
			}
			return []load{{bytes: 1, seconds: seconds + clock}, {bytes: 2, peak: int64(clock)}}, nil
		}
	}
	ends := 0
	loads, err := measureRounds(t.Context(), 3, []side{work(10), work(10)}, func(round int) error { ends++; return nil })
	require.NoError(t, err)
	assert.Equal(t, 4, ends)
	require.Len(t, loads[0][0], 3)
	assert.Equal(t, loads[0][0], loads[1][0])
	assert.Equal(t, load{bytes: 2, seconds: 2*10 + 5 + 8}, loads[0][0][0])
	assert.EqualValues(t, 8, max(loads[0][1][0].peak, loads[1][1][0].peak))

	broken := errors.New("broken")
	_, err = measureRounds(t.Context(), 3, []side{work(1), func(context.Context, int) ([]load, error) { return nil, broken }},
		func(int) error { return nil })
	require.ErrorIs(t, err, broken)
	_, err = measureRounds(t.Context(), 3, []side{work(1)}, func(int) error { return broken })
	require.ErrorIs(t, err, broken)
}

func TestRatiosArePairwise(t *testing.T) {
	e, err := compareRounds([]float64{1, 20, 3, 40, 5, 60, 7}, []float64{2, 40, 6, 80, 10, 120, 7})
	require.NoError(t, err)
	assert.Equal(t, 0.5, e.Median)
	assert.Equal(t, 7, e.Pairs)
	require.NotNil(t, e.Interval)
	assert.Equal(t, stats.MethodOrder, e.Interval.Method)
	assert.InDelta(t, 1-2.0/128, e.Interval.Level, 1e-12)
	assert.Equal(t, [2]float64{0.5, 1}, [2]float64{e.Interval.Low, e.Interval.High})

	few, err := compareRounds([]float64{1, 2, 3}, []float64{1, 1, 1})
	require.NoError(t, err)
	assert.Nil(t, few.Interval)
	assert.Equal(t, unclear, few.verdict(0.1, false))

	for _, bad := range [][2]float64{{0, 1}, {1, 0}, {1, -1}, {1e308, 1e-308}} {
		_, err := compareRounds([]float64{bad[0]}, []float64{bad[1]})
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
	l := load{100, 2, 0.5, 7}.plus(load{300, 2, 0.5, 5})
	assert.Equal(t, load{400, 4, 1, 7}, l)
	assert.Equal(t, 100.0, quantityRate.value(l))
	assert.Equal(t, 0.0025, quantityCPU.value(l))
}

// atRates are loads of a second each.
func atRates(rates ...int64) (loads []load) {
	for _, r := range rates {
		loads = append(loads, load{bytes: r, seconds: 1, cpu: float64(r) / 1e10})
	}
	return loads
}

func TestReportText(t *testing.T) {
	base := atRates(2e9, 2.1e9, 1.9e9, 2e9, 2e9, 2.2e9, 1e9)
	ours := atRates(1.9e9, 2e9, 1.8e9, 1.9e9, 2e9, 2.1e9, 1e9)
	r := row{workers: 2, op: "write", subject: "native folder", baseline: "fio", quantity: quantityRate, aim: 0.85}
	require.NoError(t, r.compare(ours, base))
	assert.InDelta(t, 1.2/2, r.spread, 1e-12)
	r.compareSizes(206, 100)
	cost := row{workers: 1, op: "read", quantity: quantityCPU, aim: 2}
	require.NoError(t, cost.compare(ours[:3], base[:3]))
	missing := row{workers: 1, op: "read", missing: "not measured: no tool"}
	rep := report{machine: "m", place: "ext4", rows: []row{r, cost, missing}, costs: [][]string{{"tool", "made"}}}

	var text bytes.Buffer
	require.NoError(t, rep.write(&text))
	for _, want := range []string{"0.952", "0.95–1.00", "98.4 %", "≥ 0.85", verdictLarger, "2.060", "[1][2]", "[1] noise:", "[2] size:",
		"1.90 GB/s", "100 ns/kB", "≤ 2.00", "none", "not measured: no tool", "tool"} {
		assert.Contains(t, text.String(), want)
	}
}

package analysis

import (
	"math"
	"slices"

	"dmgbench/internal/result"
	"dmgbench/internal/stats"
)

// modeWarning looks for a break in the course of the step, where the rate
// changes for good: throttling, a full fast cache, or another user of the disk.
func modeWarning(w *warningList, st *result.Step, samples []result.Sample, excess []float64) {
	if len(samples) < minForModes {
		return
	}
	xs := make([]float64, len(excess))
	for i := range xs {
		xs[i] = float64(i)
	}
	// What a size lets expect is a median over both modes at first; the second
	// look takes it over files whose mode has been evened out.
	cut, shift := 0, 0.0
	for look := range 2 {
		t, err := stats.FitTwoLines(xs, excess, max(stats.MinForLine, len(xs)/10))
		if err != nil || look > 0 && t.P > modeP {
			return
		}
		cut = int(t.Break) + 1
		before, errA := stats.Median(excess[:cut])
		after, errB := stats.Median(excess[cut:])
		if shift = after - before; errA != nil || errB != nil {
			return
		}
		if look == 0 {
			excess = evened(samples, excess, cut, shift)
		}
	}
	if math.Abs(shift) < math.Log(worthSaying) {
		return
	}
	var moved int64
	for _, x := range samples[:cut] {
		moved += x.Bytes
	}
	w.add("two-modes", "round %d: from file %d on, after %s, files took %s times as long as before: throttling, a fast cache that was full, or something else at work",
		st.Round, cut+1, show(float64(moved), "B"), show(math.Exp(shift), "1"))
}

// evened takes from each excess the median of its size, computed as if the files
// from cut on had not been slower by shift.
func evened(samples []result.Sample, excess []float64, cut int, shift float64) []float64 {
	bySize := map[int64][]float64{}
	for i, x := range samples {
		e := excess[i]
		if i >= cut {
			e -= shift
		}
		bySize[x.Bytes] = append(bySize[x.Bytes], e)
	}
	out := slices.Clone(excess)
	for i, x := range samples {
		if m, err := stats.Median(bySize[x.Bytes]); err == nil && len(bySize[x.Bytes]) >= 3 {
			out[i] -= m
		}
	}
	return out
}

// bimodalWarning looks for files of two kinds that come and go in the course of the
// step: a drive that throttles and recovers, a cache that is full now and then. The
// measure is each file's time over the lower quartile of its size, which lies in
// the faster mode unless that is rare; a mode is a tenth of the files or more. Files
// that change over once, for good, are [modeWarning]'s. It says whether it found any.
func bimodalWarning(w *warningList, st *result.Step, samples []result.Sample) bool {
	if len(samples) < minForModes {
		return false
	}
	bySize := map[int64][]float64{}
	for _, x := range samples {
		bySize[x.Bytes] = append(bySize[x.Bytes], math.Log(float64(x.DurationNS)))
	}
	low := map[int64]float64{}
	for size, logs := range bySize {
		q, err := stats.Quantile(logs, 0.25)
		if err != nil || len(logs) < 4 {
			return false
		}
		low[size] = q
	}
	excess := make([]float64, len(samples))
	for i, x := range samples {
		excess[i] = math.Log(float64(x.DurationNS)) - low[x.Bytes]
	}
	c, err := stats.FitTwoClusters(excess, max(2, len(excess)/10))
	if err != nil || c.P > modeP || c.High-c.Low < math.Log(worthSaying) {
		return false
	}
	turns := 0
	for i := 1; i < len(excess); i++ {
		if (excess[i] > c.Cut) != (excess[i-1] > c.Cut) {
			turns++
		}
	}
	if turns < minTurns {
		return false
	}
	w.add("bimodal", "round %d: %d of %d files took %s times as long as the others, now and then and not from some file on: a drive that throttles and recovers, or something else at work",
		st.Round, c.N[1], len(samples), show(math.Exp(c.High-c.Low), "1"))
	return true
}

// minTurns is how often files have to change from one mode to the other for them to
// come and go: there and back, and there again.
const minTurns = 3

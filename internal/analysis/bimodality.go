package analysis

import (
	"math"
	"slices"

	"dmgbench/internal/result"
	"dmgbench/internal/stats"
	"dmgbench/internal/wording"
)

// addModes looks for two modes in the course of a step: a break, where the rate
// changes for good (throttling, a full fast cache, another user of the disk), or
// files of two kinds that come and go (a drive that throttles and recovers). Where
// the files are of two kinds even when a break has been evened out, they come and go.
func (w *warningList) addModes(st *result.Step, samples []result.Sample, excess []float64) bool {
	logs := make([]float64, len(samples))
	for i, x := range samples {
		logs[i] = math.Log(float64(x.DurationNS))
	}
	cut, shift, broken := findBreak(samples, excess)
	even := slices.Clone(logs)
	if broken {
		for i := cut; i < len(even); i++ {
			even[i] -= shift
		}
	}
	if _, kinds := findTwoSpeeds(samples, even); kinds {
		if c, ok := findTwoSpeeds(samples, logs); ok {
			w.add("bimodal", st.Round, c.N[1], len(samples), wording.Number(math.Exp(c.High-c.Low)))
			return true
		}
	}
	if broken {
		moved := wording.Amount{Value: float64(sampleBytes(samples[:cut])), Unit: "B"}
		w.add("two-modes", st.Round, cut+1, moved, wording.Number(math.Exp(shift)))
	}
	return broken
}

// findBreak finds the file from which on the rate has changed for good, and by which
// logarithm of time.
func findBreak(samples []result.Sample, excess []float64) (cut int, shift float64, found bool) {
	xs := make([]float64, len(excess))
	for i := range xs {
		xs[i] = float64(i)
	}
	// The time expected for a size is a median over both modes at first; the second
	// look takes it over files after the shift between the modes was removed.
	for look := range 2 {
		t, err := stats.FitTwoLines(xs, excess, max(stats.MinForLine, len(xs)/10))
		if err != nil || look > 0 && t.P > trendP {
			return 0, 0, false
		}
		cut = int(t.Break) + 1
		if shift = median(excess[cut:]) - median(excess[:cut]); math.IsNaN(shift) {
			return 0, 0, false
		}
		if look == 0 {
			excess = removeShift(samples, excess, cut, shift)
		}
	}
	return cut, shift, math.Abs(shift) >= math.Log(fileFactor)
}

// removeShift takes from each excess the median of its size, computed as if the files
// from cut on had not been slower by shift.
func removeShift(samples []result.Sample, excess []float64, cut int, shift float64) []float64 {
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
		if same := bySize[x.Bytes]; len(same) >= 3 {
			out[i] -= median(same)
		}
	}
	return out
}

// minTurns is how often files have to change from one mode to the other for them to
// come and go: there and back, and there again.
const minTurns = 3

// findTwoSpeeds cuts files in two kinds by the logarithms of their times over the lower
// quartile of their size, which is in the faster mode unless that is rare. Each
// kind is a tenth of the files or more, and they take turns.
func findTwoSpeeds(samples []result.Sample, logs []float64) (c stats.TwoClusters, ok bool) {
	bySize := map[int64][]float64{}
	for i, x := range samples {
		bySize[x.Bytes] = append(bySize[x.Bytes], logs[i])
	}
	low := map[int64]float64{}
	for size, list := range bySize {
		if len(list) < 4 {
			return c, false
		}
		low[size] = quantile(list, 0.25)
	}
	excess := make([]float64, len(samples))
	for i, x := range samples {
		excess[i] = logs[i] - low[x.Bytes]
	}
	c, err := stats.FitTwoClusters(excess, max(2, len(excess)/10))
	if err != nil || c.P > trendP || c.High-c.Low < math.Log(fileFactor) {
		return c, false
	}
	turns := 0
	for i := 1; i < len(excess); i++ {
		if (excess[i] > c.Cut) != (excess[i-1] > c.Cut) {
			turns++
		}
	}
	return c, turns >= minTurns
}

package stats

import (
	"math/rand/v2"
	"slices"
)

// TwoClusters is a sample cut in two where that leaves the least sum of
// squares.
type TwoClusters struct {
	Low, High float64 // means below and above the cut
	Cut       float64 // halfway between the neighbours on either side
	N         [2]int  // values below and above
	Gain      float64 // share of the squares about the common mean that the cut removes, 0 … 1
	P         float64 // chance of at least this Gain if the values were spread evenly
}

// FitTwoClusters cuts the values in two (Otsu's criterion, IEEE Transactions on
// Systems, Man, and Cybernetics 9, 1979; in one dimension that is two-means)
// with at least minSide values, two or more, on each side, so that single far
// values make no cluster.
//
// Any sample gains by a cut: an even spread three quarters, a normal one less.
// P is the rank of the observed Gain among those of 999 samples that are spread
// evenly, the flattest distribution with one mode; its smallest value is 0.001.
func FitTwoClusters(xs []float64, minSide int) (TwoClusters, error) {
	const doing = "fitting two clusters"
	if err := checkValues(doing, xs, max(4, 2*minSide)); err != nil {
		return TwoClusters{}, err
	}
	s := sorted(xs)
	cut, gain := otsu(s, minSide)
	c := TwoClusters{Low: mean(s[:cut]), High: mean(s[cut:]), Cut: midpoint(s[cut-1], s[cut]),
		N: [2]int{cut, len(s) - cut}, Gain: gain}
	c.P = nullP(evenNull(len(s), minSide), gain)
	return c, checkResult(doing, c.Low, c.High, c.Gain)
}

// otsu finds the best cut of ascending values, and the share of squares that it
// removes.
func otsu(s []float64, minSide int) (cut int, gain float64) {
	m := mean(s)
	total := squaresAbout(s, m)
	cut = minSide
	if total == 0 {
		return cut, 0
	}
	below, n := 0.0, float64(len(s))
	for i, x := range s {
		if k := float64(i); i >= minSide && i <= len(s)-minSide {
			if between := below * below * n / (k * (n - k)) / total; between > gain {
				cut, gain = i, between
			}
		}
		below += x - m
	}
	return cut, min(gain, 1)
}

// evenGains are the gains of evenly spread samples, by size and least number of
// values on a side.
var evenGains nullCache[[2]int]

// evenNull returns the gains of cuts of n evenly spread values.
func evenNull(n, minSide int) []float64 {
	return evenGains.get([2]int{n, minSide}, func(null []float64) {
		rng, one := rand.NewPCG(uint64(n), uint64(minSide)), make([]float64, n)
		for i := range null {
			for k := range one {
				one[k] = float64(rng.Uint64()>>11) / (1 << 53)
			}
			slices.Sort(one)
			_, null[i] = otsu(one, minSide)
		}
	})
}

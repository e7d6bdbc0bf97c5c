package stats

import "math"

// Shift is a place in a sequence from which on the values are larger or smaller
// for good.
type Shift struct {
	At int     // index of the first value after it
	By float64 // how much larger the values are from there on
	P  float64 // chance of a shift that is as clear in values without one
}

// FindShift looks for the place at which the values shift, by Pettitt's test
// (Applied Statistics 28, 1979) within groups: a value is ranked only among
// those with the same key, as times of files are among those of one size, so
// that groups may lie at any level. The running sum of the centred ranks is
// farthest from zero at the shift; P is from the limit of that distance, the
// supremum of a Brownian bridge, which is too large rather than too small for
// few values. By is the median over the groups of how far their medians on
// both sides are apart.
func FindShift[K comparable](values []float64, keys []K) (Shift, error) {
	const doing = "looking for a shift"
	if err := checkValues(doing, values, 2); err != nil {
		return Shift{}, err
	}
	groups := map[K][]int{}
	for i, k := range keys {
		groups[k] = append(groups[k], i)
	}
	centred, scale := make([]float64, len(values)), 0.0
	for _, members := range groups {
		own := pick(values, members)
		n, squares := float64(len(own)), 0.0
		for k, r := range ranks(own) {
			c := 2*r - n - 1
			centred[members[k]], squares = c, squares+c*c
		}
		if n > 1 {
			scale += squares * n / (n - 1)
		}
	}
	out, running, most := Shift{P: 1}, 0.0, 0.0
	for i, c := range centred[:len(centred)-1] {
		if running += c; math.Abs(running) > most {
			most, out.At = math.Abs(running), i+1
		}
	}
	if most > 0 {
		out.P = min(1, 2*math.Exp(-2*most*most/scale))
	}
	var apart []float64
	for _, members := range groups {
		cut := 0
		for cut < len(members) && members[cut] < out.At {
			cut++
		}
		if cut > 0 && cut < len(members) {
			apart = append(apart, median(pick(values, members[cut:]))-median(pick(values, members[:cut])))
		}
	}
	if len(apart) > 0 {
		out.By = median(apart)
	}
	return out, checkResult(doing, out.By, out.P)
}

func pick(values []float64, at []int) []float64 {
	out := make([]float64, len(at))
	for i, k := range at {
		out[i] = values[k]
	}
	return out
}

// TwoClusters is a sample cut in two where that leaves the least sum of
// squares.
type TwoClusters struct {
	Low, High float64 // means below and above the cut
	Cut       float64 // halfway between the neighbours on either side
	N         [2]int  // values below and above
	Gain      float64 // share of the squares about the common mean that the cut removes, 0 … 1
	// The gain is larger than that of 99 of 100 samples that are spread evenly
	Distinct bool
}

// FitTwoClusters cuts the values in two (Otsu's criterion, IEEE Transactions on
// Systems, Man, and Cybernetics 9, 1979; in one dimension that is two-means)
// with at least minSide values, two or more, on each side, so that single far
// values make no cluster.
//
// Any sample gains by a cut: an even spread three quarters, a normal one less.
// The gain of n evenly spread values, the flattest distribution with one mode,
// is below ¾ + 0.64/√n in 99 of 100 samples (simulated, n of 20 to 10,000).
func FitTwoClusters(xs []float64, minSide int) (TwoClusters, error) {
	const doing = "fitting two clusters"
	if err := checkValues(doing, xs, max(4, 2*minSide)); err != nil {
		return TwoClusters{}, err
	}
	s := sorted(xs)
	m, n := mean(s), float64(len(s))
	total := squaresAbout(s, m)
	cut, gain, below := minSide, 0.0, 0.0
	for i, x := range s {
		if k := float64(i); total > 0 && i >= minSide && i <= len(s)-minSide {
			if between := below * below * n / (k * (n - k)) / total; between > gain {
				cut, gain = i, between
			}
		}
		below += x - m
	}
	c := TwoClusters{Low: mean(s[:cut]), High: mean(s[cut:]), Cut: midpoint(s[cut-1], s[cut]),
		N: [2]int{cut, len(s) - cut}, Gain: min(gain, 1), Distinct: gain > 0.75+0.64/math.Sqrt(n)}
	return c, checkResult(doing, c.Low, c.High, c.Gain)
}

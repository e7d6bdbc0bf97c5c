package stats

import (
	"fmt"
	"math"
	"sort"
)

// Interval is a confidence interval with the level that it really has and the
// method that gave it.
type Interval struct {
	Low    float64 `json:"low"`    // lower limit, in the unit of the estimate
	High   float64 `json:"high"`   // upper limit, never below Low
	Level  float64 `json:"level"`  // probability in (0, 1), at least the level asked for where the method is exact
	Method string  `json:"method"` // one of the Method constants
}

// Contains reports whether v lies within the limits, limits included.
func (iv Interval) Contains(v float64) bool { return iv.Low <= v && v <= iv.High }

// String reads "[1.02, 1.31] (97.9 %, exact order statistics)".
func (iv Interval) String() string {
	return fmt.Sprintf("[%.4g, %.4g] (%.1f %%, %s)", iv.Low, iv.High, 100*iv.Level, iv.Method)
}

// The methods that an [Interval] can come from. They are words for readers and
// are written to results, so they do not change.
const (
	MethodOrder       = "exact order statistics"
	MethodT           = "Student t"
	MethodWelch       = "Welch t"
	MethodPooled      = "Student t, spread alike on both sides"
	MethodLogRatio    = "Student t of log ratios"
	MethodTrimmed     = "Student t, winsorised variance"
	MethodBCa         = "BCa bootstrap"
	MethodSen         = "exact Kendall order statistics"
	MethodSenNormal   = "Kendall order statistics, normal approximation"
	MethodSenByGroup  = "Kendall order statistics, variance by size"
	MethodJackknife   = "Student t, jackknife by size"
	MethodShift       = "exact Mann-Whitney order statistics"
	MethodShiftNormal = "Mann-Whitney order statistics, normal approximation"
)

// MinForT is the least number of independent values for a t interval. Two would
// do for the formula, but then the spread is known from one single difference:
// the interval of level 0.95 is 12.7 standard errors to each side and says
// more about the t table than about the data.
const MinForT = 3

// MedianInterval returns the distribution-free interval of the median between
// two order statistics, k-th from below and k-th from above, with the largest k
// whose exact (binomial) level reaches the level asked for. Level is the one
// that the interval has: 0.979 for n of 10 and 0.969 for n of 6, when 0.95 was
// asked for. No interval of level 0.95 exists for n below 6.
//
// The level is exact for independent draws of a continuous distribution and a
// lower bound where values tie.
func MedianInterval(xs []float64, level float64) (Interval, error) {
	const doing = "computing median interval"
	if err := checkLevel(doing, level); err != nil {
		return Interval{}, err
	}
	if err := checkValues(doing, xs, medianNeeds(level)); err != nil {
		return Interval{}, err
	}
	n := len(xs)
	k, real := orderFor(n, level, func(k int) float64 { return binomialHalfCDF(k, n) })
	s := sorted(xs)
	return Interval{Low: s[k-1], High: s[n-k], Level: real, Method: MethodOrder}, nil
}

// medianNeeds is the smallest n whose extremes enclose the median with at
// least the level: 1 - 2·(½)ⁿ ≥ level.
func medianNeeds(level float64) int {
	n := 2
	for 1-math.Ldexp(2, -n) < level && n < 64 {
		n++
	}
	return n
}

// orderFor returns the largest k ≥ 1 for which the k-th lowest and k-th highest
// of n order statistics enclose the parameter with at least the level, and the
// level that they have. The parameter lies below the k-th lowest with
// probability cdf(k-1), and above the k-th highest as often. If not even the
// extremes reach the level, k is 0.
func orderFor(n int, level float64, cdf func(k int) float64) (k int, real float64) {
	enclosed := func(k int) float64 { return 1 - 2*cdf(k-1) }
	// A level such as 31/32, which six values have exactly, must not be missed
	// by a rounding of the distribution function.
	slack := min(1e-12, level/2)
	k = sort.Search((n+1)/2, func(i int) bool { return enclosed(i+1) < level-slack })
	if k == 0 {
		return 0, 0
	}
	return k, enclosed(k)
}

// MeanInterval returns Student's t interval of the mean of at least [MinForT]
// values. It assumes independent values and a mean that is about normal. A
// sample that does not vary gives an interval without width: true to the
// formula, and the resolution of the measurement is then the real limit.
func MeanInterval(xs []float64, level float64) (Interval, error) {
	const doing = "computing mean interval"
	if err := checkLevel(doing, level); err != nil {
		return Interval{}, err
	}
	if err := checkValues(doing, xs, MinForT); err != nil {
		return Interval{}, err
	}
	n := float64(len(xs))
	return around(doing, mean(xs), stdDev(xs)/math.Sqrt(n), n-1, level, MethodT)
}

// TrimmedMeanInterval returns the interval of the [TrimmedMean], by Student's t
// with the winsorised variance and h-1 degrees of freedom, h being the number
// of values left after trimming, at least [MinForT] (Tukey and McLaughlin,
// Sankhyā A 25, 1963; standard error as Yuen, Biometrika 61, 1974). With a share
// of 0 it is [MeanInterval]. It is an interval of the trimmed mean of the
// population, which is not its mean where the distribution is skewed.
func TrimmedMeanInterval(xs []float64, share, level float64) (Interval, error) {
	const doing = "computing trimmed mean interval"
	if err := checkLevel(doing, level); err != nil {
		return Interval{}, err
	}
	if err := checkValues(doing, xs, 0); err != nil {
		return Interval{}, err
	}
	n := len(xs)
	cut, err := trimCount(doing, n, share)
	if err != nil {
		return Interval{}, err
	}
	left := n - 2*cut
	if left < MinForT {
		return Interval{}, &TooFewError{Doing: doing, Have: n, Need: trimNeeds(n, share)}
	}
	s := sorted(xs)
	centre := mean(s[cut : n-cut])
	for i := range cut {
		s[i], s[n-1-i] = s[cut], s[n-1-cut]
	}
	h := float64(left)
	se := math.Sqrt(squaresAbout(s, mean(s)) / (h * (h - 1)))
	return around(doing, centre, se, h-1, level, MethodTrimmed)
}

// trimNeeds is the next size above n that leaves enough values after trimming.
// One is found within a few steps, unless the share is next to one half: then
// the size that suffices in any case, 3/(1-2·share), is as good an answer.
func trimNeeds(n int, share float64) int {
	for m := n + 1; m < n+1000; m++ {
		if cut, err := trimCount("", m, share); err == nil && m-2*cut >= MinForT {
			return m
		}
	}
	return int(min(math.Ceil(MinForT/(1-2*share)), math.MaxInt32))
}

// around is the t interval about an estimate with its standard error.
func around(doing string, estimate, se, df, level float64, method string) (Interval, error) {
	half := 0.0
	if se != 0 {
		half = tCritical(level, df) * se
	}
	iv := Interval{Low: estimate - half, High: estimate + half, Level: level, Method: method}
	if err := checkResult(doing, iv.Low, iv.High); err != nil {
		return Interval{}, err
	}
	return iv, nil
}

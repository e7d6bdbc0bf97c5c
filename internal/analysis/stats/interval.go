// Package stats holds the estimators, intervals, tests and fits that the
// analysis of a run rests on. It is a leaf: it works on plain float64 slices,
// imports only the standard library, and does not know disks, files or
// units. Which estimate belongs to which question is decided by its callers.
//
// # What it promises
//
//   - The caller's slices are never sorted or written to.
//   - The same input gives the same output, on every run: the methods that draw
//     random numbers ([FitTwoLines], [FitTwoClusters]) seed their generator from a digest
//     of the data. Only the last bits may differ between processor
//     architectures, where the compiler may fuse a multiplication and an
//     addition.
//   - Whatever is returned together with a nil error is finite. NaN, an
//     infinity, an empty or short sample and results too large for a float64 are errors, never silent numbers; see
//     [ErrTooFew] and its neighbours. The bare distribution functions
//     ([StudentCDF], [NormalCDF] …) and the At methods of the fits have no
//     error result and give NaN outside of their domain.
//   - No function panics, whatever the input.
//
// # What it refuses to do
//
// It does not give an interval that the sample is too small for. A method with
// an exact level reports the level that it has (a median of ten values has an
// interval of 97.9 %, not of 95 %); where no interval reaches the level asked
// for, the interval is withheld with an [ErrTooFew] that names the n needed.
// It removes no outliers: [Outliers] returns their indices, and the robust
// estimators bear with them.
//
// All levels are probabilities between 0 and 1 (0.95, not 95), all tests are
// two-sided, and all p values are unadjusted; [Holm] adjusts a family of them.
package stats

import (
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

// The methods that an [Interval] can come from. They are words for readers and
// are written to results, so they do not change.
const (
	MethodOrder      = "exact order statistics"
	MethodT          = "Student t"
	MethodWelch      = "Welch t"
	MethodPooled     = "Student t, spread alike on both sides"
	MethodSenByGroup = "Kendall order statistics, variance by size"
	MethodJackknife  = "Student t, jackknife by size"
)

// MinForT is the least number of independent values for a t interval. Two would
// do for the formula, but then the spread is known from one single difference:
// the interval of level 0.95 is 12.7 standard errors to each side and depends
// more on the t table than on the data.
const MinForT = 3

// MedianInterval returns the distribution-free interval of the median between
// two order statistics, k-th from below and k-th from above, with the largest k
// at which the exact (binomial) level reaches the level asked for. Level is the
// one that the interval has: 0.979 for n of 10 and 0.969 for n of 6, when 0.95
// was asked for. No interval of level 0.95 exists for n below 6.
//
// The level is exact for independent draws of a continuous distribution and a
// lower bound where values tie.
func MedianInterval(xs []float64, level float64) (Interval, error) {
	if err := checkValues("computing median interval", xs, medianNeeds(level)); err != nil {
		return Interval{}, err
	}
	n := len(xs)
	k, real := orderFor(n, level, func(k int) float64 { return binomialHalfCDF(k, n) })
	s := sorted(xs)
	return Interval{Low: s[k-1], High: s[n-k], Level: real, Method: MethodOrder}, nil
}

// medianNeeds is the smallest n at which the extremes enclose the median with
// at least the level: 1 - 2·(½)ⁿ ≥ level.
func medianNeeds(level float64) int {
	n := 2
	for 1-math.Ldexp(2, -n) < level && n < 64 {
		n++
	}
	return n
}

// orderFor returns the largest k ≥ 1 for which the k-th lowest and k-th highest
// of n order statistics enclose the parameter with at least the level, and the
// level that they have. The parameter is below the k-th lowest with
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
	if err := checkValues(doing, xs, MinForT); err != nil {
		return Interval{}, err
	}
	n := float64(len(xs))
	return around(doing, mean(xs), stdDev(xs)/math.Sqrt(n), n-1, level, MethodT)
}

// around is the t interval about an estimate with its standard error.
func around(doing string, estimate, se, df, level float64, method string) (Interval, error) {
	half := 0.0
	if se != 0 {
		half = tCritical(level, df) * se
	}
	iv := Interval{Low: estimate - half, High: estimate + half, Level: level, Method: method}
	return iv, checkResult(doing, iv.Low, iv.High)
}

// MinForLook is the number of values from which on a sequential sample is first
// looked at: a standard deviation of fewer is too often small by chance.
const MinForLook = 5

// Looks are the sizes at which a sample that grows until its interval is narrow
// enough is looked at: from [MinForLook] to last in equal ratios of at most 2,
// ascending, the last being last itself. A last below MinForLook is the only
// look.
//
// A sample that is stopped because its interval happens to be narrow is stopped
// when its scatter happens to be small, so that intervals at their nominal
// level cover less than that (Starr, Annals of Mathematical Statistics 37,
// 1966). With k looks fixed beforehand, each at the level of [LookLevel], the
// chance that any of the k intervals misses is at most 1 - level by
// Bonferroni's inequality, and with it that of the one at which the sample was
// stopped, whatever the rule to stop is. This is the spending of the error in
// equal parts (Slud and Wei, Journal of the American Statistical Association
// 77, 1982). Few looks cost little width, and looks in equal ratios overshoot
// by at most a factor.
func Looks(last int) []int {
	if last <= MinForLook {
		return []int{max(last, 1)}
	}
	steps := math.Ceil(math.Log2(float64(last) / MinForLook))
	var out []int
	for k := range int(steps) {
		out = append(out, int(math.Round(MinForLook*math.Pow(float64(last)/MinForLook, float64(k)/steps))))
	}
	return append(out, last)
}

// LookLevel is the level of the interval at each of so many looks that together
// keep level, above 0 and below 1. One look, or none, keeps level itself.
func LookLevel(level float64, looks int) float64 {
	return 1 - (1-level)/float64(max(looks, 1))
}

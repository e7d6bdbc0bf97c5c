package stats

import (
	"fmt"
	"math"
)

// StdDev returns the sample standard deviation, with n-1 in the denominator,
// of at least two values.
func StdDev(xs []float64) (float64, error) {
	const doing = "computing standard deviation"
	if err := checkValues(doing, xs, 2); err != nil {
		return 0, err
	}
	sd := stdDev(xs)
	return sd, checkResult(doing, sd)
}

func stdDev(xs []float64) float64 {
	return math.Sqrt(squaresAbout(xs, mean(xs)) / float64(len(xs)-1))
}

// squaresAbout is the sum of squared distances from m, exactly zero for a
// sample that does not vary.
func squaresAbout(xs []float64, m float64) float64 {
	if constant(xs) {
		return 0
	}
	s := 0.0
	for _, x := range xs {
		s += (x - m) * (x - m)
	}
	return s
}

// CV returns the coefficient of variation, standard deviation over mean, of at
// least two values whose mean is positive. It is a ratio, not a percentage.
func CV(xs []float64) (float64, error) {
	const doing = "computing coefficient of variation"
	if err := checkValues(doing, xs, 2); err != nil {
		return 0, err
	}
	m := mean(xs)
	if !(m > 0) {
		return 0, fmt.Errorf("%s: mean %v is not positive: %w", doing, m, ErrRange)
	}
	cv := stdDev(xs) / m
	return cv, checkResult(doing, cv)
}

// MADScale times the [MAD] of a normal sample estimates its standard deviation:
// 1 / Φ⁻¹(3/4), rounded as the literature rounds it.
const MADScale = 1.4826

// MAD returns the median absolute deviation from the median of at least one
// value, without a scale factor (see [MADScale]).
func MAD(xs []float64) (float64, error) {
	const doing = "computing median absolute deviation"
	if err := checkValues(doing, xs, 1); err != nil {
		return 0, err
	}
	_, mad := medianAndMAD(xs)
	return mad, checkResult(doing, mad)
}

func medianAndMAD(xs []float64) (median, mad float64) {
	median = medianSorted(sorted(xs))
	away := make([]float64, len(xs))
	for i, x := range xs {
		away[i] = math.Abs(x - median)
	}
	return median, medianSorted(sorted(away))
}

// OutlierThreshold is the distance from the median, in units of the unscaled
// [MAD], beyond which [Outliers] calls a value an outlier: 10·[MADScale], so ten
// standard deviations of a normal sample.
const OutlierThreshold = 10 * MADScale

// Outliers returns the indices, ascending, of the values with
// |x - median| / MAD > 14.826, of at least three values. The rule and its
// threshold are those of hyperfine (src/outlier_detection.rs), where the
// quotient is called the modified Z-score: it flags only what no plausible
// spread explains. Both the median and the MAD include the outliers.
//
// Where the MAD is zero, more than half of the values are identical, and every
// value that differs from them is an outlier. That is what hyperfine's
// substitute, a MAD of 2⁻⁵², amounts to, but does not depend on the unit.
func Outliers(xs []float64) ([]int, error) {
	const doing = "looking for outliers"
	if err := checkValues(doing, xs, 3); err != nil {
		return nil, err
	}
	median, mad := medianAndMAD(xs)
	if err := checkResult(doing, mad); err != nil {
		return nil, err
	}
	var out []int
	for i, x := range xs {
		if math.Abs(x-median) > OutlierThreshold*mad {
			out = append(out, i)
		}
	}
	return out, nil
}

// Package stats holds the estimators, intervals, tests and fits that the
// analysis of a run rests on. It is a leaf: it works on plain float64 slices,
// imports only the standard library, and does not know disks, files or
// units. Which estimate belongs to which question is decided by its callers.
//
// # What it promises
//
//   - The caller's slices are never sorted or written to.
//   - The same input gives the same output, on every run: no method draws
//     random numbers. Only the last bits may differ between processor
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
	"cmp"
	"errors"
	"fmt"
	"math"
)

// The conditions that callers branch on. Every error of this package wraps one
// of them.
var (
	// ErrTooFew means that the sample is too small for the method. The error
	// names the size needed.
	ErrTooFew = errors.New("too few values")

	// ErrNotFinite means that an input value is NaN or infinite.
	ErrNotFinite = errors.New("not a finite number")

	// ErrRange means that a value is outside of the range where the method has a
	// meaning, such as one that is not positive where a logarithm is taken, or that
	// there are more values than it is built for.
	ErrRange = errors.New("out of range")

	// ErrNoSpread means that all values are equal where the method needs some
	// variation, such as a line over one single x.
	ErrNoSpread = errors.New("values do not vary")

	// ErrOverflow means that the inputs are finite but the result is too large
	// for a float64, or is lost in rounding on the way.
	ErrOverflow = errors.New("result out of the range of float64")
)

// tooFew reports a sample of have values, or pairs, where the same call can
// succeed with need.
func tooFew(doing string, have, need int) error {
	return fmt.Errorf("%s: n is %d, need at least %d: %w", doing, have, need, ErrTooFew)
}

// checkValues refuses samples of fewer than need values and values that are
// not finite.
func checkValues(doing string, xs []float64, need int) error {
	if len(xs) < need {
		return tooFew(doing, len(xs), need)
	}
	for i, x := range xs {
		if !isFinite(x) {
			return fmt.Errorf("%s: value %d is %v: %w", doing, i, x, ErrNotFinite)
		}
	}
	return nil
}

// checkPairs is checkValues for two slices.
func checkPairs(doing string, x, y []float64, need int) error {
	return cmp.Or(checkValues(doing, x, need), checkValues(doing, y, need))
}

// checkVarying refuses values that are all equal; what names one of them.
func checkVarying(doing, what string, xs []float64) error {
	if constant(xs) {
		return fmt.Errorf("%s: every %s is %v: %w", doing, what, xs[0], ErrNoSpread)
	}
	return nil
}

// checkResult turns a non-finite result of finite input into an error.
func checkResult(doing string, results ...float64) error {
	for _, v := range results {
		if !isFinite(v) {
			return fmt.Errorf("%s: %w", doing, ErrOverflow)
		}
	}
	return nil
}

// checked computes a statistic of at least need values.
func checked(doing string, xs []float64, need int, statistic func([]float64) float64) (float64, error) {
	if err := checkValues(doing, xs, need); err != nil {
		return 0, err
	}
	v := statistic(xs)
	return v, checkResult(doing, v)
}

func isFinite(x float64) bool { return !math.IsNaN(x) && !math.IsInf(x, 0) }

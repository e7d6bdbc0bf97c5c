package stats

import (
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

	// ErrTooMany means that the sample is larger than the method is built for.
	ErrTooMany = errors.New("too many values")

	// ErrNotFinite means that an input value is NaN or infinite.
	ErrNotFinite = errors.New("not a finite number")

	// ErrRange means that a value is outside of the range where the method has a
	// meaning, such as one that is not positive where a logarithm is taken.
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
	if err := checkValues(doing, x, need); err != nil {
		return err
	}
	return checkValues(doing, y, need)
}

// checkPositive refuses values that have no logarithm.
func checkPositive(doing string, xs []float64) error {
	for i, x := range xs {
		if !(x > 0) {
			return fmt.Errorf("%s: value %d is %v, not positive: %w", doing, i, x, ErrRange)
		}
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

func isFinite(x float64) bool { return !math.IsNaN(x) && !math.IsInf(x, 0) }

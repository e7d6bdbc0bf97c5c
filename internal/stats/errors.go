package stats

import (
	"errors"
	"fmt"
	"math"
)

// The conditions that callers branch on. Every error of this package wraps one
// of them.
var (
	// ErrTooFew means that the sample is too small for what was asked. The
	// error is a [*TooFewError], which names the size needed.
	ErrTooFew = errors.New("too few values")

	// ErrTooMany means that the sample is larger than the method is built for.
	ErrTooMany = errors.New("too many values")

	// ErrNotFinite means that an input value is NaN or infinite.
	ErrNotFinite = errors.New("not a finite number")

	// ErrLengths means that slices that belong together differ in length.
	ErrLengths = errors.New("lengths differ")

	// ErrRange means that a parameter (a level, a share, a weight) or a value
	// is outside of the range where the method has a meaning, such as a
	// value that is not positive where a logarithm is taken.
	ErrRange = errors.New("out of range")

	// ErrNoSpread means that all values are equal where the method needs some
	// variation, such as a line over one single x.
	ErrNoSpread = errors.New("values do not vary")

	// ErrOverflow means that the inputs are finite but the result is too large
	// for a float64, or is lost in rounding on the way.
	ErrOverflow = errors.New("result out of the range of float64")
)

// TooFewError reports that a sample of Have values (or pairs) was given where
// at least Need are needed. It matches [ErrTooFew].
type TooFewError struct {
	Doing string // what was being done, e.g. "computing median interval"
	Have  int    // values or pairs given
	Need  int    // the least number with which the same call can succeed
}

// Error reads "<doing>: n is 3, need at least 6".
func (e *TooFewError) Error() string {
	return fmt.Sprintf("%s: n is %d, need at least %d", e.Doing, e.Have, e.Need)
}

// Is reports whether target is [ErrTooFew].
func (e *TooFewError) Is(target error) bool { return target == ErrTooFew }

// checkValues refuses samples of fewer than need values and values that are
// not finite.
func checkValues(doing string, xs []float64, need int) error {
	if len(xs) < need {
		return &TooFewError{Doing: doing, Have: len(xs), Need: need}
	}
	for i, x := range xs {
		if !isFinite(x) {
			return fmt.Errorf("%s: value %d is %v: %w", doing, i, x, ErrNotFinite)
		}
	}
	return nil
}

// checkPairs is checkValues for two slices that belong together.
func checkPairs(doing string, x, y []float64, need int) error {
	if len(x) != len(y) {
		return fmt.Errorf("%s: %d and %d values: %w", doing, len(x), len(y), ErrLengths)
	}
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

// checkLevel refuses confidence levels that are not strictly
// between 0 and 1.
func checkLevel(doing string, level float64) error {
	if !(level > 0 && level < 1) {
		return fmt.Errorf("%s: level %v is not between 0 and 1: %w", doing, level, ErrRange)
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

package stats

import (
	"fmt"
	"math"
	"slices"
)

// Welch is the outcome of Welch's t test.
type Welch struct {
	Difference float64  // mean of a less mean of b
	Interval   Interval // of Difference
	T          float64  // the statistic
	DF         float64  // Welch–Satterthwaite degrees of freedom, not whole
	P          float64  // two-sided p value of "the means are equal"
}

// WelchT compares the means of two independent samples of at least [MinForT]
// values each without assuming that their variances are equal (Welch,
// Biometrika 34, 1947). At least one of the samples has to vary.
func WelchT(a, b []float64, level float64) (Welch, error) {
	const doing = "computing Welch test"
	if err := checkLevel(doing, level); err != nil {
		return Welch{}, err
	}
	if err := checkValues(doing, a, MinForT); err != nil {
		return Welch{}, err
	}
	if err := checkValues(doing, b, MinForT); err != nil {
		return Welch{}, err
	}
	na, nb := float64(len(a)), float64(len(b))
	sa, sb := stdDev(a)/math.Sqrt(na), stdDev(b)/math.Sqrt(nb)
	se := math.Hypot(sa, sb)
	if se == 0 {
		return Welch{}, fmt.Errorf("%s: neither sample varies: %w", doing, ErrNoSpread)
	}
	// In shares of the whole variance, so that nothing under- or overflows.
	fa, fb := sa/se, sb/se
	w := Welch{
		Difference: mean(a) - mean(b),
		DF:         1 / (math.Pow(fa, 4)/(na-1) + math.Pow(fb, 4)/(nb-1)),
	}
	w.T = w.Difference / se
	if err := checkResult(doing, w.Difference, w.T, w.DF); err != nil {
		return Welch{}, err
	}
	w.P = tTwoSided(w.T, w.DF)
	iv, err := around(doing, w.Difference, se, w.DF, level, MethodWelch)
	if err != nil {
		return Welch{}, err
	}
	w.Interval = iv
	return w, nil
}

// Holm returns the p values of a family of tests adjusted so that the chance of
// any false alarm among them is at most the level each is held against (Holm,
// Scandinavian Journal of Statistics 6, 1979), in the order of the input. Values
// outside [0, 1] are refused; an empty family is an empty result.
func Holm(ps []float64) ([]float64, error) {
	const doing = "adjusting p values"
	for i, p := range ps {
		if !(p >= 0 && p <= 1) {
			return nil, fmt.Errorf("%s: value %d is %v, not a probability: %w", doing, i, p, ErrRange)
		}
	}
	byP := make([]int, len(ps))
	for i := range byP {
		byP[i] = i
	}
	slices.SortStableFunc(byP, func(i, j int) int { return order(ps[i], ps[j]) })
	out := make([]float64, len(ps))
	worst := 0.0
	for done, i := range byP {
		worst = max(worst, min(1, ps[i]*float64(len(ps)-done)))
		out[i] = worst
	}
	return out, nil
}

package stats

import (
	"cmp"
	"math"
	"slices"
)

// Contrast is an estimated difference with its standard error, from which its
// interval and the test against any value follow. With a standard error of zero
// the estimate is certain: the interval has no width, and p is 0 or 1.
type Contrast struct {
	Estimate float64
	SE       float64 // standard error, 0 or more
	DF       float64 // degrees of freedom of Student's t, more than 0
	Method   string  // one of the Method constants
}

// P is the two-sided p value of "the true difference is at"; NaN if at is.
func (c Contrast) P(at float64) float64 {
	d := c.Estimate - at
	switch {
	case math.IsNaN(d):
		return math.NaN()
	case d == 0:
		return 1
	case c.SE == 0:
		return 0
	}
	return tTwoSided(d/c.SE, c.DF)
}

// Interval is Student's t interval of the difference.
func (c Contrast) Interval(level float64) (Interval, error) {
	return around("computing interval of a difference", c.Estimate, c.SE, c.DF, level, c.Method)
}

// MeanContrast is the mean of at least [MinForT] paired differences.
func MeanContrast(d []float64) (Contrast, error) {
	if err := checkValues("averaging differences", d, MinForT); err != nil {
		return Contrast{}, err
	}
	n := float64(len(d))
	return Contrast{Estimate: mean(d), SE: stdDev(d) / math.Sqrt(n), DF: n - 1, Method: MethodT}, nil
}

// WelchContrast is the mean of a less the mean of b by Welch's t test
// (Biometrika 34,
// 1947): at least [MinForT] values on each side, and their variances may differ.
// The degrees of freedom are Welch and Satterthwaite's and need not be whole.
// Samples that do not vary have a standard error of zero.
func WelchContrast(a, b []float64) (Contrast, error) {
	const doing = "comparing means"
	if err := checkPairs(doing, a, b, MinForT); err != nil {
		return Contrast{}, err
	}
	na, nb := float64(len(a)), float64(len(b))
	sa, sb := stdDev(a)/math.Sqrt(na), stdDev(b)/math.Sqrt(nb)
	c := Contrast{Estimate: mean(a) - mean(b), SE: math.Hypot(sa, sb), DF: na + nb - 2, Method: MethodWelch}
	if c.SE > 0 { // in shares of the whole variance, so that nothing under- or overflows
		c.DF = 1 / (math.Pow(sa/c.SE, 4)/(na-1) + math.Pow(sb/c.SE, 4)/(nb-1))
	}
	return c, checkResult(doing, c.Estimate, c.SE, c.DF)
}

// PooledContrast is the mean of a less the mean of b under the assumption that
// both vary alike (Student's two-sample t). It is for samples that Welch's test
// is too small for: one side may be a single value; its spread is then taken
// from the other side. Both together have at least [MinForT] + 1 values, so
// that the spread has the two degrees of freedom that three values give it.
func PooledContrast(a, b []float64) (Contrast, error) {
	const doing = "comparing means of alike spread"
	if err := checkPairs(doing, a, b, 1); err != nil {
		return Contrast{}, err
	}
	na, nb := float64(len(a)), float64(len(b))
	df := na + nb - 2
	if df < MinForT-1 {
		return Contrast{}, tooFew(doing, len(a)+len(b), MinForT+1)
	}
	ma, mb := mean(a), mean(b)
	sd := math.Sqrt((squaresAbout(a, ma) + squaresAbout(b, mb)) / df)
	c := Contrast{Estimate: ma - mb, SE: sd * math.Sqrt(1/na+1/nb), DF: df, Method: MethodPooled}
	return c, checkResult(doing, c.Estimate, c.SE)
}

// Holm returns the p values of a family of tests, each between 0 and 1, adjusted
// so that the chance of any false alarm among them is at most the level that
// each is compared with (Holm, Scandinavian Journal of Statistics 6, 1979), in
// the order of the input. A test without a p value, NaN, counts as one of 1.
func Holm(ps []float64) []float64 {
	ps = slices.Clone(ps)
	byP := make([]int, len(ps))
	for i := range byP {
		if byP[i] = i; math.IsNaN(ps[i]) {
			ps[i] = 1
		}
	}
	slices.SortStableFunc(byP, func(i, j int) int { return cmp.Compare(ps[i], ps[j]) })
	out := make([]float64, len(ps))
	worst := 0.0
	for done, i := range byP {
		worst = max(worst, min(1, ps[i]*float64(len(ps)-done)))
		out[i] = worst
	}
	return out
}

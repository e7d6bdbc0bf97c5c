package stats

import (
	"cmp"
	"math"
	"slices"
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
	// The extremes enclose the median with the level 1 - 2·(½)ⁿ
	need := max(2, int(min(64, math.Ceil(1-math.Log2(1-level)))))
	if err := checkValues("computing median interval", xs, need); err != nil {
		return Interval{}, err
	}
	n := len(xs)
	// The median is below the k-th lowest, and above the k-th highest, with the
	// probability of k-1 heads or fewer among n tosses.
	enclosed := func(k int) float64 { return 1 - 2*binomialHalfCDF(k-1, n) }
	// A level such as 31/32, which six values have exactly, must not be missed
	// by a rounding of the distribution function.
	slack := min(1e-12, level/2)
	k := sort.Search((n+1)/2, func(i int) bool { return enclosed(i+1) < level-slack })
	s := sorted(xs)
	return Interval{Low: s[k-1], High: s[n-k], Level: enclosed(k), Method: MethodOrder}, nil
}

// ShareInterval is the exact interval of Clopper and Pearson (Biometrika 26,
// 1934) of a probability, from k hits in n independent trials, 0 ≤ k ≤ n and n of
// at least 1. Its level is at least the one asked for.
func ShareInterval(k, n int, level float64) Interval {
	// The end at which so few hits, or so many, have half the error's probability
	end := func(a, b float64, want float64) float64 {
		low, high := 0.0, 1.0
		for range 60 {
			if mid := (low + high) / 2; betaInc(a, b, mid, 1-mid) < want {
				low = mid
			} else {
				high = mid
			}
		}
		return (low + high) / 2
	}
	iv, half := Interval{High: 1, Level: level, Method: "Clopper-Pearson"}, (1-level)/2
	if k > 0 {
		iv.Low = end(float64(k), float64(n-k+1), half)
	}
	if k < n {
		iv.High = end(float64(k+1), float64(n-k), 1-half)
	}
	return iv
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
	return min(1, 2*studentTail(math.Abs(d/c.SE), c.DF))
}

// Interval is Student's t interval of the difference.
func (c Contrast) Interval(level float64) (Interval, error) {
	half := 0.0
	if c.SE != 0 {
		half = tCritical(level, c.DF) * c.SE
	}
	iv := Interval{Low: c.Estimate - half, High: c.Estimate + half, Level: level, Method: c.Method}
	return iv, checkResult("computing t interval", iv.Low, iv.High)
}

// MeanContrast is the mean of at least [MinForT] values, or paired differences,
// which are independent and have a mean that is about normal. The interval of
// values that do not vary has no width: true to the formula, and the resolution
// of the measurement is then the real limit.
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

package stats

import "math"

// Ratio is the outcome of a paired comparison a[i] / b[i].
type Ratio struct {
	Ratio    float64  // geometric mean of the ratios
	Interval Interval // of Ratio; not symmetric about it
	P        float64  // two-sided p value of "the ratio is 1"
	Pairs    int      // number of pairs
	LogSD    float64  // standard deviation of the natural logarithms of the ratios
}

// PairedRatio compares paired values, such as the aggregate rates of two cases
// in each round: the logarithms of a[i]/b[i] are averaged, given Student's t
// interval, and taken back through the exponential. What the two values of a
// pair share (the state of the machine in that round) cancels. At least
// [MinForT] pairs are needed, all values positive; [GeoMeanRatio] gives the bare
// ratio of fewer.
func PairedRatio(a, b []float64, level float64) (Ratio, error) {
	const doing = "computing paired ratio"
	if err := checkLevel(doing, level); err != nil {
		return Ratio{}, err
	}
	d, err := logRatios(doing, a, b, MinForT)
	if err != nil {
		return Ratio{}, err
	}
	n := float64(len(d))
	m, sd := mean(d), stdDev(d)
	iv, err := around(doing, m, sd/math.Sqrt(n), n-1, level, MethodLogRatio)
	if err != nil {
		return Ratio{}, err
	}
	iv.Low, iv.High = math.Exp(iv.Low), math.Exp(iv.High)
	r := Ratio{Ratio: math.Exp(m), Interval: iv, P: 1, Pairs: len(d), LogSD: sd}
	switch {
	case sd > 0:
		r.P = tTwoSided(m/sd*math.Sqrt(n), n-1)
	case m != 0:
		r.P = 0
	}
	return r, checkResult(doing, r.Ratio, iv.Low, iv.High)
}

// GeoMeanRatio returns the geometric mean of a[i] / b[i] for at least one pair
// of positive values: the direction seen, where the pairs are too few for an
// interval.
func GeoMeanRatio(a, b []float64) (float64, error) {
	const doing = "computing geometric mean ratio"
	d, err := logRatios(doing, a, b, 1)
	if err != nil {
		return 0, err
	}
	r := math.Exp(mean(d))
	return r, checkResult(doing, r)
}

// logRatios returns log(a[i]/b[i]), equal values giving exactly zero.
func logRatios(doing string, a, b []float64, need int) ([]float64, error) {
	if err := checkPairs(doing, a, b, need); err != nil {
		return nil, err
	}
	if err := checkPositive(doing, a); err != nil {
		return nil, err
	}
	if err := checkPositive(doing, b); err != nil {
		return nil, err
	}
	d := make([]float64, len(a))
	for i := range a {
		d[i] = math.Log(a[i]) - math.Log(b[i])
	}
	return d, nil
}

package stats

import (
	"cmp"
	"fmt"
	"math"
	"slices"
)

// Line is a straight line y = Intercept + Slope·x fitted by least squares.
type Line struct {
	Slope       float64 // change of y per unit of x
	Intercept   float64 // y at x = 0
	SlopeSE     float64 // standard error of Slope
	InterceptSE float64 // standard error of Intercept
	R2          float64 // share of the (weighted) squares of y explained, 0 … 1; 0 where y does not vary
	ResidualSD  float64 // of an observation of weight 1, with N-2 degrees of freedom
	SSE         float64 // (weighted) sum of squared residuals
	N           int     // number of points
	MinX, MaxX  float64 // range of the x fitted; a prediction outside is an extrapolation
}

// MinForLine is the least number of points for a fit: a line through two has no
// residual to judge it by.
const MinForLine = 3

// FitLine fits a line by ordinary least squares to at least [MinForLine] points
// that do not all share one x. The standard errors and intervals assume errors
// that are independent, normal and of one size over all x; where they grow with
// x, as the time of a transfer does with its size, use [FitWeightedLine].
func FitLine(x, y []float64) (Line, error) {
	return FitWeightedLine(x, y, slices.Repeat([]float64{1}, len(x)))
}

// FitWeightedLine is [FitLine] with a positive weight per point, proportional
// to 1 / variance of its y. For time against size with a constant relative
// error the weights are 1/size²: the intercept (the latency) is then carried by
// the small files, while the plain fit drowns it in the noise of the large
// ones. Where the error is relative to the whole time, latency included, these
// weights trust the smallest files too much, and the intervals come out too
// narrow.
func FitWeightedLine(x, y, weights []float64) (Line, error) {
	const doing = "fitting line"
	if err := checkPairs(doing, x, y, MinForLine); err != nil {
		return Line{}, err
	}
	if err := checkVarying(doing, "x", x); err != nil {
		return Line{}, err
	}
	l := Line{N: len(x), MinX: slices.Min(x), MaxX: slices.Max(x)}
	var total, meanX, meanY, sxx, sxy, syy float64
	for i := range x { // running weighted means: no sum that could overflow first
		total += weights[i]
		meanX += (x[i] - meanX) * (weights[i] / total)
		meanY += (y[i] - meanY) * (weights[i] / total)
	}
	for i := range x {
		w, dx, dy := weights[i], x[i]-meanX, y[i]-meanY
		sxx += w * dx * dx
		sxy += w * dx * dy
		syy += w * dy * dy
	}
	l.Slope = sxy / sxx
	l.Intercept = meanY - l.Slope*meanX
	for i := range x {
		residual := (y[i] - meanY) - l.Slope*(x[i]-meanX)
		l.SSE += weights[i] * residual * residual
	}
	if syy > 0 && !constant(y) {
		l.R2 = min(max(1-l.SSE/syy, 0), 1)
	}
	l.ResidualSD = math.Sqrt(l.SSE / float64(l.N-2))
	l.SlopeSE = l.ResidualSD / math.Sqrt(sxx)
	l.InterceptSE = l.ResidualSD * math.Sqrt(1/total+meanX*meanX/sxx)
	return l, checkResult(doing, l.Slope, l.Intercept, l.SlopeSE, l.InterceptSE, l.R2, l.ResidualSD, l.SSE, total, sxx)
}

// At returns the fitted y at x.
func (l Line) At(x float64) float64 { return l.Intercept + l.Slope*x }

// SlopeInterval returns the t interval of the slope.
func (l Line) SlopeInterval(level float64) (Interval, error) {
	return Contrast{l.Slope, l.SlopeSE, float64(l.N - 2), MethodT}.Interval(level)
}

// InterceptInterval returns the t interval of the intercept.
func (l Line) InterceptInterval(level float64) (Interval, error) {
	return Contrast{l.Intercept, l.InterceptSE, float64(l.N - 2), MethodT}.Interval(level)
}

// Power is a power law y = Coefficient · x^Exponent.
type Power struct {
	Coefficient float64 // y at x = 1
	Exponent    float64 // negative where y falls
	// Log is the line log y = log Coefficient + Exponent · log x (natural
	// logarithms); its R2 is that of the logarithms, and its slope is the
	// exponent.
	Log Line
}

// FitPower fits a power law to at least [MinForLine] points with positive x and
// y, by ordinary least squares on the logarithms. It therefore weighs relative
// errors, not absolute ones as a non-linear fit would. The published fits of
// time against threads are of this kind.
func FitPower(x, y []float64) (Power, error) {
	const doing = "fitting power law"
	if err := checkPairs(doing, x, y, MinForLine); err != nil {
		return Power{}, err
	}
	logs := slices.Concat(x, y)
	for i, v := range logs {
		if !(v > 0) {
			return Power{}, fmt.Errorf("%s: value %d is %v, not positive: %w", doing, i, v, ErrRange)
		}
		logs[i] = math.Log(v)
	}
	l, err := FitLine(logs[:len(x)], logs[len(x):])
	if err != nil {
		return Power{}, fmt.Errorf("%s: %w", doing, err)
	}
	p := Power{Coefficient: math.Exp(l.Intercept), Exponent: l.Slope, Log: l}
	return p, checkResult(doing, p.Coefficient)
}

// At returns the fitted y at x > 0.
func (p Power) At(x float64) float64 { return math.Exp(p.Log.At(math.Log(x))) }

// CoefficientInterval returns the t interval of the coefficient, taken back
// from the logarithm and so not symmetric.
func (p Power) CoefficientInterval(level float64) (Interval, error) {
	iv, err := p.Log.InterceptInterval(level)
	if err != nil {
		return Interval{}, err
	}
	iv.Low, iv.High = math.Exp(iv.Low), math.Exp(iv.High)
	return iv, checkResult("computing coefficient interval", iv.Low, iv.High)
}

// TwoLines is a pair of separate lines, one for the points below a break in x
// and one for those above. It is what a write test looks like when a drive
// throttles or leaves its fast cache.
type TwoLines struct {
	Left, Right Line    // fits of the points below and above Break
	Break       float64 // halfway between the neighbouring x on either side
	R2          float64 // share of the squares of y that both lines together explain, 0 … 1
}

// FitTwoLines splits the points, ordered by x, where two separate least squares
// lines leave the smallest sum of squares, with at least [MinForLine] points
// and two distinct x on each side. Points of one x are never separated. The
// lines need not meet at the break.
func FitTwoLines(x, y []float64) (TwoLines, error) {
	const doing = "fitting two lines"
	if err := checkPairs(doing, x, y, 2*MinForLine); err != nil {
		return TwoLines{}, err
	}
	x, y = sortedPairs(x, y)
	one, err := FitLine(x, y)
	if err != nil {
		return TwoLines{}, err
	}
	two, least := TwoLines{}, math.Inf(1)
	for cut := MinForLine; cut <= len(x)-MinForLine; cut++ {
		if x[cut-1] == x[cut] || x[0] == x[cut-1] || x[cut] == x[len(x)-1] {
			continue
		}
		left, err := FitLine(x[:cut], y[:cut])
		right, errRight := FitLine(x[cut:], y[cut:])
		if err := cmp.Or(err, errRight); err != nil {
			return TwoLines{}, err
		}
		if sse := left.SSE + right.SSE; sse < least {
			least, two = sse, TwoLines{Left: left, Right: right, Break: midpoint(x[cut-1], x[cut])}
		}
	}
	if math.IsInf(least, 1) {
		return TwoLines{}, fmt.Errorf("%s: no break leaves two distinct x and %d points on each side: %w",
			doing, MinForLine, ErrNoSpread)
	}
	if two.R2 = one.R2; one.SSE > 0 {
		two.R2 = max(two.R2, 1-(1-one.R2)*least/one.SSE)
	}
	return two, nil
}

// At returns the fitted y at x, by the line of its side.
func (t TwoLines) At(x float64) float64 {
	if x <= t.Break {
		return t.Left.At(x)
	}
	return t.Right.At(x)
}

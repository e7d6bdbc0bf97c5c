package stats

import (
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

	meanX, sxx, weight float64 // weighted mean of x, squares about it, sum of weights
}

// MinForLine is the least number of points for a fit: a line through two has no
// residual to judge it by.
const MinForLine = 3

// FitLine fits a line by ordinary least squares to at least [MinForLine] points
// that do not all share one x. The standard errors and intervals assume errors
// that are independent, normal and of one size over all x; where they grow with
// x, as the time of a transfer does with its size, use [FitWeightedLine].
func FitLine(x, y []float64) (Line, error) {
	return fitLine("fitting line", x, y, nil)
}

// FitWeightedLine is [FitLine] with a positive weight per point, proportional
// to 1 / variance of its y. For time against size with a constant relative
// error the weights are 1/size²: the intercept (the latency) is then carried by
// the small files, while the plain fit drowns it in the noise of the large
// ones. Where the error is relative to the whole time, latency included, these
// weights trust the smallest files too much, and the intervals come out too
// narrow.
func FitWeightedLine(x, y, weights []float64) (Line, error) {
	return fitLine("fitting weighted line", x, y, weights)
}

func fitLine(doing string, x, y, w []float64) (Line, error) {
	if err := checkPairs(doing, x, y, MinForLine); err != nil {
		return Line{}, err
	}
	if constant(x) {
		return Line{}, fmt.Errorf("%s: every x is %v: %w", doing, x[0], ErrNoSpread)
	}
	at := func(i int) float64 {
		if w == nil {
			return 1
		}
		return w[i]
	}
	l := Line{N: len(x), MinX: slices.Min(x), MaxX: slices.Max(x)}
	meanY := 0.0
	for i := range x { // running weighted means: no sum that could overflow first
		wi := at(i)
		l.weight += wi
		l.meanX += (x[i] - l.meanX) * (wi / l.weight)
		meanY += (y[i] - meanY) * (wi / l.weight)
	}
	sxy, syy := 0.0, 0.0
	for i := range x {
		dx, dy := x[i]-l.meanX, y[i]-meanY
		l.sxx += at(i) * dx * dx
		sxy += at(i) * dx * dy
		syy += at(i) * dy * dy
	}
	l.Slope = sxy / l.sxx
	l.Intercept = meanY - l.Slope*l.meanX
	for i := range x {
		residual := (y[i] - meanY) - l.Slope*(x[i]-l.meanX)
		l.SSE += at(i) * residual * residual
	}
	if syy > 0 && !constant(y) {
		l.R2 = min(max(1-l.SSE/syy, 0), 1)
	}
	l.ResidualSD = math.Sqrt(l.SSE / float64(l.N-2))
	l.SlopeSE = l.ResidualSD / math.Sqrt(l.sxx)
	l.InterceptSE = l.ResidualSD * math.Sqrt(1/l.weight+l.meanX*l.meanX/l.sxx)
	return l, checkResult(doing, l.Slope, l.Intercept, l.SlopeSE, l.InterceptSE, l.R2, l.ResidualSD, l.SSE, l.weight,
		l.sxx)
}

// At returns the fitted y at x.
func (l Line) At(x float64) float64 { return l.Intercept + l.Slope*x }

// SlopeInterval returns the t interval of the slope.
func (l Line) SlopeInterval(level float64) (Interval, error) {
	return around("computing slope interval", l.Slope, l.SlopeSE, float64(l.N-2), level, MethodT)
}

// InterceptInterval returns the t interval of the intercept.
func (l Line) InterceptInterval(level float64) (Interval, error) {
	return around("computing intercept interval", l.Intercept, l.InterceptSE, float64(l.N-2), level, MethodT)
}

// Power is a power law y = Coefficient · x^Exponent.
type Power struct {
	Coefficient float64 // y at x = 1
	Exponent    float64 // negative where y falls
	// Log is the line log y = log Coefficient + Exponent · log x (natural
	// logarithms); its R2 is that of the logarithms.
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
	if err := checkPositive(doing, slices.Concat(x, y)); err != nil {
		return Power{}, err
	}
	l, err := fitLine(doing, logs(x), logs(y), nil)
	if err != nil {
		return Power{}, err
	}
	p := Power{Coefficient: math.Exp(l.Intercept), Exponent: l.Slope, Log: l}
	return p, checkResult(doing, p.Coefficient)
}

// At returns the fitted y at x > 0.
func (p Power) At(x float64) float64 { return math.Exp(p.Log.At(math.Log(x))) }

// ExponentInterval returns the t interval of the exponent.
func (p Power) ExponentInterval(level float64) (Interval, error) { return p.Log.SlopeInterval(level) }

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

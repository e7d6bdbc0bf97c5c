package stats

import (
	"fmt"
	"math"
	"slices"
)

// Line is a straight line y = Intercept + Slope·x fitted by least squares.
type Line struct {
	Slope       float64   // change of y per unit of x
	Intercept   float64   // y at x = 0
	SlopeSE     float64   // standard error of Slope
	InterceptSE float64   // standard error of Intercept
	R2          float64   // share of the (weighted) squares of y explained, 0 … 1; 0 where y does not vary
	ResidualSD  float64   // of an observation of weight 1, with N-2 degrees of freedom
	SSE         float64   // (weighted) sum of squared residuals
	Residuals   []float64 // y - fitted y, in the order of the input
	N           int       // number of points
	MinX, MaxX  float64   // range of the x fitted; a prediction outside is an extrapolation

	meanX, sxx, weight float64 // weighted mean of x, squares about it, sum of weights
	weighted           bool
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

// FitWeightedLine is [FitLine] with a positive weight per point, proportional to
// 1 / variance of its y. For time against size with a constant relative error
// the weights are 1/size²: the intercept (the latency) is then carried by the
// small files, while the plain fit drowns it in the noise of the large ones.
// Where the error is relative to the whole time, latency included, these weights
// trust the smallest files too much and the intervals come out too narrow; see
// [FitRelativeLine].
func FitWeightedLine(x, y, weights []float64) (Line, error) {
	const doing = "fitting weighted line"
	if err := checkPairs(doing, x, weights, 0); err != nil {
		return Line{}, err
	}
	if err := checkPositive(doing, weights); err != nil {
		return Line{}, err
	}
	return fitLine(doing, x, y, weights)
}

// FitRelativeLine fits a line to positive y whose errors are a constant share of
// y itself: the weights are 1/fitted², found by fitting again until the line
// settles (iteratively reweighted least squares, at most 50 times). ResidualSD is
// then that share. Unlike weights of 1/x² it needs no guess of where the
// intercept stops to matter. It refuses with [ErrRange] where the line falls to
// zero or below at one of the points.
func FitRelativeLine(x, y []float64) (Line, error) {
	const doing = "fitting line with relative errors"
	if err := checkPairs(doing, x, y, MinForLine); err != nil {
		return Line{}, err
	}
	if err := checkPositive(doing, y); err != nil {
		return Line{}, err
	}
	level := slices.Clone(y) // the first guess of the line is the data themselves
	weights := make([]float64, len(y))
	var l Line
	for range 50 {
		for i, v := range level {
			weights[i] = 1 / (v * v)
		}
		if err := checkResult(doing, weights...); err != nil {
			return Line{}, err
		}
		before := l
		var err error
		if l, err = fitLine(doing, x, y, weights); err != nil {
			return Line{}, err
		}
		for i := range level {
			level[i] = l.At(x[i])
		}
		if err := checkPositive(doing, level); err != nil {
			return Line{}, err
		}
		if math.Abs(l.Slope-before.Slope) <= 1e-12*math.Abs(l.Slope) &&
			math.Abs(l.Intercept-before.Intercept) <= 1e-12*math.Abs(l.Intercept) {
			break
		}
	}
	return l, nil
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
	l := Line{N: len(x), MinX: slices.Min(x), MaxX: slices.Max(x), weighted: w != nil, Residuals: make([]float64, len(x))}
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
		l.Residuals[i] = (y[i] - meanY) - l.Slope*(x[i]-l.meanX)
		l.SSE += at(i) * l.Residuals[i] * l.Residuals[i]
	}
	if syy > 0 && !constant(y) {
		l.R2 = min(max(1-l.SSE/syy, 0), 1)
	}
	l.ResidualSD = math.Sqrt(l.SSE / float64(l.N-2))
	l.SlopeSE = l.ResidualSD / math.Sqrt(l.sxx)
	l.InterceptSE = l.ResidualSD * math.Sqrt(1/l.weight+l.meanX*l.meanX/l.sxx)
	err := checkResult(doing, append(slices.Clone(l.Residuals), l.Slope, l.Intercept, l.SlopeSE, l.InterceptSE,
		l.R2, l.ResidualSD, l.SSE, l.weight, l.sxx)...)
	if err != nil {
		return Line{}, err
	}
	return l, nil
}

// At returns the fitted y at x.
func (l Line) At(x float64) float64 { return l.Intercept + l.Slope*x }

// SlopeInterval returns the t interval of the slope.
func (l Line) SlopeInterval(level float64) (Interval, error) {
	return l.interval("computing slope interval", l.Slope, l.SlopeSE, level)
}

// InterceptInterval returns the t interval of the intercept.
func (l Line) InterceptInterval(level float64) (Interval, error) {
	return l.interval("computing intercept interval", l.Intercept, l.InterceptSE, level)
}

// MeanAt returns the t interval of the line itself at x: where the mean of many
// observations there would lie.
func (l Line) MeanAt(x, level float64) (Interval, error) {
	return l.interval("computing interval of line", l.At(x), l.ResidualSD*math.Sqrt(l.leverage(x)), level)
}

// Predict returns the fitted y at x with its prediction interval: where one new
// observation would lie. A weighted line refuses, as it does not know the
// weight of that observation; see [Line.PredictWeighted].
func (l Line) Predict(x, level float64) (float64, Interval, error) {
	if l.weighted {
		return 0, Interval{}, fmt.Errorf("predicting from weighted line: no weight given: %w", ErrRange)
	}
	return l.PredictWeighted(x, 1, level)
}

// PredictWeighted is [Line.Predict] for an observation of the given weight, in
// the unit of the weights that the line was fitted with.
func (l Line) PredictWeighted(x, weight, level float64) (float64, Interval, error) {
	const doing = "predicting from line"
	if !(weight > 0) || !isFinite(weight) {
		return 0, Interval{}, fmt.Errorf("%s: weight %v is not positive: %w", doing, weight, ErrRange)
	}
	iv, err := l.interval(doing, l.At(x), l.ResidualSD*math.Sqrt(1/weight+l.leverage(x)), level)
	if err != nil {
		return 0, Interval{}, err
	}
	return l.At(x), iv, nil
}

func (l Line) leverage(x float64) float64 {
	d := x - l.meanX
	return 1/l.weight + d/l.sxx*d
}

func (l Line) interval(doing string, estimate, se, level float64) (Interval, error) {
	if err := checkLevel(doing, level); err != nil {
		return Interval{}, err
	}
	if l.N < MinForLine { // the zero Line, or one that was not fitted here
		return Interval{}, &TooFewError{Doing: doing, Have: l.N, Need: MinForLine}
	}
	if err := checkResult(doing, estimate, se); err != nil {
		return Interval{}, err
	}
	return around(doing, estimate, se, float64(l.N-2), level, MethodT)
}

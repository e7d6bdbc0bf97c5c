package stats

import "math"

// Power is a power law y = Coefficient · x^Exponent.
type Power struct {
	Coefficient float64 // y at x = 1
	Exponent    float64 // negative where y falls
	Log         Line    // the line log y = log Coefficient + Exponent · log x (natural logarithms); its R2 is of the logarithms
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
	if err := checkPositive(doing, x); err != nil {
		return Power{}, err
	}
	if err := checkPositive(doing, y); err != nil {
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

// Falling returns the same law as a / x^k, the way a time that falls with the
// number of threads is printed.
func (p Power) Falling() (a, k float64) { return p.Coefficient, -p.Exponent }

// ExponentInterval returns the t interval of the exponent.
func (p Power) ExponentInterval(level float64) (Interval, error) { return p.Log.SlopeInterval(level) }

// CoefficientInterval returns the t interval of the coefficient, taken back from
// the logarithm and so not symmetric.
func (p Power) CoefficientInterval(level float64) (Interval, error) {
	iv, err := p.Log.InterceptInterval(level)
	if err != nil {
		return Interval{}, err
	}
	return exponential("computing coefficient interval", iv)
}

// Predict returns the fitted y at x > 0 with the prediction interval of one new
// observation.
func (p Power) Predict(x, level float64) (float64, Interval, error) {
	const doing = "predicting from power law"
	if err := checkPositive(doing, []float64{x}); err != nil {
		return 0, Interval{}, err
	}
	v, iv, err := p.Log.Predict(math.Log(x), level)
	if err != nil {
		return 0, Interval{}, err
	}
	iv, err = exponential(doing, iv)
	return math.Exp(v), iv, err
}

func exponential(doing string, iv Interval) (Interval, error) {
	iv.Low, iv.High = math.Exp(iv.Low), math.Exp(iv.High)
	if err := checkResult(doing, iv.Low, iv.High); err != nil {
		return Interval{}, err
	}
	return iv, nil
}

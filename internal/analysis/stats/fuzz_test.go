package stats_test

import (
	"encoding/binary"
	"errors"
	"math"
	"testing"

	"dmgbench/internal/analysis/stats"
)

// everything calls every function of the package that takes data and returns
// the numbers of all calls that succeeded. A failed call leaves its place at
// zero.
func everything(x, y []float64) []float64 {
	var out []float64
	one := func(v float64, err error) {
		if err != nil {
			mustBeKnown(err)
			v = 0
		}
		out = append(out, v)
	}
	iv := func(v stats.Interval, err error) {
		one(v.Low, err)
		one(v.High, err)
		one(v.Level, err)
	}
	line := func(l stats.Line, err error) {
		for _, v := range []float64{l.Slope, l.Intercept, l.SlopeSE, l.InterceptSE, l.R2, l.ResidualSD, l.SSE} {
			one(v, err)
		}
		iv(l.SlopeInterval(0.9))
		iv(l.InterceptInterval(0.9))
	}
	for _, f := range []func([]float64) (float64, error){stats.Mean, stats.Median, stats.StdDev, stats.MAD} {
		one(f(x))
	}
	for _, share := range []float64{0, 0.2, 0.4999999999999999} {
		one(stats.TrimmedMean(x, share))
		one(stats.Quantile(x, share))
	}
	o, err := stats.Outliers(x)
	one(float64(len(o)), err)
	for _, level := range []float64{1e-300, 0.5, 0.95, 1 - 1e-15} {
		iv(stats.MedianInterval(x, level))
		iv(stats.MeanInterval(x, level))
	}
	for _, contrast := range []func(a, b []float64) (stats.Contrast, error){stats.WelchContrast, stats.PooledContrast} {
		c, err := contrast(x, y)
		one(c.Estimate, err)
		one(c.SE, err)
	}
	one(stats.Spearman(x, y))
	mean := func(xs []float64) float64 {
		s := 0.0
		for _, v := range xs {
			s += v
		}
		return s / float64(len(xs))
	}
	iv(stats.JackknifeByGroup(x, y, func(x, y []float64) float64 { return mean(x) / mean(y) }, 1, 0.9))
	line(stats.FitLine(x, y))
	line(stats.FitWeightedLine(x, y, y))
	p, err := stats.FitPower(x, y)
	one(p.Coefficient, err)
	iv(p.CoefficientInterval(0.9))
	s, err := stats.FitTheilSen(x, y)
	one(s.Slope, err)
	one(s.Intercept, err)
	iv(s.SlopeIntervalByGroup(x, y, 0.9))
	two, err := stats.FitTwoLines(x, y)
	for _, v := range []float64{two.Break, two.R2, two.Left.Slope, two.Right.Slope} {
		one(v, err)
	}
	return out
}

// mustBeKnown panics, which fails the test, for an error that callers could not
// branch on.
func mustBeKnown(err error) {
	for _, known := range []error{stats.ErrTooFew, stats.ErrNotFinite, stats.ErrRange,
		stats.ErrNoSpread, stats.ErrOverflow} {
		if errors.Is(err, known) {
			return
		}
	}
	panic(err)
}

// FuzzNoPanic feeds arbitrary bits as float64: nothing may panic, and whatever
// comes without an error must be finite.
func FuzzNoPanic(f *testing.F) {
	add := func(xs ...float64) {
		var b []byte
		for _, x := range xs {
			b = binary.LittleEndian.AppendUint64(b, math.Float64bits(x))
		}
		f.Add(b)
	}
	add()
	add(1, 2)
	add(1, math.NaN(), 3, 4, math.Inf(1), 2)
	add(math.MaxFloat64, -math.MaxFloat64, math.MaxFloat64, 1, 2, 3, 4, 5, 6, 7, 8, -math.MaxFloat64)
	add(5e-324, 0, 1e-323, 5e-324, 1e-320, 5e-324, 1, 1e-300)
	add(1e154, 1e-154, 1e155, 1e-155, 1e200, 1e-200, 3, 4, 1, 1e-9, 2, 1e17)
	add(1, 1, 1, 1, 1, 1, 1, 1)
	long := make([]float64, 48)
	for i := range long {
		long[i] = math.Exp(float64((i*29)%48)) / 1e9
	}
	add(long...)
	f.Fuzz(func(t *testing.T, data []byte) {
		var xs []float64
		for ; len(data) >= 8 && len(xs) < 80; data = data[8:] {
			xs = append(xs, math.Float64frombits(binary.LittleEndian.Uint64(data)))
		}
		x, y := xs[:len(xs)/2], xs[len(xs)/2:]
		for i, v := range everything(x, y) {
			if math.IsNaN(v) || math.IsInf(v, 0) {
				t.Fatalf("result %d is %v without an error", i, v)
			}
		}
		everything(y, x)
		if c, err := stats.Trend(xs); err != nil {
			mustBeKnown(err)
		} else if math.IsNaN(c.P) || !(math.Abs(c.Coefficient) <= 1) {
			t.Fatalf("trend %v without an error", c)
		}
	})
}

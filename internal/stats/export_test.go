package stats

import "math"

// Contains reports whether v lies within the limits, limits included.
func (iv Interval) Contains(v float64) bool { return iv.Low <= v && v <= iv.High }

// NormalQuantile returns the z with NormalCDF(z) = p. It is NaN where p is not
// in [0, 1], and infinite at 0 and 1.
func NormalQuantile(p float64) float64 {
	switch {
	case math.IsNaN(p) || p < 0 || p > 1:
		return math.NaN()
	case p > 0.5:
		return -lowerNormal(1 - p)
	}
	return lowerNormal(p)
}

// Ranks returns the average ranks of values, 1 for the smallest.
func Ranks(xs []float64) []float64 { return ranks(xs) }

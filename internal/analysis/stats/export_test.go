package stats

// Contains reports whether v lies within the limits, limits included.
func (iv Interval) Contains(v float64) bool { return iv.Low <= v && v <= iv.High }

// Ranks returns the average ranks of values, 1 for the smallest.
func Ranks(xs []float64) []float64 { return ranks(xs) }

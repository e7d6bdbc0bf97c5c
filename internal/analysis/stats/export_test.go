package stats

// Contains reports whether v lies within the limits, limits included.
func (iv Interval) Contains(v float64) bool { return iv.Low <= v && v <= iv.High }

// Ranks returns the average ranks of values, 1 for the smallest.
func Ranks(xs []float64) []float64 { return ranks(xs) }

// MeanInterval is Student's t interval of the mean.
func MeanInterval(xs []float64, level float64) (Interval, error) {
	c, err := MeanContrast(xs)
	if err != nil {
		return Interval{}, err
	}
	return c.Interval(level)
}

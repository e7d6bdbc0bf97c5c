package report

import (
	"slices"
	"strings"
)

// parallel are the axes along which one would like the rate to grow in proportion.
var parallel = []string{"threads", "workers", "cores"}

// addIdeal draws, for each curve along a number of threads, workers or cores, what its
// first point would become if every further one did as much: the rate in proportion,
// the time inversely. It returns whether there was anything to draw.
func (c *Chart) addIdeal(key, unit string, names []string, by map[string][]curvePoint) bool {
	if !slices.Contains(parallel, key) || unit != "B/s" && unit != "s" {
		return false
	}
	for _, name := range names {
		points := by[name] // sorted by the caller
		first := points[0]
		if first.x <= 0 {
			continue
		}
		s := Series{Role: "ideal", Name: "ideal"} // of one name: the legend hides all at once
		low, high := first.x, points[len(points)-1].x
		for i := range 41 {
			x := low + (high-low)*float64(i)/40
			y := first.e.Value * x / first.x
			if unit == "s" {
				y = first.e.Value * first.x / x
			}
			s.Points = append(s.Points, xy(x, y))
		}
		c.Series = append(c.Series, s)
	}
	// An ideal far above what was measured would press it flat: the axis ends at twice the
	// largest value, and the line leaves it there.
	top, most := 0.0, 0.0
	for _, y := range c.Y.Values {
		top = max(top, y)
	}
	for _, s := range c.Series {
		if s.Role == "ideal" {
			for _, p := range s.Points {
				if y, ok := p.([]any)[1].(float64); ok {
					most = max(most, y)
				}
			}
		}
	}
	if c.Y.High == nil && top > 0 && most > 2*top {
		c.Y.High = pointer(roundUp(2 * top))
	}
	return slices.ContainsFunc(c.Series, func(s Series) bool { return s.Role == "ideal" })
}

func idealText(unit string) string {
	if strings.HasSuffix(unit, "/s") {
		return "the first point’s rate in proportion (ideal scaling)"
	}
	return "the first point’s time divided (ideal scaling)"
}

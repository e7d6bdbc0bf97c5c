package report

import (
	"math"
	"slices"
	"strings"

	"dmgbench/internal/result"
)

// Chart is one picture with the table of its figures. Notes are printed inside
// the picture, so that it keeps its conditions when somebody cuts it out of the
// page; the last note is where the numbers come from.
type Chart struct {
	ID, Section  string
	File         string // name of the saved picture, without a suffix
	Heading, Sub string
	Notes        []string
	Height       int // of the plot without headings, in CSS pixels
	X, Y         Axis
	Series       []Series
	FixedLegend  bool    // the legend does not hide series
	Flipped      bool    // categories run downwards on the y axis
	HeadedTips   bool    // the first line of a tip is its heading
	Trend        bool    // the terminal prints each line as a row of blocks
	BandBytes    float64 // bytes in a full band, for the role bands
	Table        Table
}

// Axis is one axis of a chart. With categories it has no unit.
type Axis struct {
	Name       string
	Unit       string // base unit of the values: B, B/s, s or 1
	Categories []string
	Log        bool
	Human      bool      // each label has a unit of its own, as file sizes do
	Ticks      []float64 // places of ticks; nil leaves them to the library
	Names      []string  // labels of the whole numbers from 0: categories with room between them
	Brief      []string  // the same for a narrow screen, where they differ
	Low, High  *float64  // ends; nil leaves them to the library
}

// Series is one set of marks. Role decides how report.js draws them: bar, heat,
// part, line, gap (over missing points of a line), bands, dots, outcome (its
// name decides the colour), points, canary, warned, named, fit, fit2, faint,
// level, ideal, live, published, uncomparable, prediction.
type Series struct {
	Role, Name string
	Marks      []Mark
	Thin       bool // the intervals recede behind the lines
}

// Mark is one bar, point, interval or cell. On a flipped chart Y is the row;
// NaN leaves a gap.
type Mark struct {
	X, Y       float64
	From       float64    // of a part of a waterfall: where it begins
	CI         *result.CI // interval of the value; nil for none
	Published  float64    // published value of the same figure; 0 for none
	Comparable bool       // the published value may be compared
	Slot       int        // of a part of a waterfall: its number within the row
	Label, Tip string
	N          string // sample size in words
}

// Point is a mark without a tip of its own.
func Point(x, y float64) Mark { return Mark{X: x, Y: y} }

// Gap interrupts a line.
func Gap() Mark { return Mark{X: math.NaN(), Y: math.NaN()} }

// Drawn reports whether the mark has a place.
func (m Mark) Drawn() bool { return IsFinite(m.X) && IsFinite(m.Y) }

// Add appends series that have marks.
func (c *Chart) Add(all ...Series) {
	for _, s := range all {
		if len(s.Marks) > 0 {
			c.Series = append(c.Series, s)
		}
	}
}

// Names are the names of all series, each once, in order.
func (c *Chart) Names() []string {
	names := []string{}
	for _, s := range c.Series {
		if s.Name != "" {
			names = AppendNew(names, s.Name)
		}
	}
	return names
}

// Size is the number of marks.
func (c *Chart) Size() int {
	n := 0
	for _, s := range c.Series {
		n += len(s.Marks)
	}
	return n
}

// Marks are the marks of the series that show measured values, not lines that
// guide the eye.
func (c *Chart) Marks() []Mark {
	var out []Mark
	for _, s := range c.Series {
		if !slices.Contains([]string{"fit", "fit2", "faint", "level", "ideal", "gap"}, s.Role) {
			out = append(out, s.Marks...)
		}
	}
	return out
}

// Description is the picture in one sentence, for people who do not see it.
func (c *Chart) Description() string {
	return c.Heading + ". " + c.Sub + " The figures are in the table below the chart; the arrow keys walk through " +
		"its marks."
}

// IntervalNote explains the intervals of the chart, drawn as bars or whiskers,
// or why it has none.
func (c *Chart) IntervalNote(drawn string) string {
	var kinds []string
	bare, clipped := false, false
	high := c.Y.High
	if c.Flipped {
		high = c.X.High
	}
	for _, m := range c.Marks() {
		if m.CI == nil {
			bare = true
			continue
		}
		kinds = AppendNew(kinds, DescribeInterval(m.CI))
		clipped = clipped || high != nil && m.CI.High > *high
	}
	switch {
	case len(kinds) == 0:
		return "No interval: too few rounds."
	case len(kinds) > 3: // exact levels differ with n
		kinds = append(kinds[:2], "and similar")
	}
	return drawn + ": " + strings.Join(kinds, "; ") + "." +
		TextIf(bare, " No "+strings.ToLower(strings.TrimSuffix(drawn, "s"))+": no interval.") +
		TextIf(clipped, " An arrow goes on beyond the scale.")
}

// TextRow is a row of a table: the name of the row, then its texts.
func TextRow(head string, texts ...string) []Cell {
	row := []Cell{{Text: head, Class: "head"}}
	for _, t := range texts {
		row = append(row, Cell{Text: t})
	}
	return row
}

// RoundDigits rounds to six significant digits: more than a picture shows, and
// a smaller page.
func RoundDigits(v float64) float64 {
	if !IsFinite(v) || v == 0 {
		return v
	}
	p := math.Pow(10, 5-math.Floor(math.Log10(math.Abs(v))))
	if !IsFinite(p) || p == 0 {
		return v
	}
	return math.Round(v*p) / p
}

// RoundUp is the next value at or above v that ends an axis on a tick.
func RoundUp(v float64) float64 {
	if v <= 0 || !IsFinite(v) {
		return 1
	}
	power := math.Pow(10, math.Floor(math.Log10(v)))
	step := power / 2
	if v/power < 2.5 {
		step = power / 5
	}
	return RoundDigits(math.Ceil(v/step-1e-9) * step)
}

// maxTicks is the number of ticks beyond which [RoundTicks] has only the
// decades.
const maxTicks = 10

// RoundTicks are the round values (1, 2 and 5 of each decade) from low to high
// for a logarithmic axis, or the decades alone where these are too many.
func RoundTicks(low, high float64) []float64 {
	if low <= 0 || high < low {
		return nil
	}
	var fine, decades []float64
	for power := math.Pow(10, math.Floor(math.Log10(low))); power <= high; power *= 10 {
		for _, m := range []float64{1, 2, 5} {
			t := RoundDigits(m * power)
			if t < low*(1-1e-9) || t > high*(1+1e-9) {
				continue
			}
			fine = append(fine, t)
			if m == 1 {
				decades = append(decades, t)
			}
		}
	}
	if len(fine) <= maxTicks || len(decades) < 2 {
		return fine
	}
	return decades
}

// TickStep is the round number that fits into a span at most six times.
func TickStep(span float64) float64 {
	if span <= 0 {
		return 1
	}
	power := math.Pow(10, math.Floor(math.Log10(span/6)))
	for _, m := range []float64{1, 2, 5} {
		if span <= 6*m*power {
			return m * power
		}
	}
	return 10 * power
}

// Slug keeps the letters a to z and A to Z, digits and underscores of a name
// for an id; it need not be unique.
func Slug(s string) string {
	return strings.Map(func(r rune) rune {
		if r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || r == '_' {
			return r
		}
		return -1
	}, Shorten(s, 40))
}

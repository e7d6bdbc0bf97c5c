package report

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"dmgbench/internal/report/wording"
	"dmgbench/internal/result"
)

// Chart is one picture with the table of its figures. Notes are printed inside
// the picture, so that it keeps its conditions when somebody cuts it out of the
// page; the last note is where the numbers come from.
type Chart struct {
	ID, Section  string
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

// Series is one set of marks. Role decides how report.js draws them: bar, heat,
// part, line, gap (over missing points of a line), bands, dots, outcome (its
// name decides the colour), points, canary, warned, named, fit, fit2, faint,
// level, ideal, live, published, uncomparable, prediction.
//
// A series has one colour and one entry in the legend; series with the same
// name share both.
type Series struct {
	Role, Name string
	Marks      []Mark
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
	c.Series = append(c.Series, Where(all, func(s Series) bool { return len(s.Marks) > 0 })...)
}

// Names are the names of all series, each once, in order.
func (c *Chart) Names() []string {
	return wording.NonEmpty(AppendNew([]string{}, Map(c.Series, func(s Series) string { return s.Name })...))
}

// Size is the number of marks.
func (c *Chart) Size() int { return len(marksOf(c.Series)) }

func marksOf(series []Series) []Mark {
	return FlatMap(series, func(s Series) []Mark { return s.Marks })
}

// Marks are the marks of the series that show measured values, not lines that
// guide the eye.
//
// Ends of axes follow measured values, not lines that may go far beyond them.
func (c *Chart) Marks() []Mark {
	return marksOf(Where(c.Series, func(s Series) bool {
		return !slices.Contains([]string{"fit", "fit2", "faint", "level", "ideal", "gap"}, s.Role)
	}))
}

// Description is the picture in one sentence, for people who do not see it.
func (c Chart) Description() string {
	return c.Heading + ". " + c.Sub + " The figures are in the table below the chart; the arrow keys walk through " +
		"its marks."
}

// TableWithOrigin is the table of the figures, which takes along what the picture
// says of their number and where they come from.
func (c Chart) TableWithOrigin() Table {
	t := c.Table
	t.Origin = slices.Concat([]string{c.Sub}, c.Notes[max(len(c.Notes)-1, 0):], t.Origin)
	return t
}

// IntervalNote explains the intervals of the chart, drawn as bars or whiskers,
// or why it has none.
func (c *Chart) IntervalNote(drawn string) string {
	known := Where(c.Marks(), func(m Mark) bool { return m.CI != nil })
	kinds := AppendNew(nil, Map(known, func(m Mark) string { return DescribeInterval(m.CI) })...)
	switch {
	case len(kinds) == 0:
		return "No interval: too few rounds."
	case len(kinds) > 3: // exact levels differ with n
		kinds = append(kinds[:2], "and similar")
	}
	return drawn + ": " + strings.Join(kinds, "; ") + ". An arrow goes on beyond the scale."
}

// InParts builds a chart for each so many rows, with the number of the first of
// them; several charts are numbered.
func InParts[T any](rows []T, size int, build func(part []T, offset int) Chart) []Chart {
	var out []Chart
	parts := slices.Collect(slices.Chunk(rows, size))
	for i, part := range parts {
		c := build(part, i*size)
		if len(parts) > 1 {
			c.ID += fmt.Sprintf("-%d", i+1)
			c.Heading += fmt.Sprintf(" (%d of %d)", i+1, len(parts))
		}
		out = append(out, c)
	}
	return out
}

package chart

import (
	"math"
	"slices"
	"strconv"
	"strings"

	"dmgbench/internal/report"
)

// manyIntervals is the number of intervals from which they are drawn thin and
// light, so that the lines show through.
//
// Three cases with sixteen sizes each.
const manyIntervals = 48

// sizeCharts draw speed against file size: a line for each case, with an
// interval at each point where n allows.
func sizeCharts(r *run) []report.Chart {
	return r.perPicture("size", casesPerChart, func(p picture, sets []fileSet) []report.Chart {
		c := report.Chart{Height: 300, X: sizeAxis(sets),
			Y:       report.Axis{Name: "speed of a file", Unit: "B/s", Low: new(0.0)},
			Heading: p.heading(" speed against file size")}
		c.Table.Columns = report.Columns("<case", "file size", "middle", "interval", "slowest", "fastest", "files")
		reasons, intervals, d := []string{}, 0, setData(sets)
		for i, s := range sets {
			// A little apart sideways, so that intervals do not hide each
			// other.
			apart := math.Pow(1.025, float64(i)-float64(len(sets)-1)/2)
			line := report.Series{Role: "line", Name: r.CaseName(s.caseID)}
			classes := newSizeClasses([]fileSet{s})
			classes.describe(r, d)
			for k, files := range classes.split(s.files) {
				class := r.middle(files)
				size := report.Brief(classes.sizes[k], "B")
				line.Marks = append(line.Marks, report.Mark{X: classes.sizes[k] * apart, Y: class.middle,
					CI: class.ci, Tip: size + "\n" + class.tip()})
				c.Table.Rows = append(c.Table.Rows, class.row(line.Name, size))
				if class.ci == nil {
					reasons = report.AppendNew(reasons, class.reason)
				} else {
					intervals++
				}
			}
			c.Add(line)
		}
		room := float64(intervalRoom)
		if intervals > manyIntervals {
			room = 1.5
			for i := range c.Series {
				c.Series[i].Thin = true
			}
		}
		capIntervals(&c, room)
		d["Intervals"] = sizeIntervalNote(&c, reasons)
		caption(&c, "size", d)
		return []report.Chart{c}
	})
}

// sizeIntervalNote is the note about intervals, with the reasons where the
// chart has none.
func sizeIntervalNote(c *report.Chart, reasons []string) string {
	slices.Sort(reasons)
	if text := strings.Join(report.NonEmpty(reasons), "; "); text != "" &&
		!slices.ContainsFunc(c.Marks(), func(m report.Mark) bool { return m.CI != nil }) {
		return "No interval: " + text + "."
	}
	return c.IntervalNote("Bars")
}

// row is a class of sizes in the table.
func (c sizeClass) row(name, size string) []report.Cell {
	row := report.TextRow(name, size, report.Human(c.middle, "B/s"), "—", report.Human(c.low, "B/s"),
		report.Human(c.high, "B/s"), strconv.Itoa(c.n))
	if c.ci != nil {
		text := report.Human(c.ci.Low, "B/s") + "–" + report.Human(c.ci.High, "B/s")
		row[3] = report.Cell{Text: text, Title: report.DescribeInterval(c.ci)}
	} else {
		row[3].Class, row[3].Title = "muted", c.reason
	}
	return row
}

// heatSteps is how many steps of colour a reader distinguishes at a glance.
//
// Six shades of one colour can be distinguished in print as well.
const heatSteps = 6

// heatCharts set case against file size, one picture a direction and phase; the
// colour is the median rate. They need two cases and two sizes: a single row or
// column is a line of the chart of sizes.
func heatCharts(r *run) []report.Chart {
	return r.perPicture("heat", rowsPerChart, func(p picture, sets []fileSet) []report.Chart {
		classes := newSizeClasses(sets)
		if len(sets) < 2 || len(classes.keys) < 2 {
			return nil
		}
		c := report.Chart{Flipped: true, HeadedTips: true, Height: 30 + 30*len(sets), X: report.Axis{Name: "file size"},
			Heading: p.heading(" speed by case and file size")}
		for _, size := range classes.sizes {
			c.X.Categories = append(c.X.Categories, report.Brief(size, "B"))
		}
		cells := make([][]sizeClass, len(sets)) // by case and size; n is 0 where no file has the size
		var medians []float64
		for row, s := range sets {
			c.Y.Categories = append(c.Y.Categories, r.CaseName(s.caseID))
			cells[row] = make([]sizeClass, len(classes.keys))
			for k, files := range classes.split(s.files) {
				if len(files) > 0 {
					cells[row][k] = r.middle(files)
					medians = append(medians, cells[row][k].middle)
				}
			}
		}
		sc := report.ColumnScale("B/s", medians...)
		addHeat(&c, cells, sc, heatLimits(slices.Min(medians), slices.Max(medians)))
		d := setData(sets)
		d["Unit"] = sc.Suffix
		classes.describe(r, d)
		caption(&c, "heat", d)
		return []report.Chart{c}
	})
}

// addHeat makes a series of each step of colour, so that the legend is the
// scale, and a row of the table for each size: sizes are many, cases few.
func addHeat(c *report.Chart, cells [][]sizeClass, sc report.Scale, limits []float64) {
	for step := range len(limits) + 1 {
		c.Series = append(c.Series, report.Series{Role: "heat", Name: stepName(limits, step)})
	}
	c.Table.Caption = c.Heading + report.TextIf(sc.Suffix != "", ", "+sc.Suffix)
	c.Table.Columns = report.Columns("<file size")
	for _, name := range c.Y.Categories {
		c.Table.Columns = append(c.Table.Columns, report.Column{Title: name})
	}
	for _, size := range c.X.Categories {
		c.Table.Rows = append(c.Table.Rows, report.TextRow(size, make([]string, len(cells))...))
	}
	for i, row := range cells {
		for k, class := range row {
			if class.n == 0 {
				continue
			}
			label := sc.Number(class.middle)
			c.Table.Rows[k][i+1] = report.Cell{Text: label, Sub: report.Count(class.n, "file")}
			step, on := slices.BinarySearch(limits, class.middle)
			s := &c.Series[step+bit(on)]
			s.Marks = append(s.Marks, report.Mark{X: float64(k), Y: float64(i), Label: label,
				Tip: c.Y.Categories[i] + "\n" + c.X.Categories[k] + "\n" + class.tip()})
		}
	}
}

// heatLimits are the limits between steps of equal ratio, each of two digits;
// at most one less than [heatSteps].
//
// Speeds differ by factors: equal ratios show a difference of slow cases as
// well as one of fast cases.
func heatLimits(low, high float64) []float64 {
	var out []float64
	if !(low > 0) || high/low < 1.1 {
		return nil
	}
	for i := 1; i < heatSteps; i++ {
		v := low * math.Pow(high/low, float64(i)/heatSteps)
		p := math.Pow(10, 1-math.Floor(math.Log10(v)))
		if v = math.Round(v*p) / p; v > low && v < high && (len(out) == 0 || v > out[len(out)-1]) {
			out = append(out, v)
		}
	}
	return out
}

// stepName is the range of a step for the legend.
func stepName(limits []float64, i int) string {
	switch {
	case len(limits) == 0:
		return "speed"
	case i == 0:
		return "below " + report.Brief(limits[0], "B/s")
	case i == len(limits):
		return "from " + report.Brief(limits[i-1], "B/s")
	}
	return report.Brief(limits[i-1], "B/s") + " to " + report.Brief(limits[i], "B/s")
}

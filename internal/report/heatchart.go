package report

import (
	"cmp"
	"math"
	"slices"
	"strings"

	"dmgbench/internal/stats"
)

// heatClasses is how many steps of colour the eye tells apart without looking twice.
const heatClasses = 6

// heatCell is what the files of one case and one class of sizes did.
type heatCell struct {
	column, row int
	bySize
}

// heatCharts set case against file size, one picture a direction and phase; the colour is the median rate.
func (v *View) heatCharts(sets []fileSet) []Chart {
	var out []Chart
	for n, p := range drawn(sets) {
		of := slices.DeleteFunc(slices.Clone(sets), func(s fileSet) bool { return s.op != p.op || s.phase != p.phase || len(s.files) == 0 })
		for part, some := range slices.Collect(slices.Chunk(of, barsPerChart)) {
			if c, ok := v.heatChart(some, p); ok {
				c.ID = chartID("heat", n, part)
				out = append(out, c)
			}
		}
	}
	return out
}

// heatChart needs two cases and two sizes: a single row or column is a line of the chart beside it.
func (v *View) heatChart(sets []fileSet, p picture) (Chart, bool) {
	columns, binned := sizeColumns(sets)
	if len(sets) < 2 || len(columns) < 2 {
		return Chart{}, false
	}
	c := Chart{Section: "size", Flipped: true, HeadedTips: true, Height: 30 + 30*len(sets), Heading: Capitalize(QuantityName(p.op)) + " speed by case and file size" + PhaseSuffix(p.phase),
		X: Axis{Name: "file size"}, Y: Axis{Categories: []string{}}}
	for _, col := range columns {
		c.X.Categories = append(c.X.Categories, Brief(col.size, "B"))
	}
	var cells []heatCell
	files := 0
	for row, s := range sets {
		c.Y.Categories = append(c.Y.Categories, v.CaseName(s.caseID))
		files += len(s.files)
		cells = append(cells, v.heatRow(s, row, columns, binned)...)
	}
	sc := c.heatSeries(cells)
	c.Table = heatTable(c, cells, sc)
	c.Sub = "Colour and number: " + v.middleText() + TextIf(binned, " (sizes taken together by thirds of an octave)") + TextIf(sc.Suffix != "", ", in "+sc.Suffix) +
		"; " + Count(files, "file") + "."
	c.Notes = []string{"A step of colour is the same factor everywhere. The intervals are in the chart of speed against file size." + workersText(sets), v.Provenance}
	return c, true
}

// sizeColumn is one column: a size, or a class of sizes with its geometric mean.
type sizeColumn struct{ key, size float64 }

// sizeColumns are the sizes of all sets, or thirds of an octave where there are too many.
func sizeColumns(sets []fileSet) (out []sizeColumn, binned bool) {
	distinct := map[float64]bool{}
	for _, s := range sets {
		for _, f := range s.files {
			distinct[f.bytes] = true
		}
	}
	binned = len(distinct) > maxSizes
	logs := map[float64][]float64{}
	for _, s := range sets {
		for _, f := range s.files {
			k := sizeKey(f.bytes, binned)
			logs[k] = append(logs[k], math.Log(f.bytes))
		}
	}
	for k, list := range logs {
		size := k
		if binned {
			if mean, err := stats.Mean(list); err == nil {
				size = math.Exp(mean)
			}
		}
		out = append(out, sizeColumn{k, size})
	}
	slices.SortFunc(out, func(a, b sizeColumn) int { return cmp.Compare(a.key, b.key) })
	return out, binned
}

// sizeKey is the size itself, or its third of an octave.
func sizeKey(bytes float64, binned bool) float64 {
	if binned {
		return math.Floor(math.Log2(bytes) * 3)
	}
	return bytes
}

func (v *View) heatRow(s fileSet, row int, columns []sizeColumn, binned bool) []heatCell {
	in := make([][]timedFile, len(columns))
	for _, f := range s.files {
		if i, ok := slices.BinarySearchFunc(columns, sizeKey(f.bytes, binned), func(c sizeColumn, k float64) int { return cmp.Compare(c.key, k) }); ok {
			in[i] = append(in[i], f)
		}
	}
	var out []heatCell
	for i, files := range in {
		if len(files) > 0 {
			out = append(out, heatCell{i, row, v.middle(files)})
		}
	}
	return out
}

// heatSeries makes a series of each class of rates, so that the legend is the scale.
// The classes are equal steps of the logarithm with limits of two digits.
func (c *Chart) heatSeries(cells []heatCell) Scale {
	var medians []float64
	for _, cell := range cells {
		medians = append(medians, cell.middle)
	}
	sc := ColumnScale("B/s", medians...)
	limits := classLimits(slices.Min(medians), slices.Max(medians))
	for i := range len(limits) + 1 {
		s := Series{Role: "heat", Name: className(limits, i)}
		for _, cell := range cells {
			if at, _ := slices.BinarySearchFunc(limits, cell.middle, func(l, m float64) int {
				if l <= m {
					return -1
				}
				return 1
			}); at != i {
				continue
			}
			s.Points = append(s.Points, []any{cell.column, cell.row, sc.Number(cell.middle)})
			s.Tips = append(s.Tips, c.Y.Categories[cell.row]+"\n"+c.X.Categories[cell.column]+"\n"+strings.Join(cell.lines(), "\n"))
		}
		c.Series = append(c.Series, s)
	}
	return sc
}

// classLimits are the limits between classes of equal ratio, at most one less than [heatClasses].
func classLimits(low, high float64) []float64 {
	var out []float64
	if !(low > 0) || high/low < 1.1 {
		return nil
	}
	for i := 1; i < heatClasses; i++ {
		l := twoDigits(low * math.Pow(high/low, float64(i)/heatClasses))
		if l > low && l < high && (len(out) == 0 || l > out[len(out)-1]) {
			out = append(out, l)
		}
	}
	return out
}

func twoDigits(v float64) float64 {
	p := math.Pow(10, 1-math.Floor(math.Log10(v)))
	return math.Round(v*p) / p
}

// className is the range of a class as the legend says it.
func className(limits []float64, i int) string {
	switch {
	case len(limits) == 0:
		return "speed"
	case i == 0:
		return "below " + Brief(limits[0], "B/s")
	case i == len(limits):
		return "from " + Brief(limits[i-1], "B/s")
	}
	return Brief(limits[i-1], "B/s") + " to " + Brief(limits[i], "B/s")
}

// heatTable has a row for each size: sizes are many, cases few.
func heatTable(c Chart, cells []heatCell, sc Scale) Table {
	t := Table{Caption: c.Heading + TextIf(sc.Suffix != "", ", "+sc.Suffix), Columns: Columns("<file size")}
	t.Rows = make([][]Cell, len(c.X.Categories))
	for i, size := range c.X.Categories {
		t.Rows[i] = make([]Cell, 1+len(c.Y.Categories))
		t.Rows[i][0] = Cell{Text: size, Class: "head"}
	}
	for _, name := range c.Y.Categories {
		t.Columns = append(t.Columns, Column{Title: name})
	}
	for _, m := range cells {
		t.Rows[m.column][m.row+1] = Cell{Text: sc.Number(m.middle), Sub: Count(m.n, "file")}
	}
	return t
}

package report

import (
	"fmt"
	"math"
	"slices"
	"strconv"

	"dmgbench/internal/result"
	"dmgbench/internal/stats"
)

// residualRange is how far, as a factor, the scale of residuals reaches at least: noise must not look like structure.
const residualRange = 1.25

// residualCharts draw what the weighted lines of the charts of time leave: every
// file's time over the line's, so that a bend, two modes or a few far files show.
func (v *View) residualCharts(sets []fileSet) []Chart {
	var out []Chart
	limit := pointsOf(sets)
	for n, p := range drawn(sets) {
		for part, some := range pictureSets(sets, p) {
			c := residualChart(chartID("residuals", n, part), "files", Capitalize(QuantityName(p.op))+" time over the fitted line"+PhaseSuffix(p.phase), some)
			for _, s := range some {
				l, err := bySizeSquared(s.columns())
				if err != nil { // no line, nothing over it: the chart of time says so
					continue
				}
				c.addResiduals(v.CaseName(s.caseID), s.files, l.At, limit/len(some))
			}
			if c.closeResiduals("weighted by 1/size²", workersText(some), v.Provenance) {
				out = append(out, c)
			}
		}
	}
	return out
}

// fitResiduals draw the same for a fit of the plan along the file size, whose line is another one.
func (v *View) fitResiduals(i int, f result.Fit) []Chart {
	at := model(f, func(k result.Coefficient) (float64, bool) { return k.Value, true })
	if at == nil || f.Along != "file_size" || f.Op != "write_time" && f.Op != "read_time" || f.Reason != "" {
		return nil
	}
	var files []timedFile
	for _, p := range f.Points {
		if p[0] > 0 && p[1] > 0 {
			files = append(files, timedFile{bytes: p[0], seconds: p[1]})
		}
	}
	if len(files) == 0 {
		return nil
	}
	c := residualChart("fit-"+strconv.Itoa(i+1)+"-residuals", "sweep", Capitalize(QuantityName(f.Op))+" over the fit “"+Plain(f.Name, 60)+"”", []fileSet{{files: files}})
	c.addResiduals("measured", files, at, pointsPerChart)
	if !c.closeResiduals("of the fit", "", v.Provenance) {
		return nil
	}
	return []Chart{c}
}

// columns are sizes and times, as fits take them.
func (s fileSet) columns() (size, seconds []float64) {
	for _, f := range s.files {
		size, seconds = append(size, f.bytes), append(seconds, f.seconds)
	}
	return size, seconds
}

func residualChart(id, section, heading string, sets []fileSet) Chart {
	c := Chart{ID: id, Section: section, Height: 240, Heading: heading, X: sizeAxis(sets), Y: Axis{Name: "time ÷ time of the line", Unit: "1", Log: true}}
	c.Table = Table{Caption: heading, Columns: Columns("<case", "least", "5 % are below", "median", "5 % are above", "most", "at", "files")}
	return c
}

// addResiduals adds the points of one line and their distribution. A file at whose
// size the line is not above nought has no ratio, and is counted in the table.
func (c *Chart) addResiduals(name string, files []timedFile, at func(float64) float64, limit int) {
	var over []timedFile // seconds is the ratio
	for _, f := range files {
		if y := at(f.bytes); y > 0 {
			over = append(over, timedFile{bytes: f.bytes, seconds: f.seconds / y})
		}
	}
	if len(over) == 0 {
		return
	}
	kept, every := thin(over, limit)
	pts := Series{Role: "points", Name: name}
	for _, f := range kept {
		pts.Points = append(pts.Points, xy(f.bytes, f.seconds))
	}
	c.Series = append(c.Series, pts)
	ratios, most := make([]float64, len(over)), over[0]
	for i, f := range over {
		ratios[i] = f.seconds
		c.Y.Values = append(c.Y.Values, f.seconds)
		if f.seconds > most.seconds {
			most = f
		}
	}
	row := []Cell{{Text: name + TextIf(every > 1, " (one of "+strconv.Itoa(every)+" drawn)"), Class: "head"}}
	for _, p := range []float64{0, 0.05, 0.5, 0.95, 1} {
		q, _ := stats.Quantile(ratios, p) // there is at least one
		row = append(row, Cell{Text: human3(q)})
	}
	left := len(files) - len(over)
	c.Table.Rows = append(c.Table.Rows, append(row, Cell{Text: Brief(most.bytes, "B")},
		Cell{Text: strconv.Itoa(len(over)) + TextIf(left > 0, fmt.Sprintf(" (and %d where the line is not above 0)", left))}))
}

// closeResiduals sets the scale, the line at 1 and the notes; false if nothing is drawn.
func (c *Chart) closeResiduals(line, workers, provenance string) bool {
	if len(c.Series) == 0 {
		return false
	}
	low, high := slices.Min(c.Y.Values), slices.Max(c.Y.Values)
	low, high = min(low/1.05, 1/residualRange), max(high*1.05, residualRange)
	c.Y.Low, c.Y.High, c.Y.Ticks = pointer(digits(low)), pointer(digits(high)), ratioTicks(low, high)
	one := Series{Role: "level", Name: "the line"}
	one.Points = []any{xy(*c.X.Low, 1), xy(*c.X.High, 1)}
	c.Series = append(c.Series, one)
	c.Sub = Count(len(c.Y.Values), "file") + "; 1 is what the line gives, above it is slower."
	c.Notes = []string{"Line: least squares " + line + ". Points scattered evenly about 1 at every size mean that latency and rate tell all; a bend or a second band means that they do not." +
		workers, provenance}
	return true
}

// ratioTicks are round factors about 1: fine where the range is narrow, powers of ten where it is wide.
func ratioTicks(low, high float64) []float64 {
	fine := []float64{0.8, 0.9, 1, 1.1, 1.25}
	switch span := math.Max(high, 1/low); {
	case span > 50:
		fine = nil
		for e := math.Floor(math.Log10(low)); e <= math.Ceil(math.Log10(high)); e++ {
			fine = append(fine, digits(math.Pow(10, e)))
		}
	case span > 4:
		fine = []float64{0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10, 20}
	case span > 1.6:
		fine = []float64{0.25, 0.5, 0.7, 1, 1.4, 2, 3, 4}
	}
	return slices.DeleteFunc(fine, func(t float64) bool { return t < low*0.999 || t > high*1.001 })
}

package chart

import (
	"fmt"
	"math"
	"slices"
	"strconv"

	"dmgbench/internal/analysis/stats"
	"dmgbench/internal/report"
)

// timeCharts draw every file as time against size, with the fitted lines.
func timeCharts(r *run) []report.Chart {
	limit := r.pointLimit()
	return r.perPicture("time", casesPerChart, func(p picture, sets []fileSet) []report.Chart {
		c := report.Chart{Height: 330, X: sizeAxis(sets), Y: logAxis("time of a file", "s", sets, timedFile.time, 1.2),
			Heading: p.heading(" time against file size")}
		c.Table.Columns = report.Columns("<case", "<line", "time of an empty file", "speed of growth",
			"R² with the weights of the line", "files")
		every := 1
		for _, s := range sets {
			name := r.CaseName(s.caseID)
			marks, k := fileMarks(s.files, limit/len(sets), timedFile.time)
			every = max(every, k)
			c.Add(report.Series{Role: "points", Name: name, Marks: marks})
			addLines(&c, name, s)
		}
		d := setData(sets)
		d["Every"] = every
		caption(&c, "time", d)
		return []report.Chart{c}
	})
}

// fileMarks are points of some of the files, with a value over their sizes.
func fileMarks(files []timedFile, limit int, value func(timedFile) float64) (marks []report.Mark, every int) {
	kept, every := thin(files, limit)
	for _, f := range kept {
		marks = append(marks, report.Point(f.bytes, value(f)))
	}
	return marks, every
}

// addLines fits time on size for one case, weighted and plain, and draws both.
//
// Files of one size have no slope; the table states that.
func addLines(c *report.Chart, name string, s fileSet) {
	sizes, seconds := s.columns()
	for _, line := range []struct {
		role, name string
		fit        func(x, y []float64) (stats.Line, error)
	}{{"fit", "weighted", fitBySize}, {"fit2", "plain", stats.FitLine}} {
		l, err := line.fit(sizes, seconds)
		if err != nil { // too few files, or one size
			row := report.TextRow(name, line.name+": no line", "", "", "", strconv.Itoa(len(sizes)))
			row[1].Class = "muted"
			c.Table.Rows = append(c.Table.Rows, row)
			continue
		}
		c.Add(report.Series{Role: line.role, Name: name, Marks: sample(40, l.MinX, l.MaxX, true,
			func(x float64) float64 {
				if y := l.At(x); y > 0 {
					return y
				}
				return math.NaN() // a logarithmic axis has no place for it
			})})
		growth := "—"
		if l.Slope > 0 {
			growth = report.Human(1/l.Slope, "B/s")
		}
		c.Table.Rows = append(c.Table.Rows, report.TextRow(name, line.name, report.Human(l.Intercept, "s"), growth,
			fmt.Sprintf("%.4f", l.R2), strconv.Itoa(l.N)))
	}
}

// fitBySize is least squares weighted by 1/size², the line of the estimates
// "weighted" and "latency".
//
// The weights make relative deviations count, so that small files, which show the latency, matter.
func fitBySize(sizes, seconds []float64) (stats.Line, error) {
	w := make([]float64, len(sizes))
	for i, s := range sizes {
		w[i] = 1 / (s * s)
	}
	return stats.FitWeightedLine(sizes, seconds, w)
}

// residualRange is how far, as a factor, the scale of residuals reaches at
// least: noise must not look like structure.
//
// A quarter either way is more than what rounds of a quiet machine differ by.
const residualRange = 1.25

// residualCharts draw what the weighted lines of the charts of time leave: the
// time of every file over that of the line, so that a bend, two modes or a few
// extreme files show.
func residualCharts(r *run) []report.Chart {
	limit := r.pointLimit()
	return r.perPicture("residuals", casesPerChart, func(p picture, sets []fileSet) []report.Chart {
		c := newResiduals(p.heading(" time over the fitted line"), sets)
		for _, s := range sets {
			if l, err := fitBySize(s.columns()); err == nil { // without a line the chart of time explains it
				c.add(r.CaseName(s.caseID), s.files, l.At, limit/len(sets))
			}
		}
		return c.finish("weighted by 1/size²")
	})
}

// fitResiduals draw the same for a fit of the plan along the file size, which
// has another line.
func fitResiduals(i int, f drawnFit) []report.Chart {
	if f.measured == nil || f.Along != "file_size" || f.Op != "write_time" && f.Op != "read_time" || f.Reason != "" {
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
	heading := report.Capitalize(report.QuantityName(f.Op)) + " over the fit “" + report.Plain(f.Name, 60) + "”"
	c := newResiduals(heading, []fileSet{{files: files}})
	c.ID = "fit-" + strconv.Itoa(i+1) + "-residuals"
	c.add("measured", files, f.measured, pointsPerChart)
	return c.finish("of the fit")
}

// residuals is a chart of residuals under construction.
type residuals struct {
	report.Chart
	data   data
	ratios []float64 // of all files, drawn or not
}

func newResiduals(heading string, sets []fileSet) *residuals {
	c := &residuals{Chart: report.Chart{Height: 240, Heading: heading, X: sizeAxis(sets),
		Y: report.Axis{Name: "time ÷ time of the line", Unit: "1"}}, data: setData(sets)}
	c.Table.Columns = report.Columns("<case", "least", "5 % are below", "median", "5 % are above", "most", "at",
		"files")
	return c
}

// add draws the points of one line and tabulates their distribution. A file at
// whose size the line is not above 0 has no ratio, and is counted in the table.
func (c *residuals) add(name string, files []timedFile, at func(float64) float64, limit int) {
	var over []timedFile // seconds is the ratio
	for _, f := range files {
		if y := at(f.bytes); y > 0 {
			over = append(over, timedFile{bytes: f.bytes, seconds: f.seconds / y})
		}
	}
	if len(over) == 0 {
		return
	}
	marks, every := fileMarks(over, limit, timedFile.time)
	c.Add(report.Series{Role: "points", Name: name, Marks: marks})
	ratios := valuesOf(over, timedFile.time)
	c.ratios = append(c.ratios, ratios...)
	most := over[slices.Index(ratios, slices.Max(ratios))]
	row := append(report.TextRow(name+report.TextIf(every > 1, " (one of "+strconv.Itoa(every)+" drawn)")),
		spread(ratios, func(v float64) string { return report.Human(v, "1") })...)
	left := len(files) - len(over)
	c.Table.Rows = append(c.Table.Rows, append(row, report.Cell{Text: report.Brief(most.bytes, "B")},
		report.Cell{Text: strconv.Itoa(len(over)) + report.TextIf(left > 0,
			fmt.Sprintf(" (and %d where the line is not above 0)", left))}))
}

// spread is a distribution in five cells: least, 5 %, median, 95 % and most.
//
// Quantiles instead of a standard deviation: times of files are skewed.
func spread(values []float64, write func(float64) string) []report.Cell {
	var out []report.Cell
	for _, p := range []float64{0, 0.05, 0.5, 0.95, 1} {
		q, _ := stats.Quantile(values, p) // there is at least one
		out = append(out, report.Cell{Text: write(q)})
	}
	return out
}

// finish sets the scale, the line at 1 and the notes; without points it returns
// none.
func (c *residuals) finish(line string) []report.Chart {
	if len(c.ratios) == 0 {
		return nil
	}
	c.Y.FitRatios(min(slices.Min(c.ratios), 1/residualRange), max(slices.Max(c.ratios), residualRange))
	c.Add(report.Series{Role: "level", Name: "the line", Marks: []report.Mark{report.Point(*c.X.Low, 1),
		report.Point(*c.X.High, 1)}})
	c.data["Files"], c.data["Line"] = len(c.ratios), line
	caption(&c.Chart, "residuals", c.data)
	return []report.Chart{c.Chart}
}

// stripCharts draw the speed of every file in a lane for each case and phase.
func stripCharts(r *run) []report.Chart {
	var out []report.Chart
	for _, op := range []string{"write", "read"} {
		var cases, phases []string
		for _, s := range r.sets {
			if s.op == op {
				cases, phases = report.AppendNew(cases, s.caseID), report.AppendNew(phases, s.phase)
			}
		}
		for part, some := range slices.Collect(slices.Chunk(cases, rowsPerChart)) {
			c := r.stripChart(op, some, phases)
			c.ID = fmt.Sprintf("strip-%s-1-%d", op, part+1)
			out = append(out, c)
		}
	}
	return out
}

func (r *run) stripChart(op string, cases, phases []string) report.Chart {
	lanes := len(phases)
	c := report.Chart{Flipped: true, Heading: report.Capitalize(report.QuantityName(op)) + " speed of every file",
		Height: 30 + len(cases)*(12+14*lanes),
		X:      report.Axis{Name: "speed of a file", Unit: "B/s", Low: new(0.0)}}
	c.Y = rowAxis(len(cases), func(i int) string { return r.CaseName(cases[i]) })
	c.Table.Columns = report.Columns("<case", "<phase", "slowest", "5 % are slower", "median", "5 % are faster",
		"fastest", "files")
	var sets []fileSet
	every := 1
	for lane, phase := range phases {
		points := report.Series{Role: "points", Name: report.FirstOf(report.Plain(phase, 40), report.QuantityName(op))}
		for i, id := range cases {
			at := slices.IndexFunc(r.sets, func(s fileSet) bool {
				return s.caseID == id &&
					s.picture == picture{op, phase}
			})
			if at < 0 {
				continue
			}
			files := r.sets[at].files
			sets = append(sets, r.sets[at])
			kept, k := thin(files, pointsPerChart/(len(cases)*lanes))
			every = max(every, k)
			for n, f := range kept {
				// Multiples of the golden ratio spread the points of a lane
				// evenly, and always alike.
				_, share := math.Modf(float64(n) * math.Phi)
				points.Marks = append(points.Marks, report.Point(f.rate(),
					float64(i)+0.8*((float64(lane)+0.15+0.7*share)/float64(lanes)-0.5)))
			}
			row := append(report.TextRow(c.Y.Names[i], report.PhaseName(phase, 0)),
				spread(valuesOf(files, timedFile.rate), func(v float64) string { return report.Human(v, "B/s") })...)
			c.Table.Rows = append(c.Table.Rows, append(row, report.Cell{Text: strconv.Itoa(len(files))}))
		}
		c.Add(points)
	}
	d := setData(sets)
	d["Every"] = every
	caption(&c, "strip", d)
	return c
}

// rowAxis names rows that have room between them.
//
// Categories of the library would have the points of a row on one line.
func rowAxis(rows int, name func(int) string) report.Axis {
	a := report.Axis{Unit: "1", Low: new(-0.5), High: new(float64(rows) - 0.5)}
	for i := range rows {
		a.Names, a.Ticks = append(a.Names, name(i)), append(a.Ticks, float64(i))
	}
	return a
}

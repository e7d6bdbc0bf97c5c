package chart

import (
	"fmt"
	"math"
	"slices"
	"strconv"

	"dmgbench/internal/analysis/stats"
	"dmgbench/internal/report"
)

// sizeCharts draw speed against file size: a line for each case, with an
// interval at each point where n allows; the table names why others have none.
func sizeCharts(r *run) []report.Chart {
	return r.perPicture("size", casesPerChart, func(p picture, sets []fileSet) report.Chart {
		c := report.Chart{Height: 300, X: sizeAxis(sets),
			Y:       report.Axis{Name: "speed of a file", Unit: "B/s", Low: new(0.0)},
			Heading: p.heading(" speed against file size")}
		c.Table.Columns = report.Columns("<case", "file size", "middle", "interval", "slowest", "fastest", "files")
		d := r.setData(sets)
		for i, s := range sets {
			// A little apart sideways, so that intervals do not hide each
			// other.
			apart := math.Pow(1.025, float64(i)-float64(len(sets)-1)/2)
			line := report.Series{Role: "line", Name: r.CaseName(s.caseID)}
			classes := newSizeClasses([]fileSet{s})
			d["Binned"] = classes.binned
			for k, files := range classes.split(s.files) {
				class, size := r.summarize(files), report.Brief(classes.sizes[k], "B")
				line.Marks = append(line.Marks, report.Mark{X: classes.sizes[k] * apart, Y: class.middle,
					CI: class.ci, Tip: size + "\n" + class.tip()})
				interval := report.Cell{Text: "—", Class: "muted", Title: class.reason}
				if ci := class.ci; ci != nil {
					text := report.Human(ci.Low, "B/s") + "–" + report.Human(ci.High, "B/s")
					interval = report.Cell{Text: text, Title: report.DescribeInterval(ci)}
				}
				row := report.TextRow(line.Name, size, report.Human(class.middle, "B/s"), "",
					report.Human(class.low, "B/s"), report.Human(class.high, "B/s"), strconv.Itoa(class.n))
				row[3] = interval
				c.Table.Rows = append(c.Table.Rows, row)
			}
			c.Add(line)
		}
		capAxis(&c)
		d["Intervals"] = c.IntervalNote("Bars")
		caption(&c, "size", d)
		return c
	})
}

// heatSteps is how many steps of colour a reader distinguishes at a glance.
//
// Six shades of one colour can be distinguished in print as well.
const heatSteps = 6

// heatCharts set case against file size, one picture a direction and phase; the
// colour is the median rate. They need two cases and two sizes: a single row or
// column is a line of the chart of sizes.
func heatCharts(r *run) []report.Chart {
	return r.perPicture("heat", rowsPerChart, func(p picture, sets []fileSet) report.Chart {
		classes := newSizeClasses(sets)
		if len(sets) < 2 || len(classes.keys) < 2 {
			return report.Chart{}
		}
		c := report.Chart{Flipped: true, HeadedTips: true, Height: 30 + 30*len(sets), X: report.Axis{Name: "file size"},
			Heading: p.heading(" speed by case and file size")}
		c.X.Categories = report.Map(classes.sizes, func(size float64) string { return report.Brief(size, "B") })
		cells := make([][]sizeClass, len(sets)) // by case and size; n is 0 where no file has the size
		var medians []float64
		for row, s := range sets {
			c.Y.Categories = append(c.Y.Categories, r.CaseName(s.caseID))
			cells[row] = make([]sizeClass, len(classes.keys))
			for k, files := range classes.split(s.files) {
				if len(files) > 0 {
					cells[row][k] = r.summarize(files)
					medians = append(medians, cells[row][k].middle)
				}
			}
		}
		least, most := slices.Min(medians), slices.Max(medians)
		sc := report.AxisScale("B/s", most, medians...)
		addHeat(&c, cells, sc, heatLimits(least, most))
		d := r.setData(sets)
		d["Unit"], d["Binned"] = sc.Suffix, classes.binned
		caption(&c, "heat", d)
		return c
	})
}

// addHeat makes a series of each step of colour, so that the legend is the
// scale, and a row of the table for each size: sizes are many, cases few.
func addHeat(c *report.Chart, cells [][]sizeClass, sc report.Scale, limits []float64) {
	for step := range len(limits) + 1 {
		c.Series = append(c.Series, report.Series{Role: "heat", Name: stepName(limits, step)})
	}
	c.Table.Caption = report.WithUnit(c.Heading, sc)
	c.Table.Columns = append(report.Columns("<file size"), report.Map(c.Y.Categories,
		func(name string) report.Column { return report.Column{Title: name} })...)
	c.Table.Rows = report.Map(c.X.Categories, func(size string) []report.Cell {
		return report.TextRow(size, make([]string, len(cells))...)
	})
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

// timeCharts draw every file as time against size, with the fitted lines.
func timeCharts(r *run) []report.Chart {
	limit := r.pointLimit()
	return r.perPicture("time", casesPerChart, func(p picture, sets []fileSet) report.Chart {
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
		d := r.setData(sets)
		d["Every"] = every
		caption(&c, "time", d)
		return c
	})
}

// fileMarks are points of some of the files, with a value over their sizes.
func fileMarks(files []timedFile, limit int, value func(timedFile) float64) (marks []report.Mark, every int) {
	kept, every := thin(files, limit)
	return report.Map(kept, func(f timedFile) report.Mark { return report.Point(f.bytes, value(f)) }), every
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
	weights := report.Map(sizes, func(s float64) float64 { return 1 / (s * s) })
	return stats.FitWeightedLine(sizes, seconds, weights)
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
	return r.perPicture("residuals", casesPerChart, func(p picture, sets []fileSet) report.Chart {
		return r.residualChart(p.heading(" time over the fitted line"), "weighted by 1/size²", sets, limit/len(sets),
			func(s fileSet) (string, func(float64) float64) {
				l, err := fitBySize(s.columns())
				if err != nil { // the chart of time explains it
					return "", nil
				}
				return r.CaseName(s.caseID), l.At
			})
	})
}

// fitResiduals draw the same for a fit of the plan along the file size, which
// has another line.
func (r *run) fitResiduals(i int, f drawnFit) []report.Chart {
	var set fileSet
	for _, p := range f.Points {
		if p[0] > 0 && p[1] > 0 {
			set.files = append(set.files, timedFile{bytes: p[0], seconds: p[1]})
		}
	}
	isTime := f.Along == "file_size" && (f.Op == "write_time" || f.Op == "read_time")
	if f.measured == nil || !isTime || f.Reason != "" || len(set.files) == 0 {
		return nil
	}
	heading := report.Capitalize(report.QuantityName(f.Op)) + " over the fit “" + report.Plain(f.Name, 60) + "”"
	c := r.residualChart(heading, "of the fit", []fileSet{set}, pointsPerChart,
		func(fileSet) (string, func(float64) float64) { return "measured", f.measured })
	if c.ID = "fit-" + strconv.Itoa(i+1) + "-residuals"; len(c.Series) == 0 {
		return nil
	}
	return []report.Chart{c}
}

// residualChart draws and tabulates the residuals of some sets, each with the name and the
// line that lineOf gives it; nil is no line. The last words of the note say
// which lines these are.
func (r *run) residualChart(
	heading, lines string, sets []fileSet, limit int, lineOf func(fileSet) (name string, at func(float64) float64),
) report.Chart {
	c := report.Chart{Height: 240, Heading: heading, X: sizeAxis(sets),
		Y: report.Axis{Name: "time ÷ time of the line", Unit: "1"}}
	c.Table.Columns = report.Columns("<case", "least", "5 % are below", "median", "5 % are above", "most", "at",
		"files")
	var ratios []float64 // of all files, drawn or not
	for _, s := range sets {
		name, at := lineOf(s)
		var over []timedFile // seconds is the ratio
		for _, f := range s.files {
			if at != nil && at(f.bytes) > 0 { // there is no ratio to a line that is not above 0
				over = append(over, timedFile{bytes: f.bytes, seconds: f.seconds / at(f.bytes)})
			}
		}
		if len(over) == 0 {
			continue
		}
		marks, every := fileMarks(over, limit, timedFile.time)
		c.Add(report.Series{Role: "points", Name: name, Marks: marks})
		own := report.Map(over, timedFile.time)
		most := over[slices.Index(own, slices.Max(own))]
		row := append(report.TextRow(name+report.TextIf(every > 1, " (one of "+strconv.Itoa(every)+" drawn)")),
			spread(own, "1")...)
		c.Table.Rows = append(c.Table.Rows, append(row, report.Cell{Text: report.Brief(most.bytes, "B")},
			report.Cell{Text: strconv.Itoa(len(over))}))
		ratios = append(ratios, own...)
	}
	if len(ratios) == 0 {
		return c
	}
	c.Y.FitLog(min(slices.Min(ratios), 1/residualRange), max(slices.Max(ratios), residualRange), 1.03)
	c.Add(report.Series{Role: "level", Name: "the line", Marks: []report.Mark{report.Point(*c.X.Low, 1),
		report.Point(*c.X.High, 1)}})
	d := r.setData(sets)
	d["Files"], d["Line"] = len(ratios), lines
	caption(&c, "residuals", d)
	return c
}

// spread is a distribution in five cells: least, 5 %, median, 95 % and most.
//
// Quantiles instead of a standard deviation: times of files are skewed.
func spread(values []float64, unit string) []report.Cell {
	var out []report.Cell
	for _, p := range []float64{0, 0.05, 0.5, 0.95, 1} {
		q, _ := stats.Quantile(values, p) // there is at least one
		out = append(out, report.Cell{Text: report.Human(q, unit)})
	}
	return out
}

// stripCharts draw the speed of every file in a lane for each case and phase.
func stripCharts(r *run) []report.Chart {
	var out []report.Chart
	for _, op := range []string{"write", "read"} {
		sets := report.Where(r.sets, func(s fileSet) bool { return s.op == op })
		cases := report.AppendNew(nil, report.Map(sets, func(s fileSet) string { return s.caseID })...)
		phases := report.AppendNew(nil, report.Map(sets, func(s fileSet) string { return s.phase })...)
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
	c.Y = report.RowAxis(report.Map(cases, r.CaseName))
	c.Table.Columns = report.Columns("<case", "<phase", "slowest", "5 % are slower", "median", "5 % are faster",
		"fastest", "files")
	var sets []fileSet
	every := 1
	for lane, phase := range phases {
		points := report.Series{Role: "points", Name: report.FirstOf(report.Plain(phase, 40), report.QuantityName(op))}
		for i, id := range cases {
			own := r.setsOf(picture{op, phase})
			at := slices.IndexFunc(own, func(s fileSet) bool { return s.caseID == id })
			if at < 0 {
				continue
			}
			files := own[at].files
			sets = append(sets, own[at])
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
				spread(report.Map(files, timedFile.rate), "B/s")...)
			c.Table.Rows = append(c.Table.Rows, append(row, report.Cell{Text: strconv.Itoa(len(files))}))
		}
		c.Add(points)
	}
	d := r.setData(sets)
	d["Every"] = every
	caption(&c, "strip", d)
	return c
}

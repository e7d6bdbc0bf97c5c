package report

import (
	"fmt"
	"math"
	"slices"
	"strconv"

	"dmgbench/internal/stats"
)

// casesPerChart is the number of series that a picture can carry; more cases make more pictures.
const casesPerChart = 10

// pointsPerChart bounds a picture: beyond it every k-th file is drawn, and the picture says so.
const pointsPerChart = 4000

// pictureSets splits the sets of one picture into parts that can be told apart.
func pictureSets(sets []fileSet, p picture) [][]fileSet {
	of := slices.DeleteFunc(slices.Clone(sets), func(s fileSet) bool { return s.op != p.op || s.phase != p.phase || len(s.files) == 0 })
	return slices.Collect(slices.Chunk(of, casesPerChart))
}

// chartID is unique for a picture and its part.
func chartID(kind string, n, part int) string { return fmt.Sprintf("%s-%d-%d", kind, n+1, part+1) }

// ranges of size and of another value over sets.
func extent(sets []fileSet, of func(timedFile) float64) (low, high float64) {
	low, high = math.Inf(1), math.Inf(-1)
	for _, s := range sets {
		for _, f := range s.files {
			low, high = min(low, of(f)), max(high, of(f))
		}
	}
	return low, high
}

func sizeOf(f timedFile) float64 { return f.bytes }

// sizeAxis is file size on a logarithmic scale with round ticks.
func sizeAxis(sets []fileSet) Axis {
	low, high := extent(sets, sizeOf)
	low, high = low/1.15, high*1.15
	return Axis{Name: "file size", Unit: "B", Log: true, Human: true, Ticks: sizeTicks(low, high), Low: pointer(digits(low)), High: pointer(digits(high))}
}

// workersText warns that the speed of a single file is not that of the volume.
func workersText(sets []fileSet) string {
	n := 0
	for _, s := range sets {
		n = max(n, s.workers)
	}
	if n < 2 {
		return ""
	}
	return " Up to " + strconv.Itoa(n) + " files were under way at once: the speed of one file is not that of the volume."
}

// timeCharts draw every file as time against size with the fitted lines.
func (v *View) timeCharts(sets []fileSet) []Chart {
	var out []Chart
	limit := pointsOf(sets)
	for n, p := range drawn(sets) {
		for part, some := range pictureSets(sets, p) {
			c := Chart{ID: chartID("time", n, part), Section: "files", Height: 330, X: sizeAxis(some),
				Heading: Capitalize(QuantityName(p.op)) + " time against file size" + PhaseSuffix(p.phase), Y: Axis{Name: "time of a file", Unit: "s", Log: true, Human: true}}
			low, high := extent(some, func(f timedFile) float64 { return f.seconds })
			c.Y.Low, c.Y.High = pointer(digits(low/1.2)), pointer(digits(high*1.2))
			c.Y.Ticks = sizeTicks(*c.Y.Low, *c.Y.High)
			c.Table = Table{Caption: c.Heading, Columns: Columns("<case", "<line", "time of an empty file", "speed of growth", "R² with the weights of the line", "files")}
			every := 1
			for _, s := range some {
				kept, k := thin(s.files, limit/len(some))
				every = max(every, k)
				pts := Series{Role: "points", Name: v.CaseName(s.caseID)}
				for _, f := range kept {
					pts.Points = append(pts.Points, xy(f.bytes, f.seconds))
				}
				c.Series = append(c.Series, pts)
				c.addLines(s, pts.Name)
			}
			files := 0
			for _, s := range some {
				files += len(s.files)
			}
			c.Sub = "Every file as a point; " + Count(files, "file") + TextIf(every > 1, ", one of "+strconv.Itoa(every)+" drawn (the lines use all)") + "."
			c.Notes = []string{"Solid: least squares weighted by 1/size². Dashed: plain least squares, which the largest files decide. A line is bent by the logarithmic scales. " +
				"R² has the weights of its line: that of the weighted line is a share of the squares weighted by 1/size², and cannot be set against that of the plain one." +
				workersText(some), v.Provenance}
			out = append(out, c)
		}
	}
	return out
}

// addLines fits time on size for one case, weighted and plain, and draws both.
func (c *Chart) addLines(s fileSet, name string) {
	xs, ys := s.columns()
	fits := []struct {
		role, words string
		fit         func(x, y []float64) (stats.Line, error)
	}{{"fit", "weighted", bySizeSquared}, {"fit2", "plain", stats.FitLine}}
	for _, f := range fits {
		l, err := f.fit(xs, ys)
		if err != nil { // too few files or one size: the points stand alone
			c.Table.Rows = append(c.Table.Rows, []Cell{{Text: name, Class: "head"}, {Text: f.words + ": no line", Class: "muted"}, {}, {}, {}, {Text: strconv.Itoa(len(xs))}})
			continue
		}
		line := Series{Role: f.role, Name: name}
		for i := range 41 {
			x := l.MinX * math.Pow(l.MaxX/l.MinX, float64(i)/40)
			y := l.At(x)
			if y <= 0 { // a logarithmic axis has no place for it
				y = math.NaN()
			}
			line.Points = append(line.Points, xy(x, y))
		}
		c.Series = append(c.Series, line)
		growth := "—"
		if l.Slope > 0 {
			growth = Human(1/l.Slope, "B/s")
		}
		c.Table.Rows = append(c.Table.Rows, []Cell{{Text: name, Class: "head"}, {Text: f.words}, {Text: Human(l.Intercept, "s")}, {Text: growth},
			{Text: fmt.Sprintf("%.4f", l.R2)}, {Text: strconv.Itoa(l.N)}})
	}
}

// bySizeSquared is the line that the estimates "weighted" and "latency" rest on.
func bySizeSquared(size, seconds []float64) (stats.Line, error) {
	w := make([]float64, len(size))
	for i, s := range size {
		w[i] = 1 / (s * s)
	}
	return stats.FitWeightedLine(size, seconds, w)
}

// stripCharts draw the speed of every file in a lane for each case and phase.
func (v *View) stripCharts(sets []fileSet) []Chart {
	var out []Chart
	for _, op := range []string{"write", "read"} {
		of := slices.DeleteFunc(slices.Clone(sets), func(s fileSet) bool { return s.op != op || len(s.files) == 0 })
		var cases, phases []string
		for _, s := range of {
			cases, phases = AppendNew(cases, s.caseID), AppendNew(phases, s.phase)
		}
		for part, some := range slices.Collect(slices.Chunk(cases, barsPerChart)) {
			out = append(out, v.stripChart(of, op, some, phases, part))
		}
	}
	return out
}

func (v *View) stripChart(sets []fileSet, op string, cases, phases []string, part int) Chart {
	lanes := len(phases)
	c := Chart{ID: chartID("strip-"+op, 0, part), Section: "files", Flipped: true, Heading: Capitalize(QuantityName(op)) + " speed of every file",
		Height: 30 + len(cases)*(12+14*lanes), X: Axis{Name: "speed of a file", Unit: "B/s", Low: pointer(0)}}
	c.Y = Axis{Unit: "1", Low: pointer(-0.5), High: pointer(float64(len(cases)) - 0.5)}
	for i, id := range cases {
		c.Y.Names, c.Y.Ticks = append(c.Y.Names, v.CaseName(id)), append(c.Y.Ticks, float64(i))
	}
	c.Table = Table{Caption: c.Heading, Columns: Columns("<case", "<phase", "slowest", "5 % are slower", "median", "5 % are faster", "fastest", "files")}
	files, every := 0, 1
	for lane, phase := range phases {
		pts := Series{Role: "points", Name: FirstOf(Plain(phase, 40), QuantityName(op))}
		for i, id := range cases {
			at := slices.IndexFunc(sets, func(s fileSet) bool { return s.caseID == id && s.phase == phase })
			if at < 0 {
				continue
			}
			s := sets[at]
			files += len(s.files)
			kept, k := thin(s.files, pointsPerChart/(len(cases)*lanes))
			every = max(every, k)
			for n, f := range kept {
				// The golden ratio spreads the points of a lane evenly and always alike.
				_, jitter := math.Modf(float64(n) * math.Phi)
				y := float64(i) + 0.8*((float64(lane)+0.15+0.7*jitter)/float64(lanes)-0.5)
				pts.Points = append(pts.Points, xy(f.rate(), y))
				c.X.Values = append(c.X.Values, f.rate())
			}
			c.Table.Rows = append(c.Table.Rows, spreadRow(v.CaseName(id), PhaseName(phase, 0), s.files))
		}
		c.Series = append(c.Series, pts)
	}
	c.Sub = Count(files, "file") + TextIf(every > 1, ", one of "+strconv.Itoa(every)+" drawn") + "; the height inside a lane means nothing."
	c.Notes = []string{"One point is one file. Small files are slower, so the spread is not an error of the measurement." + workersText(sets), v.Provenance}
	return c
}

// spreadRow is the distribution of speeds in numbers.
func spreadRow(name, phase string, files []timedFile) []Cell {
	rates := make([]float64, len(files))
	for i, f := range files {
		rates[i] = f.rate()
	}
	row := []Cell{{Text: name, Class: "head"}, {Text: phase}}
	for _, p := range []float64{0, 0.05, 0.5, 0.95, 1} {
		q, err := stats.Quantile(rates, p)
		text := "—"
		if err == nil {
			text = Human(q, "B/s")
		}
		row = append(row, Cell{Text: text})
	}
	return append(row, Cell{Text: strconv.Itoa(len(files))})
}

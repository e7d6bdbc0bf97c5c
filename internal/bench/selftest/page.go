package selftest

import (
	"embed"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"text/template"
)

//go:embed *.tmpl
var templateFiles embed.FS

// templates are docs/accuracy.md ("accuracy"), its figure ("power"), what a
// terminal shows ("terminal"), and the plan of a design.
var templates = template.Must(template.New("").Funcs(template.FuncMap{
	"anchor": anchor,
	"join":   func(cells []string) string { return strings.Join(cells, " | ") },
	"rule":   func(head []string) string { return strings.Repeat("--:|", len(head)-1) },
	"kB":     func(o *Overhead, rate float64) float64 { return float64(o.SmallestHonest(rate)) / 1e3 },
	"column": columnPixel,
	"points": figurePoints,
	"legend": func(row, down int) int { return plotTop + 20 + 22*row + down },
	"color":  func(row int) string { return lineColors[row%len(lineColors)] },
}).ParseFS(templateFiles, "*"))

func render(name string, data any) string {
	var b strings.Builder
	if err := templates.ExecuteTemplate(&b, name, data); err != nil {
		// The template is fixed: a test executes it
		panic(fmt.Sprintf("writing the %s of a selftest: %v", name, err))
	}
	return b.String()
}

// Page is docs/accuracy.md: what is promised and whether it is kept, then the
// studies.
func (r Report) Page() string { return render("accuracy", r) }

// Text is the report for a terminal: one line a promise.
func (r Report) Text() string { return render("terminal", r) }

// PowerFigure draws how often a true difference is found against the number of
// rounds, with the Monte Carlo error, as SVG; "" without that study.
func (r Report) PowerFigure() string {
	i := slices.IndexFunc(r.Studies, func(s Study) bool { return s.ID == "power" })
	if i < 0 {
		return ""
	}
	return render("power", r.Studies[i])
}

// anchor is a heading as GitHub links to it.
func anchor(title string) string {
	return strings.Map(func(c rune) rune {
		switch {
		case c == ' ':
			return '-'
		case c == '-' || c >= 'a' && c <= 'z' || c >= '0' && c <= '9':
			return c
		}
		return -1
	}, strings.ToLower(title))
}

// The place of the plot in the figure, in pixels; power.svg.tmpl has the rest.
const (
	plotLeft, plotTop     = 60, 56
	plotWidth, plotHeight = 420, 280
)

// lineColors can be distinguished by people who do not see all colors (Okabe
// and Ito, 2008).
var lineColors = []string{"#0072B2", "#56B4E9", "#009E73", "#D55E00", "#E69F00", "#CC79A7"}

// figurePoint is a point in pixels, with the bar of its error.
type figurePoint struct {
	X              int
	Y, Top, Bottom string // with one decimal
}

// columnPixel is the middle of one of the columns.
func columnPixel(k int, columns []string) int {
	return plotLeft + plotWidth*(2*k+1)/(2*len(columns))
}

// figurePoints are the points of a row: its cells are a name and shares such
// as "94.8 ± 0.7". Rows are moved apart.
func figurePoints(row int, cells []string) (points []figurePoint) {
	pixel := func(percent float64) string {
		return fmt.Sprintf("%.1f", plotTop+plotHeight-plotHeight*percent/100)
	}
	for k, cell := range cells[1:] {
		// The cells of this table are all shares
		head, tail, _ := strings.Cut(cell, " ± ")
		v, _ := strconv.ParseFloat(head, 64)
		err, _ := strconv.ParseFloat(tail, 64)
		points = append(points, figurePoint{columnPixel(k, cells[1:]) + 3*row - 8, pixel(v),
			pixel(v + 2*err), pixel(v - 2*err)})
	}
	return points
}

// Bound is the bound of a promise in words: "at most 5 %", "93 to 97 %".
func (p Promise) Bound() string {
	switch {
	case p.Low == nil:
		return fmt.Sprintf("at most %s %s", plainNumber(*p.High), p.Unit)
	case p.High == nil:
		return fmt.Sprintf("at least %s %s", plainNumber(*p.Low), p.Unit)
	}
	return fmt.Sprintf("%s to %s %s", plainNumber(*p.Low), plainNumber(*p.High), p.Unit)
}

// Found is the figure that is farthest from keeping the promise, with its
// error.
func (p Promise) Found() string {
	if p.Error == 0 {
		return fmt.Sprintf("%s %s", plainNumber(p.Worst), p.Unit)
	}
	return fmt.Sprintf("%.1f ± %.1f %s", p.Worst+0, p.Error, p.Unit)
}

// Answer is "kept" or "not kept".
func (p Promise) Answer() string {
	if p.Kept {
		return "kept"
	}
	return "not kept"
}

// IsOutside reports whether the farthest figure is outside the bound, kept or
// not.
func (p Promise) IsOutside() bool { return p.outside(p.Worst) > 0 }

// tooSmall is where the digits of a number would be lost among its zeros; a
// figure below it is the rounding of the arithmetic, and that of another
// processor.
const tooSmall = 1e-6

// plainNumber writes up to four decimals, or the first digit that is not 0.
func plainNumber(v float64) string {
	decimals := 4
	switch a := math.Abs(v); {
	case a != 0 && a < tooSmall:
		return "below 0.000001"
	case a != 0 && a < 1e-4:
		decimals = int(math.Ceil(-math.Log10(a)))
	}
	text := strconv.FormatFloat(v, 'f', decimals, 64)
	return strings.TrimSuffix(strings.TrimRight(text, "0"), ".")
}

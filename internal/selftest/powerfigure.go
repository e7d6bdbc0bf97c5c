package selftest

import (
	_ "embed"
	"fmt"
	"strconv"
	"strings"
	"text/template"
)

// The place of the plot in the figure, in pixels; power.svg.tmpl has the rest.
const (
	plotLeft, plotTop     = 60, 56
	plotWidth, plotHeight = 420, 280
)

// lineColors can be distinguished by people who do not see all colors (Okabe
// and Ito, 2008).
var lineColors = []string{"#0072B2", "#56B4E9", "#009E73", "#D55E00", "#E69F00", "#CC79A7"}

//go:embed power.svg.tmpl
var powerSVG string

var powerTemplate = template.Must(template.New("power").Parse(powerSVG))

// The parts of the figure; a pixel of a share is text with one decimal.
type (
	figureGrid   struct{ Percent, Y, TextY int }
	figureColumn struct {
		X    int
		Text string
	}
	figurePoint struct {
		X              int
		Y, Top, Bottom string
	}
	figureLine struct {
		Name, Color string
		// Of the legend
		Y, TextY int
		Points   []figurePoint
	}
)

// PowerFigure draws how often a true difference is found against the number of
// rounds, with the Monte Carlo error, as SVG; "" without that study.
func (r Report) PowerFigure() string {
	for _, s := range r.Studies {
		if s.ID == "power" && len(s.Tables) > 0 {
			return powerFigure(s.Tables[0], s.How)
		}
	}
	return ""
}

func powerFigure(t Table, how string) string {
	fig := struct {
		Grid    []figureGrid
		Columns []figureColumn
		Lines   []figureLine
		How     string
	}{How: how}
	for p := 0; p <= 100; p += 20 {
		y := plotTop + plotHeight - plotHeight*p/100
		fig.Grid = append(fig.Grid, figureGrid{p, y, y + 4})
	}
	columns := t.Head[1:]
	for k, c := range columns {
		fig.Columns = append(fig.Columns, figureColumn{plotLeft + plotWidth*(2*k+1)/(2*len(columns)), c})
	}
	pixel := func(y float64) string { return fmt.Sprintf("%.1f", y) }
	for i, row := range t.Rows {
		legend := plotTop + 20 + 22*i
		line := figureLine{Name: row[0], Color: lineColors[i%len(lineColors)], Y: legend, TextY: legend + 4}
		for k, cell := range row[1:] {
			v, err := readShare(cell)
			y, bar := float64(plotTop+plotHeight)-plotHeight*v/100, 2*err*plotHeight/100
			x := fig.Columns[k].X + 3*i - 8
			line.Points = append(line.Points, figurePoint{x, pixel(y), pixel(y - bar), pixel(y + bar)})
		}
		fig.Lines = append(fig.Lines, line)
	}
	var b strings.Builder
	if err := powerTemplate.Execute(&b, fig); err != nil {
		// The template is fixed: a test executes it
		panic(fmt.Sprintf("drawing the figure of a selftest: %v", err))
	}
	return b.String()
}

// readShare reads a share back from its cell, "94.8 ± 0.7".
func readShare(cell string) (v, err float64) {
	head, tail, _ := strings.Cut(cell, " ± ")
	// The cells of this table are all shares
	v, _ = strconv.ParseFloat(head, 64)
	err, _ = strconv.ParseFloat(tail, 64)
	return v, err
}

package selftest

import (
	"fmt"
	"strconv"
	"strings"
)

// The size of the figure and of its plot, in pixels.
const (
	figureWidth, figureHeight = 720, 400
	plotLeft, plotTop         = 60, 56
	plotWidth, plotHeight     = 420, 280
)

// lineColours are told apart by people who do not see all colours (Okabe and Ito, 2008).
var lineColours = []string{"#0072B2", "#56B4E9", "#009E73", "#D55E00", "#E69F00", "#CC79A7"}

// PowerFigure draws how often a true difference is found against the number of
// rounds, with the Monte Carlo error, as SVG; "" where there is no such study.
func (r Report) PowerFigure() string {
	for _, s := range r.Studies {
		if s.ID == "power" && len(s.Tables) > 0 {
			return powerFigure(s.Tables[0], s.How)
		}
	}
	return ""
}

func powerFigure(t Table, how string) string {
	var b strings.Builder
	fmt.Fprintf(&b, `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %d %d" role="img" aria-label="How often a true difference is found, by rounds" font-family="sans-serif" font-size="12">`+
		"\n<rect width=\"100%%\" height=\"100%%\" fill=\"#fff\"/>\n", figureWidth, figureHeight)
	b.WriteString("<text x=\"12\" y=\"22\" font-size=\"16\">How often a true difference gets the verdict \"holds\"</text>\n")
	b.WriteString("<text x=\"12\" y=\"40\" fill=\"#555\">bars: two Monte Carlo errors to each side; simulated device, one claim in the plan</text>\n")
	for p := 0; p <= 100; p += 20 {
		y := plotTop + plotHeight - plotHeight*p/100
		fmt.Fprintf(&b, "<line x1=\"%d\" x2=\"%d\" y1=\"%d\" y2=\"%d\" stroke=\"#ddd\"/><text x=\"%d\" y=\"%d\" text-anchor=\"end\">%d %%</text>\n",
			plotLeft, plotLeft+plotWidth, y, y, plotLeft-6, y+4, p)
	}
	columns := t.Head[1:]
	at := func(k int) int { return plotLeft + plotWidth*(2*k+1)/(2*len(columns)) }
	for k, c := range columns {
		fmt.Fprintf(&b, "<text x=\"%d\" y=\"%d\" text-anchor=\"middle\">%s</text>\n", at(k), plotTop+plotHeight+18, c)
	}
	for i, row := range t.Rows {
		colour := lineColours[i%len(lineColours)]
		var points []string
		for k, cell := range row[1:] {
			v, err := cellOf(cell)
			y := float64(plotTop+plotHeight) - plotHeight*v/100
			points = append(points, fmt.Sprintf("%d,%.1f", at(k)+3*i-8, y))
			fmt.Fprintf(&b, "<line x1=\"%d\" x2=\"%d\" y1=\"%.1f\" y2=\"%.1f\" stroke=\"%s\"/><circle cx=\"%d\" cy=\"%.1f\" r=\"3\" fill=\"%s\"/>\n",
				at(k)+3*i-8, at(k)+3*i-8, y-2*err*plotHeight/100, y+2*err*plotHeight/100, colour, at(k)+3*i-8, y, colour)
		}
		fmt.Fprintf(&b, "<polyline points=\"%s\" fill=\"none\" stroke=\"%s\"/>\n", strings.Join(points, " "), colour)
		fmt.Fprintf(&b, "<line x1=\"%d\" x2=\"%d\" y1=\"%d\" y2=\"%d\" stroke=\"%s\" stroke-width=\"3\"/><text x=\"%d\" y=\"%d\">%s</text>\n",
			plotLeft+plotWidth+16, plotLeft+plotWidth+36, plotTop+20+22*i, plotTop+20+22*i, colour, plotLeft+plotWidth+42, plotTop+24+22*i, row[0])
	}
	fmt.Fprintf(&b, "<text x=\"12\" y=\"%d\" fill=\"#555\">%s</text>\n</svg>\n", figureHeight-14, how)
	return b.String()
}

// cellOf reads a share back from its cell, "94.8 ± 0.7".
func cellOf(cell string) (v, err float64) {
	head, tail, _ := strings.Cut(cell, " ± ")
	v, _ = strconv.ParseFloat(head, 64) // the cells of this table are all shares
	err, _ = strconv.ParseFloat(tail, 64)
	return v, err
}

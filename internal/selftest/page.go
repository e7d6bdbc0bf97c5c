package selftest

import (
	"fmt"
	"math"
	"strconv"
	"strings"
)

// Page is docs/accuracy.md: what is promised and whether it is kept, then the studies.
func (r Report) Page() string {
	var b strings.Builder
	b.WriteString(pageHead)
	if !r.Full {
		b.WriteString("This is the short form, with few runs a figure and so with large errors.\n\n")
	}
	b.WriteString("| promise | bound | farthest figure | where | |\n|---|---|---|---|---|\n")
	for _, s := range r.Studies {
		for _, p := range s.Promises {
			answer := "**" + p.Answer() + "**"
			fmt.Fprintf(&b, "| [%s](#%s) | %s | %s | %s | %s |\n", p.Says, anchor(s.Title), p.Bound(), p.Found(), p.Where, answer)
		}
	}
	fmt.Fprintf(&b, pageAfter, r.Seed)
	b.WriteString(power(r))
	for _, s := range r.Studies {
		fmt.Fprintf(&b, "\n## %s\n\n%s\n\n%s\n", s.Title, s.Asks, s.How)
		for _, t := range s.Tables {
			b.WriteString(t.markdown())
		}
		if s.ID == "power" {
			b.WriteString("\n![How often a true difference is found, by rounds](accuracy-power.svg)\n")
		}
		for _, line := range s.Says {
			fmt.Fprintf(&b, "\n- %s", line)
		}
		if len(s.Says) > 0 {
			b.WriteString("\n")
		}
	}
	b.WriteString(pageTail)
	return b.String()
}

// power is the way to the study of small differences, which people ask for first.
func power(r Report) string {
	for _, s := range r.Studies {
		if s.ID == "power" {
			return fmt.Sprintf("How small a difference a run finds: [%s](#%s).\n", s.Title, anchor(s.Title))
		}
	}
	return ""
}

func (t Table) markdown() string {
	var b strings.Builder
	fmt.Fprintf(&b, "\n%s:\n\n| %s |\n|---|%s\n", t.Title, strings.Join(t.Head, " | "), strings.Repeat("--:|", len(t.Head)-1))
	for _, row := range t.Rows {
		fmt.Fprintf(&b, "| %s |\n", strings.Join(row, " | "))
	}
	return b.String()
}

// anchor is a heading as GitHub links to it.
func anchor(title string) string {
	return strings.ReplaceAll(strings.Map(func(c rune) rune {
		switch {
		case c == ' ' || c == '-' || c >= 'a' && c <= 'z' || c >= '0' && c <= '9':
			return c
		case c >= 'A' && c <= 'Z':
			return c + 'a' - 'A'
		}
		return -1
	}, title), " ", "-")
}

const pageHead = `<!-- Made by make accuracy; do not edit. -->
# Accuracy

Can the numbers be trusted? Each promise below was put to the test on a device whose truth is known: the simulated device takes
times by a stated law (rate, latency, noise of files, mounts and sessions, outliers, full caches, throttling, drift), and the whole
program runs on it, from the plan through runner, journal and analysis to the result. What the program says is then set against the law.

`

const pageAfter = `
A figure is drawn from many simulated runs and stands with its Monte Carlo standard error (±). The farthest figure of all that fall
under a promise is shown; a promise is kept where that figure lies within the bound, or outside it by no more than two of its errors. ` +
	"`make accuracy`" + ` makes this page anew, and with seed %d the same figures, but those of the harness's own cost, which are
measured on the machine that makes it. ` + "`dmgbench selftest`" + ` runs a short form of it in seconds on yours.

`

const pageTail = `
## What is not here

- A device is more than a law. What no law of these studies has (noise that depends on the size of a file, sessions that drift apart over
  weeks, a host that caches in secret) is not covered by these figures; warnings and departures name it where it is seen.
`

// Bound is the bound of a promise in words: "at most 5 %", "93 to 97 %".
func (p Promise) Bound() string {
	switch {
	case p.Low <= -none:
		return fmt.Sprintf("at most %s %s", plainNumber(p.High), p.Unit)
	case p.High >= none:
		return fmt.Sprintf("at least %s %s", plainNumber(p.Low), p.Unit)
	}
	return fmt.Sprintf("%s to %s %s", plainNumber(p.Low), plainNumber(p.High), p.Unit)
}

// Found is the figure that is farthest from keeping the promise, with its error.
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

// tooSmall is where the digits of a number would be lost among its zeros; a figure
// below it is the rounding of the arithmetic, and that of another processor.
const tooSmall = 1e-6

// plainNumber writes up to four decimals, or the first digit that is not 0.
func plainNumber(v float64) string {
	switch a := math.Abs(v); {
	case a == 0 || a >= 1e-4:
	case a < tooSmall:
		return "below 0.000001"
	default:
		return strings.TrimRight(strconv.FormatFloat(v, 'f', int(math.Ceil(-math.Log10(a))), 64), "0")
	}
	return strings.TrimSuffix(strings.TrimRight(fmt.Sprintf("%.4f", v), "0"), ".")
}

// Text is the report for a terminal: one line a promise.
func (r Report) Text() string {
	var b strings.Builder
	for _, s := range r.Studies {
		fmt.Fprintf(&b, "%s\n", s.Title)
		for _, p := range s.Promises {
			chance := ""
			if p.Kept && (p.Worst < p.Low || p.Worst > p.High) {
				chance = ", outside by less than two of its errors"
			}
			fmt.Fprintf(&b, "  %-8s %s\n           found %s (%s); bound: %s%s\n", p.Answer(), p.Says, p.Found(), p.Where, p.Bound(), chance)
		}
	}
	if o := r.Overhead; o != nil {
		fmt.Fprintf(&b, "The harness costs a file %.0f ns here (95th percentile %.0f), each further call %.0f ns.\n", o.File, o.File95, o.Call)
		fmt.Fprintf(&b, "Smallest honest file: %.1f kB at 1 GB/s, %.1f kB at 10 GB/s.\n", float64(o.SmallestHonest(1e9))/1e3, float64(o.SmallestHonest(10e9))/1e3)
	}
	if r.Kept {
		b.WriteString("Every promise is kept: no figure lies outside its bound by more than two of its standard errors (±).\n")
	} else {
		b.WriteString("Not every promise is kept.\n")
	}
	return b.String()
}

// The size of the figure and of its plot, in pixels.
const (
	figureWidth, figureHeight = 720, 400
	plotLeft, plotTop         = 60, 56
	plotWidth, plotHeight     = 420, 280
)

// lineColours can be distinguished by people who do not see all colours (Okabe and Ito, 2008).
var lineColours = []string{"#0072B2", "#56B4E9", "#009E73", "#D55E00", "#E69F00", "#CC79A7"}

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

package selftest

import (
	_ "embed"
	"fmt"
	"math"
	"strconv"
	"strings"
	"text/template"
)

//go:embed page.md.tmpl
var pageTemplate string

// page is docs/accuracy.md; report is what a terminal shows, one line a
// promise.
var page = template.Must(template.New("page").Funcs(template.FuncMap{
	"anchor": anchor,
	"join":   func(cells []string) string { return strings.Join(cells, " | ") },
	"rule":   func(head []string) string { return strings.Repeat("--:|", len(head)-1) },
	"kB":     func(o *Overhead, rate float64) float64 { return float64(o.SmallestHonest(rate)) / 1e3 },
}).Parse(pageTemplate))

func render(name string, r Report) string {
	var b strings.Builder
	if err := page.ExecuteTemplate(&b, name, r); err != nil {
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
	switch a := math.Abs(v); {
	case a == 0 || a >= 1e-4:
	case a < tooSmall:
		return "below 0.000001"
	default:
		return strings.TrimRight(strconv.FormatFloat(v, 'f', int(math.Ceil(-math.Log10(a))), 64), "0")
	}
	return strings.TrimSuffix(strings.TrimRight(fmt.Sprintf("%.4f", v), "0"), ".")
}

package selftest

import (
	"embed"
	"fmt"
	"math"
	"strconv"
	"strings"
	"text/template"
)

//go:embed *.tmpl
var templateFiles embed.FS

// templates are docs/accuracy.md ("accuracy"), what a terminal shows
// ("terminal"), and the plan of a design.
var templates = template.Must(template.New("").Funcs(template.FuncMap{
	"anchor": anchor,
	"join":   func(cells []string) string { return strings.Join(cells, " | ") },
	"rule":   func(head []string) string { return strings.Repeat("--:|", len(head)-1) },
	"kB":     func(o *Overhead, rate float64) float64 { return float64(o.SmallestHonest(rate)) / 1e3 },
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

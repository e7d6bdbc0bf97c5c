package report

import (
	"strings"

	"dmgbench/internal/result"
)

// FigureText is one figure in words, as tips and rows of tables print it. Texts are empty where the figure has none.
type FigureText struct {
	Value, Interval, Published string
	Ratio                      string // measured ÷ published; in brackets where not comparable
	N                          string
	Comparable                 bool // no ratio is in brackets
}

// TextOf writes a figure in a scale.
func TextOf(s *result.Summary, sc Scale) FigureText {
	h := Headline(s)
	t := FigureText{Value: sc.Text(h.Value), N: SampleSize(s), Comparable: true}
	if h.CI != nil {
		t.Interval = RangeText(sc, h.CI, h.Unit)
	}
	var texts, ratios []string
	for _, p := range s.Published {
		texts = append(texts, PublishedText(p))
		r := Ratio(p.Ratio)
		if e := ComparedEstimate(s, p); e != nil && e.Name != h.Name {
			r += "*"
		}
		if p.Ratio > 0 && !p.Comparable {
			r, t.Comparable = "("+r+")", false
		}
		ratios = append(ratios, r)
	}
	t.Published, t.Ratio = strings.Join(texts, "; "), strings.Join(ratios, "; ")
	return t
}

// FigureTip is a figure in lines, for the mark that shows it; "!" marks one with warnings.
func FigureTip(s *result.Summary, sc Scale) string {
	t := TextOf(s, sc)
	lines := []string{QuantityName(s.Op) + ": " + TextIf(len(s.Warnings) > 0, "! ") + t.Value}
	for _, p := range []Pair{{"interval", t.Interval}, {"published", t.Published}, {"measured ÷ published", t.Ratio},
		{"n", t.N}} {
		if p.Value != "" {
			lines = append(lines, p.Name+": "+p.Value)
		}
	}
	return strings.Join(lines, "\n")
}

// ComparableValue is the published value that a figure is drawn with, 0 without any: preferably one that may be
// compared. A value that was published for a part of the files is not the same figure.
func ComparableValue(s *result.Summary) (value float64, comparable bool) {
	for _, p := range s.Published {
		v := Midpoint(p)
		if e := ComparedEstimate(s, p); e != nil && strings.Contains(e.Name, "@") {
			continue
		}
		if IsFinite(v) && v > 0 && (value == 0 || p.Comparable && !comparable) {
			value, comparable = v, p.Comparable
		}
	}
	return value, comparable
}

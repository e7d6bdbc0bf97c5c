package report

import (
	"math"
	"strconv"
	"strings"

	"dmgbench/internal/plan"
	"dmgbench/internal/result"
	"dmgbench/internal/units"
)

// fitView is one fitted model with its coefficients in words.
type fitView struct {
	fit   result.Fit
	title string
	unit  string // of the fitted quantity
	table table
}

func (v *view) fitViews() []fitView {
	var out []fitView
	for i, f := range v.result.Fits {
		fv := fitView{fit: f, title: plain(f.Name, 120), unit: plan.Quantity(f.Op).Unit()}
		t := table{ID: "fit-" + human(float64(i+1), "1"), Caption: "Fit “" + fv.title + "”: " + words(f.Op) + " along " + plain(strings.ReplaceAll(f.Along, "_", " "), 40),
			Columns: []column{{"", "coefficient", true}, {"", "measured", false}, {"", "interval", false}, {"", "published", false}}}
		for _, c := range f.Coefficients {
			row := []cell{{Text: plain(c.Name, 60), Class: "head"}, {Text: zero(f.Reason == "", coefficient(f, c.Name, c.Value))}, {}, {}}
			if c.CI != nil {
				row[2] = cell{Text: coefficientRange(f, c), Title: ciText(c.CI)}
			}
			if c.Published != nil {
				row[3] = cell{Text: coefficient(f, c.Name, *c.Published)}
			}
			t.Rows = append(t.Rows, row)
		}
		for _, p := range f.Predictions {
			t.Rows = append(t.Rows, []cell{{Text: "prediction at " + human(p[0], alongUnit(f.Along)), Class: "head"}, {Text: human(p[1], fv.unit)}, {}, {}})
		}
		if f.Reason != "" {
			t.Notes = append(t.Notes, note{0, "No fit: " + plain(f.Reason, 300) + "."})
		}
		t.Notes = append(t.Notes, note{0, "Model: " + modelText(f.Model) + ", x in " + firstOf(zero(inBytes(f.Along), "bytes"), plain(strings.ReplaceAll(f.Along, "_", " "), 40)) + "."})
		fv.table = t
		out = append(out, fv)
	}
	return out
}

// inBytes reports whether an axis is measured in bytes.
func inBytes(along string) bool {
	return along == "file_size" || along == "band_size" || along == "size" || along == "block"
}

func alongUnit(along string) string {
	if inBytes(along) {
		return "B"
	}
	return "1"
}

// coefficient writes one coefficient with its unit where that can be said in words.
func coefficient(f result.Fit, name string, value float64) string {
	unit := plan.Quantity(f.Op).Unit()
	switch {
	case !finite(value):
		return "—"
	case f.Model == "power" || name == "r2":
		return compactNumber(value)
	case strings.HasPrefix(name, "intercept"):
		return human(value, unit)
	case name == "break":
		return human(value, alongUnit(f.Along))
	case strings.HasPrefix(name, "slope") && unit == "s" && inBytes(f.Along) && value > 0:
		return human(1/value, "B/s") + " (as 1 ÷ slope)"
	case strings.HasPrefix(name, "slope") && inBytes(f.Along):
		return human(value*1e6, unit) + " a MB"
	case strings.HasPrefix(name, "slope"):
		return human(value, unit) + " per x"
	}
	return compactNumber(value)
}

// coefficientRange is the interval; a slope that is told by its inverse has its ends swapped,
// and one that reaches 0, which has none, is told as it is.
func coefficientRange(f result.Fit, c result.Coefficient) string {
	if unit := plan.Quantity(f.Op).Unit(); strings.HasPrefix(c.Name, "slope") && unit == "s" && inBytes(f.Along) && c.CI.Low <= 0 {
		return human(c.CI.Low*1e6, unit) + " to " + human(c.CI.High*1e6, unit) + " a MB, which is no rate where it reaches 0"
	}
	low, high := coefficient(f, c.Name, c.CI.Low), coefficient(f, c.Name, c.CI.High)
	if strings.Contains(low+high, "1 ÷") {
		low, high = high, low
	}
	return low + " to " + high
}

// compactNumber has four significant digits, with a power of ten where zeros would bury them.
func compactNumber(v float64) string {
	if a := math.Abs(v); v != 0 && (a < 1e-3 || a >= 1e6) {
		mantissa, power, _ := strings.Cut(strconv.FormatFloat(v, 'e', 3, 64), "e")
		sign := strings.TrimPrefix(power[:1], "+")
		return mantissa + " · 10^" + sign + strings.TrimLeft(power[1:], "0")
	}
	return units.Significant(v, 4)
}

func modelText(model string) string {
	switch model {
	case "line":
		return "straight line, intercept + slope · x"
	case "power":
		return "power law, factor · x^exponent (least squares on logarithms)"
	case "two-lines":
		return "two straight lines with a break"
	}
	return plain(model, 60)
}

// relationTable lists the cases of a relation with both ranks.
func relationTable(r result.Relation) table {
	xs, ys := make([]float64, 0, len(r.Points)), make([]float64, 0, len(r.Points))
	for _, p := range r.Points {
		xs, ys = append(xs, p.X), append(ys, p.Y)
	}
	sx, sy := columnScale(plan.Quantity(r.XOp).Unit(), xs...), columnScale(plan.Quantity(r.YOp).Unit(), ys...)
	t := table{ID: "relation-" + plain(r.Name, 40), Caption: plain(r.Name, 120) + ": " + words(r.YOp) + " against " + words(r.XOp),
		Columns: []column{{"", "case", true}, {"", withUnit(words(r.XOp), sx), false}, {"", "rank", false}, {"", withUnit(words(r.YOp), sy), false},
			{"", "rank", false}, {"", "", true}}}
	for _, p := range r.Points {
		mark := cell{}
		if p.Outlier {
			mark = cell{Text: "outlier", Class: "warn"}
		}
		t.Rows = append(t.Rows, []cell{{Text: plain(p.Label, 80), Class: "head"}, {Text: sx.number(p.X)}, {Text: human(float64(p.RankX), "1")},
			{Text: sy.number(p.Y)}, {Text: human(float64(p.RankY), "1")}, mark})
	}
	if r.Reason != "" {
		t.Notes = append(t.Notes, note{0, plain(r.Reason, 300) + "."})
	} else {
		t.Notes = append(t.Notes, note{0, "Spearman’s rank correlation: " + units.Significant(r.Spearman, 3) + "."})
	}
	return t
}

func withUnit(text string, s scale) string {
	if s.suffix == "" {
		return text
	}
	return text + ", " + s.suffix
}

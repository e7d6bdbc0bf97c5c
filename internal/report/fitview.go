package report

import (
	"math"
	"strconv"
	"strings"

	"dmgbench/internal/plan"
	"dmgbench/internal/result"
	"dmgbench/internal/units"
)

// FitView is one fitted model with its coefficients in words.
type FitView struct {
	Fit   result.Fit
	Title string
	Unit  string // of the fitted quantity
	Table Table
}

func (v *View) fitViews() []FitView {
	var out []FitView
	for i, f := range v.Result.Fits {
		fv := FitView{Fit: f, Title: Plain(f.Name, 120), Unit: plan.Quantity(f.Op).Unit()}
		t := Table{ID: "fit-" + Human(float64(i+1), "1"), Caption: "Fit “" + fv.Title + "”: " + QuantityName(f.Op) + " along " + Plain(strings.ReplaceAll(f.Along, "_", " "), 40),
			Columns: Columns("<coefficient", "measured", "interval", "published")}
		for _, c := range f.Coefficients {
			row := []Cell{{Text: Plain(c.Name, 60), Class: "head"}, {Text: TextIf(f.Reason == "", coefficient(f, c.Name, c.Value))}, {}, {}}
			if c.CI != nil {
				row[2] = Cell{Text: coefficientRange(f, c), Title: DescribeInterval(c.CI)}
			}
			if c.Published != nil {
				row[3] = Cell{Text: coefficient(f, c.Name, *c.Published)}
			}
			t.Rows = append(t.Rows, row)
		}
		for _, p := range f.Predictions {
			t.Rows = append(t.Rows, []Cell{{Text: "prediction at " + Human(p[0], AxisUnit(f.Along)), Class: "head"}, {Text: Human(p[1], fv.Unit)}, {}, {}})
		}
		if f.Reason != "" {
			t.Notes = append(t.Notes, Note{0, "No fit: " + Plain(f.Reason, 300) + "."})
		}
		t.Notes = append(t.Notes, Note{0, "Model: " + ModelName(f.Model) + ", x in " + FirstOf(TextIf(IsByteAxis(f.Along), "bytes"), Plain(strings.ReplaceAll(f.Along, "_", " "), 40)) + "."})
		fv.Table = t
		out = append(out, fv)
	}
	return out
}

// IsByteAxis reports whether an axis is measured in bytes.
func IsByteAxis(along string) bool {
	return along == "file_size" || along == "band_size" || along == "size" || along == "block"
}

func AxisUnit(along string) string {
	if IsByteAxis(along) {
		return "B"
	}
	return "1"
}

// coefficient writes one coefficient with its unit where that can be said in words.
func coefficient(f result.Fit, name string, value float64) string {
	unit := plan.Quantity(f.Op).Unit()
	switch {
	case !IsFinite(value):
		return "—"
	case f.Model == "power" || name == "r2":
		return compactNumber(value)
	case strings.HasPrefix(name, "intercept"):
		return Human(value, unit)
	case name == "break":
		return Human(value, AxisUnit(f.Along))
	case strings.HasPrefix(name, "slope") && unit == "s" && IsByteAxis(f.Along) && value > 0:
		return Human(1/value, "B/s") + " (as 1 ÷ slope)"
	case strings.HasPrefix(name, "slope") && IsByteAxis(f.Along):
		return Human(value*1e6, unit) + " a MB"
	case strings.HasPrefix(name, "slope"):
		return Human(value, unit) + " per x"
	}
	return compactNumber(value)
}

// coefficientRange is the interval; a slope that is told by its inverse has its ends swapped,
// and one that reaches 0, which has none, is told as it is.
func coefficientRange(f result.Fit, c result.Coefficient) string {
	if unit := plan.Quantity(f.Op).Unit(); strings.HasPrefix(c.Name, "slope") && unit == "s" && IsByteAxis(f.Along) && c.CI.Low <= 0 {
		return Human(c.CI.Low*1e6, unit) + " to " + Human(c.CI.High*1e6, unit) + " a MB, which is no rate where it reaches 0"
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

func ModelName(model string) string {
	switch model {
	case "line":
		return "straight line, intercept + slope · x"
	case "power":
		return "power law, factor · x^exponent (least squares on logarithms)"
	case "two-lines":
		return "two straight lines with a break"
	}
	return Plain(model, 60)
}

// relationTable lists the cases of a relation with both ranks.
func relationTable(r result.Relation) Table {
	xs, ys := make([]float64, 0, len(r.Points)), make([]float64, 0, len(r.Points))
	for _, p := range r.Points {
		xs, ys = append(xs, p.X), append(ys, p.Y)
	}
	sx, sy := ColumnScale(plan.Quantity(r.XOp).Unit(), xs...), ColumnScale(plan.Quantity(r.YOp).Unit(), ys...)
	t := Table{ID: "relation-" + Plain(r.Name, 40), Caption: Plain(r.Name, 120) + ": " + QuantityName(r.YOp) + " against " + QuantityName(r.XOp),
		Columns: Columns("<case", WithUnit(QuantityName(r.XOp), sx), "rank", WithUnit(QuantityName(r.YOp), sy), "rank", "<")}
	for _, p := range r.Points {
		mark := Cell{}
		if p.Outlier {
			mark = Cell{Text: "outlier", Class: "warn"}
		}
		t.Rows = append(t.Rows, []Cell{{Text: Plain(p.Label, 80), Class: "head"}, {Text: sx.Number(p.X)}, {Text: Human(float64(p.RankX), "1")},
			{Text: sy.Number(p.Y)}, {Text: Human(float64(p.RankY), "1")}, mark})
	}
	if r.Reason != "" {
		t.Notes = append(t.Notes, Note{0, Plain(r.Reason, 300) + "."})
	} else {
		t.Notes = append(t.Notes, Note{0, "Spearman’s rank correlation: " + units.Significant(r.Spearman, 3) + "."})
	}
	return t
}

func WithUnit(text string, s Scale) string {
	if s.Suffix == "" {
		return text
	}
	return text + ", " + s.Suffix
}

package report

import (
	"math"
	"strconv"
	"strings"

	"dmgbench/internal/plan"
	"dmgbench/internal/result"
	"dmgbench/internal/system/units"
)

// fitTables are the fitted models of a result with their coefficients in words,
// in its order.
func (v *View) fitTables() []Table {
	var out []Table
	for _, f := range v.Result.Fits {
		unit, along := plan.Quantity(f.Op).Unit(), Plain(strings.ReplaceAll(f.Along, "_", " "), 40)
		t := Table{Caption: "Fit “" + Plain(f.Name, 120) + "”: " +
			QuantityName(f.Op) + " along " + along,
			Columns: Columns("<coefficient", "measured", "interval", "published")}
		for _, c := range f.Coefficients {
			row := TextRow(Plain(c.Name, 60), "", "", "")
			if f.Reason == "" {
				row[1].Text = coefficientText(f, c.Name, c.Value)
			}
			if c.CI != nil {
				row[2] = Cell{Text: coefficientRange(f, c), Title: DescribeInterval(c.CI)}
			}
			if c.Published != nil {
				row[3].Text = coefficientText(f, c.Name, *c.Published)
			}
			t.Rows = append(t.Rows, row)
		}
		for _, p := range f.Predictions {
			t.Rows = append(t.Rows, TextRow("prediction at "+Human(p[0], AxisUnit(f.Along)), Human(p[1], unit), "", ""))
		}
		if f.Reason != "" {
			t.Notes = append(t.Notes, Note{Text: "No fit: " + Plain(f.Reason, 300) + "."})
		}
		if isByteAxis(f.Along) {
			along = "bytes"
		}
		t.Notes = append(t.Notes, Note{Text: "Model: " + ModelName(f.Model) + ", x in " + along + "."})
		out = append(out, t)
	}
	return out
}

// isByteAxis reports whether the values of a key are in bytes.
func isByteAxis(key string) bool {
	return key == "file_size" || key == "band_size" || key == "size" || key == "block"
}

// AxisUnit is the base unit of the values of a key.
func AxisUnit(key string) string {
	if isByteAxis(key) {
		return "B"
	}
	return "1"
}

// isInverseRate reports whether a coefficient is a slope of time on size; its
// inverse is a rate.
func isInverseRate(f result.Fit, name string) bool {
	return strings.HasPrefix(name, "slope") && plan.Quantity(f.Op).Unit() == "s" && isByteAxis(f.Along)
}

// coefficientText writes one coefficient with its unit, or as a plain number.
//
// Slopes of time on size are written as rates, which people compare; their unit
// is that of bytes per second.
func coefficientText(f result.Fit, name string, value float64) string {
	unit := plan.Quantity(f.Op).Unit()
	switch {
	case !IsFinite(value):
		return "—"
	case f.Model == "power" || name == "r2":
	case strings.HasPrefix(name, "intercept"):
		return Human(value, unit)
	case name == "break":
		return Human(value, AxisUnit(f.Along))
	case isInverseRate(f, name) && value > 0:
		return Human(1/value, "B/s") + " (as 1 ÷ slope)"
	case strings.HasPrefix(name, "slope") && isByteAxis(f.Along):
		return Human(value*1e6, unit) + " a MB"
	case strings.HasPrefix(name, "slope"):
		return Human(value, unit) + " per x"
	}
	return fourDigits(value)
}

// coefficientRange is the interval of a coefficient. A slope that is written as
// its inverse has its ends swapped; one whose interval reaches 0 has no inverse
// there and is written as a slope.
func coefficientRange(f result.Fit, c result.Coefficient) string {
	low, high := coefficientText(f, c.Name, c.CI.Low), coefficientText(f, c.Name, c.CI.High)
	switch {
	case !isInverseRate(f, c.Name):
	case c.CI.Low <= 0:
		return Human(c.CI.Low*1e6, "s") + " to " + Human(c.CI.High*1e6, "s") +
			" a MB, which is no rate where it reaches 0"
	default:
		low, high = high, low
	}
	return low + " to " + high
}

// fourDigits has four significant digits, with a power of ten where zeros would
// hide them.
func fourDigits(v float64) string {
	if a := math.Abs(v); v == 0 || a >= 1e-3 && a < 1e6 {
		return units.Significant(v, 4)
	}
	mantissa, power, _ := strings.Cut(strconv.FormatFloat(v, 'e', 3, 64), "e")
	n, _ := strconv.Atoi(power) // FormatFloat writes a number
	return mantissa + " · 10^" + strconv.Itoa(n)
}

// ModelName is the name of a model with its formula.
func ModelName(model string) string {
	return named("model", model, 60)
}

// relationTable lists the cases of a relation with both ranks.
func relationTable(r result.Relation) Table {
	var xs, ys []float64
	for _, p := range r.Points {
		xs, ys = append(xs, p.X), append(ys, p.Y)
	}
	sx, sy := ColumnScale(plan.Quantity(r.XOp).Unit(), xs...), ColumnScale(plan.Quantity(r.YOp).Unit(), ys...)
	x, y := QuantityName(r.XOp), QuantityName(r.YOp)
	t := Table{Caption: Plain(r.Name, 120) + ": " + y + " against " + x,
		Columns: Columns("<case", WithUnit(x, sx), "rank", WithUnit(y, sy), "rank", "<")}
	for _, p := range r.Points {
		row := TextRow(Plain(p.Label, 80), sx.Number(p.X), strconv.Itoa(p.RankX), sy.Number(p.Y),
			strconv.Itoa(p.RankY), "")
		if p.Outlier {
			row[5] = Cell{Text: "outlier", Class: "warn"}
		}
		t.Rows = append(t.Rows, row)
	}
	note := "Spearman’s rank correlation: " + units.Significant(r.Spearman, 3) + "."
	if r.Reason != "" {
		note = Plain(r.Reason, 300) + "."
	}
	t.Notes = []Note{{Text: note}}
	return t
}

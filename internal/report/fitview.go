package report

import (
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
		t := table{ID: "fit-" + human(float64(i+1), "1"), Caption: "Fit “" + fv.title + "”: " + words(f.Op) + " along " + plain(f.Along, 40),
			Columns: []column{{"", "coefficient", true}, {"", "measured", false}, {"", "interval", false}, {"", "published", false}}}
		for _, c := range f.Coefficients {
			row := []cell{{Text: plain(c.Name, 60), Class: "head"}, {Text: units.Significant(c.Value, 4)}, {}, {}}
			if c.CI != nil {
				row[2] = cell{Text: units.Significant(c.CI.Low, 3) + "–" + units.Significant(c.CI.High, 3), Title: ciText(c.CI)}
			}
			if c.Published != nil {
				row[3] = cell{Text: units.Significant(*c.Published, 4)}
			}
			t.Rows = append(t.Rows, row)
		}
		for _, p := range f.Predictions {
			t.Rows = append(t.Rows, []cell{{Text: "prediction at " + human(p[0], "1"), Class: "head"}, {Text: human(p[1], fv.unit)}, {}, {}})
		}
		if f.Reason != "" {
			t.Notes = append(t.Notes, note{0, "No fit: " + plain(f.Reason, 300) + "."})
		}
		t.Notes = append(t.Notes, note{0, "Model: " + modelText(f.Model) + ". Numbers are in base units (bytes, bytes a second, seconds)."})
		fv.table = t
		out = append(out, fv)
	}
	return out
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
	sx, sy := scaleOf(plan.Quantity(r.XOp).Unit(), xs...), scaleOf(plan.Quantity(r.YOp).Unit(), ys...)
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

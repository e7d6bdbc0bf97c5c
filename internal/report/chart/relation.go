package chart

import (
	"fmt"
	"math"
	"slices"
	"strconv"

	"dmgbench/internal/analysis/stats"
	"dmgbench/internal/plan"
	"dmgbench/internal/report"
	"dmgbench/internal/result"
)

// relationCharts draw one quantity against another: a named point for each case
// with its two ranks, the line of the cases that are not outliers, and rings
// around the outliers.
func relationCharts(r *run) []report.Chart {
	var out []report.Chart
	for i, rel := range r.Result.Relations {
		if len(rel.Points) > 0 {
			c := relationChart(rel)
			c.ID, c.Table = "relation-"+strconv.Itoa(i+1), r.Relations[i]
			out = append(out, c)
		}
	}
	return out
}

func relationChart(rel result.Relation) report.Chart {
	x, y := report.QuantityName(rel.XOp), report.QuantityName(rel.YOp)
	c := report.Chart{Height: 340, Heading: report.Capitalize(y) + " against " + x,
		X: report.Axis{Name: x, Unit: plan.Quantity(rel.XOp).Unit()},
		Y: report.Axis{Name: y, Unit: plan.Quantity(rel.YOp).Unit()}}
	rings := report.Series{Role: "warned", Name: "off the line"}
	var xs, ys, lineX, lineY []float64
	for _, p := range rel.Points {
		name := fmt.Sprintf("%s (%d → %d)", report.Plain(p.Label, 60), p.RankX, p.RankY)
		m := report.Point(p.X, p.Y)
		m.Tip = fmt.Sprintf("%s %s, rank %d\n%s %s, rank %d", x, report.Human(p.X, c.X.Unit), p.RankX, y,
			report.Human(p.Y, c.Y.Unit), p.RankY) +
			report.TextIf(p.Outlier, "\noff the line of the others")
		c.Add(report.Series{Role: "named", Name: name, Marks: []report.Mark{m}})
		if m.Drawn() {
			xs, ys = append(xs, p.X), append(ys, p.Y)
			if !p.Outlier {
				lineX, lineY = append(lineX, p.X), append(lineY, p.Y)
			}
		}
		if p.Outlier {
			m.Tip = name + "\n" + m.Tip
			rings.Marks = append(rings.Marks, m)
		}
	}
	// Theil–Sen has no residuals that a single far point could dominate;
	// outliers of the analysis are left out nevertheless.
	line, err := stats.FitTheilSen(lineX, lineY)
	drawn := len(lineX) >= 3 && err == nil
	if drawn {
		low, high := slices.Min(lineX), slices.Max(lineX)
		ends := []report.Mark{report.Point(low, line.At(low)), report.Point(high, line.At(high))}
		c.Add(report.Series{Role: "faint", Name: "line", Marks: ends})
	}
	c.Add(rings)
	fitAround(&c.X, xs)
	fitAround(&c.Y, ys)
	caption(&c, "relation", data{"Cases": len(rel.Points), "X": x, "Y": y, "Reason": rel.Reason,
		"Spearman": rel.Spearman, "Line": drawn, "Rings": len(rings.Marks)})
	return c
}

// fitAround leaves room about points for their names.
//
// The script writes names to the right of their points.
func fitAround(a *report.Axis, values []float64) {
	if len(values) > 0 {
		least, most := slices.Min(values), slices.Max(values)
		a.Fit(max((most-least)*0.25, math.Abs(most)*0.02), values...)
	}
}

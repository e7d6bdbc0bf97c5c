package report

import (
	"math"
	"slices"
	"strconv"

	"dmgbench/internal/plan"
	"dmgbench/internal/result"
	"dmgbench/internal/stats"
	"dmgbench/internal/units"
)

// relationCharts set one quantity against another: a named point for each case with
// its two ranks, the line that outliers are told by, and the outliers ringed.
func (v *View) relationCharts() []Chart {
	var out []Chart
	for i, r := range v.Result.Relations {
		if len(r.Points) == 0 {
			continue
		}
		c := Chart{ID: "relation-" + strconv.Itoa(i+1), Section: "relations", Height: 340, Heading: Capitalize(QuantityName(r.YOp)) + " against " + QuantityName(r.XOp),
			X: Axis{Name: QuantityName(r.XOp), Unit: plan.Quantity(r.XOp).Unit()}, Y: Axis{Name: QuantityName(r.YOp), Unit: plan.Quantity(r.YOp).Unit()}, Table: v.Relations[i]}
		ring := Series{Role: "warned", Name: "off the line"}
		for _, p := range r.Points {
			if IsFinite(p.X) && IsFinite(p.Y) {
				c.X.Values, c.Y.Values = append(c.X.Values, p.X), append(c.Y.Values, p.Y)
			}
			name := Plain(p.Label, 60) + " (" + strconv.Itoa(p.RankX) + " → " + strconv.Itoa(p.RankY) + ")"
			tip := QuantityName(r.XOp) + " " + Human(p.X, c.X.Unit) + ", rank " + strconv.Itoa(p.RankX) + "\n" +
				QuantityName(r.YOp) + " " + Human(p.Y, c.Y.Unit) + ", rank " + strconv.Itoa(p.RankY) + TextIf(p.Outlier, "\noff the line of the others")
			c.Series = append(c.Series, Series{Role: "named", Name: name, Points: []any{xy(p.X, p.Y)}, Tips: []string{tip}})
			if p.Outlier {
				ring.Points, ring.Tips = append(ring.Points, xy(p.X, p.Y)), append(ring.Tips, name+"\n"+tip)
			}
		}
		drawn := c.addRelationLine(r)
		if len(ring.Points) > 0 {
			c.Series = append(c.Series, ring)
		}
		c.X.Low, c.X.High, c.X.Ticks = padded(c.X.Values)
		c.Y.Low, c.Y.High, c.Y.Ticks = padded(c.Y.Values)
		c.Sub = Count(len(r.Points), "case") + "; in brackets the rank by " + QuantityName(r.XOp) + " → by " + QuantityName(r.YOp) + ", 1 is the largest; " +
			FirstOf(Plain(r.Reason, 200), "Spearman’s rank correlation "+units.Significant(r.Spearman, 3)) + "."
		c.Notes = []string{"Points are headline figures; their intervals are in the tables of figures. The axes need not begin at 0." +
			TextIf(drawn, " Line: Theil–Sen without what lies off it.") + TextIf(len(ring.Points) > 0, " Rings: off that line, which is a description and no test."), v.Provenance}
		out = append(out, c)
	}
	return out
}

// addRelationLine draws the line of the points that are no outliers, from three on.
func (c *Chart) addRelationLine(r result.Relation) bool {
	var xs, ys []float64
	for _, p := range r.Points {
		if !p.Outlier && IsFinite(p.X) && IsFinite(p.Y) {
			xs, ys = append(xs, p.X), append(ys, p.Y)
		}
	}
	if len(xs) < 3 {
		return false
	}
	l, err := stats.FitTheilSen(xs, ys)
	if err != nil { // all of one x: no line
		return false
	}
	low, high := slices.Min(xs), slices.Max(xs)
	c.Series = append(c.Series, Series{Role: "faint", Name: "line", Points: []any{xy(low, l.At(low)), xy(high, l.At(high))}})
	return true
}

// padded leaves room about points for their names and gives the axis its ticks, the
// first and the last at its ends: the library would set its own beside an end that is
// none of them. An axis near nought begins there.
func padded(values []float64) (low, high *float64, ticks []float64) {
	if len(values) == 0 {
		return nil, nil, nil
	}
	least, most := slices.Min(values), slices.Max(values)
	room := max((most-least)*0.25, math.Abs(most)*0.02)
	from, to := least-room, most+room
	if least >= 0 && least < 0.4*most {
		from = 0
	}
	step := tickStep(to - from)
	if !IsFinite(step) || !IsFinite(to) || !IsFinite(from) {
		return nil, nil, nil
	}
	for k := math.Floor(from / step); len(ticks) == 0 || ticks[len(ticks)-1] <= to; k++ {
		ticks = append(ticks, digits(k*step))
	}
	return pointer(ticks[0]), pointer(ticks[len(ticks)-1]), ticks
}

// tickStep is the round number that goes into a span six times at most.
func tickStep(span float64) float64 {
	if span <= 0 {
		return 1
	}
	power := math.Pow(10, math.Floor(math.Log10(span/6)))
	for _, m := range []float64{1, 2, 5} {
		if span <= 6*m*power {
			return m * power
		}
	}
	return 10 * power
}

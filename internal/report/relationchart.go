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
func (v *view) relationCharts() []chart {
	var out []chart
	for i, r := range v.result.Relations {
		if len(r.Points) == 0 {
			continue
		}
		c := chart{id: "relation-" + strconv.Itoa(i+1), section: "relations", height: 340, heading: title(words(r.YOp)) + " against " + words(r.XOp),
			x: axis{name: words(r.XOp), unit: plan.Quantity(r.XOp).Unit()}, y: axis{name: words(r.YOp), unit: plan.Quantity(r.YOp).Unit()}, table: v.relations[i]}
		ring := series{role: "warned", name: "off the line"}
		for _, p := range r.Points {
			if finite(p.X) && finite(p.Y) {
				c.x.values, c.y.values = append(c.x.values, p.X), append(c.y.values, p.Y)
			}
			name := plain(p.Label, 60) + " (" + strconv.Itoa(p.RankX) + " → " + strconv.Itoa(p.RankY) + ")"
			tip := words(r.XOp) + " " + human(p.X, c.x.unit) + ", rank " + strconv.Itoa(p.RankX) + "\n" +
				words(r.YOp) + " " + human(p.Y, c.y.unit) + ", rank " + strconv.Itoa(p.RankY) + zero(p.Outlier, "\noff the line of the others")
			c.series = append(c.series, series{role: "named", name: name, points: []any{xy(p.X, p.Y)}, tips: []string{tip}})
			if p.Outlier {
				ring.points, ring.tips = append(ring.points, xy(p.X, p.Y)), append(ring.tips, name+"\n"+tip)
			}
		}
		drawn := c.addRelationLine(r)
		if len(ring.points) > 0 {
			c.series = append(c.series, ring)
		}
		c.x.low, c.x.high, c.x.ticks = padded(c.x.values)
		c.y.low, c.y.high, c.y.ticks = padded(c.y.values)
		c.sub = count(len(r.Points), "case") + "; in brackets the rank by " + words(r.XOp) + " → by " + words(r.YOp) + ", 1 is the largest; " +
			firstOf(plain(r.Reason, 200), "Spearman’s rank correlation "+units.Significant(r.Spearman, 3)) + "."
		c.notes = []string{"Points are headline figures; their intervals are in the tables of figures. The axes need not begin at 0." +
			zero(drawn, " Line: Theil–Sen without what lies off it.") + zero(len(ring.points) > 0, " Rings: off that line, which is a description and no test."), v.provenance}
		out = append(out, c)
	}
	return out
}

// addRelationLine draws the line of the points that are no outliers, from three on.
func (c *chart) addRelationLine(r result.Relation) bool {
	var xs, ys []float64
	for _, p := range r.Points {
		if !p.Outlier && finite(p.X) && finite(p.Y) {
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
	c.series = append(c.series, series{role: "faint", name: "line", points: []any{xy(low, l.At(low)), xy(high, l.At(high))}})
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
	if !finite(step) || !finite(to) || !finite(from) {
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

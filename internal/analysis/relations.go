package analysis

import (
	"math"
	"slices"

	"dmgbench/internal/plan"
	"dmgbench/internal/result"
	"dmgbench/internal/stats"
	"dmgbench/internal/wording"
)

// relations are the relations of the plan, on what was measured.
func (s *runData) relations() []result.Relation {
	out := []result.Relation{}
	for _, rel := range s.p.Relations {
		out = append(out, judge{s: s, est: s.headlineName()}.relation(rel))
	}
	return out
}

// relation plots two quantities against each other. A point that lacks one of
// them is left out, and Reason names it.
func (j judge) relation(rel plan.Relation) result.Relation {
	out := result.Relation{Name: rel.Name, XOp: string(rel.X.Quantity), YOp: string(rel.Y.Quantity),
		Points: []result.RelationPoint{}}
	labels := wording.Labels(rel.Over)
	var xs, ys []float64
	for i, sel := range rel.Over {
		x, y := j.operand(narrowed(rel.X, sel)), j.operand(narrowed(rel.Y, sel))
		if f, bad := missingValues(x, y); bad {
			why := wording.Text("of-case", labels[i], wording.Join(f.missing, f.weak))
			out.Reason = wording.Join(out.Reason, why)
			continue
		}
		xs, ys = append(xs, x.headline()), append(ys, y.headline())
		out.Points = append(out.Points, result.RelationPoint{Label: labels[i], X: x.headline(), Y: y.headline()})
	}
	for i := range out.Points {
		out.Points[i].RankX, out.Points[i].RankY = rankFromTop(xs, i), rankFromTop(ys, i)
	}
	for _, i := range offLine(xs, ys) {
		out.Points[i].Outlier = true
	}
	c, err := stats.Spearman(xs, ys)
	if err != nil {
		out.Reason = wording.Join(out.Reason, wording.Text("no-correlation", err))
	}
	out.Spearman = c
	return out
}

// narrowed is an operand inside one selection: the selection overrides its
// keys.
func narrowed(op plan.Operand, sel plan.Selector) plan.Operand {
	for _, c := range sel {
		op.Where = withChoice(op.Where, c.Key, c.Values...)
	}
	return op
}

// rankFromTop is 1 for the largest; equal values share the better rank.
func rankFromTop(xs []float64, i int) int {
	rank := 1
	for _, x := range xs {
		if x > xs[i] {
			rank++
		}
	}
	return rank
}

// minForOutlier is the least number of points for which one of them can be
// called off the line of the others.
const minForOutlier = 5

// offLineZ is the modified z score beyond which a point is off the line, after
// Iglewicz and Hoaglin (How to Detect and Handle Outliers, 1993).
const offLineZ = 3.5

// offLine finds points off the Theil-Sen line, by the distance of their
// residual from the median residual in units of the scaled median absolute
// deviation. The farthest one is taken out and the line drawn anew, as one
// point off drags the others with it. The word describes the picture; it is not
// a test.
func offLine(xs, ys []float64) (out []int) {
	rest := make([]int, len(xs))
	for i := range rest {
		rest[i] = i
	}
	for len(rest) >= minForOutlier {
		x, y := make([]float64, len(rest)), make([]float64, len(rest))
		for k, i := range rest {
			x[k], y[k] = xs[i], ys[i]
		}
		worst := farthest(x, y)
		if worst < 0 {
			break
		}
		out = append(out, rest[worst])
		rest = slices.Delete(rest, worst, worst+1)
	}
	slices.Sort(out)
	return out
}

// farthest is the index of the point farthest off the line, -1 if none is off.
func farthest(xs, ys []float64) int {
	l, err := stats.FitTheilSen(xs, ys)
	if err != nil {
		return -1
	}
	residuals := make([]float64, len(xs))
	for i := range xs {
		residuals[i] = ys[i] - l.At(xs[i])
	}
	mid := median(residuals)
	worst, far := -1, offLineZ*stats.MADScale*mad(residuals)
	for i, r := range residuals {
		if d := math.Abs(r - mid); d > far && d > slack*math.Abs(ys[i]) {
			worst, far = i, d
		}
	}
	return worst
}

package stats

import (
	"crypto/sha256"
	"fmt"
	"math"
)

// TwoLines is a pair of separate lines, one for the points below a break in x
// and one for those above, set against one line for all. It is what a write
// test looks like when a drive throttles or leaves its fast cache.
type TwoLines struct {
	Left, Right Line    // fits of the points below and above Break; residuals in ascending order of x
	Break       float64 // halfway between the neighbouring x on either side
	One         Line    // the single line through all points, residuals in ascending order of x
	SSE         float64 // squared residuals of both lines together
	Gain        float64 // share of the single line's squared residuals that the break removes, 0 … 1
	P           float64 // chance of at least this Gain if one line with normal errors were true
}

// FitTwoLines splits the points, ordered by x, where two separate least squares
// lines leave the smallest sum of squares, with at least minSide points (at
// least [MinForLine]) and two distinct x on each side. Points of one x are
// never separated. The lines need not meet at the break.
//
// The break is chosen after seeing the data, so the F test for two lines with a
// known break would find one in noise far too often. P is therefore the exact
// Monte Carlo p value of the best break: the same search is made on 999 sets of
// normal noise over the same x, seeded from x, and P is the rank of the
// observed Gain among them. Fits over the same x share that noise. Its smallest
// value is 0.001. It assumes errors of one size over all x.
func FitTwoLines(x, y []float64, minSide int) (TwoLines, error) {
	const doing = "fitting two lines"
	if err := checkPairs(doing, x, y, 2*minSide); err != nil {
		return TwoLines{}, err
	}
	x, y = sortedPairs(x, y)
	cuts := cutPoints(x, minSide)
	if len(cuts) == 0 {
		return TwoLines{}, fmt.Errorf("%s: no break leaves two distinct x and %d points on each side: %w",
			doing, minSide, ErrNoSpread)
	}
	one, err := fitLine(doing, x, y, nil)
	if err != nil {
		return TwoLines{}, err
	}
	s := breakSearch{x: x, cuts: cuts, minSide: minSide, left: make([]float64, len(x)+1)}
	cut, _ := s.best(y)
	two := TwoLines{One: one, Break: midpoint(x[cut-1], x[cut])}
	if two.Left, err = fitLine(doing, x[:cut], y[:cut], nil); err != nil {
		return TwoLines{}, err
	}
	if two.Right, err = fitLine(doing, x[cut:], y[cut:], nil); err != nil {
		return TwoLines{}, err
	}
	two.SSE = two.Left.SSE + two.Right.SSE
	two.P = 1
	if one.SSE > roundingNoise(y) {
		two.Gain = max(0, 1-two.SSE/one.SSE)
		two.P = s.chance(two.Gain)
	}
	return two, nil
}

// At returns the fitted y at x, by the line of its side.
func (t TwoLines) At(x float64) float64 {
	if x <= t.Break {
		return t.Left.At(x)
	}
	return t.Right.At(x)
}

// roundingNoise is the sum of squares that the rounding of y alone may leave
// about a line that goes through every point.
func roundingNoise(y []float64) float64 {
	largest := 0.0
	for _, v := range y {
		largest = max(largest, math.Abs(v))
	}
	e := largest * 0x1p-49
	return float64(len(y)) * e * e
}

// cutPoints lists the indices at which the ascending x may be cut in two.
func cutPoints(x []float64, minSide int) []int {
	var cuts []int
	for c := minSide; c <= len(x)-minSide; c++ {
		if x[c-1] < x[c] && x[0] < x[c-1] && x[c] < x[len(x)-1] {
			cuts = append(cuts, c)
		}
	}
	return cuts
}

// breakSearch finds the best cut for any y over the same x in linear time.
type breakSearch struct {
	x       []float64
	cuts    []int
	minSide int
	left    []float64 // scratch: left[c] is the sum of squares about the line through the first c points
}

// best returns the cut with the smallest sum of squares, and the share of the
// single line's sum of squares that it removes.
func (s *breakSearch) best(y []float64) (cut int, gain float64) {
	var m lineMoments
	for i := range s.x {
		m.add(s.x[i], y[i])
		s.left[i+1] = m.sse()
	}
	total := m.sse()
	least := math.Inf(1)
	m = lineMoments{}
	next := len(s.cuts) - 1
	for i := len(s.x) - 1; i >= 0 && next >= 0; i-- {
		m.add(s.x[i], y[i])
		if i != s.cuts[next] {
			continue
		}
		if sse := s.left[i] + m.sse(); !(sse > least) { // a tie goes to the lower break
			least, cut = sse, i
		}
		next--
	}
	if cut == 0 { // nothing compared, the squares having left float64
		cut = s.cuts[0]
	}
	return cut, 1 - least/total
}

// nullGains are the gains of breaks in pure noise, by x and the least number of
// points on a side.
var nullGains nullCache[[sha256.Size]byte]

// chance is the share of the breaks in pure noise over the same x that gain at
// least as much.
func (s *breakSearch) chance(gain float64) float64 {
	null := nullGains.get(digest(s.x, []float64{float64(s.minSide)}), func(null []float64) {
		rng, noise := seeded(s.x), make([]float64, len(s.x))
		for i := range null {
			normals(rng, noise)
			_, null[i] = s.best(noise)
		}
	})
	return nullP(null, gain)
}

// lineMoments are running central moments (Welford's recurrence), from which
// the squares about the least squares line follow without a second pass.
type lineMoments struct{ n, mx, my, sxx, sxy, syy float64 }

func (m *lineMoments) add(x, y float64) {
	m.n++
	dx, dy := x-m.mx, y-m.my
	m.mx += dx / m.n
	m.my += dy / m.n
	m.sxx += dx * (x - m.mx)
	m.sxy += dx * (y - m.my)
	m.syy += dy * (y - m.my)
}

func (m *lineMoments) sse() float64 {
	if m.sxx == 0 {
		return m.syy
	}
	return max(0, m.syy-m.sxy/m.sxx*m.sxy)
}

package stats

import (
	"fmt"
	"math"
	"slices"
)

// Ranks returns the rank of each value, 1 for the smallest, in the order of the
// input. Equal values share the average of the ranks that they take up.
func Ranks(xs []float64) ([]float64, error) {
	if err := checkValues("ranking", xs, 1); err != nil {
		return nil, err
	}
	return ranks(xs), nil
}

func ranks(xs []float64) []float64 {
	s := sorted(xs)
	out := make([]float64, len(xs))
	for i, x := range xs {
		below, _ := slices.BinarySearch(s, x)
		upTo, _ := slices.BinarySearch(s, math.Nextafter(x, math.Inf(1)))
		out[i] = float64(below+upTo+1) / 2
	}
	return out
}

// The ways in which a rank test can come by its p value.
const (
	ByExact       = "exact"                // the distribution of the statistic, all values being different in one of the variables
	ByPermutation = "exact permutation"    // every rearrangement counted, given the ties
	ByNormal      = "normal approximation" // corrected for ties and continuity
	ByStudent     = "Student t approximation"
)

// Correlation is the outcome of a test of two variables for independence.
type Correlation struct {
	Coefficient float64 // -1 … 1
	P           float64 // two-sided p value of "no association"
	N           int     // pairs
	By          string  // how P was computed: one of the By constants
}

// minForCorrelation is where a correlation can first be anything but ±1.
const minForCorrelation = 3

// maxPermuted is the largest n of which all n! rearrangements are tried.
const maxPermuted = 8

// Kendall returns Kendall's tau-b of at least three pairs. P is exact up to 200
// pairs if ties occur in at most one of the variables, exact by permutation up
// to 8 pairs with ties in both, and otherwise from the normal approximation with
// the tie-corrected variance (Kendall, Rank Correlation Methods, 1970).
func Kendall(x, y []float64) (Correlation, error) {
	const doing = "computing Kendall correlation"
	if err := checkCorrelation(doing, x, y); err != nil {
		return Correlation{}, err
	}
	n := len(x)
	s := kendallS(x, y)
	tx, ty := tieSizes(x), tieSizes(y)
	free := func(sizes []int) float64 { // pairs not tied
		pairs := n * (n - 1) / 2
		for _, t := range sizes {
			pairs -= t * (t - 1) / 2
		}
		return float64(pairs)
	}
	tau := float64(s) / math.Sqrt(free(tx)*free(ty))
	c := Correlation{Coefficient: min(max(tau, -1), 1), N: n}
	switch untied := len(tx) == n || len(ty) == n; {
	case untied && n <= maxExactRanks:
		null := newConcordance(shorter(tx, ty))
		c.P, c.By = null.twoSided((s+null.pairs)/2), ByExact
	case n <= maxPermuted:
		c.P = permutationP(x, y, func(x, y []float64) float64 { return float64(kendallS(x, y)) })
		c.By = ByPermutation
	default:
		z := max(0, math.Abs(float64(s))-1) / math.Sqrt(kendallVariance(n, tx, ty))
		c.P, c.By = min(1, 2*NormalCDF(-z)), ByNormal
	}
	return c, checkResult(doing, c.Coefficient, c.P)
}

// Trend tests values in the order of their measurement for a monotone trend, by
// Mann's test (Econometrica 13, 1945): Kendall's tau of the values against their
// position. The sign of the coefficient is the direction of the trend, zero
// where as many pairs rise as fall.
func Trend(xs []float64) (Correlation, error) {
	at := make([]float64, len(xs))
	for i := range at {
		at[i] = float64(i)
	}
	return Kendall(at, xs)
}

// Spearman returns Spearman's rank correlation of at least three pairs: the
// correlation of their average ranks. P is exact by permutation up to 8 pairs,
// and by Student's t with n-2 degrees of freedom above.
func Spearman(x, y []float64) (Correlation, error) {
	const doing = "computing Spearman correlation"
	if err := checkCorrelation(doing, x, y); err != nil {
		return Correlation{}, err
	}
	rx, ry := ranks(x), ranks(y)
	r := pearson(rx, ry)
	c := Correlation{Coefficient: r, N: len(x)}
	if c.N <= maxPermuted {
		c.P, c.By = permutationP(rx, ry, pearson), ByPermutation
		return c, nil
	}
	df := float64(c.N - 2)
	c.P, c.By = perfectP(tieSizes(y), c.N), ByStudent
	if r*r < 1 {
		c.P = max(c.P, tTwoSided(r*math.Sqrt(df/(1-r*r)), df))
	}
	return c, nil
}

// perfectP is the p value of a perfect order or its reverse, below which no
// rearrangement test can go but the t approximation does: 2·∏t!/n!.
func perfectP(ties []int, n int) float64 {
	l := -logGamma(float64(n + 1))
	for _, t := range ties {
		l += logGamma(float64(t + 1))
	}
	return min(1, 2*math.Exp(l))
}

func checkCorrelation(doing string, x, y []float64) error {
	if err := checkPairs(doing, x, y, minForCorrelation); err != nil {
		return err
	}
	for _, v := range [][]float64{x, y} {
		if constant(v) {
			return fmt.Errorf("%s: every value is %v: %w", doing, v[0], ErrNoSpread)
		}
	}
	return nil
}

// kendallS is the number of concordant less the number of discordant pairs.
func kendallS(x, y []float64) int {
	s := 0
	for i := range x {
		for j := range i {
			s += order(x[i], x[j]) * order(y[i], y[j])
		}
	}
	return s
}

func order(a, b float64) int {
	switch {
	case a < b:
		return -1
	case a > b:
		return 1
	}
	return 0
}

// kendallVariance is the variance of S with ties in both variables.
func kendallVariance(n int, tx, ty []int) float64 {
	f := float64(n)
	v := tieVariance(n)
	var pairsX, pairsY, triplesX, triplesY float64
	for _, t := range tx {
		u := float64(t)
		v, pairsX, triplesX = v-tieVariance(t), pairsX+u*(u-1), triplesX+u*(u-1)*(u-2)
	}
	for _, t := range ty {
		u := float64(t)
		v, pairsY, triplesY = v-tieVariance(t), pairsY+u*(u-1), triplesY+u*(u-1)*(u-2)
	}
	return v/18 + pairsX*pairsY/(2*f*(f-1)) + triplesX*triplesY/(9*f*(f-1)*(f-2))
}

// pearson is the correlation of ranks, which are small and vary.
func pearson(x, y []float64) float64 {
	mx, my := mean(x), mean(y)
	var sxy, sxx, syy float64
	for i := range x {
		dx, dy := x[i]-mx, y[i]-my
		sxy, sxx, syy = sxy+dx*dy, sxx+dx*dx, syy+dy*dy
	}
	return min(max(sxy/math.Sqrt(sxx*syy), -1), 1)
}

// permutationP is the share of all rearrangements of y in which the statistic is
// at least as far from zero as it is in the given order.
func permutationP(x, y []float64, statistic func(x, y []float64) float64) float64 {
	least := math.Abs(statistic(x, y)) * (1 - 1e-12) // equal values may round differently
	p := slices.Clone(y)
	reached, all := 0, 0
	var permute func(k int)
	permute = func(k int) { // Heap's algorithm
		if k <= 1 {
			all++
			if math.Abs(statistic(x, p)) >= least {
				reached++
			}
			return
		}
		for i := range k {
			permute(k - 1)
			j := 0
			if k%2 == 0 {
				j = i
			}
			p[j], p[k-1] = p[k-1], p[j]
		}
	}
	permute(len(p))
	return float64(reached) / float64(all)
}

// shorter returns the tie sizes with ties: at most one variable has them.
func shorter(a, b []int) []int {
	if len(a) < len(b) {
		return a
	}
	return b
}

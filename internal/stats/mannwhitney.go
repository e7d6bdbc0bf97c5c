package stats

import (
	"fmt"
	"math"
	"slices"
)

// MannWhitney is the outcome of a Mann–Whitney (Wilcoxon rank sum) test.
type MannWhitney struct {
	U           float64 // pairs (a, b) with a > b, a tie counting one half
	Superiority float64 // U over the number of pairs: the chance that a value of a exceeds one of b
	P           float64 // two-sided p value of "both come from one distribution"
	NA, NB      int     // sizes of the samples
	By          string  // how P was computed: [ByExact], [ByPermutation] or [ByNormal]
}

// maxExactTied is the size of both samples together up to which the permutation
// distribution of the rank sum is counted out when values tie.
const maxExactTied = 60

// MannWhitneyU tests whether the values of one of two independent samples tend
// to be larger; each sample has at least one value. P is twice the smaller tail,
// at most 1: exact up to 200 values in all if none tie, from the exact
// permutation distribution given the ties up to 60, and otherwise from the
// normal approximation corrected for ties and continuity.
//
// Two samples of three cannot give a P below 0.1, nor two of four below 0.028.
func MannWhitneyU(a, b []float64) (MannWhitney, error) {
	const doing = "computing Mann-Whitney test"
	if err := checkValues(doing, a, 1); err != nil {
		return MannWhitney{}, err
	}
	if err := checkValues(doing, b, 1); err != nil {
		return MannWhitney{}, err
	}
	pooled := slices.Concat(a, b)
	r, ties := ranks(pooled), tieSizes(pooled)
	na, nb := float64(len(a)), float64(len(b))
	m := MannWhitney{NA: len(a), NB: len(b)}
	m.U = sum(r[:len(a)]) - na*(na+1)/2
	m.Superiority = m.U / (na * nb)
	switch n := len(pooled); {
	case len(ties) == n && n <= maxExactRanks:
		m.P, m.By = newConcordance([]int{len(a), len(b)}).twoSided(int(m.U)), ByExact
	case n <= maxExactTied:
		m.P, m.By = rankSumP(r, len(a)), ByPermutation
	default:
		m.P, m.By = rankSumNormal(m.U, na, nb, ties), ByNormal
	}
	return m, nil
}

// rankSumP counts, over all ways to choose which of the pooled values form the
// first sample, those with a rank sum at most, and at least, the one seen.
func rankSumP(r []float64, na int) float64 {
	twice := make([]int, len(r)) // average ranks are multiples of one half
	seen, total := 0, 0
	for i, v := range r {
		twice[i] = int(2 * v)
		total += twice[i]
		if i < na {
			seen += twice[i]
		}
	}
	chosen := na
	if rest := len(r) - na; rest < na { // the smaller sample is the cheaper to count
		chosen, seen = rest, total-seen
	}
	// ways[j][s]: subsets of j of the values so far whose doubled ranks sum to s.
	ways := make([][]float64, chosen+1)
	for j := range ways {
		ways[j] = make([]float64, total+1)
	}
	ways[0][0] = 1
	for i, t := range twice {
		for j := min(i+1, chosen); j >= 1; j-- {
			for s := total; s >= t; s-- {
				ways[j][s] += ways[j-1][s-t]
			}
		}
	}
	lower, upper, all := 0.0, 0.0, 0.0
	for s, w := range ways[chosen] {
		all += w
		if s <= seen {
			lower += w
		}
		if s >= seen {
			upper += w
		}
	}
	return min(1, 2*min(lower, upper)/all)
}

func rankSumNormal(u, na, nb float64, ties []int) float64 {
	n := na + nb
	cubes := 0.0
	for _, t := range ties {
		f := float64(t)
		cubes += f * (f*f - 1)
	}
	variance := na * nb / 12 * (n + 1 - cubes/n/(n-1))
	if variance <= 0 { // all values equal
		return 1
	}
	z := max(0, math.Abs(u-na*nb/2)-0.5) / math.Sqrt(variance)
	return min(1, 2*NormalCDF(-z))
}

// maxShiftPairs bounds the differences that [HodgesLehmann] keeps.
const maxShiftPairs = 8_000_000

// HodgesLehmann returns the shift between two independent samples of at least
// one value each: the median of all differences a[i] - b[j] (Hodges and Lehmann,
// Annals of Mathematical Statistics 34, 1963). It is the estimate that belongs
// to [MannWhitneyU]. It takes at most eight million differences.
func HodgesLehmann(a, b []float64) (float64, error) {
	d, err := differences("computing Hodges-Lehmann shift", a, b)
	if err != nil {
		return 0, err
	}
	return medianSorted(d), nil
}

// HodgesLehmannInterval returns the interval of the [HodgesLehmann] shift
// between two order statistics of the differences, with the level that it has.
// The level assumes that the two distributions differ by a shift only; it is
// exact up to 200 values in all, and a lower bound where values tie. No interval
// of level 0.95 exists for two samples of three.
func HodgesLehmannInterval(a, b []float64, level float64) (Interval, error) {
	const doing = "computing Hodges-Lehmann interval"
	if err := checkLevel(doing, level); err != nil {
		return Interval{}, err
	}
	d, err := differences(doing, a, b)
	if err != nil {
		return Interval{}, err
	}
	null := newConcordance([]int{len(a), len(b)})
	k, real := orderFor(len(d), level, null.cdf)
	if k == 0 {
		need := shiftNeeds(len(a), len(b), level)
		return Interval{}, &TooFewError{Doing: doing, Have: min(len(a), len(b)), Need: need}
	}
	iv := Interval{Low: d[k-1], High: d[len(d)-k], Level: real, Method: MethodShift}
	if !null.exact() {
		iv.Method = MethodShiftNormal
	}
	return iv, nil
}

// differences returns all a[i] - b[j], ascending.
func differences(doing string, a, b []float64) ([]float64, error) {
	if err := checkValues(doing, a, 1); err != nil {
		return nil, err
	}
	if err := checkValues(doing, b, 1); err != nil {
		return nil, err
	}
	if len(a) > maxShiftPairs/len(b) {
		return nil, fmt.Errorf("%s: %d by %d values, at most %d pairs: %w", doing, len(a), len(b), maxShiftPairs, ErrTooMany)
	}
	d := make([]float64, 0, len(a)*len(b))
	for _, x := range a {
		for _, y := range b {
			d = append(d, x-y)
		}
	}
	slices.Sort(d)
	return d, checkResult(doing, d...)
}

// shiftNeeds is the size of the smaller sample at which the extreme differences
// reach the level, the larger one being as it is or growing alike:
// 1 - 2/C(na+nb, na) ≥ level.
func shiftNeeds(na, nb int, level float64) int {
	small, large := min(na, nb), max(na, nb)
	for ; small < 64; small++ {
		large = max(large, small)
		choices := math.Exp(-logBeta(float64(small+1), float64(large+1))) / float64(small+large+1)
		if 1-2/choices >= level-1e-12 {
			break
		}
	}
	return small
}

package stats

import (
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"math"
	"math/bits"
	"math/rand/v2"
	"slices"
	"sort"
)

// Resamples is the number of bootstrap samples drawn by [BCa] and [BCaPairs].
// With 9,999 of them the limits of a 95 % interval have a Monte Carlo error of
// a few hundredths of their distance.
const Resamples = 9999

// MinForBCa is the least number of values, or pairs, for a bootstrap interval.
// Resampling cannot show a spread that the sample itself does not hold. In a
// simulation (TestLongBootstrapCoverage), nominal 95 % intervals of the mean of
// normal values cover it in 82 % of the cases for n of 5, 90 % for 10, 92 % for
// 16 and 94 % from 20 on: below 20 the level would be a false statement even in
// the most harmless case. Of log-normal values the mean is covered in 83 % for
// n of 10, 88 % for 20, 91 % for 40 and 93 % for 160, no worse than by Student's
// t; with rare far outliers both fail until the sample has some. Order
// statistics ([MedianInterval]) keep their level at any size.
const MinForBCa = 20

// BCa returns the bias-corrected and accelerated bootstrap interval (Efron,
// Journal of the American Statistical Association 82, 1987) of any statistic of
// at least [MinForBCa] independent values. The acceleration is estimated by the
// jackknife; resamples that give just the estimate count half as below it.
//
// The statistic is called about 10,000 times, each time with a resample of the
// size of xs that it may reorder but must not keep; it must not depend on the
// order of the values, and must be finite. It should be smooth, such as a mean,
// a trimmed mean or a ratio: for the median use [MedianInterval]; minimum and
// maximum have no bootstrap interval. The generator is seeded from a digest of
// the values, whatever their order.
//
// The interval is withheld where its corrected limits lie beyond the resamples
// drawn (levels above about 0.9998).
func BCa(xs []float64, statistic func([]float64) float64, level float64) (Interval, error) {
	const doing = "computing bootstrap interval"
	if err := checkLevel(doing, level); err != nil {
		return Interval{}, err
	}
	if err := checkValues(doing, xs, MinForBCa); err != nil {
		return Interval{}, err
	}
	s := sorted(xs)
	scratch := make([]float64, len(s))
	b := bootstrap{n: len(s), rng: seeded(s), evaluate: func(pick []int) float64 {
		for i, p := range pick {
			scratch[i] = s[p]
		}
		return statistic(scratch[:len(pick)])
	}}
	return b.interval(doing, level)
}

// BCaPairs is [BCa] for a statistic of pairs, such as all bytes over all seconds
// or the slope of a fit: the pairs (x[i], y[i]) are resampled together.
func BCaPairs(x, y []float64, statistic func(x, y []float64) float64, level float64) (Interval, error) {
	const doing = "computing bootstrap interval of pairs"
	if err := checkLevel(doing, level); err != nil {
		return Interval{}, err
	}
	if err := checkPairs(doing, x, y, MinForBCa); err != nil {
		return Interval{}, err
	}
	x, y = sortedPairs(x, y)
	sx, sy := make([]float64, len(x)), make([]float64, len(x))
	b := bootstrap{n: len(x), rng: seeded(x, y), evaluate: func(pick []int) float64 {
		for i, p := range pick {
			sx[i], sy[i] = x[p], y[p]
		}
		return statistic(sx[:len(pick)], sy[:len(pick)])
	}}
	return b.interval(doing, level)
}

// bootstrap resamples the indices 0 … n-1.
type bootstrap struct {
	n        int
	rng      *rand.PCG
	evaluate func(pick []int) float64
}

func (b *bootstrap) interval(doing string, level float64) (Interval, error) {
	pick := make([]int, b.n)
	for i := range pick {
		pick[i] = i
	}
	estimate := b.evaluate(pick)
	accel := b.acceleration(pick)
	draws := make([]float64, Resamples)
	for d := range draws {
		for i := range pick {
			pick[i] = below(b.rng, b.n)
		}
		draws[d] = b.evaluate(pick)
	}
	if err := checkResult(doing, append(slices.Clone(draws), estimate, accel)...); err != nil {
		return Interval{}, err
	}
	slices.Sort(draws)
	lowP, highP, err := correctedTails(doing, draws, estimate, accel, level)
	if err != nil {
		return Interval{}, err
	}
	low, high := quantileSorted(draws, lowP), quantileSorted(draws, highP)
	return Interval{Low: low, High: high, Level: level, Method: MethodBCa}, nil
}

// acceleration is Efron's a-hat, from the values left when one index at a time
// is left out. It is zero where they are all equal.
func (b *bootstrap) acceleration(all []int) float64 {
	without := make([]float64, b.n)
	rest := make([]int, b.n-1)
	for i := range without {
		copy(rest, all[:i])
		copy(rest[i:], all[i+1:])
		without[i] = b.evaluate(rest)
	}
	if constant(without) {
		return 0
	}
	// Divided by the largest distance, since third powers leave float64 early.
	m, scale := mean(without), 0.0
	for _, v := range without {
		scale = max(scale, math.Abs(m-v))
	}
	squares, cubes := 0.0, 0.0
	for _, v := range without {
		d := (m - v) / scale
		squares += d * d
		cubes += d * d * d
	}
	return cubes / (6 * math.Pow(squares, 1.5))
}

// correctedTails returns the two probabilities at which the quantiles of the
// sorted draws are the limits of the interval.
func correctedTails(doing string, draws []float64, estimate, accel, level float64) (low, high float64, err error) {
	n := float64(len(draws))
	under := float64(sort.SearchFloat64s(draws, estimate))
	upTo := float64(sort.Search(len(draws), func(i int) bool { return draws[i] > estimate }))
	if draws[0] == draws[len(draws)-1] && draws[0] == estimate {
		return 0.5, 0.5, nil // the statistic does not vary at all
	}
	bias := NormalQuantile((under + upTo) / 2 / n)
	tail := func(p float64) float64 {
		z := bias + NormalQuantile(p)
		if 1-accel*z <= 0 {
			return math.NaN()
		}
		return NormalCDF(bias + z/(1-accel*z))
	}
	low, high = tail((1-level)/2), tail((1+level)/2)
	if !(low*(n+1) >= 1) || !((1-high)*(n+1) >= 1) {
		return 0, 0, fmt.Errorf("%s: corrected limits lie beyond %d resamples: %w", doing, len(draws), ErrRange)
	}
	return low, high, nil
}

// seeded returns a generator whose seed is a digest of the columns. PCG is used
// bare, without the methods of rand.Rand: its stream is a published algorithm,
// so that a result can be recomputed after any upgrade of Go.
func seeded(columns ...[]float64) *rand.PCG {
	sum := digest(columns...)
	return rand.NewPCG(binary.LittleEndian.Uint64(sum[:]), binary.LittleEndian.Uint64(sum[8:]))
}

// digest tells columns of values apart.
func digest(columns ...[]float64) (sum [sha256.Size]byte) {
	h := sha256.New()
	var word [8]byte
	for _, column := range columns {
		binary.LittleEndian.PutUint64(word[:], uint64(len(column)))
		h.Write(word[:])
		for _, v := range column {
			binary.LittleEndian.PutUint64(word[:], math.Float64bits(v+0)) // -0 is 0
			h.Write(word[:])
		}
	}
	h.Sum(sum[:0])
	return sum
}

// below draws a number in [0, n). The bias of the multiplication, n/2⁶⁴, is far
// below anything that a sample can show.
func below(rng *rand.PCG, n int) int {
	hi, _ := bits.Mul64(rng.Uint64(), uint64(n))
	return int(hi)
}

// normals fills out with standard normal draws (Box and Muller, 1958).
func normals(rng *rand.PCG, out []float64) {
	unit := func() float64 { return (float64(rng.Uint64()>>11) + 0.5) / (1 << 53) }
	for i := 0; i < len(out); i += 2 {
		r := math.Sqrt(-2 * math.Log(unit()))
		sin, cos := math.Sincos(2 * math.Pi * unit())
		out[i] = r * cos
		if i+1 < len(out) {
			out[i+1] = r * sin
		}
	}
}

// sortedPairs returns copies ordered by x, then y.
func sortedPairs(x, y []float64) (sx, sy []float64) {
	order := make([]int, len(x))
	for i := range order {
		order[i] = i
	}
	slices.SortFunc(order, func(a, b int) int {
		switch {
		case x[a] < x[b] || x[a] == x[b] && y[a] < y[b]:
			return -1
		case x[a] == x[b] && y[a] == y[b]:
			return 0
		}
		return 1
	})
	sx, sy = make([]float64, len(x)), make([]float64, len(x))
	for i, o := range order {
		sx[i], sy[i] = x[o], y[o]
	}
	return sx, sy
}

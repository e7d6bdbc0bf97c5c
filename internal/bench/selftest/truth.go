package selftest

import (
	"math"

	"dmgbench/internal/analysis/stats"
	"dmgbench/internal/bench/engine/simulated"
)

// maxCall is the most bytes of one call, as the workload makes them.
const maxCall = 1 << 30

// truths are what the estimators of a rate tend to with ever more files of the
// same sizes under a law, from the law alone. The sizes ascend.
//
// Only laws with file noise, outliers and a slow mode have such a limit; a slow
// first file, a cliff or a drift depend on the position of a file in its step.
func truths(l simulated.Law, sizes []int64) map[string]float64 {
	// Means of the factor of a time, and of 1 / factor without the noise
	longer, shorter := 0.0, 0.0
	for _, k := range kindsOfFiles(l) {
		longer, shorter = longer+k.share*k.factor, shorter+k.share/k.factor
	}
	n := len(sizes)
	// Bytes; seconds without noise, and their mean with it; weights of a line
	size, clean, expected, weights := make([]float64, n), make([]float64, n), make([]float64, n), make([]float64, n)
	rates := make([]float64, n) // without noise
	bytes, seconds, rate := 0.0, 0.0, 0.0
	for i, b := range sizes {
		calls := (b + maxCall - 1) / maxCall
		size[i] = float64(b)
		clean[i] = float64(calls)*l.Latency.Seconds() + size[i]/l.Write
		expected[i], weights[i], rates[i] = clean[i]*longer, 1/(size[i]*size[i]), size[i]/clean[i]
		bytes, seconds, rate = bytes+size[i], seconds+expected[i], rate+rates[i]
	}
	mix := mixtureOf(l, rates)
	out := map[string]float64{
		"aggregate": bytes / seconds,
		"mean":      rate / float64(n) * math.Exp(l.FileNoise*l.FileNoise) * shorter,
		"median":    mix.quantile(0.5),
		"trimmed":   mix.meanBetween(mix.quantile(0.2), mix.quantile(0.8)) / 0.6,
	}
	if plain, err := stats.FitLine(size, expected); err == nil {
		out["least-squares"] = 1 / plain.Slope
	}
	if w, err := stats.FitWeightedLine(size, expected, weights); err == nil {
		out["weighted"], out["latency"] = 1/w.Slope, w.Intercept
	}
	if n > 1 {
		out["theil-sen"] = 1 / medianSlope(l, size, clean)
	}
	return out
}

// fileKind is a share of the files with a factor of their times in common.
type fileKind struct{ share, factor float64 }

// kindsOfFiles are the files of a law: normal ones, outliers, those of the slow
// mode, and both.
func kindsOfFiles(l simulated.Law) (kinds []fileKind) {
	for _, slow := range []fileKind{{1 - l.Slow, 1}, {l.Slow, l.SlowFactor}} {
		for _, far := range []fileKind{{1 - l.Outliers, 1}, {l.Outliers, l.OutlierFactor}} {
			if share := slow.share * far.share; share > 0 {
				kinds = append(kinds, fileKind{share, slow.factor * far.factor})
			}
		}
	}
	return kinds
}

// component is one log-normal part of the distribution of a file's rate.
type component struct{ weight, logMedian float64 }

// mixture is the distribution of the rates of files of several sizes.
type mixture struct {
	parts []component
	sigma float64
}

// mixtureOf is the distribution of rates under a law; rates are those of files
// without noise.
func mixtureOf(l simulated.Law, rates []float64) mixture {
	m := mixture{sigma: max(l.FileNoise, 1e-9)}
	for _, rate := range rates {
		center := math.Log(rate) + l.FileNoise*l.FileNoise/2
		for _, k := range kindsOfFiles(l) {
			m.parts = append(m.parts, component{k.share / float64(len(rates)), center - math.Log(k.factor)})
		}
	}
	return m
}

func (m mixture) below(rate float64) (p float64) {
	for _, c := range m.parts {
		p += c.weight * stats.NormalCDF((math.Log(rate)-c.logMedian)/m.sigma)
	}
	return p
}

func (m mixture) quantile(p float64) float64 {
	return bisect(1e-3, 1e15, func(rate float64) bool { return m.below(rate) < p })
}

// meanBetween is the integral of the rate over its distribution from low to
// high.
func (m mixture) meanBetween(low, high float64) (sum float64) {
	for _, c := range m.parts {
		mean := math.Exp(c.logMedian + m.sigma*m.sigma/2)
		upTo := func(rate float64) float64 {
			return stats.NormalCDF((math.Log(rate) - c.logMedian - m.sigma*m.sigma) / m.sigma)
		}
		sum += c.weight * mean * (upTo(high) - upTo(low))
	}
	return sum
}

// bisect finds where below turns false between two positive numbers.
func bisect(low, high float64, below func(float64) bool) float64 {
	for range 200 {
		mid := math.Sqrt(low * high)
		// No number is between them
		if mid <= low || mid >= high {
			return mid
		}
		if below(mid) {
			low = mid
		} else {
			high = mid
		}
	}
	return math.Sqrt(low * high)
}

// factorGrid is at how many quantiles a distribution of factors is looked at.
const factorGrid = 2000

// medianSlope is the slope b for which a pair of files of different size is
// above and below it equally often: what Theil and Sen's median tends to.
func medianSlope(l simulated.Law, size, clean []float64) float64 {
	// Equally likely factors of a file's time, ascending: a time is longer by
	// what divides the rate.
	factors, rest := make([]float64, factorGrid), make([][]float64, len(size))
	rates := mixtureOf(l, []float64{1})
	for i := range factors {
		factors[i] = 1 / rates.quantile(1-(float64(i)+0.5)/factorGrid)
	}
	return bisect(1e-15, 1e3, func(b float64) bool {
		// What is left of each time, ascending
		for i := range size {
			rest[i] = rest[i][:0]
			for _, f := range factors {
				rest[i] = append(rest[i], clean[i]*f-b*size[i])
			}
		}
		steeper, pairs := 0.0, 0.0
		for small := range size {
			for large := small + 1; large < len(size); large++ {
				steeper += above(rest[large], rest[small])
				pairs++
			}
		}
		return steeper > pairs/2
	})
}

// above is the share of pairs (a, b) in which a is larger; both ascend.
func above(as, bs []float64) float64 {
	count, k := 0, 0
	for _, a := range as {
		for k < len(bs) && bs[k] < a {
			k++
		}
		count += k
	}
	return float64(count) / float64(len(as)) / float64(len(bs))
}

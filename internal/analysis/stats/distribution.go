package stats

import "math"

// NormalCDF returns the probability that a standard normal variable is at most
// z, with full relative precision in the lower tail. It is NaN for NaN.
func NormalCDF(z float64) float64 { return math.Erfc(-z/math.Sqrt2) / 2 }

// StudentCDF returns the probability that a variable with Student's t
// distribution with df degrees of freedom is at most t. df need not be an integer
// (as in Welch's t-test). It is NaN for NaN and for df < 1.
func StudentCDF(t, df float64) float64 {
	switch {
	case math.IsNaN(t) || !(df >= 1):
		return math.NaN()
	case t > 0:
		return 1 - studentTail(t, df)
	}
	return studentTail(-t, df)
}

// maxStudentDF is the number of degrees of freedom above which studentTail uses
// the normal distribution: its relative error near t = 2 is then below one
// millionth, while the continued fraction loses digits to cancellation.
const maxStudentDF = 1e7

// studentTail is P(T > t) for t ≥ 0 (Abramowitz and Stegun 26.7.1, by 26.5.27).
func studentTail(t, df float64) float64 {
	if df > maxStudentDF {
		return NormalCDF(-t)
	}
	// df/(df+t²) and its complement to 1, neither by subtraction
	r := t / math.Sqrt(df)
	r *= r
	return betaInc(df/2, 0.5, 1/(1+r), r/(1+r)) / 2
}

// StudentQuantile returns the t with StudentCDF(t, df) = p. It is NaN where p
// is not in [0, 1] or df < 1, -Inf at p = 0 and +Inf at p = 1.
func StudentQuantile(p, df float64) float64 {
	if !(p >= 0 && p <= 1) || !(df >= 1) {
		return math.NaN()
	}
	// The quantile is the t ≥ 0 that is exceeded with probability q ≤ ½, or -t.
	sign, q := -1.0, p
	if p > 0.5 {
		sign, q = 1, 1-p
	}
	switch q {
	case 0:
		return math.Inf(int(sign))
	case 0.5:
		return 0
	}
	// Bisect on log t until the ends are adjacent numbers, starting from the
	// logarithms of the smallest and the largest positive float64.
	low, high := -746.0, 710.0
	for {
		mid := midpoint(low, high)
		if mid == low || mid == high {
			return sign * math.Exp(mid)
		}
		if studentTail(math.Exp(mid), df) > q {
			low = mid
		} else {
			high = mid
		}
	}
}

// tCritical is the half-width, in standard errors, of a two-sided t interval of a
// confidence level.
func tCritical(level, df float64) float64 { return -StudentQuantile((1-level)/2, df) }

// binomialHalfCDF is P(X ≤ k), k ≥ 0, for X the number of heads among n tosses
// of a fair coin (Abramowitz and Stegun 26.5.24).
func binomialHalfCDF(k, n int) float64 {
	if k >= n {
		return 1
	}
	return betaInc(float64(n-k), float64(k+1), 0.5, 0.5)
}

// betaInc is the regularised incomplete beta function I_x(a, b). The caller
// gives y = 1-x as well, since the subtraction loses precision when x is near 1.
func betaInc(a, b, x, y float64) float64 {
	switch {
	case x <= 0:
		return 0
	case y <= 0:
		return 1
	}
	lx, ly := math.Log(x), math.Log(y)
	if x > 0.5 {
		lx = math.Log1p(-y)
	} else {
		ly = math.Log1p(-x)
	}
	lgammaA, _ := math.Lgamma(a)
	lgammaB, _ := math.Lgamma(b)
	lgammaAB, _ := math.Lgamma(a + b)
	front := math.Exp(a*lx + b*ly - (lgammaA + lgammaB - lgammaAB))
	if x < (a+1)/(a+b+2) {
		return min(1, front*betaFraction(a, b, x)/a)
	}
	return max(0, 1-front*betaFraction(b, a, y)/b)
}

// betaFraction is the continued fraction of the incomplete beta function
// (DLMF 8.17.22), evaluated by Lentz's method. It converges within a few times
// √max(a, b) terms on the side of the mean where betaInc calls it.
func betaFraction(a, b, x float64) float64 {
	const tiny, tolerance = 1e-300, 1e-16
	nonzero := func(v float64) float64 {
		if math.Abs(v) < tiny {
			return tiny
		}
		return v
	}
	c, d := 1.0, 1/nonzero(1-(a+b)*x/(a+1))
	h := d
	for m := 1.0; m < 100_000; m++ {
		even := m * (b - m) * x / ((a + 2*m - 1) * (a + 2*m))
		odd := -(a + m) * (a + b + m) * x / ((a + 2*m) * (a + 2*m + 1))
		for _, coefficient := range []float64{even, odd} {
			d = 1 / nonzero(1+coefficient*d)
			c = nonzero(1 + coefficient/c)
			h *= d * c
		}
		if math.Abs(d*c-1) <= tolerance {
			break
		}
	}
	return h
}

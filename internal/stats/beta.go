package stats

import "math"

// betaInc is the regularised incomplete beta function I_x(a, b). The caller
// gives y = 1-x as well, since the subtraction would lose what matters when x
// is near 1.
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
	front := math.Exp(a*lx + b*ly - logBeta(a, b))
	if x < (a+1)/(a+b+2) {
		return min(1, front*betaFraction(a, b, x)/a)
	}
	return max(0, 1-front*betaFraction(b, a, y)/b)
}

// betaFraction is the continued fraction of the incomplete beta function
// (DLMF 8.17.22), evaluated by Lentz's method. It converges within a few times
// √max(a, b) terms on the side of the mean where betaInc calls it.
func betaFraction(a, b, x float64) float64 {
	const tiny, enough = 1e-300, 1e-16
	away := func(v float64) float64 {
		if math.Abs(v) < tiny {
			return tiny
		}
		return v
	}
	c, d := 1.0, 1/away(1-(a+b)*x/(a+1))
	h := d
	for m := 1.0; m < 100_000; m++ {
		even := m * (b - m) * x / ((a + 2*m - 1) * (a + 2*m))
		d = 1 / away(1+even*d)
		c = away(1 + even/c)
		h *= d * c
		odd := -(a + m) * (a + b + m) * x / ((a + 2*m) * (a + 2*m + 1))
		d = 1 / away(1+odd*d)
		c = away(1 + odd/c)
		h *= d * c
		if math.Abs(d*c-1) <= enough {
			break
		}
	}
	return h
}

// logBeta is log B(a, b). Three log-gammas of a large sample cancel to noise, so
// from 10 on the Stirling form is used, with its correction terms (as R's lbeta
// does, after Fullerton's SLATEC routine ALBETA).
func logBeta(a, b float64) float64 {
	p, q := min(a, b), max(a, b)
	switch {
	case p >= 10:
		corr := stirling(p) + stirling(q) - stirling(p+q)
		return -math.Log(q)/2 + math.Log(2*math.Pi)/2 + corr +
			(p-0.5)*math.Log(p/(p+q)) + q*math.Log1p(-p/(p+q))
	case q >= 10:
		corr := stirling(q) - stirling(p+q)
		return logGamma(p) + corr + p - p*math.Log(p+q) + (q-0.5)*math.Log1p(-p/(p+q))
	}
	return logGamma(p) + logGamma(q) - logGamma(p+q)
}

// stirling is log Γ(x) - [(x-½)·log x - x + ½·log 2π] for x ≥ 10, to the last
// bit of its sum with the rest (Abramowitz and Stegun 6.1.41).
func stirling(x float64) float64 {
	r := 1 / (x * x)
	return (1.0/12 - r*(1.0/360-r*(1.0/1260-r*(1.0/1680-r*(1.0/1188-r*691.0/360360))))) / x
}

func logGamma(x float64) float64 {
	v, _ := math.Lgamma(x)
	return v
}

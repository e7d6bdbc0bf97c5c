package simulated

import (
	"hash/fnv"
	"math"
)

// source is a stateless generator: what it gives follows from seed and names, so
// that no draw depends on what was drawn before.
type source uint64

// of is the source of something named within s.
func (s source) of(names ...string) source {
	h := fnv.New64a()
	var seed [8]byte
	for i := range seed {
		seed[i] = byte(s >> (8 * i))
	}
	h.Write(seed[:])
	for _, n := range names {
		h.Write([]byte(n))
		h.Write([]byte{0})
	}
	return source(mix(h.Sum64()))
}

// mix is the finaliser of SplitMix64 (Steele, Lea and Flood, 2014).
func mix(x uint64) uint64 {
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	return x ^ x>>31
}

// uniform is the k-th number of the source in (0, 1).
func (s source) uniform(k uint64) float64 {
	x := mix(uint64(s) + (k+1)*0x9e3779b97f4a7c15)
	return (float64(x>>11) + 0.5) / (1 << 53)
}

// normal is a standard normal number (Box and Muller, 1958) of numbers k and k+1.
func (s source) normal(k uint64) float64 {
	return math.Sqrt(-2*math.Log(s.uniform(k))) * math.Cos(2*math.Pi*s.uniform(k+1))
}

// lognormal has median 1 and a logarithm of standard deviation sigma.
func (s source) lognormal(sigma float64) float64 {
	if sigma == 0 {
		return 1
	}
	return math.Exp(sigma * s.normal(0))
}

// fileFactor is the factor of one file by law: noise of mean 1 and outliers, both
// from the source of that file alone.
func (l Law) fileFactor(s source) float64 {
	f := 1.0
	if l.FileNoise > 0 {
		f = math.Exp(l.FileNoise*s.normal(0) - l.FileNoise*l.FileNoise/2)
	}
	if l.Outliers > 0 && s.uniform(2) < l.Outliers {
		f *= l.OutlierFactor
	}
	return f
}

// slow reports whether the n-th file (from 0) of a direction is in a slow stretch,
// from the source of that direction.
func (l Law) slow(s source, n int) bool {
	return l.Slow > 0 && s.uniform(uint64(n/l.SlowFiles)) < l.Slow
}

package stats

import (
	"crypto/sha256"
	"encoding/binary"
	"math"
	"math/rand/v2"
	"slices"
	"sort"
	"sync"
)

// simulations is the number of samples that a simulated null distribution has:
// it fixes the resolution of its p values at 1/1000.
const simulations = 999

// maxNulls bounds a [nullCache]: each distribution takes 8 kB.
const maxNulls = 256

// nullCache keeps simulated null distributions, since the steps of one protocol
// ask for the same few again and again.
type nullCache[K comparable] struct {
	mu    sync.Mutex
	known map[K][]float64
}

// get returns the ascending null distribution of a key; fill draws it on the
// first call.
func (c *nullCache[K]) get(key K, fill func(null []float64)) []float64 {
	c.mu.Lock()
	defer c.mu.Unlock()
	if null, ok := c.known[key]; ok {
		return null
	}
	if len(c.known) >= maxNulls || c.known == nil {
		c.known = map[K][]float64{}
	}
	null := make([]float64, simulations)
	fill(null)
	slices.Sort(null)
	c.known[key] = null
	return null
}

// nullP returns the p value of a statistic: the share of the null distribution,
// the statistic itself included, that is at least as large.
func nullP(null []float64, statistic float64) float64 {
	reached := 1 + len(null) - sort.SearchFloat64s(null, statistic)
	return float64(reached) / (simulations + 1)
}

// seeded returns a generator seeded with a digest of the columns. PCG is used
// bare, without the methods of rand.Rand: its stream is a published algorithm,
// so that a result can be recomputed after any upgrade of Go.
func seeded(columns ...[]float64) *rand.PCG {
	sum := digest(columns...)
	return rand.NewPCG(binary.LittleEndian.Uint64(sum[:]), binary.LittleEndian.Uint64(sum[8:]))
}

// digest returns a hash that differs between different columns of values.
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

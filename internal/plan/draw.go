package plan

import (
	"hash/fnv"
	"math"
	"math/rand/v2"

	"dmgbench/internal/units"
)

// Draw gives the sizes of each set in listed order. Explicit sizes stand as
// written; draws from a range come from seed and the file set's name alone, so
// that every case and every machine gets the same sizes. A part with fewer sets
// than others is missing from the later ones.
func (fs FileSet) Draw(seed uint64) [][]units.Bytes {
	var sets [][]units.Bytes
	for i, p := range fs.Parts {
		source := rand.New(rand.NewPCG(seed, partKey(fs.Name, i)))
		for s := range max(p.Sets, 1) {
			if s == len(sets) {
				sets = append(sets, nil)
			}
			sets[s] = append(sets[s], p.Sizes...)
			for range p.Count {
				sets[s] = append(sets[s], p.draw(source))
			}
		}
	}
	return sets
}

func partKey(name string, part int) uint64 {
	h := fnv.New64a()
	h.Write([]byte(name))
	h.Write([]byte{0, byte(part), byte(part >> 8)})
	return h.Sum64()
}

// draw is one size from the range, both ends included.
func (p FilePart) draw(source *rand.Rand) units.Bytes {
	if p.Spread == "linear" {
		return p.Low + units.Bytes(source.Int64N(int64(p.High-p.Low)+1))
	}
	return min(max(geometric(p.Low, p.High, source.Uint64()), p.Low), p.High)
}

// geometric is low·(high/low)^u for the fraction u that the bits give. It halves
// the range at its geometric mean, bit by bit: square roots are rounded the same
// on every processor, which exponentials and logarithms are not.
func geometric(low, high units.Bytes, bits uint64) units.Bytes {
	a, b := math.Sqrt(float64(low)), math.Sqrt(float64(high))
	for i := range 53 {
		mid := math.Sqrt(a) * math.Sqrt(b)
		if bits>>(63-i)&1 == 1 {
			a = mid
		} else {
			b = mid
		}
	}
	return units.Bytes(math.Round(a * a))
}

// Count is the number of files and their bytes in one write of the set.
func (fs FileSet) Count(seed uint64) (files int, size units.Bytes) {
	for _, set := range fs.Draw(seed) {
		files += len(set)
		for _, b := range set {
			size += b
		}
	}
	return files, size
}

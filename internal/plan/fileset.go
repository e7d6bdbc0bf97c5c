package plan

import (
	"hash/fnv"
	"math"
	"math/rand/v2"
	"reflect"

	"dmgbench/internal/system/units"
)

// Draw gives the sizes of each set in listed order. Explicit sizes stay as
// written; draws from a range depend on the seed and the file set's name alone,
// so that every case and every machine gets the same sizes. A part with fewer
// sets than others is missing from the later ones.
func (fs FileSet) Draw(seed uint64) [][]units.Bytes {
	var sets [][]units.Bytes
	for i, p := range fs.Parts {
		h := fnv.New64a() // parts and sets of other names get other draws
		h.Write(append([]byte(fs.Name), 0, byte(i), byte(i>>8)))
		source := rand.New(rand.NewPCG(seed, h.Sum64()))
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

// draw is one size from the range, both ends included.
func (p FilePart) draw(source *rand.Rand) units.Bytes {
	low, high := p.Range[0], p.Range[1]
	if p.Spread == "linear" {
		return low + units.Bytes(source.Int64N(int64(high-low)+1))
	}
	return min(max(geometric(low, high, source.Uint64()), low), high)
}

// geometric is low·(high/low)^u for the fraction u with these bits. It halves
// the range at its geometric mean, bit by bit: square roots are rounded the
// same on every processor, exponentials and logarithms are not.
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

// total is the number of sets of the part that has most, and that of the files
// of one write.
func (fs FileSet) total() (sets, files int) {
	for _, p := range fs.Parts {
		sets, files = max(sets, p.Sets), files+(len(p.Sizes)+p.Count)*p.Sets
	}
	return sets, files
}

// finishPart checks that a part has either sizes or a range with a count, and
// fills in sets and spread.
func finishPart(r *reader, n *node, p *FilePart) {
	sizes, span, count := n.get("sizes"), n.get("range"), n.get("count")
	switch {
	case (sizes == nil) == (span == nil) || (count == nil) != (span == nil):
		r.problem(n.key, "sizes", "a file set has either sizes, or range and count").
			hintf("use parts = [ { sizes = … }, { range = …, count = … } ] for a mixture")
	case len(p.Range) == 2 && p.Range[0] > p.Range[1]:
		r.bad(span, "range: %s is more than %s", p.Range[0], p.Range[1])
	}
	p.Sets = max(p.Sets, 1)
	if span != nil && p.Spread == "" {
		p.Spread = "log"
	}
}

// maxFiles bounds one file set, since its draws are kept in memory.
const maxFiles = 1_000_000

// finishFiles checks that sizes are in the table or in parts, and bounds the
// number of files and bytes.
func finishFiles(r *reader, n *node, f *FileSet) {
	if n.get("parts") == nil {
		finishPart(r, n, &f.Single)
		f.Parts, f.Single = []FilePart{f.Single}, FilePart{}
	} else if !reflect.ValueOf(f.Single).IsZero() || len(f.Parts) == 0 {
		r.badKey(n.get("parts"), "parts contain all sizes, ranges and sets of a file set, or are left out")
	}
	files, size := 0, 0.0 // the sum of a careless plan may not be an integer
	for _, p := range f.Parts {
		files += min((len(p.Sizes)+p.Count)*p.Sets, 1<<40)
		for _, s := range p.Sizes {
			size += float64(s) * float64(p.Sets)
		}
		if len(p.Range) == 2 {
			size += float64(p.Range[1]) * float64(p.Count) * float64(p.Sets)
		}
	}
	if size > float64(maxSize) || files > maxFiles {
		r.badKey(n, "file set %q has %d files with up to %.3g EB, more than %d files or %s", n.name, files, size/1e18,
			maxFiles, maxSize)
	}
	if (f.Data == "mixed") != (f.Compressible > 0) || f.Compressible > 1 {
		r.badKey(n, "data = \"mixed\" needs compressible, the share of zeros up to 100%%, and other data has none")
	}
}

// fileForm is a file set as the canonical form writes it: one part in the table
// itself.
func fileForm(v reflect.Value) reflect.Value {
	f := v.Interface().(FileSet)
	if len(f.Parts) == 1 {
		f.Single, f.Parts = f.Parts[0], nil
	}
	return reflect.ValueOf(&f).Elem()
}

// Prose describes a file set: number, sizes, order and data of its files.
func (f *FileSet) Prose() string { return executeProse("files", f) }

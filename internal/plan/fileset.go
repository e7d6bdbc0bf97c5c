package plan

import (
	"hash/fnv"
	"math"
	"math/rand/v2"

	"dmgbench/internal/units"
)

// Draw gives the sizes of each set in listed order. Explicit sizes stay as
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

// fileForm is a file set as written: sizes are in the table itself or in parts.
type fileForm struct {
	FileSet
	one FilePart
}

func partKeys[T any](at func(*T) *FilePart) []key[T] {
	return []key[T]{
		listKey("sizes", sizeType, func(t *T, v []string) { at(t).Sizes = parseSizes(v) },
			func(t *T) []string { return sizeTexts(at(t).Sizes) }),
		listKey("range", sizeType, func(t *T, v []string) {
			if s := parseSizes(v); len(s) == 2 {
				at(t).Low, at(t).High = s[0], s[1]
			}
		}, func(t *T) []string {
			if at(t).High == 0 {
				return nil
			}
			return sizeTexts([]units.Bytes{at(t).Low, at(t).High})
		}),
		numberKey("count", 1, 1000000, func(t *T) *int { return &at(t).Count }),
		enumKey("spread", func(t *T) *string { return &at(t).Spread }, "log", "linear"),
		numberKey("sets", 1, 100000, func(t *T) *int { return &at(t).Sets }),
	}
}

func parseSizes(list []string) []units.Bytes {
	out := make([]units.Bytes, len(list))
	for i, s := range list {
		out[i], _ = units.ParseBytes(s)
	}
	return out
}

func sizeTexts(list []units.Bytes) []string {
	out := make([]string, len(list))
	for i, s := range list {
		out[i] = s.String()
	}
	return out
}

var partTable = table[FilePart]{name: "part", keys: partKeys(func(p *FilePart) *FilePart { return p }),
	finish: finishPart}

func finishPart(r *reader, n *node, p *FilePart) {
	sizes, span, count := n.get("sizes"), n.get("range"), n.get("count")
	switch {
	case r.broken:
	case sizes == nil && span == nil:
		r.problem(n.key, "sizes", "no file sizes").hintf("give sizes = [ … ], or range = [ … ] and count")
	case sizes != nil && span != nil:
		r.problem(span.key, "range", "sizes and range contradict each other").
			hintf("use parts = [ { sizes = … }, { range = … } ] for a mixture")
	case sizes != nil && len(sizes.items) == 0 && sizes.kind == arrayNode:
		r.problem(sizes.off, "sizes", "sizes: the list is empty")
	case span != nil && span.kind == arrayNode && len(span.items) != 2:
		r.problem(span.off, "range", "range: want two sizes, these are %d", len(span.items))
	case span != nil && p.Low > p.High:
		r.problem(span.off, "range", "range: %s is more than %s", p.Low, p.High)
	case span != nil && count == nil:
		r.problem(n.key, "count", "range needs count, the number of draws")
	}
	for _, name := range []string{"count", "spread"} {
		if k := n.get(name); k != nil && span == nil {
			r.problem(k.key, name, "%s has no meaning without range", name)
		}
	}
	p.Sets = max(p.Sets, 1)
	if span != nil && p.Spread == "" {
		p.Spread = "log"
	}
}

var fileTable = table[fileForm]{name: "file set", keys: append(partKeys(func(f *fileForm) *FilePart { return &f.one }),
	tablesKey("parts", func() *table[FilePart] { return &partTable }, func(f *fileForm) *[]FilePart { return &f.Parts }),
	enumKey("order", func(f *fileForm) *string { return &f.Order }, "shuffled", "as-listed",
		"shuffled-all").or(`"shuffled"`),
	enumKey("data", func(f *fileForm) *string { return &f.Data }, "random", "zero", "mixed", "text").or(`"random"`),
	shareKey("compressible", func(f *fileForm) *units.Share { return &f.Compressible }),
), finish: finishFiles}

// maxFiles bounds one file set: a plan is no place for a denial of service.
const maxFiles = 1_000_000

func finishFiles(r *reader, n *node, f *fileForm) {
	if parts := n.get("parts"); parts == nil {
		finishPart(r, n, &f.one)
		f.Parts = []FilePart{f.one}
	} else {
		for _, name := range []string{"sizes", "range", "count", "spread", "sets"} {
			if k := n.get(name); k != nil {
				r.problem(k.key, name, "%s and parts contradict each other", name).hintf("move %s into a part", name)
			}
		}
		if len(parts.items) == 0 && parts.kind == arrayNode {
			r.problem(parts.off, "parts", "parts: the list is empty")
		}
	}
	total := 0
	for _, p := range f.Parts {
		total += min((len(p.Sizes)+p.Count)*p.Sets, 1<<40)
	}
	if bytes := f.bytes(); bytes > float64(maxSize) {
		r.problem(n.key, f.Name, "file set %q holds up to %.3g EB, more than %s", f.Name, bytes/1e18, maxSize)
	}
	if total > maxFiles {
		r.problem(n.key, f.Name, "file set %q holds %d files, more than %d", f.Name, total, maxFiles)
	}
	share := n.get("compressible")
	switch {
	case f.Data == "mixed" && f.Compressible == 0:
		r.problem(n.key, "compressible", "data = \"mixed\" needs compressible, the share of zeros")
	case f.Data != "mixed" && share != nil && f.Compressible != 0:
		r.problem(share.key, "compressible", "compressible has no meaning with data = %q", f.Data).
			hintf("set data = \"mixed\"")
	case f.Compressible > 1:
		r.problem(share.off, "compressible", "compressible: %s is more than all", f.Compressible)
	}
}

// bytes is the most that one write of the set can put on a volume. It is no
// integer because the sum of a careless plan need not be one.
func (f *fileForm) bytes() float64 {
	total := 0.0
	for _, p := range f.Parts {
		one := float64(p.High) * float64(p.Count)
		for _, s := range p.Sizes {
			one += float64(s)
		}
		total += one * float64(p.Sets)
	}
	return total
}

// form is the file set as it is written.
func (fs FileSet) form() fileForm {
	f := fileForm{FileSet: fs}
	if len(fs.Parts) == 1 {
		f.one, f.Parts = fs.Parts[0], nil
	}
	return f
}

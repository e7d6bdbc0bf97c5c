package plan

import (
	"fmt"
	"hash/fnv"
	"math"
	"math/rand/v2"
	"slices"
	"strings"

	"dmgbench/internal/units"
)

// Draw gives the sizes of each set in listed order. Explicit sizes stay as
// written; draws from a range depend on the seed and the file set's name alone,
// so that every case and every machine gets the same sizes. A part with fewer
// sets than others is missing from the later ones.
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

// partKey is the second half of the seed of a part: parts and sets of other
// names get other draws.
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

// sets is the number of sets of the part that has most.
func (fs FileSet) sets() int {
	n := 0
	for _, p := range fs.Parts {
		n = max(n, p.Sets)
	}
	return n
}

// count is the number of files of one write.
func (fs FileSet) count() int {
	n := 0
	for _, p := range fs.Parts {
		n += (len(p.Sizes) + p.Count) * p.Sets
	}
	return n
}

// fileForm is a file set as written: sizes are in the table itself or in parts.
type fileForm struct {
	FileSet
	one FilePart
}

// rangeField is the range of a part: two sizes.
func rangeField[T any](at func(*T) *FilePart) key[T] {
	sizes := listField("range", sizeKind, 0, func(s *[]units.Bytes) *[]units.Bytes { return s })
	return key[T]{name: "range", typ: "two sizes", json: sizes.json,
		decode: func(r *reader, n *node, dst *T) {
			var s []units.Bytes
			if sizes.decode(r, n, &s); len(s) == 2 {
				at(dst).Low, at(dst).High = s[0], s[1]
			}
		},
		encode: func(src *T) (string, bool) {
			p := at(src)
			text, _ := sizes.encode(&[]units.Bytes{p.Low, p.High})
			return text, p.High > 0
		}}
}

// partKeys are the keys of a part, which a file set of one part has in its own
// table.
func partKeys[T any](at func(*T) *FilePart) []key[T] {
	return []key[T]{
		listField("sizes", sizeKind, 1, func(t *T) *[]units.Bytes { return &at(t).Sizes }),
		rangeField(at),
		field("count", number[int](1, 1000000), func(t *T) *int { return &at(t).Count }),
		field("spread", enum("log", "linear"), func(t *T) *string { return &at(t).Spread }),
		field("sets", number[int](1, 100000), func(t *T) *int { return &at(t).Sets }),
	}
}

var partTable = table[FilePart]{name: "part", keys: partKeys(func(p *FilePart) *FilePart { return p }),
	finish: finishPart}

// finishPart checks that a part has either sizes or a range with a count, and
// fills in sets and spread.
func finishPart(r *reader, n *node, p *FilePart) {
	sizes, span := n.get("sizes"), n.get("range")
	switch {
	case r.broken:
	case sizes == nil && span == nil:
		r.problem(n.key, "sizes", "no file sizes").hintf("give sizes = [ … ], or range = [ … ] and count")
	case sizes != nil && span != nil:
		r.badKey(span, "sizes and range contradict each other").
			hintf("use parts = [ { sizes = … }, { range = … } ] for a mixture")
	case span != nil && span.kind == arrayNode && len(span.items) != 2:
		r.bad(span, "range: want two sizes, these are %d", len(span.items))
	case span != nil && p.Low > p.High:
		r.bad(span, "range: %s is more than %s", p.Low, p.High)
	case span != nil && n.get("count") == nil:
		r.problem(n.key, "count", "range needs count, the number of draws")
	}
	for _, name := range []string{"count", "spread"} {
		if k := n.get(name); k != nil && span == nil {
			r.badKey(k, "%s has no meaning without range", name)
		}
	}
	p.Sets = max(p.Sets, 1)
	if span != nil && p.Spread == "" {
		p.Spread = "log"
	}
}

var fileTable = table[fileForm]{name: "file set", keys: append(partKeys(func(f *fileForm) *FilePart { return &f.one }),
	tables("parts", "tables", &partTable, func(f *fileForm) *[]FilePart { return &f.Parts }).key(),
	field("order", enum("shuffled", "as-listed", "shuffled-all"), func(f *fileForm) *string { return &f.Order }).
		or(`"shuffled"`),
	field("data", enum("random", "zero", "mixed", "text"), func(f *fileForm) *string { return &f.Data }).or(`"random"`),
	field("compressible", shareKind, func(f *fileForm) *units.Share { return &f.Compressible }),
), finish: finishFiles}

// maxFiles bounds one file set, since its draws are kept in memory.
const maxFiles = 1_000_000

// finishFiles checks that sizes are in the table or in parts, and bounds the
// number of files and bytes.
func finishFiles(r *reader, n *node, f *fileForm) {
	if parts := n.get("parts"); parts == nil {
		finishPart(r, n, &f.one)
		f.Parts = []FilePart{f.one}
	} else {
		for _, name := range []string{"sizes", "range", "count", "spread", "sets"} {
			if k := n.get(name); k != nil {
				r.badKey(k, "%s and parts contradict each other", name).hintf("move %s into a part", name)
			}
		}
		if len(parts.items) == 0 && parts.kind == arrayNode {
			r.bad(parts, "parts: the list is empty")
		}
	}
	files, size := 0, 0.0 // the sum of a careless plan may not be an integer
	for _, p := range f.Parts {
		files += min((len(p.Sizes)+p.Count)*p.Sets, 1<<40)
		one := float64(p.High) * float64(p.Count)
		for _, s := range p.Sizes {
			one += float64(s)
		}
		size += one * float64(p.Sets)
	}
	if size > float64(maxSize) {
		r.problem(n.key, n.name, "file set %q has up to %.3g EB, more than %s", n.name, size/1e18, maxSize)
	}
	if files > maxFiles {
		r.problem(n.key, n.name, "file set %q has %d files, more than %d", n.name, files, maxFiles)
	}
	share := n.get("compressible")
	switch {
	case f.Data == "mixed" && f.Compressible == 0:
		r.problem(n.key, "compressible", "data = \"mixed\" needs compressible, the share of zeros")
	case f.Data != "mixed" && share != nil && f.Compressible != 0:
		r.badKey(share, "compressible has no meaning with data = %q", f.Data).hintf("set data = \"mixed\"")
	case f.Compressible > 1:
		r.bad(share, "compressible: %s is more than all", f.Compressible)
	}
}

// lines are the lines of the canonical form.
func (fs FileSet) lines() []string {
	f := fileForm{FileSet: fs}
	if len(fs.Parts) == 1 {
		f.one, f.Parts = fs.Parts[0], nil
	}
	return fileTable.lines(&f)
}

// Prose describes a file set: number, sizes, order and data of its files.
func (f *FileSet) Prose() string {
	parts := make([]string, len(f.Parts))
	for i := range f.Parts {
		parts[i] = f.Parts[i].prose()
	}
	data := "; of random bytes"
	switch f.Data {
	case "mixed":
		data = fmt.Sprintf("; %s of each 4 KiB zeros, the rest random", f.Compressible)
	case "zero":
		data = "; of zeros"
	case "text":
		data = "; of words, which compress"
	}
	return strings.Join(parts, "; ") + map[string]string{"shuffled": "; in random order within each set",
		"shuffled-all": "; in random order", "as-listed": "; in the order of the list"}[f.Order] + data
}

// prose describes a part: "10 sets of 3 files of 3 MB to 1 GB".
func (p *FilePart) prose() string {
	sets := ""
	if p.Sets > 1 {
		sets = fmt.Sprintf("%d sets of ", p.Sets)
	}
	switch {
	case len(p.Sizes) == 0:
		return fmt.Sprintf("%s%d files of random size from %s to %s (%s)", sets, p.Count, p.Low, p.High, p.Spread)
	case len(p.Sizes) > 1:
		return fmt.Sprintf("%s%d files of %s to %s", sets, len(p.Sizes), slices.Min(p.Sizes), slices.Max(p.Sizes))
	case p.Sets > 1:
		return fmt.Sprintf("%d files of %s", p.Sets, p.Sizes[0])
	}
	return "one file of " + p.Sizes[0].String()
}

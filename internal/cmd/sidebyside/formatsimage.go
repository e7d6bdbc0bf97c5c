package main

import (
	"bufio"
	"encoding/binary"
	"fmt"
	"io"
	"math"
	"math/rand/v2"
)

// The test image is made, not taken, so that everybody measures the same bytes: what a volume holds is imitated file by
// file, with whole numbers alone, which no machine rounds in its own way. zlib at level 1 makes some 0.4 of it, as of the system files of a Linux machine.
const (
	makerBlock    = 4096     // files begin at multiples of it, with zeros up to there
	makerSmallest = 1 << 10  // bytes of a file
	makerSizes    = 13       // orders of magnitude of sizes, by two
	makerWords    = 14       // of the vocabulary, as a power of two
	makerBack     = 24 << 10 // bytes that repetitions reach back, within the window of deflate
)

// kinds of files, with the share of the files that each has in 1000. Sizes have the same distribution in all.
var makerKinds = []struct {
	share int
	make  func(m *maker, n int)
}{
	{330, (*maker).text},
	{330, (*maker).code},
	{100, (*maker).table},
	{190, (*maker).media},
	{50, (*maker).free},
}

// maker makes the contents of a test image.
type maker struct {
	r     *rand.Rand
	words []string
	file  []byte // the one being made
}

// makeImage writes n bytes that depend on the seed alone.
func makeImage(w io.Writer, n int64, seed uint64) error {
	r := rand.New(rand.NewPCG(seed, 0x666f726d617473))
	m := &maker{r: r}
	for range 1 << makerWords {
		m.words = append(m.words, m.word())
	}
	out := bufio.NewWriterSize(w, 1<<20)
	for left := n; left > 0; {
		m.file = m.file[:0]
		size := makerSmallest << r.IntN(makerSizes)
		size += r.IntN(size)
		pick := r.IntN(1000)
		for _, k := range makerKinds {
			if pick -= k.share; pick < 0 {
				k.make(m, size)
				break
			}
		}
		for len(m.file)%makerBlock != 0 {
			m.file = append(m.file, 0)
		}
		part := m.file[:min(int64(len(m.file)), left)]
		if _, err := out.Write(part); err != nil {
			return fmt.Errorf("making the test image: %w", err)
		}
		left -= int64(len(part))
	}
	return out.Flush()
}

// word invents one of the vocabulary.
func (m *maker) word() string {
	const consonants, vowels = "bcdfglmnprstvw", "aeiou"
	var b []byte
	for range 1 + m.r.IntN(4) {
		b = append(b, consonants[m.r.IntN(len(consonants))], vowels[m.r.IntN(len(vowels))])
		if m.r.IntN(3) == 0 {
			b = append(b, consonants[m.r.IntN(len(consonants))])
		}
	}
	return string(b)
}

// often is a word: half as often, the later it is by a factor of two.
func (m *maker) often() string {
	k := m.r.IntN(makerWords)
	return m.words[1<<k-1+m.r.IntN(1<<k)]
}

// again appends a piece of what the file has already, and reports whether there was one.
func (m *maker) again(shortest, longest int) bool {
	n := shortest + m.r.IntN(longest-shortest)
	u := m.r.IntN(1 << 16)
	back := n + makerBack*u*u>>32
	if back > len(m.file) {
		return false
	}
	from := len(m.file) - back
	m.file = append(m.file, m.file[from:from+n]...)
	return true
}

// text is like source, prose and logs: frequent words, indented lines, and phrases that come again.
func (m *maker) text(n int) {
	for len(m.file) < n {
		switch p := m.r.IntN(100); {
		case p < 22 && m.again(8, 60):
		case p < 32:
			m.file = append(m.file, "\n\t\t\t"[:1+m.r.IntN(4)]...)
		case p < 38:
			m.file = append(m.file, " = (){};.:,"[m.r.IntN(11)])
		case p < 41:
			m.file = fmt.Appendf(m.file, "%d", m.r.IntN(10000))
		default:
			m.file = append(append(m.file, m.often()...), ' ')
		}
	}
}

// code is like programs: few operations with registers, short constants and addresses that are near each other.
func (m *maker) code(n int) {
	var common [24][3]byte
	for i := range common {
		common[i] = [3]byte{byte(m.r.Uint32()), byte(m.r.Uint32()), byte(m.r.Uint32())}
	}
	target := m.r.Uint32() >> 12
	for len(m.file) < n {
		op := common[min(m.r.IntN(24), m.r.IntN(24))]
		switch p := m.r.IntN(100); {
		case p < 12 && m.again(5, 40):
		case p < 40:
			m.file = append(m.file, op[0], op[1], byte(m.r.IntN(64)&m.r.IntN(64))<<3)
		case p < 70:
			m.file = append(m.file, op[:]...)
		case p < 88:
			m.file = append(m.file, op[0], op[1], byte(8*m.r.IntN(16)), 0, 0, 0)
		default:
			target += uint32(m.r.IntN(4096))
			m.file = binary.LittleEndian.AppendUint32(append(m.file, 0xE8), target)
		}
	}
}

// table is like databases and indexes: records of one length with counters, flags and measurements.
func (m *maker) table(n int) {
	id, at := m.r.Uint32(), uint64(m.r.Uint32())
	for len(m.file) < n {
		id, at = id+1+uint32(m.r.IntN(3)), at+uint64(m.r.IntN(1<<16))
		m.file = binary.LittleEndian.AppendUint32(m.file, id)
		m.file = binary.LittleEndian.AppendUint64(m.file, at)
		m.file = binary.LittleEndian.AppendUint32(m.file, uint32(m.r.IntN(8)))
		m.file = binary.LittleEndian.AppendUint64(m.file, math.Float64bits(float64(m.r.IntN(100000))/100))
		m.file = append(m.file, fmt.Sprintf("%-16.16s", m.often())...)
	}
}

// media is what is compressed already.
func (m *maker) media(n int) {
	for len(m.file) < n {
		m.file = binary.LittleEndian.AppendUint64(m.file, m.r.Uint64())
	}
}

// free is space that nothing uses.
func (m *maker) free(n int) {
	for len(m.file) < n {
		m.file = append(m.file, make([]byte, min(n-len(m.file), makerBlock))...)
	}
}

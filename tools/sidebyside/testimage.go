package main

import (
	"bufio"
	"encoding/binary"
	"fmt"
	"io"
	"math"
	"math/rand/v2"
)

// The test image is generated, so that everybody measures the same bytes. It
// imitates the files of a volume, with integer arithmetic only, which gives the
// same result on every machine. zlib at level 1 leaves about 0.4 of it, as of
// the system files of a Linux machine.
const (
	imageBlock     = 4096     // files begin at multiples of it, with zeros up to there
	smallestFile   = 1 << 10  // bytes of a file
	sizeSteps      = 13       // orders of magnitude of sizes, by two
	vocabularyBits = 14       // of the vocabulary, as a power of two
	repeatWindow   = 24 << 10 // bytes that repetitions reach back, within the window of deflate
)

// kinds of files, with the share of the files that each has in 1000. Sizes have
// the same distribution in all.
var fileKinds = []struct {
	share int
	make  func(m *imageMaker, n int)
}{
	{330, (*imageMaker).text},
	{330, (*imageMaker).code},
	{100, (*imageMaker).table},
	{190, (*imageMaker).media},
	{50, (*imageMaker).free},
}

// imageMaker makes the contents of a test image.
type imageMaker struct {
	r     *rand.Rand
	words []string
	file  []byte // the one being made
}

// writeTestImage writes n bytes that depend on the seed alone.
func writeTestImage(w io.Writer, n int64, seed uint64) error {
	r := rand.New(rand.NewPCG(seed, 0x666f726d617473))
	m := &imageMaker{r: r}
	for range 1 << vocabularyBits {
		m.words = append(m.words, m.word())
	}
	out := bufio.NewWriterSize(w, 1<<20)
	for left := n; left > 0; {
		m.file = m.file[:0]
		size := smallestFile << r.IntN(sizeSteps)
		size += r.IntN(size)
		pick := r.IntN(1000)
		for _, k := range fileKinds {
			if pick -= k.share; pick < 0 {
				k.make(m, size)
				break
			}
		}
		for len(m.file)%imageBlock != 0 {
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

// word invents a word of the vocabulary.
func (m *imageMaker) word() string {
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

// commonWord draws a word; words in the second half of the vocabulary are as
// frequent as those in the quarter before.
func (m *imageMaker) commonWord() string {
	k := m.r.IntN(vocabularyBits)
	return m.words[1<<k-1+m.r.IntN(1<<k)]
}

// repeat appends a piece that the file already contains, and reports whether
// there was one.
func (m *imageMaker) repeat(shortest, longest int) bool {
	n := shortest + m.r.IntN(longest-shortest)
	u := m.r.IntN(1 << 16)
	back := n + repeatWindow*u*u>>32
	if back > len(m.file) {
		return false
	}
	from := len(m.file) - back
	m.file = append(m.file, m.file[from:from+n]...)
	return true
}

// text is like source, prose and logs: frequent words, indented lines, and
// phrases that come again.
func (m *imageMaker) text(n int) {
	for len(m.file) < n {
		switch p := m.r.IntN(100); {
		case p < 22 && m.repeat(8, 60):
		case p < 32:
			m.file = append(m.file, "\n\t\t\t"[:1+m.r.IntN(4)]...)
		case p < 38:
			m.file = append(m.file, " = (){};.:,"[m.r.IntN(11)])
		case p < 41:
			m.file = fmt.Appendf(m.file, "%d", m.r.IntN(10000))
		default:
			m.file = append(append(m.file, m.commonWord()...), ' ')
		}
	}
}

// code resembles machine code: few operations, registers, short constants, and
// addresses near each other.
func (m *imageMaker) code(n int) {
	var common [24][3]byte
	for i := range common {
		common[i] = [3]byte{byte(m.r.Uint32()), byte(m.r.Uint32()), byte(m.r.Uint32())}
	}
	target := m.r.Uint32() >> 12
	for len(m.file) < n {
		op := common[min(m.r.IntN(24), m.r.IntN(24))]
		switch p := m.r.IntN(100); {
		case p < 12 && m.repeat(5, 40):
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

// table is like databases and indexes: records of one length with counters,
// flags and measurements.
func (m *imageMaker) table(n int) {
	id, at := m.r.Uint32(), uint64(m.r.Uint32())
	for len(m.file) < n {
		id, at = id+1+uint32(m.r.IntN(3)), at+uint64(m.r.IntN(1<<16))
		m.file = binary.LittleEndian.AppendUint32(m.file, id)
		m.file = binary.LittleEndian.AppendUint64(m.file, at)
		m.file = binary.LittleEndian.AppendUint32(m.file, uint32(m.r.IntN(8)))
		m.file = binary.LittleEndian.AppendUint64(m.file, math.Float64bits(float64(m.r.IntN(100000))/100))
		m.file = append(m.file, fmt.Sprintf("%-16.16s", m.commonWord())...)
	}
}

// media is what is compressed already.
func (m *imageMaker) media(n int) {
	for len(m.file) < n {
		m.file = binary.LittleEndian.AppendUint64(m.file, m.r.Uint64())
	}
}

// free is space that nothing uses.
func (m *imageMaker) free(n int) {
	for len(m.file) < n {
		m.file = append(m.file, make([]byte, min(n-len(m.file), imageBlock))...)
	}
}

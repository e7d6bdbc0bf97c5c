package workload

import (
	"crypto/aes"
	"crypto/cipher"
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"math"
	"runtime"
	"slices"
	"strings"
	"sync"
)

// Kinds of data.
const (
	DataRandom = "random" // incompressible, never repeated
	DataZero   = "zero"
	DataMixed  = "mixed" // a declared share of each 4 KiB is zero, the rest random
	DataText   = "text"  // words by the law below, which compress about as prose does
)

// mixedUnit is what the compressible share refers to: the page and block size
// that file systems and disk images compress, punch and deduplicate by.
const mixedUnit = 4096

// FileKey distinguishes the data of one file from those of another.
type FileKey uint64

// KeyOf is the key of the file with that name on the volume. Two names share a
// key with a probability of 2⁻⁶⁴.
func KeyOf(name string) FileKey {
	sum := sha256.Sum256([]byte("dmgbench file 1\x00" + name))
	return FileKey(binary.BigEndian.Uint64(sum[:]))
}

// Data is the content of files: an AES-128-CTR keystream. Its key depends on
// seed, round and case; its counter is the file's key and the offset in blocks
// of 16 bytes. Any range of any file can be made again at any time. Data is
// safe for concurrent use.
type Data struct {
	block cipher.Block
	kind  string
	zeros int // bytes of each mixedUnit that are zero
}

// NewData prepares the data of one case in one round. kind is [DataRandom]
// (also ""), [DataZero], [DataMixed] or [DataText]; share is the zero part of
// each 4 KiB with DataMixed, 0 to 1. A plan has no other kinds and shares.
func NewData(seed uint64, round int, caseID, kind string, share float64) *Data {
	sum := sha256.Sum256(fmt.Appendf(nil, "dmgbench data 1\x00%d\x00%d\x00%s", seed, round, caseID))
	block, _ := aes.NewCipher(sum[:16]) // fails only for a key of another length
	d := &Data{block: block, kind: kind}
	if kind == DataMixed {
		d.zeros = int(math.Round(share * mixedUnit))
	}
	return d
}

// zeroBytes are what the keystream is XORed with; 64 KiB stay in the inner
// caches.
var zeroBytes [64 << 10]byte

// FillAt fills p with the file's bytes from offset off.
func (d *Data) FillAt(p []byte, file FileKey, off int64) {
	switch d.kind {
	case DataZero:
		clear(p)
		return
	case DataText:
		d.fillText(p, file, off)
		return
	}
	d.keystream(p, file, off)
	if d.zeros == 0 {
		return
	}
	// The last part of each mixedUnit of the file is zero.
	for unit := off - off%mixedUnit; unit < off+int64(len(p)); unit += mixedUnit {
		from := max(unit+mixedUnit-int64(d.zeros)-off, 0)
		to := min(unit+mixedUnit-off, int64(len(p)))
		clear(p[min(from, to):to])
	}
}

// keystream fills p with the file's random bytes.
func (d *Data) keystream(p []byte, file FileKey, off int64) {
	var iv [aes.BlockSize]byte
	binary.BigEndian.PutUint64(iv[:8], uint64(file))
	binary.BigEndian.PutUint64(iv[8:], uint64(off)/aes.BlockSize)
	stream := cipher.NewCTR(d.block, iv[:])
	var skip [aes.BlockSize]byte
	stream.XORKeyStream(skip[:off%aes.BlockSize], skip[:off%aes.BlockSize])
	for part := range slices.Chunk(p, len(zeroBytes)) {
		stream.XORKeyStream(part, zeroBytes[:len(part)])
	}
}

// fillParallel fills p with all processors. It is for the time between files,
// when no clock runs: the sooner it ends, the shorter the gap.
func (d *Data) fillParallel(p []byte, file FileKey) {
	const least = 4 << 20
	parts := min(runtime.GOMAXPROCS(0), len(p)/least)
	if parts < 2 {
		d.FillAt(p, file, 0)
		return
	}
	each := (len(p)/parts + mixedUnit - 1) / mixedUnit * mixedUnit
	var wg sync.WaitGroup
	for from := 0; from < len(p); from += each {
		wg.Go(func() { d.FillAt(p[from:min(from+each, len(p))], file, int64(from)) })
	}
	wg.Wait()
}

// The law of [DataText]; docs/plan-language.md describes it for authors of
// plans.
const (
	words    = 4096  // in the vocabulary
	ranks    = 65536 // 16 random bits choose one of these places; a word has places by its rank
	lineEnds = 16    // words in a line
	// textUnit bytes are drawn independently, so that any part of a file can be
	// made.
	textUnit = 4096
	// wordSpace is the memory of a word in bytes: up to 12 letters and a blank.
	wordSpace = 16
)

// letters are those of English by how often they occur in running text, in per
// mille of the 1000 places (Cornell University, Math Explorer's Project,
// frequency of letters in 40,000 words; rounded, the rest given to e).
var letters = []struct {
	letter string
	places int
}{
	{"e", 122}, {"t", 91}, {"a", 81}, {"o", 77}, {"i", 73}, {"n", 70}, {"s", 63}, {"r", 60}, {"h", 59},
	{"d", 43}, {"l", 40}, {"u", 29}, {"c", 27},
	{"m", 26}, {"f", 23}, {"y", 21}, {"w", 21}, {"g", 20}, {"p", 18}, {"b", 15},
	{"v", 11}, {"k", 7}, {"x", 1}, {"q", 1}, {"j", 1},
}

// vocabulary is the words of a text and how often each is drawn.
type vocabulary struct {
	word   [words][wordSpace]byte // each followed by a blank
	length [words]uint8           // with the blank
	at     [ranks]uint16          // word of a place
}

// vocabularyOnce makes different words from a generator that is easy to
// reproduce: a linear congruential one with the multiplier of Knuth's MMIX,
// started at 1.
var vocabularyOnce = sync.OnceValue(func() *vocabulary {
	var places string // 1000
	for _, l := range letters {
		places += strings.Repeat(l.letter, l.places)
	}
	v := new(vocabulary)
	state := uint64(1)
	next := func(n int) int {
		state = state*6364136223846793005 + 1442695040888963407
		return int(state >> 33 % uint64(n))
	}
	seen := map[string]bool{}
	for i := 0; i < words; {
		word := make([]byte, 2+(next(6)+next(6)))
		for j := range word {
			word[j] = places[next(len(places))]
		}
		if !seen[string(word)] {
			seen[string(word)] = true
			v.length[i] = uint8(copy(v.word[i][:], append(word, ' ')))
			i++
		}
	}
	total := 0.0
	for r := range words {
		total += 1 / float64(r+1)
	}
	place, sum := 0, 0.0
	for r := range words {
		sum += 1 / float64(r+1)
		for end := int(math.Round(sum / total * ranks)); place < end; place++ {
			v.at[place] = uint16(r)
		}
	}
	return v
})

// fillText fills p with the text of the file from offset off.
func (d *Data) fillText(p []byte, file FileKey, off int64) {
	v := vocabularyOnce()
	var unit [textUnit]byte
	draw := make([]byte, textUnit)
	for len(p) > 0 {
		from := off % textUnit
		d.keystream(draw, file, off-from)
		v.fill(&unit, draw)
		n := copy(p, unit[from:])
		p, off = p[n:], off+int64(n)
	}
}

// fill writes words until the unit is full; the last one is cut. Two bytes of
// the draw choose a word, which suffices for the shortest words.
func (v *vocabulary) fill(unit *[textUnit]byte, draw []byte) {
	at := 0
	for i := 0; at < textUnit; i++ {
		id := v.at[binary.LittleEndian.Uint16(draw[2*i:])]
		if at <= textUnit-wordSpace {
			*(*[wordSpace]byte)(unit[at:]) = v.word[id] // the next word overwrites the rest
			at += int(v.length[id])
		} else {
			at += copy(unit[at:], v.word[id][:v.length[id]])
		}
		if i%lineEnds == lineEnds-1 {
			unit[at-1] = '\n'
		}
	}
}

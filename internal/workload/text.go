package workload

import (
	"encoding/binary"
	"math"
	"sync"
)

// The law of [DataText]; docs/plan-language.md states it for those who write plans.
const (
	words    = 4096  // in the vocabulary
	ranks    = 65536 // a draw of 16 bits picks one of so many places, shared out by rank
	lineEnds = 16    // every so many words a line ends
	// textUnit bytes are drawn for themselves, so that a file can be read anywhere.
	textUnit = 4096
	// wordSpace is what a word of 12 letters and its blank get in memory.
	wordSpace = 16
)

// letters are those of English by how often they occur in running text, in per
// mille of the 1000 places (Cornell University, Math Explorer's Project, frequency
// of letters in 40,000 words; rounded, the rest given to e).
var letters = []struct {
	letter byte
	places int
}{
	{'e', 122}, {'t', 91}, {'a', 81}, {'o', 77}, {'i', 73}, {'n', 70}, {'s', 63}, {'r', 60}, {'h', 59}, {'d', 43}, {'l', 40}, {'u', 29}, {'c', 27},
	{'m', 26}, {'f', 23}, {'y', 21}, {'w', 21}, {'g', 20}, {'p', 18}, {'b', 15}, {'v', 11}, {'k', 7}, {'x', 1}, {'q', 1}, {'j', 1},
}

// vocabulary is what text is made of.
type vocabulary struct {
	word   [words][wordSpace]byte // each with a blank behind it
	length [words]uint8           // with the blank
	at     [ranks]uint16          // word of a place
}

var vocabularyOnce = sync.OnceValue(newVocabulary)

// newVocabulary makes different words from a generator that everybody can write
// down: a linear congruential one with the multiplier of Knuth's MMIX, from 1.
func newVocabulary() *vocabulary {
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
			word[j] = letterAt(next(1000))
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
}

func letterAt(place int) byte {
	for _, l := range letters {
		if place -= l.places; place < 0 {
			return l.letter
		}
	}
	return 'e'
}

// textBatch is how many units are drawn at once: starting the keystream has its price.
const textBatch = 16

// write fills p with the text of the file from offset off.
func (d *Data) write(p []byte, file FileKey, off int64) {
	v := vocabularyOnce()
	draws := make([]byte, min(textBatch, len(p)/textUnit+2)*textUnit)
	var unit [textUnit]byte
	for len(p) > 0 {
		first, from := off/textUnit, int(off%textUnit)
		units := min(len(draws)/textUnit, (from+len(p)+textUnit-1)/textUnit)
		d.keystream(draws[:units*textUnit], file, first*textUnit)
		for i := range units {
			draw := draws[i*textUnit : (i+1)*textUnit]
			if from == 0 && len(p) >= textUnit {
				v.fill((*[textUnit]byte)(p), draw)
				p, off = p[textUnit:], off+textUnit
				continue
			}
			v.fill(&unit, draw)
			done := copy(p, unit[from:])
			p, off, from = p[done:], off+int64(done), 0
		}
	}
}

// fill writes words until the unit is full; the last one is cut. Two bytes of the
// draw choose a word, so that it is long enough for the shortest words.
func (v *vocabulary) fill(unit *[textUnit]byte, draw []byte) {
	at := 0
	for i := 0; at < textUnit; i++ {
		id := v.at[binary.LittleEndian.Uint16(draw[2*i:])]
		if at <= textUnit-wordSpace {
			*(*[wordSpace]byte)(unit[at:]) = v.word[id] // what is too long is written over
			at += int(v.length[id])
		} else {
			at += copy(unit[at:], v.word[id][:v.length[id]])
		}
		if i%lineEnds == lineEnds-1 {
			unit[at-1] = '\n'
		}
	}
}

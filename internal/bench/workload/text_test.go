package workload

import (
	"bytes"
	"compress/zlib"
	"crypto/sha256"
	"encoding/hex"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func textOf(t testing.TB, seed uint64, name string, n int) []byte {
	d := NewData(seed, 1, "case", DataText, 0)
	p := make([]byte, n)
	d.FillAt(p, KeyOf(name), 0)
	return p
}

// TestTextLaw holds the text to what docs/plan-language.md says of it.
func TestTextLaw(t *testing.T) {
	v := vocabularyOnce()
	seen := map[string]bool{}
	for i, padded := range v.word {
		w := padded[:v.length[i]]
		require.Regexp(t, `^[a-z]{2,12} $`, string(w))
		require.False(t, seen[string(w)], "twice: %q", w)
		seen[string(w)] = true
	}
	text := textOf(t, 1, "a", 4<<20)
	count := map[string]int{}
	whole := 0
	for unit := range slices.Chunk(text, textUnit) {
		list := strings.Fields(string(unit))
		for _, w := range list[:len(list)-1] { // the last one may be cut
			count[w]++
			whole++
		}
	}
	for w := range count {
		require.True(t, seen[w+" "], "%q", w)
	}
	harmonic := 0.0
	for r := range words {
		harmonic += 1 / float64(r+1)
	}
	for _, rank := range []int{1, 2, 5, 20, 100} {
		want := float64(whole) / harmonic / float64(rank)
		got := count[strings.TrimSpace(string(v.word[rank-1][:v.length[rank-1]]))]
		assert.InEpsilon(t, want, got, 0.1, "rank %d", rank)
	}
	assert.InEpsilon(t, float64(whole)/lineEnds, bytes.Count(text, []byte("\n")), 0.1)
}

// TestTextStays: the same seed gives the same bytes for ever, or figures of
// different versions could not be compared.
func TestTextStays(t *testing.T) {
	sum := sha256.Sum256(textOf(t, 1, "a", 100_000))
	assert.Equal(t, "3dbe84f2db73578356fb314688897ffc3b96791173071bf6bbac69fb8437209b", hex.EncodeToString(sum[:]))
	assert.False(t, bytes.Equal(textOf(t, 1, "a", 4096), textOf(t, 1, "b", 4096)), "another file")
	assert.False(t, bytes.Equal(textOf(t, 1, "a", 4096), textOf(t, 2, "a", 4096)), "another seed")
}

func TestTextCompresses(t *testing.T) {
	var out bytes.Buffer
	w := zlib.NewWriter(&out)
	text := textOf(t, 3, "c", 1<<20)
	_, err := w.Write(text)
	require.NoError(t, err)
	require.NoError(t, w.Close())
	assert.InDelta(t, 3.2, float64(len(text))/float64(out.Len()), 0.1, "figures of docs/formats.md")
}

func BenchmarkText(b *testing.B) {
	d := NewData(1, 1, "case", DataText, 0)
	p := make([]byte, 1<<20)
	b.SetBytes(int64(len(p)))
	for b.Loop() {
		d.FillAt(p, 7, 0)
	}
}

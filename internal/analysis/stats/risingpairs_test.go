package stats

import (
	"cmp"
	"testing"

	"github.com/stretchr/testify/assert"
	"pgregory.net/rapid"
)

// Pairs that rise and fall are counted as by comparing all of them, ties included.
func TestRisingPairsAreThoseOfAllPairs(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		xs := rapid.SliceOf(rapid.Custom(func(t *rapid.T) float64 {
			return float64(rapid.IntRange(-6, 6).Draw(t, "step")) / 2
		})).Draw(t, "values")
		want := 0
		for i := range xs {
			for j := range i {
				want += cmp.Compare(xs[i], xs[j])
			}
		}
		assert.Equal(t, want, risingPairs(xs))
	})
}

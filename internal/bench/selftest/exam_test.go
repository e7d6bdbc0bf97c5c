package selftest

import (
	"context"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// The short form of every study, on which the gate stands: all that is simulated
// follows from the seed, and what is measured on this machine is left out.
func TestEveryPromiseIsKeptInShort(t *testing.T) {
	done := func(s Study, took time.Duration) { t.Logf("%-10s %s", s.ID, took) }
	r, err := Run(t.Context(), Options{Seed: 1, Done: done})
	require.NoError(t, err)
	require.Len(t, r.Studies, len(studies))
	for _, s := range r.Studies {
		assert.NotEmpty(t, s.Promises, s.ID)
		for _, p := range s.Promises {
			if s.ID != "overhead" {
				assert.True(t, p.Kept, "%s: %s (bound %s)", p.Says, p.Found()+" "+p.Where, p.Bound())
			}
			assert.Positive(t, p.N, p.Says)
		}
		for _, table := range s.Tables {
			for _, row := range table.Rows {
				assert.Len(t, row, len(table.Head), table.Title)
			}
		}
	}
	page := r.Page()
	for _, s := range r.Studies {
		assert.Contains(t, page, "\n## "+s.Title+"\n")
		assert.Contains(t, page, "(#"+anchor(s.Title)+")")
	}
	assert.True(t, strings.HasSuffix(page, "\n"))
	assert.Contains(t, r.Text(), "Smallest honest file")
}

// studies.toml has the words of every study, in the order of the page.
func TestStudyTexts(t *testing.T) {
	var ids []string
	for _, s := range readStudies() {
		ids = append(ids, s.ID)
		assert.NotEmpty(t, s.Promises, s.ID)
	}
	assert.Equal(t, IDs(), ids)
}

// A bound is broken by a figure that its error does not excuse, and by no figure at all.
func TestBounds(t *testing.T) {
	low, five, high := 93.0, 5.0, 97.0
	at := func(v, err float64) bool {
		p := Promise{Low: &low, High: &high}
		p.take("here", v, err, 100)
		return p.Kept
	}
	assert.True(t, at(93, 0))
	assert.True(t, at(98, 0.6))
	assert.False(t, at(98, 0.4))
	assert.False(t, at(90, 1))
	assert.False(t, at(math.NaN(), 0))
	p := Promise{Unit: "%", High: &five}
	p.take("good", 1, 0.5, 100)
	assert.True(t, p.Kept)
	p.take("bad", 8, 0.5, 100)
	p.take("good again", 4, 0.5, 100)
	assert.False(t, p.Kept)
	assert.Equal(t, "bad", p.Where)
	assert.Equal(t, "at most 5 %", p.Bound())
	assert.Equal(t, "8.0 ± 0.5 %", p.Found())
}

// People read 0.00009, not 9e-05; of rounding errors the size is enough.
func TestNumbersAsPeopleReadThem(t *testing.T) {
	for v, want := range map[float64]string{0: "0", 5: "5", 0.01: "0.01", 0.0001: "0.0001", 9e-5: "0.00009",
		9.7e-5: "0.0001", 1.2e-6: "0.000001", 3e-9: "below 0.000001", -2.5: "-2.5", 97.66: "97.66"} {
		assert.Equal(t, want, plainNumber(v))
	}
}

// A truth that is wrong is noticed: the studies can fail.
func TestStudiesCanFail(t *testing.T) {
	x, err := newExam(t.Context(), Options{Seed: 1})
	require.NoError(t, err)
	defer x.close()
	sample := design{Sizes: []int64{100e6}, Sets: 20, Rounds: 1}
	covered, given := newGrid("", ""), newGrid("", "")
	x.coverFiles([]string{"x", "file_noise = 3%", "outliers = 20% x 8"}, sample, covered, given)
	require.NoError(t, x.err)
	assert.Less(t, covered.at("mean", sample.sample()).rate(), 50.0)
	assert.Greater(t, covered.at("median", sample.sample()).rate(), 90.0)
}

// A canceled exam plays no runs and reports it.
func TestRunEndsWithItsContext(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err := Run(ctx, Options{Only: []string{"power", "compare"}})
	require.ErrorIs(t, err, context.Canceled)
	require.ErrorContains(t, err, `study "power"`)
}

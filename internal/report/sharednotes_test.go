package report

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"dmgbench/internal/result"
)

func TestSharedNotesAreStatedOnce(t *testing.T) {
	t.Parallel()
	busy := result.Warning{Kind: "busy", Text: "other work was going on"}
	slow := result.Warning{Kind: "slow-first", Text: "round 1: the first file took 13.3 times as long"}
	rare := result.Warning{Kind: "rare", Text: "something rare"}
	ci := &result.CI{Level: 0.95, Method: "t", Unit: "round"}
	var n sharedNotes
	n.add(&result.Estimate{Why: "1 round"}, "mean of the files", "3 rounds", []result.Warning{busy, slow})
	n.add(&result.Estimate{CI: ci}, "mean of the files", "2 rounds", []result.Warning{rare, busy},
		result.PublishedValue{On: "a Mac", Ratio: 2})
	shared := func() []string {
		var notes footnotes
		notes.addShared(n, false)
		return Map(notes.list(), func(n Note) string { return n.Text })
	}
	assert.Empty(t, n.doubt([]result.Warning{busy}))
	assert.Equal(t, "Doubtful: a slow first file; something rare.", n.doubt([]result.Warning{busy, slow, rare}))
	assert.Equal(t, []string{"Measured: mean of the files.", "Interval: 95 % t over rounds.", "Where there is no interval: 1 round."},
		n.method(false), "the figures have rounds of their own")
	assert.Contains(t, n.method(true), "n: 3 rounds; 2 rounds.")
	assert.Equal(t, []string{"Ratio: measured ÷ published.", "Published: a Mac.", "Published values are not comparable (see Deviations).",
		"Weakens every figure here: other work was going on."}, shared()[3:])
	n.add(&result.Estimate{}, "", "", nil, result.PublishedValue{On: "a Mac", Comparable: true})
	assert.Equal(t, "Published values in grey or in brackets are not comparable (see Deviations).", shared()[len(shared())-1],
		"one figure is without the warning")
}

package report

import (
	"testing"

	"dmgbench/internal/result"

	"github.com/stretchr/testify/assert"
)

func TestWhatAllFiguresShareIsSaidOnce(t *testing.T) {
	t.Parallel()
	busy := result.Warning{Kind: "busy", Text: "other work was going on"}
	slow := result.Warning{Kind: "slow-first", Text: "round 1: the first file took 13.3 times as long"}
	rare := result.Warning{Kind: "rare", Text: "something rare"}
	var c comparing
	c.add([]result.Warning{busy, slow}, false)
	c.add([]result.Warning{rare, busy}, true)
	same := c.same()
	assert.Equal(t, []string{busy.Text}, same.warnings)
	assert.Equal(t, "Weakens every figure here: other work was going on.", same.weakened())
	assert.False(t, same.noInterval)
	assert.False(t, same.weakenedBeyond([]result.Warning{busy}))
	assert.True(t, same.weakenedBeyond([]result.Warning{busy, slow}))
	assert.Equal(t, "Doubtful: a slow first file; something rare.", same.beyond([]result.Warning{busy, slow, rare}))

	var none comparing
	none.add(nil, false)
	none.add([]result.Warning{busy}, false)
	assert.Empty(t, none.same().weakened(), "one figure is without")
	assert.True(t, none.same().noInterval)
	none.published(false)
	assert.True(t, none.same().uncomparable)
	none.published(true)
	assert.False(t, none.same().uncomparable)
}

package analysis

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"dmgbench/internal/plan"
	"dmgbench/internal/result"
)

// TestFigureOfEveryCycle: a figure that leaves the cycle open is said of every
// cycle, so that the author's "stays constant" can be judged on it.
func TestFigureOfEveryCycle(t *testing.T) {
	text := `schema = 1
title = "Cycles"
[source]
title = "A page"
[image]
format = "UDSB"
size = "1 GB"
[files.few]
sizes = ["1 MB"]
[[protocol]]
steps = [
  { do = "create" }, { do = "attach" }, { do = "write", phase = "new" }, { do = "delete", all = true },
  { do = "repeat", times = 5, steps = [{ do = "write", phase = "turn" }, { do = "delete", all = true }] },
  { do = "repeat", times = 9, steps = [{ do = "remount" }] },
]
[[published]]
where = { phase = "turn" }
write = "6 GB/s"
[[claim]]
says = "constant"
by = "author"
left = { write = { phase = "turn" } }
trend = { along = "cycle", is = "constant", within = "5%" }
[[claim]]
says = "spread"
by = "author"
left = { write = { phase = "turn" } }
spread = { over = "cycle", bound = "<= 1%" }
[[claim]]
says = "rising"
by = "author"
left = { write = { phase = "turn" } }
trend = { along = "cycle", is = "rising" }
`
	p, problems := plan.Parse("cycles.toml", []byte(text))
	require.Empty(t, problems.Errors(), "%v", problems)
	got := JudgePublished(p)
	require.Len(t, got, 3)
	for i, want := range []string{result.Holds, result.Holds, result.DoesNotHold} {
		assert.Equal(t, want, got[i].Verdict, "%s: %s", got[i].Says, got[i].Reason)
	}
	s, err := newRunData(p, &result.Result{})
	require.NoError(t, err)
	points := s.everyCycle(plan.Operand{Quantity: "write", Where: sel("phase", "turn")})
	require.Len(t, points, 2)
	assert.Equal(t, []string{"1", "5"}, []string{points[0].at, points[1].at}, "the repetitions that do not write do not count")
	p.Published[0].Where = plan.Selector{{Key: "phase", Values: []string{"turn"}}, {Key: "cycle", Values: []string{"2"}}}
	assert.Equal(t, result.NotMeasured, JudgePublished(p)[0].Verdict, "one cycle alone is no line")
}

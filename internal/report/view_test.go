package report

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"dmgbench/internal/plan"
	"dmgbench/internal/result"
)

// The list of formats explains each format that a case has or names, also by its type in diskutil, and no other.
func TestFormatsOfCasesAreExplained(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		what, format, key string
		want              []string
	}{
		{"format of the image", "UDSB", "", []string{"UDSB"}},
		{"name of a format", "", "UDZO", []string{"UDZO"}},
		{"type in diskutil", "", "RAW", []string{"UDRW"}},
		{"two formats", "UDSP", "ASIF", []string{"UDSP", "ASIF"}},
		{"value that is no format", "", "AES-256", nil},
		{"empty value", "", "", nil},
	} {
		r := &result.Result{Cases: []result.Case{{ID: "a", Target: result.Target{Format: c.format}, Keys: [][2]string{{"key", c.key}}}}}
		legend := NewView(&plan.Plan{}, r).Legend
		assert.Equal(t, c.want, Map(legend, func(p Pair) string { return p.Name }), c.what)
	}
}

// Files of steps that failed, and of rounds that do not count, are timed but not shown; those of canaries are neither.
func TestFilesThatAreShown(t *testing.T) {
	t.Parallel()
	step := func(round, files int, do, failure string) result.Step {
		return result.Step{Round: round, Do: do, Error: failure, Samples: make([]result.Sample, files)}
	}
	r := &result.Result{Cases: []result.Case{{ID: "a", Status: result.Done,
		Rounds: []result.CaseRound{{Round: 1, Status: result.Done}, {Round: 2, Status: result.Discarded}},
		Steps: []result.Step{step(1, 1, "canary", ""), step(1, 3, "write", ""), step(1, 5, "read", "no space left"),
			step(2, 7, "write", "")}}}}
	v := NewView(&plan.Plan{}, r)
	assert.Equal(t, []int{15, 3}, []int{v.Files, v.FilesShown})
}

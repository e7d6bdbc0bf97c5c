package result

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// foldedRun is a small run with two rounds of one case and a warning of its own.
func foldedRun(id string, change func(*Result)) *Result {
	r := &Result{Schema: SchemaVersion, Run: id, Status: Done, Plan: PlanRef{Name: "p", Digest: "d"}, Seed: 7, Rounds: 2,
		Sessions: []Session{{Index: 1, Host: Host{OS: "linux", CPU: "x"}, Engine: Engine{Name: "inprocess"}}},
		Warnings: []Warning{{Kind: "virtual", Text: "shared"}, {Kind: "drift", Text: "of " + id}},
		Cases: []Case{{ID: "a", Status: Done, Target: Target{Kind: "image"},
			Rounds: []CaseRound{{Round: 1, Status: Done}, {Round: 2, Status: Done}},
			Steps:  []Step{{Do: "write", Round: 1, Session: 1}, {Do: "write", Round: 2, Session: 1}}}}}
	if change != nil {
		change(r)
	}
	return r
}

func TestPool(t *testing.T) {
	a, b := foldedRun("one", nil), foldedRun("two", func(r *Result) {
		r.Status = Failed
		r.Cases[0].Rounds[1] = CaseRound{Round: 2, Status: Failed, Reason: "disk full"}
	})
	p, err := Pool([]*Result{a, b})
	require.NoError(t, err)
	assert.Equal(t, "one+two", p.Run)
	assert.Equal(t, 4, p.Rounds)
	assert.Equal(t, Failed, p.Status)
	assert.Equal(t, []PooledRun{{"one", Done, 1, 2}, {"two", Failed, 3, 4}}, p.Runs)
	require.Len(t, p.Sessions, 2)
	assert.Equal(t, []any{1, "one", 2, "two"}, []any{p.Sessions[0].Index, p.Sessions[0].Run, p.Sessions[1].Index, p.Sessions[1].Run})
	assert.Equal(t, []Warning{{"virtual", "shared"}, {"drift", "run one: of one"}, {"drift", "run two: of two"}}, p.Warnings)
	c := p.Cases[0]
	assert.Equal(t, Failed, c.Status)
	assert.Equal(t, "round 4: disk full", c.Reason)
	var at [][2]int
	for _, s := range c.Steps {
		at = append(at, [2]int{s.Round, s.Session})
	}
	assert.Equal(t, [][2]int{{1, 1}, {2, 1}, {3, 2}, {4, 2}}, at)
	assert.Equal(t, foldedRun("one", nil), a, "the runs themselves stay as they are")
}

// What the runs had in common of an automatic length stays; the decisions are of one run each.
func TestPoolKeepsTheRuleOfAutomaticRounds(t *testing.T) {
	auto := func(r *Result) { r.Auto = &AutoRounds{Decisions: []Look{{Stop: StopPrecise}}} }
	a, b := foldedRun("one", auto), foldedRun("two", auto)
	p, err := Pool([]*Result{a, b})
	require.NoError(t, err)
	assert.Equal(t, &AutoRounds{}, p.Auto)
	assert.Len(t, a.Auto.Decisions, 1, "the runs themselves stay as they are")
}

func TestPoolRefuses(t *testing.T) {
	for name, c := range map[string]struct {
		change func(*Result)
		want   string
	}{
		"twice":   {func(r *Result) { r.Run = "one" }, `"one" is given twice`},
		"plan":    {func(r *Result) { r.Plan.Digest = "e" }, "are not the same as executed"},
		"machine": {func(r *Result) { r.Sessions[0].Host.CPU = "y" }, `the machine is "x" in one and "y" in the other`},
		"system":  {func(r *Result) { r.Sessions[0].Host.OSVersion = "2" }, "the system is"},
		"engine":  {func(r *Result) { r.Sessions[0].Engine.Name = "hdiutil" }, "the engine is"},
		"cases":   {func(r *Result) { r.Cases[0].ID = "b" }, `case "b" is not in both`},
		"fewer":   {func(r *Result) { r.Cases = nil }, "1 cases in one and 0 in the other"},
		"target":  {func(r *Result) { r.Cases[0].Target.Filesystem = "HFS+" }, `case "a" was not made the same`},
	} {
		_, err := Pool([]*Result{foldedRun("one", nil), foldedRun("two", c.change)})
		assert.ErrorIs(t, err, ErrNotPoolable, name)
		assert.ErrorContains(t, err, c.want, name)
	}
	_, err := Pool([]*Result{foldedRun("one", nil)})
	assert.ErrorContains(t, err, "need 2 or more")
}

// What was written before the rounds of each run stays with the session that wrote it.
func TestPoolKeepsPreconditions(t *testing.T) {
	settled := func(r *Result) {
		r.Preconditions = []Precondition{{Session: 1, Place: "fast", Steady: true, Text: "of " + r.Run}}
	}
	p, err := Pool([]*Result{foldedRun("one", settled), foldedRun("two", nil), foldedRun("three", settled)})
	require.NoError(t, err)
	assert.Equal(t, []Precondition{{Session: 1, Place: "fast", Steady: true, Text: "of one"}, {Session: 3, Place: "fast", Steady: true, Text: "of three"}}, p.Preconditions)
}

// What several runs have to say of a case, or of the plan, is said once; what one run made itself has its place.
func TestPoolSaysOnceWhatRunsShare(t *testing.T) {
	noted := func(r *Result) {
		r.Departures = []Departure{{Kind: "engine", Text: "in-process"}}
		r.Cases[0].Warnings = []Warning{{Kind: "slow", Text: "slow first file"}, {Kind: "run", Text: r.Run}}
		r.Cases[0].Steps[0].FileWarnings = []Warning{{Kind: "outliers", Text: "round 1: one far file"}}
	}
	unmeasured := func(r *Result) {
		r.Cases[0].Status, r.Cases[0].Target = Skipped, Target{Kind: "image", Filesystem: "HFS+"}
		r.Sessions[0].Index = 3
	}
	p, err := Pool([]*Result{foldedRun("one", noted), foldedRun("two", unmeasured), foldedRun("three", noted)})
	require.NoError(t, err)
	assert.Equal(t, []Departure{{Kind: "engine", Text: "in-process"}}, p.Departures)
	assert.Equal(t, []Warning{{"slow", "slow first file"}, {"run", "one"}, {"run", "three"}}, p.Cases[0].Warnings)
	for _, st := range p.Cases[0].Steps {
		assert.Empty(t, st.FileWarnings, "they name the round of one run")
	}
	assert.Equal(t, Target{Kind: "image"}, p.Cases[0].Target, "as it was measured")
	assert.Equal(t, []int{1, 4, 5}, []int{p.Sessions[0].Index, p.Sessions[1].Index, p.Sessions[2].Index})
	assert.Equal(t, Done, p.Status)
}

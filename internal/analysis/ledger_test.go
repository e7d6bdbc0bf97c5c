package analysis

import (
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"dmgbench/internal/plan"
	"dmgbench/internal/result"
)

// ledgerRun is a run that judged one claim.
func ledgerRun(run, os, model, verdict string, departures ...string) HistoryRun {
	r := &result.Result{Run: run, Plan: result.PlanRef{Name: "p", Digest: "d"}, Rounds: 3,
		Sessions: []result.Session{{Index: 1, Host: result.Host{OS: "darwin", OSVersion: os, Model: model}, Engine: result.Engine{Title: "hdiutil (Apple, macOS " + os + ")"}}},
		Claims:   []result.Claim{{ID: "k", Says: "It is so", By: "author", Verdict: verdict}}}
	for _, d := range departures {
		r.Departures = append(r.Departures, result.Departure{Kind: "scale", Text: d})
		r.Plan.Digest += d
	}
	return HistoryRun{Result: r, Path: run + "/report.html"}
}

// ledgerOf is the ledger of runs whose plans are not at hand.
func ledgerOf(runs []HistoryRun) *Ledger {
	return NewLedger(runs, func(r HistoryRun) (*plan.Plan, *result.Result, error) { return nil, r.Result, nil })
}

func TestLedger(t *testing.T) {
	l := ledgerOf([]HistoryRun{
		ledgerRun("1", "26.10", "Mac", result.DoesNotHold), ledgerRun("2", "26.9", "Mac", result.Holds),
		ledgerRun("3", "26.9", "Mac", result.Holds), ledgerRun("4", "26.10", "iMac", result.Holds),
	})
	require.Len(t, l.Columns, 3)
	var systems []string
	for _, c := range l.Columns {
		systems = append(systems, c.Machine+" "+c.System)
	}
	assert.Equal(t, []string{"Mac macOS 26.9", "Mac macOS 26.10", "iMac macOS 26.10"}, systems)
	require.Len(t, l.Rows, 1)
	cells := l.Rows[0].Cells
	assert.Equal(t, result.Holds, cells[0].Verdict)
	assert.Len(t, cells[0].Entries, 2)
	assert.Equal(t, result.DoesNotHold, cells[1].Verdict)
	assert.Equal(t, "macOS 26.9", cells[1].Changed)
	assert.Empty(t, cells[2].Changed, "another machine is no earlier system")
	require.Len(t, l.Answers, 3)
	assert.Equal(t, "macOS 26.10, Mac, hdiutil (Apple, macOS 26.10): 0 of 1 claim judged hold; not “It is so”. "+
		"Reversed: “It is so” does not hold, unlike in macOS 26.9", l.Answers[1])
}

func TestLedgerContradiction(t *testing.T) {
	l := ledgerOf([]HistoryRun{ledgerRun("1", "26.4", "Mac", result.Holds), ledgerRun("2", "26.4", "Mac", result.DoesNotHold)})
	assert.Equal(t, result.CannotTell, l.Rows[0].Cells[0].Verdict)
	// A third run does not decide between two, whichever of them it agrees with and whenever it was made.
	for _, verdicts := range [][3]string{{result.Holds, result.DoesNotHold, result.Holds}, {result.Holds, result.Holds, result.DoesNotHold},
		{result.DoesNotHold, result.Holds, result.DoesNotHold}, {result.Holds, result.DoesNotHold, result.CannotTell},
		{result.Holds, result.CannotTell, result.CannotTell}} {
		var runs []HistoryRun
		for i, v := range verdicts {
			runs = append(runs, ledgerRun(strconv.Itoa(i), "26.4", "Mac", v))
		}
		assert.Equal(t, result.CannotTell, ledgerOf(runs).Rows[0].Cells[0].Verdict, "%v", verdicts)
	}
}

// Runs of another scale are shown and decide nothing beside those that were not scaled.
func TestLedgerScale(t *testing.T) {
	l := ledgerOf([]HistoryRun{ledgerRun("1", "26.4", "Mac", result.DoesNotHold, "sizes times 0.01"), ledgerRun("2", "26.4", "Mac", result.Holds)})
	c := l.Rows[0].Cells[0]
	assert.Equal(t, result.Holds, c.Verdict)
	assert.Equal(t, []string{"a", "b"}, c.Marks)
	assert.False(t, c.Entries[0].Counts)
	assert.True(t, c.Entries[1].Counts)
	assert.Equal(t, []string{"sizes times 0.01"}, l.Variants[0].Scale)

	// A verdict at another scale has not turned round.
	l = ledgerOf([]HistoryRun{ledgerRun("1", "26.4", "Mac", result.Holds), ledgerRun("2", "26.5", "Mac", result.DoesNotHold, "a tenth")})
	assert.Empty(t, l.Rows[0].Cells[1].Changed)

	assert.Equal(t, result.Holds, ledgerOf([]HistoryRun{ledgerRun("1", "26.4", "Mac", result.Holds),
		ledgerRun("2", "26.4", "Mac", result.NotMeasured)}).Rows[0].Cells[0].Verdict, "a run that did not measure it says nothing")

	// Of scaled runs only, those of one scale are not mixed with those of another.
	l = ledgerOf([]HistoryRun{ledgerRun("1", "26.4", "Mac", result.DoesNotHold, "a tenth"), ledgerRun("2", "26.4", "Mac", result.Holds, "a hundredth")})
	assert.Equal(t, result.DoesNotHold, l.Rows[0].Cells[0].Verdict)
	assert.False(t, l.Rows[0].Cells[0].Entries[1].Counts)
}

// A verdict that scaled runs alone decided says so, in its cell and in what can be said.
func TestLedgerSaysScaled(t *testing.T) {
	scaled := func(id, system string) HistoryRun {
		return ledgerRun(id, system, "Mac", result.DoesNotHold, "sizes times 0.01")
	}
	l := ledgerOf([]HistoryRun{scaled("1", "26.4"), ledgerRun("2", "26.5", "Mac", result.Holds), scaled("3", "26.5")})
	require.Len(t, l.Answers, 2)
	assert.True(t, l.Rows[0].Cells[0].Scaled)
	assert.Contains(t, l.Answers[0], "0 of 1 claim judged hold, 1 of these seen in scaled runs only; not")
	assert.False(t, l.Rows[0].Cells[1].Scaled, "the unscaled one decides")
	assert.NotContains(t, l.Answers[1], "scaled")
	other := scaled("4", "26.5")
	other.Result.Claims[0].ID, other.Result.Claims[0].Says = "more", "More"
	l = ledgerOf([]HistoryRun{ledgerRun("2", "26.5", "Mac", result.Holds), other})
	assert.Contains(t, l.Answers[0], "1 of 2 claims judged hold, 1 of these seen in scaled runs only")
}

func TestLedgerLeavesOut(t *testing.T) {
	pooled, none := ledgerRun("1+2", "26.4", "Mac", result.Holds), ledgerRun("3", "26.4", "Mac", result.Holds)
	pooled.Result.Runs = []result.PooledRun{{Run: "1"}, {Run: "2"}}
	none.Result.Claims = nil
	one := ledgerRun("1", "26.4", "Mac", result.Holds)
	l := ledgerOf([]HistoryRun{one, one, pooled, none})
	assert.Len(t, l.LeftOut, 3)
	assert.Len(t, l.Rows[0].Cells[0].Entries, 1)
	assert.Empty(t, ledgerOf(nil).Rows)
}

// Under a law in which a claim is exactly on its bound and a session favours one kind of image, a cell of three runs is
// decided in at most 5 % of cells: the session is the unit. Judged one by one, half of such cells had a run that decides.
func TestLedgerDecidesByChanceInOneCellOfTwenty(t *testing.T) {
	p := planOf(t, comparePlan+`
[[claim]]
says = "UDSB is faster"
id = "k"
by = "us"
scope = "any"
left = { write = { format = "UDSB" } }
right = { write = { format = "UDRW" } }
ratio = "> 1"
`)
	cells, most := 80, 12 // more than 12 of 80 have a chance of 1 in 10,000 at 5 %
	if os.Getenv("DMGBENCH_LONG") != "" {
		cells, most = 2000, 130
	}
	rng := rand.New(rand.NewPCG(1, 2))
	decided, alone := 0, 0
	for cell := range cells {
		var runs []HistoryRun
		for i := range minRounds {
			own := map[string]float64{"UDSB": 1 + 0.05*rng.NormFloat64(), "UDRW": 1 + 0.05*rng.NormFloat64()}
			l := steady(nil, 0)
			l.rate = func(m moment) float64 { return 5e9 * own[m.format()] * (1 + 0.02*rng.NormFloat64()) }
			r := play(p, 3, l)
			r.Run, r.Plan = fmt.Sprintf("%d-%d", cell, i), result.PlanRef{Name: "p", Digest: "d"}
			require.NoError(t, Analyze(p, r, Options{SkipWarnings: true}))
			runs = append(runs, HistoryRun{Result: r})
		}
		l := NewLedger(runs, func(r HistoryRun) (*plan.Plan, *result.Result, error) { return p, r.Result, nil })
		require.Len(t, l.Rows[0].Cells, 1)
		if isDecided(l.Rows[0].Cells[0].Verdict) {
			decided++
		}
		if slices.ContainsFunc(runs, func(r HistoryRun) bool { return isDecided(r.Result.Claims[0].Verdict) }) {
			alone++
		}
	}
	t.Logf("%d of %d cells are decided, and %d have a run that decides", decided, cells, alone)
	assert.LessOrEqual(t, decided, most)
	assert.Greater(t, alone, 3*decided, "the law has sessions that differ")
}

func TestNatural(t *testing.T) {
	list := []string{"macOS 26.10 (25K)", "macOS 26.9 (25J)", "macOS 26.9", "Linux 6.1", "macOS 9", ""}
	slices.SortFunc(list, compareNatural)
	assert.Equal(t, []string{"", "Linux 6.1", "macOS 9", "macOS 26.9", "macOS 26.9 (25J)", "macOS 26.10 (25K)"}, list)
}

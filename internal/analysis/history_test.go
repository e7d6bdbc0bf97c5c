package analysis

import (
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"dmgbench/internal/plan"
	"dmgbench/internal/result"
)

// pastOf are judged runs of one version of macOS, a day apart, behind those before.
func pastOf(t *testing.T, before []HistoryRun, system string, factors ...float64) []HistoryRun {
	t.Helper()
	for _, r := range sessionsOf(t, system, 0.005, factors...) {
		require.NoError(t, Analyze(planOf(t, comparePlan), r, Options{}))
		r.Status = result.Done
		r.Sessions[0].Engine = result.Engine{Name: "hdiutil", Vendor: "Apple", Title: "hdiutil (Apple, macOS 26." + system + ")", Version: "macOS 26." + system}
		r.Sessions[0].Started = time.Date(2026, 1, 1+len(before), 12, 0, 0, 0, time.UTC)
		before = append(before, HistoryRun{Result: r})
	}
	return before
}

// inFull gives the run itself, and counts.
func inFull(reads *int) ReadRun {
	var mu sync.Mutex
	return func(r HistoryRun) (*plan.Plan, *result.Result, error) {
		mu.Lock()
		defer mu.Unlock()
		*reads++
		return nil, r.Result, nil
	}
}

func TestHistory(t *testing.T) {
	runs := pastOf(t, nil, "4", 1, 1.01, 0.99)
	runs = pastOf(t, runs, "5", 0.8, 0.81, 0.79)
	runs = pastOf(t, runs, "6", 0.8)
	runs[1].Baseline = true
	reads := 0
	slices.Reverse(runs) // whatever the order they come in
	h := NewHistory(runs, inFull(&reads))
	require.Empty(t, h.LeftOut)
	require.Len(t, h.Series, 1)
	s := h.Series[0]
	require.Len(t, s.Runs, 7)
	assert.Equal(t, "4-1", s.Runs[0].Run)
	assert.True(t, s.Runs[1].Baseline)
	require.Len(t, s.Versions, 3)
	assert.Equal(t, "macOS 26.4 (254)", s.VersionName(0, 0, 1))
	assert.Equal(t, "macOS 26.4 (254), tool unknown, hdiutil (Apple, macOS 26.4)", s.VersionName(0))
	require.Len(t, s.Changes, 2)
	assert.Equal(t, 6+4, reads)

	for _, row := range s.Rows {
		for i, v := range row.Values {
			require.NotNil(t, v)
			sum := summaryOf(t, runs[len(runs)-1-i].Result, row.Case, row.Phase, row.Op)
			assert.Equal(t, sum.Estimates[slices.IndexFunc(sum.Estimates, func(e result.Estimate) bool { return e.Name == sum.Headline })].Value, v.Value)
		}
	}
	changed := s.Changes[0].Comparison
	require.NotNil(t, changed)
	assert.Equal(t, []string{"macOS 26.4 (254)", "macOS 26.5 (255)"}, []string{changed.Sides[0].Name, changed.Sides[1].Name})
	for _, r := range changed.Rows {
		assert.Equal(t, RowChanged, r.Status, "%s %s", r.Case, r.Op)
		assert.InDelta(t, 0.8, r.Ratio, 0.02)
	}
	require.NotNil(t, s.Changes[1].Comparison)
	assert.Equal(t, [2]int{3, 1}, s.Changes[1].Used)
}

// One session a side decides nothing, however large the difference.
func TestHistoryOfOneRunEach(t *testing.T) {
	reads := 0
	runs := pastOf(t, pastOf(t, nil, "4", 1), "5", 0.5)
	h := NewHistory(runs, inFull(&reads))
	for _, r := range h.Series[0].Changes[0].Comparison.Rows {
		assert.Equal(t, RowSessionUnknown, r.Status)
		assert.Regexp(t, "^~ session effect unknown", r.Effect)
	}
	runs[1].Result.Status = result.Unfinished
	assert.Equal(t, runs[0].Result, NewHistory(runs, inFull(&reads)).Series[0].Newest, "one that has ended")
	c := NewHistory(runs, inFull(&reads)).Series[0].Changes[0]
	assert.Nil(t, c.Comparison)
	assert.Equal(t, "no run of one of the two has ended", c.Why)
	runs[1].Result.Status = result.Done
	c = NewHistory(runs, func(HistoryRun) (*plan.Plan, *result.Result, error) { return nil, nil, errors.New("gone") }).Series[0].Changes[0]
	assert.Equal(t, "reading run 4-1: gone", c.Why)
}

// What was not measured alike is never one line.
func TestHistoryJoinsNothingUnlike(t *testing.T) {
	unlike := map[string]func(*result.Result){
		"digest":      func(r *result.Result) { r.Plan.Digest = "another" },
		"plan":        func(r *result.Result) { r.Plan.Name = "another" },
		"scale":       func(r *result.Result) { r.Departures = []result.Departure{{Kind: "scale", Text: "sizes times 0.1"}} },
		"host":        func(r *result.Result) { r.Sessions[0].Host.Name = "another" },
		"machine":     func(r *result.Result) { r.Sessions[0].Host.Model = "Mac14,3" },
		"disk":        func(r *result.Result) { r.Sessions[0].Host.Disks = []result.Disk{{Device: "Another SSD"}} },
		"file system": func(r *result.Result) { r.Cases[0].Target.Filesystem = "ext4" },
		"engine": func(r *result.Result) {
			r.Sessions[0].Engine = result.Engine{Name: "inprocess", Vendor: "dmgbench", Title: "in-process"}
		},
	}
	reads := 0
	for name, change := range unlike {
		runs := pastOf(t, pastOf(t, nil, "4", 1), "5", 1)
		runs[0].Result.Sessions[0].Host.Name = "one"
		change(runs[1].Result)
		assert.Len(t, NewHistory(runs, inFull(&reads)).Series, 2, name)
	}
	assert.Zero(t, reads)
	for name, change := range map[string]func(*result.Result){
		"tool":    func(r *result.Result) { r.Tool.Version = "9" },
		"engine":  func(r *result.Result) { r.Sessions[0].Engine.Version = "9" },
		"kernel":  func(r *result.Result) { r.Sessions[0].Host.OSBuild, r.Sessions[0].Host.Kernel = "", "6.12" },
		"nothing": func(*result.Result) {},
		"host":    func(r *result.Result) { r.Sessions[0].Host.Name = "known of one run" },
		"no images yet": func(r *result.Result) {
			r.Tool.Version = "9"
			for i := range r.Cases {
				r.Cases[i].Status, r.Cases[i].Target.Filesystem = result.Failed, "unasked"
			}
		},
	} {
		runs := pastOf(t, nil, "4", 1, 1)
		change(runs[1].Result)
		s := NewHistory(runs, inFull(&reads)).Series
		require.Len(t, s, 1, name)
		assert.Len(t, s[0].Versions, map[bool]int{true: 1, false: 2}[name == "nothing" || name == "host"], name)
	}
	runs := pastOf(t, nil, "4", 1, 1, 1)
	runs = append(runs, runs[0])
	runs[1].Result.Runs = []result.PooledRun{{Run: "x"}}
	runs[2].Result.Sessions = nil
	assert.Len(t, NewHistory(runs, inFull(&reads)).LeftOut, 3)
}

// Of many runs the ones next to the change are compared, of many changes the newest; the rest is said.
func TestHistoryIsBounded(t *testing.T) {
	runs := pastOf(t, nil, "4", slices.Repeat([]float64{1}, 12)...)
	runs = pastOf(t, runs, "5", slices.Repeat([]float64{1}, 12)...)
	reads := 0
	c := NewHistory(runs, inFull(&reads)).Series[0].Changes[0]
	assert.Equal(t, [2]int{12, 12}, c.Ended)
	assert.Equal(t, [2]int{8, 8}, c.Used)
	assert.Equal(t, []string{"4-5", "4-12"}, []string{c.Comparison.Sides[0].Runs[0], c.Comparison.Sides[0].Runs[7]})
	assert.Equal(t, []string{"5-1", "5-8"}, []string{c.Comparison.Sides[1].Runs[0], c.Comparison.Sides[1].Runs[7]})
	assert.Equal(t, 16, reads)

	runs = nil
	for i := range 12 {
		runs = pastOf(t, runs, fmt.Sprint(i), slices.Repeat([]float64{1}, changeRuns)...)
	}
	compared := changeReads / (2 * changeRuns)
	for i, c := range NewHistory(runs, inFull(&reads)).Series[0].Changes {
		assert.Equal(t, i >= 11-compared, c.Comparison != nil, i)
		assert.Equal(t, c.Comparison == nil, c.Why != "", i)
	}
}

// A version is named by the parts in which it differs; an engine that comes with the system is not one of them.
func TestVersionsAreNamedByTheirDifferences(t *testing.T) {
	s := HistorySeries{Versions: []HistoryVersion{
		{System: "Linux 6", Tool: "1.0", Engine: "in-process 1"}, {System: "Linux 6", Tool: "1.0", Engine: "in-process 2"},
		{System: "macOS 26.4", Tool: "1.0", Engine: "hdiutil (Apple, macOS 26.4)"},
		{System: "macOS 26.5", Tool: "1.0", Engine: "hdiutil (Apple, macOS 26.5)"},
		{System: "macOS 26.5", Tool: "1.0", Engine: "diskutil (Apple, macOS 26.5)"}}}
	for _, k := range []struct {
		version int
		among   []int
		want    string
	}{{1, []int{0, 1}, "in-process 2"}, {3, []int{2, 3}, "macOS 26.5"}, {4, []int{3, 4}, "diskutil (Apple, macOS 26.5)"},
		{2, []int{0, 2}, "macOS 26.4"}, {0, []int{0}, "Linux 6, 1.0, in-process 1"}} {
		assert.Equal(t, k.want, s.VersionName(k.version, k.among...))
	}
}

// The plan of the runs judges the required claims of a version's sessions.
func TestHistoryJudgesClaims(t *testing.T) {
	p := planOf(t, comparePlan+`
[[claim]]
says = "UDSB is faster"
by = "us"
scope = "any"
require = true
left = { write = { format = "UDSB" } }
right = { write = { format = "UDRW" } }
ratio = "> 1"
`)
	runs := pastOf(t, nil, "4", 1, 1.01, 0.99)
	runs = pastOf(t, runs, "5", 1, 1.01, 0.99)
	for _, r := range runs {
		require.NoError(t, Analyze(p, r.Result, Options{}))
	}
	read := func(r HistoryRun) (*plan.Plan, *result.Result, error) { return p, r.Result, nil }
	c := NewHistory(runs, read).Series[0].Changes[0].Comparison
	require.Len(t, c.Claims, 1)
	assert.Equal(t, []string{result.Holds, result.Holds}, c.Claims[0].Verdicts)
	assert.Empty(t, c.Notes)
}

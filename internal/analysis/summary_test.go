package analysis

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"dmgbench/internal/result"
)

const twoFormats = `
schema = 1
title = "two formats"
[source]
title = "an article"
on = { machine = "Mac mini M4 Pro", os = "macOS 26.3.1" }
[image]
size = "10 GB"
[matrix]
format = ["UDRW", "UDSB"]
[files.set]
sizes = ["2 MB", "4 MB", "8 MB", "16 MB"]
sets = 6
[[protocol]]
steps = [
  { do = "create" },
  { do = "attach" },
  { do = "write", phase = "new" },
  { do = "remount" },
  { do = "read", phase = "new" },
  { do = "detach" },
  { do = "measure", phase = "full" },
]
[run]
canary = false
`

func TestSummaryNumbers(t *testing.T) {
	p := planOf(t, twoFormats)
	l := steady(map[string]float64{"UDRW": 1e9, "UDSB": 2e9, "native": 4e9}, 0)
	l.disk = func(m moment) result.DiskUse { return result.DiskUse{Allocated: 200e6, Bands: 24, VolumeFree: -1} }
	r := analysed(t, p, 3, l)
	s := summaryOf(t, r, "format=UDSB", "new", "write")
	assert.Equal(t, 72, s.N)
	assert.Equal(t, 3, s.Rounds)
	assert.EqualValues(t, 3*6*30e6, s.Bytes)
	assert.Equal(t, "aggregate", s.Headline)
	byName := map[string]result.Estimate{}
	for _, e := range s.Estimates {
		byName[e.Name] = e
	}
	// 24 files of 180 MB at 2 GB/s, 100 µs each and 1 µs between.
	assert.InEpsilon(t, 180e6/(180e6/2e9+24*(1e-4+1e-6)), byName["aggregate"].Value, 1e-6)
	// Every rate by itself: size / (latency + size / 2 GB/s).
	mean := 0.0
	for _, size := range []float64{2e6, 4e6, 8e6, 16e6} {
		mean += size / (1e-4 + size/2e9) / 4
	}
	assert.InEpsilon(t, mean, byName["mean"].Value, 1e-6)
	assert.InEpsilon(t, 2e9, byName["theil-sen"].Value, 1e-6)
	assert.InEpsilon(t, 2e9, byName["least-squares"].Value, 1e-6)
	assert.InEpsilon(t, 1e-4, byName["latency"].Value, 1e-3)
	assert.Equal(t, "s", byName["latency"].Unit)
	require.NotNil(t, byName["aggregate"].CI)
	assert.Equal(t, "round", byName["aggregate"].CI.Unit)
	assert.Equal(t, 24.0, summaryOf(t, r, "format=UDSB", "full", "bands").Estimates[0].Value)
	for _, s := range r.Summaries {
		assert.False(t, s.Case == "format=UDRW" && s.Op == "bands", "a raw image has no bands")
		assert.NotEqual(t, "free", s.Op, "a detached volume has no free space")
	}
}

func TestIntervalsOfOneRound(t *testing.T) {
	p := planOf(t, twoFormats)
	r := analysed(t, p, 1, steady(map[string]float64{"UDRW": 1e9, "UDSB": 2e9, "native": 4e9}, 0.05))
	for _, e := range summaryOf(t, r, "format=UDRW", "new", "read").Estimates {
		if e.Name == "minimum" || e.Name == "maximum" {
			assert.Nil(t, e.CI)
			assert.NotEmpty(t, e.Why)
			continue
		}
		require.NotNil(t, e.CI, e.Name)
		assert.Equal(t, "file within one mount", e.CI.Unit, e.Name)
		assert.LessOrEqual(t, e.CI.Low, e.Value*(1+1e-9)+1e-9, e.Name)
		assert.GreaterOrEqual(t, e.CI.High, e.Value*(1-1e-9)-1e-9, e.Name)
	}
	r = analysed(t, p, 2, steady(map[string]float64{"UDRW": 1e9, "UDSB": 2e9, "native": 4e9}, 0.05))
	e := summaryOf(t, r, "format=UDRW", "new", "read").Estimates[0]
	assert.Nil(t, e.CI)
	assert.Equal(t, "2 rounds, and an interval needs 3", e.Why)
}

func TestSeveralWorkers(t *testing.T) {
	p := planOf(t, twoFormats)
	r := play(p, 3, steady(map[string]float64{"UDRW": 1e9, "UDSB": 2e9, "native": 4e9}, 0))
	for i := range r.Cases {
		for k := range r.Cases[i].Steps {
			st := &r.Cases[i].Steps[k]
			if st.Span != nil {
				st.Workers = 2
				st.Span.LastDoneNS = st.Span.GateNS + (st.Span.LastDoneNS-st.Span.GateNS)/2
			}
		}
	}
	p.Run.Estimator = "median"
	require.NoError(t, Analyze(p, r, Options{}))
	s := summaryOf(t, r, "format=UDSB", "new", "write")
	assert.Equal(t, "aggregate", s.Headline)
	for _, e := range s.Estimates {
		assert.NotContains(t, []string{"theil-sen", "least-squares", "weighted", "latency"}, e.Name)
	}
	assert.InEpsilon(t, 2*180e6/(180e6/2e9+24*(1e-4+1e-6)), s.Estimates[0].Value, 1e-6)
}

func TestAnalyseTwiceIsOnce(t *testing.T) {
	p := planOf(t, twoFormats)
	l := steady(map[string]float64{"UDRW": 1e9, "UDSB": 2e9, "native": 1.5e9}, 0.02)
	l.host = result.Host{OS: "linux", Power: "battery", CPU: "EPYC"}
	a, b := analysed(t, p, 3, l), analysed(t, p, 3, l)
	first, err := json.Marshal(a)
	require.NoError(t, err)
	second, err := json.Marshal(b)
	require.NoError(t, err)
	require.Equal(t, string(first), string(second))
	require.NoError(t, Analyze(p, b, Options{}))
	third, err := json.Marshal(b)
	require.NoError(t, err)
	require.Equal(t, string(first), string(third))
}

// A plan may call a phase as it likes: what is done in it makes the canary, not its name.
func TestAPhaseCalledCanaryIsMeasured(t *testing.T) {
	r := analysed(t, planOf(t, strings.ReplaceAll(twoFormats, `phase = "new"`, `phase = "canary"`)), 3,
		steady(map[string]float64{"UDRW": 1e9, "UDSB": 2e9, "native": 4e9}, 0))
	assert.Equal(t, 72, summaryOf(t, r, "format=UDSB", "canary", "write").N)
}

// Below three rounds no figure is certain, though one round has an interval over its files; three that agree are enough.
func TestFiguresAreCertainFromTheThirdRoundOn(t *testing.T) {
	p := planOf(t, twoFormats)
	p.Run.Precision = 0.05
	for rounds, areCertain := range map[int]bool{1: false, 2: false, 3: true} {
		judged, wide, err := Widths(p, play(p, rounds, steady(flat(), 0.001)))
		require.NoError(t, err)
		require.Positive(t, judged)
		if areCertain {
			assert.Empty(t, wide)
			continue
		}
		assert.Len(t, wide, judged, rounds)
		for _, w := range wide {
			assert.Negative(t, w.Half, "unknown after %d rounds", rounds)
		}
	}
}

// A file that took less than the clock can tell has no rate, and its step has the rate of its other files.
func TestFilesThatTookNoTimeAreNotCounted(t *testing.T) {
	p := planOf(t, twoFormats)
	r := play(p, 3, steady(flat(), 0.01))
	for _, c := range r.Cases {
		for _, st := range c.Steps {
			if st.Do == "write" {
				st.Samples[0].DurationNS = 0
			}
		}
	}
	require.NoError(t, Analyze(p, r, Options{}))
	s := summaryOf(t, r, "format=UDSB", "new", "write")
	assert.Equal(t, 3*23, s.N)
	e, ok := findEstimate(s.Estimates, meanRate)
	require.True(t, ok)
	assert.InEpsilon(t, 2e9, e.Value, 0.1)
}

// A file during which the process was stopped counts in no figure: the others have the same as without it.
func TestAFileThatWasStoppedChangesNoFigure(t *testing.T) {
	p, l := planOf(t, twoFormats), steady(flat(), 0.02)
	with, without := play(p, 3, l), play(p, 3, l)
	const stop = int64(500e6)
	for _, r := range []*result.Result{with, without} {
		for i := range r.Cases[0].Steps {
			st := &r.Cases[0].Steps[i]
			if st.Round != 2 || st.Do != "write" {
				continue
			}
			f := st.Samples[3]
			if st.DurationNS += stop; r == with {
				st.Samples[3].DurationNS += stop
				st.Span.LastDoneNS, st.Span.BusyNS = st.Span.LastDoneNS+stop, st.Span.BusyNS+stop
				st.LeaveOut(3)
				continue
			}
			st.Samples = slices.Delete(slices.Clone(st.Samples), 3, 4)
			st.Span.LastDoneNS, st.Span.BusyNS = st.Span.LastDoneNS-f.DurationNS, st.Span.BusyNS-f.DurationNS
			st.Span.Bytes -= f.Bytes
		}
		require.NoError(t, Analyze(p, r, Options{}))
	}
	for i, s := range with.Summaries {
		if s.Op != "write_time" {
			assert.Equal(t, without.Summaries[i], s)
		}
	}
	assert.Equal(t, without.Fits, with.Fits)
	assert.Equal(t, 71, summaryOf(t, with, "format=UDRW", "new", "write").N)
	assert.Equal(t, 2, summaryOf(t, with, "format=UDRW", "new", "write_time").N, "the time of all files is not known in a round")
}

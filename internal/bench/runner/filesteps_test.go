package runner_test

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"dmgbench/internal/bench/engine/inprocess"
	"dmgbench/internal/bench/runner"
	"dmgbench/internal/result"
)

const manySets = `
schema = 1
title = "Several file sets, copies and streams"
[target]
kind = "directory"
[io]
cache = "buffered"
files = "few"
[inputs.big]
about = "any file"
size = "100 kB"
optional = true
[files.few]
sizes = ["10 kB", "4097 B"]
[files.half]
sizes = ["20 kB"]
data = "mixed"
compressible = "50%"
[files.nothing]
sizes = ["5 kB"]
data = "zero"
[run]
rounds = 1
canary = false
[[protocol]]
steps = [
  { do = "create" },
  { do = "attach" },
  { do = "mkdir", dir = "a/b/c" },
  { do = "write", phase = "few" },
  { do = "write", phase = "half", files = "half" },
  { do = "parallel", steps = [{ do = "read", phase = "beside" }, { do = "write", phase = "nothing", files = "nothing" }] },
  { do = "copy", phase = "in", from = "big", to = "a/b/c/big" },
  { do = "copy", phase = "on", from = "a/b/c/big", to = "twin" },
  { do = "stream", phase = "pack", from = "twin", to = "packed" },
  { do = "verify", phase = "all", batch = "all" },
  { do = "delete", phase = "last", all = true, batch = "last" },
  { do = "verify", phase = "rest", batch = "all" },
  { do = "attach", phase = "again", expect = "fail" },
  { do = "delete", phase = "all", all = true },
  { do = "detach" },
]
`

// TestFilesOfEverySetAreTheirOwn: files are verified against the data of the set
// that they were written from, and what copies and streams made counts as live
// and goes with everything else.
func TestFilesOfEverySetAreTheirOwn(t *testing.T) {
	c := config(t, manySets)
	out, err := runner.Run(t.Context(), c)
	require.NoError(t, err)
	require.Equal(t, runner.StatusDone, out.Status)
	cs := fold(t, c.Out).Cases[0]
	require.Equal(t, result.Done, cs.Status, cs.Reason)
	live := map[string]int64{}
	var packed int64
	for _, st := range cs.Steps {
		live[st.Do+" "+st.Phase] = st.Live
		if st.Stream != nil {
			packed = st.Stream.Out
			assert.Positive(t, st.Stream.Threads, "0 threads is one a CPU")
		}
	}
	assert.EqualValues(t, 14097, live["write few"])
	assert.EqualValues(t, 34097, live["write half"])
	assert.EqualValues(t, 39097, live["parallel "])
	assert.EqualValues(t, 239097+packed, live["stream pack"])
	assert.EqualValues(t, 234097+packed, live["delete last"])
	assert.Zero(t, live["delete all"])
}

// What a remount waits for is no part of its time: the clock of this run moves by waiting alone.
func TestWaitingIsNoPartOfARemount(t *testing.T) {
	c := config(t, strings.Replace(small, `{ do = "remount" }`, `{ do = "remount", times = 3, settle = "5 min" }`, 1))
	out, err := runner.Run(t.Context(), c)
	require.NoError(t, err)
	require.Equal(t, runner.StatusDone, out.Status)
	seen := 0
	for _, cs := range fold(t, c.Out).Cases {
		for _, st := range cs.Steps {
			switch st.Do {
			case "remount":
				seen++
				assert.Less(t, st.DurationNS, int64(time.Minute))
			case "settle":
				assert.GreaterOrEqual(t, st.DurationNS, int64(10*time.Minute))
			}
		}
	}
	assert.Equal(t, 4, seen)
}

// far is how far the progress says that a run has come.
type far struct{ last runner.Status }

func (f *far) Status(s runner.Status) { f.last = s }
func (*far) Message(string)           {}
func (*far) Warning(string)           {}
func (*far) Failure(runner.Failure)   {}

// What copies and streams write is in what there is to write, and so in what was written.
func TestProgressCountsEverythingWritten(t *testing.T) {
	c := config(t, manySets)
	seen := &far{}
	c.Progress = seen
	_, err := runner.Run(t.Context(), c)
	require.NoError(t, err)
	var wrote int64
	for _, st := range fold(t, c.Out).Cases[0].Steps {
		switch {
		case st.Stream != nil:
			wrote += st.Stream.Out
		case st.Do == "write" || st.Do == "copy":
			wrote += st.Span.Bytes
		}
	}
	require.Greater(t, wrote, int64(2*100_000))
	assert.Equal(t, wrote, seen.last.RunBytes)
}

const besideEachOther = `
schema = 1
title = "Parallel steps on two containers"
[image]
format = "UDRW"
size = "8 MB"
[files.f]
sizes = ["600 kB", "5 kB"]
[files.g]
sizes = ["70 kB"]
[run]
rounds = 1
canary = false
baseline = false
[[protocol]]
steps = [
  { do = "create" },
  { do = "attach" },
  { do = "write", phase = "first", files = "f" },
  { do = "detach" },
  { do = "transfer", as = "other" },
  { do = "manifest", phase = "before" },
  { do = "manifest", phase = "before-other", on = "other" },
  { do = "attach" },
  { do = "attach", on = "other" },
  { do = "parallel", steps = [
    { do = "write", phase = "a", files = "f" }, { do = "write", phase = "b", files = "g" }, { do = "read", phase = "c" },
    { do = "write", phase = "d", files = "g", on = "other" }, { do = "read", phase = "e", on = "other" } ] },
  { do = "verify", phase = "here", batch = "all" },
  { do = "verify", phase = "other", batch = "all", on = "other" },
  { do = "detach" },
  { do = "detach", on = "other" },
  { do = "manifest", phase = "after" },
  { do = "manifest", phase = "after-other", on = "other" },
]
`

// What steps beside each other wrote is known to the steps after them, on every container.
func TestParallelStepsAreMergedInFull(t *testing.T) {
	c := config(t, besideEachOther)
	c.Engine = inprocess.New(nil)
	_, err := runner.Run(t.Context(), c)
	require.NoError(t, err)
	cs := fold(t, c.Out).Cases[0]
	require.Equal(t, result.Done, cs.Status, cs.Reason)
	var edited, live []int64
	for _, st := range cs.Steps {
		if st.Do == "manifest" && strings.HasPrefix(st.Phase, "after") {
			edited, live = append(edited, st.Changes.Edited), append(live, st.Live)
		}
	}
	assert.Equal(t, []int64{605_000 + 70_000, 70_000}, edited)
	assert.Equal(t, []int64{2*605_000 + 70_000, 605_000 + 70_000}, live)
}

package runner_test

import (
	"io/fs"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"dmgbench/internal/bench/engine/inprocess"
	"dmgbench/internal/bench/runner"
	"dmgbench/internal/result"
	"dmgbench/internal/system/clock"
	"dmgbench/internal/system/host"
)

// asleep lets the machine of c sleep for an hour when a step begins of which when says so.
func asleep(c *runner.Config, when func(runner.Status) bool) {
	var slept time.Duration
	c.Suspended = func() (time.Duration, error) { return slept, nil }
	c.Progress = &at{when: when, do: func() { slept += time.Hour }}
}

// attempts are how often each case was begun in all.
func attempts(t *testing.T, c runner.Config) (n int) {
	t.Helper()
	text, err := os.ReadFile(c.Out + "/journal.jsonl")
	require.NoError(t, err)
	return strings.Count(string(text), `"kind":"case_start"`)
}

// What is measured again is made again, also where the images are kept: of the try that does not count none is.
func TestACaseThatSleptIsMeasuredAgain(t *testing.T) {
	for _, keep := range []bool{false, true} {
		c := lived(t, once)
		c.Keep = keep
		asleep(&c, step("UDSB", "read", "new"))
		out, err := runner.Run(t.Context(), c)
		require.NoError(t, err)
		for _, cs := range fold(t, c.Out).Cases {
			require.Equal(t, result.Done, cs.Status, cs.Reason)
		}
		require.Equal(t, runner.StatusDone, out.Status)
		assert.Equal(t, 3, attempts(t, c))
		if !keep {
			nothingLeft(t, c)
			continue
		}
		list, err := os.ReadDir(work(t, c))
		require.NoError(t, err)
		assert.Len(t, list, 3, "the marker and two images")
		assert.Equal(t, 1, strings.Count(strings.Join(out.Kept, "\n"), "dmgbench hdiutil attach -readonly "+work(t, c)+"/case02"), "%q", out.Kept)
	}
}

// A step during which the process did not run for a moment, or was held back by a limit, says so; its case counts.
func TestAStepThatWasStoppedSaysSo(t *testing.T) {
	c := lived(t, once)
	var stopped, throttled time.Duration
	c.Suspended = func() (time.Duration, error) { return stopped, nil }
	c.Throttled = func() time.Duration { return throttled }
	c.Progress = &at{when: step("UDSB", "read", "new"), do: func() {
		stopped, throttled = stopped+300*time.Millisecond, throttled+2*time.Millisecond
	}}
	_, err := runner.Run(t.Context(), c)
	require.NoError(t, err)
	assert.Equal(t, 2, attempts(t, c))
	var said []string
	for _, cs := range fold(t, c.Out).Cases {
		for _, st := range cs.Steps {
			for _, w := range st.Warnings {
				if w.Kind == "stopped" || w.Kind == "throttled" {
					said = append(said, st.Do+" "+w.Text)
				}
			}
		}
	}
	assert.Equal(t, []string{"read the process did not run for 300ms of this step",
		"read a limit of processor time (cpu.max) kept the process from running for 2ms of this step"}, said)
}

// What a step measured while the process was stopped is in the journal, and its span does not count it.
func TestFilesOfAStepThatWasStoppedAreMarkedInTheJournal(t *testing.T) {
	c := lived(t, once)
	real, from := clock.NewReal(), time.Duration(0)
	c.Clock, c.Engine = real, inprocess.New(real.Wall)
	c.Stops = func() []host.Stop {
		if from == 0 {
			return nil
		}
		return []host.Stop{{Began: real.Now() - from}}
	}
	c.Progress = &at{when: step("UDSB", "read", "new"), do: func() { from = real.Now() }}
	_, err := runner.Run(t.Context(), c)
	require.NoError(t, err)
	for _, cs := range fold(t, c.Out).Cases {
		for _, st := range cs.Steps {
			if !strings.Contains(cs.ID, "UDSB") || len(st.Samples) == 0 {
				continue
			}
			isRead := st.Do == "read"
			for _, f := range st.Samples {
				assert.Equal(t, isRead, f.Stopped, "%s %s", st.Do, f.File)
			}
			assert.Equal(t, isRead, st.Span.Bytes == 0, st.Do)
			assert.Equal(t, isRead, st.Span.LastDoneNS == st.Span.GateNS, st.Do)
		}
	}
}

// A sleep before a pause is one in the middle of the case as well.
func TestASleepBeforeAPauseCounts(t *testing.T) {
	c := lived(t, paused)
	asleep(&c, step("", "write", "new"))
	out, err := runner.Run(t.Context(), c)
	require.NoError(t, err)
	require.Equal(t, runner.StatusPaused, out.Status)
	assert.Equal(t, 2, attempts(t, c), "begun anew, and then paused")
	c.Progress = nil
	toTheEnd(t, c)
	assert.Equal(t, 3, attempts(t, c), "the second case has one")
}

// A case whose images are kept has been measured when they are detached: what sleeps then, sleeps behind it.
func TestASleepBehindWhatIsKeptDoesNotCount(t *testing.T) {
	c := lived(t, once)
	c.Keep = true
	asked := 0
	c.Suspended = func() (time.Duration, error) {
		text, err := os.ReadFile(c.Out + "/journal.jsonl")
		require.NoError(t, err)
		steps := strings.Count(string(text), `"kind":"step_start"`)
		if asked++; asked > 2+2*steps { // when the first case begins, around its steps, and before it is kept
			return time.Hour, nil
		}
		return 0, nil
	}
	out, err := runner.Run(t.Context(), c)
	require.NoError(t, err)
	assert.Equal(t, runner.StatusDone, out.Status)
	assert.Equal(t, 2, attempts(t, c))
}

// Whoever goes on at another folder leaves what lies in the one before to clean, also while its disk is away.
func TestCleanFindsTheFoldersOfEarlierSessions(t *testing.T) {
	for _, away := range []bool{false, true} {
		c, left := atPause(t)
		before := c.Places
		c.Plan, c.Places = nil, []runner.Place{{Path: t.TempDir()}}
		if away {
			require.NoError(t, os.Rename(before[0].Path, before[0].Path+" away"))
		}
		out, err := runner.Resume(t.Context(), c.Out, c)
		require.NoError(t, err)
		for out.Status == runner.StatusPaused { // the second case
			out, err = resumed(t.Context(), t, c)
			require.NoError(t, err)
		}
		if away {
			require.NoError(t, os.Rename(before[0].Path+" away", before[0].Path))
		}
		_, err = os.Lstat(left)
		require.NoError(t, err)
		var said strings.Builder
		require.NoError(t, runner.Clean(t.Context(), c.StateDir, runner.CleanOptions{}, &said))
		_, err = os.Lstat(left)
		assert.ErrorIs(t, err, fs.ErrNotExist, said.String())
		c.Places = before
		nothingLeft(t, c)
	}
}

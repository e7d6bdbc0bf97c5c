package runner_test

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"dmgbench/internal/bench/engine"
	"dmgbench/internal/bench/runner"
	"dmgbench/internal/plan"
	"dmgbench/internal/result"
)

// renamed is an engine that says of itself to be another.
type renamed struct {
	engine.Engine
	info engine.Info
}

func (e renamed) Info() engine.Info { return e.info }

// broken is a run of the text that was interrupted early.
func broken(t *testing.T, text string) runner.Config {
	t.Helper()
	c := lived(t, text)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	c.Progress = &stopper{left: 9, cancel: cancel}
	c.Host.Disks = []result.Disk{{Filesystem: "ext4"}}
	out, err := runner.Run(ctx, c)
	require.NoError(t, err)
	require.Equal(t, runner.StatusInterrupted, out.Status)
	c.Progress = nil
	return c
}

func TestARunGoesOnWithNoOtherEngine(t *testing.T) {
	c := broken(t, life)
	before, err := os.ReadFile(filepath.Join(c.Out, result.JournalFile))
	require.NoError(t, err)
	other := c
	info := c.Engine.Info()
	info.Vendor, info.Title = "Apple", "hdiutil (Apple)"
	other.Engine = renamed{c.Engine, info}
	_, err = resumed(t.Context(), t, other)
	var told *result.Error
	require.ErrorAs(t, err, &told)
	assert.Contains(t, told.Error(), "started with in-process, and this is hdiutil (Apple)")
	after, err := os.ReadFile(filepath.Join(c.Out, result.JournalFile))
	require.NoError(t, err)
	require.Equal(t, before, after, "a refused resume wrote to the journal")

	out, err := resumed(t.Context(), t, c)
	require.NoError(t, err)
	require.Equal(t, runner.StatusDone, out.Status)
}

func TestWhatIsAnotherThanInTheSessionBeforeIsAWarning(t *testing.T) {
	c := broken(t, life)
	info := c.Engine.Info()
	info.Version = "2"
	c.Engine = renamed{c.Engine, info}
	c.Host.OS, c.Host.OSVersion = "darwin", "26.5"
	c.Host.Disks = []result.Disk{{Filesystem: "tmpfs"}}
	out, err := resumed(t.Context(), t, c)
	require.NoError(t, err)
	require.Equal(t, runner.StatusDone, out.Status)
	var texts []string
	for _, w := range fold(t, c.Out).Warnings {
		if w.Kind == "changed" {
			texts = append(texts, w.Text)
		}
	}
	require.Len(t, texts, 3)
	assert.Contains(t, texts[0], `the disk of place "" is "tmpfs" in session 2 and was "ext4" before`)
	assert.Contains(t, texts[2], `the system is "darwin 26.5" in session 2 and was "" before`)
	assert.Contains(t, texts[1], `the engine is "inprocess 2" in session 2 and was "inprocess`)
}

const brought = `
schema = 1
title = "With a file of the user"
[image]
size = "12 MB"
filesystem_preference = ["exFAT"]
[inputs.file]
about = "any"
size = "100 kB"
[matrix]
format = ["UDRW", "UDSB"]
[files.few]
sizes = ["64 kB", "300001 B"]
sets = 1
[run]
rounds = 1
baseline = false
canary = false
[[protocol]]
steps = [
  { do = "create" }, { do = "attach" }, { do = "write", phase = "new" },
  { do = "copy", phase = "new", from = "file", to = "a.bin" }, { do = "read", phase = "new" },
]
`

// A file that was brought is known to the resume that is not told of it; where nobody knows it any more nothing is measured.
func TestResumeKnowsTheFilesOfTheRun(t *testing.T) {
	for _, known := range []bool{true, false} {
		c := lived(t, brought)
		file := filepath.Join(t.TempDir(), "file.bin")
		require.NoError(t, os.WriteFile(file, make([]byte, 90_000), 0o644))
		c.Inputs = map[string]string{"file": file}
		ctx, cancel := context.WithCancel(t.Context())
		c.Progress = &at{when: step("UDSB", "create", ""), do: cancel}
		out, err := runner.Run(ctx, c)
		cancel()
		require.NoError(t, err)
		require.Equal(t, runner.StatusInterrupted, out.Status)
		again := c
		again.Inputs, again.Progress = nil, nil
		if !known {
			require.NoError(t, os.RemoveAll(c.StateDir))
			_, err = runner.Resume(t.Context(), c.Out, runner.Config{Engine: c.Engine, Clock: c.Clock, StateDir: c.StateDir, Places: c.Places})
			var told *result.Error
			require.ErrorAs(t, err, &told)
			assert.Contains(t, told.Error(), `the file "file" is not known any more`)
			assert.Equal(t, "give it again with --input file=PATH", told.Hint)
			again.Inputs = c.Inputs
		}
		again.Plan = nil
		out, err = runner.Resume(t.Context(), c.Out, again)
		require.NoError(t, err)
		require.Equal(t, runner.StatusDone, out.Status)
		r := fold(t, c.Out)
		require.Contains(t, r.Departures, result.Departure{Kind: "input", Text: `the file "file" has 90000 B; the plan expects 100 kB`})
		nothingLeft(t, c)
	}
}

// The plan language grows: run folders whose plan.toml an earlier version wrote, with fewer keys, go on.
func TestAnEarlierPlanGoesOn(t *testing.T) {
	c := broken(t, life)
	path, journal := filepath.Join(c.Out, result.PlanFile), filepath.Join(c.Out, result.JournalFile)
	text, err := os.ReadFile(path)
	require.NoError(t, err)
	records, err := os.ReadFile(journal)
	require.NoError(t, err)
	earlier := withoutADefault(t, c.Plan, string(text))
	sum := sha256.Sum256([]byte(earlier))
	was := regexp.MustCompile(`,"crc32c":"[0-9a-f]{8}"`).ReplaceAllString(string(records), "") // as earlier versions wrote them
	was = strings.ReplaceAll(was, c.Plan.Digest(), hex.EncodeToString(sum[:]))
	require.NoError(t, os.WriteFile(path, []byte(earlier), 0o644))
	require.NoError(t, os.WriteFile(journal, []byte(was), 0o644))
	out, err := resumed(t.Context(), t, c)
	require.NoError(t, err)
	require.Equal(t, runner.StatusDone, out.Status)

	c = broken(t, life)
	path = filepath.Join(c.Out, result.PlanFile)
	require.NoError(t, os.WriteFile(path, []byte(strings.Replace(string(text), "64 kB", "65 kB", 1)), 0o644))
	_, err = resumed(t.Context(), t, c)
	require.ErrorContains(t, err, "plan.toml was changed since the run started")
}

// withoutADefault is the canonical text of a plan without one line that says a default.
func withoutADefault(t *testing.T, p *plan.Plan, text string) string {
	t.Helper()
	lines := strings.SplitAfter(text, "\n")
	for i := range lines {
		less := strings.Join(slices.Delete(slices.Clone(lines), i, i+1), "")
		q, problems := plan.Parse("life", []byte(less))
		if len(problems.Errors()) == 0 && strings.TrimSpace(lines[i]) != "" && q.Digest() == p.Digest() {
			return less
		}
	}
	require.Fail(t, "the canonical form says no default")
	return ""
}

// All times of a step are of one clock, that of the session, whenever the program began.
func TestTimesOfAStepAreOfOneClock(t *testing.T) {
	c := lived(t, once)
	require.NoError(t, c.Clock.Sleep(t.Context(), time.Hour))
	_, err := runner.Run(t.Context(), c)
	require.NoError(t, err)
	seen := 0
	for _, cs := range fold(t, c.Out).Cases {
		ended := int64(0)
		for _, st := range cs.Steps {
			assert.GreaterOrEqual(t, st.StartNS, ended, "%s %s begins before the step ahead of it has ended", st.Do, st.Phase)
			ended = st.StartNS + st.DurationNS
			if st.Span == nil || len(st.Samples) == 0 {
				continue
			}
			seen++
			end := st.StartNS + st.DurationNS
			for _, ns := range []int64{st.Span.GateNS, st.Span.FirstDoneNS, st.Span.LastDoneNS, st.Samples[0].StartNS} {
				assert.True(t, st.StartNS <= ns && ns <= end, "%s %s: %d is not between %d and %d", st.Do, st.Phase, ns, st.StartNS, end)
			}
		}
	}
	assert.NotZero(t, seen)
}

// An input file that disappears or becomes another kind of file during the run fails
// the copy step, and with it the case; it is never copied as an empty file.
func TestAnInputThatCannotBeOpenedFailsItsCase(t *testing.T) {
	for name, test := range map[string]struct {
		harm   func(t *testing.T, file string)
		reason string
	}{
		"deleted":        {func(t *testing.T, file string) { require.NoError(t, os.Remove(file)) }, "opening the input file: .*no such file"},
		"folder deleted": {func(t *testing.T, file string) { require.NoError(t, os.RemoveAll(filepath.Dir(file))) }, "opening the input file: .*no such file"},
		"a folder": {func(t *testing.T, file string) {
			require.NoError(t, os.Remove(file))
			require.NoError(t, os.Mkdir(file, 0o700))
		}, "copy new: .*not a regular file"},
		"a link to nowhere": {func(t *testing.T, file string) {
			require.NoError(t, os.Remove(file))
			require.NoError(t, os.Symlink("gone", file))
		}, "opening the input file: .*no such file"},
	} {
		t.Run(name, func(t *testing.T) {
			c := lived(t, strings.Replace(brought, `format = ["UDRW", "UDSB"]`, `format = ["UDSB"]`, 1))
			file := filepath.Join(t.TempDir(), "folder", "file.bin")
			require.NoError(t, os.Mkdir(filepath.Dir(file), 0o700))
			require.NoError(t, os.WriteFile(file, make([]byte, 100_000), 0o600))
			c.Inputs = map[string]string{"file": file}
			c.Progress = &at{when: step("UDSB", "copy", "new"), do: func() { test.harm(t, file) }}
			out, err := runner.Run(t.Context(), c)
			require.NoError(t, err)
			require.Equal(t, runner.StatusFailed, out.Status)
			n, reasons := failed(t, c)
			require.Equal(t, map[string]int{"UDSB": 1}, n)
			assert.Regexp(t, test.reason, reasons[0])
			nothingLeft(t, c)
		})
	}
}

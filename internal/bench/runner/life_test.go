package runner_test

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"dmgbench/internal/bench/engine/inprocess"
	"dmgbench/internal/bench/runner"
	"dmgbench/internal/cli/clitest"
	"dmgbench/internal/plan"
	"dmgbench/internal/result"
	"dmgbench/internal/system/clock"
)

// life is run on a virtual clock: its settle costs nothing.
var life = clitest.Life

// once is the same with one round of images alone.
var once = strings.NewReplacer("rounds = 2", "rounds = 1", "baseline = true", "baseline = false").Replace(life)

// lived is a run of text on the in-process engine at a place of its own.
func lived(t *testing.T, text string) runner.Config {
	t.Helper()
	p, problems := plan.Parse("life", []byte(text))
	require.Empty(t, problems.Errors(), "%v", problems)
	dir := t.TempDir()
	at := filepath.Join(dir, "place")
	require.NoError(t, os.Mkdir(at, 0o755))
	c := clock.NewVirtual(time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC))
	return runner.Config{
		Plan: p, Tool: result.Tool{Name: "dmgbench", Version: "test"}, Out: filepath.Join(dir, "run"),
		Places: []runner.Place{{Name: "", Path: at}}, Engine: inprocess.New(c.Wall), Why: "a test", Clock: c,
		StateDir: filepath.Join(dir, "state"), Volatile: true,
	}
}

// at acts once, when a step begins of which the function says so.
type at struct {
	when func(runner.Status) bool
	do   func()
	done bool
}

func (a *at) Status(s runner.Status) {
	if !a.done && s.Files == 0 && s.Bytes == 0 && a.when(s) {
		a.done = true
		a.do()
	}
}
func (*at) Message(string)         {}
func (*at) Warning(string)         {}
func (*at) Failure(runner.Failure) {}

// step is true at the step of this action and phase in a case of this format.
func step(format, do, phase string) func(runner.Status) bool {
	return func(s runner.Status) bool {
		return strings.Contains(s.Case, format) && s.Do == do && s.Phase == phase
	}
}

// work is the run's own folder at the place.
func work(t *testing.T, c runner.Config) string {
	t.Helper()
	list, err := filepath.Glob(filepath.Join(c.Places[0].Path, "dmgbench-*"))
	require.NoError(t, err)
	require.Len(t, list, 1)
	return list[0]
}

// nothingLeft checks that the place is empty, that the run folder holds only its own files,
// that no path is in the journal, and that nobody has to clean.
func nothingLeft(t *testing.T, c runner.Config) {
	t.Helper()
	left, err := os.ReadDir(c.Places[0].Path)
	require.NoError(t, err)
	assert.Empty(t, left)
	files, err := os.ReadDir(c.Out)
	require.NoError(t, err)
	var names []string
	for _, f := range files {
		names = append(names, f.Name())
	}
	assert.Equal(t, []string{".dmgbench-run", "journal.jsonl", "plan.toml"}, names)
	pathless(t, c)
	registered, err := os.ReadDir(filepath.Join(c.StateDir, "runs"))
	require.NoError(t, err)
	assert.Empty(t, registered)
}

// pathless checks that the journal names no folder of this machine.
func pathless(t *testing.T, c runner.Config) {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(c.Out, "journal.jsonl"))
	require.NoError(t, err)
	assert.NotContains(t, string(text), filepath.Dir(c.Out))
}

// failed counts the rounds of each case that failed, by format, and gives the reasons.
func failed(t *testing.T, c runner.Config) (n map[string]int, reasons []string) {
	t.Helper()
	n = map[string]int{}
	for _, cs := range fold(t, c.Out).Cases {
		for _, rd := range cs.Rounds {
			if rd.Status == result.Done {
				continue
			}
			require.Equal(t, result.Failed, rd.Status, rd.Reason)
			n[cs.Target.Format]++
			reasons = append(reasons, rd.Reason)
		}
	}
	return n, reasons
}

// A run that is interrupted at any step leaves nothing at its place, and resume
// finds the place again though nobody names it.
func TestInterruptedRunFindsItsPlaceAgain(t *testing.T) {
	for _, stop := range []int{1, 9, 24, 50} {
		c := lived(t, life)
		c.Out += " of mine" // the command that continues it is for a shell
		places := c.Places
		ctx, cancel := context.WithCancel(t.Context())
		c.Progress = &stopper{left: stop, cancel: cancel}
		out, err := runner.Run(ctx, c)
		cancel()
		require.NoError(t, err)
		require.Equal(t, runner.StatusInterrupted, out.Status)
		require.Contains(t, out.Message, "dmgbench resume '"+c.Out+"'")
		left, err := os.ReadDir(places[0].Path)
		require.NoError(t, err)
		require.Empty(t, left)

		// Cleaning takes nothing that a resume needs.
		var said strings.Builder
		require.NoError(t, runner.Clean(t.Context(), c.StateDir, runner.CleanOptions{}, &said))
		require.Equal(t, "no leftovers found\n", said.String())

		seen := ""
		c.Plan, c.Places = nil, nil
		c.Progress = &at{when: step("UDSB", "attach", "new"), do: func() {
			seen = work(t, runner.Config{Places: places})
		}}
		out, err = runner.Resume(t.Context(), c.Out, c)
		require.NoError(t, err)
		require.Equal(t, runner.StatusDone, out.Status)
		require.NotEmpty(t, seen, "no image was seen at the place")
		c.Places = places
		nothingLeft(t, c)
	}
}

func TestResumeAsksForAPlaceThatNobodyKnowsAnyMore(t *testing.T) {
	c := lived(t, life)
	ctx, cancel := context.WithCancel(t.Context())
	c.Progress = &stopper{left: 5, cancel: cancel}
	_, err := runner.Run(ctx, c)
	cancel()
	require.NoError(t, err)
	require.NoError(t, os.RemoveAll(c.StateDir))
	again := c
	again.Plan, again.Places, again.Progress = nil, nil, nil
	_, err = runner.Resume(t.Context(), c.Out, again)
	var told *result.Error
	require.ErrorAs(t, err, &told)
	assert.Contains(t, err.Error(), `the folder of place "" is not known any more`)
	assert.Equal(t, "give it again with --on DIR", told.Hint)
	again.Places = c.Places
	out, err := runner.Resume(t.Context(), c.Out, again)
	require.NoError(t, err)
	require.Equal(t, runner.StatusDone, out.Status)
	nothingLeft(t, c)
}

// letGo is a clock on whose third sleep somebody lets go of a lock.
type letGo struct {
	*clock.Virtual
	sleeps int
	lock   *result.RunDir
}

func (c *letGo) Sleep(ctx context.Context, d time.Duration) error {
	if c.sleeps++; c.sleeps == 3 {
		c.lock.Close()
	}
	return c.Virtual.Sleep(ctx, d)
}

// heard keeps the messages.
type heard struct {
	said, warned []string
	failed       []runner.Failure
}

func (*heard) Status(runner.Status)       {}
func (h *heard) Message(text string)      { h.said = append(h.said, text) }
func (h *heard) Warning(text string)      { h.warned = append(h.warned, text) }
func (h *heard) Failure(f runner.Failure) { h.failed = append(h.failed, f) }

// What weakens the numbers is said when it happens, each thing once.
func TestWarningsAreSaidAsTheyHappen(t *testing.T) {
	c, told := lived(t, life), &heard{}
	c.Progress = told
	c.Warnings = []result.Warning{{Kind: "power", Text: "on battery"}, {Kind: "power", Text: "on battery"}}
	_, err := runner.Run(t.Context(), c)
	require.NoError(t, err)
	require.NotEmpty(t, told.warned)
	assert.Equal(t, "on battery", told.warned[0])
	seen := map[string]bool{}
	for _, text := range told.warned {
		assert.False(t, seen[text], "said twice: %s", text)
		seen[text] = true
	}
}

func TestResumeWaitsForTheKilledToLetGo(t *testing.T) {
	c := lived(t, life)
	ctx, cancel := context.WithCancel(t.Context())
	c.Progress = &stopper{left: 5, cancel: cancel}
	_, err := runner.Run(ctx, c)
	cancel()
	require.NoError(t, err)
	held, err := result.ResumeRun(c.Out)
	require.NoError(t, err)
	defer held.Close()
	again, told := c, &heard{}
	again.Plan, again.Progress = nil, told
	again.Clock = clock.NewVirtual(time.Unix(0, 0))
	_, err = runner.Resume(t.Context(), c.Out, again)
	require.ErrorIs(t, err, result.ErrBusy, "the wait has an end")
	again.Clock = &letGo{Virtual: clock.NewVirtual(time.Unix(0, 0)), lock: held}
	out, err := runner.Resume(t.Context(), c.Out, again)
	require.NoError(t, err)
	assert.Equal(t, runner.StatusDone, out.Status)
	require.NotEmpty(t, told.said)
	assert.Contains(t, told.said[0], "another process is running it: waiting up to 2s for it to end")
	assert.Equal(t, 2, strings.Count(strings.Join(told.said, "\n"), "another process is running it"), "once for each resume")
	nothingLeft(t, c)
}

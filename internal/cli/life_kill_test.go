package cli_test

import (
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"dmgbench/internal/result"
)

// killed kills the small plan at two random moments of its life.
func killed(t *testing.T, bin string) { kills(t, bin, 2, twoRounds, nil) }

// killedLong kills the built-in plan quick at twenty.
func killedLong(t *testing.T, bin string) {
	if os.Getenv("DMGBENCH_LONG") == "" {
		t.Skip("long: set DMGBENCH_LONG=1 (make test-long)")
	}
	kills(t, bin, 20, "", []string{"--scale", "0.02"})
}

// killSeed draws the moments: DMGBENCH_KILL_SEED repeats a series that went wrong.
func killSeed(t *testing.T) uint64 {
	if s := os.Getenv("DMGBENCH_KILL_SEED"); s != "" {
		n, err := strconv.ParseUint(s, 10, 64)
		require.NoError(t, err)
		return n
	}
	return rand.Uint64()
}

// kills runs a plan once undisturbed to see how long it takes, then n times with
// a kill somewhere in that time, once more in the resume that follows, and then to its end.
func kills(t *testing.T, bin string, n int, text string, more []string) {
	seed := killSeed(t)
	defer func() {
		if t.Failed() {
			t.Logf("to repeat it: DMGBENCH_KILL_SEED=%d", seed)
		}
	}()
	rng := rand.New(rand.NewPCG(seed, 0))
	whole := newWorld(t, bin, text)
	start := time.Now()
	e := whole.run(whole.args(text, more)...)
	took := time.Since(start)
	require.Zero(t, e.code, e.err)
	whole.complete()
	for i := range n {
		// One moment in each n-th of the time, so that together they cover the whole life.
		at := time.Duration((float64(i) + rng.Float64()) / float64(n) * float64(took))
		w := newWorld(t, bin, text)
		w.killAt(w.start(w.args(text, more)...), at)
		if !w.begun() {
			w.args(text, more)
			continue
		}
		w.killAt(w.start("resume", w.out), time.Duration(rng.Float64()*float64(took)))
		before := w.whole()
		e := w.run("resume", w.out)
		require.Zero(t, e.code, "killed after %s: %s", at, e.err)
		require.True(t, strings.HasPrefix(w.journal(), before), "records from before the kill were changed")
		r := w.complete()
		require.Len(t, r.Cases, 3)
		if t.Failed() {
			t.Fatalf("killed after %s of %s", at, took)
		}
	}
}

// args run the plan: the built-in one if there is no text.
func (w *world) args(text string, more []string) []string {
	a := w.begin(more...)
	if text == "" {
		a[1] = "quick"
	}
	return a
}

// killAt ends the process at a moment, as only the kernel can, unless it ends before.
func (w *world) killAt(p *proc, at time.Duration) {
	w.t.Helper()
	timer := time.NewTimer(at)
	defer timer.Stop()
	select {
	case err := <-p.done:
		require.NoError(w.t, err, p.err.String())
	case <-timer.C:
		require.NoError(w.t, p.cmd.Process.Signal(syscall.SIGKILL))
		p.wait()
	}
}

// whole is the journal up to its last whole line.
func (w *world) whole() string {
	text := w.journal()
	return text[:strings.LastIndexByte(text, '\n')+1]
}

// begun says whether the journal says that a run began. If not, the answer of resume
// has to be clear, nothing may be at the place, and a new run has to work.
func (w *world) begun() bool {
	w.t.Helper()
	if strings.Contains(w.whole(), `"kind":"run"`) {
		return true
	}
	assert.Empty(w.t, names(w.t, w.place))
	e := w.run("resume", w.out)
	assert.Equal(w.t, 1, e.code)
	if _, err := os.Stat(w.out); err == nil {
		assert.Regexp(w.t, "the run was interrupted before it started|not a run folder", e.err)
		assert.Contains(w.t, e.err, "hint: ")
	} else {
		assert.Contains(w.t, e.err, "no such file or directory")
	}
	w.out += "-again"
	e = w.run(w.begin()...)
	assert.Zero(w.t, e.code, e.err)
	w.complete()
	return false
}

// Each moment of a run's beginning is met once: with no folder, with an empty
// folder, with its marker, with an empty journal.
func TestResumeOfARunThatNeverBegan(t *testing.T) {
	dir := t.TempDir()
	steps := []func(){
		func() {},
		func() {
			require.NoError(t, os.WriteFile(filepath.Join(dir, ".dmgbench-run"), []byte("20260101T000000Z-abcdef\n"), 0o644))
		},
		func() { require.NoError(t, os.WriteFile(filepath.Join(dir, result.JournalFile), nil, 0o644)) },
		func() {
			require.NoError(t, os.WriteFile(filepath.Join(dir, result.JournalFile), []byte(`{"schema":1,"se`), 0o644))
		},
	}
	for i, s := range steps {
		s()
		_, err := result.ResumeRun(dir)
		require.Error(t, err)
		var told *result.Error
		require.ErrorAs(t, err, &told)
		require.NotEmpty(t, told.Hint, "step %d: %v", i, err)
		if i > 1 {
			assert.Contains(t, err.Error(), "the run was interrupted before it started")
			assert.Contains(t, told.Hint, "start it again")
		}
	}
}

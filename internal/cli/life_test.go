package cli_test

import (
	"bytes"
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"dmgbench/internal/cli/clitest"
	"dmgbench/internal/result"
)

// TestLife runs the real program as processes: it is killed, interrupted, starved
// and deceived, and has to lose nothing, leave nothing and touch nothing foreign.
func TestLife(t *testing.T) {
	bin, err := exec.LookPath("dmgbench") // TestMain has put it there
	require.NoError(t, err)
	for name, test := range map[string]func(*testing.T, string){
		"killed": killed, "killed long": killedLong, "signals": signals, "two interrupts": twoInterrupts, "nobody listens": nobodyListens,
		"one at a time": oneAtATime, "progress on a signal": progressOnSignal, "torn journal": tornJournal, "left over": leftOver, "foreign journals": foreignJournals, "foreign places": foreignPlaces,
		"disk full": diskFull, "no inodes": noInodes, "read-only": readOnly, "another user": anotherUser, "place vanishes": placeVanishes,
		"container swapped": containerSwapped, "kept": kept, "stopped": stopped, "paused": pausedCase, "manual": manualAxis,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel() // they mostly wait for the disk
			test(t, bin)
		})
	}
}

// twoRounds takes about two seconds; its settles are where tests step in.
var twoRounds = strings.Replace(clitest.Life, "20 ms", "150 ms", 1)

// lifePlan is a round of it, for tests that step into a case.
var lifePlan = strings.Replace(twoRounds, "rounds = 2", "rounds = 1", 1)

// world is one run with all that is around it.
type world struct {
	t                           *testing.T
	bin, plan, out, place, home string
	engine                      string
	cred                        *syscall.Credential
	stderr                      *os.File // instead of what ended keeps
}

func newWorld(t *testing.T, bin, plan string) *world {
	t.Helper()
	dir, err := filepath.EvalSymlinks(t.TempDir())
	require.NoError(t, err)
	w := &world{t: t, bin: bin, plan: filepath.Join(dir, "life.toml"), out: filepath.Join(dir, "run"),
		place: filepath.Join(dir, "place"), engine: "inprocess", home: filepath.Join(dir, "home")}
	require.NoError(t, os.WriteFile(w.plan, []byte(plan), 0o644))
	for _, d := range []string{w.place, w.home, filepath.Join(w.home, "tmp")} {
		require.NoError(t, os.Mkdir(d, 0o755))
	}
	return w
}

// ended is how a process ended.
type ended struct {
	code     int // -1: by a signal
	out, err string
}

// proc is a process that goes on.
type proc struct {
	cmd      *exec.Cmd
	out, err bytes.Buffer
	done     chan error
}

func (w *world) start(args ...string) *proc {
	w.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
	w.t.Cleanup(cancel)
	p := &proc{cmd: exec.CommandContext(ctx, w.bin, args...), done: make(chan error, 1)}
	p.cmd.Stdout, p.cmd.Stderr, p.cmd.Dir = &p.out, &p.err, w.home
	p.cmd.Env = []string{"HOME=" + w.home, "DMGBENCH_STATE=" + filepath.Join(w.home, "state"),
		"TMPDIR=" + filepath.Join(w.home, "tmp"), "PATH=" + os.Getenv("PATH"),
		"DMGBENCH_RUN_ENGINE=" + w.engine, "DMGBENCH_RESUME_ENGINE=" + w.engine,
		"DMGBENCH_RUNTIME_DIR=" + filepath.Join(w.home, "runtime"), "GOGC=400"}
	if w.stderr != nil {
		p.cmd.Stderr = w.stderr
	}
	if w.cred != nil {
		p.cmd.SysProcAttr = &syscall.SysProcAttr{Credential: w.cred}
	}
	require.NoError(w.t, p.cmd.Start())
	go func() { p.done <- p.cmd.Wait() }()
	return p
}

// wait is how the process ended.
func (p *proc) wait() ended {
	err := <-p.done
	e := ended{out: p.out.String(), err: p.err.String()}
	if exit, ok := errors.AsType[*exec.ExitError](err); ok {
		e.code = exit.ExitCode()
	}
	return e
}

// run is start and wait.
func (w *world) run(args ...string) ended {
	w.t.Helper()
	return w.start(args...).wait()
}

// begin are the arguments of the run that this world is about.
func (w *world) begin(more ...string) []string {
	return append([]string{"run", w.plan, "--seed", "7", "--out", w.out, "--on", w.place}, more...)
}

// journal is the text of the journal, "" if there is none.
func (w *world) journal() string {
	text, err := os.ReadFile(filepath.Join(w.out, result.JournalFile))
	if err != nil {
		require.ErrorIs(w.t, err, os.ErrNotExist)
	}
	return string(text)
}

// until looks every few milliseconds whether something is so; a process that ended before is a mistake.
func (w *world) until(p *proc, what string, so func() bool) {
	w.t.Helper()
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for !so() {
		select {
		case err := <-p.done:
			require.FailNow(w.t, "the program ended before it was "+what, "%v\n%s", err, p.err.String())
		case <-tick.C:
		}
	}
}

// settling waits until a case of this format has begun its n-th settle and has not ended it.
func (w *world) settling(p *proc, format string, n int) {
	w.t.Helper()
	w.until(p, "at settle of "+format, func() bool {
		seen := 0
		for line := range strings.Lines(w.journal()) {
			if strings.Contains(line, `"step_start":`) && strings.Contains(line, `"do":"settle"`) && strings.Contains(line, format) {
				seen++
			}
		}
		return seen >= n
	})
}

// work is the run's own folder at the place.
func (w *world) work() string {
	w.t.Helper()
	list, err := filepath.Glob(filepath.Join(w.place, "dmgbench-*"))
	require.NoError(w.t, err)
	require.Len(w.t, list, 1)
	return list[0]
}

// names lists a folder.
func names(t *testing.T, dir string) []string {
	t.Helper()
	list, err := os.ReadDir(dir)
	require.NoError(t, err)
	out := []string{}
	for _, f := range list {
		out = append(out, f.Name())
	}
	return out
}

// complete checks a run that has ended well: every case done, nothing left
// anywhere, nothing measured twice, no path of this machine in what is kept.
func (w *world) complete() *result.Result {
	w.t.Helper()
	r, err := result.ReadResult(w.out)
	require.NoError(w.t, err)
	assert.Equal(w.t, result.Done, r.Status)
	for _, c := range r.Cases {
		assert.Equal(w.t, result.Done, c.Status, "%s: %s", c.ID, c.Reason)
	}
	w.tidy()
	return r
}

// tidy checks what must hold of every run that has ended, well or badly.
func (w *world) tidy() {
	w.t.Helper()
	assert.Empty(w.t, names(w.t, w.place), "left at the place")
	assert.Equal(w.t, []string{".dmgbench-run", "journal.jsonl", "plan.toml", "report.html", "result.json", "summary.json"}, names(w.t, w.out))
	assert.Empty(w.t, names(w.t, filepath.Join(w.home, "state", "runs")), "left in the registry")
	w.pathless()
	w.measuredOnce()
}

// pathless checks that no path of this machine is in what the run keeps.
func (w *world) pathless() {
	w.t.Helper()
	for _, name := range names(w.t, w.out) {
		text, err := os.ReadFile(filepath.Join(w.out, name))
		require.NoError(w.t, err)
		assert.NotContains(w.t, string(text), filepath.Dir(w.home), name)
	}
}

// measuredOnce checks that no case-round that has ended was begun again.
func (w *world) measuredOnce() {
	w.t.Helper()
	type caseRound struct {
		id    string
		round int
	}
	d, err := result.OpenRun(w.out)
	require.NoError(w.t, err)
	defer d.Close()
	recs, err := d.Journal()
	require.NoError(w.t, err)
	for _, warning := range d.Warnings() { // a torn line; foreignJournals removes the checksums itself
		assert.Contains(w.t, warning.Text, "records in the journal have no checksum")
	}
	over := map[caseRound]bool{}
	for _, rec := range recs {
		switch {
		case rec.CaseStart != nil:
			assert.False(w.t, over[caseRound{rec.CaseStart.Case, rec.CaseStart.Round}], "begun again: %+v", rec.CaseStart)
		case rec.CaseEnd != nil:
			key := caseRound{rec.CaseEnd.Case, rec.CaseEnd.Round}
			assert.False(w.t, over[key], "ended twice: %+v", rec.CaseEnd)
			over[key] = true
		}
	}
}

package cli_test

import (
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"dmgbench/internal/result"
	"dmgbench/internal/system/clock"
)

// signals interrupts a run and each resume of it: they clean up, say how to go on, end with 130, and go on.
func signals(t *testing.T, bin string) {
	// Below nohup or in the background of a shell, processes start with these ignored, unless their parent catches them.
	for _, sig := range []os.Signal{syscall.SIGINT, syscall.SIGHUP} {
		if signal.Ignored(sig) {
			caught := make(chan os.Signal, 1)
			signal.Notify(caught, sig)
			t.Cleanup(func() { signal.Stop(caught) })
		}
	}
	w := newWorld(t, bin, lifePlan)
	begin, before := w.begin(), ""
	for i, sig := range []syscall.Signal{syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP} {
		p := w.start(begin...)
		w.settling(p, "UDSB", i+1)
		require.NoError(t, p.cmd.Process.Signal(sig))
		e := p.wait()
		assert.Equal(t, 130, e.code, e.err)
		assert.Contains(t, e.err, "continue with: dmgbench resume "+w.out)
		assert.Empty(t, names(t, w.place))
		w.pathless()
		require.True(t, strings.HasPrefix(w.journal(), before), "%v: the journal was changed", sig)
		begin, before = []string{"resume", w.out}, w.journal()
	}
	// nohup and a shell's trap have signals ignored: then they interrupt nothing.
	script := filepath.Join(t.TempDir(), "ignoring")
	require.NoError(t, os.WriteFile(script, []byte("#!/bin/sh\ntrap '' HUP INT\nexec '"+bin+"' \"$@\"\n"), 0o755))
	w.bin = script
	p := w.start("resume", w.out)
	w.settling(p, "UDSB", 4)
	require.NoError(t, p.cmd.Process.Signal(syscall.SIGHUP))
	require.NoError(t, p.cmd.Process.Signal(syscall.SIGINT))
	e := p.wait()
	require.Zero(t, e.code, e.err)
	require.True(t, strings.HasPrefix(w.journal(), before))
	r := w.complete()
	ends := []string{}
	for _, session := range r.Sessions {
		ends = append(ends, session.End)
	}
	assert.Equal(t, []string{result.Interrupted, result.Interrupted, result.Interrupted, result.Clean}, ends)
}

// stopped is a run that a signal stops for a moment: the step says so, and the report.
func stopped(t *testing.T, bin string) {
	w := newWorld(t, bin, lifePlan)
	p := w.start(w.begin()...)
	w.settling(p, "UDSB", 1)
	require.NoError(t, p.cmd.Process.Signal(syscall.SIGSTOP))
	require.NoError(t, clock.NewReal().Sleep(t.Context(), 500*time.Millisecond))
	require.NoError(t, p.cmd.Process.Signal(syscall.SIGCONT))
	e := p.wait()
	require.Zero(t, e.code, e.err)
	w.complete()
	assert.Contains(t, w.journal(), "the process did not run for ")
}

// twoInterrupts sends two at once: whether the second still finds the program at
// work or not, resume goes on.
func twoInterrupts(t *testing.T, bin string) {
	w := newWorld(t, bin, lifePlan)
	p := w.start(w.begin()...)
	w.settling(p, "UDRW", 1)
	require.NoError(t, p.cmd.Process.Signal(syscall.SIGINT))
	_ = p.cmd.Process.Signal(syscall.SIGINT) // it may have ended
	e := p.wait()
	assert.Contains(t, []int{130, -1}, e.code, e.err)
	e = w.run("resume", w.out)
	require.Zero(t, e.code, e.err)
	w.complete()
}

// oneAtATime: while a run measures, no other one, no resume of it and no clean disturb it.
func oneAtATime(t *testing.T, bin string) {
	w := newWorld(t, bin, strings.Replace(lifePlan, "150 ms", "60 s", 1))
	p := w.start(w.begin("--only", "format=UDSB")...)
	w.settling(p, "UDSB", 1)
	second := w.run("run", w.plan, "--out", w.out+"-2", "--on", w.place)
	assert.Equal(t, 4, second.code, second.err)
	assert.Contains(t, second.err, "another measuring run")
	assert.NoDirExists(t, w.out+"-2")
	again := w.run("resume", w.out)
	assert.Equal(t, 4, again.code, again.err)
	clean := w.run("clean")
	assert.Zero(t, clean.code, clean.err)
	// Another user's lock is another one: the journal's own lock keeps a second resume away.
	home := w.home
	w.home = filepath.Join(t.TempDir(), "home")
	require.NoError(t, os.MkdirAll(filepath.Join(w.home, "tmp"), 0o755))
	again = w.run("resume", w.out, "--on", w.place)
	assert.Equal(t, 4, again.code, again.err)
	assert.Contains(t, again.err, "another process is running it")
	w.home = home
	assert.Contains(t, clean.out, "still running")
	require.Len(t, names(t, w.work()), 2, "marker and image")
	require.NoError(t, p.cmd.Process.Signal(syscall.SIGINT))
	e := p.wait()
	assert.Equal(t, 130, e.code, e.err)
	assert.Empty(t, names(t, w.place))
	w.measuredOnce()
}

// interrupted is a run that an interrupt stopped in its middle.
func interrupted(t *testing.T, bin string) *world {
	t.Helper()
	w := newWorld(t, bin, lifePlan)
	p := w.start(w.begin()...)
	w.settling(p, "UDRW", 1)
	require.NoError(t, p.cmd.Process.Signal(syscall.SIGINT))
	require.Equal(t, 130, p.wait().code)
	return w
}

// leftOver: what a killed run left is named by doctor and by the next run, with the command that removes it.
func leftOver(t *testing.T, bin string) {
	w := newWorld(t, bin, lifePlan)
	p := w.start(w.begin()...)
	w.settling(p, "UDRW", 1)
	require.NoError(t, p.cmd.Process.Kill())
	p.wait()
	words := func(text string) string { return strings.Join(strings.Fields(text), " ") }
	e := w.run("doctor")
	assert.Contains(t, words(e.out), "left over "+w.out+" was killed: images in ")
	assert.Contains(t, words(e.out), "hint: dmgbench resume "+w.out+" continues it; dmgbench clean deletes its images")
	e = w.run("history", w.out)
	assert.Contains(t, e.out, "to continue: dmgbench resume "+w.out)
	next := filepath.Join(filepath.Dir(w.out), "next")
	e = w.run("run", filepath.Join(w.out, result.PlanFile), "--out", next)
	require.Zero(t, e.code, e.err)
	assert.Contains(t, e.err, "earlier run "+w.out+" was killed: images in ")
	assert.Contains(t, e.err, "hint: dmgbench resume "+w.out)
	e = w.run("resume", w.out)
	require.Zero(t, e.code, e.err)
	assert.NotContains(t, e.err, "earlier run")
	e = w.run("doctor")
	assert.NotContains(t, e.out, "left over")
}

// tornJournal: half a line at the end is left out and said; one in the middle is an error.
func tornJournal(t *testing.T, bin string) {
	w := interrupted(t, bin)
	good := w.journal()
	file := filepath.Join(w.out, result.JournalFile)
	require.NoError(t, os.WriteFile(file, []byte(good[:len(good)-20]), 0o644))
	e := w.run("report", w.out)
	require.Zero(t, e.code, e.err)
	e = w.run("resume", w.out)
	require.Zero(t, e.code, e.err)
	r := w.complete()
	require.NotEmpty(t, r.Warnings)
	assert.Contains(t, fmt.Sprint(r.Warnings), "is incomplete and was omitted")
	text := w.journal()
	lines := strings.SplitAfter(text, "\n")
	lines[2] = lines[2][:10] + "\n"
	require.NoError(t, os.WriteFile(file, []byte(strings.Join(lines, "")), 0o644))
	e = w.run("resume", w.out)
	assert.Equal(t, 1, e.code)
	assert.Contains(t, e.err, `reading journal "journal.jsonl" line 3: `)
	assert.Contains(t, e.err, "hint: only the last line of a journal may be damaged")
	after, err := os.ReadFile(file)
	require.NoError(t, err)
	assert.Equal(t, strings.Join(lines, ""), string(after), "a damaged journal was changed")
}

// progressOnSignal: at SIGUSR1 (on macOS Ctrl-T) the program prints its progress and continues.
func progressOnSignal(t *testing.T, bin string) {
	w := newWorld(t, bin, lifePlan)
	p := w.start(w.begin()...)
	w.settling(p, "UDRW", 1)
	require.NoError(t, p.cmd.Process.Signal(statusSignal))
	e := p.wait()
	require.Zero(t, e.code, e.err)
	assert.Regexp(t, `(?m)^life \[\d/\d\] .*UDRW.*  settle.*(left|so far)$`, e.err)
	assert.Regexp(t, `(?m)^\d+ of \d+ cases done, 1 round, .* written, in \d+s$`, e.err)
	w.complete()
}

// nobodyListens closes the pipe that a run tells its progress to, as head does: the run goes on and cleans up.
func nobodyListens(t *testing.T, bin string) {
	w := newWorld(t, bin, lifePlan)
	heard, stderr, err := os.Pipe()
	require.NoError(t, err)
	w.stderr = stderr
	p := w.start(w.begin("--format", "json")...)
	require.NoError(t, stderr.Close())
	w.settling(p, "UDSB", 1)
	require.NoError(t, heard.Close())
	e := p.wait()
	require.Zero(t, e.code, e.out)
	assert.Contains(t, e.out, `"status":"done"`)
	w.complete()
}

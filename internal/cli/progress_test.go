package cli

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"dmgbench/internal/bench/engine/inprocess"
	"dmgbench/internal/bench/runner"
	"dmgbench/internal/plan"
	"dmgbench/internal/result"
	"dmgbench/internal/result/runfolders"
	"dmgbench/internal/system/clock"
)

var someStatus = runner.Status{Case: "format=UDSB,encryption=AES-256,band_size=8 MiB", Do: "write", Phase: "new", Round: 1, Rounds: 3,
	CaseRound: 2, OfRounds: 9, Files: 12, OfFiles: 45, Bytes: 500e6, TimedNS: 1e9, RunBytes: 1.5e9, OfRunBytes: 8e9, ElapsedNS: 30e9,
	WorkNS: 25e9, OfWorkNS: 100e9}

func TestAtMostFourUpdatesASecond(t *testing.T) {
	for name, json := range map[string]bool{"terminal": false, "json": true} {
		t.Run(name, func(t *testing.T) {
			var w bytes.Buffer
			c := clock.NewVirtual(time.Unix(0, 0))
			hidden := false
			p := &progress{w: &w, clock: c, json: json, width: func() int { return 80 }, isHidden: func() bool { return hidden }}
			updates := 0
			for range 1000 { // ten seconds
				before := w.Len()
				p.Status(someStatus)
				if w.Len() > before {
					updates++
				}
				c.Advance(10 * time.Millisecond)
			}
			assert.InDelta(t, 40, updates, 1)
			c.Advance(time.Second)
			before := w.Len()
			hidden = true
			p.Status(someStatus)
			assert.Equal(t, json, w.Len() > before, "in the background of a terminal only programs read the status")
		})
	}
}

func TestNoTerminalNoProgress(t *testing.T) {
	var w bytes.Buffer
	a := &app{stderr: &w, clock: clock.NewVirtual(time.Unix(0, 0))}
	p := a.newProgress()
	p.Status(someStatus)
	p.answerSignal()()
	assert.Empty(t, w.String())
	p.Message("kept \x1b[31m")
	assert.Equal(t, "kept \ufffd[31m\n", w.String())
}

// A warning is broken between words at the width of the terminal, and has the name of its case as the report has it.
func TestWarningsAreWrapped(t *testing.T) {
	var w bytes.Buffer
	p := &progress{w: &w, clock: clock.NewVirtual(time.Unix(0, 0)), width: func() int { return 60 },
		names: map[string]string{"format=UDRW": "read-write image (UDRW)"}}
	p.Warning(`format=UDRW: the guest saw "direct", but a virtual machine's host may cache the same blocks`)
	assert.Equal(t, "warning: read-write image (UDRW): the guest saw \"direct\",\n  but a virtual machine's host may cache the same blocks\n", w.String())
	w.Reset()
	p.width = nil
	p.Warning("no terminal: " + strings.Repeat("as long as it is ", 9))
	assert.Equal(t, 1, strings.Count(w.String(), "\n"), "a file has whole lines")
	assert.Equal(t, "a\n  bbbbbbbbb\n  c d", wrap("", "a bbbbbbbbb c d", 2, 6))
	named := someStatus
	named.Case = "format=UDRW"
	assert.Contains(t, p.statusText(named, 120), "[3/9] read-write image (UDRW)  write")
	assert.Contains(t, p.statusText(someStatus, 120), someStatus.Case)
}

func TestStatusLine(t *testing.T) {
	const full = "quick [3/9] format=UDSB,encryption=AES-256,band_size=8 MiB  write new 12/45  250 MB/s ▅█▂▅  25 %, 2.00 GB of 8.00 GB written  1m30s left"
	// statusText is the line of a status with 90 s left.
	statusText := func(s runner.Status, r rates, width int) string {
		s.ElapsedNS, s.WorkNS, s.OfWorkNS, s.OfWaitNS = 30e9, 0, 90e9, 0
		before := s
		before.ElapsedNS, before.WorkNS = 30e9, 0
		return (&progress{rates: r, before: before}).statusText(s, width)
	}
	named, four := someStatus, rates{250e6, 500e6, 100e6, 250e6}
	named.Plan = "quick"
	assert.Equal(t, full, statusText(named, four, 200))
	n := utf8.RuneCountInString(full)
	assert.Equal(t, full, statusText(named, four, n))
	assert.Equal(t, strings.TrimPrefix(full, "quick "), statusText(named, four, n-1), "the plan is left out first")
	assert.NotContains(t, statusText(named, four, n-7), "written")
	assert.Contains(t, statusText(named, four, n-38), "▅█▂▅")
	assert.Equal(t, "[3/9] format=UDSB,encryption=AES-256,band_size=8 MiB  write new 12/45  500 MB/s  25 %, 2.00 GB of 8.00 GB written  1m30s left",
		statusText(someStatus, rates{500e6}, 200))
	for width := 20; width < 120; width++ {
		line := statusText(someStatus, rates{1, 2, 3}, width)
		assert.LessOrEqual(t, utf8.RuneCountInString(line), width)
	}
	assert.Equal(t, "[3/9] format=UDSB,encryption=AES…  write new 12/45  500 MB/s  1m30s left", statusText(someStatus, rates{500e6}, 72))
	hostile := runner.Status{Case: "a\x1b]0;b", Do: "write", OfRounds: 1, ElapsedNS: 5e9}
	assert.Equal(t, "[1/1] a\ufffd]0;b  write  5s so far", (&progress{}).statusText(hostile, 80))
	for d, want := range map[time.Duration]string{59 * time.Second: "59s", 61 * time.Second: "1m1s", 3725*time.Second + 9e8: "1h2m5s"} {
		assert.Equal(t, want, roughTime(d))
	}
}

func TestRatesAreOfOneStep(t *testing.T) {
	var r rates
	s := runner.Status{Case: "a", Do: "write"}
	add := func(bytes, ns int64) {
		before := s
		s.Bytes, s.TimedNS = bytes, ns
		r.add(before, s)
	}
	add(100, 1e9)
	assert.Equal(t, rates{100}, r)
	assert.Empty(t, r.spark())
	add(100, 1e9) // nothing new
	add(500, 2e9)
	assert.Equal(t, rates{100, 400}, r)
	assert.Equal(t, " ▃█", r.spark())
	for i := range int64(20) {
		add(500+100*(i+1), 2e9+1e9*(i+1))
	}
	assert.Len(t, r, maxRates)
	before := s
	s.Do, s.Bytes, s.TimedNS = "read", 7, 1e9
	r.add(before, s)
	assert.Equal(t, rates{7}, r)
}

// TestAsked: the answer comes when nothing is timed, terminal or not.
func TestAsked(t *testing.T) {
	var w bytes.Buffer
	p := &progress{w: &w, clock: clock.NewVirtual(time.Unix(0, 0))}
	p.Status(someStatus)
	p.Request()
	assert.Empty(t, w.String(), "a file may be timed now")
	p.Status(someStatus)
	assert.Contains(t, w.String(), "write new 12/45")
	assert.Equal(t, 1, strings.Count(w.String(), "\n"))
	p.Status(someStatus)
	assert.Equal(t, 1, strings.Count(w.String(), "\n"), "once")
	waits := someStatus
	waits.Do = "settle"
	p.Status(waits)
	p.Request()
	assert.Equal(t, 2, strings.Count(w.String(), "\n"), "nothing is timed while the run waits")
	r := &result.Result{Rounds: 1, Cases: []result.Case{{Status: "done"}, {Status: "skipped"}, {Status: "done"}}}
	assert.Equal(t, "2 done, 1 skipped of 3 cases, 1 round, 1.50 GB written, in 30s", p.summary(r))
	paused := &result.Result{Status: result.Unfinished, Rounds: 2, Cases: []result.Case{{Status: result.Done}, {Status: result.Discarded, Reason: "not reached yet"},
		{Status: result.Discarded, Rounds: []result.CaseRound{{Status: result.Done}, {Status: result.Discarded, Reason: "interrupted between two steps"}}}}}
	assert.Contains(t, p.summary(paused), "1 done, 2 not finished of 3 cases", "nobody threw them away")
	paused.Cases[2].Rounds[1].Reason = "the machine slept twice while this case was measured"
	assert.Contains(t, p.summary(paused), "1 discarded, 1 done, 1 not finished of 3 cases")
	paused.Status = result.Failed
	assert.Contains(t, p.summary(paused), "2 discarded, 1 done of 3 cases")
}

func TestTimeLeft(t *testing.T) {
	const minute = int64(time.Minute)
	p := &progress{}
	assert.Zero(t, runner.Status{}.Left(p.before), "no forecast")
	// 10 minutes of work at the assumed speeds, 5 of waiting: told from the first second.
	s := runner.Status{OfWorkNS: 10 * minute, OfWaitNS: 5 * minute}
	assert.Equal(t, 15*time.Minute, s.Left(p.before))
	// The machine is half as fast as assumed. The time left rises by less than half, then falls without jumps.
	last := 15 * time.Minute
	for done := int64(1); done <= 10; done++ {
		s.WorkNS, s.WaitedNS = done*minute, done*minute/2
		s.ElapsedNS = 2*done*minute + s.WaitedNS
		left := s.Left(p.before)
		assert.Less(t, left, last+7*time.Minute)
		if done > 2 {
			assert.Less(t, left, last, "%d of 10", done)
		}
		last = left
	}
	assert.Zero(t, last)
	// What earlier sessions did is in no speed of this one.
	p.before = runner.Status{WorkNS: 5 * minute, WaitedNS: 2 * minute}
	s = runner.Status{WorkNS: 5 * minute, OfWorkNS: 10 * minute, WaitedNS: 2 * minute, OfWaitNS: 5 * minute}
	assert.Equal(t, 8*time.Minute, s.Left(p.before))
	// Two minutes later, of which one was waiting, as forecast.
	p.before.ElapsedNS = 30 * minute
	s.WorkNS, s.WaitedNS, s.ElapsedNS = 6*minute, 3*minute, 32*minute
	assert.InDelta(t, 6*time.Minute, s.Left(p.before), float64(time.Microsecond))
}

// statuses keeps every status of a run.
type statuses struct{ seen []runner.Status }

func (w *statuses) Status(s runner.Status) { w.seen = append(w.seen, s) }
func (*statuses) Message(string)           {}
func (*statuses) Warning(string)           {}
func (*statuses) Failure(runner.Failure)   {}

const watched = `schema = 1
title = "Watched"
[image]
size = "32 MB"
format = "UDSB"
filesystem_preference = ["exFAT"]
[files.few]
sizes = ["64 KB", "1 MB"]
sets = 4
[[protocol]]
steps = [
  { do = "create" },
  { do = "attach" },
  { do = "write", phase = "new", files = "few" },
  { do = "remount" },
  { do = "read", phase = "new" },
]
[run]
rounds = 1
`

// TestNothingIsShownWhileAFileIsTimed holds the times of all updates against those of all files.
func TestNothingIsShownWhileAFileIsTimed(t *testing.T) {
	p, problems := plan.Parse("watched.toml", []byte(watched))
	require.Empty(t, problems.Errors())
	w, c, out := &statuses{}, clock.NewReal(), t.TempDir()
	require.NoError(t, c.Sleep(t.Context(), 2*time.Millisecond)) // the program's clock is ahead of the session's
	got, err := runner.Run(t.Context(), runner.Config{Plan: p, Out: out, Tool: tool(), Engine: inprocess.New(c.Wall), Clock: c, Progress: w})
	require.NoError(t, err)
	require.Equal(t, runner.StatusDone, got.Status)
	_, r, err := runfolders.Update(out)
	require.NoError(t, err)
	files := 0
	for _, cs := range r.Cases {
		for _, st := range cs.Steps {
			for _, sample := range st.Samples {
				files++
				assert.GreaterOrEqual(t, sample.StartNS, st.StartNS, "files and steps are on one clock")
				for _, s := range w.seen {
					inside := s.ElapsedNS > sample.StartNS && s.ElapsedNS < sample.StartNS+sample.DurationNS
					assert.False(t, inside, "%s %s: an update at %d", cs.ID, sample.File, s.ElapsedNS)
				}
			}
		}
	}
	assert.GreaterOrEqual(t, files, 2*2*8)
	assert.GreaterOrEqual(t, len(w.seen), files, "there were updates between the files")
}

func TestProgressAsJSON(t *testing.T) {
	var w bytes.Buffer
	a := &app{stderr: &w, clock: clock.NewVirtual(time.Unix(0, 0)), json: true}
	p := a.newProgress()
	p.Status(someStatus)
	p.Message("two\nlines")
	p.answerSignal()()
	p.Warning("as it happens")
	a.warn("a warning")
	a.printError(&runner.NotFitError{Reasons: []string{"no space"}, Hint: "make some"})
	a.printError(context.Canceled)
	var kinds []string
	for line := range strings.Lines(w.String()) {
		var v map[string]any
		require.NoError(t, json.Unmarshal([]byte(line), &v), line)
		kinds = append(kinds, fmt.Sprint(v["kind"]))
		for key := range v {
			assert.Regexp(t, "^[a-z]+(_[a-z]+)*$", key)
		}
	}
	assert.Equal(t, []string{"status", "message", "warning", "warning", "error", "error"}, kinds)
	assert.Contains(t, w.String(), `"left_ns":75000000000`)
	assert.Contains(t, w.String(), `"hint":"make some","exit":4`)
	assert.Contains(t, w.String(), `"exit":130`)
}

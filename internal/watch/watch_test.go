package watch

import (
	"flag"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
	"unicode"

	tea "charm.land/bubbletea/v2"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"dmgbench/internal/bench/engine/simulated"
	"dmgbench/internal/bench/runner"
	"dmgbench/internal/plan"
	"dmgbench/internal/report"
	"dmgbench/internal/result"
	"dmgbench/internal/system/clock"
	"dmgbench/internal/system/hostio"
)

var update = flag.Bool("update", false, "write the golden files")

const watched = `
schema = 1
title = "Watched images"
[image]
size = "10 GB"
filesystem_preference = ["exFAT"]
[run]
rounds = 3
[matrix]
format = ["UDRW", "UDSB"]
encryption = ["none", "AES-256"]
[files.one]
sizes = ["100 MB", "200 MB"]
sets = 3
[[protocol]]
steps = [
  { do = "create" },
  { do = "attach" },
  { do = "measure", phase = "created" },
  { do = "write", phase = "new", files = "one" },
  { do = "settle", at_least = "10 min" },
  { do = "measure", phase = "written" },
  { do = "remount" },
  { do = "read", phase = "new" },
]
`

// simulate executes the plan on a simulated disk and returns its folder and the lines of its journal.
func simulate(t *testing.T, text string) (dir string, lines []string) {
	t.Helper()
	p, problems := plan.Parse("watched", []byte(text))
	require.Empty(t, problems.Errors(), "%v", problems)
	c := runner.Config{Plan: p, Out: filepath.Join(t.TempDir(), "run"), Volatile: true, Why: "a test",
		Clock: clock.NewVirtual(time.Unix(0, 0)), Tool: result.Tool{Name: "dmgbench", Version: "test"},
		Warnings: []result.Warning{{Kind: "busy", Text: "other work was going on: load average 5.7 on 2 processors, " +
			"which takes time from the disk and from the measuring process alike"}}}
	m, err := simulated.Parse("write = 1 GB/s\nread = 2 GB/s\nmount_noise = 3%\nfile_noise = 10%")
	require.NoError(t, err)
	c.Engine, err = simulated.New(m, c.Clock, 7, 1)
	require.NoError(t, err)
	_, err = runner.Run(t.Context(), c)
	require.NoError(t, err)
	data, err := os.ReadFile(filepath.Join(c.Out, result.JournalFile))
	require.NoError(t, err)
	return c.Out, strings.SplitAfter(strings.TrimSuffix(string(data), "\n"), "\n")
}

// cutJournal leaves only the lines before the n-th one that contains a text, and that one.
func cutJournal(t *testing.T, dir string, lines []string, text string, n int) {
	t.Helper()
	for i, line := range lines {
		if strings.Contains(line, text) {
			if n--; n == 0 {
				writeJournal(t, dir, strings.Join(lines[:i+1], ""))
				return
			}
		}
	}
	t.Fatalf("no such line with %s", text)
}

func writeJournal(t *testing.T, dir, text string) {
	t.Helper()
	require.NoError(t, os.WriteFile(filepath.Join(dir, result.JournalFile), []byte(text), 0o644))
}

// open opens a run that no process executes.
func open(t *testing.T, dir string) *Run {
	t.Helper()
	r, err := Open(dir, time.Now)
	require.NoError(t, err)
	t.Cleanup(func() { assert.NoError(t, r.Close()) })
	r.dir = "runs/watched"
	return r
}

// hold holds the lock that a process holds while it executes the run, until release is called.
func hold(t *testing.T, dir string) (release func()) {
	t.Helper()
	d, err := hostio.OpenDir(dir)
	require.NoError(t, err)
	f, err := d.Open(result.JournalFile, hostio.OpenOptions{Write: true})
	require.NoError(t, err)
	require.NoError(t, f.TryLock())
	release = sync.OnceFunc(func() {
		assert.NoError(t, f.Close())
		assert.NoError(t, d.Close())
	})
	t.Cleanup(release)
	return release
}

// after is the time so long after the last record that is shown.
func (r *Run) after(d time.Duration) time.Time { return r.lastTime().Add(d) }

func golden(t *testing.T, name, got string) {
	t.Helper()
	path := filepath.Join("testdata", name+".txt")
	got = strings.ReplaceAll(got, "\x1b", "^") + "\n"
	if *update {
		require.NoError(t, os.WriteFile(path, []byte(got), 0o644))
	}
	want, err := os.ReadFile(path)
	require.NoError(t, err)
	assert.Equal(t, string(want), got, "%s differs; run with -update and read the change", path)
}

const settles = `"do":"settle"`

func TestScreens(t *testing.T) {
	dir, lines := simulate(t, watched)
	small := Layout{Width: 80, Height: 24, Top: -1}
	large := Layout{Width: 120, Height: 40, Top: -1}

	r := open(t, dir)
	golden(t, "done", r.Screen(r.after(time.Hour)).Draw(small))
	golden(t, "done-text", r.Screen(r.after(time.Hour)).Draw(Layout{Width: 80}))
	release := hold(t, dir)

	// The journal has a record at the start of a step and one at its end, with the same text.
	cutJournal(t, dir, lines, settles, 15)
	r = open(t, dir)
	waiting := r.Screen(r.after(4 * time.Minute))
	golden(t, "waiting", waiting.Draw(small))
	golden(t, "waiting-large", waiting.Draw(large))
	for name, theme := range map[string]Theme{"waiting-dark": Dark, "waiting-light": Light} {
		l := small
		l.Theme = theme
		golden(t, name, waiting.Draw(l))
	}
	cutJournal(t, dir, lines, `"case_start":`, 1)
	golden(t, "first", open(t, dir).Screen(time.Unix(0, 0)).Draw(small))

	cutJournal(t, dir, lines, settles, 15)
	release()
	r = open(t, dir)
	require.NoError(t, r.show(r.shown)) // the folder has another name now
	golden(t, "killed", r.Screen(r.after(2*time.Hour)).Draw(small))
}

// Every screen fits the terminal, whatever its size, and has the text of the plain one.
func TestScreensFit(t *testing.T) {
	dir, lines := simulate(t, watched)
	cutJournal(t, dir, lines, settles, 9)
	hold(t, dir)
	r := open(t, dir)
	s := r.Screen(r.after(time.Second))
	for width := minWidth; width < 200; width += 7 {
		for height := minHeight; height < 60; height += 11 {
			drawn := s.Draw(Layout{Width: width, Height: height, Top: -1})
			assert.Equal(t, height, strings.Count(drawn, "\n")+1, "%d x %d", width, height)
			for line := range strings.Lines(drawn) {
				assert.LessOrEqual(t, report.Width(strings.TrimSuffix(line, "\n")), width, line)
			}
			assert.Contains(t, drawn, "▶", "the current case is on the screen")
		}
	}
}

// The numbers are those of the report of the whole run.
func TestFiguresAreThoseOfTheAnalysis(t *testing.T) {
	dir, _ := simulate(t, watched)
	r := open(t, dir)
	s := r.Screen(time.Unix(0, 0))
	require.Len(t, s.Cases, 5)
	require.Equal(t, Quantity{"write", "new"}, s.Quantities[0])
	for i, c := range s.Cases {
		f := c.Figures[Quantity{"read", "new"}]
		sums := report.Where(r.result.Summaries, func(sum result.Summary) bool {
			return sum.Case == r.result.Cases[i].ID && sum.Op == "read"
		})
		require.Len(t, sums, 1)
		assert.Equal(t, &sums[0], f)
		assert.Equal(t, "round", report.Headline(f).CI.Unit)
		assert.Len(t, c.Rates[Quantity{"read", "new"}], 3*6)
		assert.Equal(t, slices.Repeat([]string{result.Done}, 3), c.Rounds)
		assert.Len(t, c.Sizes, 2, "those of the last round")
	}
}

// A journal that grows record by record, with the last one torn, is followed to the same screen.
func TestFollowsAJournalThatGrows(t *testing.T) {
	dir, lines := simulate(t, watched)
	whole := open(t, dir).Screen(time.Unix(0, 0))
	f, err := os.OpenFile(filepath.Join(dir, result.JournalFile), os.O_WRONLY|os.O_TRUNC, 0)
	require.NoError(t, err)
	defer f.Close()
	write := func(s string) {
		_, err := f.WriteString(s)
		require.NoError(t, err)
	}
	write(strings.Join(lines[:2], ""))
	hold(t, dir)
	now := time.Unix(0, 0)
	r, err := Open(dir, func() time.Time { return now })
	require.NoError(t, err)
	defer r.Close()
	for _, line := range lines[2:] {
		if line == lines[len(lines)-1] {
			line += "\n"
		}
		now = now.Add(pause)
		shown := r.shown
		write(line[:len(line)/2])
		require.NoError(t, r.Poll())
		require.Equal(t, shown, r.shown, "half a line is no record")
		write(line[len(line)/2:])
		require.NoError(t, r.Poll())
		require.Equal(t, shown+1, r.shown)
	}
	assert.Equal(t, whole, r.Screen(time.Unix(0, 0)))
	require.NoError(t, r.Poll())
	assert.Equal(t, whole, r.Screen(time.Unix(0, 0)))

	write("{}\n")
	assert.ErrorContains(t, r.Poll(), "reading journal")
}

// New records are shown every two seconds at most, and less often where that takes long. The last ones of a session
// are shown at once.
func TestPollsSparingly(t *testing.T) {
	dir, lines := simulate(t, watched)
	hold(t, dir)
	now, takes := time.Unix(0, 0), time.Duration(0)
	n := len(lines) / 2
	writeJournal(t, dir, strings.Join(lines[:n], ""))
	r, err := Open(dir, func() time.Time {
		now = now.Add(takes)
		return now
	})
	require.NoError(t, err)
	defer r.Close()
	shows := func(after time.Duration, upTo int) (shown int) {
		now = now.Add(after)
		writeJournal(t, dir, strings.Join(lines[:upTo], "")+"\n")
		require.NoError(t, r.Poll())
		return r.shown
	}
	assert.Equal(t, n, shows(pause-time.Millisecond, n+1))
	assert.Equal(t, n+1, shows(time.Millisecond, n+1))
	takes = 100 * time.Millisecond // between two looks at the clock
	assert.Equal(t, n+2, shows(pause, n+2))
	assert.Equal(t, n+2, shows(share*takes-3*takes, n+3), "a tenth of a second of work, five of rest")
	assert.Equal(t, n+3, shows(2*takes, n+3))
	assert.Equal(t, n+3, shows(0, len(lines)-3))
	assert.Equal(t, len(lines), shows(0, len(lines)), "the end of the run")
}

// A run that was killed is shown as interrupted as soon as no process executes it, until another one resumes it. A
// folder that is moved is still followed; one that is deleted is an error.
func TestKilledMovedAndDeleted(t *testing.T) {
	dir, lines := simulate(t, watched)
	cutJournal(t, dir, lines, settles, 3)
	release := hold(t, dir)
	r := open(t, dir)
	require.Equal(t, running, r.Screen(r.after(time.Hour)).Status)
	release()
	require.NoError(t, r.Poll())
	killed := r.Screen(r.after(time.Hour))
	assert.Equal(t, result.Interrupted, killed.Status)
	assert.Equal(t, killed, r.Screen(r.after(2*time.Hour)), "its time does not go on")
	assert.False(t, slices.ContainsFunc(killed.Cases, func(c Case) bool { return c.Current }))
	require.NoError(t, r.show(3))
	assert.Equal(t, running, r.screen.Status, "in a replay it still runs")

	moved := dir + "-moved"
	require.NoError(t, os.Rename(dir, moved))
	hold(t, moved)
	cutJournal(t, moved, lines, settles, 4)
	r.next = time.Time{}
	require.NoError(t, r.Poll())
	assert.Equal(t, running, r.screen.Status)
	require.NoError(t, os.RemoveAll(moved))
	assert.ErrorContains(t, r.Poll(), "reading journal")
}

// While a step waits the time left goes down with the clock; while it works it never reaches zero.
func TestTimeLeft(t *testing.T) {
	dir, lines := simulate(t, watched)
	cutJournal(t, dir, lines, settles, 15)
	hold(t, dir)
	r := open(t, dir)
	before := r.Screen(r.after(time.Minute))
	for _, d := range []time.Duration{2, 5, 9} {
		now := r.Screen(r.after(d * time.Minute))
		assert.InDelta(t, before.Left-(d-1)*time.Minute, now.Left, float64(time.Second))
		assert.Equal(t, 10*time.Minute, now.Wait)
		assert.Equal(t, d*time.Minute, now.For)
	}
	// Eight of fifteen case-rounds wait ten minutes each, and one a part of it.
	assert.InDelta(t, 8*10*time.Minute, before.Left, float64(10*time.Minute))

	cutJournal(t, dir, lines, `"do":"read"`, 1)
	r = open(t, dir)
	for _, d := range []time.Duration{0, time.Second, time.Hour} {
		assert.Positive(t, r.Screen(r.after(d)).Left)
	}
}

func TestStates(t *testing.T) {
	dir, lines := simulate(t, watched)
	for name, x := range map[string]struct{ end, status, advice, now string }{
		"interrupted": {`{"session":1,"end":"interrupted"}`, result.Interrupted, "dmgbench resume runs/watched", "no step is executed"},
		"active":      {"", running, "", "preparing"},
	} {
		t.Run(name, func(t *testing.T) {
			cutJournal(t, dir, lines, `"case_end":`, 2)
			defer hold(t, dir)()
			r := open(t, dir)
			if x.end != "" {
				records := r.follower.Records()
				records = append(records, result.Record{At: records[len(records)-1].At,
					SessionEnd: &result.SessionEnd{Session: 1, End: result.Interrupted}})
				state, err := result.Replay(records)
				require.NoError(t, err)
				r.state = state
				r.setStatus(&r.screen)
			}
			s := r.Screen(r.after(time.Second))
			assert.Equal(t, x.status, s.Status)
			assert.Contains(t, s.Advice, x.advice)
			assert.Contains(t, s.Draw(Layout{Width: 80}), x.now)
		})
	}
}

func TestOpenRefuses(t *testing.T) {
	_, err := Open(t.TempDir(), time.Now)
	require.ErrorIs(t, err, result.ErrNotRun)
	dir, lines := simulate(t, watched)
	writeJournal(t, dir, strings.Replace(strings.Join(lines, ""), "UDRW", "UDRX", 1))
	_, err = Open(dir, time.Now)
	assert.ErrorContains(t, err, "checksum")
}

// files are the names, sizes and times of the files of a folder.
func files(t *testing.T, dir string) (list []string) {
	t.Helper()
	entries, err := os.ReadDir(dir)
	require.NoError(t, err)
	for _, e := range entries {
		fi, err := e.Info()
		require.NoError(t, err)
		list = append(list, e.Name()+fi.ModTime().String(), fi.Mode().String())
	}
	return list
}

// A folder that is watched stays as it is, and can be locked by a resume.
func TestTouchesNothing(t *testing.T) {
	dir, lines := simulate(t, watched)
	cutJournal(t, dir, lines, settles, 3)
	before := files(t, dir)
	r := open(t, dir)
	_ = r.Screen(time.Unix(0, 0)).Draw(Layout{Width: 80})
	d, err := result.ResumeRun(dir)
	require.NoError(t, err, "no lock is held")
	require.NoError(t, d.Close())
	assert.Equal(t, before, files(t, dir))
}

// press sends keys to a program and returns what it shows then.
func (p *program) shows(keys ...string) string {
	for _, key := range keys {
		p.press(key)
	}
	return p.View().Content
}

func TestKeys(t *testing.T) {
	dir, _ := simulate(t, strings.NewReplacer(`"UDSB"`, `"UDSB", "UDSP"`, `"none"`, `"none", "AES-128"`).Replace(watched))
	r := open(t, dir)
	r.now = func() time.Time { return r.after(0) }
	p := &program{run: r, layout: Layout{Width: 80, Height: 16, Top: -1}}
	first := p.shows()
	assert.Contains(t, first, "write new")
	assert.Contains(t, p.shows("right"), "read new")
	assert.Equal(t, first, p.shows("left"))
	assert.NotEqual(t, p.shows("left"), first, "it wraps around")
	p.shows("right")
	assert.Contains(t, first, "UDRW · unencrypted")
	assert.NotContains(t, p.shows("down", "down", "down"), "UDRW · unencrypted")
	assert.Equal(t, first, p.shows("up", "up", "up", "up"))
	for _, key := range []string{"q", "esc", "ctrl+c"} {
		require.NotNil(t, p.press(key), key)
		assert.Equal(t, tea.Quit(), p.press(key)())
	}
}

// A replay goes through the run from its first record, and ends with the screen of the whole run.
func TestReplay(t *testing.T) {
	dir, _ := simulate(t, watched)
	r := open(t, dir)
	r.now = func() time.Time { return r.after(0) }
	p := &program{run: r, layout: Layout{Width: 80, Height: 24, Top: -1}}
	whole := p.shows()
	assert.NotContains(t, whole, "replay,")
	assert.Contains(t, p.shows("r"), "0 of 15 case-rounds")
	assert.Contains(t, p.View().Content, "replay, running")
	seen := map[string]bool{}
	for p.replay {
		_, cmd := p.Update(tick{})
		require.NoError(t, p.err)
		require.NotNil(t, cmd, "the clock goes on")
		seen[p.View().Content] = true
	}
	assert.Greater(t, len(seen), 30)
	assert.Equal(t, whole, p.View().Content)
	p.shows("r")
	assert.Equal(t, whole, p.shows("r"), "the key ends it, too")
}

func TestMessagesOfTheTerminal(t *testing.T) {
	dir, _ := simulate(t, watched)
	r := open(t, dir)
	r.now = func() time.Time { return r.after(0) }
	p := &program{run: r, layout: Layout{Width: 80, Height: 24, Theme: Dark}}
	_, _ = p.Update(tea.WindowSizeMsg{Width: 100, Height: 30})
	assert.Equal(t, 30, strings.Count(p.View().Content, "\n")+1)
	dark := p.View().Content
	_, _ = p.Update(tea.BackgroundColorMsg{Color: lightGrey{}})
	assert.NotEqual(t, dark, p.View().Content)
	assert.True(t, p.View().AltScreen)
	f, err := os.OpenFile(filepath.Join(dir, result.JournalFile), os.O_WRONLY|os.O_APPEND, 0)
	require.NoError(t, err)
	_, err = f.WriteString("\n{}\n")
	require.NoError(t, err)
	require.NoError(t, f.Close())
	_, cmd := p.Update(tick{})
	assert.Error(t, p.err)
	assert.Equal(t, tea.Quit(), cmd())
}

type lightGrey struct{}

func (lightGrey) RGBA() (r, g, b, a uint32) { return 0xeeee, 0xeeee, 0xeeee, 0xffff }

// Text of a journal reaches the terminal without control characters, and numbers that no run has measured are drawn.
func TestHostileJournal(t *testing.T) {
	dir, lines := simulate(t, watched)
	texts := regexp.MustCompile(`"(phase|title|text|reason|version|do)":"`)
	sizes := regexp.MustCompile(`"allocated":\d+`)
	for i := range lines {
		text, _, _ := strings.Cut(lines[i], `,"crc32c"`)
		text = texts.ReplaceAllString(text+"}\n", "$0"+`\u001b]0;owned\u0007\u009b31m\u202e\r\n`+strings.Repeat("wide ", 40))
		lines[i] = sizes.ReplaceAllString(text, `"allocated":-9223372036854775808`)
	}
	whole := strings.Join(lines, "")
	for _, cut := range []string{"", `"step_start":`, `"case_end":`} {
		end := len(whole)
		if cut != "" {
			end = strings.LastIndex(whole, cut)
			end += strings.Index(whole[end:], "\n") + 1
		}
		writeJournal(t, dir, whole[:end])
		release := hold(t, dir)
		r := open(t, dir)
		for quantity := range 4 {
			drawn := r.Screen(r.after(time.Second)).Draw(Layout{Width: 80, Height: 24, Quantity: quantity})
			assert.NotContains(t, strings.Map(func(c rune) rune {
				if c != '\n' && (unicode.IsControl(c) || c == '\u202e') {
					return '!'
				}
				return c
			}, strings.ReplaceAll(drawn, "!", "")), "!")
			for line := range strings.Lines(drawn) {
				assert.LessOrEqual(t, report.Width(strings.TrimSuffix(line, "\n")), 80, line)
			}
		}
		release()
	}
}

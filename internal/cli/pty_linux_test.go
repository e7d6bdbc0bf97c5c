package cli

import (
	"bytes"
	"context"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"dmgbench/internal/system/clock"
)

// screen is the far side of a pseudo-terminal: it keeps what is printed and can type.
type screen struct {
	master, tty *os.File
	mu          sync.Mutex
	text        bytes.Buffer
	on          string // do is done when this is seen
	do          func()
	gone        chan struct{}
}

func newScreen(t *testing.T, columns uint16) *screen {
	t.Helper()
	master, err := os.OpenFile("/dev/ptmx", os.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		t.Skipf("no pseudo-terminals here: %v", err)
	}
	fd := int(master.Fd())
	require.NoError(t, unix.IoctlSetPointerInt(fd, unix.TIOCSPTLCK, 0))
	n, err := unix.IoctlGetInt(fd, unix.TIOCGPTN)
	require.NoError(t, err)
	tty, err := os.OpenFile("/dev/pts/"+strconv.Itoa(n), os.O_RDWR|unix.O_NOCTTY, 0)
	require.NoError(t, err)
	require.NoError(t, unix.IoctlSetWinsize(int(tty.Fd()), unix.TIOCSWINSZ, &unix.Winsize{Row: 24, Col: columns}))
	s := &screen{master: master, tty: tty, gone: make(chan struct{})}
	go s.watch()
	return s
}

func (s *screen) watch() {
	defer close(s.gone)
	p := make([]byte, 4096)
	for {
		n, err := s.master.Read(p)
		s.mu.Lock()
		s.text.Write(p[:n])
		if s.do != nil && strings.Contains(s.text.String(), s.on) {
			s.do()
			s.do = nil
		}
		s.mu.Unlock()
		if err != nil { // EIO: the last one to have the terminal open has closed it
			return
		}
	}
}

// when does something as soon as a text is on the screen.
func (s *screen) when(on string, do func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.on, s.do = on, do
}

func (s *screen) types(line string) { _, _ = io.WriteString(s.master, line) }

// close gives all that was printed.
func (s *screen) close() string {
	_ = s.tty.Close()
	<-s.gone
	_ = s.master.Close()
	return s.text.String()
}

func TestStatusLineOnATerminal(t *testing.T) {
	s := newScreen(t, 60)
	var out bytes.Buffer
	code := Main(t.Context(), s.tty, &out, s.tty, []string{"run", planFile(t, watched), "--out", filepath.Join(t.TempDir(), "out")}, stateEnv(t))
	text := s.close()
	require.Zero(t, code, text)
	lines := strings.Split(text, erase)
	require.Greater(t, len(lines), 1, "no status line in %q", text)
	for _, l := range lines[1 : len(lines)-1] {
		if _, stays := strings.CutPrefix(l, "warning: "); stays {
			continue
		}
		assert.Less(t, len([]rune(l)), 60, "it would wrap: %q", l)
	}
	assert.Regexp(t, `^(watched )?\[1/2\] [^ ].*?  \w+ .*(so far|left)$`, lines[1])
	// A warning that comes last has cleared the line already, and a quick run draws none again.
	assert.Regexp(t, `(\r\x1b\[K|\n)2 of 2 cases done, 1 round, [0-9.]+ MB written, in \d+s\r\nreport: .*report\.html\r\nall figures: dmgbench report .* --verbose\r\n$`, text, "the status line is gone before the end")
	assert.NotContains(t, out.String(), "\x1b", "the report goes to a file, and is plain")
}

// A terminal too narrow for a status line, or of an unknown width, gets one of 80 columns.
func TestStatusLineFillsTheTerminal(t *testing.T) {
	for columns, want := range map[uint16]int{90: 89, 60: 59, 20: 19, 19: 79, 0: 79} {
		s := newScreen(t, columns)
		a := &app{stderr: s.tty, clock: clock.NewVirtual(time.Unix(0, 0))}
		a.newProgress().Status(someStatus)
		line, drawn := strings.CutPrefix(s.close(), erase)
		assert.True(t, drawn, columns)
		assert.Equal(t, want, utf8.RuneCountInString(line), "%d columns: %s", columns, line)
	}
}

func TestColoursOnATerminalOnly(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "out")
	code, _, stderr := call(t, stateEnv(t), "run", planFile(t, watched), "--out", dir)
	require.Zero(t, code, stderr)
	assert.NotContains(t, stderr, "\x1b")
	for _, test := range []struct {
		env, flag string
		want      bool
	}{{"TERM=xterm", "", true}, {"TERM=xterm", "never", false}, {"TERM=xterm", "auto", true}, {"NO_COLOR=1", "", false},
		{"NO_COLOR=1", "auto", false}, {"NO_COLOR=1", "always", true}, {"TERM=dumb", "", false},
		{"CLICOLOR=0", "", false}, {"CLICOLOR=0", "always", true},
		{"DMGBENCH_REPORT_COLOR=never", "", false}, {"DMGBENCH_REPORT_COLOR=never", "always", true}} {
		s := newScreen(t, 80)
		args := []string{"report", dir, "--color", test.flag}
		if test.flag == "" {
			args = args[:2]
		}
		require.Zero(t, Main(t.Context(), s.tty, s.tty, s.tty, args, []string{"HOME=/nowhere", test.env}))
		text := s.close()
		assert.Contains(t, text, "Watched")
		assert.Equal(t, test.want, strings.Contains(text, "\x1b["), "%s %s", test.env, test.flag)
	}
	s := newScreen(t, 40)
	require.Zero(t, Main(t.Context(), s.tty, s.tty, s.tty, []string{"plans"}, nil))
	for line := range strings.Lines(s.close()) {
		assert.LessOrEqual(t, len([]rune(strings.TrimSpace(line))), 40, line)
	}
}

func TestDumbTerminalHasNoStatusLine(t *testing.T) {
	s := newScreen(t, 80)
	code := Main(t.Context(), s.tty, io.Discard, s.tty, []string{"run", planFile(t, watched), "--out", filepath.Join(t.TempDir(), "out")}, stateEnv(t, "TERM=dumb"))
	text := s.close()
	require.Zero(t, code, text)
	assert.NotContains(t, text, "\x1b")
}

// largePlan writes 3.2 TB into an image and into the native folder, for which no disk has the space.
func largePlan(t *testing.T) string {
	t.Helper()
	return planFile(t, strings.NewReplacer(`"32 MB"`, `"900 TB"`, `"UDSB"`, `"UDRW"`, `"1 MB"]`, `"800 GB"]`).Replace(watched))
}

// The question before a large run says what all its rounds and sessions write.
func TestLargeRunsSayWhatTheyWrite(t *testing.T) {
	large := largePlan(t)
	for args, writes := range map[string]string{
		"":                              "6.40 TB",
		"--rounds 2":                    "12.8 TB",
		"--sessions 3":                  "19.2 TB",
		"--rounds 2 --sessions 3":       "38.4 TB",
		"--rounds auto --max-rounds 10": "64.0 TB",
	} {
		s := newScreen(t, 80)
		s.when("Continue? [y/N] ", func() { s.types("no\n") })
		args := append([]string{"run", large, "--out", filepath.Join(t.TempDir(), "out")}, strings.Fields(args)...)
		assert.Equal(t, exitUsage, Main(t.Context(), s.tty, io.Discard, s.tty, args, stateEnv(t)))
		assert.Contains(t, s.close(), "This writes up to "+writes+" in total.", args)
	}
}

// TestLargeRunsAsk answers the question: what is answered shows in the exit status.
func TestLargeRunsAsk(t *testing.T) {
	large := largePlan(t)
	const question = "Continue? [y/N] "
	tests := map[string]struct {
		typed string
		args  []string
		asks  bool
		code  int
	}{
		"yes":        {"y\n", nil, true, exitNotFit},
		"no":         {"no\n", nil, true, exitUsage},
		"just enter": {"\n", nil, true, exitUsage},
		"end":        {"\x04", nil, true, exitUsage},
		"--yes":      {"", []string{"--yes"}, false, exitNotFit},
		"dry run":    {"", []string{"--dry-run"}, false, 0},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			s := newScreen(t, 80)
			s.when(question, func() { s.types(test.typed) })
			args := append([]string{"run", large, "--out", filepath.Join(t.TempDir(), "out")}, test.args...)
			code := Main(t.Context(), s.tty, io.Discard, s.tty, args, stateEnv(t))
			text := s.close()
			assert.Equal(t, test.code, code, text)
			assert.Equal(t, test.asks, strings.Contains(text, question), text)
		})
	}
	// Where nobody can answer there is no question.
	code, _, stderr := call(t, stateEnv(t), "run", large, "--out", filepath.Join(t.TempDir(), "out"))
	assert.Equal(t, exitNotFit, code)
	assert.NotContains(t, stderr, question)

	// An interrupt is an answer, too.
	ctx, cancel := context.WithCancel(t.Context())
	s := newScreen(t, 80)
	s.when(question, cancel)
	code = Main(ctx, s.tty, io.Discard, s.tty, []string{"run", large, "--out", filepath.Join(t.TempDir(), "out")}, stateEnv(t))
	s.types("\n") // lets go of the read that waits
	assert.Equal(t, exitInterrupted, code)
	s.close()
}

// Watch fills the terminal, has the colours of its background unless NO_COLOR is set, and q quits it: the terminal is as before.
func TestWatchOnATerminal(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "out")
	code, _, stderr := call(t, stateEnv(t), "run", planFile(t, watched), "--out", dir)
	require.Zero(t, code, stderr)
	const dark, light = "38;2;135;215;255", "38;2;0;95;175"
	for env, color := range map[string]string{"A=B": dark, "COLORFGBG=0;15": light, "COLORFGBG=15;0": dark, "NO_COLOR=1": ""} {
		s := newScreen(t, 80)
		before, err := unix.IoctlGetTermios(int(s.tty.Fd()), unix.TCGETS)
		require.NoError(t, err)
		s.when("q quit", func() { s.types("q") })
		code := Main(t.Context(), s.tty, s.tty, s.tty, []string{"watch", dir}, stateEnv(t, "TERM=xterm-256color", "COLORTERM=truecolor", env))
		after, err := unix.IoctlGetTermios(int(s.tty.Fd()), unix.TCGETS)
		require.NoError(t, err)
		assert.Equal(t, before, after, "echo and line editing")
		text := s.close()
		assert.Zero(t, code, text)
		assert.Contains(t, text, "the run has ended")
		assert.Contains(t, text, "\x1b[?1049l", "the screen from before is back")
		assert.Contains(t, text, "\x1b[?25h", "and the cursor")
		for _, c := range []string{dark, light} {
			assert.Equal(t, c == color, strings.Contains(text, c), "%s: %q", env, text)
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	s := newScreen(t, 80)
	s.when("q quit", cancel)
	assert.Zero(t, Main(ctx, s.tty, s.tty, s.tty, []string{"watch", dir}, stateEnv(t, "TERM=xterm")), "a signal quits, too")
	s.close()
}

func TestVariablesForceColours(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "out")
	code, _, stderr := call(t, stateEnv(t), "run", planFile(t, watched), "--out", dir)
	require.Zero(t, code, stderr)
	for env, want := range map[string]bool{"CLICOLOR_FORCE=1": true, "FORCE_COLOR=1": true, "FORCE_COLOR=0": false,
		"CLICOLOR_FORCE=0": false, "CLICOLOR=1": false} {
		_, stdout, _ := call(t, stateEnv(t, env), "report", dir)
		assert.Equal(t, want, strings.Contains(stdout, "\x1b["), env)
		_, stdout, _ = call(t, stateEnv(t, env, "NO_COLOR=1"), "report", dir)
		assert.NotContains(t, stdout, "\x1b[", env)
	}
}

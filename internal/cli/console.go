package cli

import (
	"bufio"
	"cmp"
	"context"
	"fmt"
	"io"
	"maps"
	"os"
	"os/signal"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"
	"unicode/utf8"

	"golang.org/x/sys/unix"
	"golang.org/x/term"

	"dmgbench/internal/bench/engine"
	"dmgbench/internal/bench/runner"
	"dmgbench/internal/report"
	"dmgbench/internal/report/text"
	"dmgbench/internal/report/wording"
	"dmgbench/internal/result"
	"dmgbench/internal/system/clock"
	"dmgbench/internal/system/safetext"
	"dmgbench/internal/system/units"
)

// printable is the text that is printed of anything that may come from a file or
// an argument, see [safetext.Clean].
func printable(s string) string { return safetext.Clean(s) }

// wrap breaks text between words into lines of at most width characters, see
// [text.Wrap].
func wrap(prefix, body string, indent, width int) string {
	return text.Wrap(prefix, strings.Join(strings.Fields(printable(body)), " "), indent, width)
}

// maxPadded is the longest cell that the other cells of a column are aligned
// with.
const maxPadded = 40

// printTable prints rows of cells in aligned columns with two blanks between
// them. Lines end at width characters; 0 is for output that is not a terminal.
// Cells that do not fit go to another line, which starts with indent blanks;
// with an indent of 0 they are cut off.
func printTable(w io.Writer, rows [][]string, width, indent int) error {
	var widths []int
	for _, row := range rows {
		for i, cell := range row {
			row[i] = report.Clean(cell)
			if i == len(widths) {
				widths = append(widths, 0)
			}
			if n := utf8.RuneCountInString(row[i]); n <= maxPadded {
				widths[i] = max(widths[i], n)
			}
		}
	}
	for _, row := range rows {
		var lines strings.Builder
		line := ""
		end := func() {
			line = strings.TrimRight(line, " ")
			fmt.Fprintln(&lines, safetext.BreakCommands(cut(line, cmp.Or(width, len(line)))))
		}
		for i, cell := range row {
			if indent > 0 && width > 0 && i > 0 && utf8.RuneCountInString(line+cell) > width {
				end()
				line = strings.Repeat(" ", indent)
			}
			line += fmt.Sprintf("%-*s  ", widths[i], cell)
		}
		end()
		if _, err := io.WriteString(w, lines.String()); err != nil {
			return err
		}
	}
	return nil
}

// cut shortens text to n characters; an ellipsis marks what was removed.
func cut(text string, n int) string {
	r := []rune(text)
	if len(r) <= n {
		return text
	}
	return string(r[:max(n-1, 0)]) + "…"
}

// quoted is a path in a command that is printed.
var quoted = engine.ShellQuote

// existing is path, or the nearest folder above it that exists, as an absolute
// path: facts of a disk can be read before the run folder is made.
func existing(path string) string {
	path = runner.Absolute(path)
	for !exists(path) && filepath.Dir(path) != path {
		path = filepath.Dir(path)
	}
	return path
}

// nonempty are the texts that are not empty.
func nonempty(parts ...string) []string { return wording.NonEmpty(parts) }

// print prints lines of the answer.
func (a *app) print(format string, args ...any) error {
	_, err := fmt.Fprintln(a.stdout, printable(fmt.Sprintf(format, args...)))
	return err
}

// terminal is the file of a stream that is a terminal. Streams of tests are not
// files.
func terminal(stream any) (*os.File, bool) {
	f, ok := stream.(*os.File)
	return f, ok && term.IsTerminal(int(f.Fd()))
}

// textOptions adapt reports to stdout: its width on a terminal, and colours
// where [app.usesColor].
func (a *app) textOptions() text.Options {
	var o text.Options
	if f := a.command.Flags().Lookup("verbose"); f != nil {
		o.Verbose = a.isSet("verbose")
	}
	o.Color = a.usesColor()
	if f, ok := terminal(a.stdout); ok {
		o.Width, _, _ = term.GetSize(int(f.Fd())) // 0 if unknown
	}
	return o
}

// usesColor reports whether the answer has colours, as --color asks for it:
// auto, also of commands without that flag, means on a terminal that is not
// "dumb". The environment changes that, see no-color.org, force-color.org and
// bixense.com/clicolors; NO_COLOR has precedence.
func (a *app) usesColor() bool {
	f := a.flag("color")
	if f != nil && f.Value.String() != "auto" {
		return f.Value.String() == "always"
	}
	isForced := func(name string) bool { return a.env[name] != "" && a.env[name] != "0" }
	switch {
	case a.env["NO_COLOR"] != "":
		return false
	case isForced("CLICOLOR_FORCE"), isForced("FORCE_COLOR"):
		return true
	}
	_, ok := terminal(a.stdout)
	return ok && a.env["CLICOLOR"] != "0" && a.env["TERM"] != "dumb"
}

// canAsk reports whether stdin and stderr are terminals, so that a user can
// read and answer a question. Scripts are never asked.
func (a *app) canAsk() bool {
	_, in := terminal(a.stdin)
	_, out := terminal(a.stderr)
	return in && out
}

// confirm asks a question and returns nil if the answer was yes; an empty answer
// counts as "no", which is an error with a hint. It returns the error of ctx when
// that is cancelled first, as by Ctrl-C.
func (a *app) confirm(ctx context.Context, question, hint string) error {
	fmt.Fprintf(a.stderr, "%s [y/N] ", question)
	typed := make(chan string, 1)
	go func() { // a read of a terminal cannot be cancelled; the program ends instead
		line, _ := bufio.NewReader(a.stdin).ReadString('\n')
		typed <- line
	}()
	select {
	case <-ctx.Done():
		fmt.Fprintln(a.stderr)
		return ctx.Err()
	case line := <-typed:
		if answer := strings.ToLower(strings.TrimSpace(line)); answer == "y" || answer == "yes" {
			return nil
		}
		return usageError(hint, "aborted")
	}
}

// waitForLines makes the function that lets --wait-between-steps wait for a line
// on stdin, nil without the flag. The context that it returns is cancelled when
// stdin ends or fails, also while a step is executed: the program that answers is
// gone, and another one may want to resume the run.
func (a *app) waitForLines(ctx context.Context) (context.Context, func(context.Context), error) {
	if !a.isSet("wait-between-steps") {
		return ctx, nil, nil
	}
	if !a.json {
		return ctx, nil, usageError("add --format json", "reading --wait-between-steps: it is for programs that read JSON")
	}
	ctx, cancel := context.WithCancel(ctx)
	answers := make(chan struct{})
	go func() { // a read of stdin cannot be cancelled; it ends with the program
		defer cancel()
		for s := bufio.NewScanner(a.stdin); s.Scan(); {
			select {
			case answers <- struct{}{}:
			case <-ctx.Done():
				return
			}
		}
	}()
	return ctx, func(ctx context.Context) {
		select {
		case <-answers:
		case <-ctx.Done():
		}
	}, nil
}

const (
	// refresh is the shortest time between two updates of the status line.
	refresh = 250 * time.Millisecond

	// erase removes the status line.
	erase = "\r\x1b[K"

	// maxRates is the number of rates in a spark line.
	maxRates = 12
)

// progress prints the progress of a run: one line on a terminal, lines of JSON,
// or only messages. It implements [runner.Progress] and may be used from
// several goroutines. It has no timer of its own, and the runner calls it only
// between timed files: while a file is timed no code here runs.
type progress struct {
	mu        sync.Mutex
	w         io.Writer
	clock     clock.Clock
	json      bool
	width     func() int        // columns of the terminal; nil without a terminal
	isHidden  func() bool       // the shell has the terminal: this run is in its background
	names     map[string]string // of cases in the report, by id
	now       runner.Status
	before    runner.Status // the first status: the work of earlier sessions
	rates     rates
	updated   time.Duration // time of the last update, on the clock; 0 before the first
	shown     bool          // the status line is on the screen
	requested bool          // the user asked for the progress
	// onlyWaiting prints a status only where the run waits before a step: a line
	// wakes its reader, which could disturb the next file.
	onlyWaiting bool
}

// newProgress chooses the form for stderr. A terminal that is "dumb" cannot
// erase a line and gets no status line.
func (a *app) newProgress() *progress {
	p := &progress{w: a.stderr, json: a.json, clock: a.clock}
	if f, ok := terminal(a.stderr); ok && a.env["TERM"] != "dumb" {
		p.width = func() int {
			if width, _, err := term.GetSize(int(f.Fd())); err == nil && width >= 20 {
				return width
			}
			return 80
		}
		p.isHidden = func() bool {
			group, err := unix.IoctlGetInt(int(f.Fd()), unix.TIOCGPGRP)
			return err == nil && group != unix.Getpgrp() // an error: another session's terminal, such as that of nohup
		}
	}
	return p
}

// message prints a line that stays.
func (a *app) message(text string) { a.newProgress().Message(text) }

// Status updates the status line or prints a line of JSON, at most four times a
// second or wherever the run waits before a step, and answers a request.
func (p *progress) Status(s runner.Status) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.now == (runner.Status{}) {
		p.before = s
	}
	p.rates.add(p.now, s)
	p.now = s
	if p.requested {
		p.printNow()
	}
	now := p.clock.Now()
	tooSoon := p.onlyWaiting || p.updated > 0 && now-p.updated < refresh
	if !p.json && p.width == nil || tooSoon && !s.Waiting {
		return
	}
	p.updated = max(now, 1)
	if p.json {
		printJSON(p.w, struct {
			Kind string `json:"kind"`
			runner.Status
			LeftNS int64 `json:"left_ns,omitempty"`
		}{"status", s, int64(s.Left(p.before))})
		return
	}
	if p.isHidden() {
		p.shown = false // what is on the screen now is the shell's
		return
	}
	fmt.Fprint(p.w, erase+p.statusText(s, p.width()-1))
	p.shown = true
}

// answerSignal prints the progress at each SIGINFO (Ctrl-T), on Linux SIGUSR1,
// until stop is called, which also removes the status line. Linux has no key and
// no signal for it; dd uses SIGUSR1 there, too.
func (p *progress) answerSignal() (stop func()) {
	number := syscall.Signal(29) // SIGINFO, which package syscall has on BSD systems only
	if runtime.GOOS == "linux" {
		number = syscall.SIGUSR1
	}
	c := make(chan os.Signal, 1)
	signal.Notify(c, number)
	go func() {
		for range c {
			p.Request()
		}
	}()
	return func() {
		signal.Stop(c)
		close(c)
		p.mu.Lock()
		defer p.mu.Unlock()
		p.clear()
	}
}

// Request prints the progress as soon as no file is timed: at once while the
// run waits, else at the next status. Printing at once could delay the file
// that is timed.
func (p *progress) Request() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.requested = true
	if p.now.Do == "settle" {
		p.printNow()
	}
}

// printNow prints the whole status in a line that stays. Readers of JSON have
// it already.
func (p *progress) printNow() {
	if p.requested = false; !p.json {
		p.clear()
		const unlimitedWidth = 1 << 12
		fmt.Fprintln(p.w, p.statusText(p.now, unlimitedWidth))
	}
}

// Message prints a line that stays.
func (p *progress) Message(text string) { p.print(notice{Kind: "message", Text: text}, text) }

// Warning prints a warning about the measurement. A text that starts with the
// id of a case gets its name in the report instead, except in JSON.
func (p *progress) Warning(text string) {
	line := text
	if id, rest, ok := strings.Cut(text, ": "); ok && p.names[id] != "" {
		line = p.names[id] + ": " + rest
	}
	line = "warning: " + line
	if p.width != nil {
		line = wrap("", line, 2, p.width())
	}
	p.print(notice{Kind: "warning", Text: text}, line)
}

// Failure prints that a case failed in a round.
func (p *progress) Failure(f runner.Failure) {
	p.print(struct {
		Kind string `json:"kind"`
		runner.Failure
	}{"failure", f}, fmt.Sprintf("%s: %s, round %d: %s", f.Status, f.Case, f.Round, f.Reason))
}

// print prints v as JSON, or the line of text instead of the status line, which
// returns with the next status.
func (p *progress) print(v any, text string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.clear()
	if p.json {
		printJSON(p.w, v)
		return
	}
	fmt.Fprintln(p.w, printable(text))
}

// clear erases the status line, if it is on the screen. The caller has locked
// p.
func (p *progress) clear() {
	if p.shown {
		fmt.Fprint(p.w, erase)
		p.shown = false
	}
}

// statusText is a status in one line of at most width characters. Without room
// it omits first the plan, then the bytes written, then the spark line; after
// that it shortens the name of the case to no less than 8 characters, and at
// last the whole line.
func (p *progress) statusText(s runner.Status, width int) string {
	head := fmt.Sprintf("[%d/%d] ", min(s.CaseRound+1, s.OfRounds), s.OfRounds)
	name := cmp.Or(p.names[s.Case], s.Case)
	step := "  " + strings.TrimSpace(s.Do+" "+s.Phase)
	if s.OfFiles > 0 {
		step += fmt.Sprintf(" %d/%d", s.Files, s.OfFiles)
	}
	if n := len(p.rates); n > 0 {
		step += "  " + units.Rate(p.rates[n-1]).Human()
	}
	end := "  " + roughTime(time.Duration(s.ElapsedNS)) + " so far"
	if left := s.Left(p.before); left > 0 {
		end = "  " + roughTime(left) + " left"
	}
	// The parts that every line has come first; room is what they leave.
	room := width - utf8.RuneCountInString(head+name+step+end)
	optional := func(text string) string {
		n := utf8.RuneCountInString(text)
		if n > room {
			return ""
		}
		room -= n
		return text
	}
	tail := step + optional(p.rates.spark())
	if n := bytesWritten(s); n > 0 {
		text := "  " + n.Human() + " written"
		if total := units.Bytes(s.OfRunBytes); total >= n {
			text = fmt.Sprintf("  %d %%, %s of %s written", 100*n/total, n.Human(), total.Human())
		}
		tail += optional(text)
	}
	if s.Plan != "" {
		head = optional(s.Plan+" ") + head
	}
	tail += end
	name = cut(printable(name), max(width-utf8.RuneCountInString(head+tail), 8))
	return cut(printable(head)+name+printable(tail), width)
}

// summary is the end of a run in one line: cases by status, rounds, bytes
// written, and the time of the session.
func (p *progress) summary(r *result.Result) string {
	p.mu.Lock()
	defer p.mu.Unlock()
	by, cases := casesByStatus(r), units.Count(len(r.Cases), "case")
	var parts []string
	for _, status := range slices.Sorted(maps.Keys(by)) {
		parts = append(parts, fmt.Sprintf("%d %s", by[status], status))
	}
	text := cmp.Or(strings.Join(parts, ", "), "none ended") + " of " + cases
	if by[result.Done] == len(r.Cases) {
		text = fmt.Sprintf("%d of %s done", by[result.Done], cases)
	}
	text += ", " + units.Count(r.Rounds, "round")
	if n := bytesWritten(p.now); n > 0 {
		text += ", " + n.Human() + " written"
	}
	return text + ", in " + roughTime(time.Duration(p.now.ElapsedNS))
}

// bytesWritten are the bytes that the run has written. RunBytes counts only
// steps that have ended, so those of the current step are added.
func bytesWritten(s runner.Status) units.Bytes {
	if s.Do == "write" {
		return units.Bytes(s.RunBytes + s.Bytes)
	}
	return units.Bytes(s.RunBytes)
}

// roughTime is a duration in seconds: "1h2m3s" or "59s".
func roughTime(d time.Duration) string { return d.Truncate(time.Second).String() }

// rates are the last rates of the current step, in bytes per second, the oldest
// first.
type rates []float64

// add adds the rate between two statuses. It starts again when the step
// changes, as the rates of a write and a read have no common scale.
func (r *rates) add(before, now runner.Status) {
	same := before.Case == now.Case && before.Do == now.Do && before.Phase == now.Phase && before.Round == now.Round
	if !same || now.Bytes < before.Bytes || now.TimedNS < before.TimedNS {
		*r, before = (*r)[:0], runner.Status{}
	}
	bytes, ns := now.Bytes-before.Bytes, now.TimedNS-before.TimedNS
	if bytes <= 0 || ns <= 0 {
		return
	}
	if len(*r) == maxRates {
		*r = slices.Delete(*r, 0, 1)
	}
	*r = append(*r, float64(bytes)/float64(ns)*1e9)
}

// spark draws the rates after a blank; "" for fewer than two.
func (r rates) spark() string {
	if len(r) < 2 {
		return ""
	}
	return " " + text.Spark(r)
}

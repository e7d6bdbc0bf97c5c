package cli

import (
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"sync"
	"time"
	"unicode/utf8"

	"dmgbench/internal/clock"
	"dmgbench/internal/runner"
	"dmgbench/internal/units"

	"golang.org/x/term"
)

// refresh is the least time between two pictures of progress.
const refresh = 250 * time.Millisecond

// erase takes the status line away.
const erase = "\r\x1b[K"

// progress shows how a run goes on: one line on a terminal, lines of JSON, or
// messages alone. It is safe for concurrent use. The runner calls it between
// timed spans only, and it has no timer of its own: while a file is timed, nothing here runs.
type progress struct {
	mu    sync.Mutex
	w     io.Writer
	clock clock.Clock
	json  bool
	width func() int // columns of the terminal; nil: there is none, and so no status line
	last  time.Duration
	told  bool // last is set
	shown bool // the status line stands
	now   runner.Status
	// before is the first status: what earlier sessions had done.
	before runner.Status
	// names of the cases as the report has them, by id
	names map[string]string
	rates rates
	asked bool // somebody wants to know where the run stands
}

var _ runner.Progress = (*progress)(nil)

func (a *app) newProgress() *progress {
	p := &progress{w: a.err, json: a.json, clock: a.clock}
	if f, ok := terminal(a.err); ok && a.env["TERM"] != "dumb" {
		p.width = func() int {
			width, _, err := term.GetSize(int(f.Fd()))
			if err != nil || width < 20 {
				return 80
			}
			return width
		}
	}
	return p
}

// Status replaces the status line, at most four times a second.
func (p *progress) Status(s runner.Status) {
	p.mu.Lock()
	defer p.mu.Unlock()
	now := p.clock.Now()
	if p.now == (runner.Status{}) {
		p.before = s
	}
	p.rates.add(p.now, s)
	p.now = s
	if p.asked {
		p.answer()
	}
	if !p.json && p.width == nil || p.told && now-p.last < refresh {
		return
	}
	p.last, p.told = now, true
	left := p.left(s)
	if p.json {
		p.line(struct {
			Kind string `json:"kind"`
			runner.Status
			LeftNS int64 `json:"left_ns,omitempty"`
		}{"status", s, int64(left)})
		return
	}
	fmt.Fprint(p.w, erase+statusText(p.named(s), p.rates, left, p.width()-1))
	p.shown = true
}

// Ask prints where the run stands as soon as nothing is timed: at once while the
// run waits, else behind the file or the step that is under way.
func (p *progress) Ask() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.asked = true
	if p.now.Do == "settle" {
		p.answer()
	}
}

// answer prints all that is known in one line that stays.
func (p *progress) answer() {
	p.asked = false
	if p.json { // whoever reads those has every status
		return
	}
	p.clear()
	fmt.Fprintln(p.w, statusText(p.named(p.now), p.rates, p.left(p.now), whole))
}

// named has the case's name in place of its id.
func (p *progress) named(s runner.Status) runner.Status {
	s.Case = cmp.Or(p.names[s.Case], s.Case)
	return s
}

// whole is a width that nothing gives way for.
const whole = 1 << 12

// trust is the share of the run's work for which the assumed speeds count as much as the measured ones: the time left
// neither jumps nor is missing when a run begins.
const trust = 0.05

// left is how long the whole run will still take: the waiting that the protocol prescribes, and the work at the speed of
// this session, which is an assumed one at first. It is 0 while the runner has given no forecast.
func (p *progress) left(s runner.Status) time.Duration {
	work := float64(s.OfWorkNS - p.before.WorkNS)
	if work <= 0 {
		return 0
	}
	share := min(float64(s.WorkNS-p.before.WorkNS)/work, 1)
	took := float64(s.ElapsedNS - p.before.ElapsedNS - (s.WaitedNS - p.before.WaitedNS))
	whole := (max(took, 0) + trust*work) / (share + trust)
	return time.Duration(whole*(1-share)) + time.Duration(max(s.OfWaitNS-s.WaitedNS, 0))
}

// Message prints a line that stays.
func (p *progress) Message(text string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.clear()
	if p.json {
		p.line(map[string]string{"kind": "message", "text": text})
		return
	}
	fmt.Fprintln(p.w, printable(text))
}

// Warning prints what weakens the numbers, the case by its name in the report.
func (p *progress) Warning(text string) {
	if !p.json {
		if id, rest, ok := strings.Cut(text, ": "); ok && p.names[id] != "" {
			text = p.names[id] + ": " + rest
		}
		text = "warning: " + printable(text)
		if p.width != nil {
			text = wrapped(text, p.width())
		}
		p.Message(text)
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.line(notice{Kind: "warning", Text: text})
}

// Failure prints that a case failed in a round.
func (p *progress) Failure(f runner.Failure) {
	if !p.json {
		p.Message(fmt.Sprintf("%s: %s, round %d: %s", f.Status, f.Case, f.Round, f.Reason))
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.line(struct {
		Kind string `json:"kind"`
		runner.Failure
	}{"failure", f})
}

func (p *progress) done() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.clear()
}

func (p *progress) clear() {
	if p.shown {
		fmt.Fprint(p.w, erase)
		p.shown = false
	}
}

func (p *progress) line(v any) {
	if b, err := json.Marshal(v); err == nil {
		fmt.Fprintf(p.w, "%s\n", b)
	}
}

// statusText is the status in one line of at most width characters. What is not
// needed is left out where there is no room for it: first the plan, then what was
// written, then the spark line. The case, whose name may be long, gives way next.
func statusText(s runner.Status, r rates, left time.Duration, width int) string {
	head := fmt.Sprintf("[%d/%d] ", min(s.CaseRound+1, s.OfRounds), s.OfRounds)
	step := "  " + strings.TrimSpace(s.Do+" "+s.Phase)
	if s.OfFiles > 0 {
		step += fmt.Sprintf(" %d/%d", s.Files, s.OfFiles)
	}
	if rate := r.current(s); rate > 0 {
		step += "  " + units.Rate(rate).Human()
	}
	end := "  " + roughly(time.Duration(s.ElapsedNS)) + " so far"
	if left > 0 {
		end = "  " + roughly(left) + " left"
	}
	room := width - utf8.RuneCountInString(head+s.Case+step+end)
	optional := func(text string) string {
		n := utf8.RuneCountInString(text)
		if n > room {
			return ""
		}
		room -= n
		return text
	}
	spark := optional(r.spark())
	total := ""
	if n := written(s); n > 0 {
		text := "  " + units.Bytes(n).Human() + " written"
		if of := s.OfRunBytes; of >= n {
			text = fmt.Sprintf("  %d %%, %s of %s written", 100*n/of, units.Bytes(n).Human(), units.Bytes(of).Human())
		}
		total = optional(text)
	}
	plan := ""
	if s.Plan != "" {
		plan = optional(s.Plan + " ")
	}
	tail := step + spark + total + end
	name := cut(printable(s.Case), max(width-utf8.RuneCountInString(plan+head+tail), 8))
	return cut(printable(plan)+head+name+printable(tail), width)
}

// written are the bytes that the run has written, those of the step under way too.
func written(s runner.Status) int64 {
	if s.Do == "write" { // RunBytes is of the steps that have ended
		return s.RunBytes + s.Bytes
	}
	return s.RunBytes
}

// wrapped breaks text between words into lines of at most width characters, all but the first indented. A word that
// is longer has a line of its own.
func wrapped(text string, width int) string {
	const indent = "  "
	var b strings.Builder
	column := 0
	for i, word := range strings.Fields(text) {
		n := utf8.RuneCountInString(word)
		switch {
		case i == 0:
		case column+1+n > width:
			b.WriteString("\n" + indent)
			column = len(indent)
		default:
			b.WriteByte(' ')
			column++
		}
		b.WriteString(word)
		column += n
	}
	return b.String()
}

// cut shortens text to at most n characters, the last of which says so.
func cut(text string, n int) string {
	r := []rune(text)
	if len(r) <= n {
		return text
	}
	return string(r[:max(n-1, 0)]) + "…"
}

// roughly is a duration as precise as an estimate of it can be.
func roughly(d time.Duration) string {
	switch {
	case d >= time.Hour:
		return fmt.Sprintf("%dh%02dm", int(d.Hours()), int(d.Minutes())%60)
	case d >= time.Minute:
		return fmt.Sprintf("%dm%02ds", int(d.Minutes()), int(d.Seconds())%60)
	}
	return fmt.Sprintf("%ds", int(d.Seconds()))
}

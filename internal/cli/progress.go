package cli

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"sync"
	"time"

	"dmgbench/internal/runner"
	"dmgbench/internal/units"

	"golang.org/x/term"
)

// refresh is the least time between two pictures of progress.
const refresh = 250 * time.Millisecond

// progress shows how a run goes on: one line on a terminal, lines of JSON, or
// messages alone. It is safe for concurrent use.
type progress struct {
	mu    sync.Mutex
	w     io.Writer
	json  bool
	tty   *os.File // nil: no status line
	last  time.Time
	shown bool
}

var _ runner.Progress = (*progress)(nil)

func (a *app) newProgress(format string) *progress {
	p := &progress{w: a.err, json: format == "json"}
	if f, ok := terminal(a.err); ok && !p.json {
		p.tty = f
	}
	return p
}

// Status replaces the status line, at most four times a second.
func (p *progress) Status(s runner.Status) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.json && p.tty == nil || time.Since(p.last) < refresh {
		return
	}
	p.last = time.Now()
	if p.json {
		p.line(struct {
			Kind string `json:"kind"`
			runner.Status
		}{"status", s})
		return
	}
	width, _, err := term.GetSize(int(p.tty.Fd()))
	if err != nil || width < 20 {
		width = 80
	}
	text := []rune(printable(statusText(s)))
	fmt.Fprintf(p.w, "\r\x1b[K%s", string(text[:min(len(text), width-1)]))
	p.shown = true
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

func (p *progress) done() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.clear()
}

func (p *progress) clear() {
	if p.shown {
		fmt.Fprint(p.w, "\r\x1b[K")
		p.shown = false
	}
}

func (p *progress) line(v any) {
	if b, err := json.Marshal(v); err == nil {
		fmt.Fprintf(p.w, "%s\n", b)
	}
}

// statusText is the status in one line, what changes least first.
func statusText(s runner.Status) string {
	text := fmt.Sprintf("[%d/%d] round %d/%d  %s  %s", s.CaseRound, s.OfRounds, s.Round, s.Rounds, s.Case, s.Do)
	if s.Phase != "" {
		text += " " + s.Phase
	}
	if s.OfFiles > 0 {
		text += fmt.Sprintf("  %d/%d files", s.Files, s.OfFiles)
	}
	if s.TimedNS > 0 && s.Bytes > 0 {
		text += "  " + units.Rate(float64(s.Bytes)/float64(s.TimedNS)*1e9).Human()
	}
	if s.OfRunBytes > 0 {
		text += fmt.Sprintf("  %s of %s", units.Bytes(s.RunBytes).Human(), units.Bytes(s.OfRunBytes).Human())
	}
	return text + "  " + time.Duration(s.ElapsedNS).Round(time.Second).String()
}

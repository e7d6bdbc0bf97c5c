package cli

import (
	"fmt"
	"maps"
	"os"
	"os/signal"
	"slices"
	"strings"
	"syscall"
	"time"

	"dmgbench/internal/result"
	"dmgbench/internal/units"
)

// listen answers the signal that asks a program where it stands: SIGINFO (Ctrl-T)
// where there is one, else SIGUSR1. The result ends that.
func (p *progress) listen() (stop func()) {
	if askSignal == nil {
		return func() {}
	}
	c := make(chan os.Signal, 1)
	signal.Notify(c, askSignal)
	go func() {
		for range c {
			p.Ask()
		}
	}()
	return func() { signal.Stop(c); close(c) }
}

// outlivePipes keeps the program at work when nobody reads stdout or stderr any more: the signal that ends it then would leave images
// attached. What is written there is lost, and an answer that cannot be printed is an error. Programs that it starts are not concerned.
func (a *app) outlivePipes() {
	c := make(chan os.Signal, 1)
	signal.Notify(c, syscall.SIGPIPE)
	a.atEnd = append(a.atEnd, func() error { signal.Stop(c); return nil })
}

// summary is how the run ended in one line: its cases by their status, rounds, what was written by its steps and before them, and how long the session took.
func (p *progress) summary(r *result.Result) string {
	p.mu.Lock()
	defer p.mu.Unlock()
	by := map[string]int{}
	for i := range r.Cases {
		by[r.DisplayStatus(&r.Cases[i])]++
	}
	var parts []string
	for _, status := range slices.Sorted(maps.Keys(by)) {
		if status != "" {
			parts = append(parts, fmt.Sprintf("%d %s", by[status], status))
		}
	}
	text := fmt.Sprintf("%s of %s", strings.Join(parts, ", "), counted(len(r.Cases), "case"))
	if len(by) == 1 && by[result.Done] > 0 {
		text = fmt.Sprintf("%d of %s done", by[result.Done], counted(len(r.Cases), "case"))
	}
	if len(parts) == 0 {
		text = "none ended of " + counted(len(r.Cases), "case")
	}
	text += ", " + counted(r.Rounds, "round")
	if n := written(p.now); n > 0 {
		text += ", " + units.Bytes(n).Human() + " written"
	}
	if n := settling(r); n > 0 {
		text += ", " + units.Bytes(n).Human() + " before the rounds"
	}
	return text + fmt.Sprintf(", in %s", roughly(time.Duration(p.now.ElapsedNS)))
}

// settling is what the last session wrote for --precondition steady, in bytes.
func settling(r *result.Result) (n int64) {
	for _, p := range r.Preconditions {
		if p.Session == len(r.Sessions) {
			for _, s := range p.Samples {
				n += s.Bytes
			}
		}
	}
	return n
}

func counted(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}

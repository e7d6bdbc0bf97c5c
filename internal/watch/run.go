// Package watch shows a run of this machine while another process executes it:
// on a terminal, and as a page for the browser of the same machine.
//
// It reads the journal of the run folder, and takes all figures from
// internal/analysis. It opens files for reading only and sends the run no
// message, so that a watched run does exactly what any other does. It neither
// measures nor judges; [Screen] is what it shows, as plain data.
package watch

import (
	"fmt"
	"slices"
	"time"

	"dmgbench/internal/analysis"
	"dmgbench/internal/bench/engine"
	"dmgbench/internal/bench/runner"
	"dmgbench/internal/plan"
	"dmgbench/internal/report"
	"dmgbench/internal/result"
	"dmgbench/internal/result/runfolders"
)

// Run is a run that is watched: its records, and what follows from those that
// are shown. A replay shows only the first ones.
type Run struct {
	dir      string
	plan     *plan.Plan
	names    map[string]string // of cases, by id
	forecast runner.Forecaster
	follower *result.Follower
	now      func() time.Time
	next     time.Time // before which new records are not shown

	abandoned bool // no process executes the run

	shown  int // records
	ends   int // of case-rounds in them: other records change no figure
	state  *result.State
	result *result.Result
	screen Screen // without what depends on the time of day
}

// Open reads the run in a folder; now is the time of day. The error has a hint
// where the folder has no run, or its plan is not that of the journal.
func Open(dir string, now func() time.Time) (*Run, error) {
	p, _, err := runfolders.Read(dir)
	if err != nil {
		return nil, err
	}
	follower, err := result.FollowRun(dir)
	if err != nil {
		return nil, err
	}
	r := &Run{dir: dir, plan: p, names: report.CaseNames(p), forecast: runner.NewForecaster(p), follower: follower,
		now: now}
	if err := r.Poll(); err != nil {
		r.Close()
		return nil, err
	}
	return r, nil
}

// Close closes the files of the run.
func (r *Run) Close() error { return r.follower.Close() }

// New records are shown after these times at the earliest, as the processor
// belongs to the run: it is used for at most 1/share of the time, however long
// the journal is.
const pause, share = 2 * time.Second, 50

// Poll reads new records and shows them, unless it is too soon: the last ones of
// a session are shown at once. The error is that of a damaged journal or of a
// folder that was deleted.
func (r *Run) Poll() error {
	_, err := r.follower.Poll()
	if err != nil {
		return err
	}
	at, records := r.now(), r.follower.Records()
	last := &records[len(records)-1]
	if r.shown < len(records) && (last.SessionEnd != nil || last.RunEnd != nil || !at.Before(r.next)) {
		r.abandoned = false
		err = r.show(len(records))
		r.next = at.Add(max(pause, share*r.now().Sub(at)))
	}
	// A process that is killed writes no last record.
	if err == nil && r.shown == len(records) && r.screen.Status == running {
		if r.abandoned, err = r.follower.Abandoned(); r.abandoned {
			err = r.show(len(records))
		}
	}
	return err
}

// show makes the first n records those that are shown.
func (r *Run) show(n int) error {
	records := r.follower.Records()[:n]
	state, err := result.Replay(records)
	if err != nil {
		return err
	}
	folded, err := result.Fold(records)
	if err != nil {
		return err
	}
	ends := len(report.Where(records, func(rec result.Record) bool { return rec.CaseEnd != nil }))
	if r.result != nil && ends == r.ends {
		folded.Summaries = r.result.Summaries
	} else if err := analysis.Analyze(r.plan, folded, analysis.Options{SkipWarnings: true}); err != nil {
		return fmt.Errorf("analyzing run %q: %w", r.dir, err)
	}
	// The status comes before the rows, which mark the current case only while the
	// run is executed.
	r.shown, r.ends, r.state, r.result = n, ends, state, folded
	r.screen = Screen{Title: r.plan.Title, Quantities: r.quantities(), Warnings: r.collectWarnings(records)}
	r.setStatus(&r.screen)
	for i := range folded.Cases {
		r.screen.Cases = append(r.screen.Cases, r.row(&folded.Cases[i]))
	}
	return nil
}

// collectWarnings are the warnings and failures in the order in which the run
// recorded them, each text once.
func (r *Run) collectWarnings(records []result.Record) (out []string) {
	add := func(id, text string) {
		if name := r.names[id]; name != "" {
			text = name + ": " + text
		}
		out = report.AppendNew(out, report.Plain(text, 400))
	}
	for i := range records {
		switch rec := &records[i]; {
		case rec.Warning != nil:
			add(rec.Warning.Case, rec.Warning.Text)
		case rec.Step != nil:
			for _, w := range rec.Step.Step.Warnings {
				add(rec.Step.Case, w.Text)
			}
		case rec.CaseEnd != nil && rec.CaseEnd.Status != result.Done:
			add(rec.CaseEnd.Case, fmt.Sprintf("%s in round %d: %s", rec.CaseEnd.Status, rec.CaseEnd.Round, rec.CaseEnd.Reason))
		}
	}
	return out
}

// Screen is what is known of the run at a time of day. Durations are those since
// and until that time.
type Screen struct {
	Title, Engine string
	Status        string // running, done, failed, skipped, paused or interrupted
	Advice        string // what a user can do, "" where the run needs no one
	Replay        bool   // of a moment before the last record
	Progress      runner.Status
	Left          time.Duration
	Step          string        // what happens now: the kind of the step and its phase
	For           time.Duration // that the step has taken
	Wait          time.Duration // that it waits at least; 0 for a step that works
	Quantities    []Quantity    // for which there are figures: rates first, in the order of the protocol
	Cases         []Case
	Warnings      []string // oldest first
}

// Quantity is what one column of figures shows.
type Quantity struct{ Op, Phase string }

// Case is a row of the screen.
type Case struct {
	Name    string
	Current bool
	Rounds  []string // the status of each round, "" if it has not ended
	Figures map[Quantity]*result.Summary
	// Rates are those of the files of each quantity as they were timed, in bytes
	// per second.
	Rates map[Quantity][]float64
	Sizes []float64 // that the measure steps of the last round found on disk, in bytes
}

// running is the status of a run whose last session has no end.
const running = "running"

// Screen is what the records that are shown mean at a time of day.
func (r *Run) Screen(at time.Time) Screen {
	s := r.screen
	if s.Status != running { // the time of a run that was killed stops with its last record
		at = r.lastTime()
	}
	s.Progress, s.Wait = r.forecast.StatusAt(r.state, at)
	if s.Status == running {
		s.Left = s.Progress.Left(runner.Status{})
		s.Step = report.Plain(s.Progress.Do+" "+s.Progress.Phase, 80)
	}
	if s.Step != "" {
		s.For = max(0, at.Sub(r.state.Attempts[len(r.state.Attempts)-1].StartedAt))
	}
	return s
}

// lastTime is when the last record that is shown was written.
func (r *Run) lastTime() time.Time { return r.follower.Records()[r.shown-1].At }

// setStatus sets how the run is and what a user can do.
func (r *Run) setStatus(s *Screen) {
	if n := len(r.state.Sessions); n > 0 {
		s.Engine = report.Plain(r.state.Sessions[n-1].Engine.Title, 40)
		s.Status = r.state.Sessions[n-1].End
	}
	switch {
	case r.state.Ended != nil:
		s.Status = r.state.Ended.Status
	case r.state.Paused != nil:
		s.Status, s.Advice = result.Paused, r.state.Paused.Message
	case s.Status == result.Interrupted || r.abandoned && r.shown == len(r.follower.Records()):
		s.Status, s.Advice = result.Interrupted, "continue with: dmgbench resume "+engine.ShellQuote(r.dir)
		if n := len(r.state.Sessions); n > 0 && r.state.Sessions[n-1].Reason != "" {
			s.Advice = r.state.Sessions[n-1].Reason + "; " + s.Advice
		}
	default: // a session without an end is active
		s.Status = running
	}
}

// quantities are those with figures, then those of timed files that have none
// yet.
func (r *Run) quantities() (out []Quantity) {
	for i := range r.result.Summaries {
		if sum := &r.result.Summaries[i]; sum.Operation == "" && report.Headline(sum) != nil {
			out = report.AppendNew(out, Quantity{sum.Op, sum.Phase})
		}
	}
	for _, c := range r.result.Cases {
		for _, st := range c.Steps {
			if len(st.Samples) > 0 && !report.IsCanary(&st) {
				out = report.AppendNew(out, Quantity{st.Do, st.Phase})
			}
		}
	}
	isRate := func(q Quantity) bool { return slices.Contains([]string{"write", "read", "stream"}, q.Op) }
	return slices.Concat(report.Where(out, isRate), report.Where(out, func(q Quantity) bool { return !isRate(q) }))
}

// row is the row of a case.
func (r *Run) row(c *result.Case) Case {
	row := Case{Name: r.names[c.ID], Rounds: make([]string, r.result.Rounds), Figures: map[Quantity]*result.Summary{},
		Rates: map[Quantity][]float64{}}
	for i, a := range r.state.Attempts { // of several attempts at a round, one that is done counts
		n, isLast := a.Start.Round, i == len(r.state.Attempts)-1
		switch {
		case a.Start.Case != c.ID || n > len(row.Rounds) || row.Rounds[n-1] == result.Done:
		case a.End != nil:
			row.Rounds[n-1] = a.End.Status
		case isLast && r.screen.Status == running:
			row.Current, row.Rounds[n-1] = true, running
		}
	}
	for i := range r.result.Summaries { // the last cycle of a block that is repeated stays
		sum := &r.result.Summaries[i]
		if sum.Case == c.ID && sum.Operation == "" && report.Headline(sum) != nil {
			row.Figures[Quantity{sum.Op, sum.Phase}] = sum
		}
	}
	last := 0
	for i := range c.Steps {
		st := &c.Steps[i]
		if st.Round != last {
			last, row.Sizes = st.Round, nil
		}
		q := Quantity{st.Do, st.Phase}
		for _, f := range st.Samples {
			if !f.Stopped {
				row.Rates[q] = append(row.Rates[q], float64(f.Bytes)/float64(max(f.DurationNS, 1))*1e9)
			}
		}
		if st.Disk != nil {
			row.Sizes = append(row.Sizes, float64(st.Disk.Allocated))
		}
	}
	return row
}

package agent

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"dmgbench/internal/fleet"
)

const (
	sendInterval = 5 * time.Second  // least time between two sendings during a run
	lookInterval = 30 * time.Second // between two looks at whether the job is cancelled
	lostInterval = 30 * time.Second // without sending, after the server did not answer
	pauseTime    = time.Second      // that a pause of the run may wait for the server

	progressInterval = 10 * time.Second // of acknowledgements in progress while no file is timed

	maxAttempts = 20   // to resume a run without a case that ends
	maxLines    = 50   // of a log message, and of an error
	maxText     = 2000 // characters of an error
)

// Exit statuses of dmgbench, see docs/architecture.md.
const (
	exitDone    = 0
	exitError   = 1
	exitRefused = 2
	exitCases   = 3
)

var errCancelled = errors.New("the job is cancelled")

// session takes one task to its end.
type session struct {
	*task
	c       *connection
	program program
	msg     jetstream.Msg // nil for a task without a job in the queue
	cancel  context.CancelCauseFunc
	// measuring is set while a run is executed: nothing is sent then, except
	// while the run waits before a step.
	measuring atomic.Bool

	mu     sync.Mutex // of looked
	looked time.Time

	lines     []string // of the child, not sent yet
	lastError string   // that the child printed
	sent      time.Time
	lostUntil time.Time
}

// measure executes the run until it ends, and records how in the task. It returns
// an error if the agent has to stop before.
func (s *session) measure(ctx context.Context, r request) error {
	run, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	s.cancel, s.looked = cancel, time.Now()
	go s.watch(run)
	state, cause := fleet.Refused, error(nil)
	if _, started := s.progress(); !started {
		cause = s.prepare(run, r)
	}
	if cause == nil {
		state, cause = s.attempts(run, r)
	}
	if ctx.Err() != nil {
		return ctx.Err()
	}
	if run.Err() != nil && state != fleet.Done && state != fleet.Incomplete {
		state, cause = fleet.Cancelled, errCancelled
	}
	return s.conclude(ctx, state, cause)
}

// conclude records the end of a task. It deletes what a run left that did not
// reach its own end.
func (s *session) conclude(ctx context.Context, state string, cause error) error {
	if state == fleet.Failed || state == fleet.Cancelled {
		// The state folder has runs of this agent only.
		exit, err := s.program.execute(ctx, s.dir, func([]byte, io.Writer) {}, "clean")
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if err != nil || exit != exitDone {
			cause = errors.Join(cause, fmt.Errorf("not all images of the run could be deleted: %v, status %d", err, exit))
		}
	}
	s.Result.State, s.Result.Ended = state, time.Now().UTC()
	if s.Result.Error = ""; cause != nil {
		s.Result.Error = shorten(cause.Error())
	}
	return s.save()
}

// prepare writes the plan and asks dmgbench whether it can be run here. The error
// is the reason why not.
func (s *session) prepare(ctx context.Context, r request) error {
	s.c.report(func(st *fleet.Status) { st.State = fleet.Checking })
	if err := os.WriteFile(s.planFile(), []byte(s.Job.Text), 0o600); err != nil {
		return err
	}
	dryRun := append(append([]string{"run", s.planFile(), "--dry-run", "--out", s.run()}, r.locations...), r.options...)
	for _, args := range [][]string{{"check", s.planFile()}, dryRun} {
		var lines []string
		exit, err := s.program.execute(ctx, s.dir, func(line []byte, _ io.Writer) {
			if len(lines) < maxLines {
				lines = append(lines, string(line))
			}
		}, args...)
		if err != nil {
			return err
		}
		text := strings.Join(lines, "\n")
		if exit != exitDone || strings.Contains(text, "this run would be refused") {
			return errors.New(text)
		}
	}
	return nil
}

// attempts runs and resumes until the run has ended, or did not come further many
// times.
func (s *session) attempts(ctx context.Context, r request) (state string, err error) {
	pause, before := backoff{}, 0
	for pause.attempts < maxAttempts {
		exit, err := s.attempt(ctx, r)
		ended, started := s.progress()
		switch {
		case err != nil:
			return fleet.Failed, err
		case exit == exitDone:
			return fleet.Done, nil
		case exit == exitCases:
			return fleet.Incomplete, nil
		case ctx.Err() != nil:
			return "", ctx.Err()
		case exit == exitRefused && !started:
			return fleet.Refused, errors.New(s.lastError)
		case exit == exitError, exit == exitRefused:
			return fleet.Failed, fmt.Errorf("dmgbench ended with status %d: %s", exit, s.lastError)
		}
		if ended > before {
			pause, before = backoff{}, ended
		}
		s.c.report(func(st *fleet.Status) {
			st.Error = shorten(fmt.Sprintf("the run stopped with status %d and will be resumed: %s", exit, s.lastError))
		})
		pause.wait(ctx)
	}
	return fleet.Failed, fmt.Errorf("the run did not come further in %d attempts: %s", maxAttempts, s.lastError)
}

// attempt starts the run, or resumes it if it has a journal.
func (s *session) attempt(ctx context.Context, r request) (exit int, err error) {
	args := []string{"resume", s.run()}
	if _, started := s.progress(); !started {
		if err := os.RemoveAll(s.run()); err != nil {
			return 0, err
		}
		args = append([]string{"run", s.planFile(), "--out", s.run(), "--yes"}, r.options...)
	}
	args = append(append(args, "--format", "json", "--wait-between-steps"), r.locations...)
	s.Result.Attempts++
	s.lastError = ""
	if err := s.save(); err != nil {
		return 0, err
	}
	s.c.report(func(st *fleet.Status) { st.State = fleet.Measuring })
	_ = s.c.flush(pauseTime)
	s.measuring.Store(true)
	defer s.measuring.Store(false)
	exit, err = s.program.execute(ctx, s.dir, s.readLine, args...)
	s.Result.Exit = exit
	return exit, err
}

// readLine reads a line of a run. A status that waits is answered, after what there
// is to send was sent; all other lines wait for the next one.
func (s *session) readLine(line []byte, stdin io.Writer) {
	var v struct {
		Kind, Text, Reason string
		Waiting            bool
		fleet.Progress
	}
	err := json.Unmarshal(line, &v)
	switch {
	case err == nil && v.Kind == "status" && v.Waiting:
		s.send(v.Progress)
		_, _ = io.WriteString(stdin, "\n") // a child that has ended needs no answer
		return
	case err == nil && v.Kind == "status":
		return
	case err == nil && v.Kind == "error":
		s.lastError = v.Text
	case err == nil && v.Kind == "failure":
		v.Text = v.Case + ": " + v.Reason
	case err != nil: // a crash prints text
		v.Text = string(line)
	}
	if len(s.lines) < maxLines {
		s.lines = append(s.lines, shorten(strings.TrimSpace(v.Kind+" "+v.Text)))
	}
}

// send sends what there is to send while the run waits. A server that does not
// answer is left alone for a while, so that the run is not slowed down.
func (s *session) send(p fleet.Progress) {
	now := time.Now()
	if now.Sub(s.sent) < sendInterval || now.Before(s.lostUntil) || !s.c.nc.IsConnected() {
		return
	}
	_ = s.msg.InProgress()
	s.c.sendLog(s.Result.Job, s.lines)
	s.c.report(func(st *fleet.Status) { st.Progress = &p })
	s.sent, s.lines = now, nil
	if err := s.c.flush(pauseTime); err != nil {
		s.lostUntil = time.Now().Add(lostInterval)
		return
	}
	s.checkCancelled(context.Background(), lookInterval)
}

// watch acknowledges progress while no file is timed, and cancels the task when
// its job is.
func (s *session) watch(ctx context.Context) {
	tick := time.NewTicker(progressInterval)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-s.c.cancels:
			s.checkCancelled(ctx, 0)
		case <-tick.C:
			if !s.measuring.Load() {
				_ = s.msg.InProgress()
				s.checkCancelled(ctx, lookInterval)
			}
		}
	}
}

// checkCancelled cancels the task if its job is not in the queue any more. It does not ask
// more often than after every interval.
func (s *session) checkCancelled(ctx context.Context, every time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if time.Since(s.looked) < every {
		return
	}
	s.looked = time.Now()
	there, err := s.c.isStored(ctx, fleet.Jobs, fleet.JobSubject(s.c.machine, s.Result.Job), pauseTime)
	if err == nil && !there {
		s.cancel(errCancelled)
	}
}

// shorten bounds a text for a message.
func shorten(text string) string {
	if r := []rune(text); len(r) > maxText {
		return string(r[:maxText]) + "…"
	}
	return text
}

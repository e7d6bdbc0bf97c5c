// Package agent is a machine of a fleet: it takes one job at a time, lets dmgbench
// check its plan, starts `dmgbench run` or `resume` as a child, stores the run
// folder and the result, and only then acknowledges the job.
//
// # Crashes
//
// The folder of a task exists from before its plan is checked until its job is
// acknowledged. An agent that was killed at any moment gets the job again and
// continues with the folder: it resumes the run, or stores the result. A folder
// without a job in the queue is of a job that was cancelled meanwhile.
//
// # Silence
//
// While a run is executed the agent sends only in the pauses before its steps. It
// has no request for a job at the server then.
package agent

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"math"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"dmgbench/internal/fleet"
	"dmgbench/internal/system/host"
)

const (
	pullTime     = 5 * time.Minute // that a request for a job waits, between two reports of an idle machine
	sendInterval = 5 * time.Second // least time between two sendings during a run
	maxLines     = 50              // of a log message
	maxLine      = 16 << 10        // bytes of a line of a child; the rest is dropped
)

// Run is an agent until ctx ends. It returns an error only if the agent cannot be
// started: what happens later is in its status and in the log.
func Run(ctx context.Context, c Config) error {
	if err := fleet.CheckMachine(c.Link.User); err != nil {
		return err
	}
	release, err := host.Lock(c.Folder)
	if err != nil {
		return fmt.Errorf("starting the agent in %q, which only one may use: %w", c.Folder, err)
	}
	defer release()
	a := &agent{Config: c}
	// Attempts to connect are made until the end. What the agent sends meanwhile is
	// kept for a while.
	a.nc, a.js, err = fleet.Connect(c.Link, true, logConnection(c))
	if err != nil {
		return err
	}
	defer a.nc.Close()
	for failures := 0; ctx.Err() == nil; failures++ {
		if err = a.checkAnswer(a.serve(ctx)); err == nil || ctx.Err() != nil {
			failures = 0
			continue
		}
		c.Log("%v", err)
		a.report(func(s *fleet.Status) { s.Error = shorten(err) })
		sleep(ctx, failures)
	}
	a.report(func(s *fleet.Status) { s.State = fleet.Stopped })
	_ = a.nc.FlushTimeout(time.Second) // without an answer, the time of the last status tells it later
	return nil
}

// logConnection logs each change of the connection's state. Attempts that fail for the
// same reason are logged once.
func logConnection(c Config) func(error) {
	last := ""
	return func(err error) { // called by one goroutine
		text := fmt.Sprintf("joined the fleet as machine %q", c.Link.User)
		if err != nil {
			text = fmt.Sprintf("connection to the fleet: %v", err)
		}
		if errors.Is(err, nats.ErrAuthorization) {
			text += " (the key is revoked, or another agent uses it: the server's `dmgbench-fleet status` shows which)"
		}
		if text != last {
			c.Log("%s", text)
		}
		last = text
	}
}

// serve finishes tasks without a job, reports the machine as idle, waits for a job
// and executes it.
func (a *agent) serve(ctx context.Context) error {
	for _, t := range readTasks(a.Folder) {
		if t.Result.Job == "" {
			_ = os.RemoveAll(t.dir) // the next delivery of its job, if there is one, makes it anew
			continue
		}
		queued, err := a.isQueued(ctx, t.Result.Job)
		if err == nil && !queued {
			// If it was not measured to its end, its job was cancelled while this agent was away.
			err = (&session{agent: a, task: t}).finish(ctx, request{}, fleet.Cancelled, errCancelled)
		}
		if err != nil {
			return err
		}
	}
	if _, err := a.serverTime(ctx); err != nil { // else there is no connection for the report
		return err
	}
	a.reportIdle(ctx)
	msg, err := a.pull(ctx)
	if errors.Is(err, nats.ErrTimeout) { // there is no job
		return nil
	}
	if err != nil {
		return fmt.Errorf("waiting for a job: %w", err)
	}
	if err = a.handle(ctx, msg); err != nil {
		_ = msg.Nak() // the next attempt, here or after a restart, need not wait
	}
	return err
}

// pull waits for a job. Without one it returns [nats.ErrTimeout] after a while. The
// server sends heartbeats meanwhile, without which the wait ends.
func (a *agent) pull(ctx context.Context) (msg jetstream.Msg, err error) {
	consumer, err := a.js.Consumer(ctx, fleet.Jobs, a.Link.User)
	ctx, cancel := context.WithTimeout(ctx, pullTime)
	defer cancel()
	if err == nil {
		msg, err = consumer.Next(jetstream.FetchContext(ctx))
	}
	return msg, err
}

// handle finishes the present occurrence of a job, or the one that was begun.
func (a *agent) handle(ctx context.Context, msg jetstream.Msg) error {
	id := msg.Subject()[strings.LastIndexByte(msg.Subject(), '.')+1:]
	meta, err1 := msg.Metadata()
	now, err2 := a.serverTime(ctx)
	if err := cmp.Or(err1, err2); err != nil {
		return fmt.Errorf("reading job %q: %w", id, err)
	}
	job, request, refused := readRequest(a.Config, id, msg.Data())
	s := &session{agent: a, msg: msg, stored: meta.Timestamp,
		task: newTask(a.Config, id, occurrence(job, now.Sub(meta.Timestamp)), job)}
	// An earlier occurrence that was begun comes first.
	for _, t := range readTasks(a.Folder) {
		if t.Result.Job == id {
			s.task = t
		}
	}
	a.report(func(st *fleet.Status) { st.State, st.Job, st.Plan = fleet.Checking, id, job.Plan })
	return s.finish(ctx, request, fleet.Refused, refused)
}

// reportIdle sends the facts of the machine and of its places.
func (a *agent) reportIdle(ctx context.Context) {
	var folders []host.Place
	for _, name := range slices.Sorted(maps.Keys(a.Places)) {
		folders = append(folders, host.Place{Name: name, Path: a.Places[name]})
	}
	facts := host.Gather(ctx, folders, false)
	a.report(func(s *fleet.Status) {
		*s = fleet.Status{Machine: a.Link.User, Host: facts, Tags: a.Tags,
			Inputs: slices.Sorted(maps.Keys(a.Inputs)), State: fleet.Idle}
	})
}

var errCancelled = errors.New("the job is cancelled")

// session takes one task to its end.
type session struct {
	*agent
	*task
	msg    jetstream.Msg // nil for a task without a job in the queue
	stored time.Time     // when the server got the job

	look      func()    // whether the job is cancelled
	stdin     io.Writer // of the child
	line      []byte    // of the child's stderr, before its end
	lastError string    // that the child printed
	nextSend  time.Time // not before this time
}

// finish takes the task to its end and delivers its result. With a cause it is not
// measured; this is its state then.
func (s *session) finish(ctx context.Context, r request, state string, cause error) error {
	// A crash before the acknowledgement, or a server that forgot the delay of a
	// repeated job: measured once is enough.
	done, err := s.hasResult(ctx, s.Result)
	switch {
	case err != nil || s.Result.State != "":
	case cause != nil:
		err = s.conclude(ctx, state, cause)
	case !done:
		err = s.measure(ctx, r)
	}
	if err != nil {
		return err
	}
	s.Log("job %s, occurrence %d: %s %s", s.Result.Job, s.Result.Occurrence, s.Result.State, s.Result.Error)
	return s.deliver(ctx)
}

// measure executes the run until it ends, and records how in the task. It returns
// an error if the agent has to stop before.
func (s *session) measure(ctx context.Context, r request) error {
	if err := s.save(); err != nil {
		return err
	}
	run, cancel := context.WithCancel(ctx)
	defer cancel()
	s.look = func() {
		if queued, err := s.isQueued(run, s.Result.Job); s.checkAnswer(err) == nil && !queued {
			cancel()
		}
	}
	sub, err := s.nc.Subscribe(fleet.CancelSubject(s.Link.User), func(m *nats.Msg) {
		if string(m.Data) != fleet.Wake {
			s.look()
		}
	})
	if err != nil {
		return err
	}
	defer sub.Unsubscribe()
	state, cause := s.attempts(run, r)
	// A run that ended before the cancellation reached it counts as it is.
	if run.Err() != nil && !isComplete(state) {
		state, cause = fleet.Cancelled, errCancelled
	}
	return s.conclude(ctx, state, cause)
}

// isComplete reports whether a run with this state has reached its own end.
func isComplete(state string) bool { return state == fleet.Done || state == fleet.Incomplete }

// conclude records the end of a task, and deletes what a run left that is not
// complete, and what a killed attempt of a complete one left of its trials. All runs
// in the state folder are of this agent.
func (s *session) conclude(ctx context.Context, state string, cause error) error {
	if s.runID() != "" {
		cause = errors.Join(cause, s.execute(ctx, "clean"))
	}
	if ctx.Err() != nil {
		return ctx.Err() // the next agent does all of it again
	}
	s.Result.State, s.Result.Ended = state, time.Now().UTC()
	if cause != nil {
		s.Result.Error = shorten(cause)
	}
	return s.save()
}

// attempts runs and resumes until the run has ended, or did not come further many
// times. A run that has not started is tried out before.
func (s *session) attempts(ctx context.Context, r request) (state string, err error) {
	release, err := s.awaitTurn(ctx)
	if err != nil {
		return fleet.Failed, err
	}
	defer release()
	for failures, before := 0, 0; failures < maxAttempts && ctx.Err() == nil; failures++ {
		ended, started := s.progress()
		if !started {
			// The state of the disk may have changed since the last attempt.
			if err := s.tryOut(ctx, r); err != nil {
				return fleet.Refused, err
			}
		}
		if ended > before {
			failures, before = 0, ended
		}
		if err := s.attempt(ctx, started, r); err != nil {
			return fleet.Failed, err
		}
		exit := fmt.Sprintf("dmgbench ended with status %d: %s", s.Result.Exit, s.lastError)
		switch s.Result.Exit {
		case 0:
			return fleet.Done, nil
		case 3:
			return fleet.Incomplete, nil
		case 1, 2: // an error, a bad plan
			return fleet.Failed, errors.New(exit)
		}
		s.report(func(st *fleet.Status) { st.Error = "to be resumed: " + exit })
		sleep(ctx, failures)
	}
	return fleet.Failed, fmt.Errorf("the run did not come further in %d attempts: %s", maxAttempts, s.lastError)
}

// awaitTurn waits until no other run of this user measures on this computer, of an
// agent or not, and keeps others from doing so. It sends nothing meanwhile but once
// that it waits.
func (s *session) awaitTurn(ctx context.Context) (release func(), err error) {
	if s.Measuring == "" {
		return func() {}, nil
	}
	for isFirst := true; ; isFirst = false {
		release, err = host.Lock(s.Measuring)
		if !errors.Is(err, host.ErrBusy) || ctx.Err() != nil {
			return release, err
		}
		if isFirst {
			s.report(func(st *fleet.Status) { st.Error = "waits: " + host.ErrBusy.Error() + " on this computer" })
		}
		sleep(ctx, 0)
	}
}

// tryOut writes the plan and asks dmgbench whether it can be run here. The error
// is the reason why not.
func (s *session) tryOut(ctx context.Context, r request) error {
	if err := os.WriteFile(s.planFile(), []byte(s.Job.Text), 0o600); err != nil {
		return err
	}
	// A dry run makes the checks of `dmgbench check`, too.
	args := []string{"run", s.planFile(), "--dry-run", "--out=" + s.run()}
	return s.execute(ctx, slices.Concat(args, r.locations, r.options)...)
}

// attempt starts the run, or resumes it, and waits for its end. When the agent is
// killed, the end of stdin interrupts the child.
func (s *session) attempt(ctx context.Context, resume bool, r request) (err error) {
	args := []string{"resume", s.run()}
	if !resume {
		err = os.RemoveAll(s.run()) // of a run that was killed before its first record
		args = append([]string{"run", s.planFile(), "--out=" + s.run(), "--yes"}, r.options...)
	}
	s.Result.Attempts++
	s.lastError = ""
	if err = errors.Join(err, s.save()); err != nil {
		return err
	}
	s.report(func(st *fleet.Status) { st.State, st.Error = fleet.Measuring, "" })
	args = slices.Concat(args, []string{"--format=json", "--wait-between-steps"}, r.locations)
	cmd := s.command(ctx, args...)
	cmd.Stderr = s
	if s.stdin, err = cmd.StdinPipe(); err == nil {
		err = cmd.Run()
	}
	if cmd.ProcessState == nil { // not started
		return err
	}
	s.Result.Exit = cmd.ProcessState.ExitCode()
	return nil
}

// Write reads lines of a child. It never fails: no line may end a run.
func (s *session) Write(p []byte) (int, error) {
	for part := range bytes.Lines(p) {
		s.line = append(s.line, part[:min(len(part), maxLine-len(s.line))]...)
		if bytes.HasSuffix(part, []byte("\n")) {
			s.readLine(s.line)
			s.line = s.line[:0]
		}
	}
	return len(p), nil
}

// readLine reads a line of a run. A status, after which the run waits, is answered
// after all was sent that there is to send.
func (s *session) readLine(line []byte) {
	var v struct {
		Kind, Text, Reason string
		fleet.Progress
	}
	if json.Unmarshal(line, &v) != nil { // a crash prints text, and its reason first
		v.Text = string(line)
		s.lastError = shorten(cmp.Or(s.lastError, v.Text))
	}
	switch v.Kind {
	case "status":
		s.send(v.Progress)
		_, _ = io.WriteString(s.stdin, "\n") // a child that has ended needs no answer
		return
	case "error":
		s.lastError = shorten(v.Text)
	case "failure":
		v.Text = v.Case + ": " + v.Reason
	}
	if text := strings.TrimSpace(v.Kind + " " + v.Text); text != "" && len(s.lines) < maxLines {
		s.lines = append(s.lines, shorten(text))
	}
}

// send sends what there is to send while the run waits. It also looks whether the
// job is cancelled, since the message about that may have been lost. If the server
// does not answer, the connection is made anew, and no pause waits until there is
// one: the run is not slowed down.
func (s *session) send(p fleet.Progress) {
	if time.Now().Before(s.nextSend) || !s.nc.IsConnected() {
		return
	}
	// Neither of these waits for an answer; the server has both when it answers look,
	// and sends no more until the next pause.
	_ = s.msg.InProgress()
	s.report(func(st *fleet.Status) { st.Progress = &p })
	s.look()
	s.nextSend = time.Now().Add(sendInterval)
}

// deliver stores the run folder and the result, for which it tries until ctx ends,
// takes the job out of the queue and deletes the task, which stays on an error.
func (s *session) deliver(ctx context.Context) error {
	s.report(func(st *fleet.Status) { st.State = fleet.Storing })
	for attempt := 0; ctx.Err() == nil; attempt++ {
		err := s.checkAnswer(s.store(ctx, attempt))
		if err == nil {
			// A server that was killed may have forgotten that it delivered the job, and
			// ignores this: its next delivery is acknowledged.
			if err = s.acknowledge(ctx); err == nil {
				err = os.RemoveAll(s.dir)
			}
			return err
		}
		s.report(func(st *fleet.Status) { st.Error = shorten(err) })
		sleep(ctx, attempt)
	}
	return ctx.Err()
}

// store stores the run folder and then the result, unless there is one. The server
// drops a second message with the id of the run.
func (s *session) store(ctx context.Context, attempt int) error {
	done, err := s.hasResult(ctx, s.Result)
	if done || err != nil {
		return err
	}
	r := s.Result
	if r.Run = s.runID(); r.Run != "" {
		if r.Size, err = s.upload(ctx, r.Run, s.run(), attempt); err != nil {
			return err
		}
	}
	subject := fleet.ResultSubject(s.Link.User, r.Job, r.Occurrence)
	data, err := fleet.Encode(r)
	if err == nil {
		_, err = s.js.Publish(ctx, subject, data, jetstream.WithMsgID(cmp.Or(r.Run, subject)))
	}
	return err
}

// acknowledge takes the job out of the queue, or lets it wait for its next
// occurrence.
func (s *session) acknowledge(ctx context.Context) error {
	if queued, err := s.isQueued(ctx, s.Result.Job); err != nil || !queued || s.msg == nil {
		return err
	}
	now, err := s.serverTime(ctx)
	if err != nil {
		return err
	}
	// The time that the run took may be longer than that between occurrences.
	next := max(occurrence(s.Job, now.Sub(s.stored)), s.Result.Occurrence) + 1
	if s.Job.Every > 0 && (s.Job.Repeat == 0 || next < s.Job.Repeat) {
		due := s.stored.Add(time.Duration(next) * s.Job.Every)
		return errors.Join(s.msg.NakWithDelay(due.Sub(now)), s.nc.FlushTimeout(requestTime))
	}
	return s.msg.DoubleAck(ctx)
}

// occurrence is the number of the present occurrence of a job with this age by the
// server's clock. The last one is late rather than left out.
func occurrence(job fleet.Job, age time.Duration) int {
	every, repeat := cmp.Or(job.Every, math.MaxInt64), cmp.Or(job.Repeat, math.MaxInt)
	return min(max(int(age/every), 0), repeat-1)
}

// shorten bounds a text for a message.
func shorten(text any) string { return fmt.Sprintf("%.2000v", text) }

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
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"dmgbench/internal/fleet"
	"dmgbench/internal/system/host"
)

// pullTime is how long a request for a job waits, between two reports of an idle
// machine.
const pullTime = 5 * time.Minute

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
	a.nc, a.js, err = fleet.Connect(c.Link, true, func(lost error) {
		c.Log("connection to the fleet: %v", cmp.Or(lost, errors.New("it is back")))
	})
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

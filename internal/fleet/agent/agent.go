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
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"dmgbench/internal/fleet"
	"dmgbench/internal/system/host"
)

const (
	pullTime  = time.Minute      // that a request for a job waits at the server
	pulls     = 5                // between two reports of an idle machine
	heartbeat = 10 * time.Second // of the server during a pull
	factsTime = 15 * time.Second // for the commands that report the facts of the machine
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
	a := &agent{Config: c, cancels: make(chan struct{}, 1)}
	if err = a.connect(); err != nil {
		return err
	}
	defer a.nc.Close()
	for failures := 0; ctx.Err() == nil; failures++ {
		if err = a.serve(ctx); err == nil || ctx.Err() != nil {
			failures = 0
			continue
		}
		c.Log("%v", err)
		a.report(func(s *fleet.Status) { s.Error = shorten(err) })
		sleep(ctx, failures)
	}
	return nil
}

// serve finishes tasks without a job, reports the machine as idle, waits for a job
// and executes it.
func (a *agent) serve(ctx context.Context) error {
	for _, t := range readTasks(a.Folder) {
		if err := a.finishOrphan(ctx, t); err != nil {
			return err
		}
	}
	a.reportIdle(ctx)
	msg, err := a.pull(ctx)
	for n := 1; n < pulls && msg == nil && err == nil; n++ {
		msg, err = a.pull(ctx)
	}
	if msg == nil || err != nil {
		return err
	}
	if err = a.handle(ctx, msg); err != nil {
		_ = msg.Nak() // the next attempt, here or after a restart, need not wait
		_ = a.flush(pauseTime)
	}
	return err
}

// pull waits for a job. Without one it returns nil after a while.
func (a *agent) pull(ctx context.Context) (msg jetstream.Msg, err error) {
	limited, cancel := context.WithTimeout(ctx, requestTime)
	defer cancel()
	consumer, err := a.js.Consumer(limited, fleet.Jobs, a.Link.User)
	ctx, cancel = a.untilLost(ctx, pullTime)
	defer cancel()
	var batch jetstream.MessageBatch
	if err == nil {
		batch, err = consumer.Fetch(1, jetstream.FetchContext(ctx), jetstream.FetchHeartbeat(heartbeat))
	}
	if err == nil {
		if msg = <-batch.Messages(); msg == nil {
			err = batch.Error()
		}
	}
	if err != nil {
		return nil, fmt.Errorf("waiting for a job: %w", a.checkAnswer(err))
	}
	return msg, nil
}

// handle executes the present occurrence of a job, or the one that was begun, and
// delivers its result.
func (a *agent) handle(ctx context.Context, msg jetstream.Msg) error {
	id := msg.Subject()[strings.LastIndexByte(msg.Subject(), '.')+1:]
	meta, err := msg.Metadata()
	if err != nil {
		return fmt.Errorf("reading job %q: %w", id, err)
	}
	now, err := a.serverTime(ctx)
	if err != nil {
		return err
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
	a.report(func(st *fleet.Status) {
		st.State, st.Job, st.Plan, st.Progress, st.Error = fleet.Checking, id, job.Plan, nil, ""
	})
	// A crash before the acknowledgement, or a server that forgot the delay of a
	// repeated job: measured once is enough.
	done, err := a.hasResult(ctx, s.Result)
	switch {
	case err != nil:
		return err
	case done || s.Result.State != "":
	case refused != nil:
		err = s.conclude(ctx, fleet.Refused, refused)
	default:
		err = s.measure(ctx, request)
	}
	if err != nil {
		return err
	}
	a.Log("job %s, occurrence %d: %s %s", id, s.Result.Occurrence, s.Result.State, s.Result.Error)
	return s.deliver(ctx)
}

// finishOrphan finishes a task without a job in the queue. If it was not measured
// to its end, its job was cancelled while this agent was away.
func (a *agent) finishOrphan(ctx context.Context, t *task) error {
	queued, err := a.isQueued(ctx, t.Result.Job)
	if queued || err != nil {
		return err
	}
	s := &session{agent: a, task: t}
	if t.Result.State == "" {
		err = s.conclude(ctx, fleet.Cancelled, errCancelled)
	}
	if err == nil {
		err = s.deliver(ctx)
	}
	return err
}

// reportIdle sends the facts of the machine and of its places.
func (a *agent) reportIdle(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, factsTime)
	defer cancel()
	var folders []host.Place
	for _, name := range slices.Sorted(maps.Keys(a.Places)) {
		folders = append(folders, host.Place{Name: name, Path: a.Places[name]})
	}
	facts := host.Gather(ctx, folders, false)
	out, _ := a.command(ctx, "version").Output()
	version, _, _ := strings.Cut(strings.TrimPrefix(string(out), "dmgbench "), "\n")
	a.report(func(s *fleet.Status) {
		*s = fleet.Status{Machine: a.Link.User, Version: version, Host: facts, Tags: a.Tags,
			Inputs: slices.Sorted(maps.Keys(a.Inputs)), State: fleet.Idle}
		for _, d := range facts.Disks {
			s.Places = append(s.Places, fleet.Place{Name: d.Place, Filesystem: d.Filesystem, Free: d.Free})
		}
	})
}

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
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"dmgbench/internal/fleet"
	"dmgbench/internal/system/host"
	"dmgbench/internal/system/hostio"
)

const (
	pullTime  = 30 * time.Second // that a request for a job waits at the server
	heartbeat = 5 * time.Second  // of the server during that time
	factsAge  = 5 * time.Minute  // after which the facts of the machine are read again
	factsTime = 15 * time.Second // for the commands that report them
)

// agent is a running agent.
type agent struct {
	Config
	*connection
	program  program
	gathered time.Time // when the facts were read
}

// Run is an agent until ctx ends. It returns an error only if the agent cannot be
// started: what happens later is in its status and in the log.
func Run(ctx context.Context, c Config) error {
	if err := c.complete(); err != nil {
		return err
	}
	release, err := host.Lock(c.Folder)
	if errors.Is(err, host.ErrBusy) {
		return fmt.Errorf("starting the agent: another one uses %q", c.Folder)
	}
	if err == nil {
		defer release()
		err = os.MkdirAll(filepath.Join(c.Folder, jobsFolder), 0o700)
	}
	if err != nil {
		return fmt.Errorf("starting the agent: %w", err)
	}
	a := &agent{Config: c, program: program{c.Program, filepath.Join(c.Folder, "state"), c.Link.User}}
	tasks, err := readTasks(c.Folder)
	if err != nil {
		return err
	}
	for _, t := range tasks {
		endFormer(t.dir)
	}
	if a.connection, err = connect(c.Link, c.Log); err != nil {
		return err
	}
	defer a.nc.Close()
	a.serve(ctx)
	return nil
}

// serve executes jobs until ctx ends.
func (a *agent) serve(ctx context.Context) {
	for pause := (backoff{}); ctx.Err() == nil; {
		err := a.serveOne(ctx)
		if err == nil {
			pause = backoff{}
			continue
		}
		if ctx.Err() == nil {
			a.Log("%v", err)
			a.report(func(s *fleet.Status) { s.Error = shorten(err.Error()) })
			pause.wait(ctx)
		}
	}
}

// serveOne reports the machine as idle, finishes tasks without a job, waits for a
// job and executes it.
func (a *agent) serveOne(ctx context.Context) error {
	if err := a.finishOrphans(ctx); err != nil {
		return err
	}
	a.reportIdle(ctx)
	msg, err := a.pull(ctx)
	if msg == nil || err != nil {
		return err
	}
	err = a.handle(ctx, msg)
	if err != nil {
		// Another attempt may follow at once, here or after a restart.
		_ = msg.Nak()
		_ = a.flush(pauseTime)
	}
	return err
}

// pull waits for a job. Without one it returns nil after a while.
func (a *agent) pull(ctx context.Context) (msg jetstream.Msg, err error) {
	ctx, cancel := a.untilLost(ctx, pullTime+requestTime)
	defer cancel()
	consumer, err := a.js.Consumer(ctx, fleet.Jobs, a.machine)
	if err != nil {
		return nil, fmt.Errorf("asking for a job: %w", a.checkAnswer(err))
	}
	batch, err := consumer.Fetch(1, jetstream.FetchMaxWait(pullTime), jetstream.FetchHeartbeat(heartbeat))
	if err != nil {
		return nil, fmt.Errorf("asking for a job: %w", err)
	}
	select {
	case <-ctx.Done():
		return nil, ctx.Err()
	case msg = <-batch.Messages():
		if err := batch.Error(); msg == nil && err != nil {
			return nil, fmt.Errorf("waiting for a job: %w", a.checkAnswer(err))
		}
		return msg, nil
	}
}

// handle executes the present occurrence of a job, or the one whose task is here.
func (a *agent) handle(ctx context.Context, msg jetstream.Msg) error {
	id := msg.Subject()[strings.LastIndexByte(msg.Subject(), '.')+1:]
	job, invalid := fleet.Decode[fleet.Job](msg.Data())
	if invalid == nil && (job.ID != id || fleet.CheckJob(id) != nil) {
		invalid = errors.New("the id of the job is not that of its subject")
	}
	if invalid != nil {
		job = fleet.Job{}
	}
	meta, err := msg.Metadata()
	if err != nil {
		return fmt.Errorf("reading job %q: %w", id, err)
	}
	tasks, err := readTasks(a.Folder)
	if err != nil {
		return err
	}
	s := &session{c: a.connection, program: a.program, msg: msg,
		task: newTask(a.Folder, a.machine, id, occurrence(job, meta.Timestamp, time.Now()), job)}
	if i := slices.IndexFunc(tasks, func(t *task) bool { return t.Result.Job == id }); i >= 0 {
		s.task = tasks[i]
	}
	a.report(func(st *fleet.Status) { st.Job, st.Plan, st.Progress, st.Error = id, job.Plan, nil, "" })
	if done, err := a.hasResult(ctx, s.Result); err != nil {
		return err
	} else if done {
		return s.deliver(ctx)
	}
	return a.execute(ctx, s, invalid)
}

// execute measures the task unless that was done before or the job is invalid,
// and delivers its result.
func (a *agent) execute(ctx context.Context, s *session, invalid error) error {
	request, refused := request{}, invalid
	if refused == nil {
		request, refused = checkRequest(a.Config, s.Job)
	}
	switch {
	case s.Result.State != "":
	case refused != nil: // before anything of it is written
		now := time.Now().UTC()
		s.Result.State, s.Result.Error, s.Result.Started, s.Result.Ended = fleet.Refused, shorten(refused.Error()), now, now
		s.Job.Every = 0
	default:
		if s.Result.Plan = s.Job.Plan; s.Result.Started.IsZero() {
			s.Result.Started = time.Now().UTC()
		}
		if err := s.save(); err != nil {
			return err
		}
		if err := s.measure(ctx, request); err != nil {
			return err
		}
	}
	a.Log("job %s, occurrence %d: %s %s", s.Result.Job, s.Result.Occurrence, s.Result.State, s.Result.Error)
	return s.deliver(ctx)
}

// finishOrphans finishes tasks without a job in the queue. One that was not
// measured to its end was cancelled while this agent was away.
func (a *agent) finishOrphans(ctx context.Context) error {
	tasks, err := readTasks(a.Folder)
	for _, t := range tasks {
		s := &session{c: a.connection, program: a.program, task: t}
		if err != nil {
			return err
		}
		if t.Result.Job == "" {
			err = os.RemoveAll(t.dir)
			continue
		}
		there, unknown := a.isStored(ctx, fleet.Jobs, fleet.JobSubject(a.machine, t.Result.Job), requestTime)
		if there || unknown != nil {
			err = unknown
			continue
		}
		if t.Result.State == "" {
			err = s.conclude(ctx, fleet.Cancelled, errCancelled)
		}
		if err == nil {
			err = s.deliver(ctx)
		}
	}
	return err
}

// reportIdle sends the facts of the machine, and the free space of its places.
func (a *agent) reportIdle(ctx context.Context) {
	names := slices.Sorted(maps.Keys(a.Places))
	places := make([]fleet.Place, len(names))
	folders := make([]host.Place, len(names))
	for i, name := range names {
		folders[i] = host.Place{Name: name, Path: a.Places[name]}
		places[i].Name = name
		if d, err := hostio.OpenDir(a.Places[name]); err == nil {
			places[i].Free, _, places[i].Filesystem, _ = d.FreeSpace()
			d.Close()
		}
	}
	old := time.Since(a.gathered) > factsAge
	var facts = a.status.Host
	version := a.status.Version
	if old {
		ctx, cancel := context.WithTimeout(ctx, factsTime)
		defer cancel()
		facts, version = host.Gather(ctx, folders, false), a.program.version(ctx)
		a.gathered = time.Now()
	}
	a.report(func(s *fleet.Status) {
		s.Host, s.Version, s.Tags, s.Places = facts, version, a.Tags, places
		s.Inputs = slices.Sorted(maps.Keys(a.Inputs))
		s.State, s.Job, s.Plan, s.Progress = fleet.Idle, "", "", nil
	})
}

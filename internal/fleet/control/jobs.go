package control

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"dmgbench/internal/fleet"
)

// States of a job that neither machines nor results have.
const (
	Waiting = "waiting"
	Forged  = "forged" // the result is not that of its subject, or cannot be read
)

// JobView is an occurrence of a job. Until it has ended, its State is Waiting or that
// of the machine.
type JobView struct {
	fleet.Result
	Due     time.Time `json:"due,omitzero"` // of a repeated job that waits
	IsEnded bool      `json:"is_ended"`
}

// Jobs lists the machines by name, and the jobs in the queue and those that have
// ended, the newest last. A result counts only for a job that the machine was given.
func (f *Fleet) Jobs(ctx context.Context) (machines []Machine, jobs []JobView, err error) {
	// The queue is read first: a job that ends in between is in both, and else it
	// would be in none.
	var queue []message
	_, err = f.read(ctx, fleet.Jobs, fleet.JobSubject("*", "*"), 1, func(m message) { queue = append(queue, m) })
	if err != nil {
		return nil, nil, err
	}
	if machines, err = f.Machines(ctx); err != nil {
		return nil, nil, err
	}
	results, err := f.stored(ctx, machines)
	if err != nil {
		return nil, nil, err
	}
	submitted, err := f.submissions(ctx)
	if err != nil {
		return nil, nil, err
	}
	ended := map[string]bool{}
	for _, name := range slices.Sorted(maps.Keys(results)) {
		unknown := 0
		err = f.readAll(ctx, results[name], func(m message) {
			v, isKnown := viewResult(m, submitted)
			if !isKnown {
				unknown++
				return
			}
			ended[m.Subject] = true
			jobs = append(jobs, v)
		})
		if err != nil {
			return nil, nil, err
		}
		i := slices.IndexFunc(machines, func(m Machine) bool { return m.Machine == name })
		if i >= 0 {
			machines[i].Unknown = unknown
		}
	}
	for _, m := range queue {
		v, isLeft := viewJob(m, ended, time.Now())
		for _, machine := range machines {
			if machine.Machine == v.Machine && machine.Job == v.Job { // it executes the job
				v.State, v.Error = machine.State, machine.Error
			}
		}
		if isLeft {
			jobs = append(jobs, v)
		}
	}
	slices.SortStableFunc(jobs, func(a, b JobView) int {
		return cmp.Or(cmp.Compare(a.Job, b.Job), cmp.Compare(a.Machine, b.Machine))
	})
	return machines, jobs, err
}

// submission is when a machine was given a job.
type submission struct {
	fleet.Job
	stored time.Time
}

// submissions are the jobs that there were, by machine and id with a dot between.
func (f *Fleet) submissions(ctx context.Context) (map[string]submission, error) {
	stream, err := f.JetStream.Stream(ctx, fleet.Submissions)
	if err != nil {
		return nil, fmt.Errorf("reading stream %s: %w", fleet.Submissions, err)
	}
	all := map[string]submission{}
	err = f.readAll(ctx, stream.CachedInfo(), func(m message) {
		job, _ := fleet.Decode[fleet.Job](m.Data) // only Control stores these
		all[strings.TrimPrefix(m.Subject, "fleet.submission.")] = submission{job, m.Time}
	})
	return all, err
}

// readAll reads a stream of which the leader of a cluster has told the state. A server
// that is behind the others does not have all messages yet.
func (f *Fleet) readAll(ctx context.Context, s *jetstream.StreamInfo, each func(message)) (err error) {
	for tries, next := 0, s.State.FirstSeq; err == nil && next <= s.State.LastSeq && tries < 30; tries++ {
		next, err = f.read(ctx, s.Config.Name, ">", next, each)
	}
	return err
}

// viewResult trusts the subject, to which only this machine may publish, and the
// submission. The result is not known if the machine was not given the job, or not so
// often yet.
func viewResult(m message, submitted map[string]submission) (v JobView, isKnown bool) {
	r, err := fleet.Decode[fleet.Result](m.Data)
	parts := strings.Split(m.Subject, ".")
	job, isKnown := submitted[parts[2]+"."+parts[3]]
	last := 0
	if job.Every > 0 {
		last = int(m.Time.Sub(job.stored) / job.Every)
	}
	occurrence, noNumber := strconv.Atoi(parts[4])
	if !isKnown || noNumber != nil || occurrence < 0 || occurrence > last+1 {
		return v, false
	}
	states := []string{fleet.Done, fleet.Incomplete, fleet.Failed, fleet.Refused, fleet.Cancelled}
	subject := fleet.ResultSubject(r.Machine, r.Job, r.Occurrence)
	if err != nil || m.Subject != subject || !slices.Contains(states, r.State) {
		r = fleet.Result{Machine: parts[2], Job: parts[3], State: Forged, Ended: m.Time,
			Error: "the result names another machine, job or occurrence, or cannot be read"}
	}
	return JobView{Result: r, IsEnded: true}, true
}

// viewJob is the occurrence that comes next; isLeft is false if all have ended.
func viewJob(m message, ended map[string]bool, now time.Time) (v JobView, isLeft bool) {
	j, _ := fleet.Decode[fleet.Job](m.Data) // only Control stores jobs
	parts := strings.Split(m.Subject, ".")
	v.Machine, v.Job, v.Plan, v.State = parts[2], parts[3], j.Plan, Waiting
	if j.Every <= 0 {
		return v, !ended[fleet.ResultSubject(v.Machine, v.Job, 0)]
	}
	v.Occurrence = max(int(now.Sub(m.Time)/j.Every), 0)
	if ended[fleet.ResultSubject(v.Machine, v.Job, v.Occurrence)] {
		v.Occurrence++
	}
	v.Due = m.Time.Add(time.Duration(v.Occurrence) * j.Every)
	return v, j.Repeat == 0 || v.Occurrence < j.Repeat
}

// Cancel takes a job out of the queue, on one machine or with "" on all, and
// returns how many it was. The name of the first of several jobs that were submitted
// at once cancels all of them. One that waits has ended then; one that is executed
// ends as soon as the machine notices.
func (f *Fleet) Cancel(ctx context.Context, job, machine string) (n int, err error) {
	_, views, err := f.Jobs(ctx)
	for _, v := range views {
		isNumbered := strings.Count(job, "-") == 2 && strings.HasPrefix(v.Job, job+"-")
		isMeant := (v.Job == job || isNumbered) && (machine == "" || v.Machine == machine)
		if err == nil && isMeant && !v.IsEnded {
			err = f.cancelOne(ctx, v.Result)
			n++
		}
	}
	if err = errors.Join(err, f.NATS.Flush()); err != nil {
		err = fmt.Errorf("cancelling job %q: %w", job, err)
	}
	return n, err
}

// cancelOne cancels a job on a machine. If it waits, its result is stored here. The
// machine may have ended it meanwhile, and its own result stays.
func (f *Fleet) cancelOne(ctx context.Context, r fleet.Result) (err error) {
	if r.State == Waiting {
		r.State, r.Ended = fleet.Cancelled, time.Now().UTC()
		err = f.store(ctx, fleet.ResultSubject(r.Machine, r.Job, r.Occurrence), r)
	}
	if err != nil && !strings.Contains(err.Error(), "maximum messages per subject exceeded") {
		return err
	}
	queue, err := f.JetStream.Stream(ctx, fleet.Jobs)
	if err == nil {
		err = queue.Purge(ctx, jetstream.WithPurgeSubject(fleet.JobSubject(r.Machine, r.Job)))
	}
	return errors.Join(err, f.NATS.Publish(fleet.CancelSubject(r.Machine), nil))
}

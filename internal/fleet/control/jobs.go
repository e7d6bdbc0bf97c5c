package control

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
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
	Due     time.Time // of a repeated job that waits
	IsEnded bool
}

// Jobs lists the machines by name, and the jobs in the queue and those that have
// ended, the newest last.
func (f *Fleet) Jobs(ctx context.Context) (machines []Machine, jobs []JobView, err error) {
	// The queue is read first: a job that ends in between is in both, and else it
	// would be in none.
	var queue []message
	_, err = f.read(ctx, fleet.Jobs, fleet.JobSubject("*", "*"), 1, func(m message) { queue = append(queue, m) })
	results, noResults := f.JetStream.Stream(ctx, fleet.Results) // by the leader of a cluster
	machines, noMachines := f.Machines(ctx)
	if err = cmp.Or(err, noResults, noMachines); err != nil {
		return nil, nil, err
	}
	// A server of a cluster that is behind the others does not have all results yet.
	ended, last := map[string]bool{}, results.CachedInfo().State.LastSeq
	for tries, next := 0, uint64(1); err == nil && next <= last && tries < 30; tries++ {
		next, err = f.read(ctx, fleet.Results, "fleet.result.*.*.*", next, func(m message) {
			ended[m.Subject] = true
			jobs = append(jobs, viewResult(m))
		})
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

// viewResult trusts the subject, to which only this machine may publish.
func viewResult(m message) JobView {
	r, err := fleet.Decode[fleet.Result](m.Data)
	states := []string{fleet.Done, fleet.Incomplete, fleet.Failed, fleet.Refused, fleet.Cancelled}
	subject := fleet.ResultSubject(r.Machine, r.Job, r.Occurrence)
	if err != nil || m.Subject != subject || !slices.Contains(states, r.State) {
		parts := strings.Split(m.Subject, ".")
		r = fleet.Result{Machine: parts[2], Job: parts[3], State: Forged, Ended: m.Time,
			Error: "the result names another machine, job or occurrence, or cannot be read"}
	}
	return JobView{Result: r, IsEnded: true}
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

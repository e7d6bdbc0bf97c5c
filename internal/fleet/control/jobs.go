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

// maxTries is how often results are read that a server of a cluster, which is behind
// the others, does not have yet.
const maxTries = 30

// JobView is an occurrence of a job.
type JobView struct {
	Machine, Job string
	Occurrence   int
	Plan         string
	State        string        // Waiting, Forged, that of the machine, or that of the result
	Due          time.Time     // of a repeated job that waits
	Ended        time.Time     // on the machine's clock
	Error        string        // of the machine or the result
	Result       *fleet.Result // nil until it has ended
}

// Jobs lists the jobs in the queue and those that have ended, the newest last.
func (f *Fleet) Jobs(ctx context.Context) (out []JobView, err error) {
	// The queue is read first: a job that ends in between is in both, and else it
	// would be in none.
	var queue []message
	ended := map[string]bool{}
	_, err = f.read(ctx, fleet.Jobs, fleet.JobSubject("*", "*"), 1, func(m message) { queue = append(queue, m) })
	last := uint64(1)
	if s, unknown := f.js.Stream(ctx, fleet.Results); unknown == nil {
		last = s.CachedInfo().State.LastSeq // by the leader of a cluster
	}
	for tries, next := 0, uint64(1); err == nil && next <= last && tries < maxTries; tries++ {
		next, err = f.read(ctx, fleet.Results, "fleet.result.*.*.*", next, func(m message) {
			ended[m.subject] = true
			out = append(out, viewResult(m))
		})
	}
	machines, unknown := f.Machines(ctx)
	for _, m := range queue {
		if v, ok := viewJob(m, ended, time.Now()); ok {
			v.addStatus(machines)
			out = append(out, v)
		}
	}
	slices.SortStableFunc(out, func(a, b JobView) int {
		return cmp.Or(cmp.Compare(a.Job, b.Job), cmp.Compare(a.Machine, b.Machine))
	})
	return out, cmp.Or(err, unknown)
}

// viewResult trusts the subject, to which only this machine may publish.
func viewResult(m message) JobView {
	r, err := fleet.Decode[fleet.Result](m.data)
	isState := slices.Contains([]string{fleet.Done, fleet.Incomplete, fleet.Failed, fleet.Refused, fleet.Cancelled}, r.State)
	if err != nil || !isState || m.subject != fleet.ResultSubject(r.Machine, r.Job, r.Occurrence) {
		parts := strings.Split(m.subject, ".")
		return JobView{Machine: parts[2], Job: parts[3], State: Forged, Ended: m.time,
			Error: "the result names another machine, job or occurrence, or cannot be read"}
	}
	return JobView{Machine: r.Machine, Job: r.Job, Occurrence: r.Occurrence, Plan: r.Plan, State: r.State,
		Ended: r.Ended, Error: r.Error, Result: &r}
}

// viewJob is the occurrence that comes next; ok is false if all have ended.
func viewJob(m message, ended map[string]bool, now time.Time) (v JobView, ok bool) {
	j, err := fleet.Decode[fleet.Job](m.data)
	parts := strings.Split(m.subject, ".")
	v = JobView{Machine: parts[2], Job: parts[3], Plan: j.Plan, State: Waiting}
	if j.Every > 0 {
		v.Occurrence = max(int(now.Sub(m.time)/j.Every), 0)
	}
	isEnded := ended[fleet.ResultSubject(v.Machine, v.Job, v.Occurrence)]
	if j.Every <= 0 || err != nil {
		return v, !isEnded
	}
	if isEnded {
		v.Occurrence++
	}
	v.Due = m.time.Add(time.Duration(v.Occurrence) * j.Every)
	return v, j.Repeat == 0 || v.Occurrence < j.Repeat
}

// addStatus adds what the machine reported, if this is the job that it executes.
func (v *JobView) addStatus(machines []Machine) {
	for _, m := range machines {
		if s := m.Status; m.Name == v.Machine && s != nil && s.Job == v.Job && s.State != fleet.Idle {
			v.State, v.Error = s.State, s.Error
		}
	}
}

// Cancel takes a job out of the queue, on one machine or with "" on all, and
// returns how many it was. A job of a repeated submission may be given without
// its number. One that waits has ended then; one that is executed ends as soon as
// the machine notices.
func (f *Fleet) Cancel(ctx context.Context, job, machine string) (n int, err error) {
	views, err := f.Jobs(ctx)
	for _, v := range views {
		isNumbered := strings.Count(job, "-") == 2 && strings.HasPrefix(v.Job, job+"-")
		isQueued := v.Result == nil && v.State != Forged
		if err == nil && isQueued && (v.Job == job || isNumbered) && (machine == "" || v.Machine == machine) {
			err = f.cancelOne(ctx, v)
			n++
		}
	}
	if err = errors.Join(err, f.nc.Flush()); err != nil {
		err = fmt.Errorf("cancelling job %q: %w", job, err)
	}
	return n, err
}

// cancelOne cancels a job on a machine. If it waits, its result is stored here. The
// machine may have ended it meanwhile, and its own result stays.
func (f *Fleet) cancelOne(ctx context.Context, v JobView) (err error) {
	if v.State == Waiting {
		err = f.store(ctx, fleet.ResultSubject(v.Machine, v.Job, v.Occurrence), fleet.Result{Job: v.Job,
			Machine: v.Machine, Occurrence: v.Occurrence, Plan: v.Plan, State: fleet.Cancelled, Ended: time.Now().UTC()})
	}
	if err != nil && !isRefused(err, "maximum messages per subject exceeded") {
		return err
	}
	queue, err := f.js.Stream(ctx, fleet.Jobs)
	if err == nil {
		err = queue.Purge(ctx, jetstream.WithPurgeSubject(fleet.JobSubject(v.Machine, v.Job)))
	}
	return errors.Join(err, f.nc.Publish(fleet.CancelSubject(v.Machine), nil))
}

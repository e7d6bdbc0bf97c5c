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

// States of a job beside those of machines and results.
const (
	Waiting = "waiting"
	Forged  = "forged" // the result is not that of its subject, or cannot be read
)

// idTime is the time with which the name of a job begins.
const idTime = "20060102-1504"

// JobView is an occurrence of a job.
type JobView struct {
	Machine, Job string
	Occurrence   int
	Plan         string
	State        string    // Waiting, Forged, that of the machine, or that of the result
	Submitted    time.Time // to the minute if it has ended
	Due          time.Time // of a repeated job that waits
	Started      time.Time // on the machine's clock, as Ended
	Ended        time.Time
	Progress     *fleet.Progress
	Error        string
	Result       *fleet.Result // nil until it has ended
}

// Jobs lists the jobs in the queue and those that have ended, the newest last.
func (f *Fleet) Jobs(ctx context.Context) (out []JobView, err error) {
	machines, err := f.Machines(ctx)
	if err != nil {
		return nil, err
	}
	s, err := f.js.Stream(ctx, fleet.Jobs) // has the server's time
	if err != nil {
		return nil, fmt.Errorf("reading stream %s: %w", fleet.Jobs, err)
	}
	// The queue is read first: a job that ends in between is in both, and else it
	// would be in none.
	var queue []message
	_, err = f.read(ctx, fleet.Jobs, fleet.JobSubject("*", "*"), 1, func(m message) { queue = append(queue, m) })
	if err != nil {
		return nil, err
	}
	ended := map[string]bool{}
	_, err = f.read(ctx, fleet.Results, "fleet.result.*.*.*", 1, func(m message) {
		ended[m.subject] = true
		out = append(out, viewResult(m))
	})
	for _, m := range queue {
		if v, ok := viewJob(m, ended, s.CachedInfo().TimeStamp); ok {
			v.addStatus(machines)
			out = append(out, v)
		}
	}
	slices.SortStableFunc(out, func(a, b JobView) int {
		return cmp.Or(cmp.Compare(a.Job, b.Job), cmp.Compare(a.Machine, b.Machine), cmp.Compare(a.Occurrence, b.Occurrence))
	})
	return out, err
}

// viewResult trusts the subject, to which only this machine may publish.
func viewResult(m message) JobView {
	parts := strings.Split(m.subject, ".")
	v := JobView{Machine: parts[2], Job: parts[3], State: Forged, Ended: m.time}
	v.Submitted, _ = time.Parse(idTime, v.Job[:min(len(idTime), len(v.Job))])
	r, err := fleet.Decode[fleet.Result](m.data)
	isState := slices.Contains([]string{fleet.Done, fleet.Incomplete, fleet.Failed, fleet.Refused, fleet.Cancelled}, r.State)
	if err != nil || !isState || m.subject != fleet.ResultSubject(r.Machine, r.Job, r.Occurrence) {
		v.Error = "the result names another machine, job or occurrence, or cannot be read"
		return v
	}
	v.Occurrence, v.Plan, v.State, v.Started, v.Ended, v.Error = r.Occurrence, r.Plan, r.State, r.Started, r.Ended, r.Error
	v.Result = &r
	return v
}

// viewJob is the occurrence that comes next; ok is false if all have ended.
func viewJob(m message, ended map[string]bool, now time.Time) (v JobView, ok bool) {
	j, err := fleet.Decode[fleet.Job](m.data)
	parts := strings.Split(m.subject, ".")
	v = JobView{Machine: parts[2], Job: parts[3], Plan: j.Plan, State: Waiting, Submitted: m.time}
	if j.Every > 0 {
		v.Occurrence = int(now.Sub(m.time) / j.Every)
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
			v.State, v.Progress, v.Error = s.State, s.Progress, s.Error
		}
	}
}

// Cancel takes a job out of the queue, on one machine or with "" on all, and
// returns how many it was. A job of a repeated submission may be given without
// its number. One that waits has ended then; one that is executed ends as soon as
// the machine notices.
func (f *Fleet) Cancel(ctx context.Context, job, machine string) (n int, err error) {
	views, err := f.Jobs(ctx)
	if err != nil {
		return 0, err
	}
	queue, err := f.js.Stream(ctx, fleet.Jobs)
	for _, v := range views {
		isNumbered := strings.Count(job, "-") == 2 && strings.HasPrefix(v.Job, job+"-")
		isQueued := v.Result == nil && v.State != Forged
		if err != nil || !isQueued || v.Job != job && !isNumbered || machine != "" && v.Machine != machine {
			continue
		}
		if v.State == Waiting {
			err = f.storeCancelled(ctx, v)
		}
		if err == nil {
			err = queue.Purge(ctx, jetstream.WithPurgeSubject(fleet.JobSubject(v.Machine, v.Job)))
		}
		if err == nil {
			err = f.nc.Publish(fleet.CancelSubject(v.Machine), nil)
			n++
		}
	}
	if err = errors.Join(err, f.nc.Flush()); err != nil {
		return n, fmt.Errorf("cancelling job %q: %w", job, err)
	}
	return n, nil
}

// storeCancelled stores the result of a job that waits. The machine may have
// ended it meanwhile, and its own result stays.
func (f *Fleet) storeCancelled(ctx context.Context, v JobView) error {
	err := f.store(ctx, fleet.ResultSubject(v.Machine, v.Job, v.Occurrence), fleet.Result{Job: v.Job,
		Machine: v.Machine, Occurrence: v.Occurrence, Plan: v.Plan, State: fleet.Cancelled,
		Ended: time.Now().UTC()})
	if isRefused(err, "maximum messages per subject exceeded") {
		return nil
	}
	return err
}

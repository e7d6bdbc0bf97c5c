package control

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"dmgbench/internal/fleet"
	"dmgbench/internal/plan"
	"dmgbench/internal/result"
	"dmgbench/internal/system/host"
)

// Submit stores a job for each machine that the selector and the plan fit, by the
// last status of the machine; with Repeat, but not Every, so many. Whether it has
// enough space, the machine finds out itself before it writes. The Plan of the job
// is a name or a file, which messages name. What is wrong with its Text is a
// [plan.Problems] error. Submit calls print for each job that is stored and each
// machine that does not fit, and returns how many jobs it stored.
func (f *Fleet) Submit(ctx context.Context, job fleet.Job, selector Selector,
	print func(machine, text string)) (n int, err error) {
	p, err := readPlan(job)
	machines, noMachines := f.Machines(ctx)
	if err = cmp.Or(err, noMachines); err != nil {
		return 0, err
	}
	job.Plan, job.Submitted = p.Name, time.Now().UTC()
	ids := jobIDs(job)
	for _, m := range machines {
		if reason := cmp.Or(selector.reject(m), rejectPlan(p, m)); reason != "" {
			print(m.Machine, "skipped: "+reason)
			continue
		}
		for _, job.ID = range ids {
			err := f.submit(ctx, m.Machine, job)
			if err != nil && strings.Contains(err.Error(), "maximum bytes exceeded") {
				err = errors.New("the queue is full (wait until jobs are done, or cancel some)")
			}
			if err != nil {
				return n, fmt.Errorf("submitting plan %q to machine %q: %w", p.Name, m.Machine, err)
			}
			print(m.Machine, "job "+job.ID)
			n++
		}
	}
	return n, nil
}

// submit records that the machine is given the job, without which its result would
// not count, and puts the job into the queue.
func (f *Fleet) submit(ctx context.Context, machine string, job fleet.Job) error {
	record := job
	record.Text = ""
	if err := f.store(ctx, fleet.SubmissionSubject(machine, job.ID), record); err != nil {
		return err
	}
	return f.store(ctx, fleet.JobSubject(machine, job.ID), job)
}

// jobIDs are the names of the jobs that each machine gets. They sort by time; all
// begin with the first one.
func jobIDs(job fleet.Job) []string {
	ids := []string{job.Submitted.Format("20060102-1504") + "-" + strings.ToLower(rand.Text()[:4])}
	for n := 2; job.Every == 0 && n <= job.Repeat; n++ {
		ids = append(ids, fmt.Sprintf("%s-%d", ids[0], n))
	}
	return ids
}

// readPlan checks the plan of a job, with those options that select cases and sizes.
// The machine checks all of them.
func readPlan(job fleet.Job) (*plan.Plan, error) {
	p, problems := plan.Parse(job.Plan, []byte(job.Text))
	// The run would refuse it because of such a warning, too.
	if p == nil || slices.ContainsFunc(problems.Warnings(), func(p plan.Problem) bool { return p.Refused }) {
		return nil, problems
	}
	var err error
	o := plan.Overrides{Sets: job.Options.Sets}
	switch {
	case fleet.CheckJob(p.Name) != nil: // the name becomes that of a file there
		err = errors.New("its name may have only letters, digits and hyphens (rename it)")
	case len(p.Manual) > 0:
		err = fmt.Errorf("someone has to set %q at the machine during the run", p.Manual[0].Name)
	case job.Options.Scale != "":
		o.Scale, err = strconv.ParseFloat(job.Options.Scale, 64)
	}
	if err == nil && len(job.Options.Only) > 0 {
		o.Only, err = p.ParseSelector(strings.Join(job.Options.Only, ","))
	}
	if err == nil {
		p, _, err = p.Apply(o)
	}
	if err != nil {
		err = fmt.Errorf("submitting plan %q: %w", job.Plan, err)
	}
	return p, err
}

// rejectPlan is why a machine cannot execute a plan, "" if it can. Only what it
// reported counts; its agent checks the plan again.
func rejectPlan(p *plan.Plan, m Machine) string {
	for _, in := range p.Inputs {
		if !in.Optional && !slices.Contains(m.Inputs, in.Name) {
			return fmt.Sprintf("it has no input %q", in.Name)
		}
	}
	names := p.Places()
	for _, name := range names {
		// The place without a name is for a plan with one place.
		isFor := func(d result.Disk) bool { return d.Place == name || d.Place == "" && len(names) == 1 }
		if _, here := plan.HereFor(name); !here && !slices.ContainsFunc(m.Host.Disks, isFor) {
			return fmt.Sprintf("it has no place %q", name)
		}
	}
	// The requirements are not for disks that the plan does not use.
	isUnused := func(d result.Disk) bool { return d.Place != "" && !slices.Contains(names, d.Place) }
	m.Host.Disks = slices.DeleteFunc(slices.Clone(m.Host.Disks), isUnused)
	if problems := host.Fit(m.Host, p.Run.Require); len(problems) > 0 {
		return problems[0].Text
	}
	return ""
}

package control

import (
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
	"dmgbench/internal/system/units"
)

// Submission is a plan with the machines that it is for.
type Submission struct {
	Plan     string // its name or file, which messages name
	Text     []byte
	Options  fleet.Options
	Selector Selector
	Repeat   int           // jobs for each machine, or with Every occurrences; 0 is one, or with Every no end
	Every    time.Duration // 0: once
}

// Submitted is a job that is in the queue.
type Submitted struct{ Machine, Job string }

// String names the job and the machine.
func (s Submitted) String() string { return s.Job + " on " + s.Machine }

// Skipped is a machine that a plan was not submitted to.
type Skipped struct{ Machine, Reason string }

var errQueueFull = errors.New("the queue is full (wait until jobs are done, or cancel some)")

// Submit stores a job, or Repeat of them, for each machine that the selector and
// the plan fit, by the last status of the machine. What is wrong with the plan is
// a [plan.Problems] error. If storing fails halfway, the error names what is
// stored and what is not, and jobs is what is stored.
func (f *Fleet) Submit(ctx context.Context, s Submission) (jobs []Submitted, skipped []Skipped, err error) {
	var machines []Machine
	n, err := needsOf(s)
	if err == nil {
		machines, err = f.Machines(ctx)
	}
	if err != nil {
		return nil, nil, err
	}
	ids := jobIDs(s)
	for _, m := range machines {
		reason := s.Selector.reject(m)
		if reason == "" {
			reason = n.reject(m.Status)
		}
		if reason != "" {
			skipped = append(skipped, Skipped{m.Name, reason})
			continue
		}
		for _, id := range ids {
			jobs = append(jobs, Submitted{m.Name, id})
		}
	}
	for i, j := range jobs {
		err := f.store(ctx, fleet.JobSubject(j.Machine, j.Job), fleet.Job{ID: j.Job, Plan: n.plan.Name,
			Text: string(s.Text), Options: s.Options, Submitted: time.Now().UTC(), Every: s.Every, Repeat: s.Repeat})
		if isRefused(err, "maximum bytes exceeded") {
			err = errQueueFull
		}
		if err != nil {
			return jobs[:i], skipped, fmt.Errorf("submitting plan %q: %w; stored: %v; not stored: %v",
				n.plan.Name, err, jobs[:i], jobs[i:])
		}
	}
	return jobs, skipped, nil
}

// jobIDs are the names of the jobs of a machine. They sort by time.
func jobIDs(s Submission) (ids []string) {
	id := time.Now().UTC().Format("20060102-1504") + "-" + strings.ToLower(rand.Text()[:4])
	if s.Every > 0 || s.Repeat < 2 {
		return []string{id}
	}
	for n := range s.Repeat {
		ids = append(ids, fmt.Sprintf("%s-%0*d", id, len(strconv.Itoa(s.Repeat)), n+1))
	}
	return ids
}

// needs are what a plan requires of a machine.
type needs struct {
	plan  *plan.Plan
	space map[string]units.Bytes // by the places of cases; "" is none in particular
}

// needsOf checks a plan, with those of its options that change the space that it
// needs. The machine checks all of them.
func needsOf(s Submission) (n needs, err error) {
	if len(s.Text) > fleet.MaxPlan || s.Repeat < 0 || s.Every < 0 {
		return n, fmt.Errorf("submitting plan %q: want at most %d bytes, and no negative times", s.Plan, fleet.MaxPlan)
	}
	p, problems := plan.Parse(s.Plan, s.Text)
	isRefused := func(p plan.Problem) bool { return p.Refused } // by run, too
	if p == nil || slices.ContainsFunc(problems.Warnings(), isRefused) {
		return n, problems
	}
	o := plan.Overrides{Sets: s.Options.Sets}
	if fleet.CheckJob(p.Name) != nil {
		err = errors.New("its name may have only letters, digits and hyphens (rename it)")
	}
	if len(p.Manual) > 0 {
		err = fmt.Errorf("someone has to set %q at the machine during the run", p.Manual[0].Name)
	}
	if err == nil && s.Options.Scale != "" {
		o.Scale, err = strconv.ParseFloat(s.Options.Scale, 64)
	}
	if err == nil && len(s.Options.Only) > 0 {
		o.Only, err = p.ParseSelector(strings.Join(s.Options.Only, ","))
	}
	if err == nil {
		p, _, err = p.Apply(o)
	}
	if err != nil {
		return n, fmt.Errorf("submitting plan %q: %w", s.Plan, err)
	}
	n = needs{p, map[string]units.Bytes{}}
	for _, c := range p.Cases() {
		at := c.Settings.Place
		n.space[at] = max(n.space[at], plan.Estimate(p, c).HostPeak, p.Run.SteadyFile)
	}
	return n, nil
}

// reject is why a machine cannot execute the plan, "" if it can.
func (n needs) reject(s *fleet.Status) string {
	for _, in := range n.plan.Inputs {
		if !in.Optional && !slices.Contains(s.Inputs, in.Name) {
			return fmt.Sprintf("it has no input %q", in.Name)
		}
	}
	places, used, names := map[string]fleet.Place{}, map[string]bool{}, n.plan.Places()
	for _, p := range s.Places {
		places[p.Name] = p
	}
	_, inRunFolder := n.space[""]
	for _, name := range append(names, "") {
		place, ok := places[name]
		if !ok && len(names) == 1 && !inRunFolder { // the place without a name is for a plan with one place
			place, ok = places[""]
		}
		if _, here := plan.HereFor(name); !ok && !here && name != "" {
			return fmt.Sprintf("it has no place %q", name)
		}
		if ok && place.Free < int64(n.space[name]) {
			return fmt.Sprintf("place %q has %s free, the plan needs %s", place.Name,
				units.Bytes(place.Free).Human(), n.space[name].Human())
		}
		used[place.Name] = true
	}
	h := s.Host // the requirements are not for disks that the plan does not use
	h.Disks = slices.DeleteFunc(slices.Clone(h.Disks), func(d result.Disk) bool { return !used[d.Place] })
	if problems := host.Fit(h, n.plan.Run.Require); len(problems) > 0 {
		return problems[0].Text
	}
	return ""
}

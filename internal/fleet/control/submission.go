package control

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"dmgbench/internal/fleet"
	"dmgbench/internal/plan"
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

// Skipped is a machine that a plan was not submitted to.
type Skipped struct{ Machine, Reason string }

// Submit stores a job, or Repeat of them, for each machine that the selector and
// the plan fit, by the last status of the machine. What is wrong with the plan is
// a [plan.Problems] error. If storing fails halfway, the error names what is
// stored and what is not, and jobs is what is stored.
func (f *Fleet) Submit(ctx context.Context, s Submission) (jobs []Submitted, skipped []Skipped, err error) {
	n, err := needsOf(s)
	if err != nil {
		return nil, nil, err
	}
	machines, err := f.Machines(ctx)
	if err != nil {
		return nil, nil, err
	}
	machines = slices.DeleteFunc(machines, func(m Machine) bool {
		reason := s.Selector.reject(m)
		if reason == "" {
			reason = n.reject(m.Status)
		}
		if reason != "" {
			skipped = append(skipped, Skipped{m.Name, reason})
		}
		return reason != ""
	})
	for _, id := range jobIDs(s) {
		for _, m := range machines {
			jobs = append(jobs, Submitted{m.Name, id})
		}
	}
	job := fleet.Job{Plan: n.plan.Name, Text: string(s.Text), Options: s.Options, Submitted: time.Now().UTC(),
		Every: s.Every, Repeat: s.Repeat}
	for i, j := range jobs {
		job.ID = j.Job
		if err := f.store(ctx, fleet.JobSubject(j.Machine, j.Job), job); err != nil {
			return jobs[:i], skipped, fmt.Errorf("submitting plan %q: %w; stored: %s; not stored: %s",
				job.Plan, err, join(jobs[:i]), join(jobs[i:]))
		}
	}
	return jobs, skipped, nil
}

// jobIDs are the names of the jobs of a machine. They sort by time.
func jobIDs(s Submission) (ids []string) {
	id := time.Now().UTC().Format(idTime) + "-" + strings.ToLower(rand.Text()[:4])
	if s.Every > 0 || s.Repeat < 2 {
		return []string{id}
	}
	for n := range s.Repeat {
		ids = append(ids, fmt.Sprintf("%s-%0*d", id, len(strconv.Itoa(s.Repeat)), n+1))
	}
	return ids
}

// join lists jobs, "none" without one.
func join(jobs []Submitted) string {
	var out []string
	for _, j := range jobs {
		out = append(out, j.Job+" on "+j.Machine)
	}
	return cmp.Or(strings.Join(out, ", "), "none")
}

// errQueueFull has the advice, as the server's own text has none.
var errQueueFull = errors.New("the queue is full (wait until jobs are done, cancel some, or raise its limit)")

// store stores a message in the stream of its subject.
func (f *Fleet) store(ctx context.Context, subject string, v any) error {
	data, err := fleet.Encode(v)
	if err == nil {
		_, err = f.js.Publish(ctx, subject, data)
	}
	if e, ok := errors.AsType[*jetstream.APIError](err); ok && e.Description == "maximum bytes exceeded" {
		return errQueueFull
	}
	return err
}

// needs are what a plan requires of a machine.
type needs struct {
	plan      *plan.Plan
	space     map[string]units.Bytes // at the places of cases; "" is a machine's own choice
	simulated bool                   // nothing is written
}

// needsOf checks a plan with its options, as the machine does again.
func needsOf(s Submission) (n needs, err error) {
	name := strings.TrimSuffix(filepath.Base(s.Plan), ".toml")
	if err := fleet.CheckJob(name); err != nil {
		return n, fmt.Errorf("submitting plan %q: its name may have only letters, digits and hyphens (rename it)", s.Plan)
	}
	if len(s.Text) > fleet.MaxPlan || s.Repeat < 0 || s.Every < 0 {
		return n, fmt.Errorf("submitting plan %q: want at most %d bytes of text, and no negative number of repeats or time",
			s.Plan, fleet.MaxPlan)
	}
	p, problems := plan.Parse(s.Plan, s.Text)
	isRefused := func(p plan.Problem) bool { return p.Refused }
	if p == nil || slices.ContainsFunc(problems.Warnings(), isRefused) {
		return n, problems
	}
	o, err := overridesOf(p, s.Options)
	if err == nil {
		p, _, err = p.Apply(o)
	}
	if err != nil {
		return n, fmt.Errorf("submitting plan %q: %w", name, err)
	}
	n = needs{p, map[string]units.Bytes{}, s.Options.Engine == "simulated"}
	for _, c := range p.Cases() {
		n.space[c.Settings.Place] = max(n.space[c.Settings.Place], plan.Estimate(p, c).HostPeak, p.Run.SteadyFile)
	}
	return n, nil
}

// overridesOf are the options as `dmgbench run` reads them.
func overridesOf(p *plan.Plan, o fleet.Options) (v plan.Overrides, err error) {
	v = plan.Overrides{Sets: o.Sets, Workers: o.Workers, Auto: o.Rounds == "auto"}
	var errs [4]error
	if o.Rounds != "" && !v.Auto {
		v.Rounds, errs[0] = strconv.Atoi(o.Rounds)
	}
	if o.Scale != "" {
		v.Scale, errs[1] = strconv.ParseFloat(o.Scale, 64)
	}
	if o.Precision != "" {
		v.Precision, errs[2] = units.ParseShare(o.Precision)
	}
	if len(o.Only) > 0 {
		v.Only, errs[3] = p.ParseSelector(strings.Join(o.Only, ","))
	}
	if o.Seed != 0 {
		v.Seed = &o.Seed
	}
	return v, errors.Join(errs[:]...)
}

// reject is why a machine cannot execute the plan, "" if it can.
func (n needs) reject(s *fleet.Status) string {
	for _, in := range n.plan.Inputs {
		if !in.Optional && !slices.Contains(s.Inputs, in.Name) {
			return fmt.Sprintf("it has no input %q", in.Name)
		}
	}
	h := s.Host
	h.Disks = nil // those at places of the plan; it has no requirement for others
	for _, name := range append(n.plan.Places(), "") {
		i := n.findPlace(s, name)
		if i < 0 && name != "" {
			return fmt.Sprintf("it has no place %q", name)
		}
		if i < 0 {
			continue
		}
		place := s.Places[i]
		if !n.simulated && place.Free < int64(n.space[name]) {
			return fmt.Sprintf("place %q has %s free, the plan needs %s", place.Name,
				units.Bytes(place.Free).Human(), n.space[name].Human())
		}
		for _, d := range s.Host.Disks {
			if d.Place == place.Name {
				h.Disks = append(h.Disks, d)
			}
		}
	}
	if problems := host.Fit(h, n.plan.Run.Require); len(problems) > 0 {
		return problems[0].Text
	}
	return ""
}

// findPlace is the index of a machine's place for one of the plan, or -1. A place
// without a name is for a plan that has all cases at one place.
func (n needs) findPlace(s *fleet.Status, name string) int {
	find := func(name string) int {
		return slices.IndexFunc(s.Places, func(p fleet.Place) bool { return p.Name == name })
	}
	i := find(name)
	if _, inRunFolder := n.space[""]; i < 0 && !inRunFolder && len(n.plan.Places()) == 1 {
		i = find("")
	}
	return i
}

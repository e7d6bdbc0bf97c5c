package result

import (
	"errors"
	"fmt"
	"slices"
	"strings"
)

// PooledRun is one of the runs of a pooled result, with its rounds.
type PooledRun struct {
	Run    string `json:"run"`
	Status string `json:"status"`
	First  int    `json:"first_round"`
	Last   int    `json:"last_round"`
}

// ErrNotPoolable is returned by [Pool] for runs that are not repetitions of one
// another.
var ErrNotPoolable = errors.New("they are not repetitions of one another")

// Pool combines folded runs of one plan in one result, without averages: the
// rounds and sessions of each run get the next numbers ([Result.Runs]).
// Conclusions stay empty, as after [Fold]. The runs must have the same plan
// digest, machine, system, engine and images, and must be different runs: other
// differences would disappear in averages.
func Pool(runs []*Result) (*Result, error) {
	if len(runs) < 2 {
		return nil, fmt.Errorf("pooling %d runs: need 2 or more", len(runs))
	}
	first := runs[0]
	for i, r := range runs[1:] {
		if slices.ContainsFunc(runs[:i+1], func(o *Result) bool { return o.Run == r.Run }) {
			return nil, fmt.Errorf("pooling runs: %q is given twice: %w", r.Run, ErrNotPoolable)
		}
		if what := difference(first, r); what != "" {
			return nil, &Error{Doing: fmt.Sprintf("pooling run %q with", first.Run), File: r.Run,
				Err:  fmt.Errorf("%s: %w", what, ErrNotPoolable),
				Hint: "report each separately; `dmgbench run` of the first run's plan.toml makes a repetition"}
		}
	}
	out := &Result{Schema: SchemaVersion, Tool: first.Tool, Plan: first.Plan, Seed: first.Seed, Status: Done}
	if first.Auto != nil { // the same by the digest, except for the decisions of each run
		a := *first.Auto
		a.Decisions = nil
		out.Auto = &a
	}
	for _, r := range runs {
		out.addRun(r)
		for _, w := range r.Warnings { // a warning of all runs is not of one of them
			if slices.ContainsFunc(runs, func(o *Result) bool { return !slices.Contains(o.Warnings, w) }) {
				w.Text = "run " + r.Run + ": " + w.Text
			}
			out.Warnings = appendNew(out.Warnings, w)
		}
	}
	for i := range out.Cases {
		c := &out.Cases[i]
		c.Status, c.Reason = caseStatus(c.Rounds, out.Rounds)
	}
	return out, nil
}

// difference is why two runs are not the same experiment, "" if they are.
func difference(a, b *Result) string {
	if a.Plan.Digest != b.Plan.Digest {
		return fmt.Sprintf("plan %q (SHA-256 %.12s) and plan %q (SHA-256 %.12s) are not the same as executed",
			a.Plan.Name, a.Plan.Digest, b.Plan.Name, b.Plan.Digest)
	}
	facts := func(s Session) [3]string {
		return [3]string{strings.TrimSpace(s.Host.Model + " " + s.Host.CPU + " " + s.Host.Arch),
			strings.TrimSpace(s.Host.OS + " " + s.Host.OSVersion),
			strings.TrimSpace(s.Engine.Name + " " + s.Engine.Vendor + " " + s.Engine.Version)}
	}
	for _, x := range a.Sessions {
		for _, y := range b.Sessions {
			for i, what := range []string{"machine", "system", "engine"} {
				if x, y := facts(x)[i], facts(y)[i]; x != y {
					return fmt.Sprintf("the %s is %q in one and %q in the other", what, x, y)
				}
			}
		}
	}
	if len(a.Cases) != len(b.Cases) {
		return fmt.Sprintf("%d cases in one and %d in the other", len(a.Cases), len(b.Cases))
	}
	for i, y := range b.Cases {
		x := a.Cases[i]
		if x.ID != y.ID {
			return fmt.Sprintf("case %q is not in both", y.ID)
		}
		if x.Target != y.Target && x.Status == Done && y.Status == Done {
			return fmt.Sprintf("case %q was not made the same (%+v and %+v)", y.ID, x.Target, y.Target)
		}
	}
	return ""
}

// addRun appends the rounds of one run.
func (r *Result) addRun(run *Result) {
	rounds, sessions := r.Rounds, 0
	for _, s := range r.Sessions {
		sessions = max(sessions, s.Index)
	}
	r.Run = strings.TrimPrefix(r.Run+"+"+run.Run, "+")
	r.Runs = append(r.Runs, PooledRun{Run: run.Run, Status: run.Status, First: rounds + 1, Last: rounds + run.Rounds})
	r.Rounds += run.Rounds
	order := []string{Done, Skipped, Failed, Unfinished} // the worst is last
	r.Status = order[max(slices.Index(order, r.Status), slices.Index(order, run.Status))]
	for _, s := range run.Sessions {
		s.Index += sessions
		s.Run = run.Run
		r.Sessions = append(r.Sessions, s)
	}
	for _, p := range run.Preconditions {
		p.Session += sessions
		r.Preconditions = append(r.Preconditions, p)
	}
	for _, d := range run.Departures {
		r.Departures = appendNew(r.Departures, d)
	}
	for i, c := range run.Cases {
		if i == len(r.Cases) {
			r.Cases = append(r.Cases, Case{ID: c.ID, Keys: c.Keys, Baseline: c.Baseline, Target: c.Target})
		}
		to := &r.Cases[i]
		if c.Status == Done {
			to.Target = c.Target
		}
		for _, cr := range c.Rounds {
			cr.Round += rounds
			to.Rounds = append(to.Rounds, cr)
		}
		for _, st := range c.Steps {
			st.Round += rounds
			st.Session += sessions
			to.Steps = append(to.Steps, st)
		}
		for _, w := range c.Warnings {
			to.Warnings = appendNew(to.Warnings, w)
		}
	}
}

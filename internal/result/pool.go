package result

import (
	"cmp"
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
		for _, before := range runs[:i+1] {
			if r.Run == before.Run {
				return nil, fmt.Errorf("pooling runs: %q is given twice: %w", r.Run, ErrNotPoolable)
			}
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
	ids := make([]string, len(runs))
	for i, r := range runs {
		ids[i] = r.Run
		out.addRun(r)
	}
	out.Run = strings.Join(ids, "+")
	out.mergeWarnings(runs)
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
	machine := func(s Session) string { return s.Host.Model + " " + s.Host.CPU + " " + s.Host.Arch }
	system := func(s Session) string { return s.Host.OS + " " + s.Host.OSVersion }
	engine := func(s Session) string { return s.Engine.Name + " " + s.Engine.Vendor + " " + s.Engine.Version }
	for _, x := range a.Sessions {
		for _, y := range b.Sessions {
			if what := cmp.Or(
				unequal("machine", machine(x), machine(y)), unequal("system", system(x), system(y)),
				unequal("engine", engine(x), engine(y)),
			); what != "" {
				return what
			}
		}
	}
	for i, c := range b.Cases {
		if i >= len(a.Cases) || a.Cases[i].ID != c.ID {
			return fmt.Sprintf("case %q is not in both", c.ID)
		}
		if x, y := a.Cases[i].Target, c.Target; x != y && a.Cases[i].Status == Done && c.Status == Done {
			return fmt.Sprintf("case %q was not made the same (%+v and %+v)", c.ID, x, y)
		}
	}
	if len(a.Cases) != len(b.Cases) {
		return fmt.Sprintf("%d cases in one and %d in the other", len(a.Cases), len(b.Cases))
	}
	return ""
}

// unequal is a difference between two runs, "" if the values are equal.
func unequal(what, a, b string) string {
	if a == b {
		return ""
	}
	return fmt.Sprintf("the %s is %q in one and %q in the other", what, strings.TrimSpace(a), strings.TrimSpace(b))
}

// addRun appends the rounds of one run.
func (r *Result) addRun(run *Result) {
	rounds, sessions := r.Rounds, 0
	for _, s := range r.Sessions {
		sessions = max(sessions, s.Index)
	}
	r.Runs = append(r.Runs, PooledRun{Run: run.Run, Status: run.Status, First: rounds + 1, Last: rounds + run.Rounds})
	r.Rounds += run.Rounds
	if worse(run.Status, r.Status) {
		r.Status = run.Status
	}
	for _, s := range run.Sessions {
		s.Index += sessions
		s.Run = run.Run
		r.Sessions = append(r.Sessions, s)
	}
	for _, p := range run.Preconditions {
		p.Session += sessions
		r.Preconditions = append(r.Preconditions, p)
	}
	r.Departures = distinct(append(r.Departures, run.Departures...))
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
			if !slices.Contains(to.Warnings, w) {
				to.Warnings = append(to.Warnings, w)
			}
		}
	}
}

// worse reports whether status a is worse than b.
func worse(a, b string) bool {
	order := []string{Done, Skipped, Failed, Unfinished}
	return slices.Index(order, a) > slices.Index(order, b)
}

// mergeWarnings adds warnings that all runs have once, and others with their
// run.
func (r *Result) mergeWarnings(runs []*Result) {
	for _, run := range runs {
		for _, w := range run.Warnings {
			if slices.ContainsFunc(runs, func(o *Result) bool { return !slices.Contains(o.Warnings, w) }) {
				w.Text = "run " + run.Run + ": " + w.Text
			}
			if !slices.Contains(r.Warnings, w) {
				r.Warnings = append(r.Warnings, w)
			}
		}
	}
}

package result

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"
)

// PooledRun is one of the runs that a pooled result was made of, with the rounds
// that are its own.
type PooledRun struct {
	Run    string `json:"run"`
	Status string `json:"status"`
	First  int    `json:"first_round"`
	Last   int    `json:"last_round"`
}

// ErrNotPoolable is returned by [Pool] for runs that are not repetitions of one another.
var ErrNotPoolable = errors.New("they are no repetitions of one another")

// Pool puts folded runs of one plan side by side as one result: rounds and sessions
// are numbered on, each run keeps its own ([Result.Runs]), without averages.
// Conclusions stay empty, as after [Fold]. The runs have to agree in the digest of
// the plan, in machine, system and engine, and in what was made; a run cannot
// be there twice. Whatever else differs would hide in an average.
func Pool(runs []*Result) (*Result, error) {
	if len(runs) < 2 {
		return nil, fmt.Errorf("pooling runs: got %d of them, need 2 or more", len(runs))
	}
	first := runs[0]
	for i, r := range runs[1:] {
		for _, before := range runs[:i+1] {
			if r.Run == before.Run {
				return nil, fmt.Errorf("pooling runs: %q is given twice: %w", r.Run, ErrNotPoolable)
			}
		}
		if what := differs(first, r); what != "" {
			return nil, &Error{Doing: "pooling run " + quote(first.Run) + " with", File: r.Run, Err: fmt.Errorf("%s: %w", what, ErrNotPoolable),
				Hint: "render each by itself; a repetition is made by `dmgbench run` of the first run's own plan.toml"}
		}
	}
	out := &Result{Schema: SchemaVersion, Tool: first.Tool, Plan: first.Plan, Seed: first.Seed, Status: Done}
	if first.Auto != nil { // one digest, and so one way to find the number; what each run decided stands in its own result
		a := *first.Auto
		a.Decisions = nil
		out.Auto = &a
	}
	ids := make([]string, len(runs))
	for i, r := range runs {
		ids[i] = r.Run
		out.take(r)
	}
	out.Run = strings.Join(ids, "+")
	out.shareWarnings(runs)
	for i := range out.Cases {
		c := &out.Cases[i]
		c.Status, c.Reason = verdict(c.Rounds, out.Rounds)
	}
	return out, nil
}

func quote(s string) string { return fmt.Sprintf("%q", s) }

// differs is in what two runs are not the same experiment, "" if they are.
func differs(a, b *Result) string {
	if a.Plan.Digest != b.Plan.Digest {
		return fmt.Sprintf("plan %q (SHA-256 %.12s) and plan %q (SHA-256 %.12s) are not the same as executed",
			a.Plan.Name, a.Plan.Digest, b.Plan.Name, b.Plan.Digest)
	}
	for _, x := range a.Sessions {
		for _, y := range b.Sessions {
			if what := cmp.Or(
				unlike("machine", x.Host.Model+" "+x.Host.CPU+" "+x.Host.Arch, y.Host.Model+" "+y.Host.CPU+" "+y.Host.Arch),
				unlike("system", x.Host.OS+" "+x.Host.OSVersion, y.Host.OS+" "+y.Host.OSVersion),
				unlike("engine", x.Engine.Name+" "+x.Engine.Vendor+" "+x.Engine.Version, y.Engine.Name+" "+y.Engine.Vendor+" "+y.Engine.Version),
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
			return fmt.Sprintf("case %q was not made alike (%+v and %+v)", c.ID, x, y)
		}
	}
	if len(a.Cases) != len(b.Cases) {
		return fmt.Sprintf("%d cases in one and %d in the other", len(a.Cases), len(b.Cases))
	}
	return ""
}

func unlike(what, a, b string) string {
	if a == b {
		return ""
	}
	return fmt.Sprintf("the %s is %q in one and %q in the other", what, strings.TrimSpace(a), strings.TrimSpace(b))
}

// take appends the rounds of one run.
func (r *Result) take(run *Result) {
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

// shareWarnings keeps a warning that all runs have once, and names the run of any other.
func (r *Result) shareWarnings(runs []*Result) {
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

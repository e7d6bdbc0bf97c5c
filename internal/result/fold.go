package result

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
)

// Fold makes the result of a journal: the cases in plan order with the steps of
// all their rounds, sessions, deviations and warnings. Conclusions stay empty;
// the analysis adds them. The same records always give the same result.
//
// Of several attempts at a case-round one counts, see [State.Final]; the result
// omits the steps of the others. Without a better attempt it has the steps of
// an interrupted or failed round, for people to see; [Case.Counts] reports that
// they do not count.
func Fold(recs []Record) (*Result, error) {
	s, err := Replay(recs)
	if err != nil {
		return nil, fmt.Errorf("folding the journal: %w", err)
	}
	r := &Result{
		Schema: SchemaVersion, Tool: s.Run.Tool, Run: s.Run.ID, Status: Unfinished, Plan: s.Run.Plan, Seed: s.Run.Seed,
		Rounds: s.rounds(), Sessions: s.Sessions, Preconditions: s.Preconditions,
	}
	for _, d := range s.Departures {
		r.Departures = appendNew(r.Departures, d)
	}
	if s.Run.Auto != nil {
		a := *s.Run.Auto
		a.Decisions, r.Auto = slices.Clone(s.Looks), &a
	}
	if s.Ended != nil {
		r.Status = s.Ended.Status
	}
	final := s.finals()
	for _, pc := range s.Run.Cases {
		c := Case{ID: pc.ID, Keys: pc.Keys, Baseline: pc.Baseline, Target: pc.Target}
		for _, round := range slices.Sorted(maps.Keys(final[pc.ID])) {
			c.addAttempt(final[pc.ID][round])
		}
		c.Status, c.Reason = caseStatus(c.Rounds, r.Rounds)
		r.Cases = append(r.Cases, c)
	}
	for _, w := range s.Warnings {
		list := &r.Warnings
		if i := slices.IndexFunc(r.Cases, func(c Case) bool { return c.ID == w.Case }); i >= 0 {
			list = &r.Cases[i].Warnings
		}
		*list = appendNew(*list, w.Warning)
	}
	return r, nil
}

// finals are the attempts that count, by case and round.
func (s *State) finals() map[string]map[int]*Attempt {
	best := map[string]map[int]*Attempt{}
	for _, a := range s.Attempts {
		rounds := best[a.Start.Case]
		if rounds == nil {
			rounds = map[int]*Attempt{}
			best[a.Start.Case] = rounds
		}
		if old := rounds[a.Start.Round]; old == nil || a.rank() >= old.rank() {
			rounds[a.Start.Round] = a
		}
	}
	return best
}

// addAttempt adds a round with its steps. An interrupted one gets a reason.
func (c *Case) addAttempt(a *Attempt) {
	round := CaseRound{Round: a.Start.Round, Status: Discarded, Reason: interrupted + "between two steps"}
	if b := a.Started; b != nil {
		round.Reason = fmt.Sprintf(interrupted+"in step %d (%s)", b.Index, strings.TrimSpace(b.Do+" "+b.Phase))
	}
	if a.Start.Target != (Target{}) {
		c.Target = a.Start.Target
	}
	if end := a.End; end != nil {
		round.Status, round.Reason = end.Status, end.Reason
		c.Target = *cmp.Or(end.Target, &c.Target) // as made
	}
	c.Rounds, c.Steps = append(c.Rounds, round), append(c.Steps, a.Steps...)
}

// interrupted is the start of the reason of a round that resume may still
// measure.
const interrupted = "interrupted "

// NotFinished is the [Result.DisplayStatus] of a case that resume will measure.
const NotFinished = "not finished"

// Outcome is the status of a run with these cases: [Failed] if one failed or
// was discarded, [Skipped] if all cases or all images were skipped, else
// [Done].
func (r *Result) Outcome() string {
	some := func(is func(c Case) bool) bool { return slices.ContainsFunc(r.Cases, is) }
	isImage := func(c Case) bool { return c.Target.Kind == "image" }
	switch {
	case some(func(c Case) bool { return c.Status == Failed || c.Status == Discarded }):
		return Failed
	case !some(func(c Case) bool { return c.Status != Skipped }),
		some(isImage) && !some(func(c Case) bool { return isImage(c) && c.Status != Skipped }):
		return Skipped
	}
	return Done
}

// Shows reports whether the numbers of a round's steps are shown: those of
// rounds that count and, in a case without such a round, those from before a
// step failed or proved impossible. No verdict uses the latter.
func (c *Case) Shows(round int) bool {
	return c.Counts(round) || !c.Measured() && slices.ContainsFunc(c.Rounds, func(r CaseRound) bool {
		return r.Round == round && (r.Status == Failed || r.Status == Skipped)
	})
}

// Measured reports whether some round of the case counts.
func (c *Case) Measured() bool {
	return slices.ContainsFunc(c.Rounds, func(r CaseRound) bool { return r.Status == Done })
}

// DisplayStatus is the status of a case for people. In a run that has not
// ended, a case that is not measured, or not completely, is [NotFinished]: its
// status is discarded, as no round counts yet, but resume continues it.
func (r *Result) DisplayStatus(c *Case) string {
	if r.Status != Unfinished || c.Status != Discarded {
		return c.Status
	}
	if slices.ContainsFunc(c.Rounds, func(round CaseRound) bool {
		return round.Status == Skipped || round.Status == Discarded && !strings.HasPrefix(round.Reason, interrupted)
	}) {
		return c.Status
	}
	return NotFinished
}

// caseStatus is the status of a case with these rounds: failed if any round
// failed, discarded if any was discarded or is missing, skipped if it was never
// tried, else done.
func caseStatus(rounds []CaseRound, want int) (status, reason string) {
	count := map[string]int{}
	for _, r := range rounds {
		count[r.Status]++
	}
	switch {
	case count[Failed] > 0:
		return Failed, reasons(rounds, Failed)
	case count[Discarded] > 0:
		return Discarded, reasons(rounds, Discarded)
	case count[Skipped] > 0 && count[Done] == 0:
		return Skipped, rounds[0].Reason
	case count[Skipped] > 0:
		return Discarded, reasons(rounds, Skipped)
	case count[Done] == 0:
		return Discarded, "not reached yet"
	case count[Done] < want:
		return Discarded, fmt.Sprintf("only %d of %d rounds were measured", count[Done], want)
	}
	return Done, ""
}

// reasons names the rounds with that status; rounds with the same reason share
// one sentence.
func reasons(rounds []CaseRound, status string) string {
	var texts []string
	which := map[string][]string{}
	for _, r := range rounds {
		if r.Status == status {
			texts, which[r.Reason] = appendNew(texts, r.Reason), append(which[r.Reason], fmt.Sprint(r.Round))
		}
	}
	for i, t := range texts {
		label := []string{"round ", "rounds "}[min(len(which[t])-1, 1)]
		texts[i] = label + strings.Join(which[t], ", ") + ": " + cmp.Or(t, status)
	}
	return strings.Join(texts, "; ")
}

// appendNew appends what the list does not have.
func appendNew[T any](list []T, x T) []T {
	if slices.ContainsFunc(list, func(o T) bool { return reflect.DeepEqual(o, x) }) {
		return list
	}
	return append(list, x)
}

// rounds is how many rounds the run will have, as far as that is known.
func (s *State) rounds() int {
	switch {
	case s.Run.Auto == nil:
		return s.Run.Rounds
	case s.Stopped() != nil:
		return s.Stopped().Round
	}
	n := s.Run.Rounds
	for round := range s.Orders {
		n = max(n, round)
	}
	return n
}

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
	sessions := slices.Concat(a.Sessions, b.Sessions)
	for _, s := range sessions {
		for i, what := range []string{"machine", "system", "engine"} {
			if x, y := facts(sessions[0])[i], facts(s)[i]; x != y {
				return fmt.Sprintf("the %s is %q in one and %q in the other", what, x, y)
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
	if n := len(r.Sessions); n > 0 {
		sessions = r.Sessions[n-1].Index // they ascend
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
			st.FileWarnings = nil // they name the round of the run
			st.Session += sessions
			to.Steps = append(to.Steps, st)
		}
		for _, w := range c.Warnings {
			to.Warnings = appendNew(to.Warnings, w)
		}
	}
}

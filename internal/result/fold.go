package result

import (
	"cmp"
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
		label := "round "
		if len(which[t]) > 1 {
			label = "rounds "
		}
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

package result

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
)

// Fold makes the result of a journal: the cases in plan order with the steps of
// all their rounds, sessions, departures, warnings. Conclusions stay empty; the
// analysis adds them. The same records always give the same result.
//
// Of several attempts at a case-round one counts, see [State.Final]; the steps of
// the others are left out. Where there is no better attempt, the steps of an interrupted
// or failed round are kept for people to see, and [Case.Counts] reports that they do
// not count.
func Fold(recs []Record) (*Result, error) {
	s, err := Replay(recs)
	if err != nil {
		return nil, fmt.Errorf("folding the journal: %w", err)
	}
	r := &Result{
		Schema: SchemaVersion, Tool: s.Run.Tool, Run: s.Run.ID, Status: Unfinished, Plan: s.Run.Plan,
		Seed: s.Run.Seed, Rounds: s.rounds(), Sessions: s.Sessions, Departures: distinct(s.Departures),
	}
	r.Auto, r.Preconditions = s.found(), s.Preconditions
	if s.Ended != nil {
		r.Status = s.Ended.Status
	}
	final := s.finals()
	for _, pc := range s.Run.Cases {
		r.Cases = append(r.Cases, s.foldCase(pc, final[pc.ID]))
	}
	for _, w := range s.Warnings {
		list := &r.Warnings
		if i := slices.IndexFunc(r.Cases, func(c Case) bool { return c.ID == w.Case }); i >= 0 {
			list = &r.Cases[i].Warnings
		}
		if !slices.Contains(*list, w.Warning) {
			*list = append(*list, w.Warning)
		}
	}
	return r, nil
}

// finals are the attempts that count, by case, in order of rounds.
func (s *State) finals() map[string][]*Attempt {
	best := map[caseRound]*Attempt{}
	for _, a := range s.Attempts {
		key := caseRound{a.Start.Case, a.Start.Round}
		best[key] = better(best[key], a)
	}
	final := map[string][]*Attempt{}
	for key, a := range best {
		final[key.id] = append(final[key.id], a)
	}
	for _, list := range final {
		slices.SortFunc(list, func(a, b *Attempt) int { return cmp.Compare(a.Start.Round, b.Start.Round) })
	}
	return final
}

type caseRound struct {
	id    string
	round int
}

func (s *State) foldCase(pc PlanCase, attempts []*Attempt) Case {
	c := Case{ID: pc.ID, Keys: pc.Keys, Baseline: pc.Baseline, Target: pc.Target}
	for _, a := range attempts {
		c.Rounds = append(c.Rounds, a.outcome())
		c.Steps = append(c.Steps, a.Steps...)
		if t := a.made(); t != nil {
			c.Target = *t
		}
	}
	c.Status, c.Reason = verdict(c.Rounds, s.rounds())
	return c
}

// made is what is known best of the target, nil if the attempt never started.
func (a *Attempt) made() *Target {
	switch {
	case a.End != nil && a.End.Target != nil:
		return a.End.Target
	case a.Start.Target != Target{}:
		return &a.Start.Target
	}
	return nil
}

// outcome is how the round ended, with a reason for an interrupted one.
func (a *Attempt) outcome() CaseRound {
	if a.End != nil {
		return CaseRound{Round: a.Start.Round, Status: a.End.Status, Reason: a.End.Reason}
	}
	where := "between two steps"
	if b := a.Begun; b != nil {
		where = fmt.Sprintf("in step %d (%s)", b.Index, strings.TrimSpace(b.Do+" "+b.Phase))
	}
	return CaseRound{Round: a.Start.Round, Status: Discarded, Reason: interrupted + where}
}

// interrupted is the start of the reason of a round that somebody may still finish.
const interrupted = "interrupted "

// NotFinished is the [Result.DisplayStatus] of a case that is still to be measured.
const NotFinished = "not finished"

// Outcome is the status of a run with these cases: [Failed] where one failed or was discarded, [Skipped] where no
// image was measured though there were some to measure, or no case, else [Done].
func (r *Result) Outcome() string {
	images, skipped, bare := 0, 0, 0
	for i := range r.Cases {
		c := &r.Cases[i]
		switch c.Status {
		case Failed, Discarded:
			return Failed
		case Skipped:
			skipped++
		}
		if c.Target.Kind == "image" {
			images++
			if c.Status == Skipped {
				bare++
			}
		}
	}
	if skipped == len(r.Cases) || images > 0 && bare == images {
		return Skipped
	}
	return Done
}

// Shows reports whether the numbers of a round's steps are shown: those of rounds that count and, of a
// case that has none, what was measured before a step failed or turned out to be impossible. No
// verdict rests on the latter.
func (c *Case) Shows(round int) bool {
	for _, r := range c.Rounds {
		if r.Round == round && (r.Status == Failed || r.Status == Skipped) {
			return !c.Measured()
		}
	}
	return c.Counts(round)
}

// Measured reports whether some round of the case counts.
func (c *Case) Measured() bool {
	return slices.ContainsFunc(c.Rounds, func(r CaseRound) bool { return r.Status == Done })
}

// DisplayStatus is the status of a case in words for people. In a run that has not ended a case
// that it has not got to, or not to the end of, is [NotFinished]: its status is discarded,
// as no round counts yet, but resume continues it.
func (r *Result) DisplayStatus(c *Case) string {
	if r.Status != Unfinished || c.Status != Discarded {
		return c.Status
	}
	for _, round := range c.Rounds {
		if round.Status == Skipped || round.Status == Discarded && !strings.HasPrefix(round.Reason, interrupted) {
			return c.Status
		}
	}
	return NotFinished
}

// verdict is the status of a case: failed if any round failed, discarded if any
// was discarded or is missing, skipped if it was never tried, done if all are.
func verdict(rounds []CaseRound, want int) (status, reason string) {
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

// reasons names the rounds that ended like this; rounds with the same reason share one sentence.
func reasons(rounds []CaseRound, status string) string {
	var texts []string
	which := map[string][]string{}
	for _, r := range rounds {
		if r.Status != status {
			continue
		}
		if which[r.Reason] == nil {
			texts = append(texts, r.Reason)
		}
		which[r.Reason] = append(which[r.Reason], fmt.Sprint(r.Round))
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

// distinct keeps the first of equal departures.
func distinct(list []Departure) []Departure {
	var out []Departure
	for _, d := range list {
		if !slices.ContainsFunc(out, func(o Departure) bool {
			return o.Kind == d.Kind && o.Text == d.Text && slices.Equal(o.Cases, d.Cases)
		}) {
			out = append(out, d)
		}
	}
	return out
}

package runner

import (
	"fmt"
	"math"
	"slices"
	"time"

	"dmgbench/internal/analysis"
	"dmgbench/internal/plan"
	"dmgbench/internal/result"
	"dmgbench/internal/system/units"
)

// TooLittleError means that max_written of rounds = "auto" does not allow a
// single round.
type TooLittleError struct{ Need, Allowed units.Bytes }

// Error names both sizes.
func (e *TooLittleError) Error() string {
	return fmt.Sprintf("planning the rounds: one writes %s, and max_written allows %s",
		e.Need.Human(), e.Allowed.Human())
}

// bytesPerRound is how many bytes one round writes, with canaries.
func bytesPerRound(p *plan.Plan) (sum int64) {
	for _, c := range p.Cases() {
		n := int64(plan.Estimate(p, c).BytesWritten)
		if p.Run.Canary {
			n += canaryFiles * canaryBytes
		}
		sum += min(n, math.MaxInt64-sum)
	}
	return sum
}

// addEarlierWrites adds what earlier sessions wrote, with attempts that do not
// count.
func (r *run) addEarlierWrites() {
	for _, p := range r.state.Preconditions {
		for _, s := range p.Samples {
			r.writtenByAll += s.Bytes
		}
	}
	for _, a := range r.state.Attempts {
		for i := range a.Steps {
			r.writtenByAll += writtenBy(&a.Steps[i])
		}
	}
}

// elapsedAll is how long all sessions took so far; a lost session counts until
// its last record.
func (r *run) elapsedAll() time.Duration {
	sum := time.Duration(r.now())
	for _, s := range r.state.Sessions {
		sum += max(0, s.Finished.Sub(s.Started))
	}
	return sum
}

// needsRound reports whether a round is run. With rounds = "auto" the journal
// has the decision after the round before; a missing one is made now, from the
// journal.
func (r *run) needsRound(round int) (bool, error) {
	if r.auto == nil {
		return round <= r.p.Run.Rounds, nil
	}
	looks := r.auto.Looks
	r.goal = looks[len(looks)-1]
	if i := slices.IndexFunc(looks, func(n int) bool { return n >= round }); i >= 0 {
		r.goal = looks[i]
	}
	if round == 1 || r.state.Orders[round] != nil {
		return true, nil
	}
	if i := slices.IndexFunc(r.state.Looks, func(l result.Look) bool { return l.Round == round-1 }); i >= 0 {
		return r.state.Looks[i].Stop == "", nil
	}
	look, due, err := r.decideRounds(round - 1)
	if err != nil || !due {
		return err == nil, err
	}
	r.state.Looks = append(r.state.Looks, look)
	if look.Stop == "" { // the reason of the end is part of the report
		r.c.Progress.Message(look.Text)
	}
	return look.Stop == "", r.append(result.Record{Look: &look})
}

// decideRounds judges the run after so many rounds. due reports that a decision
// is needed: the plan looks after this round, or a limit is reached.
func (r *run) decideRounds(done int) (look result.Look, due bool, err error) {
	a := r.auto
	look = result.Look{Round: done, ElapsedNS: int64(r.elapsedAll()), Written: r.writtenByAll}
	// Limits come before precision: a run that reaches one ends here in any
	// case, and the text reports how precise it is.
	switch last := a.Looks[len(a.Looks)-1]; {
	case done >= last && last < a.MaxRounds, a.MaxWritten > 0 && r.writtenByAll+bytesPerRound(r.p) > a.MaxWritten:
		look.Stop = result.StopWritten
	case done >= last:
		look.Stop = result.StopRounds
	case a.MaxTimeNS > 0 && look.ElapsedNS+look.ElapsedNS/int64(done) > a.MaxTimeNS:
		look.Stop = result.StopTime
	}
	if look.Stop == "" && !slices.Contains(a.Looks, done) {
		return look, false, nil
	}
	// From the journal, not from memory: a resumed run makes the same decision.
	res, err := r.foldJournal()
	if err != nil {
		return look, false, err
	}
	if look.Judged, look.Wide, err = analysis.Widths(r.p, res); err != nil {
		return look, false, err
	}
	switch {
	case look.Judged == 0:
		look.Stop = result.StopNothing
	case len(look.Wide) == 0:
		look.Stop = result.StopPrecise
	}
	look.Text = describeLook(look, a)
	return look, true, nil
}

// lookTexts are the lines about decisions by Look.Stop. Their values are the
// rounds, the precision, how wide the intervals are, and the limits of rounds,
// time and bytes.
var lookTexts = map[string]string{
	"":                 "after %[1]s %[3]s: continuing",
	result.StopPrecise: "ended after %[1]s: every interval is within ± %[2]s",
	result.StopNothing: "ended after %[1]s: no case gave a number that more rounds could make more certain",
	result.StopRounds:  "ended after %[1]s: no more than %[4]d are allowed, and %[3]s",
	result.StopTime:    "ended after %[1]s: another would end after the limit of %[5]s, and %[3]s",
	result.StopWritten: "ended after %[1]s: another would exceed the limit of %[6]s written, and %[3]s",
}

// describeLook is one line about a decision.
func describeLook(l result.Look, a *result.AutoRounds) string {
	want, widest := units.Share(a.Precision), 0.0
	for _, w := range l.Wide {
		widest = max(widest, w.Half)
	}
	wide := fmt.Sprintf("%d of %d intervals are wider than ± %s", len(l.Wide), l.Judged, want)
	if widest > 0 {
		wide += fmt.Sprintf(", the widest ± %.1f %%", 100*widest)
	}
	return fmt.Sprintf(lookTexts[l.Stop], units.Count(l.Round, "round"), want, wide, a.MaxRounds,
		units.Duration(a.MaxTimeNS).Human(), units.Bytes(a.MaxWritten).Human())
}

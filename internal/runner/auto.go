package runner

import (
	"fmt"
	"math"
	"slices"
	"time"

	"dmgbench/internal/analysis"
	"dmgbench/internal/plan"
	"dmgbench/internal/result"
	"dmgbench/internal/stats"
	"dmgbench/internal/units"
)

// TooLittleError says that a limit of rounds = "auto" does not allow a single round.
type TooLittleError struct{ Need, Allowed units.Bytes }

// Error names both sizes.
func (e *TooLittleError) Error() string {
	return fmt.Sprintf("planning the rounds: one writes %s, and max_written allows %s", e.Need.Human(), e.Allowed.Human())
}

// Auto is how the number of rounds of a plan will be found out, nil where it is
// fixed. It follows from the plan alone: the looks have to stand before the first
// number is seen. The error is a [*TooLittleError].
func Auto(p *plan.Plan) (*result.AutoRounds, error) {
	o := p.Run
	if !o.Auto {
		return nil, nil
	}
	most, each := o.MaxRounds, roundWrites(p)
	if o.MaxWritten > 0 && each > 0 {
		most = int(min(int64(most), int64(o.MaxWritten)/each))
		if most < 1 {
			return nil, &TooLittleError{Need: units.Bytes(each), Allowed: o.MaxWritten}
		}
	}
	return &result.AutoRounds{Precision: float64(o.Precision), Looks: stats.Looks(most), MaxRounds: o.MaxRounds,
		MaxTimeNS: int64(o.MaxTime), MaxWritten: int64(o.MaxWritten)}, nil
}

// roundWrites is how many bytes one round writes, canaries included.
func roundWrites(p *plan.Plan) (sum int64) {
	for _, c := range p.Cases() {
		n := int64(plan.Estimate(p, c).BytesWritten)
		if p.Run.Canary {
			n += canaryFiles * canaryBytes
		}
		sum += min(n, math.MaxInt64-sum)
	}
	return sum
}

// wrote is how many bytes a step has written, and a canary's write.
func wrote(st *result.Step) (sum int64) {
	switch {
	case st.Stream != nil:
		return st.Stream.Out
	case st.Do == "write" || st.Do == "copy" || st.Do == "canary" && st.Op == "write":
		if st.Span != nil {
			return st.Span.Bytes
		}
		for _, s := range st.Samples {
			sum += s.Bytes
		}
	}
	return sum
}

// recallSpent adds up what earlier sessions have written, attempts that do not count included.
func (r *run) recallSpent() {
	for _, p := range r.state.Preconditions {
		for _, s := range p.Samples {
			r.spent += s.Bytes
		}
	}
	for _, a := range r.state.Attempts {
		for i := range a.Steps {
			r.spent += wrote(&a.Steps[i])
		}
	}
}

// elapsedAll is how long all sessions took so far; of a lost one, to its last sign of life.
func (r *run) elapsedAll() time.Duration {
	sum := time.Duration(r.now())
	for _, s := range r.state.Sessions {
		sum += max(0, s.Finished.Sub(s.Started))
	}
	return sum
}

// another says whether a round is run. Where the number is left to the run, the
// decision that was taken behind the round before is in the journal; one that is
// missing there is taken now, from the journal.
func (r *run) another(round int) (bool, error) {
	if r.auto == nil {
		return round <= r.p.Run.Rounds, nil
	}
	r.aim = r.auto.Looks[len(r.auto.Looks)-1]
	for _, n := range r.auto.Looks {
		if n >= round {
			r.aim = n
			break
		}
	}
	if round == 1 || r.state.Orders[round] != nil {
		return true, nil
	}
	if i := slices.IndexFunc(r.state.Looks, func(l result.Look) bool { return l.Round == round-1 }); i >= 0 {
		return r.state.Looks[i].Stop == "", nil
	}
	look, due, err := r.decide(round - 1)
	if err != nil || !due {
		return err == nil, err
	}
	r.state.Looks = append(r.state.Looks, look)
	if look.Stop == "" { // how it ended is said at the end
		r.c.Progress.Message(look.Text)
	}
	return look.Stop == "", r.append(result.Record{Kind: result.KindLook, Look: &look})
}

// decide looks at the run after so many rounds. due says that there is something to
// decide: the round is one of the looks, or a limit is reached.
func (r *run) decide(done int) (look result.Look, due bool, err error) {
	a := r.auto
	look = result.Look{Round: done, ElapsedNS: int64(r.elapsedAll()), Written: r.spent}
	switch last := a.Looks[len(a.Looks)-1]; {
	case done >= last && last < a.MaxRounds, a.MaxWritten > 0 && r.spent+roundWrites(r.p) > a.MaxWritten:
		look.Stop = result.StopWritten
	case done >= last:
		look.Stop = result.StopRounds
	case a.MaxTimeNS > 0 && look.ElapsedNS+look.ElapsedNS/int64(done) > a.MaxTimeNS:
		look.Stop = result.StopTime
	}
	if look.Stop == "" && !slices.Contains(a.Looks, done) {
		return look, false, nil
	}
	res, err := r.folded()
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
	look.Text = lookText(look, a)
	return look, true, nil
}

// lookText says a decision in words.
func lookText(l result.Look, a *result.AutoRounds) string {
	want := units.Share(a.Precision).String()
	wide := fmt.Sprintf("%d of %d intervals are wider than ± %s", len(l.Wide), l.Judged, want)
	if half := widest(l.Wide); half > 0 {
		wide += fmt.Sprintf(", the widest ± %.1f %%", 100*half)
	}
	head := "ended after " + count(l.Round, "round") + ": "
	switch l.Stop {
	case result.StopPrecise:
		return fmt.Sprintf("%severy interval is within ± %s", head, want)
	case result.StopNothing:
		return head + "no case gave a number that more of them could make more certain"
	case result.StopRounds:
		return fmt.Sprintf("%sno more than %d are allowed, and %s", head, a.MaxRounds, wide)
	case result.StopTime:
		return fmt.Sprintf("%sanother would end beyond %s, and %s", head, units.Duration(a.MaxTimeNS).Human(), wide)
	case result.StopWritten:
		return fmt.Sprintf("%sanother would write beyond %s, and %s", head, units.Bytes(a.MaxWritten).Human(), wide)
	}
	return fmt.Sprintf("after %s %s: going on", count(l.Round, "round"), wide)
}

func widest(list []result.WideInterval) (half float64) {
	for _, w := range list {
		half = max(half, w.Half)
	}
	return half
}

// folded is the result of the journal as it is now.
func (r *run) folded() (*result.Result, error) {
	if err := r.dir.Flush(); err != nil {
		return nil, err
	}
	recs, err := r.dir.Journal()
	if err != nil {
		return nil, err
	}
	res, err := result.Fold(recs)
	if err != nil {
		return nil, fmt.Errorf("folding the journal: %w", err)
	}
	return res, nil
}

package runner

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"syscall"

	"dmgbench/internal/engine"
	"dmgbench/internal/plan"
	"dmgbench/internal/result"
)

// pausedError ends a session on purpose: the user has to do something.
type pausedError struct{ message string }

func (e *pausedError) Error() string { return "paused: " + e.message }

// caseRoundKey names one case in one round.
type caseRoundKey struct {
	id    string
	round int
}

// slept is how long a machine may seem to sleep from clock reading alone.
const slept = int64(1e9)

// rounds runs what is left to do: manual settings outermost, then rounds, then cases in shuffled order.
func (r *run) rounds(ctx context.Context) error {
	if r.state == nil {
		r.state = &result.State{Orders: map[int][]string{}}
	}
	r.done = map[caseRoundKey]bool{}
	if err := r.clearLeftovers(ctx); err != nil {
		return err
	}
	r.recallKept(ctx)
	if r.session > 1 && !r.holding { // what is held or kept already takes its space
		c := r.c
		c.Keep = false
		if err := fits(c); err != nil {
			return err
		}
	}
	for _, c := range r.cases {
		t := plan.Estimate(r.p, c)
		r.toWrite += int64(t.BytesWritten)
	}
	r.forecast = newForecast(r.p, r.cases)
	r.aim = r.p.Run.Rounds
	r.recallSpent()
	if p := r.state.Paused; p == nil || p.Container == "" {
		if err := r.precondition(ctx); errors.Is(err, syscall.ENOSPC) {
			return &stopError{err}
		} else if err != nil {
			return err
		}
	}
	if p := r.state.Paused; p != nil && p.Case != "" {
		if err := r.caseRound(ctx, p.Case, p.Round, p); err != nil {
			return err
		}
	}
	for _, turned := range r.manual() {
		if err := r.turn(turned); err != nil {
			return err
		}
		for round := 1; ; round++ {
			if more, err := r.another(round); err != nil {
				return err
			} else if !more {
				break
			}
			if err := r.round(ctx, round, turned); err != nil {
				return err
			}
		}
	}
	return nil
}

// round runs the cases of one round that have not been measured yet.
func (r *run) round(ctx context.Context, round int, turned []plan.KeyValue) error {
	if r.state.Orders[round] == nil {
		r.state.Orders[round] = r.order(round)
		rec := result.Record{Kind: result.KindRound, Round: &result.RoundStart{Round: round, Order: r.state.Orders[round]}}
		if err := r.append(rec); err != nil {
			return err
		}
	}
	for _, id := range r.state.Orders[round] {
		c := r.find(id)
		if c == nil || !slices.Equal(c.Settings.Turned, turned) {
			continue
		}
		if r.done[caseRoundKey{id, round}] {
			continue // measured behind the pause that this session began with
		}
		if r.ended(id, round) {
			r.finished++
			r.forecast.finish(id)
			continue
		}
		if err := r.caseRound(ctx, id, round, nil); err != nil {
			return err
		}
	}
	return nil
}

func (r *run) find(id string) *plan.Case {
	for i := range r.cases {
		if r.cases[i].ID == id {
			return &r.cases[i]
		}
	}
	return nil
}

// manual are the combinations of manual axes in plan order; one empty one where there are none.
func (r *run) manual() [][]plan.KeyValue {
	var out [][]plan.KeyValue
	for _, c := range r.cases {
		if !slices.ContainsFunc(out, func(t []plan.KeyValue) bool { return slices.Equal(t, c.Settings.Turned) }) {
			out = append(out, c.Settings.Turned)
		}
	}
	return out
}

// turn makes sure that the user has turned every manual axis, and pauses the run if not.
func (r *run) turn(want []plan.KeyValue) error {
	if r.groupDone(want) {
		return nil
	}
	for _, kv := range want {
		for _, m := range r.p.Manual {
			if m.Name != kv.Key || r.turned(m, kv.Value) {
				continue
			}
			text := fmt.Sprintf("%s, then go on with: dmgbench resume %s", instruction(m, kv.Value), r.dir.Path())
			rec := result.Record{Kind: result.KindPause, Pause: &result.Pause{Message: text, Key: kv.Key, Value: kv.Value}}
			if err := errors.Join(r.append(rec), r.dir.Sync()); err != nil {
				return err
			}
			return &pausedError{text}
		}
	}
	return nil
}

func (r *run) groupDone(turned []plan.KeyValue) bool {
	for _, c := range r.cases {
		for round := 1; round <= r.p.Run.Rounds; round++ {
			if slices.Equal(c.Settings.Turned, turned) && !r.ended(c.ID, round) {
				return false
			}
		}
	}
	return true
}

// turned says whether a manual axis stands at value: seen on the host where the
// plan says how, else because the user resumed behind the pause that asked for it.
func (r *run) turned(m plan.Manual, value string) bool {
	if _, err := strconv.ParseInt(value, 10, 64); err == nil {
		switch m.Check {
		case "cpus":
			return strconv.Itoa(r.c.Host.CPUs) == value
		case "memory":
			return strconv.FormatInt(r.c.Host.Memory, 10) == value
		}
	}
	v, asked := r.asked[m.Name]
	return asked && v == value
}

// askedFor are the manual settings that pauses have asked for, by axis: whoever
// resumes behind a pause has turned it. Where a session was interrupted, nobody
// knows how the axes stand now, and all is asked anew.
func askedFor(recs []result.Record) map[string]string {
	asked, paused := map[string]string{}, true
	for _, rec := range recs {
		switch {
		case rec.Session != nil && !paused:
			clear(asked)
		case rec.Session != nil:
			paused = false
		case rec.Pause != nil && rec.Pause.Key != "":
			asked[rec.Pause.Key] = rec.Pause.Value
		case rec.SessionEnd != nil:
			paused = rec.SessionEnd.End == result.Paused
		}
	}
	if !paused {
		clear(asked)
	}
	return asked
}

// caseRound runs one case in one round, once more if the machine slept in the middle of it.
func (r *run) caseRound(ctx context.Context, id string, round int, pause *result.Pause) error {
	c := r.find(id)
	if c == nil {
		return fmt.Errorf("resuming: the plan has no case %q", id)
	}
	status, reason, made, err := r.attempt(ctx, *c, round, pause)
	if errors.Is(err, errSlept) {
		r.warn(id, "slept", "the machine slept during this case; it was measured again")
		status, reason, made, err = r.attempt(ctx, *c, round, nil)
	}
	if errors.Is(err, errSlept) {
		status, reason, err = result.Discarded, "the machine slept twice while this case was measured", nil
	}
	if err != nil {
		return err
	}
	r.finished++
	r.forecast.finish(id)
	r.done[caseRoundKey{id, round}] = true
	r.holding = false
	if status == result.Failed || status == result.Discarded {
		r.c.Progress.Failure(Failure{Case: id, Round: round, Status: status, Reason: reason})
	}
	end := result.Record{Kind: result.KindCaseEnd, CaseEnd: &result.CaseEnd{Case: id, Round: round, Status: status, Reason: reason, Target: made}}
	return errors.Join(r.append(end), r.dir.Sync())
}

var errSlept = errors.New("the machine slept")

// attempt measures one case-round. The error stops the run; what only concerns the case is its status and reason.
func (r *run) attempt(ctx context.Context, c plan.Case, round int, pause *result.Pause) (status, reason string, made *result.Target, err error) {
	eng, spec := r.engineFor(c.Settings), specOf(c.Settings)
	if u := unsupported(eng, c); u != nil { // known before anything is written
		return result.Skipped, engine.Advised(u), nil, nil
	}
	x, err := newCaseRun(r, c, round, eng, spec)
	if err != nil {
		return "", "", nil, err
	}
	if pause == nil {
		start := &result.CaseStart{Case: c.ID, Round: round, Target: target(c.Settings), Container: x.base, Place: c.Settings.Place}
		if err := r.append(result.Record{Kind: result.KindCaseStart, CaseStart: start}); err != nil {
			return "", "", nil, err
		}
	}
	caseErr := x.run(ctx, pause)
	made = x.made()
	full := x.filled(caseErr)
	var paused *pausedError
	if errors.As(caseErr, &paused) {
		return "", "", nil, caseErr
	}
	if ctx.Err() != nil && r.holding && x.main != nil && x.back(context.WithoutCancel(ctx), *pause) == nil {
		return "", "", nil, &pausedError{pause.Message} // nothing was done behind the pause: it still stands
	}
	x.finish()
	if full == "" && caseErr != nil {
		full = x.tight()
	}
	switch {
	case ctx.Err() != nil:
		return "", "", nil, ctx.Err()
	case full != "" && !x.slept(): // whatever is left would fail as well; with more space the run can go on
		return "", "", nil, &stopError{fmt.Errorf("measuring case %q: %s: %w", c.ID, full, caseErr)}
	case errors.As(caseErr, new(*journalError)):
		if r.dir.Sync() != nil { // the disk may have been full of what is removed now
			return "", "", nil, caseErr
		}
		return result.Failed, caseErr.Error(), made, nil
	case x.slept():
		return "", "", nil, errSlept
	case caseErr != nil && x.away() != nil: // whatever is left would fail as well; with its disk the run can go on
		return "", "", nil, &stopError{fmt.Errorf("measuring case %q: %s is there no more: %w", c.ID, x.away().title, caseErr)}
	case errors.As(caseErr, new(*engine.UnsupportedError)):
		return result.Skipped, engine.Advised(caseErr), made, nil
	case caseErr != nil:
		return result.Failed, engine.Advised(caseErr), made, nil
	}
	return result.Done, "", made, nil
}

func (r *run) suspended() int64 {
	if r.c.Suspended == nil {
		return 0
	}
	ns, err := r.c.Suspended()
	if err != nil {
		return 0
	}
	return ns
}

// verdict folds the statuses of all cases into the status of the run.
func (r *run) verdict() (string, error) {
	res, err := r.folded()
	if err != nil {
		return "", err
	}
	return res.Outcome(), nil
}

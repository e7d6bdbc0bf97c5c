package runner

import (
	"slices"
	"time"

	"dmgbench/internal/plan"
	"dmgbench/internal/result"
)

// caseForecast is how long one round of a case takes at the assumed speeds.
type caseForecast struct {
	work []time.Duration // before the first step and until the end of each, without waiting
	wait time.Duration   // that the protocol prescribes
	// waits are what each step waits at least.
	waits []time.Duration
}

// forecast adds up what a run has to do and has done. Work is the time at the
// assumed speeds; progress corrects it by the ratio of the time that the work
// really took.
type forecast struct {
	cases      map[string]caseForecast
	work, wait time.Duration // of one round of all cases
	done       time.Duration // work of the case-rounds that this or an earlier session has finished
	waited     time.Duration // waiting of those
	slept      time.Duration // waiting of the current case-round
}

// newForecast estimates every case of the plan.
func newForecast(p *plan.Plan, cases []plan.Case, v speeds) forecast {
	f := forecast{cases: map[string]caseForecast{}}
	for _, c := range cases {
		cf := caseForecast{work: []time.Duration{0}}
		sum := caseTime
		if p.Run.Canary {
			sum += v.canaryTime()
		}
		for _, w := range plan.Works(p, c) {
			sum += v.step(c, w)
			cf.work, cf.waits = append(cf.work, sum), append(cf.waits, w.Wait.Std())
			cf.wait += w.Wait.Std()
		}
		f.cases[c.ID] = cf
		f.work, f.wait = f.work+sum, f.wait+cf.wait
	}
	return f
}

// finish adds a case-round that has ended, whatever its status.
func (f *forecast) finish(id string) {
	c := f.cases[id]
	f.done, f.waited, f.slept = f.done+c.work[len(c.work)-1], f.waited+c.wait, 0
}

// Forecaster computes the progress of a run from its journal, for processes that
// do not execute it.
type Forecaster struct {
	plan     *plan.Plan
	cases    int
	forecast forecast
}

// NewForecaster estimates the steps of a plan.
func NewForecaster(p *plan.Plan) Forecaster {
	cases := p.Cases()
	return Forecaster{p, len(cases), newForecast(p, cases, speeds{rate: float64(AssumedRate)})}
}

// StatusAt is how far the run has come at a time of day, and how long the
// current step waits at least. It does not know the files of a step that has not
// ended: it assumes that the step is as fast as the run was. Times are of all
// sessions together, so [Status.Left] takes the zero status.
func (fc Forecaster) StatusAt(state *result.State, at time.Time) (s Status, wait time.Duration) {
	f := fc.forecast
	s = Status{Plan: fc.plan.Name, Round: 1, Rounds: fc.plan.Run.Rounds}
	open := &result.Attempt{}
	ended := map[[2]any]bool{} // by case and round
	for _, a := range state.Attempts {
		open, s.Case, s.Round = a, a.Start.Case, a.Start.Round
		key := [2]any{s.Case, s.Round}
		if a.End != nil && !ended[key] && f.cases[s.Case].work != nil { // a retry repeats one that has ended
			ended[key] = true
			f.finish(s.Case)
		}
	}
	s.CaseRound = len(ended)
	if state.Run.Auto != nil {
		s.Rounds = nextLook(state.Run.Auto, s.Round)
	}
	s.OfRounds = fc.cases * s.Rounds
	for i, session := range state.Sessions {
		end := session.Finished
		if i == len(state.Sessions)-1 && session.End == result.Lost {
			end = at // it may still be active
		}
		s.ElapsedNS += int64(max(0, end.Sub(session.Started)))
		if open.StartedAt.Before(session.Started) { // an earlier session was interrupted in the attempt
			open = &result.Attempt{}
		}
	}
	s.OfWorkNS, s.OfWaitNS = int64(f.work)*int64(s.Rounds), int64(f.wait)*int64(s.Rounds)
	if open.End == nil {
		wait = fc.addOpen(&s, &f, open, at)
	}
	s.WorkNS, s.WaitedNS = int64(f.done), int64(f.waited+f.slept)
	return s, wait
}

// addOpen adds the attempt that has not ended to the forecast, and returns how
// long its current step waits at least.
func (fc Forecaster) addOpen(s *Status, f *forecast, open *result.Attempt, at time.Time) (wait time.Duration) {
	own, executed := f.cases[s.Case], len(open.Steps)
	if fc.plan.Run.Canary {
		executed = max(executed-2, 0) // it is recorded as two steps
	}
	executed = min(executed, len(own.waits))
	for _, w := range own.waits[:executed] {
		f.slept += w
	}
	if executed == len(own.waits) {
		return 0
	}
	f.done += own.work[executed]
	if open.Started == nil {
		return 0
	}
	s.Do, s.Phase, wait = open.Started.Do, open.Started.Phase, own.waits[executed]
	took := max(0, at.Sub(open.StartedAt))
	f.slept += min(wait, took)
	// How long the work of the step takes at the speed before it, which Left
	// computes in the same way.
	assumed := assumedWeight * float64(s.OfWorkNS)
	busy := max(0, float64(s.ElapsedNS)-float64(f.waited+f.slept)-float64(took))
	step := float64(own.work[executed+1] - own.work[executed])
	expected := step * (busy + assumed) / (float64(f.done) + assumed)
	f.done += time.Duration(step * min(float64(took-min(wait, took))/max(expected, 1), 0.95))
	return wait
}

// nextLook is the number of rounds after which a run with rounds = "auto" is
// judged next.
func nextLook(auto *result.AutoRounds, round int) int {
	looks := auto.Looks
	if i := slices.IndexFunc(looks, func(n int) bool { return n >= round }); i >= 0 {
		return looks[i]
	}
	return looks[len(looks)-1]
}

package runner

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"dmgbench/internal/plan"
	"dmgbench/internal/result"
)

const forecastPlan = `
schema = 1
title = "Forecast"
[image]
size = "10 GB"
filesystem_preference = ["exFAT"]
[run]
rounds = 2
baseline = false
canary = false
[matrix]
format = ["UDRW", "UDSB"]
[files.one]
sizes = ["1 GB"]
[[protocol]]
steps = [
  { do = "create" },
  { do = "attach" },
  { do = "write", phase = "new", files = "one" },
  { do = "settle", at_least = "10 min" },
]
`

// The steps of one round of a case of the plan at the assumed speeds: folders,
// create and attach, a file of 1 GB at 500 MB/s and at the rate of its data, settle.
const (
	twoSteps   = caseTime + 2*stepTime
	writeOfOne = stepTime + 2*time.Second + 500*time.Millisecond + fileTime
	oneRound   = twoSteps + writeOfOne + stepTime
)

func newForecaster(t *testing.T, changes ...string) (fc Forecaster, first, second string) {
	t.Helper()
	text := forecastPlan
	for i := 0; i < len(changes); i += 2 {
		text = replaceOnce(t, text, changes[i], changes[i+1])
	}
	p, problems := plan.Parse("forecast", []byte(text))
	require.Empty(t, problems.Errors())
	cases := p.Cases()
	return NewForecaster(p), cases[0].ID, cases[1].ID
}

func replaceOnce(t *testing.T, text, old, instead string) string {
	t.Helper()
	before, after, found := strings.Cut(text, old)
	require.True(t, found, old)
	return before + instead + after
}

var dayOne = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

// active is a session without an end that started so long after the first one.
func active(after time.Duration) result.Session {
	return result.Session{Started: dayOne.Add(after), Finished: dayOne.Add(after), End: result.Lost}
}

// attempt is one whose step started at a time of day.
func attempt(id string, round, steps int, started *result.StepStart, at time.Time) *result.Attempt {
	return &result.Attempt{Start: result.CaseStart{Case: id, Round: round}, Steps: make([]result.Step, steps),
		Started: started, StartedAt: at}
}

func ended(a *result.Attempt, status string) *result.Attempt {
	a.Started, a.End = nil, &result.CaseEnd{Status: status}
	return a
}

func TestStatusAtStart(t *testing.T) {
	fc, _, _ := newForecaster(t)
	s, wait := fc.StatusAt(&result.State{}, dayOne)
	assert.Equal(t, Status{Plan: "forecast", Round: 1, Rounds: 2, OfRounds: 4, OfWorkNS: int64(4 * oneRound),
		OfWaitNS: int64(40 * time.Minute)}, s)
	assert.Zero(t, wait)
	assert.Equal(t, 4*oneRound+40*time.Minute, s.Left(Status{}))
}

// What a step that works has done is assumed from the speed before, and never all of it.
func TestStatusAtWork(t *testing.T) {
	fc, first, _ := newForecaster(t)
	started := dayOne.Add(time.Minute)
	state := &result.State{Sessions: []result.Session{active(0)}, Attempts: []*result.Attempt{
		attempt(first, 1, 2, &result.StepStart{Do: "write", Phase: "new"}, started)}}
	last := Status{WorkNS: int64(twoSteps)}
	for _, took := range []time.Duration{0, time.Second, time.Minute, 24 * time.Hour} {
		s, wait := fc.StatusAt(state, started.Add(took))
		assert.Equal(t, "write", s.Do)
		assert.Equal(t, "new", s.Phase)
		assert.Equal(t, first, s.Case)
		assert.Zero(t, wait)
		assert.Equal(t, int64(time.Minute+took), s.ElapsedNS)
		assert.Zero(t, s.CaseRound)
		assert.GreaterOrEqual(t, s.WorkNS, last.WorkNS)
		assert.Less(t, s.WorkNS, int64(twoSteps+writeOfOne))
		assert.Positive(t, s.Left(Status{}))
		last = s
	}
	assert.Greater(t, last.WorkNS, int64(twoSteps+writeOfOne*9/10))
	s, _ := fc.StatusAt(state, started.Add(-time.Hour))
	assert.Equal(t, int64(twoSteps), s.WorkNS, "the clock was set back")
}

// A wait counts in full when it is over, and no more than it is long.
func TestStatusAtWait(t *testing.T) {
	fc, first, second := newForecaster(t)
	started := dayOne.Add(time.Hour)
	state := &result.State{Sessions: []result.Session{active(0)}, Attempts: []*result.Attempt{
		ended(attempt(first, 1, 4, nil, dayOne), result.Done),
		attempt(second, 1, 3, &result.StepStart{Do: "settle"}, started)}}
	for took, waited := range map[time.Duration]time.Duration{0: 10, 4 * time.Minute: 14, 10 * time.Minute: 20, time.Hour: 20} {
		s, wait := fc.StatusAt(state, started.Add(took))
		assert.Equal(t, 10*time.Minute, wait)
		assert.Equal(t, int64(waited*time.Minute), s.WaitedNS, took)
		assert.Equal(t, 1, s.CaseRound)
	}
}

// A case-round counts once, however often it was tried, and whatever its status.
func TestStatusAtRetry(t *testing.T) {
	fc, first, second := newForecaster(t)
	state := &result.State{Sessions: []result.Session{active(0)}, Attempts: []*result.Attempt{
		ended(attempt(first, 1, 1, nil, dayOne), result.Failed), ended(attempt(second, 1, 0, nil, dayOne), result.Skipped),
		ended(attempt(first, 1, 4, nil, dayOne), result.Done), attempt("of another plan", 2, 3, nil, dayOne)}}
	s, wait := fc.StatusAt(state, dayOne)
	assert.Zero(t, wait)
	assert.Equal(t, 2, s.CaseRound)
	assert.Equal(t, 2, s.Round)
	assert.Equal(t, int64(2*oneRound), s.WorkNS)
	assert.Equal(t, int64(20*time.Minute), s.WaitedNS)
}

// The time between sessions does not count, and a step in which one was interrupted is not the current one.
func TestStatusAtResume(t *testing.T) {
	fc, first, _ := newForecaster(t)
	interrupted := active(0)
	interrupted.Finished, interrupted.End = dayOne.Add(5*time.Minute), result.Interrupted
	state := &result.State{Sessions: []result.Session{interrupted}, Attempts: []*result.Attempt{
		attempt(first, 1, 3, &result.StepStart{Do: "settle"}, dayOne.Add(time.Minute))}}
	s, _ := fc.StatusAt(state, dayOne.Add(time.Hour))
	assert.Equal(t, int64(5*time.Minute), s.ElapsedNS, "it has an end")

	state.Sessions = append(state.Sessions, active(48*time.Hour))
	s, wait := fc.StatusAt(state, dayOne.Add(48*time.Hour+time.Minute))
	assert.Equal(t, int64(6*time.Minute), s.ElapsedNS)
	assert.Empty(t, s.Do)
	assert.Zero(t, wait+time.Duration(s.WaitedNS+s.WorkNS))

	state.Attempts = append(state.Attempts, attempt(first, 1, 3, &result.StepStart{Do: "settle"}, dayOne.Add(48*time.Hour)))
	s, wait = fc.StatusAt(state, dayOne.Add(48*time.Hour+time.Minute))
	assert.Equal(t, "settle", s.Do)
	assert.Equal(t, 10*time.Minute, wait)
	assert.Equal(t, int64(time.Minute), s.WaitedNS)
}

// The canary is not a step of the protocol.
func TestStatusAtCanary(t *testing.T) {
	fc, first, _ := newForecaster(t, "canary = false", "canary = true")
	state := &result.State{Sessions: []result.Session{active(0)}, Attempts: []*result.Attempt{
		attempt(first, 1, 5, &result.StepStart{Do: "settle"}, dayOne)}}
	_, wait := fc.StatusAt(state, dayOne)
	assert.Equal(t, 10*time.Minute, wait)
	state.Attempts[0].Steps = make([]result.Step, 1)
	s, wait := fc.StatusAt(state, dayOne)
	assert.Zero(t, wait)
	assert.Zero(t, s.WorkNS)
}

// A run that chooses its rounds is forecast up to the next look.
func TestStatusAtAutoRounds(t *testing.T) {
	fc, first, _ := newForecaster(t)
	state := &result.State{Run: result.RunStart{Auto: &result.AutoRounds{Looks: []int{3, 5, 9}}}, Sessions: []result.Session{active(0)}}
	for round, want := range map[int]int{1: 3, 3: 3, 4: 5, 6: 9, 12: 9} {
		state.Attempts = []*result.Attempt{attempt(first, round, 0, nil, dayOne)}
		s, _ := fc.StatusAt(state, dayOne)
		assert.Equal(t, want, s.Rounds)
		assert.Equal(t, 2*want, s.OfRounds)
		assert.Equal(t, int64(2*want)*int64(oneRound), s.OfWorkNS)
	}
}

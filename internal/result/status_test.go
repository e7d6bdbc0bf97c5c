package result

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// ofStatus are cases of these statuses: images, then one directory.
func ofStatus(directory string, images ...string) (cases []Case) {
	for _, s := range images {
		cases = append(cases, Case{Status: s, Target: Target{Kind: "image"}})
	}
	return append(cases, Case{Status: directory, Target: Target{Kind: "directory"}})
}

// A run is skipped if no image was measured, whatever its baseline, and failed if anything failed.
func TestOutcomeOfARun(t *testing.T) {
	for _, c := range []struct {
		cases []Case
		want  string
	}{
		{ofStatus(Done, Done, Done), Done},
		{ofStatus(Done, Done, Skipped), Done},
		{ofStatus(Skipped, Done), Done},
		{ofStatus(Done), Done},
		{ofStatus(Done, Skipped, Skipped), Skipped},
		{ofStatus(Skipped, Skipped), Skipped},
		{ofStatus(Skipped), Skipped},
		{nil, Skipped},
		{ofStatus(Done, Done, Failed), Failed},
		{ofStatus(Discarded, Done), Failed},
		{ofStatus(Skipped, Skipped, Failed), Failed},
	} {
		assert.Equal(t, c.want, (&Result{Cases: c.cases}).Outcome(), "%+v", c.cases)
	}
}

// Where no round counts, people see the steps of rounds that failed.
func TestRoundsThatAreShown(t *testing.T) {
	for _, c := range []struct {
		rounds []string // their statuses
		shown  []bool
	}{
		{[]string{Done, Failed, Skipped, Discarded}, []bool{true, false, false, false, false}},
		{[]string{Failed, Skipped, Discarded}, []bool{true, true, false, false}},
		{nil, []bool{false}},
	} {
		var of Case
		for i, status := range c.rounds {
			of.Rounds = append(of.Rounds, CaseRound{Round: i + 1, Status: status})
		}
		for i, want := range c.shown {
			assert.Equal(t, want, of.Shows(i+1), "round %d of %v", i+1, c.rounds)
		}
	}
}

// In a run that goes on, people read "not finished" of a case that waits for its rounds.
func TestDisplayStatus(t *testing.T) {
	broken := CaseRound{Status: Discarded, Reason: "interrupted between two steps"}
	for name, c := range map[string]struct {
		run, status string
		rounds      []CaseRound
		want        string
	}{
		"not reached":         {Unfinished, Discarded, nil, NotFinished},
		"interrupted":         {Unfinished, Discarded, []CaseRound{{Status: Done}, broken}, NotFinished},
		"of a run that ended": {Done, Discarded, []CaseRound{broken}, Discarded},
		"done":                {Unfinished, Done, nil, Done},
		"failed":              {Unfinished, Failed, []CaseRound{{Status: Failed}}, Failed},
		"a round slept":       {Unfinished, Discarded, []CaseRound{{Status: Discarded, Reason: "slept"}}, Discarded},
		"a round skipped":     {Unfinished, Discarded, []CaseRound{{Status: Done}, {Status: Skipped}}, Discarded},
	} {
		r := Result{Status: c.run}
		assert.Equal(t, c.want, r.DisplayStatus(&Case{Status: c.status, Rounds: c.rounds}), name)
	}
}

// Rounds that failed or were discarded are told, until they were measured.
func TestFailedRounds(t *testing.T) {
	s := begin(2, "a", "b", "c").finish("a", 1, Failed, "x").begin("b", 1).finish("b", 1, Discarded, "y").
		finish("c", 1, Skipped, "z").whole("a", 2).begin("b", 2)
	failed := func() int {
		state, err := Replay(s.read(t))
		require.NoError(t, err)
		return state.FailedRounds()
	}
	assert.Equal(t, 2, failed())
	s.session(2).whole("b", 1)
	assert.Equal(t, 1, failed())
	s.whole("a", 1)
	assert.Zero(t, failed())
}

// A session that measures failed rounds again does so until the run has ended.
func TestRetryingLastsUntilTheEnd(t *testing.T) {
	retrying := func(s *script) bool {
		state, err := Replay(s.read(t))
		require.NoError(t, err)
		return state.Retrying()
	}
	s := begin(1, "a").finish("a", 1, Failed, "x").add(Record{RunEnd: &RunEnd{Status: Failed}})
	assert.False(t, retrying(s))
	s.add(Record{Session: &Session{Index: 2, RetryFailed: true}})
	assert.True(t, retrying(s))
	s.end(2, Interrupted)
	assert.True(t, retrying(s))
	s.add(Record{RunEnd: &RunEnd{Status: Done}})
	assert.False(t, retrying(s))
	assert.False(t, retrying(&script{recs: []Record{runRecord(1, "a")}}), "before the first session")
}

// A run whose number of rounds is open has those that it began, and in the end those after which it stopped.
func TestAutomaticRounds(t *testing.T) {
	s := &script{recs: []Record{runRecord(2, "a")}}
	s.recs[0].Run.Auto = &AutoRounds{Looks: []int{2, 3, 4}}
	rounds := func() int {
		r, err := Fold(s.session(len(s.recs)).read(t))
		require.NoError(t, err)
		return r.Rounds
	}
	round := func(n int) *script {
		return s.add(Record{Round: &RoundStart{Round: n, Order: []string{"a"}}}).whole("a", n)
	}
	look := func(n int, stop string) *script { return s.add(Record{Look: &Look{Round: n, Stop: stop}}) }
	round(1)
	assert.Equal(t, 2, rounds(), "the least number")
	round(2)
	look(2, "")
	round(3)
	assert.Equal(t, 3, rounds())
	look(3, "").add(Record{Round: &RoundStart{Round: 4, Order: []string{"a"}}})
	assert.Equal(t, 4, rounds())
	look(4, StopPrecise)
	state, err := Replay(s.read(t))
	require.NoError(t, err)
	assert.Equal(t, StopPrecise, state.Stopped().Stop)
	assert.Equal(t, map[int][]string{1: {"a"}, 2: {"a"}, 3: {"a"}, 4: {"a"}}, state.Orders)
	r, err := Fold(s.read(t))
	require.NoError(t, err)
	assert.Equal(t, 4, r.Rounds)
	assert.Len(t, r.Auto.Decisions, 3)
}

// A decision on another round that no run makes is refused.
func TestImpossibleDecisionsAreRefused(t *testing.T) {
	for name, c := range map[string]struct {
		auto  bool
		looks []Look
		fine  bool
	}{
		"one after the other": {true, []Look{{Round: 2}, {Round: 3}, {Round: 4, Stop: StopTime}}, true},
		"of a fixed number":   {false, []Look{{Round: 2}}, false},
		"twice":               {true, []Look{{Round: 2}, {Round: 2}}, false},
		"backwards":           {true, []Look{{Round: 3}, {Round: 2}}, false},
		"after the last":      {true, []Look{{Round: 2, Stop: StopTime}, {Round: 3}}, false},
	} {
		s := begin(2, "a")
		if c.auto {
			s.recs[0].Run.Auto = &AutoRounds{Looks: []int{2, 4}}
		}
		for _, l := range c.looks {
			s.add(Record{Look: &l})
		}
		state, err := Replay(s.read(t))
		if !c.fine {
			assert.ErrorContains(t, err, "that no run makes there", name)
			continue
		}
		require.NoError(t, err, name)
		assert.Len(t, state.Looks, len(c.looks), name)
	}
}

// Whoever resumes after a pause has set what it asked for; after any other end that is not known.
func TestWhatAPauseAskedForIsSet(t *testing.T) {
	s := begin(1, "a").add(Record{Pause: &Pause{Key: "switch", Value: "on"}})
	manual := func() map[string]string {
		state, err := Replay(s.end(len(s.recs), Paused).read(t))
		require.NoError(t, err)
		return state.Manual
	}
	assert.Equal(t, map[string]string{"switch": "on"}, manual())
	s.session(2).add(Record{Pause: &Pause{Key: "other", Value: "off"}})
	assert.Equal(t, map[string]string{"switch": "on", "other": "off"}, manual())
	s.session(3).begin("a", 1).session(4)
	assert.Empty(t, manual(), "session 3 was killed")
}

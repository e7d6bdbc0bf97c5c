package result

import (
	"math"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// appended adds a record to a journal that has its run record, and returns why it is refused.
func appended(rec Record) error {
	rec.At = start
	return newWriter(&memory{room: math.MaxInt}, "", nil, 1, true).Append(rec)
}

// A step is refused if no clock can have measured its times, or if its files contradict it.
func TestImpossibleStepsAreRefused(t *testing.T) {
	for name, c := range map[string]struct {
		change func(s *Step)
		want   string // of the error; accepted without
	}{
		"as measured":             {func(*Step) {}, ""},
		"empty":                   {func(s *Step) { *s = Step{Round: 1} }, ""},
		"other round":             {func(s *Step) { s.Round = 2 }, "step of round 2 inside round 1"},
		"negative size":           {func(s *Step) { s.Samples[1].Bytes = -1 }, "sample 2 has -1 bytes"},
		"file before its step":    {func(s *Step) { s.Samples[1].StartNS = -1 }, "sample 2 has"},
		"negative time":           {func(s *Step) { s.Samples[1].DurationNS = -1 }, "sample 2 has"},
		"file longer than step":   {func(s *Step) { s.DurationNS = 29 }, "sample 1 has"},
		"step before the run":     {func(s *Step) { s.StartNS = -1 }, "step starts at -1 ns"},
		"step of negative time":   {func(s *Step) { *s = Step{Round: 1, DurationNS: -1} }, "takes -1 ns"},
		"gate before the step":    {func(s *Step) { s.Span.GateNS = -1 }, "span from -1 ns"},
		"gate at the start":       {func(s *Step) { s.Span.GateNS = 0 }, ""},
		"done at the gate":        {func(s *Step) { s.Span.FirstDoneNS = 20 }, ""},
		"done before the gate":    {func(s *Step) { s.Span.FirstDoneNS = 19 }, "first done at 19 ns"},
		"last is the first":       {func(s *Step) { s.Span.LastDoneNS = 50 }, ""},
		"last before the first":   {func(s *Step) { s.Span.LastDoneNS = 49 }, "last at 49 ns"},
		"negative pause":          {func(s *Step) { s.Span.PausedNS = -1 }, "paused -1 ns"},
		"negative idle time":      {func(s *Step) { s.Span.IdleNS = -1 }, "idle -1 ns"},
		"pauses fill the step":    {func(s *Step) { s.Span.PausedNS = 40 }, ""},
		"pauses longer than step": {func(s *Step) { s.Span.PausedNS = 41 }, "pauses 41 ns, its step takes 100 ns"},
		"span fills the step":     {func(s *Step) { s.Span.LastDoneNS, s.Span.PausedNS = 120, 0 }, ""},
		"span longer than step":   {func(s *Step) { s.Span.LastDoneNS, s.Span.PausedNS = 121, 0 }, "span takes 101 ns"},
		"other size":              {func(s *Step) { s.Span.Bytes = 31 }, "samples have 30 bytes"},
		"less time than files":    {func(s *Step) { s.Span.BusyNS = 59 }, "take 60 ns"},
		"more time than files":    {func(s *Step) { s.Span.BusyNS = 61 }, "take 60 ns"},
		"failed, more time":       {func(s *Step) { s.Error, s.Span.BusyNS = "disk full", 61 }, ""},
		"failed, less time":       {func(s *Step) { s.Error, s.Span.BusyNS = "disk full", 59 }, "take 60 ns"},
		"left out":                {func(s *Step) { s.LeaveOut(0) }, ""},
		"left out, in the span":   {func(s *Step) { s.Samples[0].Stopped = true }, "samples have 20 bytes and take 30 ns, their span 30 and 60 ns"},
		"left out of the span":    {func(s *Step) { s.LeaveOut(0); s.Samples[0].Stopped = false }, "samples have 30 bytes and take 60 ns, their span 20 and 30 ns"},
		"marked, of two workers":  {func(s *Step) { s.Workers = 2; s.LeaveOut(0) }, ""},
		"files without a span":    {func(s *Step) { s.Span = nil }, "their span 0 and 0 ns"},
	} {
		s := Step{Round: 1, DurationNS: 100,
			Samples: []Sample{{Bytes: 10, StartNS: 20, DurationNS: 30}, {Bytes: 20, StartNS: 50, DurationNS: 30}},
			Span:    &Span{GateNS: 20, FirstDoneNS: 50, LastDoneNS: 80, Bytes: 30, BusyNS: 60, PausedNS: 10}}
		c.change(&s)
		if err := appended(Record{Step: &StepEnd{Case: "a", Round: 1, Step: s}}); c.want == "" {
			assert.NoError(t, err, name)
		} else {
			assert.ErrorContains(t, err, c.want, name)
		}
	}
}

// A record is refused if its numbers could make endless loops, or its names lead out of a folder.
func TestImpossibleRecordsAreRefused(t *testing.T) {
	for name, c := range map[string]struct {
		rec  Record
		want string // of the error; accepted without
	}{
		"session":               {Record{Session: &Session{Index: 0}}, ""},
		"negative session":      {Record{Session: &Session{Index: -1}}, "session -1 is not between"},
		"round":                 {Record{Round: &RoundStart{Round: 1e6}}, ""},
		"round too large":       {Record{Round: &RoundStart{Round: 1e6 + 1}}, "round 1000001 is not between"},
		"round of a step":       {Record{StepStart: &StepStart{Case: "a"}}, "round 0 is not between"},
		"end of a session":      {Record{SessionEnd: &SessionEnd{End: Lost}}, `end "lost" is none of`},
		"end of a run":          {Record{RunEnd: &RunEnd{Status: Unfinished}}, "is none of done, failed, skipped"},
		"place of data":         {Record{Precondition: &Precondition{Place: "../x"}}, "not a plain file name"},
		"place of a case":       {Record{CaseStart: &CaseStart{Round: 1, Target: Target{Place: "../x"}}}, "not a plain"},
		"place as made":         {Record{CaseEnd: &CaseEnd{Round: 1, Status: Done, Target: &Target{Place: "../x"}}}, "not a plain"},
		"status of a case":      {Record{CaseEnd: &CaseEnd{Round: 1, Status: "fine"}}, `status "fine" is none of`},
		"pause between cases":   {Record{Pause: &Pause{}}, ""},
		"pause inside a case":   {Record{Pause: &Pause{Case: "a", Round: 1}}, ""},
		"pause without a round": {Record{Pause: &Pause{Case: "a"}}, "round 0 is not between 1"},
		"decision to go on":     {Record{Look: &Look{Round: 1}}, ""},
		"decision to stop":      {Record{Look: &Look{Round: 1, Stop: StopPrecise}}, ""},
		"decision on nothing":   {Record{Look: &Look{}}, "round 0 is not between"},
		"unknown decision":      {Record{Look: &Look{Round: 1, Stop: "never"}}, `stop "never" is none of`},
		"two in one": {Record{Round: &RoundStart{Round: 1}, RunEnd: &RunEnd{Status: Done}, Kind: "round"},
			"does not contain that and only that"},
		"none":                  {Record{}, "unknown kind of record"},
		"second run":            {Record{Run: &RunStart{ID: "r", Rounds: 1}}, "and no other, is a run record"},
		"run without rounds":    {Record{Run: &RunStart{ID: "r"}}, "rounds 0 is not between"},
		"run of a case twice":   {Record{Run: &RunStart{ID: "r", Rounds: 1, Cases: []PlanCase{{ID: "a"}, {ID: "a"}}}}, "listed twice"},
		"run in a place":        {Record{Run: &RunStart{ID: "r", Rounds: 1, Places: []Place{{Name: "a/b"}}}}, "not a plain"},
		"run of a case outside": {Record{Run: &RunStart{ID: "r", Rounds: 1, Cases: []PlanCase{{Target: Target{Place: ".."}}}}}, "not a plain"},
	} {
		if err := appended(c.rec); c.want == "" {
			assert.NoError(t, err, name)
		} else {
			assert.ErrorContains(t, err, c.want, name)
		}
	}
	for want, looks := range map[string][]int{
		"": {1, 2, 2, 1e6}, "empty or not ascending": nil, "or not ascending": {2, 1}, "round 0": {0, 1}, "round 1000001": {1, 1e6 + 1},
	} {
		run := runRecord(1, "a")
		run.Run.Auto, run.At = &AutoRounds{Looks: looks}, start
		err := newWriter(&memory{room: math.MaxInt}, "", nil, 0, true).Append(run)
		require.Equal(t, want == "", err == nil, "%v", looks)
		if want != "" {
			assert.ErrorContains(t, err, want)
		}
	}
}

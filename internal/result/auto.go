package result

import (
	"errors"
	"fmt"
	"slices"
)

// Why rounds = "auto" ended a run.
const (
	StopPrecise = "precision" // every interval is as narrow as asked
	StopRounds  = "rounds"    // the limits that were reached
	StopTime    = "time"
	StopWritten = "written"
	StopNothing = "nothing" // no case gave a number that could become more certain
)

var stops = []string{StopPrecise, StopRounds, StopTime, StopWritten, StopNothing}

// AutoRounds is how the number of rounds is determined during the run. It is
// fixed before the first round, as the level of every interval depends on it.
type AutoRounds struct {
	Precision  float64 `json:"precision"`             // half-width of every headline's interval as a share of its value that ends the run
	Looks      []int   `json:"looks"`                 // after so many rounds the intervals are looked at, ascending; the last is the most that there can be
	MaxRounds  int     `json:"max_rounds"`            // as asked; what MaxWritten allows may be less
	MaxTimeNS  int64   `json:"max_time_ns,omitempty"` // of all sessions together; 0 is no limit
	MaxWritten int64   `json:"max_written,omitempty"` // bytes written by steps and canaries; 0 is no limit
	// Decisions are what came of it, look by look; none before the first round, and none in a pooled result.
	Decisions []Look `json:"decisions,omitempty"`
}

// Look is one decision on whether another round is run.
type Look struct {
	Round     int            `json:"round"`      // rounds that were done
	Stop      string         `json:"stop"`       // precision | rounds | time | written | nothing; "" goes on
	Text      string         `json:"text"`       // the same in words
	ElapsedNS int64          `json:"elapsed_ns"` // of all sessions so far
	Written   int64          `json:"written"`    // bytes so far
	Judged    int            `json:"judged"`     // headlines that can have an interval
	Wide      []WideInterval `json:"wide"`       // those whose interval is wider than asked, or missing
}

// WideInterval is a headline that is not as certain as asked.
type WideInterval struct {
	Case  string  `json:"case"`
	Phase string  `json:"phase"`
	Op    string  `json:"op"`
	Cycle int     `json:"cycle"`
	Half  float64 `json:"half"` // half-width as a share of the value; -1: there is no interval yet, or the value is zero
}

// Stopped is the look that ended the run, nil until then.
func (s *State) Stopped() *Look {
	if n := len(s.Looks); n > 0 && s.Looks[n-1].Stop != "" {
		return &s.Looks[n-1]
	}
	return nil
}

// rounds is how many rounds the run is to have, as far as that is known.
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

// found is how the number of rounds came about, nil where it was fixed.
func (s *State) found() *AutoRounds {
	if s.Run.Auto == nil {
		return nil
	}
	a := *s.Run.Auto
	a.Decisions = slices.Clone(s.Looks)
	return &a
}

// look takes a decision into account.
func (r *replay) look(l Look) error {
	switch n := len(r.Looks); {
	case r.Run.Auto == nil:
		return errors.New("a look at the rounds of a run whose number was fixed")
	case r.Stopped() != nil:
		return fmt.Errorf("a look behind the one after round %d, which ended the run", r.Stopped().Round)
	case n > 0 && l.Round <= r.Looks[n-1].Round:
		return fmt.Errorf("a look after round %d follows one after round %d", l.Round, r.Looks[n-1].Round)
	}
	r.Looks = append(r.Looks, l)
	return nil
}

func (a *AutoRounds) check() error {
	if a == nil {
		return nil
	}
	if len(a.Looks) == 0 || len(a.Looks) > maxRounds || !slices.IsSorted(a.Looks) {
		return errors.New("the looks at the rounds are none, or not ascending")
	}
	return errors.Join(inRange("look", a.Looks[0], 1, maxRounds), inRange("look", a.Looks[len(a.Looks)-1], 1, maxRounds))
}

func (l *Look) check() error {
	return errors.Join(inRange("round", l.Round, 1, maxRounds), oneOf("stop", l.Stop, append([]string{""}, stops...)...))
}

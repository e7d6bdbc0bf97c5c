package analysis

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"dmgbench/internal/result"
)

// splitRounds reports which rounds were measured in more than one session, as after a
// pause or an interruption: cases are paired by round since a round shares what its
// session was like, and steps on both sides of the break do not. What counts
// as one session is defined by [sessionNames].
func (s *runData) splitRounds() (result.Warning, bool) {
	of := sessionNames(s.r)
	seen := map[int][]string{}
	for _, sub := range s.cases {
		for _, steps := range sub.steps {
			for _, st := range steps {
				if name := of[st.Session]; !slices.Contains(seen[st.Round], name) {
					seen[st.Round] = append(seen[st.Round], name)
				}
			}
		}
	}
	var torn []int
	for _, r := range slices.Sorted(maps.Keys(seen)) {
		if len(seen[r]) > 1 {
			torn = append(torn, r)
		}
	}
	if len(torn) == 0 {
		return result.Warning{}, false
	}
	have, noun := "was", "round"
	if len(torn) > 1 {
		have, noun = "were", "rounds"
	}
	return result.Warning{Kind: "sessions", Text: fmt.Sprintf("%s %s %s measured in more than one session, a pause or an interruption lying within: "+
		"what is paired in a round does not share there what the session was like", noun, numbers(torn), have)}, true
}

// clockSetBack reports sessions of one run that started before the one before them had ended.
func (s *runData) clockSetBack() (result.Warning, bool) {
	var odd []string
	for i, at := range s.r.Sessions {
		if i > 0 && s.r.Sessions[i-1].Run == at.Run && setBack(s.r.Sessions[i-1], at) {
			odd = append(odd, fmt.Sprintf("session %d began %s before session %d ended", at.Index,
				s.r.Sessions[i-1].Finished.Sub(at.Started).Round(time.Second), s.r.Sessions[i-1].Index))
		}
	}
	return result.Warning{Kind: "sessions", Text: strings.Join(odd, ", ") + ": the clock was set back, so how long the run rested is unknown" +
		" and each counts as a session of its own"}, len(odd) > 0
}

// numbers lists ascending numbers, the first few of many.
func numbers(ns []int) string {
	const few = 6
	var parts []string
	for _, n := range ns[:min(few, len(ns))] {
		parts = append(parts, strconv.Itoa(n))
	}
	text := strings.Join(parts, ", ")
	if len(ns) > few {
		text += fmt.Sprintf(" and %d more", len(ns)-few)
	}
	return text
}

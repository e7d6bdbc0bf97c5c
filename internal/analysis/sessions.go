package analysis

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"dmgbench/internal/result"
	"dmgbench/internal/stats"
	"dmgbench/internal/wording"
)

// The units of replication.
const (
	perRound   = "round"
	perSession = "session"
)

// replica is what is replicated, and how often the replicates could have been
// looked at before they were enough; the zero value is the round, as many as
// the plan wants.
type replica struct {
	// perRound or perSession, "" is the round
	unit string
	// See [stats.Looks]; 0 where the number was fixed
	looks int
}

// replicated is the unit of replication of a result. Rounds of one session
// share whatever that session was like, so that from [minRounds] pooled runs on
// each run is one value. Two runs are too few for that: their rounds are taken
// together, and [runData.sessionWarning] gives their distance.
func replicated(r *result.Result) replica {
	if len(r.Runs) >= minRounds {
		return replica{unit: perSession}
	}
	looks := 0
	if r.Auto != nil {
		looks = len(r.Auto.Looks)
	}
	return replica{unit: perRound, looks: looks}
}

// firstReplica is the first of two that is not the zero value.
func firstReplica(a, b replica) replica {
	if a == (replica{}) {
		return b
	}
	return a
}

// name is the unit in words.
func (x replica) name() string { return cmp.Or(x.unit, perRound) }

// corrected is a p value for the looks that could have been the last.
func (x replica) corrected(p float64) float64 { return min(1, p*float64(max(x.looks, 1))) }

// level is that of the interval at the look at which the run was ended, so that
// intervals keep [level] under the rule that ended it.
func (x replica) level() float64 { return stats.LookLevel(level, x.looks) }

// method is how an interval over the units was made.
func (x replica) method(name string) string {
	return wording.Method{Name: name, Looks: x.looks}.String()
}

// runOf is the number, from 1, of the pooled run that a round belongs to; 0
// without one.
func runOf(runs []result.PooledRun, round int) int {
	return 1 + slices.IndexFunc(runs, func(r result.PooledRun) bool { return round >= r.First && round <= r.Last })
}

// replicate is the number of the unit of replication that a round belongs to.
func (x replica) replicate(runs []result.PooledRun, round int) int {
	if x.unit != perSession {
		return round
	}
	return runOf(runs, round)
}

// samePause is how long a run may rest and still be in the same session for
// statistics.
const samePause = 10 * time.Minute

// isSetBack reports whether a session started, by the clock, before the
// previous one ended. How long the pause was is then unknown. Corrections of a
// running clock by less than a second are usual.
func isSetBack(before, s result.Session) bool {
	return !s.Started.IsZero() && before.Finished.Sub(s.Started) > time.Second
}

// sessionNames names the sessions of a run as units of replication, by their
// numbers: those of one boot that follow each other within [samePause] are one,
// since an interrupted run that is resumed at once has not drawn another
// session.
func sessionNames(r *result.Result) map[int]string {
	out := map[int]string{}
	name, last := "", result.Session{}
	ss := slices.Clone(r.Sessions)
	slices.SortStableFunc(ss, func(a, b result.Session) int { return a.Index - b.Index })
	for i, s := range ss {
		run := cmp.Or(s.Run, r.Run)
		resumed := i > 0 && run == cmp.Or(last.Run, r.Run) && s.Boot == last.Boot && s.Boot != "" &&
			s.Started.Sub(last.Finished) <= samePause && !isSetBack(last, s)
		switch {
		case resumed:
		case s.Started.IsZero():
			name = fmt.Sprintf("%s\x00%d", run, s.Index)
		default:
			name = fmt.Sprintf("%s\x00%d", run, s.Started.UnixNano())
		}
		out[s.Index], last = name, s
	}
	return out
}

// sessionTexts describe the rounds that were measured in more than one session,
// and clocks that were set back. Cases are paired by round since a round shares
// what its session was like, and steps on both sides of a break do not.
func (s *runData) sessionTexts() (out []string) {
	names := sessionNames(s.r)
	first, several := map[int]string{}, map[int]bool{}
	for _, sub := range s.cases {
		for _, steps := range sub.steps {
			for _, st := range steps {
				name := names[st.Session]
				if before, ok := first[st.Round]; ok && before != name {
					several[st.Round] = true
				}
				first[st.Round] = name
			}
		}
	}
	if split := sortedKeys(several); len(split) > 0 {
		out = append(out, wording.Text("split-rounds", wording.Numbers(split)))
	}
	var odd []string
	for i, at := range s.r.Sessions {
		if i > 0 && s.r.Sessions[i-1].Run == at.Run && isSetBack(s.r.Sessions[i-1], at) {
			before := s.r.Sessions[i-1]
			overlap := before.Finished.Sub(at.Started).Round(time.Second)
			odd = append(odd, wording.Text("set-back", at.Index, overlap, before.Index))
		}
	}
	if len(odd) > 0 {
		out = append(out, wording.Text("clock-set-back", strings.Join(odd, ", ")))
	}
	return out
}

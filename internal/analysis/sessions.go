package analysis

import (
	"cmp"
	"fmt"
	"maps"
	"slices"

	"dmgbench/internal/plan"
	"dmgbench/internal/result"
	"dmgbench/internal/stats"
)

// The units of replication.
const (
	perRound   = "round"
	perSession = "session"
)

// replica is what is replicated, and how often the replicates could have been
// looked at before they were enough; the zero value is the round, as many as the plan wants.
type replica struct {
	unit  string // perRound or perSession, "" is the round
	looks int    // see [stats.Looks]; 0 where the number was fixed
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

// level is that of the interval at the look at which the run was ended, so that
// intervals keep [level] under the rule that ended it.
func (x replica) level() float64 { return stats.LookLevel(level, x.looks) }

// corrected is a p value for the looks that could have been the last.
func (x replica) corrected(p float64) float64 { return min(1, p*float64(max(x.looks, 1))) }

// kept words what the looks did to a level, "" where there were none.
func (x replica) kept() string {
	if x.looks < 2 {
		return ""
	}
	return fmt.Sprintf(", %d looks", x.looks)
}

// sessionScatter is the standard deviation, as a share, that is allowed between the
// rates of two sessions of one machine where only one was seen: the same task on the
// same Mac took 9.67 and 11.08 s four days apart (Oakley, 12 and 16 December 2024), 14 %,
// and two draws of a scatter of 10 % lie that far apart as a rule.
const sessionScatter = 0.10

// absolute is the scale for a rate or a time that is compared with a constant. All
// rounds of a session share what the session was like, and they do not show how
// another would be; set against another case of the same rounds that cancels, set
// against a constant it does not.
func (sc scale) absolute(unit string) scale {
	if sc.per.unit != perSession && (unit == "B/s" || unit == "s") {
		sc.session = sessionScatter
	}
	return sc
}

// sessionsApart is the factor from which the runs of a pooled result count as different.
const sessionsApart = 1.05

// replicated is the unit of replication of a result. Rounds of one session share
// whatever that session was like, so that from [minRounds] pooled runs on each run
// is one value. Two runs are too few for that: their rounds are taken together, and
// [runData.sessionWarning] gives their distance.
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

// replicate is the number of the unit of replication that a round belongs to.
func (sub *caseData) replicate(round int) int {
	if sub.per.unit != perSession {
		return round
	}
	return sub.run(round)
}

// run is the number, from 1, of the pooled run that a round belongs to.
func (sub *caseData) run(round int) int {
	for i, r := range sub.runs {
		if round >= r.First && round <= r.Last {
			return i + 1
		}
	}
	return 0
}

// rounds is how many rounds the steps of a cell come from.
func (c cell) rounds() int {
	seen := map[int]bool{}
	for _, st := range c.steps() {
		seen[st.Round] = true
	}
	return len(seen)
}

// bySession is the headline of a cell in each pooled run alone, as the run's own
// report has it: the centre of its rounds.
func (s *runData) bySession(c cell, q plan.Quantity, est string) []result.SessionValue {
	if len(s.r.Runs) == 0 {
		return nil
	}
	if !perFile(q) {
		est = aggregate
	}
	values := s.roundsOfRuns(c, q, est)
	var out []result.SessionValue
	for i, run := range s.r.Runs {
		if xs := values[i+1]; len(xs) > 0 {
			out = append(out, result.SessionValue{Run: run.Run, Value: centre(q.Unit(), xs), Rounds: len(xs)})
		}
	}
	return out
}

// roundsOfRuns are the values of the rounds of each pooled run, by its number.
func (s *runData) roundsOfRuns(c cell, q plan.Quantity, est string) map[int][]float64 {
	steps := map[int][]*result.Step{}
	for _, st := range c.steps() {
		steps[st.Round] = append(steps[st.Round], st)
	}
	out := map[int][]float64{}
	for _, r := range slices.Sorted(maps.Keys(steps)) {
		if v, _, err := value(q, est, steps[r], nil); err == nil {
			run := c.sub.run(r)
			out[run] = append(out[run], v)
		}
	}
	return out
}

// sessionWarning reports that two pooled runs differ by more than their rounds scatter:
// an interval over rounds does not contain that.
func (s *runData) sessionWarning(w *warningList, c cell, q plan.Quantity, sum result.Summary) {
	if len(s.r.Runs) == 0 || s.per.unit == perSession || !rate(q) || len(sum.BySession) != 2 {
		return
	}
	a, b := sum.BySession[0], sum.BySession[1]
	if a.Value <= 0 || b.Value <= 0 {
		return
	}
	factor := max(a.Value/b.Value, b.Value/a.Value)
	if factor < sessionsApart {
		return
	}
	values := s.roundsOfRuns(c, q, sum.Headline)
	text := ""
	if t, err := stats.WelchContrast(logScale.all(values[1]), logScale.all(values[2])); err == nil && t.SE > 0 {
		text = ", " + SayP(t.P(0))
	}
	w.add("sessions", "the two sessions differ by a factor of %s (%s and %s%s): the interval over rounds does not cover what a third session would show",
		show(factor, "1"), show(a.Value, "B/s"), show(b.Value, "B/s"), text)
}

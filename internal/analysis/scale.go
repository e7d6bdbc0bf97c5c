package analysis

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"sync"
	"time"

	"dmgbench/internal/analysis/stats"
	"dmgbench/internal/plan"
	"dmgbench/internal/report/wording"
	"dmgbench/internal/result"
)

// The level of every interval, and the family-wise error of all verdicts of a
// plan together.
const (
	level  = 0.95
	family = 0.05
)

// minRounds is the least number of rounds for an interval, and so for a
// verdict.
const minRounds = 3

// scale is the space in which a test's numbers are about normal.
type scale struct {
	to, from func(float64) float64
	// The method of its intervals
	name string
	// What is replicated
	per replica
	// session is the standard deviation, as a share, by which a whole session
	// may be off; see [scale.absolute].
	session float64
}

func same(x float64) float64 { return x }

var (
	logScale   = scale{to: math.Log, from: math.Exp, name: "Student t of logarithms"}
	plainScale = scale{to: same, from: same, name: "Student t"}
)

// scaleOf is how the values of rounds are averaged: rates and times through
// logarithms, sizes, counts and pure numbers as they are.
func scaleOf(unit string, xs []float64) scale {
	if isSpeed(unit) && len(xs) > 0 && slices.Min(xs) > 0 {
		return logScale
	}
	return plainScale
}

// isSpeed reports whether a unit is that of rates or times, which depend on the
// machine and its day.
func isSpeed(unit string) bool { return unit == "B/s" || unit == "1/s" || unit == "s" }

// over is the scale for values of another unit of replication.
func (sc scale) over(per replica) scale {
	sc.per = per
	return sc
}

// sessionScatter is the standard deviation, as a share, that is allowed between
// the rates of two sessions of one machine where only one was seen: the same
// task on the same Mac took 9.67 and 11.08 s four days apart (Oakley, 12 and 16
// December 2024), 14 %, and two draws of a scatter of 10 % are usually that far
// apart.
const sessionScatter = 0.10

// absolute is the scale for a rate or a time that is compared with a constant.
// All rounds of a session share what the session was like, and they do not show
// how another would be. In a comparison with another case of the same rounds
// that cancels, in one with a constant it does not.
func (sc scale) absolute(unit string) scale {
	if sc.per.unit != perSession && isSpeed(unit) {
		sc.session = sessionScatter
	}
	return sc
}

// times is "3 rounds", or "3 sessions".
func (sc scale) times(n int) wording.Count { return wording.Count{N: n, Noun: sc.per.name()} }

// method names how intervals on the scale are made.
func (sc scale) method() wording.Method {
	return wording.Method{Name: sc.name, Looks: sc.per.looks, Session: sc.session}
}

func (sc scale) all(xs []float64) []float64 { return mapped(xs, sc.to) }

// centre is the mean of the rounds on the scale of the unit.
func centre(unit string, xs []float64) float64 { return scaleOf(unit, xs).centre(xs) }

// centre is the mean on the scale, NaN of no values. It is exact where no value
// varies, whatever the logarithm rounds.
func (sc scale) centre(xs []float64) float64 {
	if len(xs) == 0 {
		return math.NaN()
	}
	if slices.Min(xs) == slices.Max(xs) {
		return xs[0]
	}
	return sc.from(mean(sc.all(xs)))
}

// interval is the t interval of the centre, from [minRounds] rounds on.
func (sc scale) interval(xs []float64) (stats.Interval, error) {
	if len(xs) < minRounds {
		return stats.Interval{}, stats.ErrTooFew
	}
	m, errs, err := sc.errors(sc.all(xs))
	if err != nil {
		return stats.Interval{}, err
	}
	half := 0.0
	for _, e := range errs {
		key := [2]float64{sc.per.level(), e.df}
		t, ok := criticalValues.Load(key)
		if !ok {
			t = stats.StudentQuantile((1+key[0])/2, e.df)
			criticalValues.Store(key, t)
		}
		half = max(half, t.(float64)*e.se)
	}
	iv := stats.Interval{Low: sc.from(m - half), High: sc.from(m + half), Level: level, Method: stats.MethodT}
	if half == 0 {
		iv.Low, iv.High = xs[0], xs[0]
	}
	return iv, nil
}

// stdErr is a standard error with its degrees of freedom.
type stdErr struct{ se, df float64 }

// manyDF are so many degrees of freedom that Student's distribution is the
// normal one.
const manyDF = 1000

// errors is the mean of values on the scale with its standard error and, where
// a session may be off, that with the session's share too, with degrees of
// freedom that are Satterthwaite's (1946). Conclusions have to be true under
// both.
func (sc scale) errors(ys []float64) (m float64, errs []stdErr, err error) {
	m, err = stats.Mean(ys)
	sd, errSD := stats.StdDev(ys)
	if err := cmp.Or(err, errSD); err != nil {
		return 0, nil, err
	}
	n := float64(len(ys))
	own, off := sd*sd/n, sc.session
	errs = []stdErr{{math.Sqrt(own), n - 1}}
	if sc.name == plainScale.name {
		off *= math.Abs(m)
	}
	if off > 0 {
		df := min((n-1)*math.Pow(1+off*off/max(own, math.SmallestNonzeroFloat64), 2), manyDF)
		errs = append(errs, stdErr{math.Sqrt(own + off*off), math.Round(df)})
	}
	return m, errs, nil
}

// criticalValues keeps quantiles of Student's t, which every interval needs
// and which are slow to compute.
// [2]float64 of level and degrees of freedom → float64
var criticalValues sync.Map

// slack is how far rounding may move a number off a bound that it equals.
const slack = 1e-12

// near reports whether v is the finite number end, up to rounding.
func near(v, end float64) bool {
	return !math.IsInf(end, 0) && math.Abs(v-end) <= slack*max(math.Abs(v), math.Abs(end))
}

// holdsAbout is [plan.Bound.Holds] with equal meaning equal up to rounding.
func holdsAbout(b plan.Bound, v float64) bool {
	above, below := v > b.Low, v < b.High
	if near(v, b.Low) {
		above = !b.LowOpen
	}
	if near(v, b.High) {
		below = !b.HighOpen
	}
	return above && below
}

// decide tests the centre of one value a round against a bound. The direction
// is that of the centre; p is the largest two-sided p value of "the centre is
// at this end" over the ends that the direction depends on, so that p ≤ α
// exactly where the interval of level 1-α is inside the bound, or outside of
// it.
func (sc scale) decide(xs []float64, b plan.Bound) (dir int, p float64) {
	c := sc.centre(xs)
	if math.IsNaN(c) {
		return 0, 1
	}
	// near: a value at an open end, on whichever side the rounding put it
	ends := []float64{b.High}
	if dir = -1; holdsAbout(b, c) {
		dir, ends = 1, []float64{b.Low, b.High}
	} else if c <= b.Low || near(c, b.Low) {
		ends = []float64{b.Low}
	}
	for _, e := range ends {
		p = max(p, sc.pAt(xs, e))
	}
	return dir, p
}

// pAt is the two-sided p value of "the centre is e", corrected for the looks.
func (sc scale) pAt(xs []float64, e float64) float64 {
	t := sc.to(e)
	// Open end, zero where only positive values occur, or no scatter
	if math.IsInf(e, 0) || !finite(t) || slices.Min(xs) == slices.Max(xs) && sc.session == 0 {
		return 0
	}
	m, errs, err := sc.errors(sc.all(xs))
	if err != nil || len(xs) < minRounds {
		return 1
	}
	p := 0.0
	for _, e := range errs {
		if e.se > 0 {
			p = max(p, min(1, 2*stats.StudentCDF(-math.Abs(m-t)/e.se, e.df)))
		}
	}
	return sc.per.corrected(p)
}

func finite(vs ...float64) bool {
	return !slices.ContainsFunc(vs, func(v float64) bool { return math.IsNaN(v) || math.IsInf(v, 0) })
}

// orNaN is the value of a statistic, NaN where the sample has none.
func orNaN(v float64, err error) float64 {
	if err != nil {
		return math.NaN()
	}
	return v
}

func mean(xs []float64) float64                { return orNaN(stats.Mean(xs)) }
func median(xs []float64) float64              { return orNaN(stats.Median(xs)) }
func mad(xs []float64) float64                 { return orNaN(stats.MAD(xs)) }
func quantile(xs []float64, p float64) float64 { return orNaN(stats.Quantile(xs, p)) }

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
// together, and [runData.addSessions] gives their distance.
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

// replicate is the number of the unit of replication that a round belongs to:
// its own, or that of its pooled run, from 1 (0 without one).
func (x replica) replicate(runs []result.PooledRun, round int) int {
	if x.unit != perSession {
		return round
	}
	return 1 + slices.IndexFunc(runs, func(r result.PooledRun) bool { return round >= r.First && round <= r.Last })
}

// samePause is how long a run may rest and still be in the same session for
// statistics.
const samePause = 10 * time.Minute

// sessionNames names the sessions of a run as units of replication, by their
// numbers: those of one boot that follow each other within [samePause] are one,
// since an interrupted run that is resumed at once has not drawn another
// session. Where the clock was set back by more than a second in between, the
// pause is unknown, and they are two.
func sessionNames(r *result.Result) map[int]string {
	out := map[int]string{}
	name, last := "", result.Session{}
	for i, s := range r.Sessions {
		run, pause := cmp.Or(s.Run, r.Run), s.Started.Sub(last.Finished)
		if i == 0 || run != cmp.Or(last.Run, r.Run) || s.Boot != last.Boot || s.Boot == "" || pause > samePause ||
			pause < -time.Second {
			name = fmt.Sprintf("%s\x00%d", run, s.Index)
		}
		out[s.Index], last = name, s
	}
	return out
}

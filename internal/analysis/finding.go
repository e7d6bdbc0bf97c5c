package analysis

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"sync"

	"dmgbench/internal/plan"
	"dmgbench/internal/stats"
)

// finding is what the numbers show about one test, before the verdict.
type finding struct {
	dir int     // 1: they satisfy the test, -1: they do not, 0: neither
	p   float64 // smallest error at which dir can be claimed; 0 where no value varies

	few     bool    // too few rounds for any verdict
	per     replica // what was replicated
	sampled bool    // rests on rounds, so that p counts among the tests of the plan
	missing string  // what was not measured, or not published
	weak    string  // why there is no such number

	saw      string // what was seen, in words
	need     string // what the claim needs
	gap      string // how the interval lies to that
	evidence []string
}

// scale is the space in which a test's numbers are about normal.
type scale struct {
	to   func(float64) float64
	from func(float64) float64
	name string
	per  replica // what is replicated
	// session is the standard deviation, as a share, by which a whole session may be off; see [scale.absolute].
	session float64
}

var (
	logScale   = scale{to: math.Log, from: math.Exp, name: "Student t of logarithms"}
	plainScale = scale{to: func(x float64) float64 { return x }, from: func(x float64) float64 { return x }, name: "Student t"}
)

// averageBy is the scale for values of another unit of replication.
func (sc scale) over(per replica) scale {
	sc.per = per
	return sc
}

// times is "3 rounds", or "3 sessions".
func (sc scale) times(n int) string { return plural(n, sc.per.name()) }

// scaleOf reports how the values of rounds are averaged: rates and times through
// logarithms, sizes, counts and pure numbers as they are.
func scaleOf(unit string, xs []float64) scale {
	if (unit == "B/s" || unit == "s") && len(xs) > 0 && slices.Min(xs) > 0 {
		return logScale
	}
	return plainScale
}

func (sc scale) all(xs []float64) []float64 {
	out := make([]float64, len(xs))
	for i, x := range xs {
		out[i] = sc.to(x)
	}
	return out
}

// centre is the mean of the rounds on the scale of the unit.
func centre(unit string, xs []float64) float64 {
	return scaleOf(unit, xs).centre(xs)
}

// centre is exact where no value varies, whatever the logarithm rounds.
func (sc scale) centre(xs []float64) float64 {
	if len(xs) == 0 {
		return math.NaN()
	}
	if slices.Min(xs) == slices.Max(xs) {
		return xs[0]
	}
	m, err := stats.Mean(sc.all(xs))
	if err != nil {
		return math.NaN()
	}
	return sc.from(m)
}

// interval is the t interval of the centre, from [minRounds] rounds on.
func (sc scale) interval(xs []float64) (stats.Interval, error) {
	ys := sc.all(xs)
	if len(ys) < minRounds {
		return stats.MeanInterval(ys, level) // says what is missing
	}
	m, errs, err := sc.errors(ys)
	if err != nil {
		return stats.Interval{}, err
	}
	half := 0.0
	for _, e := range errs {
		half = max(half, criticalT(sc.per.level(), e.df)*e.se)
	}
	iv := stats.Interval{Low: sc.from(m - half), High: sc.from(m + half), Level: level, Method: stats.MethodT}
	if half == 0 {
		iv.Low, iv.High = xs[0], xs[0]
	}
	return iv, nil
}

// stdErr is a standard error with its degrees of freedom.
type stdErr struct{ se, df float64 }

// errors is the mean of values on the scale with its standard error and, where a
// session may be off, that with the session's share too, with degrees of freedom that
// are Satterthwaite's (1946). What is concluded has to hold under both.
func (sc scale) errors(ys []float64) (m float64, errs []stdErr, err error) {
	if m, err = stats.Mean(ys); err != nil {
		return 0, nil, err
	}
	sd, err := stats.StdDev(ys)
	if err != nil {
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

// manyDF are so many degrees of freedom that Student's distribution is the normal one.
const manyDF = 1000

// criticalValues keeps quantiles of Student's t, which every interval asks for
// and which are slow to compute.
var criticalValues sync.Map // [2]float64 of level and degrees of freedom → float64

func criticalT(level, df float64) float64 {
	key := [2]float64{level, df}
	if t, ok := criticalValues.Load(key); ok {
		return t.(float64)
	}
	t := stats.StudentQuantile((1+level)/2, df)
	criticalValues.Store(key, t)
	return t
}

// slack is how far rounding may move a number off a bound that it equals.
const slack = 1e-12

// near reports whether v is the finite number end, up to rounding.
func near(v, end float64) bool {
	return !math.IsInf(end, 0) && math.Abs(v-end) <= slack*max(math.Abs(v), math.Abs(end))
}

// holdsAbout is [plan.Bound.Holds] with equal meaning equal up to rounding.
func holdsAbout(b plan.Bound, v float64) bool {
	low, high := near(v, b.Low), near(v, b.High)
	switch {
	case math.IsNaN(v):
		return false
	case low && high:
		return !b.LowOpen && !b.HighOpen
	case low:
		return !b.LowOpen
	case high:
		return !b.HighOpen
	}
	return v > b.Low && v < b.High
}

// decideRow tests the centre of one value a round against a bound. The direction is
// that of the centre; p is the largest two-sided p value of "the centre is at
// this end" over the ends that the direction rests on, so that p ≤ α exactly
// where the interval of level 1-α is inside the bound, or outside of it.
func (sc scale) decide(xs []float64, b plan.Bound) (dir int, p float64) {
	c := sc.centre(xs)
	if math.IsNaN(c) {
		return 0, 1
	}
	var ends []float64
	if dir = -1; holdsAbout(b, c) {
		dir = 1
		ends = []float64{b.Low, b.High}
	} else if c <= b.Low || near(c, b.Low) { // near: what misses an open end is at it, on whichever side the rounding put it
		ends = []float64{b.Low}
	} else {
		ends = []float64{b.High}
	}
	for _, e := range ends {
		p = max(p, sc.pAt(xs, e))
	}
	return dir, p
}

// pAt is the two-sided p value of "the centre is e", corrected for the looks.
func (sc scale) pAt(xs []float64, e float64) float64 {
	t := sc.to(e)
	if math.IsInf(e, 0) || math.IsInf(t, 0) || math.IsNaN(t) { // open end, or zero where only positive values occur
		return 0
	}
	if slices.Min(xs) == slices.Max(xs) && sc.session == 0 {
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

// judgeRounds turns one value a round into a finding. phrase words what was seen,
// with the value or the interval put in.
func judgeRounds(sc scale, unit string, xs []float64, b plan.Bound, phrase func(string) string) finding {
	f := finding{sampled: true, need: boundText(b), per: sc.per}
	f.dir, f.p = sc.decide(xs, b)
	c := sc.centre(xs)
	if math.IsNaN(c) {
		return finding{weak: "the numbers of the rounds give no such value"}
	}
	iv, err := sc.interval(xs)
	if err != nil {
		f.few = len(xs) < minRounds
		f.p = 1
		f.saw = fmt.Sprintf("%s in %s", phrase(show(c, unit)), sc.times(len(xs)))
		f.evidence = []string{fmt.Sprintf("%s; no interval: %s, and it takes %d", f.saw, sc.times(len(xs)), minRounds)}
		return f
	}
	allowed := sc.per.kept()
	if sc.session > 0 {
		allowed += fmt.Sprintf(", %s allowed for what the session was like", percent(sc.session))
	}
	span, interval := showSpan(iv.Low, iv.High, unit), "95 % t interval"
	if span == show(c, unit) {
		interval += " within these digits"
	}
	f.saw = fmt.Sprintf("%s (%s, %s%s)", phrase(span), sc.times(len(xs)), interval, allowed)
	f.gap = gapText(b, iv)
	f.evidence = []string{fmt.Sprintf("%s; 95 %% interval %s, n = %s, %s%s, %s", phrase(show(c, unit)),
		showSpan(iv.Low, iv.High, unit), sc.times(len(xs)), sc.name, allowed, SayP(f.p))}
	return f
}

// gapText words where an interval is relative to a bound.
func gapText(b plan.Bound, iv stats.Interval) string {
	low, high := holdsAbout(b, iv.Low), holdsAbout(b, iv.High)
	below := iv.Low < b.Low || !low && iv.Low == b.Low
	above := iv.High > b.High || !high && iv.High == b.High
	switch {
	case low && high:
		return ""
	case iv.High < b.Low:
		return "and the whole interval is below it"
	case iv.Low > b.High:
		return "and the whole interval is above it"
	case below && above:
		return "and the interval reaches beyond it on both sides"
	case below:
		return "and the interval reaches below it"
	}
	return "and the interval reaches above it"
}

// SayP is a p value in a sentence: "p = 0.02", or "p below 0.0001".
func SayP(p float64) string {
	if text := ShowP(p); strings.HasPrefix(text, "below") {
		return "p " + text
	}
	return "p = " + ShowP(p)
}

// ShowP is a p value, from 0 to 1, as people read it: two digits, "below 0.0001", or "1".
func ShowP(p float64) string {
	switch {
	case p < 0.0001:
		return "below 0.0001"
	case p >= 0.9995:
		return "1"
	}
	return fmt.Sprintf("%.2g", p)
}

// combineAll wants every part to hold: one that does not decides.
func combineAll(parts []finding) finding { return combine(parts, 1) }

// combineAny wants one part to hold: one that holds decides.
func combineAny(parts []finding) finding { return combine(parts, -1) }

// combine is [combineAll] for sign 1 and, mirrored, [combineAny] for sign -1. The verdict
// that all parts carry together has the largest of their p values (an
// intersection–union test); the one that a single part carries has the smallest
// times the number of parts (Bonferroni).
func combine(parts []finding, sign int) finding {
	var out finding
	var missing, weak string
	count, single := 0, -1
	for i, f := range parts {
		out.sampled, out.per = out.sampled || f.sampled, firstReplica(out.per, f.per)
		out.evidence = append(out.evidence, f.evidence...)
		missing, weak = join(missing, f.missing), join(weak, f.weak)
		switch {
		case f.missing != "" || f.weak != "":
		case f.dir == -sign && (single < 0 || isFirmer(f, parts[single])):
			single = i
		case f.dir == sign:
			count++
		}
	}
	switch {
	case single >= 0:
		f := parts[single]
		out.dir, out.p, out.few, out.saw, out.need, out.gap = -sign, min(1, f.p*float64(len(parts))), f.few, f.saw, f.need, f.gap
	case missing != "" || weak != "":
		out.missing, out.weak = missing, weak
	case count == len(parts) && count > 0:
		out.dir = sign
		for i, f := range parts {
			out.p, out.few = max(out.p, f.p), out.few || f.few
			if i == 0 || f.p > parts[0].p {
				out.need, out.gap = f.need, f.gap
			}
			out.saw = join(out.saw, f.saw)
		}
		if len(parts) > 1 {
			out.need, out.gap = "", ""
		}
	default:
		for _, f := range parts {
			if f.dir == 0 {
				out.saw, out.need, out.gap, out.few, out.p = f.saw, f.need, f.gap, f.few, 1
			}
		}
	}
	return out
}

// isFirmer reports whether a decides more firmly than b.
func isFirmer(a, b finding) bool {
	if a.few != b.few {
		return b.few
	}
	return a.p < b.p
}

func join(a, b string) string {
	switch {
	case a == "" || a == b:
		return b
	case b == "":
		return a
	}
	for part := range strings.SplitSeq(b, "; ") { // reasons that several sides share are given once
		if !slices.Contains(strings.Split(a, "; "), part) {
			a += "; " + part
		}
	}
	return a
}

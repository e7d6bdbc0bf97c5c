package analysis

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
	"time"

	"dmgbench/internal/plan"
	"dmgbench/internal/result"
	"dmgbench/internal/stats"
)

// fileUnit is the unit of replication of an interval over the files of one mount.
const fileUnit = "file within one mount"

// summaries are what was measured, case by case in the order of the result,
// step by step in the order of the protocol.
func (s *runData) summaries() []result.Summary {
	out := []result.Summary{}
	for _, sub := range s.cases {
		for _, k := range sub.order {
			for _, q := range quantitiesOf(k.do) {
				if sum, ok := s.summary(cell{sub, k}, q); ok {
					out = append(out, sum)
				}
			}
		}
	}
	return out
}

func (s *runData) summary(c cell, q plan.Quantity) (result.Summary, bool) {
	out := result.Summary{Case: c.sub.c.ID, Phase: c.key.phase, Op: string(q), Cycle: c.key.cycle,
		Published: []result.PublishedValue{}, Departures: []string{}, Warnings: []result.Warning{}}
	head := gatherValues(q, []cell{c}, aggregate, nil)
	if head.weak != "" || quantityRows[q].bands && c.sub.c.Target.Format != "UDSB" {
		return out, false
	}
	rounds, steps := c.byRound()
	out.Rounds, out.N = c.rounds(), head.n
	for _, r := range rounds {
		for _, st := range steps[r] {
			if rate(q) {
				out.Bytes += movedBytes(st)
			}
		}
	}
	if perFile(q) {
		out.Headline, out.Estimates = s.rates(c, q)
	} else {
		out.Headline, out.Estimates = scalars(c, q)
	}
	out.Published, out.Estimates = s.comparePublished(c, q, out.Headline, out.Estimates)
	for _, d := range s.departed[""] {
		out.Departures = append(out.Departures, d.Text)
	}
	for _, d := range s.departed[c.sub.c.ID] {
		out.Departures = append(out.Departures, d.Text)
	}
	out.BySession = s.bySession(c, q, out.Headline)
	out.Warnings = s.warnings(c, q, out)
	if k := c.sub.c; !k.Measured() {
		out.Warnings = append(out.Warnings, result.Warning{Kind: "incomplete",
			Text: fmt.Sprintf("the case was %s, and this was measured before: %s", k.Status, cmp.Or(k.Reason, "no reason was recorded"))})
	}
	return out, true
}

func movedBytes(st *result.Step) int64 {
	if st.Stream != nil {
		return st.Stream.In
	}
	return spanBytes(st)
}

// rates are the estimates of the rate of timed files. With several workers only
// the aggregate is a rate of the whole, and the statistics of single files show what
// each got while the others ran.
func (s *runData) rates(c cell, q plan.Quantity) (headline string, out []result.Estimate) {
	list := append(slices.Clone(panel), weighted, latency, minimum, maximum)
	headline = s.headlineName()
	several := slices.ContainsFunc(c.steps(), func(st *result.Step) bool { return workers(st) > 1 })
	if several {
		list, headline = []string{aggregate, meanRate, medianRate, trimmedRate, minimum, maximum}, aggregate
	}
	for _, name := range list {
		if e, ok := estimateRate(c, q, name); ok {
			out = append(out, e)
		}
	}
	if !slices.ContainsFunc(out, func(e result.Estimate) bool { return e.Name == headline }) {
		headline = aggregate
	}
	return headline, out
}

// estimateRate gives one estimate: the geometric mean of the rounds with its t
// interval, or, of a single round, its value with an interval over its files.
func estimateRate(c cell, q plan.Quantity, name string) (result.Estimate, bool) {
	x := gatherValues(q, []cell{c}, name, nil)
	if x.weak != "" {
		return result.Estimate{}, false
	}
	e := result.Estimate{Name: name, Value: x.headline(), Unit: x.unit, N: x.n}
	if name == latency {
		e.Unit, e.Value = "s", plainScale.centre(x.values) // may be negative, where it is noise
	}
	switch {
	case name == minimum || name == maximum:
		e.Why = "an extreme value has no interval"
	case len(x.rounds) == 1 && x.per.unit != perSession:
		_, steps := c.byRound()
		fileInterval(&e, filesOf(steps[x.rounds[0]], nil), steps[x.rounds[0]])
	case name == latency:
		plainScale.over(x.per).roundInterval(&e, x.values)
	default:
		roundInterval(&e, x.values, x.per)
	}
	return e, true
}

// roundInterval gives an estimate the t interval of its rounds.
func roundInterval(e *result.Estimate, values []float64, per replica) {
	scaleOf(e.Unit, values).over(per).roundInterval(e, values)
}

func (sc scale) roundInterval(e *result.Estimate, values []float64) {
	iv, err := sc.interval(values)
	if err != nil {
		e.Why = fmt.Sprintf("%s, and an interval needs %d", sc.times(len(values)), minRounds)
		return
	}
	e.CI = ciOf(iv, sc.per.name())
	e.CI.Method = sc.name + sc.per.kept()
}

func ciOf(iv stats.Interval, unit string) *result.CI {
	return &result.CI{Low: iv.Low, High: iv.High, Level: iv.Level, Method: iv.Method, Unit: unit}
}

// fileInterval gives an estimate of a single round an interval over its files.
// It shows how the files of this mount scatter, not what another mount would show.
func fileInterval(e *result.Estimate, f files, steps []*result.Step) {
	iv, err := intervalOfFiles(e.Name, f, steps)
	if err != nil {
		e.Why = fmt.Sprintf("1 round, where an interval needs %d%s", minRounds, noFileInterval(err))
		return
	}
	e.CI = ciOf(iv, fileUnit)
	if (e.Name == medianRate || e.Name == theilSen) && slices.ContainsFunc(steps, twoSpeeds) {
		e.CI.Method += ", too narrow: files at two speeds"
	}
}

// twoSpeeds reports whether the files of a step are of two speeds. Files that follow each
// other share theirs, so that the exact intervals, which take files to be independent,
// contain the rate of a long run less often than their level.
func twoSpeeds(st *result.Step) bool {
	return slices.ContainsFunc(StepWarnings(st), func(w result.Warning) bool { return w.Kind == "bimodal" || w.Kind == "two-modes" })
}

// noFileInterval reports why the files of one round give no interval.
func noFileInterval(err error) string {
	if errors.Is(err, stats.ErrTooFew) {
		return fmt.Sprintf(" (or %d files of each size)", stats.MinInGroup)
	}
	return "; over its files: " + err.Error()
}

func intervalOfFiles(name string, f files, steps []*result.Step) (stats.Interval, error) {
	switch name {
	case aggregate:
		if f.workers > 1 {
			return stats.Interval{}, errWorkers
		}
		return f.aggregateInterval(steps)
	case meanRate:
		return f.bySize(1, func(size, time []float64) float64 { return average(rates(size, time)) })
	case medianRate:
		return stats.MedianInterval(f.rate, level)
	case trimmedRate:
		return f.bySize(1-2*trimShare, func(size, time []float64) float64 {
			m, err := stats.TrimmedMean(rates(size, time), trimShare)
			if err != nil {
				return math.NaN()
			}
			return m
		})
	case theilSen:
		l, err := stats.FitTheilSen(f.size, f.time)
		if err != nil {
			return stats.Interval{}, err
		}
		return invertInterval(l.SlopeIntervalByGroup(f.size, f.time, level))
	}
	if name == weighted || name == latency {
		return f.weightedInterval(name)
	}
	return invertInterval(f.bySize(1, func(size, time []float64) float64 {
		l, err := stats.FitLine(size, time)
		if err != nil {
			return math.NaN()
		}
		return l.Slope
	}))
}

// minTrimmed is the least number of files for the interval of a trimmed mean: that of
// fewer is too wide for its level (docs/accuracy.md).
const minTrimmed = 6

// bySize is the interval of a statistic of files of chosen sizes with
// times scatter, the more the larger they are.
// apply is the share of the files that decide it. Far outliers are rare, so that a
// sample that has some does not show how many there are: no interval then.
func (f files) bySize(keep float64, statistic func(size, time []float64) float64) (stats.Interval, error) {
	if keep == 1 && f.outlying() {
		return stats.Interval{}, errOutliers
	}
	if keep < 1 && len(f.size) < minTrimmed {
		return stats.Interval{}, fmt.Errorf("%s, and an interval of what is left after trimming takes %d", plural(len(f.size), "file"), minTrimmed)
	}
	return stats.JackknifeByGroup(f.size, f.time, statistic, keep, level)
}

func rates(size, time []float64) []float64 {
	out := make([]float64, len(size))
	for i := range size {
		out[i] = size[i] / time[i]
	}
	return out
}

func (f files) weightedInterval(name string) (stats.Interval, error) {
	if _, err := f.line(name); err != nil {
		return stats.Interval{}, err
	}
	iv, err := f.bySize(1, func(x, y []float64) float64 {
		slope, intercept := relativeLine(x, y)
		if name == latency {
			return intercept
		}
		return slope
	})
	if name == latency {
		return iv, err
	}
	return invertInterval(iv, err)
}

// relativeLine is the line of [stats.FitWeightedLine] with weights 1/size² in
// closed form: with u = 1/size the sums of the weighted
// products are those of u², u, 1, u²·time and u·time. It is not finite, and so no
// interval, where all files have one size.
func relativeLine(size, time []float64) (slope, intercept float64) {
	n, largest := float64(len(size)), slices.Max(size)
	var u1, u2, u1t, u2t float64
	same := true
	for i, s := range size {
		u := largest / s
		u1, u2 = u1+u, u2+u*u
		u1t, u2t = u1t+u*time[i], u2t+u*u*time[i]
		same = same && s == size[0]
	}
	if same {
		return math.NaN(), math.NaN()
	}
	below := u2*n - u1*u1
	slope = (u2*u1t - u1*u2t) / below
	return slope / largest, (n*u2t - u1*u1t) / below
}

func average(xs []float64) float64 {
	sum := 0.0
	for _, x := range xs {
		sum += x
	}
	return sum / float64(len(xs))
}

// aggregateInterval is over files; the idle time between them is spread over
// all in proportion, so that the statistic is the aggregate itself.
func (f files) aggregateInterval(steps []*result.Step) (stats.Interval, error) {
	span, busy := 0.0, 0.0
	for _, st := range steps {
		span += float64(spanNS(st)) / 1e9
	}
	for _, t := range f.time {
		busy += t
	}
	if busy <= 0 {
		return stats.Interval{}, fmt.Errorf("no file was timed")
	}
	stretched := make([]float64, len(f.time))
	for i, t := range f.time {
		stretched[i] = t * span / busy
	}
	f.time = stretched
	return f.bySize(1, func(x, y []float64) float64 { return average(x) / average(y) })
}

// invertInterval turns the interval of a slope (seconds a byte) into that of a rate.
func invertInterval(iv stats.Interval, err error) (stats.Interval, error) {
	if err == nil && !(iv.Low > 0) {
		err = errSlope
	}
	iv.Low, iv.High = 1/iv.High, 1/iv.Low
	return iv, err
}

// scalars are the estimates of a quantity of the whole step: the mean of the rounds
// (geometric for rates and times), their median and extremes.
func scalars(c cell, q plan.Quantity) (string, []result.Estimate) {
	x := gatherValues(q, []cell{c}, aggregate, nil)
	name := meanRate
	if q == "stream" {
		name = aggregate
	}
	e := result.Estimate{Name: name, Value: x.headline(), Unit: x.unit, N: x.n}
	roundInterval(&e, x.values, x.per)
	out := []result.Estimate{e}
	if x.n < 2 {
		return name, out
	}
	if m, err := stats.Median(x.values); err == nil {
		out = append(out, result.Estimate{Name: medianRate, Value: m, Unit: x.unit, N: x.n, Why: "the interval is that of the " + name})
	}
	for _, end := range []string{minimum, maximum} {
		v := gatherValues(q, []cell{c}, end, nil)
		pick := slices.Min[[]float64]
		if end == maximum {
			pick = slices.Max[[]float64]
		}
		out = append(out, result.Estimate{Name: end, Value: pick(v.values), Unit: x.unit, N: x.n, Why: "an extreme value has no interval"})
	}
	return name, out
}

// estimate finds an estimate by name.
func estimate(list []result.Estimate, name string) (result.Estimate, bool) {
	for _, e := range list {
		if e.Name == name {
			return e, !math.IsNaN(e.Value)
		}
	}
	return result.Estimate{}, false
}

// comparePublished sets the published figures of a cell next to what was measured. A figure
// of one file size gets an estimate of its own, named "aggregate@2 GB".
func (s *runData) comparePublished(c cell, q plan.Quantity, headline string, list []result.Estimate) ([]result.PublishedValue, []result.Estimate) {
	out := []result.PublishedValue{}
	for _, p := range s.p.Published {
		if p.Quantity != q || p.Unmeasured || !c.sub.matches(p.Where) || !c.key.matches(p.Where) {
			continue
		}
		name := cmp.Or(p.Statistic, headline)
		e, ok := estimate(list, name)
		if f := filterOf(p.Where); f != nil {
			name += "@" + partText(f)
			if e, ok = estimate(list, name); !ok {
				if e, ok = partEstimate(c, q, cmp.Or(p.Statistic, aggregate), name, f); ok {
					list = append(list, e)
				}
			}
		}
		v := result.PublishedValue{Text: p.Value.Text, Kind: p.Value.Kind, Low: p.Value.Low, High: p.Value.High,
			Unit: p.Value.Unit, Statistic: p.Statistic, On: onText(s.where(p)), Comparable: s.comparable(c.sub.c.ID) && s.takenHere(p.On)}
		if mid := figureSide(p.Value).headline(); ok && mid != 0 && !math.IsInf(mid, 0) {
			v.Ratio, v.Estimate = e.Value/mid, e.Name
		}
		v.Comparable = v.Comparable && ok
		out = append(out, v)
	}
	return out, list
}

func partText(f *sampleFilter) string {
	var parts []string
	if f.size != nil {
		parts = append(parts, strings.Join(f.size.Values, " or "))
	}
	if f.set != nil {
		parts = append(parts, "set "+strings.Join(f.set.Values, " or "))
	}
	return strings.Join(parts, ", ")
}

// partEstimate is the estimate of a part of the files of a cell.
func partEstimate(c cell, q plan.Quantity, est, name string, f *sampleFilter) (result.Estimate, bool) {
	x := gatherValues(q, []cell{c}, est, f)
	if x.weak != "" {
		return result.Estimate{}, false
	}
	e := result.Estimate{Name: name, Value: x.headline(), Unit: x.unit, N: x.n}
	roundInterval(&e, x.values, x.per)
	return e, true
}

// onText is machine, system, tool and day in one line.
func onText(on plan.On) string {
	var parts []string
	for _, t := range []string{on.Machine, on.OS, on.Tool} {
		if t != "" {
			parts = append(parts, t)
		}
	}
	if !on.Date.IsZero() {
		parts = append(parts, on.Date.Format(time.DateOnly))
	}
	return strings.Join(parts, ", ")
}

// incomparable are the departures after which the ratio to a published figure
// compares different things. Fewer rounds only make it less certain, and what the
// source leaves open may well be what it did.
var incomparable = []string{"engine", "filesystem", "scale", "sets", "machine", "os", "codec", "input", "format", "band-size",
	"cache", "sync", "workers", "files", "size", "encryption", "backend", "place"}

func (s *runData) comparable(id string) bool {
	for _, d := range slices.Concat(s.departed[""], s.departed[id]) {
		if slices.Contains(incomparable, d.Kind) {
			return false
		}
	}
	return true
}

// takenHere reports whether the origin that a figure names in addition to the source's is that of this run: the machine and system of all its
// sessions, and a tool that is the source's own. The source's own origin is among the departures.
func (s *runData) takenHere(on plan.On) bool {
	if s.p.Source != nil && !strings.Contains(s.p.Source.On.Tool, on.Tool) {
		return false
	}
	return !slices.ContainsFunc(s.r.Sessions, func(ss result.Session) bool {
		h := ss.Host
		return on.Machine != "" && !sameChip(on.Machine, h.CPU+" "+h.Model) || on.OS != "" && !sameSystem(on.OS, h)
	})
}

// ofAnotherMachine reports why a published rate or time is not compared with a measured one: the source took it on its own machine, which
// is not the one that was measured, so that the difference may be the machines'. One that it took on another machine than its own
// is meant across machines, and sizes are.
func (s *runData) ofAnotherMachine(op plan.Operand) string {
	if unit := op.Quantity.Unit(); s.p.Source == nil || unit != "B/s" && unit != "s" {
		return ""
	}
	figures, _ := s.figures(op)
	own := func(p plan.Published) bool { return s.where(p).Machine == s.p.Source.On.Machine }
	i := slices.IndexFunc(s.departed[""], func(d result.Departure) bool { return d.Kind == "machine" })
	if i < 0 || !slices.ContainsFunc(figures, own) {
		return ""
	}
	return "the published figure is of another machine: " + s.departed[""][i].Text
}

// needsPrecision reports whether rounds = "auto" waits for the interval of a quantity: the rates, and
// whatever else a published figure, a claim, a fit or a relation of the plan speaks of.
// What no one asked about, such as how long a detach takes, is not worth a round.
func (s *runData) needsPrecision(q plan.Quantity) bool {
	if rate(q) {
		return true
	}
	for _, p := range s.p.Published {
		if p.Quantity == q {
			return true
		}
	}
	for _, f := range s.p.Fits {
		if f.Quantity == q {
			return true
		}
	}
	for _, r := range s.p.Relations {
		if r.X.Quantity == q || r.Y.Quantity == q {
			return true
		}
	}
	return slices.ContainsFunc(s.p.Claims, func(c plan.Claim) bool {
		return slices.ContainsFunc(s.operands(c.Assert), func(op plan.Operand) bool { return op.Quantity == q })
	})
}

// Widths returns the headlines that the plan is about are not yet as certain as rounds = "auto" wants them,
// and how many can have an interval. r is what was measured so far and is
// left alone. The intervals are those that [Analyze] gives, at the level that they
// have at every look.
//
// A headline waits for its interval below [minRounds] rounds that count; one that
// has none although there are so many never will, and is not judged. Neither is a
// value of exactly zero that does not vary.
func Widths(p *plan.Plan, r *result.Result) (judged int, wide []result.WideInterval, err error) {
	own := *r
	own.Cases = append([]result.Case{}, r.Cases...) // warnings are added to cases
	s, err := newRunData(p, &own)
	if err != nil {
		return 0, nil, err
	}
	wide = []result.WideInterval{}
	for _, sum := range s.summaries() {
		e, ok := estimate(sum.Estimates, sum.Headline)
		if i := slices.IndexFunc(own.Cases, func(c result.Case) bool { return c.ID == sum.Case }); !own.Cases[i].Measured() {
			continue // more rounds of it will not help
		}
		if !ok || !s.needsPrecision(plan.Quantity(sum.Op)) || e.CI == nil && sum.Rounds >= minRounds {
			continue
		}
		judged++
		half := -1.0
		if e.CI != nil && sum.Rounds >= minRounds {
			if half = halfWidth(e); half <= float64(p.Run.Precision) {
				continue
			}
			if math.IsInf(half, 0) || math.IsNaN(half) {
				half = -1
			}
		}
		wide = append(wide, result.WideInterval{Case: sum.Case, Phase: sum.Phase, Op: sum.Op, Cycle: sum.Cycle, Half: half})
	}
	return judged, wide, nil
}

// halfWidth is half the width of an estimate's interval as a share of its value:
// 0 where no value varies, infinite about zero.
func halfWidth(e result.Estimate) float64 {
	if e.CI.High == e.CI.Low {
		return 0
	}
	return (e.CI.High - e.CI.Low) / 2 / math.Abs(e.Value)
}

// whatNarrows names what would narrow an interval.
func (s *runData) whatNarrows() string {
	if a := s.r.Auto; a != nil && len(a.Decisions) > 0 {
		switch a.Decisions[len(a.Decisions)-1].Stop {
		case result.StopTime:
			return "the run ended at its limit of time"
		case result.StopWritten:
			return "the run ended at its limit of bytes written"
		case result.StopRounds:
			return "the run ended at its limit of rounds"
		}
	}
	return "more rounds would narrow it"
}

// MeanOverRounds averages one value a round the way the headline figures of r are
// averaged: geometrically for rates and times ("B/s", "s"), as they are for sizes
// and pure numbers; and gives the mean its t interval at the same level and over the
// same unit of replication, the round, or the run where at least three are pooled.
// Without an interval the estimate gives the reason. N is the number of units. It is for
// points of pictures, such as one file size or one part of a time, that have no
// summary of their own; there must be at least one value.
func MeanOverRounds(r *result.Result, unit string, byRound map[int]float64) result.Estimate {
	per := replicated(r)
	groups := map[int][]float64{}
	var all []float64
	for _, round := range slices.Sorted(maps.Keys(byRound)) {
		group := round
		if per.unit == perSession {
			group = slices.IndexFunc(r.Runs, func(p result.PooledRun) bool { return round >= p.First && round <= p.Last })
		}
		groups[group] = append(groups[group], byRound[round])
		all = append(all, byRound[round])
	}
	sc := scaleOf(unit, all)
	var values []float64
	for _, group := range slices.Sorted(maps.Keys(groups)) {
		values = append(values, sc.centre(groups[group]))
	}
	e := result.Estimate{Name: meanRate, Unit: unit, N: len(values), Value: sc.centre(values)}
	sc.over(per).roundInterval(&e, values)
	return e
}

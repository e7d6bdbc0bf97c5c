package analysis

import (
	"cmp"
	"maps"
	"math"
	"slices"
	"strings"
	"sync"

	"dmgbench/internal/analysis/stats"
	"dmgbench/internal/plan"
	"dmgbench/internal/report/wording"
	"dmgbench/internal/result"
)

// The limits beyond which something is worth a warning.
const (
	// Times the native baseline's rate
	fasterThanNative = 1.05
	// Share by which the canary's rate may vary
	canaryDrift = 0.10
	// Share by which rates may change from first to last where a trend is
	// certain
	minDrift = 0.05
	// Chance of such a trend, or break, in noise
	trendP = 0.01
	// Factor from which the runs of a pooled result count as different
	sessionsApart = 1.05
)

// warn is a warning; the kind is also the key of its sentence.
func warn(kind string, args ...any) result.Warning {
	return result.Warning{Kind: kind, Text: wording.Text("warning."+kind, args...)}
}

// warningList keeps each warning once.
type warningList []result.Warning

func (w *warningList) add(kind string, args ...any) { w.put(warn(kind, args...)) }

func (w *warningList) put(list ...result.Warning) {
	for _, x := range list {
		if !slices.Contains(*w, x) {
			*w = append(*w, x)
		}
	}
}

// manyOfKind is how many different texts of one kind are shown.
const manyOfKind = 3

// shortened has a count in place of many warnings of one kind.
func (w warningList) shortened() []result.Warning {
	count, last := map[string]int{}, map[string]int{}
	out := []result.Warning{}
	for _, x := range w {
		if count[x.Kind]++; count[x.Kind] <= manyOfKind {
			last[x.Kind] = len(out)
			out = append(out, x)
		}
	}
	for kind, i := range last {
		if n := count[kind]; n > manyOfKind {
			out[i].Text = wording.Text("and-more", out[i].Text, n-manyOfKind)
		}
	}
	return out
}

// warnings lists whatever weakens a number of a summary: the warnings of the
// steps themselves, of the hosts of their sessions, and what the numbers show.
// They are added to the case as well.
func (s *runData) warnings(c cell, q plan.Quantity, sum result.Summary) []result.Warning {
	var w warningList
	if sum.Rounds < minRounds {
		w.add("few-rounds", wording.Count{N: sum.Rounds, Noun: "round"}, minRounds)
	}
	for _, st := range c.steps() {
		w.put(st.Warnings...)
		ss, _ := find(s.r.Sessions, func(ss result.Session) bool { return ss.Index == st.Session })
		w.put(hostWarnings(ss.Host)...)
	}
	if isPerFile(q) {
		for _, st := range c.steps() {
			w.put(fileWarnings(st)...)
		}
		// The speed was still changing. Fewer than six rounds cannot show that at
		// [trendP].
		rates := gatherValues(q, []cell{c}, aggregate, nil).values
		s.addDrift(&w, "transient", wording.Count{N: len(rates), Noun: "round"}, rates)
	}
	if own, ok := findEstimate(sum.Estimates, sum.Headline); ok {
		if isRate(q) {
			s.addSessions(&w, sum)
			s.addNative(&w, c, q, own)
		}
		want := float64(s.p.Run.Precision)
		isWanted := want > 0 && own.CI != nil && (isRate(q) || s.r.Auto != nil && s.needsPrecision(q))
		if isWanted && own.Value > 0 && halfWidth(own) > want {
			w.add("precision", wording.Percent(halfWidth(own)), wording.Percent(want))
		}
	}
	list, ofCase := w.shortened(), warningList(c.sub.c.Warnings)
	for _, x := range list {
		if !slices.Contains(hostKinds, x.Kind) {
			x.Text = spaced(c.key.do, c.key.phase) + ": " + x.Text
		}
		if x.Kind != "few-rounds" { // of the whole run
			ofCase.put(x)
		}
	}
	c.sub.c.Warnings = ofCase
	return list
}

// hostKinds are the kinds of warning about a machine, not of a step.
var hostKinds = []string{"battery", "low-power", "thermal", "cpu-quota", "busy", "virtual", "sleep",
	"translated", "memory-pressure", "network", "image-host", "compressed", "nearly-full", "swap", "snapshots"}

// hostWarnings are the facts of a session's host that weaken its numbers.
func hostWarnings(h result.Host) []result.Warning {
	var w warningList
	addIf := func(is bool, kind string, args ...any) {
		if is {
			w.add(kind, args...)
		}
	}
	addIf(h.Power == "battery", "battery")
	addIf(h.LowPower, "low-power")
	addIf(isHot(h), "thermal", h.Thermal)
	addIf(h.CPUQuota > 0, "cpu-quota", h.CPUQuota)
	addIf(len(h.Busy) > 0, "busy", strings.Join(h.Busy, ", "))
	return w
}

// runWarnings adds to the run the warnings of its hosts, sessions and canaries.
// A pooled result has those of its runs after their names.
func (s *runData) runWarnings() {
	var w warningList
	for _, ss := range s.r.Sessions {
		w.put(hostWarnings(ss.Host)...)
	}
	if s.r.Rounds < minRounds && len(s.cases) > 0 {
		w.put(result.Warning{Kind: "few-rounds",
			Text: wording.Text("few-rounds.run", wording.Count{N: s.r.Rounds, Noun: "round"}, minRounds)})
	}
	if split := s.splitRounds(); len(split) > 0 {
		w.put(result.Warning{Kind: "sessions", Text: wording.Text("split-rounds", wording.Numbers(split))})
	}
	places := map[string]bool{}
	for _, sub := range s.cases {
		if place := sub.c.Target.Place; !places[place] {
			places[place] = true
			s.addCanary(&w, "write", place)
			s.addCanary(&w, "read", place)
		}
	}
	s.r.Warnings = append(s.r.Warnings, slices.DeleteFunc(w, func(x result.Warning) bool {
		return slices.ContainsFunc(s.r.Warnings, func(known result.Warning) bool {
			return known.Kind == x.Kind && strings.HasSuffix(known.Text, x.Text)
		})
	})...)
}

// addCanary reports how far the short native write (or read) before each case
// at a place drifted: the coefficient of variation, and the trend in the order
// of the run.
func (s *runData) addCanary(w *warningList, do, place string) {
	var shots []*result.Step
	for _, sub := range s.cases {
		for i := range sub.c.Steps {
			st := &sub.c.Steps[i]
			if sub.c.Target.Place == place && isCanary(st) && st.Op == do && spanNS(st) > 0 && st.Error == "" {
				shots = append(shots, st)
			}
		}
	}
	// Starts count from that of the session
	slices.SortStableFunc(shots, func(a, b *result.Step) int {
		return cmp.Or(cmp.Compare(a.Session, b.Session), cmp.Compare(a.StartNS, b.StartNS))
	})
	rates := mapped(shots, func(st *result.Step) float64 { return float64(spanBytes(st)) / float64(spanNS(st)) })
	if len(rates) < 2 {
		return
	}
	cv := orNaN(stats.StdDev(rates)) / mean(rates)
	varied := wording.Say("canary-varied", do, wording.Percent(cv), len(rates))
	if !s.addDrift(w, "drift", varied, rates) && cv > canaryDrift {
		w.add("unsteady", varied)
	}
}

// addDrift warns that rates have a trend in the order of time. Rounds of pooled
// runs are in no one order of time.
func (s *runData) addDrift(w *warningList, kind string, what any, rates []float64) bool {
	t, change, ok := trendOf(logScale.all(rates))
	over := math.Abs(math.Expm1(change))
	if !ok || over < minDrift || len(s.r.Runs) > 0 {
		return false
	}
	became := wording.Say("faster")
	if t.Coefficient < 0 {
		became = wording.Say("slower")
	}
	w.add(kind, what, became, wording.Percent(over), wording.P(t.P))
	return true
}

// addSessions reports that two pooled runs differ by more than their rounds
// scatter: an interval over rounds does not contain that.
func (s *runData) addSessions(w *warningList, sum result.Summary) {
	if s.per.unit == perSession || len(sum.BySession) != 2 {
		return
	}
	a, b := sum.BySession[0].Value, sum.BySession[1].Value
	factor := max(a/b, b/a)
	if a > 0 && b > 0 && factor >= sessionsApart {
		rate := func(v float64) wording.Amount { return wording.Amount{Value: v, Unit: "B/s"} }
		w.add("sessions", wording.Number(factor), rate(a), rate(b))
	}
}

// workKeys are the selector keys of cases that do the same work.
var workKeys = []string{"place", "files", "workers", "sync", "cache", "block", "qos", "codec", "level", "threads"}

// addNative compares a rate with that of the native folder of the same place
// and work.
func (s *runData) addNative(w *warningList, c cell, q plan.Quantity, own result.Estimate) {
	if c.sub.c.Target.Kind != "image" || own.Name != aggregate {
		return
	}
	manual := mapped(c.sub.plan.Settings.Manual, func(kv plan.KeyValue) string { return kv.Key })
	for _, sub := range s.cases {
		differs := func(key string) bool {
			x, _ := sub.value(key)
			y, _ := c.sub.value(key)
			return !sameValue(key, x, y)
		}
		if sub.c.Target.Kind != "directory" || len(sub.steps[c.key]) == 0 ||
			slices.ContainsFunc(slices.Concat(workKeys, manual), differs) {
			continue
		}
		base := gatherValues(q, []cell{{sub, c.key}}, aggregate, nil)
		if rate := base.headline(); base.weak == "" && own.Value > fasterThanNative*rate {
			w.add("faster-than-native", wording.Number(own.Value/rate), wording.Amount{Value: rate, Unit: "B/s"})
			return
		}
	}
}

// The limits of warnings about the files of one step.
const (
	// Of the workers' time between gate and last done
	idleShare = 0.10
	// Times the overhead of a file is the least time of a trustworthy one
	smallFile = 20
	// Ns that reading the clock twice and entering the calls may cost, as an
	// upper estimate
	clockCost = 1000
	// Factor by which a file, or a mode, has to differ from its expected time
	fileFactor = 1.25
	// Files for which two modes, or a trend, can be found
	minForMode = 20
)

// StepWarnings are what weakens the timed files of one step: what was recorded
// with it, and what its files alone show. Summaries carry the same, shortened
// where there are many of a kind; this is for charts that mark where it
// happened.
func StepWarnings(st *result.Step) []result.Warning {
	w := warningList(slices.Clone(st.Warnings))
	w.put(fileWarnings(st)...)
	return w
}

// fileWarnings are what the files of a step show alone.
func fileWarnings(st *result.Step) []result.Warning {
	if st.FileWarnings != nil || st.Error != "" {
		return st.FileWarnings
	}
	w := warningList{}
	w.addFiles(st)
	return w
}

// keepFileWarnings looks at the files of each step once, for summaries and
// charts. It takes half a second for 200,000 files, shared by the processors.
func keepFileWarnings(r *result.Result) {
	var cases sync.WaitGroup
	for i := range r.Cases {
		cases.Go(func() {
			for k := range r.Cases[i].Steps {
				st := &r.Cases[i].Steps[k]
				st.FileWarnings = fileWarnings(st)
			}
		})
	}
	cases.Wait()
}

// addFiles adds what the files of a step show: idle workers, files too small
// for the clock, outliers, a slow first file, two modes, a trend. Files of
// several workers share the machine, and rightly differ.
func (w *warningList) addFiles(st *result.Step) {
	w.addIdle(st)
	if workers(st) > 1 {
		return
	}
	samples := slices.DeleteFunc(inOrderOfStep(st), func(x result.Sample) bool { return !x.IsTimed() })
	excess := excessTimes(samples)
	if excess == nil {
		return
	}
	w.addOutliers(st, samples, excess)
	if len(samples) >= minForMode {
		w.addModes(st, samples, excess)
	}
}

// trendOf is the trend of logarithms in the order of time, and how much they
// change from first to last along their Theil–Sen line; false where that may
// be noise.
func trendOf(logs []float64) (t stats.Correlation, change float64, ok bool) {
	t, err := stats.Trend(logs)
	if err != nil || t.P > trendP {
		return t, 0, false
	}
	var at []float64
	for i := range logs {
		at = append(at, float64(i))
	}
	l, err := stats.FitTheilSen(at, logs)
	return t, l.Slope * float64(len(logs)-1), err == nil
}

// inOrderOfStep are the samples of a step in the order in which they were
// taken.
func inOrderOfStep(st *result.Step) []result.Sample {
	return slices.SortedFunc(slices.Values(st.Samples), func(a, b result.Sample) int { return a.Order - b.Order })
}

// addIdle reports how much of the workers' time was between files, and which
// files are too short for the overhead around them.
func (w *warningList) addIdle(st *result.Step) {
	span, n := spanNS(st), len(st.Samples)
	if st.Span == nil || span <= 0 || n == 0 {
		return
	}
	idle := float64(st.Span.IdleNS)
	if share := idle / (float64(span) * float64(workers(st))); share > idleShare {
		w.add("idle", st.Round, wording.Percent(share))
	}
	if workers(st) > 1 {
		return
	}
	overhead := max(clockCost, idle/float64(n))
	small := 0
	for _, x := range st.Samples {
		if float64(x.DurationNS) < smallFile*overhead {
			small++
		}
	}
	if small > 0 {
		w.add("small-files", st.Round, small, n, smallFile, wording.Amount{Value: overhead / 1e9, Unit: "s"})
	}
}

// The least numbers of files for which a time is expected: of all, and of one
// size where its median is that time.
const (
	minForExcess = 6
	minOfSize    = 3
)

// excessTimes is [files.excess] of samples.
func excessTimes(samples []result.Sample) []float64 {
	var f files
	f.grow(len(samples))
	for _, x := range samples {
		f.add(float64(x.Bytes), float64(x.DurationNS)/1e9)
	}
	return f.excess()
}

// excess is the logarithm of each file's time over the time expected for its
// size, nil where no time can be expected. That is the median of the size where
// three files or more share it, else that of the weighted line through all.
func (f files) excess() []float64 {
	if len(f.size) < minForExcess {
		return nil
	}
	usual := map[float64]float64{}
	for size, times := range groupBy(f.size, f.time) {
		if len(times) >= minOfSize {
			usual[size] = median(times)
		}
	}
	line, err := f.weightedLine()
	var out []float64
	for i, x := range f.size {
		expected, ok := usual[x]
		if !ok {
			expected = line.At(x)
		}
		if !ok && err != nil {
			return nil
		}
		if !(expected > 0) {
			return nil
		}
		out = append(out, math.Log(f.time[i]/expected))
	}
	return out
}

// groupBy are values by their keys.
func groupBy[K comparable](keys []K, values []float64) map[K][]float64 {
	out := map[K][]float64{}
	for i, k := range keys {
		out[k] = append(out[k], values[i])
	}
	return out
}

// farFiles are the files that no plausible scatter explains, by the rule of
// hyperfine on the logarithm of time over expected time, and that matter: by a
// factor of [fileFactor] from the median.
func farFiles(excess []float64) (far []int, mid float64) {
	mid = median(excess)
	far, err := stats.Outliers(excess)
	if err != nil {
		return nil, mid
	}
	return slices.DeleteFunc(far, func(i int) bool { return math.Abs(excess[i]-mid) < math.Log(fileFactor) }), mid
}

// addOutliers names the files that are far off the rest. The first file is
// judged separately, as it may pay for what all others find ready.
func (w *warningList) addOutliers(st *result.Step, samples []result.Sample, excess []float64) {
	rest := excess[1:]
	far, mid := farFiles(rest)
	scatter := mad(rest)
	if !(scatter > 0) {
		return
	}
	if over := excess[0] - mid; over > max(stats.OutlierThreshold*scatter, math.Log(fileFactor)) {
		w.add("slow-first", st.Round, wording.Number(math.Exp(over)))
	}
	if len(far) > 0 {
		worst := slices.MaxFunc(far, func(i, k int) int {
			return cmp.Compare(math.Abs(rest[i]-mid), math.Abs(rest[k]-mid))
		})
		x := samples[worst+1]
		w.add("outliers", st.Round, len(far), len(samples), x.File, wording.Size(x.Bytes),
			wording.Faster(rest[worst]-mid))
	}
}

// addModes looks for two modes in the course of a step: a shift, where the rate
// changes for good (throttling, a full fast cache, another user of the disk),
// or files of two kinds that come and go (a drive that throttles and recovers).
// Where the files are of two kinds even when a shift has been evened out, they
// come and go. Where a trend is left after it, the rate drifts.
func (w *warningList) addModes(st *result.Step, samples []result.Sample, excess []float64) {
	sizes := mapped(samples, func(x result.Sample) int64 { return x.Bytes })
	// Files are compared with those of their size; those of rare sizes, whose
	// excess is that over the line, with each other.
	groups, same := slices.Clone(sizes), groupBy(sizes, excess)
	for i, size := range sizes {
		if len(same[size]) < minOfSize {
			groups[i] = 0
		}
	}
	shift, err := stats.FindShift(excess, groups)
	even := slices.Clone(excess)
	broken := err == nil && shift.P <= trendP && math.Abs(shift.By) >= math.Log(fileFactor)
	if broken {
		for i := shift.At; i < len(even); i++ {
			even[i] -= shift.By
		}
		if _, _, drifts := trendOf(even); drifts {
			even, broken = excess, false
		}
	}
	if isOfTwoKinds, _ := findTwoKinds(sizes, even); isOfTwoKinds {
		if ok, c := findTwoKinds(sizes, excess); ok {
			w.add("bimodal", st.Round, c.N[1], len(samples), wording.Number(math.Exp(c.High-c.Low)))
			return
		}
	}
	if broken {
		moved := wording.Amount{Value: float64(sampleBytes(samples[:shift.At])), Unit: "B"}
		w.add("two-modes", st.Round, shift.At+1, moved, wording.Number(math.Exp(shift.By)))
	} else if t, change, ok := trendOf(excess); ok && math.Abs(change) >= math.Log(fileFactor) {
		text := wording.Text("transient.files", st.Round, wording.Number(math.Exp(change)), wording.P(t.P))
		w.put(result.Warning{Kind: "transient", Text: text})
	}
}

// minTurns is how often files have to change from one mode to the other for
// them to come and go: there and back, and there again.
const minTurns = 3

// findTwoKinds cuts files in two kinds by their excess over the lower quartile
// of their size, which is in the faster mode unless that is rare. Each kind is
// a tenth of the files or more, and they take turns.
func findTwoKinds(sizes []int64, excess []float64) (ok bool, c stats.TwoClusters) {
	low := map[int64]float64{}
	for size, list := range groupBy(sizes, excess) {
		if len(list) < 4 {
			return false, c
		}
		low[size] = quantile(list, 0.25)
	}
	over := slices.Clone(excess)
	for i, size := range sizes {
		over[i] -= low[size]
	}
	c, err := stats.FitTwoClusters(over, max(2, len(over)/10))
	if err != nil || !c.Distinct || c.High-c.Low < math.Log(fileFactor) {
		return false, c
	}
	kinds := slices.Compact(mapped(over, func(x float64) bool { return x > c.Cut }))
	return len(kinds) > minTurns, c
}

// splitRounds are the rounds that were measured in more than one session. Cases
// are paired by round since a round shares what its session was like, and steps
// on both sides of a break do not.
func (s *runData) splitRounds() []int {
	names := sessionNames(s.r)
	first, several := map[int]string{}, map[int]bool{}
	for _, sub := range s.cases {
		for _, st := range slices.Concat(slices.Collect(maps.Values(sub.steps))...) {
			name := names[st.Session]
			if before, ok := first[st.Round]; ok && before != name {
				several[st.Round] = true
			}
			first[st.Round] = name
		}
	}
	return sortedKeys(several)
}

// halfWidth is half the width of an estimate's interval as a share of its
// value: 0 where no value varies, infinite about zero.
func halfWidth(e result.Estimate) float64 {
	if e.CI.High == e.CI.Low {
		return 0
	}
	return (e.CI.High - e.CI.Low) / 2 / math.Abs(e.Value)
}

// needsPrecision reports whether rounds = "auto" waits for the interval of a
// quantity: the rates, and every other that a published figure, a claim, a fit
// or a relation of the plan names. Other quantities, such as how long a detach
// takes, are not worth a round.
func (s *runData) needsPrecision(q plan.Quantity) bool {
	isOf := func(op plan.Operand) bool { return op.Quantity == q }
	isIn := func(c plan.Claim) bool { return slices.ContainsFunc(s.operands(c.Assert), isOf) }
	return isRate(q) || slices.ContainsFunc(s.p.Claims, isIn) ||
		slices.ContainsFunc(s.p.Published, func(p plan.Published) bool { return p.Quantity == q }) ||
		slices.ContainsFunc(s.p.Fits, func(f plan.Fit) bool { return f.Quantity == q }) ||
		slices.ContainsFunc(s.p.Relations, func(r plan.Relation) bool { return isOf(r.X) || isOf(r.Y) })
}

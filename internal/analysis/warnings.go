package analysis

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"

	"dmgbench/internal/plan"
	"dmgbench/internal/result"
	"dmgbench/internal/stats"
)

// The limits beyond which something is worth a warning.
const (
	fasterThanNative = 1.05 // times the native baseline's rate
	idleShare        = 0.10 // of the workers' time between gate and last done
	smallFile        = 20   // times the overhead of a file is the least time of a trustworthy one
	clockCost        = 1000 // ns that reading the clock twice and entering the calls may cost, as an upper estimate
	worthSaying      = 1.25 // factor by which a file, or a mode, has to differ from what was to be expected
	modeP            = 0.01 // chance of such a break in one line with noise
	minForModes      = 20   // files
	canaryDrift      = 0.10 // share by which the canary's rate may vary
	canaryTrend      = 0.05 // share by which it may change from first to last where a trend is certain
)

// warnings lists whatever weakens a number of a summary: the warnings of the steps
// themselves, of the hosts of their sessions, and what the numbers show.
// They are added to the case as well.
func (s *runData) warnings(c cell, q plan.Quantity, sum result.Summary) []result.Warning {
	w := warningList{list: []result.Warning{}}
	if sum.Rounds < minRounds {
		w.add("few-rounds", "%s: an interval and a verdict need %d", plural(sum.Rounds, "round"), minRounds)
	}
	for _, st := range c.steps() {
		for _, x := range st.Warnings {
			w.put(x)
		}
		if i := slices.IndexFunc(s.r.Sessions, func(ss result.Session) bool { return ss.Index == st.Session }); i >= 0 {
			for _, x := range hostWarnings(s.r.Sessions[i].Host) {
				w.put(x)
			}
		}
	}
	if perFile(q) {
		s.fileWarnings(&w, c)
		s.transientWarning(&w, c, q)
	}
	s.sessionWarning(&w, c, q, sum)
	if rate(q) {
		s.nativeWarning(&w, c, q, sum)
	}
	if rate(q) || s.r.Auto != nil && s.needsPrecision(q) {
		s.precisionWarning(&w, sum)
	}
	w.shorten()
	for _, x := range w.list {
		s.toCase(c.sub.c, c.key, x)
	}
	return w.list
}

// warningList keeps each warning once.
type warningList struct{ list []result.Warning }

func (w *warningList) add(kind, format string, args ...any) {
	w.put(result.Warning{Kind: kind, Text: fmt.Sprintf(format, args...)})
}

func (w *warningList) put(x result.Warning) {
	if !slices.Contains(w.list, x) {
		w.list = append(w.list, x)
	}
}

// manyOfKind is how many different texts of one kind are shown.
const manyOfKind = 3

// shorten puts a count in place of many warnings of one kind.
func (w *warningList) shorten() {
	count := map[string]int{}
	var out []result.Warning
	for _, x := range w.list {
		if count[x.Kind]++; count[x.Kind] <= manyOfKind {
			out = append(out, x)
		}
	}
	for i, x := range out {
		if n := count[x.Kind]; n > manyOfKind && (i == len(out)-1 || out[i+1].Kind != x.Kind) {
			out[i].Text += fmt.Sprintf(" (and %d more of this kind)", n-manyOfKind)
		}
	}
	if out != nil {
		w.list = out
	}
}

// toCase adds a warning of a summary to its case, once.
func (s *runData) toCase(c *result.Case, k stepKey, x result.Warning) {
	if x.Kind == "few-rounds" {
		return // said of the whole run by its number of rounds
	}
	if !slices.ContainsFunc(hostKinds, func(kind string) bool { return kind == x.Kind }) {
		x.Text = strings.TrimSpace(k.do+" "+k.phase) + ": " + x.Text
	}
	if !slices.Contains(c.Warnings, x) {
		c.Warnings = append(c.Warnings, x)
	}
}

// hostKinds are the kinds of warning about a machine, not of a step.
var hostKinds = []string{"battery", "low-power", "thermal", "cpu-quota", "busy", "virtual", "sleep",
	"translated", "memory-pressure", "network", "image-host", "nearly-full", "swap", "snapshots"}

// hostWarnings are the facts of a session's host that weaken its numbers.
func hostWarnings(h result.Host) []result.Warning {
	var w warningList
	if h.Power == "battery" {
		w.add("battery", "the machine ran on battery")
	}
	if h.LowPower {
		w.add("low-power", "low power mode was on")
	}
	if t := strings.ToLower(h.Thermal); t != "" && t != "nominal" && t != "none" {
		w.add("thermal", "thermal pressure: %s", h.Thermal)
	}
	if h.CPUQuota > 0 {
		w.add("cpu-quota", "a quota allows %.3g of the machine's processors", h.CPUQuota)
	}
	if len(h.Busy) > 0 {
		w.add("busy", "other work was going on: %s", strings.Join(h.Busy, ", "))
	}
	return w.list
}

// hostWarnings adds to the run the warnings of its hosts and canaries.
func (s *runData) hostWarnings() {
	add := func(x result.Warning) {
		said := func(w result.Warning) bool { return w.Kind == x.Kind && strings.HasSuffix(w.Text, x.Text) }
		if !slices.ContainsFunc(s.r.Warnings, said) { // a pooled result says it behind the run's name
			s.r.Warnings = append(s.r.Warnings, x)
		}
	}
	for _, ss := range s.r.Sessions {
		for _, x := range hostWarnings(ss.Host) {
			add(x)
		}
	}
	if s.r.Rounds < minRounds && len(s.cases) > 0 {
		add(result.Warning{Kind: "few-rounds", Text: fmt.Sprintf("%s: intervals and verdicts need %d", plural(s.r.Rounds, "round"), minRounds)})
	}
	if x, ok := s.splitRounds(); ok {
		add(x)
	}
	if x, ok := s.clockSetBack(); ok {
		add(x)
	}
	for _, place := range s.places() {
		for _, do := range []string{"write", "read"} {
			if x, ok := s.canary(do, place); ok {
				add(x)
			}
		}
	}
}

// places are the places of all cases, in the order of the result.
func (s *runData) places() (out []string) {
	for _, sub := range s.cases {
		if p := sub.c.Target.Place; !slices.Contains(out, p) {
			out = append(out, p)
		}
	}
	return out
}

// canary reports how far the short native write (or read) before each case at a
// place drifted: the coefficient of variation, and the trend in the order of the run.
func (s *runData) canary(do, place string) (result.Warning, bool) {
	type shot struct {
		session int
		at      int64 // since that session began
		rate    float64
	}
	var shots []shot
	for _, sub := range s.cases {
		for i := range sub.c.Steps {
			st := &sub.c.Steps[i]
			if sub.c.Target.Place == place && isCanary(st) && (st.Op == do || st.Do == do) && spanNS(st) > 0 && st.Error == "" {
				shots = append(shots, shot{st.Session, st.StartNS, float64(spanBytes(st)) / float64(spanNS(st))})
			}
		}
	}
	slices.SortFunc(shots, func(a, b shot) int {
		return cmp.Or(cmp.Compare(a.session, b.session), cmp.Compare(a.at, b.at), cmp.Compare(a.rate, b.rate))
	})
	var rates []float64
	for _, x := range shots {
		rates = append(rates, x.rate)
	}
	cv, err := stats.CV(rates)
	if err != nil {
		return result.Warning{}, false
	}
	t, err := stats.Trend(rates)
	over := driftShare(rates)
	trending := err == nil && t.P <= modeP && over >= canaryTrend && len(s.r.Runs) == 0 // pooled runs are in no one order of time
	if cv <= canaryDrift && !trending {
		return result.Warning{}, false
	}
	text := fmt.Sprintf("the native %s before each case varied by %s (standard deviation over mean, n = %d)", do, percent(cv), len(rates))
	kind := "unsteady"
	if trending {
		kind = "drift"
		way := "faster"
		if t.Coefficient < 0 {
			way = "slower"
		}
		text += fmt.Sprintf(", becoming %s by %s in the course of the run (%s)", way, percent(over), SayP(t.P))
	}
	return result.Warning{Kind: kind, Text: text + ": the machine changed while it was measured"}, true
}

// driftShare is by what share rates changed from first to last, along the Theil–Sen
// line of their logarithms.
func driftShare(rates []float64) float64 {
	at, logs := make([]float64, len(rates)), make([]float64, len(rates))
	for i, r := range rates {
		at[i], logs[i] = float64(i), math.Log(r)
	}
	l, err := stats.FitTheilSen(at, logs)
	if err != nil {
		return 0
	}
	return math.Abs(math.Expm1(l.Slope * float64(len(rates)-1)))
}

// isCanary reports whether a step is the canary's write or read, which the case
// does not measure.
func isCanary(st *result.Step) bool { return st.Do == "canary" }

// nativeWarning compares a rate with the native baseline's of the same place and
// way of working.
func (s *runData) nativeWarning(w *warningList, c cell, q plan.Quantity, sum result.Summary) {
	if c.sub.c.Target.Kind != "image" {
		return
	}
	own, ok := estimate(sum.Estimates, sum.Headline)
	if !ok {
		return
	}
	for _, sub := range s.cases {
		if sub.c.Target.Kind != "directory" || !sameWork(sub, c.sub) || len(sub.steps[c.key]) == 0 {
			continue
		}
		base := gatherValues(q, []cell{{sub, c.key}}, aggregate, nil)
		if base.weak == "" && sum.Headline == aggregate && own.Value > fasterThanNative*base.headline() {
			w.add("faster-than-native", "%s times as fast as the native folder (%s): part of this was buffered on the host and not on the disk",
				show(own.Value/base.headline(), "1"), show(base.headline(), "B/s"))
			return
		}
	}
}

// sameWork reports whether two cases do the same work at the same place.
func sameWork(a, b *caseData) bool {
	for _, key := range []string{"place", "files", "workers", "sync", "cache", "block", "qos", "codec", "level", "threads"} {
		x, _ := a.value(key)
		y, _ := b.value(key)
		if !sameValue(key, x, y) {
			return false
		}
	}
	for _, t := range b.plan.Settings.Manual {
		if v, _ := a.value(t.Key); v != t.Value {
			return false
		}
	}
	return true
}

// precisionWarning warns that an interval is wider than the plan wants it.
func (s *runData) precisionWarning(w *warningList, sum result.Summary) {
	e, ok := estimate(sum.Estimates, sum.Headline)
	want := float64(s.p.Run.Precision)
	if !ok || want <= 0 || e.CI == nil || e.Value <= 0 {
		return
	}
	if half := halfWidth(e); half > want && !math.IsInf(half, 0) {
		w.add("precision", "the interval is ± %s wide, the plan wants ± %s: %s", percent(half), percent(want), s.whatNarrows())
	}
}

// transientWarning warns that the rates of the rounds have a trend: what was
// measured had not settled. Fewer than six rounds cannot show one at [modeP].
func (s *runData) transientWarning(w *warningList, c cell, q plan.Quantity) {
	if len(s.r.Runs) > 0 { // rounds of pooled runs are in no one order of time
		return
	}
	rates := gatherValues(q, []cell{c}, aggregate, nil).values
	t, err := stats.Trend(rates)
	over := driftShare(rates)
	if err != nil || t.P > modeP || over < canaryTrend {
		return
	}
	way := "faster"
	if t.Coefficient < 0 {
		way = "slower"
	}
	w.add("transient", "over %s it became %s by %s (%s): speed was still drifting", plural(len(rates), "round"), way, percent(over), SayP(t.P))
}

// batchTransient does the same for the files of one step, by their times over what
// their sizes let expect.
func batchTransient(w *warningList, st *result.Step, excess []float64) {
	if len(excess) < minForModes {
		return
	}
	at, factors := make([]float64, len(excess)), make([]float64, len(excess))
	for i, e := range excess {
		at[i], factors[i] = float64(i), math.Exp(e)
	}
	t, err := stats.Trend(factors)
	l, errLine := stats.FitTheilSen(at, excess)
	if err != nil || errLine != nil || t.P > modeP {
		return
	}
	change := l.Slope * float64(len(excess)-1)
	if math.Abs(change) < math.Log(worthSaying) {
		return
	}
	w.add("transient", "round %d: by the end of the step files took %s times as long as at its beginning (%s): speed was still drifting",
		st.Round, show(math.Exp(change), "1"), SayP(t.P))
}

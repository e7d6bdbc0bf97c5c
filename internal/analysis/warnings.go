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
	"dmgbench/internal/wording"
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
	count := map[string]int{}
	out := []result.Warning{}
	for _, x := range w {
		if count[x.Kind]++; count[x.Kind] <= manyOfKind {
			out = append(out, x)
		}
	}
	for i, x := range out {
		if n := count[x.Kind]; n > manyOfKind && (i == len(out)-1 || out[i+1].Kind != x.Kind) {
			out[i].Text = wording.Text("and-more", x.Text, n-manyOfKind)
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
		i := slices.IndexFunc(s.r.Sessions, func(ss result.Session) bool { return ss.Index == st.Session })
		if i >= 0 {
			w.put(hostWarnings(s.r.Sessions[i].Host)...)
		}
	}
	if isPerFile(q) {
		for _, st := range c.steps() {
			w.addFiles(st)
		}
		s.transientWarning(&w, c, q)
	}
	s.sessionWarning(&w, c, q, sum)
	if isRate(q) {
		s.nativeWarning(&w, c, q, sum)
	}
	if isRate(q) || s.r.Auto != nil && s.needsPrecision(q) {
		s.precisionWarning(&w, sum)
	}
	list := w.shortened()
	for _, x := range list {
		addToCase(c.sub.c, c.key, x)
	}
	return list
}

// addToCase adds a warning of a summary to its case, once. The number of rounds
// is a warning of the whole run.
func addToCase(c *result.Case, k stepKey, x result.Warning) {
	if x.Kind == "few-rounds" {
		return
	}
	if !slices.Contains(hostKinds, x.Kind) {
		x.Text = strings.TrimSpace(k.do+" "+k.phase) + ": " + x.Text
	}
	if !slices.Contains(c.Warnings, x) {
		c.Warnings = append(c.Warnings, x)
	}
}

// hostKinds are the kinds of warning about a machine, not of a step.
var hostKinds = []string{"battery", "low-power", "thermal", "cpu-quota", "busy", "virtual", "sleep",
	"translated", "memory-pressure", "network", "image-host", "nearly-full", "swap", "snapshots"}

// hostConditions are the facts of a session's host that weaken its numbers,
// with what their sentences need.
var hostConditions = []struct {
	kind string
	is   func(h result.Host) (weakens bool, args []any)
}{
	{"battery", func(h result.Host) (bool, []any) { return h.Power == "battery", nil }},
	{"low-power", func(h result.Host) (bool, []any) { return h.LowPower, nil }},
	{"thermal", func(h result.Host) (bool, []any) { return isHot(h), []any{h.Thermal} }},
	{"cpu-quota", func(h result.Host) (bool, []any) { return h.CPUQuota > 0, []any{h.CPUQuota} }},
	{"busy", func(h result.Host) (bool, []any) { return len(h.Busy) > 0, []any{strings.Join(h.Busy, ", ")} }},
}

func hostWarnings(h result.Host) (out []result.Warning) {
	for _, c := range hostConditions {
		if weakens, args := c.is(h); weakens {
			out = append(out, warn(c.kind, args...))
		}
	}
	return out
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
	switch split := s.splitRounds(); len(split) {
	case 0:
	case 1:
		w.put(result.Warning{Kind: "sessions", Text: wording.Text("split-round", split)})
	default:
		w.put(result.Warning{Kind: "sessions", Text: wording.Text("split-rounds", split)})
	}
	if odd := s.clockSetBack(); len(odd) > 0 {
		w.put(result.Warning{Kind: "sessions", Text: wording.Text("clock-set-back", strings.Join(odd, ", "))})
	}
	var places []string
	for _, sub := range s.cases {
		if p := sub.c.Target.Place; !slices.Contains(places, p) {
			places = append(places, p)
			w.addCanary("write", p, s)
			w.addCanary("read", p, s)
		}
	}
	for _, x := range w {
		if !slices.ContainsFunc(s.r.Warnings, func(known result.Warning) bool {
			return known.Kind == x.Kind && strings.HasSuffix(known.Text, x.Text)
		}) {
			s.r.Warnings = append(s.r.Warnings, x)
		}
	}
}

// canaryRates are the rates of the short native write (or read) before each
// case at a place, in the order of the run.
func (s *runData) canaryRates(do, place string) (rates []float64) {
	type shot struct {
		session int
		// Nanoseconds since the start of that session
		at   int64
		rate float64
	}
	var shots []shot
	for _, sub := range s.cases {
		for i := range sub.c.Steps {
			st := &sub.c.Steps[i]
			if sub.c.Target.Place == place && isCanary(st) && st.Op == do && spanNS(st) > 0 && st.Error == "" {
				shots = append(shots, shot{st.Session, st.StartNS, float64(spanBytes(st)) / float64(spanNS(st))})
			}
		}
	}
	slices.SortFunc(shots, func(a, b shot) int {
		return cmp.Or(cmp.Compare(a.session, b.session), cmp.Compare(a.at, b.at), cmp.Compare(a.rate, b.rate))
	})
	for _, x := range shots {
		rates = append(rates, x.rate)
	}
	return rates
}

// addCanary reports how far the canary at a place drifted: the coefficient of
// variation, and the trend in the order of the run.
func (w *warningList) addCanary(do, place string, s *runData) {
	rates := s.canaryRates(do, place)
	cv, err := stats.CV(rates)
	if err != nil {
		return
	}
	t, over, found := s.trendOf(rates)
	switch varied := wording.Say("canary-varied", do, wording.Percent(cv), len(rates)); {
	case found:
		w.add("drift", varied, trendWord(t), wording.Percent(over), wording.P(t.P))
	case cv > canaryDrift:
		w.add("unsteady", varied)
	}
}

// trendOf is the trend of rates in the order of time, and the share by which
// they changed from first to last along the Theil–Sen line of their logarithms.
// Rounds of pooled runs are in no one order of time.
func (s *runData) trendOf(rates []float64) (t stats.Correlation, over float64, found bool) {
	t, err := stats.Trend(rates)
	if err != nil || t.P > trendP || len(s.r.Runs) > 0 {
		return t, 0, false
	}
	change, err := lineChange(logScale.all(rates))
	over = math.Abs(math.Expm1(change))
	return t, over, err == nil && over >= minDrift
}

// lineChange is how much values change from first to last along their Theil–Sen
// line.
func lineChange(ys []float64) (float64, error) {
	at := make([]float64, len(ys))
	for i := range at {
		at[i] = float64(i)
	}
	l, err := stats.FitTheilSen(at, ys)
	return l.Slope * float64(len(ys)-1), err
}

// trendWord is what became of rates with a trend.
func trendWord(t stats.Correlation) wording.Message {
	if t.Coefficient < 0 {
		return wording.Say("slower")
	}
	return wording.Say("faster")
}

// transientWarning warns that the rates of the rounds have a trend: the speed
// was still changing. Fewer than six rounds cannot show one at [trendP].
func (s *runData) transientWarning(w *warningList, c cell, q plan.Quantity) {
	rates := gatherValues(q, []cell{c}, aggregate, nil).values
	if t, over, found := s.trendOf(rates); found {
		rounds := wording.Count{N: len(rates), Noun: "round"}
		w.add("transient", rounds, trendWord(t), wording.Percent(over), wording.P(t.P))
	}
}

// sessionWarning reports that two pooled runs differ by more than their rounds
// scatter: an interval over rounds does not contain that.
func (s *runData) sessionWarning(w *warningList, c cell, q plan.Quantity, sum result.Summary) {
	if s.per.unit == perSession || !isRate(q) || len(sum.BySession) != 2 {
		return
	}
	a, b := sum.BySession[0].Value, sum.BySession[1].Value
	factor := max(a/b, b/a)
	if a <= 0 || b <= 0 || factor < sessionsApart {
		return
	}
	values, p := s.valuesOfRuns(c, q, sum.Headline), ""
	if t, err := stats.WelchContrast(logScale.all(values[1]), logScale.all(values[2])); err == nil && t.SE > 0 {
		p = fmt.Sprintf(", %s", wording.P(t.P(0)))
	}
	rate := func(v float64) wording.Amount { return wording.Amount{Value: v, Unit: "B/s"} }
	w.add("sessions", wording.Number(factor), rate(a), rate(b), p)
}

// nativeWarning compares a rate with the native baseline's of the same place
// and way of working.
func (s *runData) nativeWarning(w *warningList, c cell, q plan.Quantity, sum result.Summary) {
	own, ok := findEstimate(sum.Estimates, sum.Headline)
	if c.sub.c.Target.Kind != "image" || sum.Headline != aggregate || !ok {
		return
	}
	for _, sub := range s.cases {
		if sub.c.Target.Kind != "directory" || !isSameWork(sub, c.sub) || len(sub.steps[c.key]) == 0 {
			continue
		}
		base := gatherValues(q, []cell{{sub, c.key}}, aggregate, nil)
		if rate := base.headline(); base.weak == "" && own.Value > fasterThanNative*rate {
			w.add("faster-than-native", wording.Number(own.Value/rate), wording.Amount{Value: rate, Unit: "B/s"})
			return
		}
	}
}

// workKeys are the selector keys of cases that do the same work.
var workKeys = []string{"place", "files", "workers", "sync", "cache", "block", "qos", "codec", "level", "threads"}

// isSameWork reports whether two cases do the same work at the same place.
func isSameWork(a, b *caseData) bool {
	for _, key := range workKeys {
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
	e, ok := findEstimate(sum.Estimates, sum.Headline)
	want := float64(s.p.Run.Precision)
	if !ok || want <= 0 || e.CI == nil || e.Value <= 0 {
		return
	}
	if half := halfWidth(e); half > want && !math.IsInf(half, 0) {
		w.add("precision", wording.Percent(half), wording.Percent(want), s.whatNarrows())
	}
}

// whatNarrows names what would narrow an interval.
func (s *runData) whatNarrows() wording.Message {
	stop := ""
	if a := s.r.Auto; a != nil && len(a.Decisions) > 0 {
		stop = a.Decisions[len(a.Decisions)-1].Stop
	}
	switch stop {
	case result.StopTime:
		return wording.Say("ended-by.time")
	case result.StopWritten:
		return wording.Say("ended-by.written")
	case result.StopRounds:
		return wording.Say("ended-by.rounds")
	}
	return wording.Say("more-rounds")
}

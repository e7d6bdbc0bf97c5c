package analysis

import (
	"cmp"
	"math"
	"slices"
	"strings"

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
		ss, _ := find(s.r.Sessions, func(ss result.Session) bool { return ss.Index == st.Session })
		w.put(hostWarnings(ss.Host)...)
	}
	if isPerFile(q) {
		for _, st := range c.steps() {
			w.addFiles(st)
		}
		// The speed was still changing. Fewer than six rounds cannot show that at
		// [trendP].
		rates := gatherValues(q, []cell{c}, aggregate, nil).values
		s.addDrift(&w, "transient", wording.Count{N: len(rates), Noun: "round"}, rates)
	}
	if own, ok := findEstimate(sum.Estimates, sum.Headline); ok {
		if isRate(q) {
			s.addSessions(&w, c, q, sum)
			s.addNative(&w, c, q, own)
		}
		want := float64(s.p.Run.Precision)
		if want > 0 && own.CI != nil && own.Value > 0 && (isRate(q) || s.r.Auto != nil && s.needsPrecision(q)) {
			if half := halfWidth(own); half > want && finite(half) {
				w.add("precision", wording.Percent(half), wording.Percent(want))
			}
		}
	}
	list := w.shortened()
	for _, x := range list {
		if x.Kind == "few-rounds" { // of the whole run
			continue
		}
		if !slices.Contains(hostKinds, x.Kind) {
			x.Text = strings.TrimSpace(c.key.do+" "+c.key.phase) + ": " + x.Text
		}
		own := warningList(c.sub.c.Warnings)
		own.put(x)
		c.sub.c.Warnings = own
	}
	return list
}

// hostKinds are the kinds of warning about a machine, not of a step.
var hostKinds = []string{"battery", "low-power", "thermal", "cpu-quota", "busy", "virtual", "sleep",
	"translated", "memory-pressure", "network", "image-host", "nearly-full", "swap", "snapshots"}

// hostWarnings are the facts of a session's host that weaken its numbers.
func hostWarnings(h result.Host) []result.Warning {
	var w warningList
	if h.Power == "battery" {
		w.add("battery")
	}
	if h.LowPower {
		w.add("low-power")
	}
	if isHot(h) {
		w.add("thermal", h.Thermal)
	}
	if h.CPUQuota > 0 {
		w.add("cpu-quota", h.CPUQuota)
	}
	if len(h.Busy) > 0 {
		w.add("busy", strings.Join(h.Busy, ", "))
	}
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
	var places []string
	for _, sub := range s.cases {
		if place := sub.c.Target.Place; !slices.Contains(places, place) {
			places = append(places, place)
			s.addCanary(&w, "write", place)
			s.addCanary(&w, "read", place)
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
	var rates []float64
	for _, st := range shots {
		rates = append(rates, float64(spanBytes(st))/float64(spanNS(st)))
	}
	cv, err := stats.CV(rates)
	if err != nil {
		return
	}
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
func (s *runData) addSessions(w *warningList, c cell, q plan.Quantity, sum result.Summary) {
	if s.per.unit == perSession || len(sum.BySession) != 2 {
		return
	}
	a, b := sum.BySession[0].Value, sum.BySession[1].Value
	factor := max(a/b, b/a)
	if a <= 0 || b <= 0 || factor < sessionsApart {
		return
	}
	values, p := s.valuesOfRuns(c, q, sum.Headline), ""
	if t, err := stats.WelchContrast(logScale.all(values[1]), logScale.all(values[2])); err == nil && t.SE > 0 {
		p = ", " + wording.P(t.P(0)).String()
	}
	rate := func(v float64) wording.Amount { return wording.Amount{Value: v, Unit: "B/s"} }
	w.add("sessions", wording.Number(factor), rate(a), rate(b), p)
}

// workKeys are the selector keys of cases that do the same work.
var workKeys = []string{"place", "files", "workers", "sync", "cache", "block", "qos", "codec", "level", "threads"}

// addNative compares a rate with that of the native folder of the same place
// and work.
func (s *runData) addNative(w *warningList, c cell, q plan.Quantity, own result.Estimate) {
	if c.sub.c.Target.Kind != "image" || own.Name != aggregate {
		return
	}
	for _, sub := range s.cases {
		differs := func(key string) bool {
			x, _ := sub.value(key)
			y, _ := c.sub.value(key)
			return !sameValue(key, x, y)
		}
		isOther := func(t plan.KeyValue) bool {
			v, _ := sub.value(t.Key)
			return t.Value != v
		}
		if sub.c.Target.Kind != "directory" || len(sub.steps[c.key]) == 0 || slices.ContainsFunc(workKeys, differs) ||
			slices.ContainsFunc(c.sub.plan.Settings.Manual, isOther) {
			continue
		}
		base := gatherValues(q, []cell{{sub, c.key}}, aggregate, nil)
		if rate := base.headline(); base.weak == "" && own.Value > fasterThanNative*rate {
			w.add("faster-than-native", wording.Number(own.Value/rate), wording.Amount{Value: rate, Unit: "B/s"})
			return
		}
	}
}

package report

import (
	"math"
	"slices"
	"strconv"
	"time"

	"dmgbench/internal/result"
	"dmgbench/internal/stats"
)

// driftStep is one timed step with the kind that it is compared within.
type driftStep struct {
	series, kind, name string
	minutes, rate      float64
}

// canaryName is the series of the native writes and reads before the cases.
const canaryName = "native canary"

// driftSteps lists every timed step of the run. The canaries of one place are one
// kind whatever case they stand before: they should all be alike.
func (v *view) driftSteps() []driftStep {
	var out []driftStep
	starts := v.starts()
	for i := range v.result.Cases {
		c := &v.result.Cases[i]
		for j := range c.Steps {
			s := &c.Steps[j]
			rate, ok := stepRate(s)
			switch {
			case !ok || s.Error != "":
			case canary(s):
				name := firstOf(s.Op, s.Do)
				out = append(out, driftStep{canaryName, "canary\x00" + c.Target.Place + "\x00" + name, "canary " + words(name), minutes(s, starts), rate})
			case counts(c, s):
				out = append(out, driftStep{v.name(c.ID), c.ID + "\x00" + s.Op + "\x00" + stepName(*s), stepName(*s), minutes(s, starts), rate})
			}
		}
	}
	return out
}

// driftChart sets the speed of every step against the median of its own kind, over the time of the run.
func (v *view) driftChart() []chart {
	steps := v.driftSteps()
	kinds := map[string][]float64{}
	var names []string
	for _, s := range steps {
		kinds[s.kind] = append(kinds[s.kind], s.rate)
		if s.series != canaryName {
			names = appendNew(names, s.series)
		}
	}
	out := chart{id: "drift", section: "drift", height: 280, heading: "Speed along the run",
		x: axis{name: "time since the start", unit: "s"}, y: axis{name: "speed ÷ median of its kind", unit: "1"}}
	out.table = table{Caption: out.heading, Columns: []column{{"", "case", true}, {"", "step", true}, {"", "slowest ÷ median", false},
		{"", "fastest ÷ median", false}, {"", "times", false}}}
	drawn := 0
	for _, name := range append(names, canaryName) {
		drawn += out.addDrift(name, steps, kinds)
	}
	if drawn == 0 {
		return nil
	}
	out.y.low, out.y.high = driftRange(out.series)
	out.sub = count(drawn, "timed step") + " that were done more than once; 1 is the median of the same step."
	out.notes = []string{"A slope or a jump that all cases share is the machine, not the images." +
		zero(out.series[len(out.series)-1].role == "canary", " The canary is a short native write and read before each case."), v.provenance}
	return []chart{out}
}

// addDrift adds the points of one series and a row for each kind in it.
func (c *chart) addDrift(name string, steps []driftStep, kinds map[string][]float64) int {
	pts := series{role: "points", name: name}
	if name == canaryName {
		pts.role = "canary"
	}
	var done []string
	for _, s := range steps {
		all := kinds[s.kind]
		median, err := stats.Median(all)
		if s.series != name || len(all) < 2 || err != nil {
			continue
		}
		c.x.values = append(c.x.values, 60*s.minutes)
		pts.points, pts.tips = append(pts.points, xy(60*s.minutes, s.rate/median)), append(pts.tips, s.name+"\n"+human(s.rate, "B/s"))
		if !slices.Contains(done, s.kind) {
			done = append(done, s.kind)
			c.table.Rows = append(c.table.Rows, []cell{{Text: name, Class: "head"}, {Text: s.name}, {Text: human3(slices.Min(all) / median)},
				{Text: human3(slices.Max(all) / median)}, {Text: strconv.Itoa(len(all))}})
		}
	}
	if len(pts.points) > 0 {
		c.series = append(c.series, pts)
	}
	return len(pts.points)
}

// driftRange keeps 1 in the middle and shows at least a tenth either way, so that
// noise does not look like drift.
func driftRange(all []series) (low, high *float64) {
	far := 0.1
	for _, s := range all {
		for _, p := range s.points {
			if y, ok := p.([]any)[1].(float64); ok {
				far = max(far, math.Abs(y-1))
			}
		}
	}
	far = math.Ceil(far*20) / 20
	return pointer(max(digits(1-far), 0)), pointer(digits(1 + far))
}

func human3(v float64) string { return scale{factor: 1}.number(v) }

// stepRate is bytes over time from gate to last done.
func stepRate(s *result.Step) (rate float64, ok bool) {
	switch {
	case s.Span != nil && s.Span.LastDoneNS > s.Span.GateNS && s.Span.Bytes > 0:
		return float64(s.Span.Bytes) / float64(s.Span.LastDoneNS-s.Span.GateNS) * 1e9, true
	case s.Stream != nil && s.DurationNS > 0 && s.Stream.In > 0:
		return float64(s.Stream.In) / float64(s.DurationNS) * 1e9, true
	}
	return 0, false
}

// starts is, for each session, what has to be taken from the monotonic time of its
// steps to count from the start of the first session.
func (v *view) starts() map[int]int64 {
	out := map[int]int64{}
	for i := range v.result.Cases {
		for _, s := range v.result.Cases[i].Steps {
			if first, ok := out[s.Session]; !ok || s.StartNS < first {
				out[s.Session] = s.StartNS
			}
		}
	}
	for _, session := range v.result.Sessions {
		out[session.Index] -= session.Started.Sub(v.result.Sessions[0].Started).Nanoseconds()
	}
	return out
}

// minutes is when a step began, counted from the start of the first session.
func minutes(s *result.Step, starts map[int]int64) float64 {
	return time.Duration(s.StartNS - starts[s.Session]).Minutes()
}

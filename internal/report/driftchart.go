package report

import (
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"dmgbench/internal/analysis"
	"dmgbench/internal/result"
	"dmgbench/internal/stats"
)

// driftStep is one timed step with the kind that it is compared within.
type driftStep struct {
	series, kind, name string
	minutes, rate      float64
	round              int
	warnings           []result.Warning
}

// canaryName is the series of the native writes and reads before the cases.
const canaryName = "native canary"

// driftSteps lists every timed step of the run. The canaries of one place are one
// kind whatever case they stand before: they should all be alike.
func (v *View) driftSteps() []driftStep {
	var out []driftStep
	starts := v.starts()
	for i := range v.Result.Cases {
		c := &v.Result.Cases[i]
		for j := range c.Steps {
			s := &c.Steps[j]
			rate, ok := stepRate(s)
			switch {
			case !ok || s.Error != "":
			case IsCanary(s):
				name := FirstOf(s.Op, s.Do)
				out = append(out, driftStep{canaryName, "canary\x00" + c.Target.Place + "\x00" + name, "canary " + QuantityName(name), minutes(s, starts), rate, s.Round, analysis.StepWarnings(s)})
			case IsShown(c, s):
				out = append(out, driftStep{v.CaseName(c.ID), c.ID + "\x00" + s.Op + "\x00" + StepName(*s), StepName(*s), minutes(s, starts), rate, s.Round, analysis.StepWarnings(s)})
			}
		}
	}
	return out
}

// driftChart sets the speed of every step against the median of its own kind, over the
// time of the run, and rings what carries a warning.
func (v *View) driftChart() []Chart {
	steps := v.driftSteps()
	common := everywhere(steps)
	kinds := map[string][]float64{}
	var names []string
	for _, s := range steps {
		kinds[s.kind] = append(kinds[s.kind], s.rate)
		if s.series != canaryName {
			names = AppendNew(names, s.series)
		}
	}
	out := Chart{ID: "drift", Section: "drift", Height: 280, Heading: "Speed along the run",
		X: Axis{Name: "time since the start", Unit: "s"}, Y: Axis{Name: "speed ÷ median of its kind", Unit: "1"}}
	out.Table = Table{Caption: out.Heading, Columns: Columns("<case", "<step", "slowest ÷ median", "fastest ÷ median", "times", "<warnings")}
	drawn := 0
	for _, name := range append(names, canaryName) {
		drawn += out.addDrift(name, steps, kinds)
	}
	if drawn == 0 {
		return nil
	}
	canaries := out.Series[len(out.Series)-1].Role == "canary"
	marked := out.addWarned(steps, kinds)
	out.Y.Low, out.Y.High = driftRange(out.Series)
	out.Sub = Count(drawn, "timed step") + " that were done more than once; 1 is the median of the same step. " +
		FirstOf(TextIf(marked > 0, "Rings: "+Count(marked, "step")+TextIf(marked > 1, ", each")+" with a warning of its own."), "No step has a warning of its own.")
	out.Notes = []string{"A slope or a jump that all cases share is the machine, not the images." +
		TextIf(canaries, " The canary is a short native write and read before each case.") + v.everyStep(common, len(steps)), v.Provenance}
	return []Chart{out}
}

// everywhere removes from the steps the warnings that half of them or more carry,
// which mark nothing, and returns them.
func everywhere(steps []driftStep) []result.Warning {
	seen := map[result.Warning]int{}
	var common []result.Warning
	for _, s := range steps {
		for _, w := range s.warnings {
			if seen[w]++; seen[w] == max((len(steps)+1)/2, 2) {
				common = append(common, w)
			}
		}
	}
	for i := range steps {
		steps[i].warnings = slices.DeleteFunc(steps[i].warnings, func(w result.Warning) bool { return slices.Contains(common, w) })
	}
	return common
}

// everyStep names the warnings that have no place of their own: those of most steps, and those of the whole run.
func (v *View) everyStep(common []result.Warning, steps int) string {
	var texts []string
	for _, w := range common {
		texts = append(texts, Plain(w.Text, 120))
	}
	var run []string
	for _, w := range v.Result.Warnings {
		run = AppendNew(run, Plain(w.Kind, 40))
	}
	return TextIf(len(texts) > 0, " On half of the steps or more: "+strings.Join(texts, "; ")+".") +
		TextIf(len(run) > 0, " About the run as a whole: "+strings.Join(run, ", ")+".")
}

// addWarned rings the steps with warnings, at 1 where a step has nothing to be compared with.
func (c *Chart) addWarned(steps []driftStep, kinds map[string][]float64) int {
	ring := Series{Role: "warned", Name: "warning"}
	for _, s := range steps {
		if len(s.warnings) == 0 {
			continue
		}
		y := 1.0
		if median, err := stats.Median(kinds[s.kind]); err == nil && len(kinds[s.kind]) > 1 {
			y = s.rate / median
		}
		lines := []string{s.series + ", " + s.name + ", " + Human(s.rate, "B/s")}
		for _, w := range s.warnings {
			lines = append(lines, Plain(w.Text, 200))
		}
		c.X.Values = append(c.X.Values, 60*s.minutes)
		ring.Points, ring.Tips = append(ring.Points, xy(60*s.minutes, y)), append(ring.Tips, strings.Join(lines, "\n"))
	}
	if len(ring.Points) > 0 {
		c.Series = append(c.Series, ring)
	}
	return len(ring.Points)
}

// addDrift adds the points of one series and a row for each kind in it.
func (c *Chart) addDrift(name string, steps []driftStep, kinds map[string][]float64) int {
	pts := Series{Role: "points", Name: name}
	if name == canaryName {
		pts.Role = "canary"
	}
	at := map[string]int{} // kind → row
	for _, s := range steps {
		all := kinds[s.kind]
		median, err := stats.Median(all)
		if s.series != name || err != nil || len(all) < 2 && len(s.warnings) == 0 {
			continue
		}
		if _, ok := at[s.kind]; !ok {
			at[s.kind] = len(c.Table.Rows)
			c.Table.Rows = append(c.Table.Rows, []Cell{{Text: name, Class: "head"}, {Text: s.name}, {Text: human3(slices.Min(all) / median)},
				{Text: human3(slices.Max(all) / median)}, {Text: strconv.Itoa(len(all))}, {}})
		}
		for _, w := range s.warnings {
			c.Table.Rows[at[s.kind]][5].add(w, s.round)
		}
		if len(all) > 1 {
			c.X.Values = append(c.X.Values, 60*s.minutes)
			pts.Points, pts.Tips = append(pts.Points, xy(60*s.minutes, s.rate/median)), append(pts.Tips, s.name+"\n"+Human(s.rate, "B/s"))
		}
	}
	if len(pts.Points) > 0 {
		c.Series = append(c.Series, pts)
	}
	return len(pts.Points)
}

// add names a warning by its kind and round; its text is the cell's title and in the list of warnings.
func (c *Cell) add(w result.Warning, round int) {
	kind := Plain(w.Kind, 40) + " (round " + strconv.Itoa(round) + ")"
	if !strings.Contains(c.Text, kind) {
		c.Text += TextIf(c.Text != "", ", ") + kind
	}
	c.Title += TextIf(c.Title != "", "; ") + Plain(w.Text, 300)
}

// driftRange keeps 1 in the middle and shows at least a tenth either way, so that
// noise does not look like drift.
func driftRange(all []Series) (low, high *float64) {
	far := 0.1
	for _, s := range all {
		for _, p := range s.Points {
			if y, ok := p.([]any)[1].(float64); ok {
				far = max(far, math.Abs(y-1))
			}
		}
	}
	if far > 1 { // 0 is the least there is, and 1 no longer in the middle
		return pointer(0), pointer(roundUp(1 + far))
	}
	far = math.Ceil(far*20) / 20
	return pointer(digits(1 - far)), pointer(digits(1 + far))
}

func human3(v float64) string { return Scale{Factor: 1}.Number(v) }

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
func (v *View) starts() map[int]int64 {
	out := map[int]int64{}
	for i := range v.Result.Cases {
		for _, s := range v.Result.Cases[i].Steps {
			if first, ok := out[s.Session]; !ok || s.StartNS < first {
				out[s.Session] = s.StartNS
			}
		}
	}
	for _, session := range v.Result.Sessions {
		out[session.Index] -= session.Started.Sub(v.Result.Sessions[0].Started).Nanoseconds()
	}
	return out
}

// minutes is when a step began, counted from the start of the first session.
func minutes(s *result.Step, starts map[int]int64) float64 {
	return time.Duration(s.StartNS - starts[s.Session]).Minutes()
}

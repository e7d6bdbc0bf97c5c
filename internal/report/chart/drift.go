package chart

import (
	"math"
	"slices"
	"strconv"
	"strings"

	"dmgbench/internal/analysis"
	"dmgbench/internal/analysis/stats"
	"dmgbench/internal/report"
	"dmgbench/internal/result"
)

// canaryName is the series of the native writes and reads before the cases.
//
// It is a case of its own in picture and table.
const canaryName = "native canary"

// driftStep is one timed step.
//
// Times are in seconds since the start of the run.
type driftStep struct {
	series, name string
	kind         string // steps of one kind are compared with each other
	seconds      float64
	rate         float64 // B/s
	round        int
	warnings     []result.Warning
}

// tip is the step in lines.
func (s driftStep) tip() string { return s.name + "\n" + report.Human(s.rate, "B/s") }

// driftSteps lists every timed step of the run. The canaries of one place are
// one kind whatever case they were before: they should all be alike.
func (r *run) driftSteps() []driftStep {
	var out []driftStep
	starts := r.sessionStarts()
	for c, s := range r.Steps() {
		rate, ok := stepRate(s)
		if !ok || s.Error != "" || !report.IsCanary(s) && !report.IsShown(c, s) {
			continue
		}
		step := driftStep{r.CaseName(c.ID), report.StepName(*s), "", float64(s.StartNS-starts[s.Session]) / 1e9,
			rate, s.Round, analysis.StepWarnings(s)}
		step.kind = c.ID + "\x00" + s.Op + "\x00" + step.name
		if report.IsCanary(s) {
			op := report.FirstOf(s.Op, s.Do)
			step.series, step.name, step.kind = canaryName, "canary "+report.QuantityName(op),
				canaryName+"\x00"+c.Target.Place+"\x00"+op
		}
		out = append(out, step)
	}
	return out
}

// sessionStarts is, for each session, the monotonic time of the start of the
// first session, in nanoseconds on the clock of the session.
func (r *run) sessionStarts() map[int]int64 {
	out := map[int]int64{}
	for _, s := range r.Steps() {
		if first, ok := out[s.Session]; !ok || s.StartNS < first {
			out[s.Session] = s.StartNS
		}
	}
	for _, s := range r.Result.Sessions {
		out[s.Index] -= s.Started.Sub(r.Result.Sessions[0].Started).Nanoseconds()
	}
	return out
}

// stepRate is bytes over time from the gate to the last file, in B/s.
//
// The flush at the end of a file is within its time; the gate is the moment at
// which all workers start.
func stepRate(s *result.Step) (rate float64, ok bool) {
	switch {
	case s.Span != nil && s.Span.LastDoneNS > s.Span.GateNS && s.Span.Bytes > 0:
		return float64(s.Span.Bytes) / float64(s.Span.LastDoneNS-s.Span.GateNS) * 1e9, true
	case s.Stream != nil && s.DurationNS > 0 && s.Stream.In > 0:
		return float64(s.Stream.In) / float64(s.DurationNS) * 1e9, true
	}
	return 0, false
}

// driftChart compares the speed of every step with the median of its own kind,
// over the time of the run, and rings what has a warning.
func driftChart(r *run) []report.Chart {
	steps := r.driftSteps()
	common := dropCommonWarnings(steps)
	rates := map[string][]float64{} // by kind
	var names []string
	for _, s := range steps {
		rates[s.kind] = append(rates[s.kind], s.rate)
		if s.series != canaryName {
			names = report.AppendNew(names, s.series)
		}
	}
	c := report.Chart{ID: "drift", Height: 280, Heading: "Speed along the run",
		X: report.Axis{Name: "time since the start", Unit: "s"},
		Y: report.Axis{Name: "speed ÷ median of its kind", Unit: "1"}}
	c.Table.Columns = report.Columns("<case", "<step", "slowest ÷ median", "fastest ÷ median", "times", "<warnings")
	for _, name := range append(names, canaryName) {
		addDrift(&c, name, steps, rates)
	}
	drawn := c.Size()
	if drawn == 0 {
		return nil
	}
	canaries := c.Series[len(c.Series)-1].Role == "canary"
	rings := warnedMarks(steps, rates)
	c.Add(report.Series{Role: "warned", Name: "warning", Marks: rings})
	c.Y.Low, c.Y.High = driftRange(&c)
	var ofRun []string
	for _, w := range r.Result.Warnings {
		ofRun = report.AppendNew(ofRun, report.Plain(w.Kind, 40))
	}
	caption(&c, "drift", data{"Steps": drawn, "Rings": len(rings), "Canaries": canaries, "Common": common,
		"OfRun": ofRun})
	return []report.Chart{c}
}

// dropCommonWarnings removes from the steps the warnings that at least half of
// them have, which mark nothing, and returns them.
//
// Such as the warning that the host may cache: a ring at every point would hide
// the one that matters.
func dropCommonWarnings(steps []driftStep) []result.Warning {
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
		steps[i].warnings = slices.DeleteFunc(steps[i].warnings, func(w result.Warning) bool {
			return slices.Contains(common, w)
		})
	}
	return common
}

// addDrift adds the points of one series, and a row for each kind of its steps.
func addDrift(c *report.Chart, name string, steps []driftStep, rates map[string][]float64) {
	points := report.Series{Role: "points", Name: name}
	if name == canaryName {
		points.Role = "canary"
	}
	rows := map[string]int{} // by kind
	for _, s := range steps {
		all := rates[s.kind]
		median, err := stats.Median(all)
		if s.series != name || err != nil || len(all) < 2 && len(s.warnings) == 0 {
			continue
		}
		if _, ok := rows[s.kind]; !ok {
			rows[s.kind] = len(c.Table.Rows)
			c.Table.Rows = append(c.Table.Rows, report.TextRow(name, s.name, report.Human(slices.Min(all)/median, "1"),
				report.Human(slices.Max(all)/median, "1"), strconv.Itoa(len(all)), ""))
		}
		for _, w := range s.warnings {
			addWarning(&c.Table.Rows[rows[s.kind]][5], w, s.round)
		}
		if len(all) > 1 {
			points.Marks = append(points.Marks, report.Mark{X: s.seconds, Y: s.rate / median, Tip: s.tip()})
		}
	}
	c.Add(points)
}

// addWarning names a warning by its kind and round; its text is the title of
// the cell and in the list of warnings.
func addWarning(c *report.Cell, w result.Warning, round int) {
	kind := report.Plain(w.Kind, 40) + " (round " + strconv.Itoa(round) + ")"
	if !strings.Contains(c.Text, kind) {
		c.Text += report.TextIf(c.Text != "", ", ") + kind
	}
	c.Title += report.TextIf(c.Title != "", "; ") + report.Plain(w.Text, 300)
}

// warnedMarks are rings around the steps with warnings, at 1 where a step is
// the only one of its kind.
func warnedMarks(steps []driftStep, rates map[string][]float64) []report.Mark {
	var out []report.Mark
	for _, s := range steps {
		if len(s.warnings) == 0 {
			continue
		}
		m := report.Mark{X: s.seconds, Y: 1, Tip: tip("drift-tip", data{"Series": s.series, "Name": s.name,
			"Rate": s.rate, "Warnings": s.warnings})}
		if median, err := stats.Median(rates[s.kind]); err == nil && len(rates[s.kind]) > 1 {
			m.Y = s.rate / median
		}
		out = append(out, m)
	}
	return out
}

// driftRange keeps 1 in the middle and shows at least a tenth either way, so
// that noise does not look like drift.
func driftRange(c *report.Chart) (low, high *float64) {
	far := 0.1
	for _, m := range c.Marks() {
		far = max(far, math.Abs(m.Y-1))
	}
	if far > 1 { // 0 is the least possible speed, and 1 no longer in the middle
		return new(0.0), new(report.RoundUp(1 + far))
	}
	far = math.Ceil(far*20) / 20
	return new(report.RoundDigits(1 - far)), new(report.RoundDigits(1 + far))
}

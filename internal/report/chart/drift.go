package chart

import (
	"slices"
	"strconv"

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
	median       float64 // rate of the steps of its kind, in B/s
	round        int
	warnings     []result.Warning
}

// driftSteps lists every timed step of the run, and the rates of each kind. The
// canaries of one place are one kind whatever case they were before: they should
// all be alike.
func (r *run) driftSteps() (out []driftStep, rates map[string][]float64) {
	starts := map[int]int64{} // of the first session, in nanoseconds on the monotonic clock of each
	for _, s := range r.Steps() {
		if first, ok := starts[s.Session]; !ok || s.StartNS < first {
			starts[s.Session] = s.StartNS
		}
	}
	for _, s := range r.Result.Sessions {
		starts[s.Index] -= s.Started.Sub(r.Result.Sessions[0].Started).Nanoseconds()
	}
	rates = map[string][]float64{}
	for c, s := range r.Steps() {
		rate, ok := stepRate(s)
		if !ok || s.Error != "" || !report.IsCanary(s) && !report.IsShown(c, s) {
			continue
		}
		step := driftStep{series: r.CaseName(c.ID), name: report.StepName(*s), rate: rate, round: s.Round,
			seconds: float64(s.StartNS-starts[s.Session]) / 1e9, warnings: analysis.StepWarnings(s)}
		step.kind = c.ID + "\x00" + s.Op + "\x00" + step.name
		if report.IsCanary(s) {
			op := report.FirstOf(s.Op, s.Do)
			step.series, step.name, step.kind = canaryName, "canary "+report.QuantityName(op),
				canaryName+"\x00"+c.Target.Place+"\x00"+op
		}
		out, rates[step.kind] = append(out, step), append(rates[step.kind], rate)
	}
	for i, s := range out {
		out[i].median, _ = stats.Median(rates[s.kind]) // none is empty
	}
	return out, rates
}

// stepRate is bytes over time from the gate to the last file, in B/s.
//
// The flush at the end of a file is within its time; the gate is the moment at
// which all workers start.
func stepRate(s *result.Step) (rate float64, ok bool) {
	switch {
	case s.Span != nil && s.Span.LastDoneNS > s.Span.GateNS && s.Span.Bytes > 0:
		return float64(s.Span.Bytes) / float64(s.Span.LastDoneNS-s.Span.GateNS) * 1e9, true
	case s.Stream != nil && !s.LacksFiles() && s.DurationNS > 0 && s.Stream.In > 0:
		return float64(s.Stream.In) / float64(s.DurationNS) * 1e9, true
	}
	return 0, false
}

// driftChart compares the speed of every step with the median of its own kind,
// over the time of the run, and rings what has a warning.
func driftChart(r *run) []report.Chart {
	steps, rates := r.driftSteps()
	common := dropCommonWarnings(steps)
	var names []string
	rings := report.Series{Role: "warned", Name: "warning"}
	for _, s := range steps {
		if s.series != canaryName {
			names = report.AppendNew(names, s.series)
		}
		if len(s.warnings) > 0 { // a ring is at 1 where a step is the only one of its kind
			rings.Marks = append(rings.Marks, report.Mark{X: s.seconds, Y: s.rate / s.median, Tip: tip("drift-tip",
				data{"Series": s.series, "Name": s.name, "Rate": s.rate, "Warnings": s.warnings})})
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
	c.Add(rings)
	// At least a tenth either way, so that noise does not look like drift.
	c.Y.Fit(0, append(report.Map(c.Marks(), func(m report.Mark) float64 { return m.Y }), 0.9, 1.1)...)
	caption(&c, "drift", data{"Steps": drawn, "Rings": len(rings.Marks), "Canaries": canaries, "Common": common})
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
// A warning is named by its kind and round; its text is in the list of warnings.
func addDrift(c *report.Chart, name string, steps []driftStep, rates map[string][]float64) {
	points := report.Series{Role: "points", Name: name}
	if name == canaryName {
		points.Role = "canary"
	}
	rows := map[string]int{} // by kind
	for _, s := range steps {
		all := rates[s.kind]
		if s.series != name || len(all) < 2 && len(s.warnings) == 0 {
			continue
		}
		if _, ok := rows[s.kind]; !ok {
			rows[s.kind] = len(c.Table.Rows)
			least, most := report.Human(slices.Min(all)/s.median, "1"), report.Human(slices.Max(all)/s.median, "1")
			c.Table.Rows = append(c.Table.Rows, report.TextRow(name, s.name, least, most, strconv.Itoa(len(all)), ""))
		}
		cell := &c.Table.Rows[rows[s.kind]][5]
		for _, w := range s.warnings {
			kind := report.Plain(w.Kind, 40) + " (round " + strconv.Itoa(s.round) + ")"
			cell.Text += report.TextIf(cell.Text != "", ", ") + kind
		}
		if len(all) > 1 {
			points.Marks = append(points.Marks, report.Mark{X: s.seconds, Y: s.rate / s.median,
				Tip: s.name + "\n" + report.Human(s.rate, "B/s")})
		}
	}
	c.Add(points)
}

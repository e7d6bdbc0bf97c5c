package export

import (
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"

	"dmgbench/internal/result"
)

// family is one metric with its samples, which have to be adjacent.
type family struct {
	name, help, unit string
	labels           []string // names, of the samples that were added
	lines            []string
}

// add adds a sample with labels, as pairs; a second one with the same labels
// would spoil the whole file and is left out.
func (f *family) add(value string, labels ...string) {
	var names, pairs []string
	for pair := range slices.Chunk(labels, 2) {
		names, pairs = append(names, pair[0]), append(pairs, pair[0]+`="`+escapeLabel(pair[1])+`"`)
	}
	series := f.name + "{" + strings.Join(pairs, ",") + "} "
	if !slices.ContainsFunc(f.lines, func(l string) bool { return strings.HasPrefix(l, series) }) {
		f.labels, f.lines = names, append(f.lines, series+value)
	}
}

// labelEscapes are those of the text format; other characters are valid in
// labels.
var labelEscapes = strings.NewReplacer(`\`, `\\`, `"`, `\"`, "\n", `\n`)

// escapeLabel escapes a label value; invalid UTF-8 is replaced.
func escapeLabel(s string) string { return labelEscapes.Replace(strings.ToValidUTF8(s, "\uFFFD")) }

// writeOpenMetrics writes the headline estimates, verdicts and states in the text
// format of OpenMetrics 1.0. Everything is a gauge without a time stamp, which is
// what node_exporter's textfile collector takes too.
func writeOpenMetrics(w io.Writer, rs []*result.Result, _ string) error {
	for _, f := range metricFamilies(rs[0]) {
		if len(f.lines) == 0 {
			continue
		}
		fmt.Fprintf(w, "# HELP %s %s\n# TYPE %s gauge\n", f.name, f.help, f.name)
		if f.unit != "" {
			fmt.Fprintf(w, "# UNIT %s %s\n", f.name, f.unit)
		}
		for _, l := range f.lines {
			fmt.Fprintln(w, l)
		}
	}
	_, err := fmt.Fprintln(w, "# EOF")
	return err
}

// metricFamilies are all families in the order of the file, also those without
// samples.
func metricFamilies(r *result.Result) []*family {
	// A metric with the facts of the run as labels is the usual form for text in
	// Prometheus.
	info := &family{name: "dmgbench_run_info", help: "The run, always 1."}
	s := append(slices.Clone(r.Sessions), result.Session{})[0]
	info.add("1", "plan", r.Plan.Name, "digest", r.Plan.Digest, "run", r.Run, "status", r.Status,
		"version", r.Tool.Version, "engine", s.Engine.Title, "os", osName(s.Host), "model", s.Host.Model)
	end := &family{name: "dmgbench_run_end_timestamp_seconds", unit: "seconds",
		help: "When the last session ended, Unix time."}
	if n := len(r.Sessions); n > 0 && !r.Sessions[n-1].Finished.IsZero() {
		end.add(strconv.FormatInt(r.Sessions[n-1].Finished.Unix(), 10), "plan", r.Plan.Name)
	}
	return slices.Concat([]*family{info, end}, estimateFamilies(r), stateFamilies(r))
}

// metricOf are name and unit by the unit of an estimate.
var metricOf = []struct{ unit, name, suffix, what string }{
	{"B/s", "rate", "bytes_per_second", "Rate"},
	{"s", "time", "seconds", "Time"},
	{"B", "size", "bytes", "Size"},
	{"1", "value", "", "Count or pure number"},
}

// estimateFamilies are the headline of every summary, with its interval.
func estimateFamilies(r *result.Result) []*family {
	var out []*family
	for _, m := range metricOf {
		gauge := func(part, help string) *family {
			name := "dmgbench_" + m.name + part
			if m.suffix != "" {
				name += "_" + m.suffix
			}
			return &family{name: name, unit: m.suffix, help: m.what + help}
		}
		value := gauge("", " by case, phase and quantity.")
		low, high := gauge("_ci_low", ": lower end of the interval."), gauge("_ci_high", ": upper end of the interval.")
		for _, s := range r.Summaries {
			for _, e := range s.Estimates {
				if e.Unit != m.unit || e.Name != s.Headline {
					continue
				}
				labels := []string{"plan", r.Plan.Name, "case", s.Case, "phase", s.Phase, "op", s.Op,
					"cycle", strconv.Itoa(s.Cycle), "estimate", e.Name}
				value.add(number(e.Value), labels...)
				if e.CI != nil {
					labels = append(labels, "level", number(e.CI.Level), "replicated", e.CI.Unit)
					low.add(number(e.CI.Low), labels...)
					high.add(number(e.CI.High), labels...)
				}
			}
		}
		out = append(out, value, low, high)
	}
	return out
}

// stateFamilies are the statuses of cases, the verdicts of claims, and how many
// warnings and deviations there are.
func stateFamilies(r *result.Result) []*family {
	cases := &family{name: "dmgbench_case_status", help: "Status of a case, always 1."}
	claims := &family{name: "dmgbench_claim_verdict", help: "Verdict on a claim, always 1."}
	notes := &family{name: "dmgbench_warnings", help: "Warnings of the run and of its summaries."}
	departures := &family{name: "dmgbench_departures", help: "Ways in which the run differs from what was published."}
	// Counts, not texts: a label for each text would make new series with every
	// run.
	n := len(r.Warnings)
	for _, c := range r.Cases {
		cases.add("1", "plan", r.Plan.Name, "case", c.ID, "status", c.Status)
	}
	for _, c := range r.Claims {
		claims.add("1", "plan", r.Plan.Name, "claim", c.ID, "by", c.By, "verdict", c.Verdict)
	}
	for _, s := range r.Summaries {
		n += len(s.Warnings)
	}
	notes.add(strconv.Itoa(n), "plan", r.Plan.Name)
	departures.add(strconv.Itoa(len(r.Departures)), "plan", r.Plan.Name)
	return []*family{cases, claims, notes, departures}
}

package export

import (
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"

	"dmgbench/internal/result"
	"dmgbench/internal/system/safetext"
)

// family is one metric with its samples, which have to be adjacent.
type family struct {
	name, help, unit string
	labels           []string // names, of the sample that was added last
	lines            []string
}

// families are metrics in the order of the file.
type families []*family

// add adds a sample with labels, as pairs, to the metric of a name that ends
// with its unit. A second sample with the same labels would spoil the whole
// file and is left out.
func (list *families) add(name, unit, help, value string, labels ...string) {
	name = strings.TrimSuffix("dmgbench_"+name+"_"+unit, "_")
	i := slices.IndexFunc(*list, func(f *family) bool { return f.name == name })
	if i < 0 {
		i = len(*list)
		*list = append(*list, &family{name: name, unit: unit, help: help})
	}
	f := (*list)[i]
	var names, pairs []string
	for pair := range slices.Chunk(labels, 2) {
		text := labelEscapes.Replace(safetext.Clean(pair[1])) // the format has controls, too, and a terminal obeys them
		names, pairs = append(names, pair[0]), append(pairs, pair[0]+`="`+text+`"`)
	}
	series := f.name + "{" + strings.Join(pairs, ",") + "} "
	if !slices.ContainsFunc(f.lines, func(l string) bool { return strings.HasPrefix(l, series) }) {
		f.labels, f.lines = names, append(f.lines, series+value)
	}
}

// labelEscapes are those of the text format; other characters are valid in
// labels.
var labelEscapes = strings.NewReplacer(`\`, `\\`, `"`, `\"`, "\n", `\n`)

// writeOpenMetrics writes the headline estimates, verdicts and states in the text
// format of OpenMetrics 1.0. Everything is a gauge without a time stamp, which is
// what node_exporter's textfile collector takes too.
func writeOpenMetrics(w io.Writer, rs []*result.Result, _ string) error {
	for _, f := range metricFamilies(rs[0]) {
		fmt.Fprintf(w, "# HELP %s %s\n# TYPE %s gauge\n", f.name, f.help, f.name)
		if f.unit != "" {
			fmt.Fprintf(w, "# UNIT %s %s\n", f.name, f.unit)
		}
		fmt.Fprintln(w, strings.Join(f.lines, "\n"))
	}
	_, err := fmt.Fprintln(w, "# EOF")
	return err
}

// metricFamilies are all metrics that have a sample. Of warnings and deviations
// that is their number: a label for each text would make new series with every
// run.
func metricFamilies(r *result.Result) (all families) {
	// A metric with the facts of the run as labels is the usual form for text in
	// Prometheus.
	s := append(slices.Clone(r.Sessions), result.Session{})[0]
	all.add("run_info", "", "The run, always 1.", "1", "plan", r.Plan.Name, "digest", r.Plan.Digest,
		"run", r.Run, "status", r.Status, "version", r.Tool.Version, "engine", s.Engine.Title,
		"os", osName(s.Host), "model", s.Host.Model)
	if n := len(r.Sessions); n > 0 && !r.Sessions[n-1].Finished.IsZero() {
		all.add("run_end_timestamp", "seconds", "When the last session ended, Unix time.",
			strconv.FormatInt(r.Sessions[n-1].Finished.Unix(), 10), "plan", r.Plan.Name)
	}
	all.addEstimates(r)
	for _, c := range r.Cases {
		all.add("case_status", "", "Status of a case, always 1.", "1",
			"plan", r.Plan.Name, "case", c.ID, "status", c.Status)
	}
	for _, c := range r.Claims {
		all.add("claim_verdict", "", "Verdict on a claim, always 1.", "1",
			"plan", r.Plan.Name, "claim", c.ID, "by", c.By, "verdict", c.Verdict)
	}
	warnings := len(r.Warnings)
	for _, s := range r.Summaries {
		warnings += len(s.Warnings)
	}
	all.add("warnings", "", "Warnings of the run and of its summaries.", strconv.Itoa(warnings), "plan", r.Plan.Name)
	all.add("departures", "", "Ways in which the run differs from what was published.", strconv.Itoa(len(r.Departures)),
		"plan", r.Plan.Name)
	return all
}

// metricOf are name and unit by the unit of an estimate.
var metricOf = []struct{ unit, name, suffix, what string }{
	{"B/s", "rate", "bytes_per_second", "Rate"},
	{"1/s", "operations", "per_second", "Operations a second"},
	{"s", "time", "seconds", "Time"},
	{"B", "size", "bytes", "Size"},
	{"1", "value", "", "Count or pure number"},
}

// addEstimates adds the headline of every summary, with its interval.
func (list *families) addEstimates(r *result.Result) {
	for _, m := range metricOf {
		for _, s := range r.Summaries {
			for _, e := range s.Estimates {
				if e.Unit != m.unit || e.Name != s.Headline {
					continue
				}
				labels := []string{"plan", r.Plan.Name, "case", s.Case, "phase", s.Phase, "op", s.Op,
					"cycle", strconv.Itoa(s.Cycle), "estimate", e.Name}
				list.add(m.name, m.suffix, m.what+" by case, phase and quantity.", number(e.Value), labels...)
				if e.CI != nil {
					labels = append(labels, "level", number(e.CI.Level), "replicated", e.CI.Unit)
					low, high := m.what+": lower end of the interval.", m.what+": upper end of the interval."
					list.add(m.name+"_ci_low", m.suffix, low, number(e.CI.Low), labels...)
					list.add(m.name+"_ci_high", m.suffix, high, number(e.CI.High), labels...)
				}
			}
		}
	}
}

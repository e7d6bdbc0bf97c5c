package export

import (
	"bytes"
	"encoding/json"
	"os/exec"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"dmgbench/internal/interoptest"

	"dmgbench/internal/result"
	"dmgbench/internal/system/safetext"
)

// metrics are what another program understood of an export.
type metrics []struct {
	Name, Type, Unit, Help string
	Samples                []struct {
		Name    string
		Labels  map[string]string
		Value   float64
		Stamped bool
	}
}

// understanding is what a parser made of a text, or why it refuses it.
type understanding struct {
	Families metrics
	Refused  string
}

// understood runs parsers of prometheus-client, each with its text.
func understood(t *testing.T, texts ...[2]string) []understanding {
	t.Helper()
	pairs, err := json.Marshal(texts)
	require.NoError(t, err)
	cmd := exec.CommandContext(t.Context(), interoptest.Python(t, "prometheus_client"), interoptest.Script(t, "metrics.py"))
	cmd.Stdin = bytes.NewReader(pairs)
	var out, said strings.Builder
	cmd.Stdout, cmd.Stderr = &out, &said
	require.NoError(t, cmd.Run(), "%s", &said)
	var all []understanding
	require.NoError(t, json.Unmarshal([]byte(out.String()), &all))
	require.Len(t, all, len(texts))
	return all
}

// hostileMetrics has names that would end a label, a line or a file if they were not escaped.
func hostileMetrics() *result.Result {
	r := everyUnit()
	r.Plan.Name = `a"b\c` + "\nd\n# EOF\n" + `dmgbench_forged{plan="x"} 1` + "\r\u2028\t{},=\\" + strings.Repeat("Ω", 300)
	r.Sessions[0].Engine.Title, r.Sessions[0].Host.Model = `\"`, "\xff\u202eתוכנית 🧨\x00"
	r.Cases[0].ID, r.Claims[0].ID = `"} 2`, `\n`
	return r
}

// The file has two readers: whoever speaks OpenMetrics, and node_exporter's textfile collector, which reads the classic
// text format and takes no time stamps. Both have to find the same in it: every sample, every label as it was.
func TestOthersReadTheMetrics(t *testing.T) {
	t.Parallel()
	r := hostileMetrics()
	text := exported(t, r, "openmetrics", "")
	var want []*family
	for _, f := range metricFamilies(r) {
		if len(f.lines) > 0 {
			want = append(want, f)
		}
	}
	parsers := []string{"openmetrics", "text"}
	for i, u := range understood(t, [2]string{parsers[0], text}, [2]string{parsers[1], text}) {
		parser, got := parsers[i], u.Families
		require.Empty(t, u.Refused, parser)
		require.Len(t, got, len(want), parser)
		for i, f := range got {
			assert.Equal(t, []string{want[i].name, "gauge", want[i].help}, []string{f.Name, f.Type, f.Help}, parser)
			if parser == "openmetrics" { // to the classic format a unit is a comment
				assert.Equal(t, want[i].unit, f.Unit, f.Name)
			}
			require.Len(t, f.Samples, len(want[i].lines), "%s: %s", parser, f.Name)
			for _, s := range f.Samples {
				assert.Equal(t, f.Name, s.Name, parser)
				assert.Equal(t, safetext.Clean(r.Plan.Name), s.Labels["plan"], "%s: %s", parser, f.Name)
				assert.Len(t, s.Labels, len(want[i].labels), "%s: %s", parser, f.Name)
				assert.False(t, s.Stamped, f.Name)
			}
		}
		assertMetrics(t, r, got)
	}
}

// assertMetrics looks for values and labels of the result itself, not of what was printed of it.
func assertMetrics(t *testing.T, r *result.Result, got metrics) {
	t.Helper()
	byName := map[string]int{}
	for i, f := range got {
		byName[f.Name] = i
	}
	first := func(name string) map[string]string { return got[byName[name]].Samples[0].Labels }
	assert.Equal(t, r.Sessions[0].Engine.Title, first("dmgbench_run_info")["engine"])
	assert.Equal(t, "\uFFFD\uFFFDתוכנית 🧨\uFFFD", first("dmgbench_run_info")["model"],
		"what is no UTF-8 is replaced, and what a terminal obeys")
	assert.Equal(t, r.Cases[0].ID, first("dmgbench_case_status")["case"])
	assert.Equal(t, r.Claims[0].ID, first("dmgbench_claim_verdict")["claim"])
	for name, want := range map[string]float64{"dmgbench_rate_bytes_per_second": 1.5e9, "dmgbench_rate_ci_low_bytes_per_second": 1.25e9,
		"dmgbench_rate_ci_high_bytes_per_second": 1.75e9, "dmgbench_size_bytes": 8400896, "dmgbench_value": 3, "dmgbench_time_seconds": 1.5} {
		assert.Equal(t, want, got[byName[name]].Samples[0].Value, name)
	}
}

// A judge that takes everything is none.
func TestOthersRefuseBadMetrics(t *testing.T) {
	t.Parallel()
	text := exported(t, everyUnit(), "openmetrics", "")
	refused := understood(t,
		[2]string{"openmetrics", strings.TrimSuffix(text, "# EOF\n")},
		[2]string{"openmetrics", strings.Replace(text, "# UNIT dmgbench_size_bytes bytes", "# UNIT dmgbench_size_bytes rods", 1)},
		[2]string{"text", strings.Replace(text, `",status="done"} 1`, `",status="done"} one`, 1)})
	assert.Contains(t, refused[0].Refused, "EOF")
	assert.Contains(t, refused[1].Refused, "Unit does not match")
	assert.Contains(t, refused[2].Refused, "one")
}

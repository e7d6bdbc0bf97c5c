package export

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"dmgbench/internal/result"
)

const metricsPage = "../../../tools/docs/metrics.md.tmpl"

// exportTables is the part of docs/metrics.md, which make docs makes from its template, that the code decides: a table for
// each table of csv, and one of the metric families.
func exportTables() string {
	var b strings.Builder
	row := func(name, doc string) { fmt.Fprintf(&b, "| `%s` | %s |\n", name, strings.ReplaceAll(doc, "|", "\\|")) }
	head := func(title string) { fmt.Fprintf(&b, "### %s\n\n| name | meaning |\n|---|---|\n", title) }
	head("CSV: first in every row of samples, summaries and steps")
	shared := Columns(&result.Result{}, Tables[0])
	for _, c := range shared[:len(shared)-len(columnGroups[Tables[0]])] {
		row(c.Name, c.Doc)
		if c.Name == "case" {
			row("key_…", "values of the case's keys, as the plan writes them")
		}
	}
	for _, table := range Tables {
		fmt.Fprintln(&b)
		head("CSV: table " + table)
		for _, c := range columnGroups[table] {
			row(c.Name, c.Doc)
		}
	}
	fmt.Fprintln(&b)
	head("OpenMetrics")
	for _, f := range metricFamilies(everyUnit()) {
		row(f.name, strings.TrimSuffix(f.help, ".")+"; labels `"+strings.Join(f.labels, "`, `")+"`")
	}
	return b.String()
}

// everyUnit has an estimate with an interval in each unit, so that no family is without samples.
func everyUnit() *result.Result {
	r := goldenResult()
	for _, m := range metricOf {
		r.Summaries = append(r.Summaries, result.Summary{Case: r.Cases[0].ID, Phase: "x", Op: m.name, Headline: "mean",
			Estimates: []result.Estimate{{Name: "mean", Value: 1.5, Unit: m.unit, CI: &result.CI{Low: 1, High: 2, Level: 0.95, Method: "t", Unit: "round"}}}})
	}
	return r
}

// TestExportsAreDocumented holds code and page together; -update writes the page.
func TestExportsAreDocumented(t *testing.T) {
	const begin, end = "<!-- exports: made by the tests of internal/result/export -->\n", "<!-- end of exports -->\n"
	b, err := os.ReadFile(metricsPage)
	require.NoError(t, err)
	before, rest, ok := strings.Cut(string(b), begin)
	require.True(t, ok)
	have, after, ok := strings.Cut(rest, end)
	require.True(t, ok)
	for _, f := range metricFamilies(everyUnit()) {
		require.NotEmpty(t, f.labels, f.name)
	}
	want := "\n" + exportTables() + "\n"
	if *update {
		require.NoError(t, os.WriteFile(metricsPage, []byte(before+begin+want+end+after), 0o644))
		return
	}
	assert.Equal(t, want, have, "make it anew: go test ./internal/result/export -run TestExportsAreDocumented -update")
}

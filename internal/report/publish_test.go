package report

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"dmgbench/internal/plan"
	"dmgbench/internal/result"
)

// saved are the files of the tables of the plan.
func saved(t *testing.T, m maker) map[string]string {
	t.Helper()
	p, r := m()
	out := map[string]string{}
	require.NoError(t, Renderers.Tables(p, r, func(name string, text []byte) error {
		assert.NotContains(t, out, name)
		assert.NoError(t, result.SafeName(name))
		out[name] = string(text)
		return nil
	}))
	return out
}

func TestTablesAsFiles(t *testing.T) {
	files := saved(t, shared("sample"))
	for _, suffix := range []string{".html", ".md", ".tsv"} {
		golden(t, "new-images"+suffix, []byte(files["new-images"+suffix]))
	}
	assert.Len(t, files, 3)
	p, r := makers["sample"]()
	full := errors.New("no space left on device")
	require.ErrorIs(t, Renderers.Tables(p, r, func(string, []byte) error { return full }), full)
}

// Every row of TSV has a cell for each column, and a cell is a number alone.
func TestTablesInSpreadsheets(t *testing.T) {
	lines := strings.Split(strings.TrimSuffix(saved(t, shared("sample"))["new-images.tsv"], "\n"), "\n")
	require.Len(t, lines, 5)
	for _, line := range lines {
		assert.Len(t, strings.Split(line, "\t"), len(strings.Split(lines[0], "\t")), line)
	}
	cells := strings.Split(lines[1], "\t")
	assert.Regexp(t, `^\d\.\d\d$`, cells[1])
	assert.Equal(t, "5.3", cells[3])
}

// The buttons of the page hand out what the files hold.
func TestPageBringsTheForms(t *testing.T) {
	page := pageOf("sample")
	_, rest, ok := strings.Cut(page, `<script type="application/json" class="forms">`)
	require.True(t, ok)
	text, _, _ := strings.Cut(rest, "</script>")
	var forms map[string]string
	require.NoError(t, json.Unmarshal([]byte(text), &forms))
	files := saved(t, shared("sample"))
	assert.Equal(t, map[string]string{"HTML": files["new-images.html"], "Markdown": files["new-images.md"], "TSV": files["new-images.tsv"]}, forms)
}

// Names out of a hostile plan stay text in every form.
func TestHostileTables(t *testing.T) {
	for name, text := range saved(t, shared("hostile")) {
		switch {
		case strings.HasSuffix(name, ".html"):
			assert.NotContains(t, strings.ToLower(text), "<script")
			assert.NotContains(t, strings.ToLower(text), "<img")
		case strings.HasSuffix(name, ".tsv"):
			rows := strings.Split(strings.TrimSuffix(text, "\n"), "\n")
			for _, row := range rows {
				cells := strings.Split(row, "\t")
				assert.Len(t, cells, len(strings.Split(rows[0], "\t")))
				for _, c := range cells {
					assert.NotRegexp(t, `^[=+@]`, c)
				}
			}
		}
	}
}

// A table of outcomes and coefficients reads like any other: words to the left,
// figures in the unit of their line, nothing said that is of rates of files.
func TestTablesOfOutcomesAndCoefficients(t *testing.T) {
	two := 2
	p, r := makers["sample"]()
	ci := &result.CI{Low: 4e-3, High: 6e-3, Level: 0.95, Method: "t", Unit: "round"}
	r.Tables = []result.Table{{Name: "what", Title: "What became of it",
		Columns: []result.TableLine{{Title: "mounts", Op: result.OpOutcome}, {Title: "latency", Group: "line", Op: result.OpCoefficient, Unit: "ms", Digits: &two},
			{Title: "rate", Group: "line", Op: result.OpCoefficient}, {Title: "repairs", Op: "check_time", Unit: "s"}},
		Rows: []result.TableLine{{Title: "RAW"}, {Title: "sparse bundle"}},
		Cells: [][]result.TableCell{
			{{Case: "a", Rounds: 3, Outcome: &result.TableOutcome{Do: "attach", Text: "refused <b>", Failed: 3}},
				{Fit: "line", Estimate: &result.Estimate{Name: "intercept", Value: 5e-3, Unit: "s", CI: ci}},
				{Fit: "line", Estimate: &result.Estimate{Name: "slope", Value: 2.5e9, Unit: "B/s"}}, {Why: "not part of the protocol"}},
			{{Why: "case b was skipped: no tool"}, {Fit: "line", Why: "too few points"}, {Fit: "line", Estimate: &result.Estimate{Name: "slope", Value: 1.5e9, Unit: "B/s"}}, {Why: "not part of the protocol"}},
		}}}
	files := saved(t, func() (*plan.Plan, *result.Result) { return p, r })
	text := files["what.md"]
	assert.Contains(t, text, "|  | mounts | line · latency, ms | line · rate, GB/s | repairs, s |\n|:---|:---|---:|---:|---:|\n")
	assert.Contains(t, text, "| 5.00 | 2.50 |")
	assert.Contains(t, text, "| *interval* |  | *4.00–6.00* |  |  |")
	assert.Contains(t, text, "Not measured: case b was skipped: no tool.")
	assert.Contains(t, text, "Not measured: too few points.")
	assert.NotContains(t, text, "Rates: ")
	assert.Contains(t, text, "n: 3 rounds.")
	assert.Contains(t, files["what.html"], "<td>refused &lt;b&gt;</td>")
	assert.True(t, strings.HasPrefix(files["what.tsv"], "\tmounts\tline · latency, ms\tline · latency, ms, interval\tline · rate, GB/s\trepairs, s\nRAW\trefused <b>\t5.00\t4.00–6.00\t2.50\t—\n"), files["what.tsv"])
}

// A published value recedes only where a measured one stands above it that it may not be compared with.
func TestPublishedValuesInTablesOfThePlan(t *testing.T) {
	t.Parallel()
	measured := &result.Estimate{Name: "mean", Value: 1e9, Unit: "B/s"}
	value := func(comparable bool) *result.PublishedValue {
		return &result.PublishedValue{Low: 2e9, High: 2e9, Unit: "B/s", On: "a Mac", Comparable: comparable}
	}
	p, r := makers["sample"]()
	for name, c := range map[string]struct {
		cell  result.TableCell
		class string
	}{
		"comparable":     {result.TableCell{Estimate: measured, Published: value(true)}, ""},
		"not comparable": {result.TableCell{Estimate: measured, Published: value(false)}, "uncomparable"},
		"not measured":   {result.TableCell{Why: "no tool", Published: value(false)}, ""},
	} {
		r.Tables = []result.Table{{Name: "t", Columns: []result.TableLine{{Title: "write", Op: "write"}},
			Rows: []result.TableLine{{Title: "RAW"}}, Cells: [][]result.TableCell{{c.cell}}}}
		row := NewView(p, r).PlanTables[0].Rows[0]
		published := row[len(row)-1]
		assert.Equal(t, []string{"2.00", c.class}, []string{published.Text, published.Class}, name)
	}
}

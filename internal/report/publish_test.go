package report

import (
	"encoding/json"
	"errors"
	"strconv"
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
	require.Greater(t, len(lines), 5)
	for _, line := range lines {
		assert.Len(t, strings.Split(line, "\t"), len(strings.Split(lines[0], "\t")), line)
	}
	cells := strings.Split(lines[1], "\t")
	assert.Regexp(t, `^\d\.\d\d$`, cells[1])
	assert.Equal(t, []string{"2.82", "2.96", "5.3"}, cells[2:5])
}

// formsOf are the forms that the tables of a page bring along, by name of the form, in the order of the page.
func formsOf(t *testing.T, page string) (all []map[string]string) {
	t.Helper()
	parts := strings.Split(page, `<script type="application/json" class="forms">`)
	for _, part := range parts[1:] {
		text, _, _ := strings.Cut(part, "</script>")
		var forms map[string]string
		require.NoError(t, json.Unmarshal([]byte(text), &forms))
		all = append(all, forms)
	}
	return all
}

// The buttons of the page hand out what the files hold, of every table.
func TestPageBringsTheForms(t *testing.T) {
	page, files := pageOf("sample"), saved(t, shared("sample"))
	all := formsOf(t, page)
	assert.Contains(t, all, map[string]string{"HTML": files["new-images.html"], "Markdown": files["new-images.md"], "TSV": files["new-images.tsv"]})
	assert.Len(t, all, strings.Count(page, "<table>"))
}

// A copy of a table keeps its marks, its notes, the machine and what was not measured. In TSV numbers have cells of their own.
func TestCopiesKeepTheirDoubts(t *testing.T) {
	t.Parallel()
	v := NewView(shared("sample")())
	all := formsOf(t, pageOf("sample"))
	for _, forms := range all {
		for form, text := range forms {
			assert.Contains(t, text, "Example workstation", form)
			assert.Contains(t, text, map[string]string{"HTML": "Apple’s tools were not measured", "Markdown": "Apple’s tools were not measured",
				"TSV": "Apple’s tools were not measured"}[form])
		}
	}
	speeds := v.Sections[0].Tables[0].Forms()
	html, markdown := speeds[0].Text, speeds[1].Text
	lines := strings.Split(speeds[2].Text, "\n")
	doubt := "Doubtful: the last round was 9 % slower than the first."
	assert.Regexp(t, `<td>1.78<sup>2</sup></td>`, html)
	assert.Contains(t, html, "<sup>2</sup> <small>"+doubt)
	assert.Contains(t, markdown, "| 1.78 (2) |")
	assert.Contains(t, markdown, "(2) "+doubt)
	heads := strings.Split(lines[0], "\t")
	for _, line := range lines[1 : len(v.Sections[0].Tables[0].Rows)+1] {
		for i, cell := range strings.Split(line, "\t") {
			if i > 1 && cell != "" && heads[i] != "n" && heads[i] != "notes" && !strings.HasSuffix(heads[i], ", unit") {
				_, err := strconv.ParseFloat(cell, 64)
				assert.NoError(t, err, "%s: %q", heads[i], cell)
			}
		}
	}
	assert.Subset(t, heads, []string{"write · measured, GB/s", "write · interval, low", "write · interval, high", "notes"})
	assert.Contains(t, speeds[2].Text, doubt)
}

func TestNumbersOfCells(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		text, unit string
		want       numbers
	}{
		{"1.24", "GB/s", numbers{"1.24"}}, {"1.24 GB/s", "", numbers{"1.24", "", "", "GB/s"}}, {"0.917–2.14", "GB/s", numbers{"", "0.917", "2.14"}},
		{"1.40 GB/s (0.917–2.14 GB/s)", "", numbers{"1.40", "0.917", "2.14", "GB/s"}}, {"917 MB/s–2.14 GB/s", "", numbers{"", "0.917", "2.14", "GB/s"}},
		{"917 MB/s–2.14 GB/s", "MB/s", numbers{"", "917", "2140"}}, {"1.4 (1.3–1.5) †", "GB/s", numbers{"1.4", "1.3", "1.5"}},
		{"−36.8 µs to 6.22 ms", "", numbers{"", "-0.0368", "6.22", "ms"}}, {"+3.09 ms", "", numbers{"3.09", "", "", "ms"}}, {"0.421×", "", numbers{"0.421"}},
		{"93.3 %", "", numbers{"93.3", "", "", "%"}}, {"2\u202f880", "", numbers{"2880"}}, {"0–6.00", "GB", numbers{"", "0", "6.00"}},
		{"93.3 MB (within the last digit)", "", numbers{"93.3", "93.3", "93.3", "MB"}}, {"no spread", "MB", numbers{"no spread"}},
		{"-1.00 to 2.00", "", numbers{"", "-1.00", "2.00"}}, {"4.90 k/s", "", numbers{"4.90", "", "", "k/s"}}, {"none", "", numbers{"none"}}, {"", "", numbers{}},
		{"about 5 GB/s", "", numbers{"about 5 GB/s"}}, {"=1+1", "", numbers{"'=1+1"}}, {"1 of 60, 0.040 to 8.9 %", "", numbers{"1 of 60, 0.040 to 8.9 %"}},
	} {
		assert.Equal(t, c.want, numbersOf(c.text, c.unit), c.text)
	}
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
	assert.True(t, strings.HasPrefix(files["what.tsv"], "\tmounts\tline · latency, ms\tline · latency, ms, interval, low\tline · latency, ms, interval, high"+
		"\tline · rate, GB/s\trepairs, s\tnotes\nRAW\trefused <b>\t5.00\t4.00\t6.00\t2.50\t—\tNot measured: not part of the protocol.\n"), files["what.tsv"])
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

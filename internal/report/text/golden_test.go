package text

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"dmgbench/internal/plan"
	"dmgbench/internal/report"
	"dmgbench/internal/report/reporttest"
	"dmgbench/internal/result"
)

// golden compares with a file; escape characters are printed as "^" in it.
func golden(t *testing.T, path string, write func(io.Writer) error) {
	t.Helper()
	var b bytes.Buffer
	require.NoError(t, write(&b))
	got := strings.ReplaceAll(b.String(), "\x1b", "^")
	if *update {
		require.NoError(t, os.WriteFile(path, []byte(got), 0o644))
	}
	want, err := os.ReadFile(path)
	require.NoError(t, err)
	assert.Equal(t, string(want), got, "%s differs; run with -update and read the change", path)
}

// The forms of two runs are those of the golden files of package report.
func TestGoldenRuns(t *testing.T) {
	t.Parallel()
	for name, m := range map[string]func() (*plan.Plan, *result.Result){"sample": reporttest.Sample, "sweep": reporttest.Sweep} {
		p, r := m()
		golden(t, "../testdata/"+name+"-brief.txt", func(w io.Writer) error { return Run(w, p, r, Options{}) })
		golden(t, "../testdata/"+name+".txt", func(w io.Writer) error { return Run(w, p, r, Options{Verbose: true}) })
		golden(t, "../testdata/"+name+".md", func(w io.Writer) error { return RunMarkdown(w, p, r) })
	}
	p, r := reporttest.Sample()
	golden(t, "testdata/colour.txt", func(w io.Writer) error { return Run(w, p, r, Options{Color: true, Width: 70}) })
}

// trend is a chart of points that a terminal prints as blocks; a negative one is a gap.
func trend(name string, values ...float64) report.Chart {
	c := report.Chart{Heading: name, Trend: true, Notes: []string{"The first note of " + name + ".", "The origin."},
		Y: report.Axis{Unit: "B/s", Low: new(0.0), High: new(2e9)}}
	c.Table.Columns = report.Columns("<run", "speed")
	line := report.Series{Role: "line", Name: "a line"}
	for i, v := range values {
		text := report.Human(v, "B/s")
		if v < 0 {
			v, text = math.NaN(), ""
		}
		c.Table.Rows = append(c.Table.Rows, report.TextRow(fmt.Sprintf("run %d", i+1), text))
		line.Marks = append(line.Marks, report.Point(float64(i), v))
	}
	c.Series = []report.Series{{Role: "error", Name: "no line"}, line}
	return c
}

// everything is a document with every part that one can have.
func everything() report.Document {
	many := make([]float64, 60)
	for i := range many {
		many[i] = 2e9 / 59 * float64(i)
	}
	groups := report.Table{PerQuantity: true, Notes: []report.Note{{Mark: 1, Text: "a footnote"}, {Text: "a note of the table"}},
		Columns: []report.Column{{Title: "case", Text: true}, {Group: "write", Title: "measured", Unit: "GB/s"}, {Group: "write", Title: "published"},
			{Group: "read", Title: "measured"}},
		Rows: [][]report.Cell{{{Text: "UDRW"}, {Text: "2.00", Bar: 100, Marks: []int{1}}, {Text: "3.00", Class: "uncomparable"}, {Text: "1.00", Bar: 50}},
			{{Text: "UDSB"}, {Text: "0.02", Bar: 1, Class: "warn"}, {}, {}}}}
	long := report.Table{Columns: report.Columns("<case", "first", "<words that may be wrapped"), Rows: [][]report.Cell{
		report.TextRow("a case with a name that is rather long, and another word", "12345", strings.TrimSpace(strings.Repeat("many words ", 9))),
		report.TextRow("a case with a name that is rather long, and another word", "", "the same case"), report.TextRow("short", "1", "")}}
	below := report.Table{Columns: append(report.Columns("<case", "value"), report.Column{Title: "interval", Below: true}),
		Rows: [][]report.Cell{report.TextRow("one", "1.00", "0.90–1.10"), report.TextRow("two", "2.00", "")}}
	return report.Document{Title: "A document", Lead: []string{"A paragraph " + strings.Repeat("of some words ", 9) + "that is wrapped."}, Sections: []report.Section{
		{Alert: true, Lead: []string{"Read this first.", "Then this."}},
		{Heading: "On the page only", Page: true, Lead: []string{"not printed"}},
		{Heading: "Facts", Sub: true, Pairs: []report.Pair{{Name: "Name", Value: "a value"}, {Name: "A longer name", Value: "another"}},
			Items: []report.Item{{Label: "holds", Class: result.Holds, Text: "a claim", Items: report.Items("its evidence", "and more")},
				{Label: "label", Text: "text", Note: "note"}}, After: []string{"After all."}},
		{Heading: "By quantity", Table: &groups}, {Heading: "Long names", Table: &long}, {Heading: "Values below", Table: &below},
		{Heading: "Grid", Grid: &report.Grid{Caption: "claim", Columns: []string{"here", "there"}, Rows: []report.GridRow{{Name: "it is so", Note: "ours",
			Cells: []report.GridCell{{Word: "holds", Class: result.Holds, Note: "3 of 3", Entries: []report.GridEntry{{Title: "a run", Lines: []string{"a line"}}}}, {}}}}}},
		{Heading: "Code", Language: "sh", Code: "ls"},
		{Heading: "Trends", Charts: []report.Chart{trend("few", 1e9, -1, 2e9, 0.5e9), {Heading: "no trend"}, trend("many", many...)}, After: []string{"After the trends."}},
	}}
}

func TestGoldenDocument(t *testing.T) {
	t.Parallel()
	golden(t, "testdata/document.md", func(w io.Writer) error { return DocumentMarkdown(w, everything()) })
	golden(t, "testdata/document.txt", func(w io.Writer) error { return Document(w, everything(), Options{}) })
	golden(t, "testdata/document-60.txt", func(w io.Writer) error { return Document(w, everything(), Options{Width: 1, Color: true}) })
}

func TestTablesAreSavedInThreeForms(t *testing.T) {
	t.Parallel()
	p, r := reporttest.Sample()
	r.Tables = append(r.Tables, r.Tables[0])
	var names []string
	require.NoError(t, Tables(p, r, func(name string, text []byte) error {
		names = append(names, name)
		if !strings.Contains(name, "again") {
			golden(t, "../testdata/"+name, func(w io.Writer) error { _, err := w.Write(text); return err })
		}
		return nil
	}))
	assert.Equal(t, []string{"new-images.html", "new-images.md", "new-images.tsv", "new-images-again-2.html", "new-images-again-2.md", "new-images-again-2.tsv"}, names)
	full := errors.New("no space left on device")
	err := Tables(p, r, func(string, []byte) error { return full })
	require.ErrorIs(t, err, full)
	assert.ErrorContains(t, err, `saving table "new-images"`)
}

// A section with contents of any kind stays, whatever the numbers of its parts.
func TestSectionsWithContentsStay(t *testing.T) {
	t.Parallel()
	lines := []string{"one"}
	sections := []report.Section{{Lead: lines, Pairs: make([]report.Pair, 1)}, {Pairs: make([]report.Pair, 1), Items: report.Items("one")},
		{Lead: lines, Items: report.Items("one")}, {Lead: lines, After: lines}, {Items: report.Items("one"), After: lines}, {Lead: []string{"a", "b", "c"}, Code: "abc"},
		{After: lines, Code: "a"}, {Table: &report.Table{}}, {ID: "judged"}}
	assert.Equal(t, sections, filled(&report.View{}, append([]report.Section{{Heading: "nothing below"}}, sections...)).Sections)
}

// Names beside values below them go on lines of their own only where they take more than half of the width.
func TestNamesOverHalfOfTheWidthAreApart(t *testing.T) {
	t.Parallel()
	for columns, want := range map[int]string{30: `n{30} +1.00\n`, 40: `n{40}\n +1.00\n`} {
		w := newTerminal(Options{})
		w.table(report.Table{Columns: append(report.Columns("<case", "value"), report.Column{Title: "interval", Below: true}),
			Rows: [][]report.Cell{report.TextRow(strings.Repeat("n", columns), "1.00", "0.90–1.10")}})
		assert.Regexp(t, want, w.String())
	}
}

// A point beyond the scale is the lowest or the highest block.
func TestBlocksStayOnTheScale(t *testing.T) {
	t.Parallel()
	c := trend("beyond", 3e9, 1e9)
	*c.Y.Low = 1.5e9
	assert.Equal(t, "█▁", trendSection(c).Table.Rows[0][1].Text)
}

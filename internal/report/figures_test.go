package report

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"dmgbench/internal/report/reporttest"
	"dmgbench/internal/result"
)

// published is a rate that somebody published, and what it was compared with.
func published(ratio float64, comparable bool, statistic, estimate string) result.PublishedValue {
	return result.PublishedValue{Low: 2e9, High: 2e9, Unit: "B/s", On: "a Mac", Ratio: ratio, Comparable: comparable,
		Statistic: statistic, Estimate: estimate}
}

// rateWith is the summary of a rate with published values.
func rateWith(caseID string, all ...result.PublishedValue) result.Summary {
	return result.Summary{Case: caseID, Phase: "new", Op: "write", N: 3, Rounds: 3, Headline: "mean", Published: all,
		Estimates: []result.Estimate{{Name: "mean", Value: 1e9, Unit: "B/s"}, {Name: "median", Value: 1.5e9, Unit: "B/s"}}}
}

// A tip has the ratio to each published value: in brackets where they may not be compared, with a star where it is of
// another statistic.
func TestRatiosInTips(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		published []result.PublishedValue
		want      string
	}{
		{nil, ""},
		{[]result.PublishedValue{published(0.5, true, "", "")}, "0.500×"},
		{[]result.PublishedValue{published(0.5, false, "", "mean")}, "(0.500×)"},
		{[]result.PublishedValue{published(0, false, "", "")}, "—"},
		{[]result.PublishedValue{published(0.75, true, "", "median")}, "0.750×*"},
		{[]result.PublishedValue{published(0.5, true, "", ""), published(0.75, false, "", "median")}, "0.500×; (0.750×*)"},
	} {
		s := rateWith("a", c.published...)
		assert.Equal(t, c.want, TextOf(&s, ScaleOf("B/s", 1e9)).Ratio)
	}
}

// A tip has a figure with its interval and what it is from.
func TestFiguresInTips(t *testing.T) {
	t.Parallel()
	s := rateWith("a", published(0.5, true, "", ""))
	want := FigureText{Value: "1.00 GB/s", Published: "2.00 GB/s", Ratio: "0.500×", N: "3 rounds"}
	assert.Equal(t, want, TextOf(&s, ScaleOf("B/s", 1e9)))
	s.Estimates[0].CI, want.Interval = &result.CI{Low: 0.9e9, High: 1.1e9}, "0.900–1.10"
	assert.Equal(t, want, TextOf(&s, ScaleOf("B/s", 1e9)))
}

// A published value tells its statistic when it is pointed at, and recedes if it may not be compared.
func TestPublishedCells(t *testing.T) {
	t.Parallel()
	p, r := reporttest.Sample()
	r.Cases, r.Tables = r.Cases[:1], nil
	for name, c := range map[string]struct {
		published    result.PublishedValue
		value, ratio Cell // without marks
		note         string
	}{
		"comparable": {published(0.5, true, "", "mean"), Cell{Text: "2.00 GB/s"}, Cell{Text: "0.500×"}, ""},
		"statistic": {published(0.5, true, "median", "mean"), Cell{Text: "2.00 GB/s", Title: "published as median of the files"},
			Cell{Text: "0.500×"}, ""},
		"not comparable": {published(0.5, false, "", "mean"), Cell{Text: "2.00 GB/s", Class: "uncomparable"},
			Cell{Text: "0.500×", Class: "uncomparable"}, "Not comparable: published for a Mac."},
		"no ratio": {published(0, true, "", "mean"), Cell{Text: "2.00 GB/s"}, Cell{}, ""},
		"of another statistic": {published(0.75, true, "", "median"), Cell{Text: "2.00 GB/s"}, Cell{Text: "0.750×"},
			"Ratio of another statistic than the one shown: median"},
	} {
		r.Summaries = []result.Summary{rateWith(r.Cases[0].ID, c.published)}
		table := NewView(p, r).Sections[0].Tables[0]
		cells := map[string]Cell{}
		marks := 0
		for i, column := range table.Columns {
			cell := table.Rows[0][i]
			marks += len(cell.Marks)
			cell.Marks = nil
			cells[column.Title] = cell
		}
		assert.Equal(t, c.value, cells["published"], name)
		assert.Equal(t, c.ratio, cells["ratio"], name)
		require.Equal(t, c.note != "", marks > 0, name)
		notes := strings.Join(Map(table.Notes, func(n Note) string { return n.Text }), "\n")
		assert.Contains(t, notes, c.note, name)
	}
}

// A table has a column for each machine that values were published for; the first screen has one value, of the
// headline if there are several.
func TestPublishedValuesByMachine(t *testing.T) {
	t.Parallel()
	on := func(machine string, value float64, estimate string) result.PublishedValue {
		return result.PublishedValue{Low: value, High: value, Unit: "B/s", On: machine, Comparable: true, Estimate: estimate}
	}
	p, r := reporttest.Sample()
	r.Cases, r.Tables = r.Cases[:1], nil
	for _, c := range []struct {
		all   []result.PublishedValue
		table map[string]string // by title
		first string
	}{
		{[]result.PublishedValue{on("Mini", 2e9, ""), on("Studio", 3e9, "")},
			map[string]string{"published: Mini": "2.00 GB/s", "published: Studio": "3.00 GB/s"}, "2.00 GB/s"},
		{[]result.PublishedValue{on("Mini", 2e9, "median"), on("Mini", 3e9, "mean"), on("Mini", 4e9, "mean")},
			map[string]string{"published": "2.00 GB/s; 3.00 GB/s; 4.00 GB/s"}, "3.00 GB/s"},
		{[]result.PublishedValue{on("Mini", 2e9, "median")}, map[string]string{"published": "2.00 GB/s"}, "2.00 GB/s"},
	} {
		r.Summaries = []result.Summary{rateWith(r.Cases[0].ID, c.all...)}
		v := NewView(p, r)
		inTable := map[string]string{}
		for title, text := range byTitle(&v.Sections[0].Tables[0]) {
			if strings.HasPrefix(title, "published") {
				inTable[title] = text
			}
		}
		assert.Equal(t, c.table, inTable)
		assert.Equal(t, c.first, byTitle(v.First.Numbers)["published"])
	}
}

// byTitle has the texts of the first row by the titles of their columns.
func byTitle(table *Table) map[string]string {
	texts := map[string]string{}
	for i, column := range table.Columns {
		texts[column.Title] = table.Rows[0][i].Text
	}
	return texts
}

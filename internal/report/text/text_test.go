package text

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"

	"dmgbench/internal/report"
)

func TestBar(t *testing.T) {
	t.Parallel()
	assert.Equal(t, "████", bar(100, 4))
	assert.Equal(t, "██", bar(50, 4))
	assert.Equal(t, "▏", bar(0, 4))
	assert.Equal(t, "█▌", bar(37.5, 4))
}

// Where a terminal has no room for both, the interval stays and the bar goes.
func TestBarsGiveWayToIntervals(t *testing.T) {
	t.Parallel()
	table := report.Table{PerQuantity: true,
		Columns: []report.Column{{Title: "case", Text: true}, {Group: "write", Title: "measured"}, {Group: "write", Title: "interval"}},
		Rows:    [][]report.Cell{{{Text: "UDRW · AES-256"}, {Text: "1.25 GB/s", Bar: 100}, {Text: "0.946–2.35 GB/s"}}}}
	for _, width := range []int{60, 70, 120} {
		w := newTerminal(Options{Width: width})
		w.table(table)
		assert.Contains(t, w.String(), "0.946–2.35 GB/s", width)
		assert.Equal(t, width > 60, strings.Contains(w.String(), "█"), "%d: %s", width, w.String())
	}
}

// A table that is wider than the terminal loses no value: names go on lines of their own, then it is printed in parts.
func TestWideTablesLoseNothing(t *testing.T) {
	t.Parallel()
	table := report.Table{Columns: report.Columns("<case", "<words")}
	row := []report.Cell{{Text: "a case with a name that is rather long", Class: "head"}, {Text: "word"}}
	for i := range 12 {
		table.Columns = append(table.Columns, report.Column{Title: "column", Unit: "GB/s"})
		row = append(row, report.Cell{Text: strings.Repeat(string(rune('a'+i)), 9), Marks: []int{i + 1}})
	}
	table.Rows = [][]report.Cell{row, row}
	for _, width := range []int{60, 80, 200, 400} {
		w := newTerminal(Options{Width: width, Color: true})
		w.table(table)
		for i := range 12 {
			assert.Equal(t, 2, strings.Count(w.String(), strings.Repeat(string(rune('a'+i)), 9)), "%d columns", width)
		}
		for line := range strings.Lines(w.String()) {
			assert.LessOrEqual(t, visibleWidth(strings.TrimSuffix(line, "\n")), width, line)
		}
	}
}

// The first screen has no footnotes, so that a doubtful figure has no colour there either: it would be the only sign.
func TestNoColourWithoutItsNote(t *testing.T) {
	numbers := report.Table{Columns: report.Columns("<case", "measured"),
		Rows: [][]report.Cell{{{Text: "UDRW"}, {Text: "1 GB/s", Class: "warn", Marks: []int{1}}}}}
	shown := screenNumbers(report.FirstScreen{Numbers: &numbers})[0].Table.Rows[0][1]
	assert.Equal(t, report.Cell{Text: "1 GB/s"}, shown)
	assert.Equal(t, "warn", numbers.Rows[0][1].Class, "the page keeps it")
}

package report

import (
	"regexp"
	"slices"
	"strconv"
	"strings"

	"dmgbench/internal/result/export"
	"dmgbench/internal/system/units"
)

// Form is a table in a form for other programs: the name of the form and the
// suffix of its files.
type Form struct{ Name, Suffix, Text string }

// Forms are the forms in which a table is handed out, each with the notes and
// the origin of the table.
func (t Table) Forms() []Form {
	out := []Form{{"TSV", ".tsv", t.tsv()}}
	t.Rows = Map(t.Rows, func(row []Cell) []Cell {
		return Map(row, func(c Cell) Cell {
			if c.Class == "uncomparable" && c.Text != "" {
				c.Text = "(" + c.Text + ")"
			}
			return c
		})
	})
	markdown := strings.TrimRight(Render("file.md", t), "\n") + "\n"
	return append([]Form{{"HTML", ".html", Render("table.html", t)}, {"Markdown", ".md", markdown}}, out...)
}

// tsv is the table for programs that calculate: a line for each row, a number in
// each cell of figures, and the notes of a row in its last cell. The notes of the
// table follow as rows of their first cell.
func (t Table) tsv() string {
	lines := make([][]string, 1+len(t.Rows))
	figure, unit := "", ""
	for i, c := range t.Columns {
		name := figure + ", " + c.Title
		if !c.Below {
			figure = c.FullHeading()
			name = figure
		}
		if c.Title != "interval" { // which has the unit of its figure
			unit = c.Unit
		}
		cells := Map(t.Rows, func(row []Cell) numbers {
			if c.Text || i == 0 {
				return numbers{wordsCell(row[i].Text)}
			}
			return numbersOf(row[i].Text, unit)
		})
		for part, suffix := range []string{"", ", low", ", high", ", unit"} {
			hasPart := slices.ContainsFunc(cells, func(n numbers) bool { return n[part] != "" })
			if !hasPart && (part > 0 || slices.ContainsFunc(cells, func(n numbers) bool { return n != numbers{} })) {
				continue
			}
			lines[0] = append(lines[0], wordsCell(name+suffix))
			for k, n := range cells {
				lines[k+1] = append(lines[k+1], n[part])
			}
		}
	}
	if slices.ContainsFunc(t.Notes, func(n Note) bool { return n.Mark > 0 }) {
		lines[0] = append(lines[0], "notes")
		for k, row := range t.Rows {
			lines[k+1] = append(lines[k+1], wordsCell(t.notesOf(row)))
		}
	}
	general := Where(t.Notes, func(n Note) bool { return n.Mark == 0 })
	for _, text := range append(Map(general, func(n Note) string { return n.Text }), t.Origin...) {
		line := make([]string, len(lines[0]))
		line[0] = wordsCell(text)
		lines = append(lines, line)
	}
	return strings.Join(Map(lines, func(line []string) string { return strings.Join(line, "\t") + "\n" }), "")
}

// notesOf are the footnotes of a row.
func (t Table) notesOf(row []Cell) string {
	var texts []string
	for _, mark := range FlatMap(row, func(c Cell) []int { return c.Marks }) {
		for _, n := range t.Notes {
			if n.Mark == mark {
				texts = AppendNew(texts, n.Text)
			}
		}
	}
	return strings.Join(texts, " ")
}

// wordsCell is text that is one cell for a spreadsheet, and no formula.
func wordsCell(s string) string { return export.PlainCell(strings.Join(strings.Fields(s), " ")) }

// numbers are the value of a cell, or words, the ends of its interval, and the
// unit of all three.
type numbers [4]string

// amount is how reports write a number with its unit.
const amount = `([-+−]?\d[\d\x{202F}]*(?:\.\d+)?)(?: ?([×%]|[/\p{L}][^\s()–;,]*))?`

var (
	valuePattern    = regexp.MustCompile(`^` + amount + `(?: \(|$)`)
	intervalPattern = regexp.MustCompile(`(?:^|\()` + amount + `(?:–| to )` + amount + `\)?$`)
	onlyDigits      = regexp.MustCompile(`\((?:no spread|within the last digit)\)$`) // the interval of a value
)

// numbersOf splits the text of a cell, in a unit that a heading has or else that
// of the text.
func numbersOf(text, unit string) numbers {
	figure := strings.TrimRight(text, " *†") // marks of a history
	value, ends := valuePattern.FindStringSubmatch(figure), intervalPattern.FindStringSubmatch(figure)
	isDigits := onlyDigits.MatchString(figure)
	if value == nil && ends == nil || strings.Contains(figure, "(") && (value == nil || ends == nil && !isDigits) {
		return numbers{wordsCell(text)}
	}
	value, ends = append(value, "", "", ""), append(ends, "", "", "", "", "")
	own := FirstOf(unit, value[2], ends[4], ends[2])
	out := numbers{inUnit(value[1], value[2], own), inUnit(ends[1], FirstOf(ends[2], ends[4]), own),
		inUnit(ends[3], ends[4], own), own}
	if isDigits {
		out[1], out[2] = out[0], out[0]
	}
	if own == unit || own == "×" {
		out[3] = ""
	}
	return out
}

// inUnit is a number in another unit, as programs read it.
func inUnit(text, unit, want string) string {
	text = strings.NewReplacer("−", "-", "+", "", "\u202F", "").Replace(text)
	from, to := factorOf(unit), factorOf(want)
	v, err := strconv.ParseFloat(text, 64)
	if err != nil || from == to || from == 0 || to == 0 {
		return text
	}
	return units.Significant(v*from/to, 3)
}

// factorOf is that of a unit in base units, 0 of an unknown one.
func factorOf(suffix string) float64 {
	for _, list := range scales {
		for _, s := range list {
			if s.Suffix == suffix {
				return s.Factor
			}
		}
	}
	return 0
}

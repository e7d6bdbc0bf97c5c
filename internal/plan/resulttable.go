package plan

import (
	"math"
	"slices"
	"strconv"
	"strings"
)

// Table is a table of results as an article prints it: a cell for each row and
// column. The lines of one side ask for a quantity, a coefficient or an outcome,
// those of the other only select, and a cell is what is asked of what both select.
type Table struct {
	Name    string
	Title   string
	Caption string // what has to be said under it, "" for nothing
	Unit    string // as printed, for all lines whose quantity it fits
	Digits  *int   // after the decimal point, for all lines; nil: three significant digits
	Columns []TableLine
	Rows    []TableLine
}

// TableLine is one row or column of a [Table].
type TableLine struct {
	// Title heads the line; "" is what the line selects, in words.
	Title string
	Group string // heading over neighbouring columns, or before neighbouring rows
	// Operand is the quantity with its selection; without a quantity it only
	// selects. Published takes the figure as printed, without a measurement. A
	// statistic may be on either side.
	Operand
	// Coefficient is that of the fit which the line of the other side names by Fit.
	Coefficient, Fit string
	// Step is the kind of the step whose outcome is asked for, of what the operand
	// selects; OK and Fail are the words for it, "" for "ok" and "fails".
	Step, OK, Fail string
	Unit           string // as printed, "" for that of the table
	Digits         *int   // after the decimal point, nil for those of the table
}

// Limits of a table: more is for an export.
const (
	maxLines = 100
	maxCells = 1000
)

// displayUnits are the units that tables can print, with their base units and
// how many of these they are.
var displayUnits = []struct {
	name, base string
	factor     float64
}{
	{"TB/s", "B/s", 1e12}, {"GB/s", "B/s", 1e9}, {"MB/s", "B/s", 1e6}, {"kB/s", "B/s", 1e3}, {"B/s", "B/s", 1},
	{"TiB/s", "B/s", 1 << 40}, {"GiB/s", "B/s", 1 << 30}, {"MiB/s", "B/s", 1 << 20}, {"KiB/s", "B/s", 1 << 10},
	{"TB", "B", 1e12}, {"GB", "B", 1e9}, {"MB", "B", 1e6}, {"kB", "B", 1e3}, {"B", "B", 1},
	{"TiB", "B", 1 << 40}, {"GiB", "B", 1 << 30}, {"MiB", "B", 1 << 20}, {"KiB", "B", 1 << 10},
	{"h", "s", 3600}, {"min", "s", 60}, {"s", "s", 1}, {"ms", "s", 1e-3}, {"µs", "s", 1e-6}, {"ns", "s", 1e-9},
	{"1", "1", 1}, {"%", "1", 0.01},
}

// DisplayUnit gives the base unit (B/s, B, s or 1) of a unit that tables print,
// and how many base units it is; ok is false for an unknown one.
func DisplayUnit(name string) (base string, factor float64, ok bool) {
	for _, u := range displayUnits {
		if u.name == name {
			return u.base, u.factor, true
		}
	}
	return "", math.NaN(), false
}

func displayUnitNames() []string {
	out := make([]string, len(displayUnits))
	for i, u := range displayUnits {
		out[i] = u.name
	}
	return out
}

// Heading is the title of the line, or what it selects where it has none.
func (l *TableLine) Heading() string {
	if l.Title != "" {
		return l.Title
	}
	var parts []string
	if l.Quantity != "" {
		parts = append(parts, string(l.Quantity))
	}
	for _, name := range []string{l.Coefficient, l.Step, l.Fit, l.Statistic} {
		if name != "" {
			parts = append(parts, name)
		}
	}
	for _, c := range l.Where {
		text := strings.Join(c.Values, " or ")
		switch {
		case c.Key == "baseline":
			text = "native folder"
		case c.Key == "format" && len(c.Values) == 1:
			text = FormatName(text)
		case c.Key == "encryption":
			text = strings.ReplaceAll(text, "none", "unencrypted")
		case choiceType(c.Key).bare || choiceType(c.Key) == looseType:
			text = c.Key + " " + text
		}
		parts = append(parts, text)
	}
	return strings.ReplaceAll(strings.Join(parts, ", "), "_", " ")
}

// Cell is what a cell holds: what one of the lines asks for, of what both select.
func Cell(row, column TableLine) TableLine {
	if !row.Asks() {
		row, column = column, row
	}
	out := row
	out.Where = slices.Concat(row.Where, column.Where).clone()
	out.Fit = column.Fit
	if out.Statistic == "" {
		out.Statistic = column.Statistic
	}
	return out
}

// Shown is how a cell is printed: the unit and digits of its line, else those of
// the table. Unit is "" and digits nil where the plan leaves it to the reader.
func (t *Table) Shown(row, column TableLine) (unit string, digits *int) {
	if !row.Asks() {
		row, column = column, row
	}
	unit, digits = row.Unit, row.Digits
	if row.Coefficient != "" { // its unit is that of its fit
		return unit, digits
	}
	if base, _, ok := DisplayUnit(t.Unit); unit == "" && ok && base == row.Quantity.Unit() {
		unit = t.Unit
	}
	if digits == nil {
		digits = t.Digits
	}
	if unit == "" && row.Quantity.Unit() != "1" {
		digits = nil // digits of an unknown unit say nothing
	}
	return unit, digits
}

// digitsKey is a number of digits after the decimal point; 0 differs from not given.
func digitsKey[T any](f func(*T) **int) key[T] {
	return scalarKey("digits", numberType(0, 9),
		func(t *T, s string) { n, _ := strconv.Atoi(s); *f(t) = &n },
		func(t *T) (string, bool) {
			if *f(t) == nil {
				return "", false
			}
			return strconv.Itoa(**f(t)), true
		})
}

var lineTable table[TableLine]

func init() {
	lineTable = table[TableLine]{name: "line", keys: append(valueKeys(), []key[TableLine]{
		textKey("title", lineText, func(l *TableLine) *string { return &l.Title }),
		textKey("group", lineText, func(l *TableLine) *string { return &l.Group }),
		{name: "where", typ: "selector",
			decode: func(r *reader, n *node, l *TableLine) {
				if l.Where == nil {
					l.Where = r.selector(n, "where", true)
				}
			},
			encode: func(l *TableLine) (string, bool) {
				return l.Where.toml(), !l.Asks() && (len(l.Where) > 0 || l.Fit == "" && l.Statistic == "")
			},
			json: func() map[string]any { return map[string]any{"$ref": "#/$defs/selector"} }},
		enumKey("statistic", func(l *TableLine) *string { return &l.Statistic }, statistics...),
		flagKey("published", func(l *TableLine) *bool { return &l.Published }),
		tableKey("on", theOnTable, func(l *TableLine) *On { return &l.On }, func(l *TableLine) bool { return l.On.isSet() }),
		enumKey("unit", func(l *TableLine) *string { return &l.Unit }, displayUnitNames()...),
		digitsKey(func(l *TableLine) **int { return &l.Digits }),
	}...), other: readLineQuantity, otherNames: func(*reader) []string { return quantityNames() }, finish: finishLine,
		otherJSON: func() (map[string]any, any) { return operandTable.otherJSON() }}
}

func readLineQuantity(r *reader, n *node, l *TableLine) bool {
	return readOperandQuantity(r, n, &l.Operand)
}

// lineTOML writes the quantity where its selection belongs: after the titles.
func lineTOML(l *TableLine) string {
	lines := lineTable.lines(l)
	if l.Quantity != "" {
		at := slices.IndexFunc(lines, func(s string) bool { return !strings.HasPrefix(s, "title = ") && !strings.HasPrefix(s, "group = ") })
		if at < 0 {
			at = len(lines)
		}
		lines = slices.Insert(lines, at, string(l.Quantity)+" = "+l.Where.toml())
	}
	return inlineOf(lines)
}

// linesKey is one side of a table.
func linesKey(name string, f func(*Table) *[]TableLine) key[Table] {
	return key[Table]{name: name, typ: "list of lines", required: true,
		decode: func(r *reader, n *node, t *Table) {
			switch {
			case n.kind != arrayNode:
				r.problem(n.off, name, "%s: want a list of lines, this is %s", name, n.kind).hintf("write it as [ { … }, { … } ]")
				return
			case len(n.items) == 0:
				r.problem(n.off, name, "%s: the list is empty", name)
			case len(n.items) > maxLines:
				r.problem(n.off, name, "%s: %d lines, more than %d", name, len(n.items), maxLines)
				return
			}
			*f(t) = make([]TableLine, len(n.items))
			for i, it := range n.items {
				lineTable.read(r, it, &(*f(t))[i])
			}
		},
		encode: func(t *Table) (string, bool) {
			out := "[\n"
			for i := range *f(t) {
				out += "  " + lineTOML(&(*f(t))[i]) + ",\n"
			}
			return out + "]", true
		},
		json: func() map[string]any {
			return map[string]any{"type": "array", "minItems": 1, "maxItems": maxLines,
				"items": map[string]any{"$ref": "#/$defs/line"}}
		}}
}

var tableTable = table[Table]{name: "[[table]]", keys: []key[Table]{
	textKey("name", nameText, func(t *Table) *string { return &t.Name }).must(),
	textKey("title", lineText, func(t *Table) *string { return &t.Title }).must(),
	textKey("caption", anyText, func(t *Table) *string { return &t.Caption }),
	enumKey("unit", func(t *Table) *string { return &t.Unit }, displayUnitNames()...),
	digitsKey(func(t *Table) **int { return &t.Digits }),
	linesKey("columns", func(t *Table) *[]TableLine { return &t.Columns }),
	linesKey("rows", func(t *Table) *[]TableLine { return &t.Rows }),
}}

package plan

import (
	"math"
	"slices"
	"strconv"
	"strings"
)

// Table is a table of results as an article prints it: a cell for each row and
// column. The lines of one side name quantities, those of the other only select,
// and a cell is the quantity of what both select.
type Table struct {
	Name    string
	Title   string
	Caption string // what has to be said under it, "" for nothing
	Unit    string // as printed, for all lines whose quantity it fits
	Digits  *int   // behind the point, for all lines; nil: three significant digits
	Columns []TableLine
	Rows    []TableLine
}

// TableLine is one row or column of a [Table].
type TableLine struct {
	// Title heads the line; "" is what the line selects, in words.
	Title string
	Group string // heading over neighbouring columns, or before neighbouring rows
	// Operand is the quantity with its selection; without a quantity it only
	// selects. Published takes the figure as printed and measures nothing.
	Operand
	Unit   string // as printed, "" for that of the table
	Digits *int   // behind the point, nil for those of the table
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
		parts = append(parts, strings.ReplaceAll(string(l.Quantity), "_", " "))
	}
	for _, c := range l.Where {
		text := strings.Join(c.Values, " or ")
		switch {
		case c.Key == "baseline":
			text = "native directory"
		case choiceType(c.Key).bare || choiceType(c.Key) == looseType:
			text = c.Key + " " + text
		}
		parts = append(parts, strings.ReplaceAll(text, "_", " "))
	}
	return strings.Join(parts, ", ")
}

// Cell is the operand of a cell: the quantity that one of the lines names, of
// what both select.
func Cell(row, column TableLine) Operand {
	if row.Quantity == "" {
		row, column = column, row
	}
	out := row.Operand
	out.Where = slices.Concat(row.Where, column.Where).clone()
	return out
}

// Shown is how a cell is printed: the unit and digits of its line, else those of
// the table. Unit is "" and digits nil where the plan leaves it to the reader.
func (t *Table) Shown(row, column TableLine) (unit string, digits *int) {
	if row.Quantity == "" {
		row, column = column, row
	}
	unit, digits = row.Unit, row.Digits
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

// digitsKey is a number of digits behind the point; none is not the same as not said.
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
	lineTable = table[TableLine]{name: "line", keys: []key[TableLine]{
		textKey("title", lineText, func(l *TableLine) *string { return &l.Title }),
		textKey("group", lineText, func(l *TableLine) *string { return &l.Group }),
		{name: "where", typ: "selector",
			decode: func(r *reader, n *node, l *TableLine) {
				if l.Where == nil {
					l.Where = r.selector(n, "where", true)
				}
			},
			encode: func(l *TableLine) (string, bool) { return l.Where.toml(), l.Quantity == "" },
			json:   func() map[string]any { return map[string]any{"$ref": "#/$defs/selector"} }},
		enumKey("statistic", func(l *TableLine) *string { return &l.Statistic }, statistics...),
		flagKey("published", func(l *TableLine) *bool { return &l.Published }),
		tableKey("on", theOnTable, func(l *TableLine) *On { return &l.On }, func(l *TableLine) bool { return l.On.said() }),
		enumKey("unit", func(l *TableLine) *string { return &l.Unit }, displayUnitNames()...),
		digitsKey(func(l *TableLine) **int { return &l.Digits }),
	}, other: readLineQuantity, otherNames: func(*reader) []string { return quantityNames() }, finish: finishLine,
		otherJSON: func() (map[string]any, any) { return operandTable.otherJSON() }}
}

func readLineQuantity(r *reader, n *node, l *TableLine) bool {
	return readOperandQuantity(r, n, &l.Operand)
}

func finishLine(r *reader, n *node, l *TableLine) {
	where := n.get("where")
	switch {
	case r.broken:
	case l.Quantity != "" && where != nil:
		r.problem(where.key, "where", "a line that names a quantity has its selection there").hintf("write %s = { … } and no where", l.Quantity)
	case l.Quantity == "" && where == nil && !slices.ContainsFunc(n.pairs, func(c *node) bool { return lineTable.key(c.name) == nil }):
		r.problem(n.off, n.name, "a line names neither a quantity nor a selection").hintf("write it as { write = { phase = \"new\" } } or { where = { format = \"UDSB\" } }")
	}
	for _, k := range []string{"statistic", "published", "on", "unit", "digits"} {
		if at := n.get(k); at != nil && l.Quantity == "" && !r.broken && where != nil {
			r.problem(at.key, k, "%s has no meaning in a line without a quantity", k)
		}
	}
	if l.On.said() && !l.Published && l.Quantity != "" {
		r.problem(n.get("on").key, "on", "on has no meaning without published = true").hintf("a measured figure is taken on the machine of the run")
	}
	if base, _, ok := DisplayUnit(l.Unit); ok && l.Quantity != "" && base != l.Quantity.Unit() {
		r.problem(n.get("unit").off, "unit", "%s is the unit of a %s, and %s is a %s", l.Unit, unitWord(base), l.Quantity, unitWord(l.Quantity.Unit()))
	}
}

// lineTOML writes the quantity where its selection belongs: behind the titles.
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
			return map[string]any{"type": "array", "minItems": 1, "maxItems": maxLines, "items": map[string]any{"$ref": "#/$defs/line"}}
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

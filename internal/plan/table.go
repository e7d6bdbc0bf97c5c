package plan

import (
	"cmp"
	"math"
	"reflect"
	"slices"
	"strings"
)

// Table is a table of results as an article prints it: a cell for each row and
// column. The lines of one side name a quantity, a coefficient or an outcome,
// those of the other side only select. A cell is the value that the one names
// of what both select.
type Table struct {
	Name  string `plan:"name name !"`
	Title string `plan:"title line !"`
	// Caption: printed under it
	Caption string `plan:"caption text"`
	// Unit: as printed, for all lines with a quantity that it fits
	Unit string `plan:"unit unit"`
	// Digits: after the decimal point, for all lines; nil: three significant
	// digits
	Digits  *int        `plan:"digits 0..9"`
	Columns []TableLine `plan:"columns min=1 max=100 !"`
	Rows    []TableLine `plan:"rows min=1 max=100 !"`
}

// TableLine is one row or column of a [Table].
type TableLine struct {
	// Coefficient is that of the fit which the line of the other side names by
	// Fit.
	Coefficient string
	Fit         string
	// Outcome is how the steps ended that the operand selects.
	Outcome
	// Title heads the line; "" is the selection in words.
	Title string
	// Group: heading over neighbouring columns, or before neighbouring rows
	Group string
	// Operand is the quantity with its selection; without a quantity it only
	// selects. Published takes the figure as printed, without a measurement. A
	// statistic may be on either side.
	Operand
	// Unit: as printed, "" for that of the table
	Unit string
	// Digits: after the decimal point, nil for those of the table
	Digits *int
}

// Outcome is the value of a [TableLine] that names how steps ended.
type Outcome struct {
	// Step is their kind; OK and Fail are the words for the outcome, "" for "ok"
	// and "fails".
	Step     string
	OK, Fail string
}

// maxCells bounds a table: more is for an export.
const maxCells = 1000

// displayUnit is a unit that tables can print: factor of its base units.
type displayUnit struct {
	name, base string
	factor     float64
}

var displayUnits = []displayUnit{
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
	if u := find(displayUnits, func(u *displayUnit) bool { return u.name == name }); u != nil {
		return u.base, u.factor, true
	}
	return "", math.NaN(), false
}

// HasValue reports whether the line names the value of its cells; another line
// only selects.
func (l *TableLine) HasValue() bool { return l.Quantity != "" || l.Coefficient != "" || l.Step != "" }

// Heading is the title of the line, or its selection where it has none.
func (l *TableLine) Heading() string {
	if l.Title != "" {
		return l.Title
	}
	var parts []string
	for _, name := range []string{string(l.Quantity), l.Coefficient, l.Step, l.Fit, l.Statistic} {
		if name != "" {
			parts = append(parts, name)
		}
	}
	for _, c := range l.Where {
		text := strings.Join(c.Values, " or ")
		switch t := valueKind(c.Key); {
		case c.Key == "baseline":
			text = "native folder"
		case c.Key == "format" && len(c.Values) == 1:
			text = FormatName(text)
		case c.Key == "encryption":
			text = strings.ReplaceAll(text, "none", "unencrypted")
		case t.node != stringNode || t == looseKind:
			text = c.Key + " " + text
		}
		parts = append(parts, text)
	}
	return strings.ReplaceAll(strings.Join(parts, ", "), "_", " ")
}

// Cell is the cell of a row and a column: the value that one of them names, of
// what both select.
func Cell(row, column TableLine) TableLine {
	if !row.HasValue() {
		row, column = column, row
	}
	out := row
	out.Where = slices.Concat(row.Where, column.Where)
	out.Fit = column.Fit
	out.Statistic = cmp.Or(out.Statistic, column.Statistic)
	return out
}

// DisplayFormat is how a cell is printed: the unit and digits of its line, else
// those of the table. Unit is "" and digits nil where the plan leaves them to
// the reader.
func (t *Table) DisplayFormat(row, column TableLine) (unit string, digits *int) {
	if !row.HasValue() {
		row = column
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
		digits = nil // digits of an unknown unit have no meaning
	}
	return unit, digits
}

// lineKeys are the keys of a line, between which those of quantities are.
var lineKeys = [2][]string{{"Coefficient coefficient coefficient", "Fit fit name", "Outcome outcome outcome",
	"Title title line", "Group group line"},
	{"Where where line-where", "Statistic statistic statistic", "Published published", "On on", "Unit unit unit",
		"Digits digits 0..9"}}

// addLines makes the table of a line.
func addLines() {
	t := addTable("line", finishLine)
	t.keys = slices.Concat(newKeys[TableLine](lineKeys[0]...),
		quantityKeys("selector", decodeSelection, encodeSelection), newKeys[TableLine](lineKeys[1]...))
}

// lineWhereCodec is the selection of a line that only selects: that of a
// quantity or an outcome belongs to it.
func lineWhereCodec() codec {
	out := selectorCodec(sampleKeys)
	decode := out.decode
	out.whole = true
	out.decode = func(r *reader, n *node, v reflect.Value) { decode(r, n, v.FieldByName("Where")) }
	out.encode = func(v reflect.Value) (string, bool) {
		l := v.Interface().(TableLine)
		return l.Where.toml(), !l.HasValue() && (len(l.Where) > 0 || l.Fit == "" && l.Statistic == "")
	}
	return out
}

// outcomeCodec is the value of the key outcome: its own keys, and the selection
// of the line.
func outcomeCodec() codec {
	keys := newKeys[TableLine]("Step do do !", "Where where", "OK ok line", "Fail fail line")
	t := &table{name: "outcome", keys: keys}
	return codec{typ: "table", whole: true, decode: t.read, json: t.schema, inner: t.keys,
		encode: func(v reflect.Value) (string, bool) {
			return inlineOf(t.lines(v)), v.FieldByName("Step").String() != ""
		}}
}

// finishLine checks that a line names one value or only selects.
func finishLine(r *reader, n *node, l *TableLine) {
	values := countTrue(l.Quantity != "", l.Coefficient != "", n.get("outcome") != nil)
	where := n.get("where")
	if values > 1 || values == 1 && where != nil || values == 0 && where == nil && l.Fit == "" && l.Statistic == "" {
		r.bad(n, "a line names one value with its selection, or only selects").
			hintf("write it as { write = { phase = \"new\" } } or { where = { format = \"UDSB\" } }")
	}
	if l.On != (On{}) && !l.Published {
		r.badKey(n.get("on"), "on has no meaning without published = true").
			hintf("a measured figure is taken on the machine of the run")
	}
}

// checkTables checks that one side of each table names values, and that the
// fits exist. The report gives the reason for each cell that has no figure.
func (c *checker) checkTables() {
	for i := range c.p.Tables {
		t, n := &c.p.Tables[i], c.root.at("table", i)
		if n.invalid {
			continue
		}
		if cells := len(t.Rows) * len(t.Columns); cells > maxCells {
			c.badKey(n, "the table %q has %d cells, more than %d", t.Name, cells, maxCells)
		}
		values := map[string]int{}
		for side, lines := range map[string][]TableLine{"rows": t.Rows, "columns": t.Columns} {
			for j := range lines {
				if lines[j].HasValue() {
					values[side]++
				}
				if lines[j].Fit != "" {
					c.findFit(n.at(side, j), lines[j].Fit)
				}
			}
		}
		rows, columns := values["rows"], values["columns"]
		if rows != len(t.Rows) && columns != len(t.Columns) || rows*columns > 0 {
			c.bad(n.at("columns"), "either all rows or all columns name a quantity, a coefficient or an outcome").
				hintf("the lines of the other side only select: { where = { … } }")
		}
	}
}

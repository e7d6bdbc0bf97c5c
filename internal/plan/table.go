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
	Coefficient string `plan:"coefficient coefficient"`
	Fit         string `plan:"fit name"`
	// Outcome is how the steps ended that the operand selects.
	Outcome `plan:"outcome outcome"`
	// Title heads the line; "" is the selection in words.
	Title string `plan:"title line"`
	// Group: heading over neighbouring columns, or before neighbouring rows
	Group string `plan:"group line"`
	// Operand is the quantity with its selection; without a quantity it only
	// selects. Published takes the figure as printed, without a measurement. A
	// statistic may be on either side.
	Operand `plan:"inline"`
	// Unit: as printed, "" for that of the table
	Unit string `plan:"unit unit"`
	// Digits: after the decimal point, nil for those of the table
	Digits *int `plan:"digits 0..9"`
}

// Outcome is the value of a [TableLine] that names how steps ended.
type Outcome struct {
	// Step is their kind; OK and Fail are the words for the outcome, "" for "ok"
	// and "fails".
	Step string `plan:"do do !"`
	OK   string `plan:"ok line"`
	Fail string `plan:"fail line"`
}

// maxCells bounds a table: more is for an export.
const maxCells = 1000

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

// displayUnitNames are the units that tables can print.
func displayUnitNames() []string {
	names := make([]string, len(displayUnits))
	for i, u := range displayUnits {
		names[i] = u.name
	}
	return names
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
	out.Where = slices.Concat(row.Where, column.Where).clone()
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

// addTableLines makes the table of a line. The selection of a quantity or an
// outcome belongs to it: where is a key of the other lines.
func addTableLines() {
	outcome := addTable[Outcome]("outcome", nil)
	where := newKey(reflect.TypeFor[Operand](), "Where", "where")
	codecs["outcome"] = func() codec { return outcomeCodec(outcome, where) }
	t := addTable("line", finishLine)
	at := slices.IndexFunc(t.keys, func(k key) bool { return k.names != nil })
	operand := t.keys[at].index
	where.index = append(slices.Clone(operand), where.index...)
	where.decode = func(r *reader, n *node, v reflect.Value) {
		if v.IsNil() { // else it is the selection of a quantity, see finishLine
			v.Set(reflect.ValueOf(r.selector(n, true)))
		}
	}
	t.keys = slices.DeleteFunc(t.keys, func(k key) bool { return k.name == "value" })
	t.keys = slices.Insert(t.keys, at+1, where)
	t.writes = func(v reflect.Value, name string, has bool) bool {
		l := v.Addr().Interface().(*TableLine)
		if name == "where" {
			return !l.HasValue() && (has || l.Fit == "" && l.Statistic == "")
		}
		return has
	}
}

// outcomeCodec is the value of the key outcome: its own keys, and the selection
// of the line.
func outcomeCodec(t *table, where key) codec {
	out := *t
	out.keys = slices.Insert(slices.Clone(t.keys), 1, where)
	for i := range out.keys {
		field := "Outcome"
		if i == 1 {
			field = "Operand"
		}
		f, _ := reflect.TypeFor[TableLine]().FieldByName(field)
		out.keys[i].index = append(slices.Clone(f.Index), out.keys[i].index...)
	}
	return codec{typ: "table", whole: true, decode: out.read, json: out.schema, inner: out.keys,
		encode: func(v reflect.Value) (string, bool) {
			return inlineOf(out.lines(v)), v.FieldByName("Step").String() != ""
		}}
}

// finishLine checks that a line names one value or only selects.
func finishLine(r *reader, n *node, l *TableLine) {
	values := 0
	for _, given := range []bool{l.Quantity != "", l.Coefficient != "", n.get("outcome") != nil} {
		if given {
			values++
		}
	}
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

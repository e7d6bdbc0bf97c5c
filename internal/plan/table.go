package plan

import (
	"cmp"
	"math"
	"slices"
	"strconv"
	"strings"
)

// Table is a table of results as an article prints it: a cell for each row and
// column. The lines of one side name a quantity, a coefficient or an outcome,
// those of the other side only select. A cell is the value that the one names
// of what both select.
type Table struct {
	Name  string
	Title string
	// Caption: printed under it
	Caption string
	// Unit: as printed, for all lines with a quantity that it fits
	Unit string
	// Digits: after the decimal point, for all lines; nil: three significant
	// digits
	Digits  *int
	Columns []TableLine
	Rows    []TableLine
}

// TableLine is one row or column of a [Table].
type TableLine struct {
	// Title heads the line; "" is the selection in words.
	Title string
	// Group: heading over neighbouring columns, or before neighbouring rows
	Group string
	// Operand is the quantity with its selection; without a quantity it only
	// selects. Published takes the figure as printed, without a measurement. A
	// statistic may be on either side.
	Operand
	// Coefficient is that of the fit which the line of the other side names by
	// Fit.
	Coefficient, Fit string
	// Step is the kind of step of an outcome, of the operand's selection; OK
	// and Fail are the words for it, "" for "ok" and "fails".
	Step, OK, Fail string
	// Unit: as printed, "" for that of the table
	Unit string
	// Digits: after the decimal point, nil for those of the table
	Digits *int
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

// displayUnitKind accepts the units that tables can print.
func displayUnitKind() kind[string] {
	names := make([]string, len(displayUnits))
	for i, u := range displayUnits {
		names[i] = u.name
	}
	return enum(names...)
}

// HasValue reports whether the line names the value of its cells; another line
// only selects.
func (l *TableLine) HasValue() bool { return l.Quantity != "" || l.Coefficient != "" || l.Step != "" }

// do is the kind of step that yields the value of the line, "" for a
// coefficient.
func (l *TableLine) do() string { return cmp.Or(l.Step, quantityIndex[l.Quantity].Do) }

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
		case t.node != stringNode || t == looseKind.scalar:
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

var digitsKind = number[int](0, 9)

// outcomeTable is the value of the key outcome.
var outcomeTable = table[TableLine]{name: "outcome"}

// outcomeKeys are the keys of an outcome.
func outcomeKeys() []key[TableLine] {
	return []key[TableLine]{
		field("do", enum(stepNames()...), func(l *TableLine) *string { return &l.Step }).must(),
		selectorField("where", true, func(l *TableLine) *Selector { return &l.Where }),
		field("ok", lineText, func(l *TableLine) *string { return &l.OK }),
		field("fail", lineText, func(l *TableLine) *string { return &l.Fail }),
	}
}

// lineTable gets keys and finish in init.
var lineTable = table[TableLine]{name: "line", open: quantityKeys(func(r *reader, n *node, l *TableLine) bool {
	return readOperandQuantity(r, n, &l.Operand)
}, "selector")}

// lineKeys are the keys of a line other than quantities. The selection of a
// quantity belongs to the quantity.
func lineKeys() []key[TableLine] {
	where := selectorField("where", true, func(l *TableLine) *Selector { return &l.Where })
	where.decode = func(r *reader, n *node, l *TableLine) {
		if l.Where == nil { // else it is the selection of a quantity
			l.Where = r.selector(n, "where", true)
		}
	}
	where.encode = func(l *TableLine) (string, bool) {
		return l.Where.toml(), !l.HasValue() && (len(l.Where) > 0 || l.Fit == "" && l.Statistic == "")
	}
	return []key[TableLine]{
		field("coefficient", enum(coefficientNames()...), func(l *TableLine) *string { return &l.Coefficient }),
		field("fit", nameText, func(l *TableLine) *string { return &l.Fit }),
		tableField("outcome", &outcomeTable, func(l *TableLine) *TableLine { return l },
			func(l *TableLine) bool { return l.Step != "" }),
		field("title", lineText, func(l *TableLine) *string { return &l.Title }),
		field("group", lineText, func(l *TableLine) *string { return &l.Group }),
		where,
		field("statistic", statistics, func(l *TableLine) *string { return &l.Statistic }),
		field("published", flagKind, func(l *TableLine) *bool { return &l.Published }),
		onField(func(l *TableLine) *On { return &l.On }),
		field("unit", displayUnitKind(), func(l *TableLine) *string { return &l.Unit }),
		optional("digits", digitsKind, func(l *TableLine) **int { return &l.Digits }),
	}
}

// toml writes the quantity after the titles.
func (l *TableLine) toml() string {
	lines := lineTable.lines(l)
	if l.Quantity != "" {
		at := 0
		for i, s := range lines {
			if strings.HasPrefix(s, "title = ") || strings.HasPrefix(s, "group = ") {
				at = i + 1
			}
		}
		lines = slices.Insert(lines, at, string(l.Quantity)+" = "+l.Where.toml())
	}
	return inlineOf(lines)
}

var tableTable = table[Table]{name: "[[table]]"}

// tableKeys are the keys of a table.
func tableKeys() []key[Table] {
	side := func(name string, at func(*Table) *[]TableLine) key[Table] {
		return list[Table, TableLine]{name: name, items: "lines", low: 1, high: maxLines, at: at, lines: true,
			read:  func(r *reader, n *node, l *TableLine) bool { lineTable.read(r, n, l); return true },
			write: (*TableLine).toml, json: func() map[string]any { return schemaReference("line") }}.key().must()
	}
	return []key[Table]{
		field("name", nameText, func(t *Table) *string { return &t.Name }).must(),
		field("title", lineText, func(t *Table) *string { return &t.Title }).must(),
		field("caption", anyText, func(t *Table) *string { return &t.Caption }),
		field("unit", displayUnitKind(), func(t *Table) *string { return &t.Unit }),
		optional("digits", digitsKind, func(t *Table) **int { return &t.Digits }),
		side("columns", func(t *Table) *[]TableLine { return &t.Columns }),
		side("rows", func(t *Table) *[]TableLine { return &t.Rows }),
	}
}

// lineKind is a kind of line by the key that names its value, with the keys
// that have no meaning in it.
type lineKind struct {
	// what: it is a line …
	what   string
	unused []string
	// where: why it has no where
	where string
}

var lineKinds = map[string]lineKind{
	"": {"without a quantity", []string{"published", "on", "unit", "digits"}, ""},
	"coefficient": {"that names a coefficient", []string{"fit", "statistic", "published", "on"},
		"a line that names a coefficient selects no cases: the fit of the other side does"},
	"outcome": {"that names an outcome", []string{"fit", "statistic", "published", "on", "unit", "digits"},
		"a line that names an outcome has its selection there"},
	"quantity": {"that names a quantity", []string{"fit"}, "a line that names a quantity has its selection there"},
}

// finishLine checks that a line names one value or only selects, and that it
// has no key without a meaning there.
func finishLine(r *reader, n *node, l *TableLine) {
	value := "" // kind of line
	for _, p := range n.pairs {
		kind := p.name
		if Quantity(p.name).Unit() != "" {
			kind = "quantity"
		} else if kind != "coefficient" && kind != "outcome" {
			continue
		}
		if value != "" && (kind != "quantity" ||
			value != "quantity") { // two quantities are reported where they are read
			r.badKey(p, "a line names one value; a second one is %q", p.name)
			return
		}
		value = kind
	}
	if r.broken {
		return
	}
	where, unknown := n.get("where"), func(c *node) bool { return lineTable.key(c.name) == nil }
	selects := where != nil || n.get("fit") != nil || n.get("statistic") != nil
	if value == "" && !selects && !slices.ContainsFunc(n.pairs, unknown) {
		r.bad(n, "a line names neither a quantity nor a selection").
			hintf("write it as { write = { phase = \"new\" } } or { where = { format = \"UDSB\" } }")
	}
	kind := lineKinds[value]
	if value != "" && where != nil {
		r.badKey(where, "%s", kind.where)
	}
	for _, name := range kind.unused {
		// A line without a value and a selection may have a misspelt quantity.
		if at := n.get(name); at != nil && (value != "" || where != nil || n.get("fit") != nil) {
			r.badKey(at, "%s has no meaning in a line %s", name, kind.what)
		}
	}
	if l.On != (On{}) && !l.Published && l.Quantity != "" {
		r.badKey(n.get("on"), "on has no meaning without published = true").
			hintf("a measured figure is taken on the machine of the run")
	}
	if base, _, ok := DisplayUnit(l.Unit); ok && l.Quantity != "" && base != l.Quantity.Unit() {
		r.bad(n.get("unit"), "%s is the unit of a %s, and %s is a %s", l.Unit, unitWords[base], l.Quantity,
			unitWords[l.Quantity.Unit()])
	}
}

// tableSide is one side of a table with its name in the plan.
type tableSide struct {
	name  string
	lines []TableLine
}

// sides are the lines that name values and the lines that select.
func (t *Table) sides() (values, selects tableSide) {
	values, selects = tableSide{"columns", t.Columns}, tableSide{"rows", t.Rows}
	if slices.ContainsFunc(t.Rows, func(l TableLine) bool { return l.HasValue() }) {
		values, selects = selects, values
	}
	return values, selects
}

// checkTables checks that one side of each table names values, that each cell
// is one figure, and that each line has a cell that can be filled.
func (c *checker) checkTables() {
	if c.invalid["table"] {
		return
	}
	c.checkUnique("table", "table", len(c.p.Tables), func(i int) string { return c.p.Tables[i].Name })
	for i := range c.p.Tables {
		t, n := &c.p.Tables[i], c.root.at("table", i)
		if cells := len(t.Rows) * len(t.Columns); cells > maxCells {
			c.problem(n.key, "table", "the table %q has %d cells, more than %d", t.Name, cells, maxCells)
			continue
		}
		c.checkHeadings(n.at("columns"), "column", t.Columns)
		c.checkHeadings(n.at("rows"), "row", t.Rows)
		if c.checkSides(n, t) && c.checkDisjoint(n, t) && c.checkTableFits(n, t) && c.whole {
			c.checkCells(n, t)
		}
	}
}

// checkHeadings reports two lines of a side with the same heading.
func (c *checker) checkHeadings(n *node, what string, lines []TableLine) {
	seen := map[string]bool{}
	for i := range lines {
		name := lines[i].Group + "\n" + lines[i].Heading()
		if seen[name] {
			c.problem(n.at(i).off, what, "two %ss have the heading %q", what, lines[i].Heading()).
				hintf("give them a title or group of their own")
		}
		seen[name] = true
	}
}

// checkSides checks that all lines of one side name values and none of the
// other.
func (c *checker) checkSides(n *node, t *Table) bool {
	if len(t.Rows) == 0 || len(t.Columns) == 0 { // reported where they are read
		return false
	}
	values, selects := t.sides()
	hasValue := func(l TableLine) bool { return l.HasValue() }
	bare := slices.IndexFunc(values.lines, func(l TableLine) bool { return !l.HasValue() })
	switch {
	case slices.ContainsFunc(selects.lines, hasValue):
		c.bad(n.at("rows"), "rows and columns both name quantities").
			hintf("one side names them, the other only selects: { where = { … } }")
	case !slices.ContainsFunc(values.lines, hasValue):
		c.bad(n.at("columns"), "neither rows nor columns name a quantity").
			hintf("write a column as { write = { phase = \"new\" } }")
	case bare >= 0:
		c.problem(n.at(values.name, bare).off, values.name, "this line names no quantity, others of the %s do",
			values.name)
	default:
		c.checkUnits(n, t, values)
		return true
	}
	return false
}

// checkUnits reports a unit of the table that fits none of its quantities, and
// digits of figures without a unit.
func (c *checker) checkUnits(n *node, t *Table, values tableSide) {
	base, _, fits := DisplayUnit(t.Unit)
	fits, digits := !fits, t.Digits == nil
	for i, l := range values.lines {
		own := l.Quantity.Unit()
		unit, _ := t.DisplayFormat(l, TableLine{})
		bare := unit == "" && own != "1"
		fits, digits = fits || own == base, digits || l.Quantity != "" && !bare
		if l.Quantity != "" && l.Digits != nil && bare {
			c.badKey(n.at(values.name, i, "digits"), "digits need a unit: %s is a %s", l.Quantity, unitWords[own])
		}
	}
	if !fits {
		c.bad(n.at("unit"), "%s is the unit of a %s, and the table has none", t.Unit, unitWords[base])
	}
	if !digits {
		c.badKey(n.at("digits"), "digits need a unit, and no line of the table has one")
	}
}

// checkDisjoint checks that no key is selected by a row and a column at once.
func (c *checker) checkDisjoint(n *node, t *Table) bool {
	for i := range t.Rows {
		for _, choice := range t.Rows[i].Where {
			for j := range t.Columns {
				if t.Columns[j].Where.names(choice.Key) {
					c.problem(n.at("rows", i).off, choice.Key, "this row and column %d both select by %q", j+1,
						choice.Key).hintf("a cell is the selection of both: one of them is enough")
					return false
				}
			}
		}
	}
	return true
}

// checkTableFits checks coefficients against the fits that the other side
// names.
func (c *checker) checkTableFits(n *node, t *Table) bool {
	values, selects := t.sides()
	before, units := len(c.found), map[int]string{}
	statistic := slices.IndexFunc(values.lines, func(l TableLine) bool { return l.Statistic != "" })
	coefficient := slices.IndexFunc(values.lines, func(l TableLine) bool { return l.Coefficient != "" })
	named := false
	for i, l := range selects.lines {
		at := n.at(selects.name, i)
		if s := at.get("statistic"); s != nil && statistic >= 0 {
			c.badKey(s, "line %d of the %s has a statistic, too", statistic+1, values.name).hintf("keep one of them")
		}
		if l.Fit == "" {
			continue
		}
		named = true
		if f := c.findFit(at, l.Fit); f != nil && coefficient < 0 {
			c.badKey(at.at("fit"), "fit has no meaning here: none of the %s names a coefficient", values.name)
		} else if f != nil {
			c.checkTableCoefficients(n, values, f, units)
		}
	}
	if coefficient >= 0 && !named {
		c.badKey(n.at(values.name, coefficient, "coefficient"), "none of the %s names a fit", selects.name).
			hintf("write { title = …, fit = \"NAME\" }")
	}
	return len(c.found) == before
}

// checkTableCoefficients checks that a fit has every coefficient of the table,
// in the unit of its line and of the fits before it, which units has by line.
func (c *checker) checkTableCoefficients(n *node, values tableSide, f *Fit, units map[int]string) {
	for i, l := range values.lines {
		if l.Coefficient == "" || coefficients[f.Model] == nil || f.Quantity == "" {
			continue
		}
		at := n.at(values.name, i)
		unit, _ := CoefficientUnit(*f, l.Coefficient)
		before := units[i]
		units[i] = unit
		base, _, ok := DisplayUnit(l.Unit)
		switch coefficient := at.at("coefficient"); {
		case !c.checkCoefficientName(coefficient, f, l.Coefficient):
		case unit == "":
			c.bad(coefficient, "the slope of a %s over bytes has no unit that a table prints",
				unitWords[f.Quantity.Unit()])
		case ok && base != unit:
			c.bad(at.at("unit"), "%s is the unit of a %s, and the %s of the fit %q is a %s", l.Unit, unitWords[base],
				l.Coefficient, f.Name, unitWords[unit])
		case before != "" && before != unit:
			c.bad(coefficient, "the %s of one fit is a %s, that of the fit %q a %s", l.Coefficient, unitWords[before],
				f.Name,
				unitWords[unit]).hintf("give the fits tables of their own")
		case !ok && l.Digits != nil && unit != "1":
			c.badKey(at.at("digits"), "digits need a unit: the %s of the fit %q is a %s", l.Coefficient, f.Name,
				unitWords[unit])
		}
	}
}

// checkCells checks that each cell is one figure, and that each line has at
// least one.
func (c *checker) checkCells(n *node, t *Table) {
	filled := map[string]bool{}
	figures := c.cellFigures(t)
	for i := range t.Rows {
		for j := range t.Columns {
			cell := Cell(t.Rows[i], t.Columns[j])
			var found []string
			if !cell.Published && cell.Coefficient == "" {
				found = figures(i, j, &cell)
			}
			if len(found) > 1 {
				c.problem(n.at("rows", i).off, "rows", "the cell of row %d and column %d is several figures: %s", i+1,
					j+1,
					listShort(found, 3)).hintf("select more: a cell is one figure")
				return
			}
			if len(found) == 1 || cell.Fit != "" && cell.Coefficient != "" || c.isPublished(cell.Operand) {
				filled["rows "+strconv.Itoa(i)], filled["columns "+strconv.Itoa(j)] = true, true
			}
		}
	}
	for _, side := range []tableSide{{"columns", t.Columns}, {"rows", t.Rows}} {
		for i := range side.lines {
			if !filled[side.name+" "+strconv.Itoa(i)] {
				c.problem(n.at(side.name, i).off, side.name, "no cell of this line is measured or published").
					hintf("compare it with [matrix] and the phases of the protocol")
			}
		}
	}
}

// cellFigures finds the figures that a cell could be. The cases that each line
// selects are looked up once.
func (c *checker) cellFigures(t *Table) func(i, j int, cell *TableLine) []string {
	selected := func(lines []TableLine) [][]bool {
		out := make([][]bool, len(lines))
		for i := range lines {
			pick, _ := lines[i].Where.split()
			for k := range c.cases {
				out[i] = append(out[i], pick.matchAll(c.cases[k].Value))
			}
		}
		return out
	}
	rows, columns := selected(t.Rows), selected(t.Columns)
	return func(i, j int, cell *TableLine) []string {
		var out []string
		native := cell.Where.names("baseline") || cell.Where.names("target")
		_, samples := cell.Where.split()
		do := cell.do()
		for k := range c.cases {
			one := &c.cases[k]
			if !rows[i][k] || !columns[j][k] || one.Baseline && !native {
				continue
			}
			walkCycles(one.Steps, 0, func(s *Step, cycles int) {
				if s.Do != do {
					return
				}
				for _, cycle := range selectedCycles(s, cycles, samples) {
					if name := one.ID + cycle; !slices.Contains(out, name) {
						out = append(out, name)
					}
				}
			})
		}
		return out
	}
}

// selectedCycles describes the figures that a selection takes of a step with a
// number of cycles, 0 for a step outside of a repeat. Of cycles that are not
// selected by number, at most maxLines are listed.
func selectedCycles(s *Step, cycles int, samples map[string][]string) []string {
	phase := ""
	if s.Phase != "" {
		phase = ", phase " + s.Phase
	}
	switch {
	case samples["phase"] != nil && !slices.Contains(samples["phase"], s.Phase):
		return nil
	case samples["cycle"] == nil && cycles == 0:
		return []string{phase}
	}
	var out []string
	for n := range min(cycles, maxLines) {
		if samples["cycle"] == nil {
			out = append(out, phase+", cycle "+strconv.Itoa(n+1))
		}
	}
	for _, text := range samples["cycle"] {
		if n := countKind.of(text); n >= 1 && n <= cycles {
			out = append(out, phase+", cycle "+text)
		}
	}
	return out
}

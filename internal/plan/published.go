package plan

import (
	"cmp"
	"fmt"
	"math"
	"reflect"
	"slices"
	"strings"
)

// quantityKeys are the keys named after quantities: value reads and writes what
// they have in a field. The table that has them describes them together.
func quantityKeys(field string, value func(q Quantity) codec) (out []key) {
	for _, q := range Quantities {
		c := value(q.Name)
		own := codec{typ: c.typ, hidden: true, whole: true, json: c.json}
		own.decode = func(r *reader, n *node, v reflect.Value) {
			have := v.FieldByName("Quantity")
			if have.String() != "" {
				r.badKey(n, "an operand has one quantity; %q is given already", have)
				return
			}
			have.SetString(n.name)
			c.decode(r, n, v.FieldByName(field))
		}
		own.encode = func(v reflect.Value) (string, bool) {
			if v.FieldByName("Quantity").String() != string(q.Name) {
				return "", false
			}
			text, _ := c.encode(v.FieldByName(field))
			return text, true
		}
		out = append(out, key{name: string(q.Name), codec: own})
	}
	return out
}

// publishedCodec is the list of tables [[published]]: each figure of a table
// becomes one Published. The canonical form writes neighbouring figures of one
// cell into one table.
func publishedCodec() codec {
	cell := tableCodec(tableOf[Published]())
	out := listCodec(cell, 0, 0)
	isFigure := func(p *node) bool { return Quantity(p.name).Unit() != "" }
	out.decode = func(r *reader, n *node, v reflect.Value) {
		for _, it := range r.list(n, cell, 0, 0) {
			before := r.reported
			figures := slices.DeleteFunc(slices.Clone(it.pairs), func(p *node) bool { return !isFigure(p) })
			if len(figures) == 0 {
				figures = []*node{nil}
			}
			for _, f := range figures {
				one := *it // with one of its figures
				isOther := func(p *node) bool { return p != f && isFigure(p) }
				one.pairs = slices.DeleteFunc(slices.Clone(it.pairs), isOther)
				v.Set(reflect.Append(v, reflect.Zero(v.Type().Elem())))
				cell.decode(r, &one, v.Index(v.Len()-1))
				r.publishedAt = append(r.publishedAt, it)
			}
			if figures[0] == nil && r.reported == before {
				r.badKey(it, "a published figure without a figure").hintf("add one, such as read = \"6.13 GB/s\"")
			}
			it.invalid = r.reported > before
		}
	}
	out.sections = func(_ string, v reflect.Value) (out []section) {
		have, head := map[Quantity]bool{}, []string(nil)
		for i := range v.Len() {
			q := v.Index(i).Interface().(Published).Quantity
			lines := tableOf[Published]().lines(v.Index(i))
			next := lines[:len(lines)-1] // the last is the figure
			if len(out) == 0 || have[q] || !slices.Equal(head, next) {
				out, have, head = append(out, section{header: "[[published]]", lines: next}), map[Quantity]bool{}, next
			}
			have[q] = true
			last := &out[len(out)-1]
			last.lines = append(last.lines, lines[len(lines)-1])
		}
		return out
	}
	return out
}

// figure reads a printed number; pure numbers may be written without quotes.
func (r *reader) figure(n *node, unit string) (Figure, bool) {
	text := n.text
	if unit == "1" && (n.kind == intNode || n.kind == floatNode) {
		text = numberToken(n)
	} else if n.kind != stringNode {
		r.bad(n, "%s: want a figure with its unit, such as \"6.13 GB/s\", this is %s", n.name, n.kind)
		return Figure{}, false
	}
	f, err := ParseFigure(text, unit)
	if err != nil {
		r.bad(n, "%s: %v", n.name, err)
	}
	return f, err == nil
}

// figureCodec is a figure in one of the units, the last that accepts it; a number
// without quotes is a pure number.
func figureCodec(accepted ...string) codec {
	return codec{typ: "figure",
		decode: func(r *reader, n *node, v reflect.Value) {
			unit := accepted[0]
			for _, u := range accepted[1:] {
				if _, err := ParseFigure(n.text, u); err == nil && n.kind == stringNode {
					unit = u
				}
			}
			if f, ok := r.figure(n, unit); ok {
				v.Set(reflect.ValueOf(f))
			}
		},
		encode: func(v reflect.Value) (string, bool) { return tomlString(v.Interface().(Figure).Text), true },
		json:   func() map[string]any { return schemaReference("figure") }}
}

// checkPublished checks the published figures.
func (c *checker) checkPublished() {
	seen := map[string]bool{}
	for i := range c.p.Published {
		f, n := &c.p.Published[i], c.publishedAt[i]
		if n.invalid {
			continue
		}
		if c.p.Source == nil && c.first("source", "") {
			c.badKey(n, "published figures, but no [source]").hintf("name where they were published")
		}
		id := fmt.Sprint(f.Quantity, f.Where, f.Statistic, f.On)
		if seen[id] {
			c.badKey(n.get(string(f.Quantity)), "this cell has a figure for %q already", f.Quantity).
				hintf("several figures of one cell need an \"on\" or \"statistic\" of their own")
		}
		seen[id] = true
		if !f.Unmeasured {
			c.checkQuantity(n.at("where"), f.Where, f.Quantity)
		}
	}
}

// finishOperand checks that an operand is either a quantity or a constant.
func finishOperand(r *reader, n *node, o *Operand) {
	switch {
	case slices.ContainsFunc(n.pairs, func(p *node) bool { return p.invalid }):
	case (o.Quantity == "") == (n.get("value") == nil):
		r.bad(n, "an operand is either a quantity or a value").
			hintf("write it as { write = { format = \"UDSB\" } } or { value = \"2 GB/s\" }")
	case o.On != On{} && !o.Published:
		r.badKey(n.get("on"), "on has no meaning without published = true")
	}
}

// toml is the operand as an inline table.
func (o *Operand) toml() string { return inlineOf(tableOf[Operand]().lines(reflect.ValueOf(o).Elem())) }

// unit is the unit of an operand, "" if it is not known.
func (o *Operand) unit() string {
	if o.Constant != nil {
		return o.Constant.Unit
	}
	return o.Quantity.Unit()
}

// checkOperand checks the selection of an operand and returns its measured
// steps.
func (c *checker) checkOperand(n *node, o *Operand) *reach {
	at := n.at(string(o.Quantity))
	switch {
	case o.Quantity == "":
	case !o.Published:
		return c.checkQuantity(at, o.Where, o.Quantity)
	case !c.isPublished(*o) && len(c.p.Changes) == 0:
		c.bad(at, "no published %q figure is %s", o.Quantity, cmp.Or(o.Where.String(), "given"))
	}
	return nil
}

// isPublished reports whether the plan has a published figure for the operand.
// A rate of streaming follows from its time.
func (c *checker) isPublished(o Operand) bool {
	return slices.ContainsFunc(c.p.Published, func(f Published) bool {
		isDerived := o.Quantity == "stream" && f.Quantity == "stream_time"
		return (f.Quantity == o.Quantity || isDerived) && f.Matches(&o, c.p.Source)
	})
}

// Matches reports whether the figure is of what an operand names, whatever the
// quantity: of its cell, and taken on all that it names.
func (f *Published) Matches(o *Operand, source *Source) bool {
	on, have := o.On, f.Origin(source)
	return o.Where.Covers(f.Where) && (on.Machine == "" || on.Machine == have.Machine) &&
		(on.OS == "" || on.OS == have.OS) && (on.Tool == "" || on.Tool == have.Tool) &&
		(on.Date.IsZero() || on.Date.Equal(have.Date))
}

// Origin is the machine, system, tool and day of the figure: its own, else the
// source's.
func (f *Published) Origin(source *Source) On {
	if source == nil {
		source = &Source{}
	}
	on := source.On
	return On{Machine: cmp.Or(f.On.Machine, on.Machine), OS: cmp.Or(f.On.OS, on.OS),
		Tool: cmp.Or(f.On.Tool, on.Tool), Date: cmp.Or(f.On.Date, on.Date, source.Date)}
}

// displayUnits are the units that tables can print.
var displayUnits = strings.Fields("TB/s GB/s MB/s kB/s B/s TiB/s GiB/s MiB/s KiB/s TB GB MB kB B TiB GiB MiB KiB " +
	"h min s ms µs ns /s 1 %")

// DisplayUnit gives the base unit (B/s, B, s, 1/s or 1) of a unit that tables print,
// and how many base units it is; ok is false for an unknown one.
func DisplayUnit(name string) (base string, factor float64, ok bool) {
	one := strings.TrimSuffix("1 "+name, " 1") // a pure number has no unit
	for _, base := range []string{"B/s", "B", "s", "1/s", "1"} {
		factor, err := parseValue(one, base)
		if err == nil && slices.Contains(displayUnits, name) {
			return base, factor, true
		}
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

// DisplayFormat is how the cells of a line with a value are printed: its unit and
// digits, else those of the table. Unit is "" and digits nil where the plan leaves them to
// the reader.
func (t *Table) DisplayFormat(l TableLine) (unit string, digits *int) {
	unit, digits = l.Unit, l.Digits
	if l.Coefficient != "" { // its unit is that of its fit
		return unit, digits
	}
	if base, _, ok := DisplayUnit(t.Unit); unit == "" && ok && base == l.Quantity.Unit() {
		unit = t.Unit
	}
	if digits == nil {
		digits = t.Digits
	}
	if unit == "" && l.Quantity.Unit() != "1" {
		digits = nil // digits of an unknown unit have no meaning
	}
	return unit, digits
}

// lineKeys are the keys of a line, between which those of quantities are.
var lineKeys = [2][]string{{"Coefficient coefficient coefficient", "Fit fit name", "Outcome outcome outcome",
	"Title title line", "Group group line"},
	{"Where where line-where", "Statistic statistic statistic", "Published published", "On on", "Unit unit unit",
		"Digits digits 0..9"}}

// lineWhereCodec is the selection of a line that only selects: that of a
// quantity or an outcome belongs to it.
func lineWhereCodec() codec {
	out := selectorCodec(allKeys)
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
		r.badKey(n.get("on"), "on has no meaning without published = true")
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
			c.bad(n.at("columns"), "either all rows or all columns name a quantity, a coefficient or an outcome")
		}
	}
}

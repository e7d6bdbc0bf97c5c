package plan

import (
	"cmp"
	"fmt"
	"slices"
	"time"
)

var onTable = table[On]{name: "on", keys: []key[On]{
	field("machine", anyText, func(o *On) *string { return &o.Machine }),
	field("os", anyText, func(o *On) *string { return &o.OS }),
	field("tool", anyText, func(o *On) *string { return &o.Tool }),
	field("date", dateKind, func(o *On) *time.Time { return &o.Date }),
}}

// onField is a key with the circumstances of a figure.
func onField[T any](at func(*T) *On) key[T] {
	return tableField("on", &onTable, at, func(t *T) bool { return *at(t) != On{} })
}

// includes reports whether everything that o names is the same in other.
func (o On) includes(other On) bool {
	return (o.Machine == "" || o.Machine == other.Machine) && (o.OS == "" || o.OS == other.OS) &&
		(o.Tool == "" || o.Tool == other.Tool) && (o.Date.IsZero() || o.Date.Equal(other.Date))
}

// statistics are the names of estimators of a figure.
var statistics = enum(append(slices.Clone(estimators), "minimum", "maximum")...)

// quantityKeys are open keys named after quantities.
func quantityKeys[T any](read func(*reader, *node, *T) bool, reference string) *openKeys[T] {
	return &openKeys[T]{names: quantityNames, read: read,
		json: func(string) map[string]any { return schemaReference(reference) }}
}

// publishedForm is one [[published]] table: each of its quantities becomes a
// Published.
type publishedForm struct {
	Published
	figures []Published
}

var publishedTable = table[publishedForm]{name: "[[published]]", keys: []key[publishedForm]{
	selectorField("where", true, func(p *publishedForm) *Selector { return &p.Where }),
	field("statistic", statistics, func(p *publishedForm) *string { return &p.Statistic }),
	onField(func(p *publishedForm) *On { return &p.On }),
	field("note", anyText, func(p *publishedForm) *string { return &p.Note }),
	field("unmeasured", flagKind, func(p *publishedForm) *bool { return &p.Unmeasured }),
}, open: quantityKeys(readPublished, "figure"), finish: finishPublished}

// readPublished reads one figure of a table; its cell is added by
// finishPublished, after all keys are read.
func readPublished(r *reader, n *node, p *publishedForm) bool {
	info, ok := Quantity(n.name).Info()
	if ok {
		if f, ok := r.figure(n, info.Unit); ok {
			p.figures = append(p.figures, Published{Quantity: info.Name, Value: f})
		}
	}
	return ok
}

// finishPublished gives every figure of the table the cell and its
// circumstances. Each gets a selector of its own, which scaling changes.
func finishPublished(r *reader, n *node, p *publishedForm) {
	named := slices.ContainsFunc(n.pairs, func(c *node) bool { return Quantity(c.name).Unit() != "" })
	if !named && !r.broken {
		r.problem(n.key, "published", "a published figure without a figure").
			hintf("add one, such as read = \"6.13 GB/s\"")
	}
	for i := range p.figures {
		f := p.Published
		f.Quantity, f.Value, f.Where = p.figures[i].Quantity, p.figures[i].Value, p.Where.clone()
		p.figures[i] = f
	}
}

// figure reads a printed number; pure numbers may be written without quotes.
func (r *reader) figure(n *node, unit string) (Figure, bool) {
	example := map[string]string{"B/s": `"6.13 GB/s"`, "s": `"49.32 s"`, "B": `"53.3 GB"`, "1": "6359"}[unit]
	text := n.text
	switch {
	case n.kind == stringNode:
	case n.kind != intNode && n.kind != floatNode:
		r.bad(n, "%s: want a figure such as %s, this is %s", n.name, example, n.kind)
		return Figure{}, false
	case unit != "1":
		r.bad(n, "%s: %s has no unit", n.name, n.text).hintf("write the value with its unit, in quotes: %s", example)
		return Figure{}, false
	default:
		text = numberToken(n)
	}
	f, err := ParseFigure(text, unit)
	if err != nil {
		r.invalidValue(n, n.name, splitWant(err))
	}
	return f, err == nil
}

// publishedField is the key published: each figure of its tables becomes one
// Published.
func publishedField() key[Plan] {
	k := tables("published", "tables", &publishedTable, func(*Plan) *[]publishedForm { return new([]publishedForm) }).
		key()
	k.decode = func(r *reader, n *node, p *Plan) {
		for _, it := range r.list(n, "published", "tables", 0, 0) {
			var form publishedForm
			publishedTable.read(r, it, &form)
			for range form.figures {
				r.publishedAt = append(r.publishedAt, it)
			}
			p.Published = append(p.Published, form.figures...)
		}
	}
	k.sections = publishedSections
	return k
}

// publishedSections writes neighbouring figures of one cell into one table.
func publishedSections(p *Plan) []section {
	var out []section
	have := map[Quantity]bool{}
	var head []string
	for _, f := range p.Published {
		next := publishedTable.lines(&publishedForm{Published: f})
		if len(out) == 0 || have[f.Quantity] || !slices.Equal(head, next) {
			out, have, head = append(out, section{"[[published]]", slices.Clone(next)}), map[Quantity]bool{}, next
		}
		have[f.Quantity] = true
		last := &out[len(out)-1]
		last.lines = append(last.lines, string(f.Quantity)+" = "+tomlString(f.Value.Text))
	}
	return out
}

// checkPublished checks the published figures.
func (c *checker) checkPublished() {
	seen := map[string]bool{}
	for i := range c.p.Published {
		f, n := &c.p.Published[i], c.publishedAt[i]
		if c.p.Source == nil && c.first("source", "") {
			c.problem(n.key, "published", "published figures, but no [source]").hintf("name where they were published")
		}
		id := fmt.Sprint(f.Quantity, f.Where, f.Statistic, f.On)
		if seen[id] {
			c.badKey(n.get(string(f.Quantity)), "this cell has a figure for %q already", f.Quantity).
				hintf("several figures of one cell need an \"on\" or \"statistic\" of their own")
		}
		seen[id] = true
		if !f.Unmeasured {
			c.checkSelected(n.at("where"), f.Where, f.Quantity)
		}
	}
}

var operandTable table[Operand]

// operandRows is the table of an operand. It is a function because its open
// keys are the registry of quantities.
func operandRows() table[Operand] {
	value := key[Operand]{name: "value", typ: "figure", decode: readConstant,
		encode: func(o *Operand) (string, bool) {
			if o.Constant == nil {
				return "", false
			}
			return tomlString(o.Constant.Text), true
		}, json: func() map[string]any { return schemaReference("figure") }}
	return table[Operand]{name: "operand", keys: []key[Operand]{value,
		field("statistic", statistics, func(o *Operand) *string { return &o.Statistic }),
		field("published", flagKind, func(o *Operand) *bool { return &o.Published }),
		onField(func(o *Operand) *On { return &o.On }),
	}, open: quantityKeys(readOperandQuantity, "selector"), finish: finishOperand}
}

// readConstant reads a constant, in the first unit that accepts it; a number
// without quotes is a pure number.
func readConstant(r *reader, n *node, o *Operand) {
	unit := "1"
	for _, u := range []string{"B", "s", "B/s"} {
		if _, err := ParseFigure(n.text, u); err == nil && n.kind == stringNode {
			unit = u
		}
	}
	if f, ok := r.figure(n, unit); ok {
		o.Constant = &f
	}
}

// readOperandQuantity reads QUANTITY = selector.
func readOperandQuantity(r *reader, n *node, o *Operand) bool {
	info, ok := Quantity(n.name).Info()
	switch {
	case !ok:
	case o.Quantity != "":
		r.badKey(n, "an operand has one quantity; %q is given already", o.Quantity)
	default:
		o.Quantity, o.Where = info.Name, r.selector(n, n.name, true)
	}
	return ok
}

// finishOperand checks that an operand is either a quantity or a constant.
func finishOperand(r *reader, n *node, o *Operand) {
	value := n.get("value")
	unknown := slices.ContainsFunc(n.pairs, func(c *node) bool { return operandTable.key(c.name) == nil })
	switch {
	case r.broken:
	case o.Quantity == "" && value == nil && !unknown:
		r.bad(n, "an operand names no quantity").
			hintf("write it as { write = { format = \"UDSB\" } } or { value = \"2 GB/s\" }")
	case o.Quantity != "" && value != nil:
		r.badKey(value, "an operand is a quantity or a value, not both")
	case o.On != On{} && !o.Published:
		r.badKey(n.get("on"), "on has no meaning without published = true").
			hintf("a measured operand is taken on the machine of the run")
	}
}

// toml writes the quantity first, then the other keys.
func (o *Operand) toml() string {
	lines := operandTable.lines(o)
	if o.Quantity != "" {
		lines = slices.Insert(lines, 0, string(o.Quantity)+" = "+o.Where.toml())
	}
	return inlineOf(lines)
}

// operandField is a key with an operand.
func operandField[T any](name string, at func(*T) *Operand, written func(*T) bool) key[T] {
	return key[T]{name: name, typ: "operand",
		decode: func(r *reader, n *node, dst *T) { operandTable.read(r, n, at(dst)) },
		encode: func(src *T) (string, bool) { return at(src).toml(), written(src) },
		json:   func() map[string]any { return schemaReference("operand") }}
}

// unit is the unit of an operand, "" if it is not known.
func (o *Operand) unit() string {
	if o.Constant != nil {
		return o.Constant.Unit
	}
	return o.Quantity.Unit()
}

// checkOperand checks the quantity and the selection of an operand.
func (c *checker) checkOperand(n *node, o *Operand) {
	at := n.at(string(o.Quantity))
	switch {
	case o.Quantity == "":
	case !o.Published:
		c.checkSelected(at, o.Where, o.Quantity)
	case !c.isPublished(*o) && len(c.p.Changes) == 0:
		c.problem(at.off, n.name, "no published %q figure is %s", o.Quantity, cmp.Or(o.Where.String(), "given"))
	}
}

// isPublished reports whether the plan has a published figure for the operand.
func (c *checker) isPublished(o Operand) bool {
	return slices.ContainsFunc(c.p.Published, func(f Published) bool { return o.matches(&f, c.p.Source) })
}

// matches reports whether a published figure is one that the operand names. A
// figure that leaves a key open applies to all its values, except that figures
// of the native folder, of one file size and of one set apply only where they
// are named. A rate of streaming follows from its time.
func (o *Operand) matches(f *Published, source *Source) bool {
	derived := o.Quantity == "stream" && f.Quantity == "stream_time"
	if f.Quantity != o.Quantity && !derived || !o.On.includes(f.takenOn(source)) {
		return false
	}
	for _, want := range o.Where {
		if have := f.Where.find(want.Key); have != nil && !slices.ContainsFunc(have.Values, want.matches) {
			return false
		}
	}
	for _, key := range []string{"file_size", "set"} {
		if o.Where.names(key) != f.Where.names(key) {
			return false
		}
	}
	return o.Where.isNative() == f.Where.isNative()
}

// takenOn is the machine, system and tool of a figure: its own, else those of
// the source.
func (f *Published) takenOn(source *Source) On {
	on := f.On
	if source == nil {
		return on
	}
	on.Machine, on.OS = cmp.Or(on.Machine, source.On.Machine), cmp.Or(on.OS, source.On.OS)
	on.Tool, on.Date = cmp.Or(on.Tool, source.On.Tool), cmp.Or(on.Date, source.On.Date, source.Date)
	return on
}

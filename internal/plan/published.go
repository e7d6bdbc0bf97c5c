package plan

import (
	"cmp"
	"fmt"
	"reflect"
	"slices"
)

// includes reports whether everything that o names is the same in other.
func (o On) includes(other On) bool {
	return (o.Machine == "" || o.Machine == other.Machine) && (o.OS == "" || o.OS == other.OS) &&
		(o.Tool == "" || o.Tool == other.Tool) && (o.Date.IsZero() || o.Date.Equal(other.Date))
}

// quantityCodec is a key named after a quantity. Its value is the selection of
// an operand.
func quantityCodec() codec {
	return codec{typ: "selector", whole: true, names: quantityNames(),
		decode: func(r *reader, n *node, v reflect.Value) {
			o := v.Addr().Interface().(*Operand)
			if o.Quantity != "" {
				r.badKey(n, "an operand has one quantity; %q is given already", o.Quantity)
				return
			}
			o.Quantity, o.Where = Quantity(n.name), r.selector(n, true)
		},
		encode: func(v reflect.Value) (string, bool) {
			o := v.Interface().(Operand)
			return string(o.Quantity) + " = " + o.Where.toml(), o.Quantity != ""
		},
		json: func() map[string]any { return schemaReference("selector") }}
}

// publishedForm is one [[published]] table: each of its quantities becomes a
// Published.
type publishedForm struct {
	Published `plan:"inline"`
	figures   []Published
}

// publishedFigures is a key named after a quantity. Its value is a printed
// figure.
func publishedFigures() key {
	return key{codec: codec{typ: "figure", names: quantityNames(),
		decode: func(r *reader, n *node, v reflect.Value) {
			p := v.Addr().Interface().(*publishedForm)
			if f, ok := r.figure(n, Quantity(n.name).Unit()); ok {
				p.figures = append(p.figures, Published{Quantity: Quantity(n.name), Value: f})
			}
		},
		encode: func(reflect.Value) (string, bool) { return "", false },
		json:   func() map[string]any { return schemaReference("figure") }}}
}

// finishPublished gives every figure of the table the cell and its
// circumstances. Each gets a selector of its own, which scaling changes.
func finishPublished(r *reader, n *node, p *publishedForm) {
	if !slices.ContainsFunc(n.pairs, func(c *node) bool { return Quantity(c.name).Unit() != "" }) {
		r.badKey(n, "a published figure without a figure").hintf("add one, such as read = \"6.13 GB/s\"")
	}
	for i, figure := range p.figures {
		p.figures[i] = p.Published
		p.figures[i].Quantity, p.figures[i].Value, p.figures[i].Where = figure.Quantity, figure.Value, p.Where.clone()
	}
}

// publishedCodec is the list of tables [[published]]: each figure of a table
// becomes one Published.
func publishedCodec() codec {
	form := listCodec(tableCodec(reflect.TypeFor[publishedForm]()), 0, 0)
	out := form
	out.decode = func(r *reader, n *node, v reflect.Value) {
		var forms []publishedForm
		form.decode(r, n, reflect.ValueOf(&forms).Elem())
		for i, f := range forms {
			for _, figure := range f.figures {
				r.publishedAt = append(r.publishedAt, n.items[i])
				v.Set(reflect.Append(v, reflect.ValueOf(figure)))
			}
		}
	}
	out.sections = publishedSections
	return out
}

// publishedSections writes neighbouring figures of one cell into one table.
func publishedSections(_ string, v reflect.Value) []section {
	var out []section
	have := map[Quantity]bool{}
	var head []string
	for i := range v.Len() {
		f := v.Index(i).Interface().(Published)
		next := tables[reflect.TypeFor[Published]()].lines(v.Index(i))
		if len(out) == 0 || have[f.Quantity] || !slices.Equal(head, next) {
			out, have, head = append(out, section{"[[published]]", slices.Clone(next)}), map[Quantity]bool{}, next
		}
		have[f.Quantity] = true
		last := &out[len(out)-1]
		last.lines = append(last.lines, string(f.Quantity)+" = "+tomlString(f.Value.Text))
	}
	return out
}

// figure reads a printed number; pure numbers may be written without quotes.
func (r *reader) figure(n *node, unit string) (Figure, bool) {
	text := n.text
	if unit == "1" && (n.kind == intNode || n.kind == floatNode) {
		text = numberToken(n)
	} else if n.kind != stringNode {
		example := map[string]string{"B/s": `"6.13 GB/s"`, "s": `"49.32 s"`, "B": `"53.3 GB"`, "1": "6359"}[unit]
		r.bad(n, "%s: want a figure with its unit, this is %s", n.name, n.kind).
			hintf("write the value with its unit, in quotes: %s", example)
		return Figure{}, false
	}
	f, err := ParseFigure(text, unit)
	if err != nil {
		r.invalidValue(n, splitWant(err))
	}
	return f, err == nil
}

// figureCodec is a constant, in the first unit that accepts it; a number without
// quotes is a pure number.
func figureCodec() codec {
	return codec{typ: "figure",
		decode: func(r *reader, n *node, v reflect.Value) {
			unit := "1"
			for _, u := range []string{"B", "s", "B/s"} {
				if _, err := ParseFigure(n.text, u); err == nil && n.kind == stringNode {
					unit = u
				}
			}
			if f, ok := r.figure(n, unit); ok {
				v.Set(reflect.ValueOf(&f))
			}
		},
		encode: func(v reflect.Value) (string, bool) {
			if v.IsNil() {
				return "", false
			}
			return tomlString(v.Interface().(*Figure).Text), true
		},
		json: func() map[string]any { return schemaReference("figure") }}
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
	value := n.get("value")
	known := func(c *node) bool { return tables[reflect.TypeFor[Operand]()].key(c.name) != nil }
	switch {
	case (o.Quantity == "") == (value == nil) && !slices.ContainsFunc(n.pairs, func(c *node) bool { return !known(c) }):
		r.bad(n, "an operand is either a quantity or a value").
			hintf("write it as { write = { format = \"UDSB\" } } or { value = \"2 GB/s\" }")
	case o.On != On{} && !o.Published:
		r.badKey(n.get("on"), "on has no meaning without published = true").
			hintf("a measured operand is taken on the machine of the run")
	}
}

// toml is the operand as an inline table.
func (o *Operand) toml() string {
	return inlineOf(tables[reflect.TypeFor[Operand]()].lines(reflect.ValueOf(o).Elem()))
}

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

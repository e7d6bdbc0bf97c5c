package plan

import (
	"cmp"
	"fmt"
	"reflect"
	"slices"
)

// quantityKeys are the keys named after quantities. The table that has them
// describes them together.
func quantityKeys(typ string, decode func(r *reader, n *node, v reflect.Value),
	encode func(v reflect.Value) string) (out []key) {
	for _, q := range Quantities {
		out = append(out, key{name: string(q.Name), codec: codec{typ: typ, hidden: true, whole: true, decode: decode,
			encode: func(v reflect.Value) (string, bool) {
				if v.FieldByName("Quantity").String() != string(q.Name) {
					return "", false
				}
				return encode(v), true
			},
			json: func() map[string]any { return schemaReference(typ) }}})
	}
	return out
}

// decodeSelection reads a quantity of an operand: its selection.
func decodeSelection(r *reader, n *node, v reflect.Value) {
	if have := v.FieldByName("Quantity"); have.String() != "" {
		r.badKey(n, "an operand has one quantity; %q is given already", have)
		return
	}
	v.FieldByName("Quantity").SetString(n.name)
	v.FieldByName("Where").Set(reflect.ValueOf(r.choices(n, sampleKeys)))
}

func encodeSelection(v reflect.Value) string {
	return v.FieldByName("Where").Interface().(Selector).toml()
}

// decodeFigure reads a quantity of [[published]]: a figure.
func decodeFigure(r *reader, n *node, _ reflect.Value) {
	if f, ok := r.figure(n, Quantity(n.name).Unit()); ok {
		r.figures = append(r.figures, Published{Quantity: Quantity(n.name), Value: f})
	}
}

func encodeFigure(v reflect.Value) string { return tomlString(v.Interface().(Published).Value.Text) }

// publishedCodec is the list of tables [[published]]: each figure of a table
// becomes one Published. The canonical form writes neighbouring figures of one
// cell into one table.
func publishedCodec() codec {
	cell := tableCodec(tableOf[Published]())
	out := listCodec(cell, 0, 0)
	out.decode = func(r *reader, n *node, v reflect.Value) {
		for _, it := range r.list(n, cell.plural, 0, 0) {
			var circumstances Published
			before := len(r.found)
			r.figures = nil
			cell.decode(r, it, reflect.ValueOf(&circumstances).Elem())
			if len(r.figures) == 0 && len(r.found) == before {
				r.badKey(it, "a published figure without a figure").hintf("add one, such as read = \"6.13 GB/s\"")
			}
			it.invalid = len(r.found) > before
			for _, one := range r.figures {
				quantity, value := one.Quantity, one.Value
				one = circumstances
				one.Quantity, one.Value = quantity, value
				r.publishedAt = append(r.publishedAt, it)
				v.Set(reflect.Append(v, reflect.ValueOf(one)))
			}
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
		r.badKey(n.get("on"), "on has no meaning without published = true").
			hintf("a measured operand is taken on the machine of the run")
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

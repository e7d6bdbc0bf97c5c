package plan

import (
	"slices"
	"strings"
)

// coefficients are those of each model of a fit: y = intercept + slope x; y =
// factor x^exponent; two lines that meet at break.
var coefficients = map[string][]string{
	"line":      {"intercept", "slope", "r2"},
	"power":     {"factor", "exponent", "r2"},
	"two-lines": {"intercept", "slope", "break", "intercept_2", "slope_2", "r2"},
}

// coefficientNames are the coefficients of all models, each once.
func coefficientNames() []string {
	var out []string
	for _, model := range []string{"line", "power", "two-lines"} {
		for _, name := range coefficients[model] {
			if !slices.Contains(out, name) {
				out = append(out, name)
			}
		}
	}
	return out
}

// figureUnit is the unit that a coefficient of a quantity is published in.
func figureUnit(coefficient string, q Quantity) string {
	if slices.Contains([]string{"intercept", "slope", "factor", "intercept_2", "slope_2"}, coefficient) {
		return q.Unit()
	}
	return "1"
}

// bytesAxes are the axes with values in bytes, numericAxes all that a fit can
// run along except manual axes.
var (
	bytesAxes   = []string{"band_size", "block", "size", "file_size"}
	numericAxes = append([]string{"threads", "workers", "level", "cycle"}, bytesAxes...)
)

// CoefficientUnit is the base unit (B/s, B, s or 1) in which a table prints a
// coefficient of a fit; "" if there is none. The slope of a time over bytes is
// printed as a rate, which is its inverse.
func CoefficientUnit(f Fit, name string) (unit string, inverse bool) {
	bytes, slope := slices.Contains(bytesAxes, f.Along), strings.HasPrefix(name, "slope")
	switch {
	case name == "r2" || name == "exponent" || name == "break" && !bytes:
		return "1", false
	case name == "break":
		return "B", false
	case slope && bytes && f.Quantity.Unit() == "s":
		return "B/s", true
	case slope && bytes:
		return "", false
	}
	return f.Quantity.Unit(), false
}

var fitTable = table[Fit]{name: "[[fit]]", finish: finishFit}

// fitKeys are the keys of a fit.
func fitKeys() []key[Fit] {
	return []key[Fit]{
		field("name", nameText, func(f *Fit) *string { return &f.Name }).must(),
		field("quantity", enum(quantityNames()...), func(f *Fit) *string { return (*string)(&f.Quantity) }).must(),
		selectorField("where", true, func(f *Fit) *Selector { return &f.Where }),
		field("along", nameText, func(f *Fit) *string { return &f.Along }).must(),
		listField("points", looseKind, 0, func(f *Fit) *[]string { return &f.Points }),
		field("model", enum("line", "power", "two-lines"), func(f *Fit) *string { return &f.Model }).must(),
		listField("predict", looseKind, 0, func(f *Fit) *[]string { return &f.Predict }),
		{name: "published", typ: "table",
			decode: func(*reader, *node, *Fit) {}, // by finishFit, which knows model and quantity
			encode: func(f *Fit) (string, bool) {
				var lines []string
				for _, c := range f.Published {
					lines = append(lines, c.Name+" = "+tomlString(c.Text))
				}
				return inlineOf(lines), len(lines) > 0
			},
			json: func() map[string]any {
				return map[string]any{"type": "object", "additionalProperties": schemaReference("figure")}
			}},
	}
}

// finishFit reads the published coefficients, for which model and quantity have
// to be known.
func finishFit(r *reader, n *node, f *Fit) {
	published := n.get("published")
	if published == nil || f.Model == "" || f.Quantity == "" {
		return
	}
	if published.kind != tableNode {
		r.bad(published, "published: want a table such as { slope = 0.264 }, this is %s", published.kind)
	}
	for _, p := range published.pairs {
		if !slices.Contains(coefficients[f.Model], p.name) {
			r.badKey(p, "the model %s has no coefficient %q", f.Model, p.name).
				hintf("its coefficients: %s", strings.Join(coefficients[f.Model], ", "))
		} else if v, ok := r.figure(p, figureUnit(p.name, f.Quantity)); ok && v.Kind != "is" {
			r.bad(p, "%s: a coefficient is one number", p.name)
		} else if ok {
			f.Published = append(f.Published, Coefficient{Name: p.name, Value: v.Low, Text: v.Text})
		}
	}
}

// findFit is the fit of that name, or nil with a finding at n.
func (c *checker) findFit(n *node, name string) *Fit {
	var names []string
	for i := range c.p.Fits {
		if c.p.Fits[i].Name == name {
			return &c.p.Fits[i]
		}
		names = append(names, c.p.Fits[i].Name)
	}
	if name != "" {
		c.hintName(c.problem(n.at("fit").off, "fit", "there is no fit %q", name), name, "fits", names)
	}
	return nil
}

// checkFits checks the names, axes and selections of fits.
func (c *checker) checkFits() {
	c.checkUnique("fit", "fit", len(c.p.Fits), func(i int) string { return c.p.Fits[i].Name })
	for i := range c.p.Fits {
		f, n := &c.p.Fits[i], c.root.at("fit", i)
		along := n.at("along")
		manual := slices.ContainsFunc(c.p.Manual, func(m Manual) bool { return m.Name == f.Along })
		switch {
		case f.Along == "":
		case !manual && !slices.Contains(numericAxes, f.Along):
			c.hintName(c.bad(along, "a fit cannot run along %q", f.Along), f.Along, "numeric axes", numericAxes)
		case c.whole:
			c.checkAxis(along, f.Along, f.Points, n.at("points"), "file_size", "cycle")
		}
		c.checkSelected(n.at("where"), f.Where, f.Quantity)
	}
}

// checkCoefficient checks a claim about a coefficient.
func (c *checker) checkCoefficient(detail *node, a *Assert, _ string) {
	f := c.findFit(detail, a.Fit)
	if f == nil || !c.checkCoefficientName(detail.at("name"), f, a.Coefficient) {
		return
	}
	c.readBound(detail.at("bound"), a, figureUnit(a.Coefficient, f.Quantity))
}

// checkCoefficientName checks that the model of a fit has the coefficient.
func (c *checker) checkCoefficientName(n *node, f *Fit, name string) bool {
	have := coefficients[f.Model]
	if have == nil || name == "" || slices.Contains(have, name) {
		return true
	}
	c.hintName(c.bad(n, "the model %s of the fit %q has no coefficient %q", f.Model, f.Name, name), name,
		"coefficients",
		have)
	return false
}

// checkPrediction checks a claim about a value that a fit predicts.
func (c *checker) checkPrediction(detail *node, a *Assert, unit string) {
	f := c.findFit(detail, a.Fit)
	if f == nil {
		return
	}
	for _, v := range a.At {
		if !(Choice{f.Along, f.Predict}).matches(v) {
			c.bad(detail.at("at"), "the fit %q has no prediction at %s", f.Name, v).
				hintf("its predict: [%s]", strings.Join(f.Predict, ", "))
		}
	}
	if len(a.At) != 1 {
		c.bad(detail.at("at"), "a prediction is for one value")
	}
	if own := f.Quantity.Unit(); unit != "" && own != "" && unit != own {
		c.bad(detail, "the fit %q predicts a %s, the operand is a %s", f.Name, unitWords[own], unitWords[unit])
	}
	c.readBound(detail.at("bound"), a, "1")
}

var relationTable = table[Relation]{name: "[[relation]]"}

// relationKeys are the keys of a relation.
func relationKeys() []key[Relation] {
	always := func(*Relation) bool { return true }
	return []key[Relation]{
		field("name", nameText, func(l *Relation) *string { return &l.Name }).must(),
		field("says", anyText, func(l *Relation) *string { return &l.Says }),
		operandField("x", func(l *Relation) *Operand { return &l.X }, always).must(),
		operandField("y", func(l *Relation) *Operand { return &l.Y }, always).must(),
		selectorList("over", 2, true, func(l *Relation) *[]Selector { return &l.Over }).key().must(),
	}
}

// checkRelations checks that each point of a relation selects cases with both
// quantities, and no point occurs twice.
func (c *checker) checkRelations() {
	c.checkUnique("relation", "relation", len(c.p.Relations), func(i int) string { return c.p.Relations[i].Name })
	for i := range c.p.Relations {
		l := &c.p.Relations[i]
		for j, s := range l.Over {
			at := c.root.at("relation", i, "over", j)
			if slices.ContainsFunc(l.Over[:j], func(other Selector) bool { return other.String() == s.String() }) {
				c.problem(at.off, "over", "over: the point %s is given twice", s)
			}
			for _, o := range []Operand{l.X, l.Y} {
				o.Where = slices.Concat(o.Where, s)
				c.checkOperand(at, &o)
			}
		}
	}
}

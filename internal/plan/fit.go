package plan

import (
	"reflect"
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

// coefficientNames are the coefficients of all models.
var coefficientNames = []string{"intercept", "slope", "r2", "factor", "exponent", "break", "intercept_2", "slope_2"}

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

// coefficientsCodec writes coefficients as printed. They are read by finishFit,
// which knows model and quantity.
func coefficientsCodec() codec {
	return codec{typ: "table", decode: func(*reader, *node, reflect.Value) {},
		encode: func(v reflect.Value) (string, bool) {
			var lines []string
			for _, c := range v.Interface().([]Coefficient) {
				lines = append(lines, c.Name+" = "+tomlString(c.Text))
			}
			return inlineOf(lines), len(lines) > 0
		},
		json: func() map[string]any {
			return map[string]any{"type": "object", "additionalProperties": schemaReference("figure")}
		}}
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
	f := find(c.p.Fits, func(f *Fit) bool { return f.Name == name })
	if f == nil && c.isValid("fit") {
		c.bad(n.at("fit"), "there is no fit %q", name).
			suggest(name, "fits", namesOf(c.p.Fits, func(f *Fit) string { return f.Name }))
	}
	return f
}

// checkFits checks the axes and selections of fits.
func (c *checker) checkFits() {
	for i := range c.p.Fits {
		f, n := &c.p.Fits[i], c.root.at("fit", i)
		if n.invalid {
			continue
		}
		if !slices.Contains(c.manual, f.Along) && !slices.Contains(numericAxes, f.Along) {
			c.bad(n.at("along"), "a fit cannot run along %q", f.Along).suggest(f.Along, "numeric axes", numericAxes)
		} else if r := c.checkQuantity(n.at("where"), f.Where, f.Quantity); r != nil {
			c.checkAlong(n.at("along"), f.Where, r, f.Along, f.Points)
		}
	}
}

// checkCoefficient checks a claim about a coefficient.
func (c *checker) checkCoefficient(detail *node, a *Assert, _ string) {
	f := c.findFit(detail, a.Fit)
	if f == nil {
		return
	}
	if have := coefficients[f.Model]; !slices.Contains(have, a.Coefficient) {
		c.bad(detail.at("name"), "the model %s of the fit %q has no coefficient %q", f.Model, f.Name, a.Coefficient).
			suggest(a.Coefficient, "coefficients", have)
	}
	c.readBound(detail, a, figureUnit(a.Coefficient, f.Quantity))
}

// checkPrediction checks a claim about a value that a fit predicts.
func (c *checker) checkPrediction(detail *node, a *Assert, unit string) {
	f := c.findFit(detail, a.Fit)
	if f == nil {
		return
	}
	if len(a.At) != 1 || !(Choice{f.Along, f.Predict}).Matches(a.At[0]) {
		c.bad(detail.at("at"), "the fit %q has no prediction at %s", f.Name, strings.Join(a.At, ", ")).
			hintf("one of its predict: [%s]", strings.Join(f.Predict, ", "))
	}
	if own := f.Quantity.Unit(); unit != own {
		c.bad(detail, "the fit %q predicts a %s, the operand is a %s", f.Name, unitWords[own], unitWords[unit])
	}
	c.readBound(detail, a, "1")
}

// checkRelations checks that each point of a relation selects cases with both
// quantities.
func (c *checker) checkRelations() {
	for i := range c.p.Relations {
		l := &c.p.Relations[i]
		for j, s := range l.Over {
			at := c.root.at("relation", i, "over", j)
			if c.root.at("relation", i).invalid {
				continue
			}
			for _, o := range []Operand{l.X, l.Y} {
				o.Where = slices.Concat(o.Where, s)
				c.checkOperand(at, &o)
			}
		}
	}
}

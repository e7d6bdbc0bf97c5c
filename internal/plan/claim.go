package plan

import (
	"cmp"
	"fmt"
	"reflect"
	"regexp"
	"slices"
	"strings"
)

// test is one row of the registry of tests inside claims: a row of "tests" in
// keys.md.
type test struct {
	name string
	// operands: those that it takes, in Markdown
	operands string
	key      key
}

// tests is the registry, in the order of keys.md.
var tests []test

// addTests fills the registry and makes the table of a test: its operands and
// one key of the registry. The canonical form has the key of the test's kind
// alone.
func addTests() {
	own := addTable("test", finishAssert)
	for _, row := range docRows["tests"] {
		inner := &table{name: row[0], keys: newKeys[Assert](splitKeys(row[2])...)}
		c := codec{typ: "table", whole: true, inner: inner.keys, json: inner.schema, decode: inner.read}
		text := func(v reflect.Value) string { return inlineOf(inner.lines(v)) }
		if only := inner.keys[0]; only.name == inner.name {
			c.typ, c.inner, c.json = only.typ, nil, only.json
			c.decode = func(r *reader, n *node, v reflect.Value) { only.read(r, n, v) }
			text = func(v reflect.Value) string { out, _ := only.encode(only.in(v)); return out }
		}
		c.encode = func(v reflect.Value) (string, bool) {
			if v.FieldByName("Kind").String() != inner.name {
				return "", false
			}
			return text(v), true
		}
		t := test{row[0], row[1], key{name: row[0], codec: c}}
		tests, own.keys = append(tests, t), append(own.keys, t.key)
	}
	for i := range own.keys { // TestDoc describes them
		own.keys[i].hidden = true
	}
}

// takes reports whether the test takes an operand.
func (t *test) takes(operand string) bool { return strings.Contains(t.operands, operand) }

// finishAssert checks that there is exactly one test with the operands that it
// takes.
func finishAssert(r *reader, n *node, a *Assert) {
	given := 0
	for _, t := range tests {
		if n.get(t.name) != nil {
			given, a.Kind = given+1, t.name
		}
	}
	if given != 1 {
		r.badKey(n, "a claim needs exactly one test, this has %d", given).
			hintf("tests: %s", strings.Join(namesOf(tests, func(t *test) string { return t.name }), ", "))
		return
	}
	t := find(tests, func(t *test) bool { return t.name == a.Kind })
	for _, name := range []string{"left", "right"} {
		if t.takes(name) != (n.get(name) != nil) {
			r.badKey(n.get(t.name), "the test %q takes %s", t.name, cmp.Or(t.operands, "no operands"))
		}
	}
	if detail := n.get(t.name); t.name == "trend" && a.Direction == "constant" && detail.get("within") == nil {
		r.bad(detail, "a constant trend needs \"within\"")
	}
}

var otherCharacters = regexp.MustCompile(`[^a-z0-9]+`)

// finishClaim fills in scope and id, a stable name made from the sentence, and
// checks the test.
func finishClaim(r *reader, n *node, c *Claim) {
	if c.Scope == "" {
		c.Scope = map[string]string{"author": "apple", "us": "any"}[c.By]
	}
	name := strings.Trim(otherCharacters.ReplaceAllString(strings.ToLower(c.Says), "-"), "-")
	c.ID = cmp.Or(c.ID, strings.TrimRight(name[:min(len(name), 60)], "-"), "claim")
	finishAssert(r, n, &c.Assert)
}

// checkClaims checks every claim. A claim without an id of its own gets a
// number where its sentence occurs twice.
func (c *checker) checkClaims() {
	seen := map[string]int{}
	for i := range c.p.Claims {
		k, n := &c.p.Claims[i], c.root.at("claim", i)
		if seen[k.ID]++; seen[k.ID] > 1 {
			if id := n.get("id"); id != nil {
				c.bad(id, "the id %q is given twice", k.ID)
			} else {
				k.ID = fmt.Sprintf("%s-%d", k.ID, seen[k.ID])
			}
		}
		if k.By == "author" && c.p.Source == nil && c.first("claim source", "") {
			c.bad(n.at("by"), "an author's claim, but no [source]").hintf("name the author there, or write by = \"us\"")
		}
		if n.invalid {
			continue
		}
		c.checkAssert(n, &k.Assert)
		if k.By != "author" || len(c.p.Changes) > 0 || !c.isValid("published") {
			continue
		}
		// The reading of the claim cannot be checked against figures that the
		// source does not print. Outcomes and fits have no figures.
		operands, all := k.Assert.operands()
		if all && len(operands) > 0 && !slices.ContainsFunc(operands, c.isPublished) {
			c.refuse(n.at("by"), "an author's claim, and none of its operands has a published figure").
				hintf("add the figure as [[published]], with unmeasured = true if the plan has no such case, " +
					"or write by = \"us\"")
		}
	}
	c.checkContradictions()
}

// checkContradictions warns of two claims with the same operands and bounds
// without a common value.
func (c *checker) checkContradictions() {
	for i := range c.p.Claims {
		for j := range i {
			a, b := &c.p.Claims[j].Assert, &c.p.Claims[i].Assert
			isSame := a.Kind == b.Kind && a.Left.toml() == b.Left.toml() && a.Right.toml() == b.Right.toml() &&
				slices.Contains([]string{"ratio", "difference", "bound"}, a.Kind)
			low, high := max(a.Bound.Low, b.Bound.Low), min(a.Bound.High, b.Bound.High)
			isShared := a.Bound.Holds(low) && b.Bound.Holds(low) || a.Bound.Holds(high) && b.Bound.Holds(high)
			if isSame && (low > high || low == high && !isShared) {
				c.warn(c.root.at("claim", i).key, "claim", "claims %d and %d cannot both hold", j+1, i+1).
					hintf("the values of %q and %q have none in common", a.Bound.Text, b.Bound.Text)
			}
		}
	}
}

// checkAssert checks one test.
func (c *checker) checkAssert(n *node, a *Assert) {
	detail, unit := n.at(a.Kind), ""
	check := func(at *node, o *Operand) {
		mine := o.unit()
		if unit != "" && mine != "" && mine != unit {
			c.bad(at, "the operands of a test have different units: %s and %s", unitWords[unit], unitWords[mine])
		}
		unit = cmp.Or(unit, mine)
		if r := c.checkOperand(at, o); r != nil {
			if mean := r.unnamedMean(o.Where, a.Along); mean != nil {
				c.refuseMean(at.at(string(o.Quantity)), mean)
			}
			if a.Along != "" {
				c.checkAlong(detail.at("over").at("along"), o.Where, r, Choice{a.Along, a.At})
			}
		}
	}
	t := find(tests, func(t *test) bool { return t.name == a.Kind })
	if t.takes("left") {
		check(n.at("left"), &a.Left)
	}
	if t.takes("right") {
		check(n.at("right"), &a.Right)
		if a.Left.toml() == a.Right.toml() {
			c.refuse(n.at("right"), "left and right are the same: the test cannot fail")
		}
	}
	for i := range a.Of {
		check(n.at(a.Kind, "of", i), &a.Of[i])
	}
	switch a.Kind {
	case "ratio", "spread":
		c.readBound(detail, a, "1")
	case "difference", "bound":
		c.readBound(detail, a, unit)
	case "coefficient":
		c.checkCoefficient(detail, a)
	case "prediction":
		c.checkPrediction(detail, a, unit)
	case "outcome":
		c.checkSelected(detail.at("where"), a.Where, a.Step, "the outcome")
	case "all", "any":
		for i := range a.Parts {
			c.checkAssert(detail.at(i), &a.Parts[i])
		}
	}
}

// readBound reads the bound of a test in its unit.
func (c *checker) readBound(detail *node, a *Assert, unit string) {
	b, err := ParseBound(a.Bound.Text, unit)
	if err != nil {
		at := detail.at("bound")
		c.bad(at, "%s: %v", at.name, err)
	}
	a.Bound = b
}

// operands are what a test and its parts compare; all is false if it compares
// something else, too.
func (a *Assert) operands() (out []Operand, all bool) {
	all = !slices.Contains([]string{"outcome", "coefficient", "prediction"}, a.Kind)
	for _, o := range slices.Concat([]Operand{a.Left, a.Right}, a.Of) {
		if o.Quantity != "" {
			out = append(out, o)
		}
	}
	for i := range a.Parts {
		operands, known := a.Parts[i].operands()
		out, all = append(out, operands...), all && known
	}
	return out, all
}

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
		if keyNamed(c.manual, f.Along) == nil && !slices.Contains(numericAxes, f.Along) {
			c.bad(n.at("along"), "a fit cannot run along %q", f.Along).suggest(f.Along, "numeric axes", numericAxes)
		} else if r := c.checkQuantity(n.at("where"), f.Where, f.Quantity); r != nil {
			c.checkAlong(n.at("along"), f.Where, r, Choice{f.Along, f.Points})
		}
	}
}

// checkCoefficient checks a claim about a coefficient.
func (c *checker) checkCoefficient(detail *node, a *Assert) {
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

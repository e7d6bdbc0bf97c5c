package plan

import (
	"cmp"
	"fmt"
	"reflect"
	"regexp"
	"slices"
	"strings"
)

// test is one row of the registry of tests inside claims; keys.md has an
// example of each.
type test struct {
	name string
	// left, right: takes these operands
	left, right bool
	// keys: of its table: a field of Assert and its tag, see key; a test with
	// one key of its own name has no table
	keys []string
	// check: check reports what is wrong with the test, and reads its bound,
	// which is in the unit of the operands; nil: operands alone are checked.
	check func(c *checker, detail *node, a *Assert, unit string)
	key   key
}

// tests is the registry, see testRows.
var tests []test

// testRows lists every kind of test. It is a function because the functions of
// its rows refer to the registry.
func testRows() []test {
	const along, within, fit, bound = "Along along name !", "Within within always", "Fit fit name !",
		"Bound bound bound !"
	const at, of = "At at values !", "Of of min=2 !"
	inUnit := func(c *checker, detail *node, a *Assert, unit string) { c.readBound(detail, a, unit) }
	pure := func(c *checker, detail *node, a *Assert, _ string) { c.readBound(detail, a, "1") }
	parts := func(c *checker, detail *node, a *Assert, _ string) {
		for i := range a.Parts {
			c.checkAssert(detail.at(i), &a.Parts[i])
		}
	}
	return []test{
		{name: "ratio", left: true, right: true, keys: []string{"Bound ratio bound"}, check: pure},
		{name: "difference", left: true, right: true, keys: []string{"Bound difference bound"}, check: inUnit},
		{name: "equal", left: true, right: true, keys: []string{within + " !"}},
		{name: "bound", left: true, keys: []string{"Bound bound bound"}, check: inUnit},
		{name: "order", keys: []string{of, "Direction is falling|rising =falling", within}},
		{name: "rank", left: true, keys: []string{of, "Rank is 1..10000 !"}},
		{name: "extreme", left: true, keys: []string{along, "Direction is largest|smallest !", at}},
		{name: "trend", left: true, keys: []string{along, "Direction is rising|falling|constant !", within}},
		{name: "spread", left: true, keys: []string{"Along over name !", bound}, check: pure},
		{name: "coefficient", keys: []string{fit, "Coefficient name name !", bound},
			check: (*checker).checkCoefficient},
		{name: "prediction", left: true, keys: []string{fit, at, bound}, check: (*checker).checkPrediction},
		{name: "outcome", keys: []string{"Step do do !", "Where where", "Outcome is ok|fail !"},
			check: func(c *checker, detail *node, a *Assert, _ string) {
				c.checkSelected(detail.at("where"), a.Where, a.Step, "the outcome")
			}},
		{name: "all", keys: []string{"Parts all min=1"}, check: parts},
		{name: "any", keys: []string{"Parts any min=1"}, check: parts},
	}
}

// addTests makes the table of a test: its operands and one key of the registry.
// The canonical form has the key of the test's kind alone.
func addTests() {
	own := addTable("test", finishAssert)
	tests = testRows()
	for i := range tests {
		row := &tests[i]
		inner := &table{name: row.name, keys: newKeys[Assert](row.keys...)}
		c := codec{typ: "table", whole: true, inner: inner.keys, json: inner.schema, decode: inner.read}
		text := func(v reflect.Value) string { return inlineOf(inner.lines(v)) }
		if only := inner.keys[0]; only.name == row.name {
			c.typ, c.inner, c.json = only.typ, nil, only.json
			c.decode = func(r *reader, n *node, v reflect.Value) { only.read(r, n, v) }
			text = func(v reflect.Value) string { out, _ := only.encode(only.in(v)); return out }
		}
		c.encode = func(v reflect.Value) (string, bool) {
			return text(v), v.FieldByName("Kind").String() == row.name
		}
		row.key = key{name: row.name, codec: c}
		own.keys = append(own.keys, row.key)
	}
}

// findTest is the row of that name; an unknown name gives the zero row.
func findTest(name string) test {
	if t := find(tests, func(t *test) bool { return t.name == name }); t != nil {
		return *t
	}
	return test{}
}

// boundCodec is a bound in a unit that is not known yet: the check of the test
// reads it.
func boundCodec() codec {
	out := kindCodec(textKind("a bound such as \">= 2\" or \"0.9 to 1.1\"", isPrintable))
	decode, encode := out.decode, out.encode
	out.typ = "bound"
	out.decode = func(r *reader, n *node, v reflect.Value) { decode(r, n, v.FieldByName("Text")) }
	out.encode = func(v reflect.Value) (string, bool) { return encode(v.FieldByName("Text")) }
	return out
}

// oneOrManyCodec is a list of values of an axis; one value may be written
// without brackets.
func oneOrManyCodec() codec {
	out := listCodec(kindCodec(looseKind), 1, 0)
	decode := out.decode
	out.typ = "list of values, or one"
	out.decode = func(r *reader, n *node, v reflect.Value) {
		if n.kind != arrayNode {
			n = &node{kind: arrayNode, off: n.off, name: n.name, items: []*node{n}}
		}
		decode(r, n, v)
	}
	out.json = func() map[string]any { return oneOrMany(looseKind.json) }
	return out
}

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
	t := findTest(a.Kind)
	for name, taken := range map[string]bool{"left": t.left, "right": t.right} {
		v := n.get(name)
		if taken && v == nil {
			r.badKey(n.get(t.name), "the test %q needs the operand %q", t.name, name)
		}
		if !taken && v != nil {
			r.badKey(v, "the test %q takes no operand %q", t.name, name)
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
		if !n.invalid {
			c.checkAssert(n, &k.Assert)
			c.checkUnpublished(n, k)
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
			c.checkAverages(at, o, r, a.Along)
			if a.Along != "" {
				c.checkAlong(detail.at("over").at("along"), o.Where, r, a.Along, a.At)
			}
		}
	}
	t := findTest(a.Kind)
	if t.left {
		check(n.at("left"), &a.Left)
	}
	if t.right {
		check(n.at("right"), &a.Right)
		if a.Left.toml() == a.Right.toml() {
			c.refuse(n.at("right"), "left and right are the same: the test cannot fail").
				hintf("name on each side what is compared")
		}
	}
	for i := range a.Of {
		check(n.at(a.Kind, "of", i), &a.Of[i])
	}
	if t.check != nil {
		t.check(c, detail, a, unit)
	}
}

// readBound reads the bound of a test in its unit.
func (c *checker) readBound(detail *node, a *Assert, unit string) {
	b, err := ParseBound(a.Bound.Text, unit)
	if err != nil {
		c.invalidValue(detail.at("bound"), splitWant(err))
	}
	a.Bound = b
}

// checkUnpublished refuses an author's claim about quantities for which the
// source prints no figure: the reading of the claim cannot be checked against
// the figures. Outcomes and fits have no figures.
func (c *checker) checkUnpublished(n *node, k *Claim) {
	if k.By != "author" || len(c.p.Changes) > 0 || !c.isValid("published") {
		return
	}
	if operands, all := k.Assert.operands(); all && len(operands) > 0 && !slices.ContainsFunc(operands, c.isPublished) {
		c.refuse(n.at("by"), "an author's claim, and none of its operands has a published figure").
			hintf("add the figure as [[published]], with unmeasured = true if the plan has no such case, " +
				"or write by = \"us\"")
	}
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

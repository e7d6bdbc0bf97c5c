package plan

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"dmgbench/internal/units"
)

// test is one row of the registry of tests inside claims.
type test struct {
	key[Assert]
	// left, right: takes these operands
	left, right bool
	// check: check reports what is wrong with the test and reads its bound,
	// which is in the unit of the operands.
	check func(c *checker, detail *node, a *Assert, unit string)
	// example: for docs/plan-language.md
	example string
}

// tests is the registry, see testRows.
var tests []test

// testRows lists every kind of test. It is a function because the rows refer to
// other registries.
func testRows() []test {
	within := field("within", shareKind, func(a *Assert) *units.Share { return &a.Within }).always()
	along := field("along", nameText, func(a *Assert) *string { return &a.Along }).must()
	fit := field("fit", nameText, func(a *Assert) *string { return &a.Fit }).must()
	of := list[Assert, Operand]{name: "of", items: "operands", low: 2, at: func(a *Assert) *[]Operand { return &a.Of },
		read:  func(r *reader, n *node, o *Operand) bool { operandTable.read(r, n, o); return true },
		write: (*Operand).toml, json: func() map[string]any { return schemaReference("operand") }}.key().must()
	direction := func(words ...string) key[Assert] {
		is := field("is", enum(words...), func(a *Assert) *string { return &a.Direction })
		is.typ = "see meaning"
		return is
	}
	inUnit := func(c *checker, detail *node, a *Assert, unit string) { c.readBound(detail, a, unit) }
	pure := func(c *checker, detail *node, a *Assert, _ string) { c.readBound(detail.at("bound"), a, "1") }
	parts := func(name string) key[Assert] {
		return list[Assert, Assert]{name: name, items: "tests", low: 1, lines: true, write: assertTable.inline,
			at:   func(a *Assert) *[]Assert { return &a.Parts },
			read: func(r *reader, n *node, a *Assert) bool { assertTable.read(r, n, a); return true },
			json: func() map[string]any { return schemaReference("test") }}.key()
	}
	return []test{
		{boundField("ratio"), true, true,
			func(c *checker, detail *node, a *Assert, _ string) { c.readBound(detail, a, "1") },
			`ratio = ">= 2"`},
		{boundField("difference"), true, true, inUnit, `difference = "0.5 GB/s to 1.5 GB/s"`},
		{testTable("equal", within.must()), true, true, nil, `equal = { within = "10%" }`},
		{boundField("bound"), true, false, inUnit, `bound = "> 6 GB/s"`},
		{testTable("order", of, direction("falling", "rising").or(`"falling"`), within), false, false, nil,
			`order = { of = [{ write = { format = "UDRW" } }, { write = { format = "UDSB" } }], ` +
				`is = "falling", within = "0%" }`},
		{testTable("rank", of, field("is", number[int](1, 10000), func(a *Assert) *int { return &a.Rank }).must()),
			true, false,
			(*checker).checkRank,
			`rank = { of = [{ read = { format = "UDRW" } }, { read = { format = "ASIF" } }], is = 1 }`},
		{testTable("extreme", along, direction("largest", "smallest").must(), atField()), true, false, nil,
			`extreme = { along = "band_size", is = "largest", at = ["15.4 MiB"] }`},
		{testTable("trend", along, direction("rising", "falling", "constant").must(), within), true, false, nil,
			`trend = { along = "cycle", is = "constant", within = "10%" }`},
		{testTable("spread", along.named("over"), boundField("bound").must()), true, false, pure,
			`spread = { over = "phase", bound = "<= 5%" }`},
		{testTable("coefficient", fit, field("name", nameText, func(a *Assert) *string { return &a.Coefficient }).
			must(),
			boundField("bound").must()), false, false, (*checker).checkCoefficient,
			`coefficient = { fit = "host-rate", name = "slope", bound = "0.2 GB/s to 0.3 GB/s" }`},
		{testTable("prediction", fit, atField(), boundField("bound").must()), true, false, (*checker).checkPrediction,
			`prediction = { fit = "host-rate", at = "10", bound = "0.8 to 1" }`},
		{testTable("outcome", field("do", enum(stepNames()...), func(a *Assert) *string { return &a.Step }).must(),
			selectorField("where", true, func(a *Assert) *Selector { return &a.Where }),
			field("is", enum("ok", "fail"), func(a *Assert) *string { return &a.Outcome }).must()), false, false,
			func(c *checker, detail *node, a *Assert, _ string) {
				if c.whole && a.Step != "" {
					c.checkSelectedStep(detail.at("where"), a.Where, a.Step, "the outcome")
				}
			}, `outcome = { do = "check", where = { phase = "damaged" }, is = "fail" }`},
		{parts("all"), false, false, (*checker).checkParts, `all = [ { left = …, right = …, ratio = "> 1" }, { … } ]`},
		{parts("any"), false, false, (*checker).checkParts, ""},
	}
}

// boundField is a bound in a unit that is not known yet: the check of the test
// reads it.
func boundField(name string) key[Assert] {
	k := field(name, textKind("a bound such as \">= 2\" or \"0.9 to 1.1\"", isPrintable),
		func(a *Assert) *string { return &a.Bound.Text })
	k.typ = "bound"
	return k
}

// atField is a list of values of an axis; one value may be written without
// brackets.
func atField() key[Assert] {
	k := listField("at", looseKind, 1, func(a *Assert) *[]string { return &a.At }).must()
	decode := k.decode
	k.typ = "list of values, or one"
	k.decode = func(r *reader, n *node, a *Assert) {
		if n.kind != arrayNode {
			n = &node{kind: arrayNode, off: n.off, name: n.name, items: []*node{n}}
		}
		decode(r, n, a)
	}
	k.json = func() map[string]any { return oneOrMany(looseKind.json) }
	return k
}

// testTable is a test that consists of several keys.
func testTable(name string, keys ...key[Assert]) key[Assert] {
	t := &table[Assert]{name: name, keys: keys}
	out := tableField(name, t, func(a *Assert) *Assert { return a }, func(*Assert) bool { return true })
	out.inner = t.reference()
	return out
}

// assertTable is the table of a test: its operands and one key of the registry.
var assertTable = table[Assert]{name: "test", finish: finishAssert}

// assertKeys are the operands and the tests. A test sets the kind of its claim
// when it is read, and is written for this kind alone.
func assertKeys() []key[Assert] {
	takes := func(a *Assert) test { return tests[max(slices.Index(testNames(), a.Kind), 0)] }
	out := []key[Assert]{
		operandField("left", func(a *Assert) *Operand { return &a.Left },
			func(a *Assert) bool { return takes(a).left }),
		operandField("right", func(a *Assert) *Operand { return &a.Right },
			func(a *Assert) bool { return takes(a).right }),
	}
	for _, t := range tests {
		k := t.key
		k.decode = func(r *reader, n *node, a *Assert) { a.Kind = t.name; t.decode(r, n, a) }
		k.encode = func(a *Assert) (string, bool) { text, _ := t.encode(a); return text, a.Kind == t.name }
		out = append(out, k)
	}
	return out
}

// testNames are the names of the tests, in the order of the registry.
func testNames() []string {
	out := make([]string, len(tests))
	for i, t := range tests {
		out[i] = t.name
	}
	return out
}

// finishAssert checks that there is exactly one test with the operands that it
// takes.
func finishAssert(r *reader, n *node, a *Assert) {
	var given []string
	for _, p := range n.pairs {
		if slices.Contains(testNames(), p.name) {
			given = append(given, p.name)
		}
	}
	if len(given) != 1 {
		count := "none"
		if len(given) > 0 {
			count = fmt.Sprintf("%d (%s)", len(given), strings.Join(given, ", "))
		}
		if !r.broken {
			r.problem(n.key, "test", "a claim needs exactly one test, this has %s", count).
				hintf("tests: %s", strings.Join(testNames(), ", "))
		}
		return
	}
	t := tests[slices.Index(testNames(), given[0])]
	for _, operand := range []struct {
		name  string
		taken bool
	}{{"left", t.left}, {"right", t.right}} {
		v := n.get(operand.name)
		if operand.taken && v == nil && !r.broken {
			r.problem(n.get(t.name).key, operand.name, "the test %q needs the operand %q", t.name, operand.name)
		}
		if !operand.taken && v != nil {
			r.badKey(v, "the test %q takes no operand %q", t.name, operand.name)
		}
	}
	if detail := n.get(t.name); t.name == "trend" && a.Direction == "constant" && detail.get("within") == nil {
		r.problem(detail.off, "within", "a constant trend needs \"within\"")
	}
}

var claimTable = table[Claim]{name: "[[claim]]", finish: finishClaim}

// claimKeys are the keys of a claim, including those of its test, which has no
// table of its own.
func claimKeys() []key[Claim] {
	out := []key[Claim]{
		field("says", someText, func(c *Claim) *string { return &c.Says }).must(),
		field("by", enum("author", "us"), func(c *Claim) *string { return &c.By }).must(),
		field("scope", enum("apple", "any"), func(c *Claim) *string { return &c.Scope }),
		field("id", nameText, func(c *Claim) *string { return &c.ID }),
		field("note", anyText, func(c *Claim) *string { return &c.Note }),
		field("require", flagKind, func(c *Claim) *bool { return &c.Require }),
	}
	for _, k := range assertTable.keys {
		out = append(out, key[Claim]{name: k.name, typ: k.typ, json: k.json,
			decode: func(r *reader, n *node, c *Claim) { k.decode(r, n, &c.Assert) },
			encode: func(c *Claim) (string, bool) { return k.encode(&c.Assert) }})
	}
	return out
}

// finishClaim fills in scope and id, and checks the test.
func finishClaim(r *reader, n *node, c *Claim) {
	if c.Scope == "" {
		c.Scope = map[string]string{"author": "apple", "us": "any"}[c.By]
	}
	c.ID = cmp.Or(c.ID, slug(c.Says))
	finishAssert(r, n, &c.Assert)
}

// slug makes a stable name from a sentence.
func slug(s string) string {
	var b strings.Builder
	for _, c := range strings.ToLower(s) {
		switch {
		case c >= 'a' && c <= 'z' || c >= '0' && c <= '9':
			b.WriteRune(c)
		case b.Len() > 0 && !strings.HasSuffix(b.String(), "-"):
			b.WriteByte('-')
		}
		if b.Len() >= 60 {
			break
		}
	}
	return cmp.Or(strings.Trim(b.String(), "-"), "claim")
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
		c.checkAssert(n, &k.Assert)
		c.checkUnpublished(n, k)
	}
}

// placedOperand is an operand of a test with its place.
type placedOperand struct {
	*Operand
	n *node
}

// operandsAt are the operands that the text of a test has.
func (a *Assert) operandsAt(n *node) []placedOperand {
	var out []placedOperand
	for _, side := range []struct {
		name string
		o    *Operand
	}{{"left", &a.Left}, {"right", &a.Right}} {
		if at := n.get(side.name); at != nil {
			out = append(out, placedOperand{side.o, at})
		}
	}
	for i := range a.Of {
		out = append(out, placedOperand{&a.Of[i], n.at(a.Kind, "of", i)})
	}
	return out
}

// checkAssert checks one test.
func (c *checker) checkAssert(n *node, a *Assert) {
	if a.Kind == "" {
		return
	}
	detail, operands, unit := n.at(a.Kind), a.operandsAt(n), ""
	constants := len(operands) > 0
	for _, o := range operands {
		mine := o.unit()
		if unit != "" && mine != "" && mine != unit {
			c.bad(o.n, "the operands of a test have different units: %s and %s", unitWords[unit], unitWords[mine])
		}
		unit = cmp.Or(unit, mine)
		c.checkOperand(o.n, o.Operand)
		constants = constants && o.Constant != nil && o.Quantity == ""
	}
	if t := tests[slices.Index(testNames(), a.Kind)]; t.check != nil {
		t.check(c, detail, a, unit)
	}
	if constants {
		c.badKey(detail, "the test compares constants only, no measured or published quantity")
	}
	if right := n.get("right"); right != nil && n.get("left") != nil && a.Left.toml() == a.Right.toml() {
		c.refuse(right, "right", "left and right are the same: the test cannot fail").
			hintf("name on each side what is compared")
	}
	for _, o := range operands {
		if c.whole {
			c.checkAverages(o.n, o.Operand, a.Along)
		}
	}
	if a.Along != "" && n.get("left") != nil {
		c.checkAlong(detail, a)
	}
}

// checkParts checks the tests inside all or any.
func (c *checker) checkParts(detail *node, a *Assert, _ string) {
	for i := range a.Parts {
		c.checkAssert(detail.at(i), &a.Parts[i])
	}
}

// checkRank checks that the field has so many operands.
func (c *checker) checkRank(detail *node, a *Assert, _ string) {
	field := len(a.Of)
	if !slices.ContainsFunc(a.Of, func(o Operand) bool { return o.toml() == a.Left.toml() }) {
		field++ // left is ranked with the others
	}
	if a.Rank > field {
		c.bad(detail.at("is"), "rank %d of %s", a.Rank, plural(field, "operand"))
	}
}

// readBound reads a bound in its unit.
func (c *checker) readBound(n *node, a *Assert, unit string) {
	if unit == "" || a.Bound.Text == "" {
		return
	}
	b, err := ParseBound(a.Bound.Text, unit)
	if err != nil {
		c.invalidValue(n, n.name, splitWant(err))
		return
	}
	a.Bound = b
}

// checkUnpublished refuses an author's claim about quantities for which the
// source prints no figure: the reading of the claim cannot be checked against
// the figures. Outcomes and fits have no figures.
func (c *checker) checkUnpublished(n *node, k *Claim) {
	if k.By != "author" || len(c.p.Changes) > 0 || c.invalid["published"] {
		return
	}
	if operands, all := k.Assert.operands(); all && len(operands) > 0 && !slices.ContainsFunc(operands, c.isPublished) {
		c.refuse(n.at("by"), "by", "an author's claim, and none of its operands has a published figure").
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

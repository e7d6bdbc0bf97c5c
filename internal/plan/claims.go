package plan

import (
	"slices"
	"strconv"
	"strings"

	"dmgbench/internal/units"
)

var statistics = append(append([]string{}, estimators...), "minimum", "maximum")

var operandTable table[Operand]

// figures collects the quantities of one [[published]] table, which becomes one Published each.
type publishedForm struct {
	Published
	values []Published
}

var publishedFormTable = table[publishedForm]{name: "[[published]]", keys: []key[publishedForm]{
	selectorKeyOf("where", true, func(p *publishedForm) *Selector { return &p.Where }),
	enumKey("statistic", func(p *publishedForm) *string { return &p.Statistic }, statistics...),
	tableKey("on", theOnTable, func(p *publishedForm) *On { return &p.On },
		func(p *publishedForm) bool { return p.On.isSet() }),
	textKey("note", anyText, func(p *publishedForm) *string { return &p.Note }),
	flagKey("unmeasured", func(p *publishedForm) *bool { return &p.Unmeasured }),
}, other: readPublished, otherNames: func(*reader) []string { return quantityNames() }, finish: finishPublished,
	otherJSON: quantityJSON}

// quantityJSON lets any quantity hold a figure.
func quantityJSON() (map[string]any, any) {
	out := map[string]any{}
	for _, q := range quantityNames() {
		out[q] = map[string]any{"$ref": "#/$defs/figure"}
	}
	return out, false
}

func readPublished(r *reader, n *node, p *publishedForm) bool {
	info, ok := Quantity(n.name).Info()
	if !ok {
		return false
	}
	if f, ok := r.figure(n, info.Unit); ok {
		p.values = append(p.values, Published{Quantity: info.Name, Value: f})
	}
	return true
}

// figure reads a printed number; pure numbers may be written without quotes.
func (r *reader) figure(n *node, unit string) (Figure, bool) {
	text := n.text
	switch n.kind {
	case stringNode:
	case intNode, floatNode:
		text = strings.TrimPrefix(strings.ReplaceAll(text, "_", ""), "+")
		if unit != "1" {
			r.problem(n.off, n.name, "%s: %s has no unit", n.name, n.text).
				hintf("write the value with its unit, in quotes: %s", figureExample(unit))
			return Figure{}, false
		}
	default:
		r.problem(n.off, n.name, "%s: want a figure such as %s, this is %s", n.name, figureExample(unit), n.kind)
		return Figure{}, false
	}
	f, err := ParseFigure(text, unit)
	if err != nil {
		r.valueError(n, err)
		return Figure{}, false
	}
	return f, true
}

// valueError reports an error of a value's text; what follows "want" becomes the hint.
func (r *reader) valueError(n *node, err error) {
	message, hint := splitWant(err)
	r.problem(n.off, n.name, "%s: %s", n.name, message).Hint = hint
}

func figureExample(unit string) string {
	return map[string]string{"B/s": `"6.13 GB/s"`, "s": `"49.32 s"`, "B": `"53.3 GB"`, "1": "6359"}[unit]
}

func finishPublished(r *reader, n *node, p *publishedForm) {
	if len(p.values) == 0 && !r.broken && !slices.ContainsFunc(n.pairs,
		func(c *node) bool { return Quantity(c.name).Unit() != "" }) {
		r.problem(n.key, "published", "a published figure without a figure").hintf("add one, such as read = \"6.13 GB/s\"")
	}
	for i := range p.values {
		v := &p.values[i]
		v.Where, v.Statistic, v.On, v.Note, v.Unmeasured = p.Where.clone(), p.Statistic, p.On, p.Note, p.Unmeasured
	}
}

// operandForm is a claim's operand: a quantity of a selection or a constant.
func init() {
	operandTable = table[Operand]{name: "operand", keys: []key[Operand]{
		{name: "value", typ: "figure", decode: readConstant, encode: func(o *Operand) (string, bool) {
			if o.Constant == nil {
				return "", false
			}
			return tomlString(o.Constant.Text), true
		}, json: func() map[string]any { return map[string]any{"$ref": "#/$defs/figure"} }},
		enumKey("statistic", func(o *Operand) *string { return &o.Statistic }, statistics...),
		flagKey("published", func(o *Operand) *bool { return &o.Published }),
		tableKey("on", theOnTable, func(o *Operand) *On { return &o.On }, func(o *Operand) bool { return o.On.isSet() }),
	}, other: readOperandQuantity, otherNames: func(*reader) []string { return quantityNames() }, finish: finishOperand,
		otherJSON: func() (map[string]any, any) {
			out := map[string]any{}
			for _, q := range quantityNames() {
				out[q] = map[string]any{"$ref": "#/$defs/selector"}
			}
			return out, false
		}}
}

func readConstant(r *reader, n *node, o *Operand) {
	unit := "1"
	if n.kind == stringNode {
		for _, u := range []string{"B/s", "s", "B", "1"} {
			if _, err := ParseFigure(n.text, u); err == nil {
				unit = u
				break
			}
		}
	}
	if f, ok := r.figure(n, unit); ok {
		o.Constant = &f
	}
}

func readOperandQuantity(r *reader, n *node, o *Operand) bool {
	info, ok := Quantity(n.name).Info()
	if !ok {
		return false
	}
	if o.Quantity != "" {
		r.problem(n.key, n.name, "an operand has one quantity; %q is there already", o.Quantity)
		return true
	}
	o.Quantity, o.Where = info.Name, r.selector(n, n.name, true)
	return true
}

func finishOperand(r *reader, n *node, o *Operand) {
	value := n.get("value")
	switch {
	case r.broken:
	case o.Quantity == "" && value == nil &&
		!slices.ContainsFunc(n.pairs, func(c *node) bool { return operandTable.key(c.name) == nil }):
		r.problem(n.off, n.name, "an operand names no quantity").
			hintf("write it as { write = { format = \"UDSB\" } } or { value = \"2 GB/s\" }")
	case o.Quantity != "" && value != nil:
		r.problem(value.key, "value", "an operand is a quantity or a value, not both")
	case o.On.isSet() && !o.Published:
		r.problem(n.get("on").key, "on", "on has no meaning without published = true").
			hintf("a measured operand is taken on the machine of the run")
	}
}

func operandTOML(o *Operand) string {
	var lines []string
	if o.Quantity != "" {
		lines = append(lines, string(o.Quantity)+" = "+o.Where.toml())
	}
	return inlineOf(append(lines, operandTable.lines(o)...))
}

// operandKey is a key that holds an operand.
func operandKey[T any](name string, f func(*T) *Operand, written func(*T) bool) key[T] {
	return key[T]{name: name, typ: "operand",
		decode: func(r *reader, n *node, dst *T) { operandTable.read(r, n, f(dst)) },
		encode: func(src *T) (string, bool) { return operandTOML(f(src)), written(src) },
		json:   func() map[string]any { return map[string]any{"$ref": "#/$defs/operand"} }}
}

// operandsKey is a key that holds a list of operands.
func operandsKey(name string) key[Assert] {
	return key[Assert]{name: name, typ: "list of operands", required: true,
		decode: func(r *reader, n *node, a *Assert) {
			if n.kind != arrayNode {
				r.problem(n.off, name, "%s: want a list of operands, this is %s", name, n.kind)
				return
			}
			a.Of = make([]Operand, len(n.items))
			for i, it := range n.items {
				operandTable.read(r, it, &a.Of[i])
			}
			if len(a.Of) < 2 {
				r.problem(n.off, name, "%s: want at least two operands", name)
			}
		},
		encode: func(a *Assert) (string, bool) {
			out := make([]string, len(a.Of))
			for i := range a.Of {
				out[i] = operandTOML(&a.Of[i])
			}
			return "[" + strings.Join(out, ", ") + "]", true
		},
		json: func() map[string]any {
			return map[string]any{"type": "array", "minItems": 2, "items": map[string]any{"$ref": "#/$defs/operand"}}
		}}
}

var claimTable = table[Claim]{name: "[[claim]]", keys: []key[Claim]{
	textKey("says", someText, func(c *Claim) *string { return &c.Says }).must(),
	enumKey("by", func(c *Claim) *string { return &c.By }, "author", "us").must(),
	enumKey("scope", func(c *Claim) *string { return &c.Scope }, "apple", "any"),
	textKey("id", nameText, func(c *Claim) *string { return &c.ID }),
	textKey("note", anyText, func(c *Claim) *string { return &c.Note }),
	flagKey("require", func(c *Claim) *bool { return &c.Require }),
}, finish: finishClaim}

func finishClaim(r *reader, n *node, c *Claim) {
	if c.Scope == "" {
		c.Scope = map[string]string{"author": "apple", "us": "any"}[c.By]
	}
	if c.ID == "" {
		c.ID = slug(c.Says)
	}
	finishAssert(r, n, &c.Assert)
}

// slug makes a stable name out of a sentence.
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
	if b.Len() == 0 {
		return "claim"
	}
	return strings.Trim(b.String(), "-")
}

var fitTable = table[Fit]{name: "[[fit]]", keys: []key[Fit]{
	textKey("name", nameText, func(f *Fit) *string { return &f.Name }).must(),
	textKey("quantity", enumType(nil, quantityNames()...), func(f *Fit) *string { return (*string)(&f.Quantity) }).must(),
	selectorKeyOf("where", true, func(f *Fit) *Selector { return &f.Where }),
	textKey("along", nameText, func(f *Fit) *string { return &f.Along }).must(),
	listKey("points", looseType, func(f *Fit, v []string) { f.Points = v }, func(f *Fit) []string { return f.Points }),
	enumKey("model", func(f *Fit) *string { return &f.Model }, "line", "power", "two-lines").must(),
	listKey("predict", looseType, func(f *Fit, v []string) { f.Predict = v }, func(f *Fit) []string { return f.Predict }),
	{name: "published", typ: "table", decode: func(r *reader, n *node, f *Fit) {}, encode: coefficientsTOML,
		json: func() map[string]any {
			return map[string]any{"type": "object", "additionalProperties": map[string]any{"$ref": "#/$defs/figure"}}
		}},
}, finish: finishFit}

// Coefficients of each model: y = intercept + slope x; y = factor x^exponent;
// two lines that meet at break.
var coefficients = map[string][]string{
	"line":      {"intercept", "slope", "r2"},
	"power":     {"factor", "exponent", "r2"},
	"two-lines": {"intercept", "slope", "break", "intercept_2", "slope_2", "r2"},
}

// coefficientUnit is the unit that a coefficient is printed in.
func coefficientUnit(name string, q Quantity) string {
	if slices.Contains([]string{"intercept", "slope", "factor", "intercept_2", "slope_2"}, name) {
		return q.Unit()
	}
	return "1"
}

func finishFit(r *reader, n *node, f *Fit) {
	published := n.get("published")
	if published == nil || f.Model == "" || f.Quantity == "" {
		return
	}
	if published.kind != tableNode {
		r.problem(published.off, "published", "published: want a table such as { slope = 0.264 }, this is %s", published.kind)
		return
	}
	for _, p := range published.pairs {
		if !slices.Contains(coefficients[f.Model], p.name) {
			r.problem(p.key, p.name, "the model %s has no coefficient %q", f.Model, p.name).
				hintf("its coefficients: %s", strings.Join(coefficients[f.Model], ", "))
			continue
		}
		if v, ok := r.figure(p, coefficientUnit(p.name, f.Quantity)); ok {
			if v.Kind != "is" {
				r.problem(p.off, p.name, "%s: a coefficient is one number", p.name)
				continue
			}
			f.Published = append(f.Published, Coefficient{Name: p.name, Value: v.Low, Text: v.Text})
		}
	}
}

func coefficientsTOML(f *Fit) (string, bool) {
	var lines []string
	for _, c := range f.Published {
		lines = append(lines, c.Name+" = "+tomlString(c.Text))
	}
	return inlineOf(lines), len(lines) > 0
}

var relationTable = table[Relation]{name: "[[relation]]", keys: []key[Relation]{
	textKey("name", nameText, func(l *Relation) *string { return &l.Name }).must(),
	textKey("says", anyText, func(l *Relation) *string { return &l.Says }),
	operandKey("x", func(l *Relation) *Operand { return &l.X }, func(*Relation) bool { return true }).must(),
	operandKey("y", func(l *Relation) *Operand { return &l.Y }, func(*Relation) bool { return true }).must(),
	{name: "over", typ: "list of selectors", required: true, decode: readOver, encode: func(l *Relation) (string, bool) {
		out := make([]string, len(l.Over))
		for i, s := range l.Over {
			out[i] = s.toml()
		}
		return "[" + strings.Join(out, ", ") + "]", true
	}, json: func() map[string]any {
		return map[string]any{"type": "array", "minItems": 2, "items": map[string]any{"$ref": "#/$defs/selector"}}
	}},
}}

func readOver(r *reader, n *node, l *Relation) {
	if n.kind != arrayNode {
		r.problem(n.off, "over", "over: want a list of selectors, this is %s", n.kind)
		return
	}
	for _, it := range n.items {
		l.Over = append(l.Over, r.selector(it, "over", true))
	}
	if len(l.Over) < 2 {
		r.problem(n.off, "over", "over: want at least two selectors, one point each")
	}
}

// testKey is one kind of test inside a claim.
type testKey struct {
	key[Assert]
	// left and right reports whether the test takes these operands.
	left, right bool
}

var tests []testKey

// assertKeys are the keys of a test: its operands and the test itself.
func assertKeys() []key[Assert] {
	out := []key[Assert]{
		operandKey("left", func(a *Assert) *Operand { return &a.Left },
			func(a *Assert) bool { t := findTest(a.Kind); return t != nil && t.left }),
		operandKey("right", func(a *Assert) *Operand { return &a.Right },
			func(a *Assert) bool { t := findTest(a.Kind); return t != nil && t.right }),
	}
	for _, t := range tests {
		out = append(out, t.key)
	}
	return out
}

func findTest(kind string) *testKey {
	if i := slices.IndexFunc(tests, func(t testKey) bool { return t.name == kind }); i >= 0 {
		return &tests[i]
	}
	return nil
}

func testNames() []string {
	out := make([]string, len(tests))
	for i, t := range tests {
		out[i] = t.name
	}
	return out
}

// boundText is a bound whose unit is not known yet; the plan's check reads it.
func boundText(name string) key[Assert] {
	return textKey(name, boundRaw, func(a *Assert) *string { return &a.Bound.Text })
}

// only makes a key of one kind of test: it is written for that kind alone.
func (k key[T]) onlyFor(kind string, kindOf func(*T) *string) key[T] {
	decode, encode := k.decode, k.encode
	k.decode = func(r *reader, n *node, dst *T) { *kindOf(dst) = kind; decode(r, n, dst) }
	k.encode = func(src *T) (string, bool) {
		if *kindOf(src) != kind {
			return "", false
		}
		text, _ := encode(src)
		return text, true
	}
	return k
}

func kindOf(a *Assert) *string { return &a.Kind }

func test(k key[Assert], left, right bool) testKey {
	return testKey{key: k.onlyFor(k.name, kindOf), left: left, right: right}
}

// detail is a test whose value is a table.
func detail(name string, keys ...key[Assert]) key[Assert] {
	t := &table[Assert]{name: name, keys: keys}
	return tableKey(name, func() *table[Assert] { return t }, func(a *Assert) *Assert { return a },
		func(*Assert) bool { return true })
}

var (
	withinKey = shareKey("within", func(a *Assert) *units.Share { return &a.Within }).always()
	alongKey  = textKey("along", nameText, func(a *Assert) *string { return &a.Along }).must()
	overKey   = alongKey.named("over")
	fitKey    = textKey("fit", nameText, func(a *Assert) *string { return &a.Fit }).must()
	directed  = func(words ...string) key[Assert] {
		return enumKey("is", func(a *Assert) *string { return &a.Direction }, words...)
	}
)

// atKey is a list of values of an axis; one value may be written without brackets.
var atKey = key[Assert]{name: "at", typ: "list of values", required: true,
	decode: func(r *reader, n *node, a *Assert) {
		items := []*node{n}
		if n.kind == arrayNode {
			items = n.items
		}
		for _, it := range items {
			if text, ok := r.scalar(it, "at", looseType); ok {
				a.At = append(a.At, text)
			}
		}
		if len(items) == 0 {
			r.problem(n.off, "at", "at: the list is empty")
		}
	},
	encode: func(a *Assert) (string, bool) { return tomlStrings(a.At), true },
	json: func() map[string]any {
		return map[string]any{"anyOf": []any{looseType.json,
			map[string]any{"type": "array", "minItems": 1, "items": looseType.json}}}
	},
}

func init() {
	tests = []testKey{
		test(boundText("ratio"), true, true),
		test(boundText("difference"), true, true),
		test(detail("equal", withinKey.must()), true, true),
		test(boundText("bound"), true, false),
		test(detail("order", operandsKey("of"), directed("falling", "rising").or(`"falling"`), withinKey), false, false),
		test(detail("rank", operandsKey("of"), numberKey("is", 1, 10000, func(a *Assert) *int { return &a.Rank }).must()),
			true, false),
		test(detail("extreme", alongKey, directed("largest", "smallest").must(), atKey), true, false),
		test(detail("trend", alongKey, directed("rising", "falling", "constant").must(), withinKey), true, false),
		test(detail("spread", overKey, boundText("bound").must()), true, false),
		test(detail("coefficient", fitKey, textKey("name", nameText, func(a *Assert) *string { return &a.Coefficient }).must(),
			boundText("bound").must()), false, false),
		test(detail("prediction", fitKey, atKey, boundText("bound").must()), true, false),
		test(detail("outcome", enumKey("do", func(a *Assert) *string { return &a.Step }, stepNames()...).must(),
			selectorKeyOf("where", true, func(a *Assert) *Selector { return &a.Where }),
			enumKey("is", func(a *Assert) *string { return &a.Outcome }, "ok", "fail").must()), false, false),
		test(partsKey("all"), false, false),
		test(partsKey("any"), false, false),
	}
	assertTable.keys = assertKeys()
	claimTable.keys = append(claimTable.keys, liftKeys(assertTable.keys, func(c *Claim) *Assert { return &c.Assert })...)
}

// assertTable is one test inside all or any.
var assertTable = table[Assert]{name: "test", finish: finishAssert}

func partsKey(name string) key[Assert] {
	k := tablesKey(name, func() *table[Assert] { return &assertTable }, func(a *Assert) *[]Assert { return &a.Parts })
	k.typ = "list of tests"
	k.json = func() map[string]any {
		return map[string]any{"type": "array", "minItems": 1, "items": map[string]any{"$ref": "#/$defs/test"}}
	}
	return k
}

// liftKeys makes keys of a part into keys of the whole.
func liftKeys[T, U any](keys []key[U], at func(*T) *U) []key[T] {
	out := make([]key[T], len(keys))
	for i, k := range keys {
		out[i] = key[T]{name: k.name, typ: k.typ, fallback: k.fallback, required: k.required, json: k.json,
			decode: func(r *reader, n *node, dst *T) { k.decode(r, n, at(dst)) },
			encode: func(src *T) (string, bool) { return k.encode(at(src)) }}
	}
	return out
}

// finishAssert checks that there is exactly one test with the operands it takes.
func finishAssert(r *reader, n *node, a *Assert) {
	var given []string
	for _, p := range n.pairs {
		if findTest(p.name) != nil {
			given = append(given, p.name)
		}
	}
	if len(given) != 1 {
		if !r.broken {
			r.problem(n.key, "test", "a claim needs exactly one test, this has %s", countWord(given)).
				hintf("tests: %s", strings.Join(testNames(), ", "))
		}
		return
	}
	t := findTest(given[0])
	for _, side := range []struct {
		name  string
		takes bool
	}{{"left", t.left}, {"right", t.right}} {
		v := n.get(side.name)
		if side.takes && v == nil && !r.broken {
			r.problem(n.get(t.name).key, side.name, "the test %q needs the operand %q", t.name, side.name)
		}
		if !side.takes && v != nil {
			r.problem(v.key, side.name, "the test %q takes no operand %q", t.name, side.name)
		}
	}
	detail := n.get(t.name)
	if (t.name == "all" || t.name == "any") && len(a.Parts) == 0 && detail.kind == arrayNode {
		r.problem(detail.off, t.name, "%s: the list is empty", t.name)
	}
	if t.name == "trend" && a.Direction == "constant" && detail.get("within") == nil {
		r.problem(detail.off, "within", "a constant trend needs \"within\"")
	}
}

func countWord(given []string) string {
	if len(given) == 0 {
		return "none"
	}
	return strconv.Itoa(len(given)) + " (" + strings.Join(given, ", ") + ")"
}

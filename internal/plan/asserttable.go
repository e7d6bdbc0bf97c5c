package plan

import (
	"slices"
	"strconv"
	"strings"

	"dmgbench/internal/units"
)

// testKey is one kind of test inside a claim.
type testKey struct {
	key[Assert]
	// left and right say whether the test takes these operands.
	left, right bool
}

var tests []testKey

// assertKeys are the keys of a test: its operands and the test itself.
func assertKeys() []key[Assert] {
	out := []key[Assert]{
		operandKey("left", func(a *Assert) *Operand { return &a.Left }, func(a *Assert) bool { t := findTest(a.Kind); return t != nil && t.left }),
		operandKey("right", func(a *Assert) *Operand { return &a.Right }, func(a *Assert) bool { t := findTest(a.Kind); return t != nil && t.right }),
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
	return tableKey(name, func() *table[Assert] { return t }, func(a *Assert) *Assert { return a }, func(*Assert) bool { return true })
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

// atKey is a list of values of an axis; one value may stand alone.
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
		return map[string]any{"anyOf": []any{looseType.json, map[string]any{"type": "array", "minItems": 1, "items": looseType.json}}}
	},
}

func init() {
	tests = []testKey{
		test(boundText("ratio"), true, true),
		test(boundText("difference"), true, true),
		test(detail("equal", withinKey.must()), true, true),
		test(boundText("bound"), true, false),
		test(detail("order", operandsKey("of"), directed("falling", "rising").or(`"falling"`), withinKey), false, false),
		test(detail("rank", operandsKey("of"), numberKey("is", 1, 10000, func(a *Assert) *int { return &a.Rank }).must()), true, false),
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
	claimTable.keys = append(claimTable.keys, lift(assertTable.keys, func(c *Claim) *Assert { return &c.Assert })...)
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

// lift makes keys of a part into keys of the whole.
func lift[T, U any](keys []key[U], at func(*T) *U) []key[T] {
	out := make([]key[T], len(keys))
	for i, k := range keys {
		out[i] = key[T]{name: k.name, typ: k.typ, fallback: k.fallback, required: k.required, json: k.json,
			decode: func(r *reader, n *node, dst *T) { k.decode(r, n, at(dst)) },
			encode: func(src *T) (string, bool) { return k.encode(at(src)) }}
	}
	return out
}

// finishAssert sees to it that there is exactly one test with the operands it takes.
func finishAssert(r *reader, n *node, a *Assert) {
	var given []string
	for _, p := range n.pairs {
		if findTest(p.name) != nil {
			given = append(given, p.name)
		}
	}
	if len(given) != 1 {
		if !r.broken {
			r.problem(n.key, "test", "a claim needs exactly one test, this has %s", countWord(given)).hintf("tests: %s", strings.Join(testNames(), ", "))
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

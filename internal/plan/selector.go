package plan

import (
	"slices"
	"strconv"
	"strings"

	"dmgbench/internal/image"
	"dmgbench/internal/units"
)

// selectorKey is what a selector may name, with the type of its values.
type selectorKey struct {
	name  string
	value *scalar
	// samples keys pick steps or samples of a case, not cases.
	samples bool
}

var (
	anyFormatType = enumType(formatAlias, image.FormatNames(nil)...)
	countType     = numberType(0, 1<<40)
	// looseType takes what a manual axis can hold: a name or a number.
	looseType = &scalar{name: "text or number", json: map[string]any{"type": []string{"string", "number"}},
		parse: parseLoose}
)

func parseLoose(n *node) (string, *fault) {
	switch n.kind {
	case stringNode:
		if n.text == "" || len(n.text) > 64 || !printable(n.text) || strings.ContainsAny(n.text, ",=\n\t") {
			return "", &fault{strconv.Quote(n.text) + " cannot name a value", "want 1 to 64 characters, without , and ="}
		}
		return n.text, nil
	case intNode, floatNode:
		text := strings.TrimPrefix(strings.ReplaceAll(n.text, "_", ""), "+")
		if !plainNumber(strings.TrimPrefix(text, "-")) {
			return "", &fault{n.text + " is no plain number", ""}
		}
		return text, nil
	}
	return "", wrongType(n, "text or a number")
}

var sampleKeys = []selectorKey{
	{"phase", nameText, true}, {"cycle", countType, true}, {"file_size", sizeType, true}, {"set", countType, true},
}

// findSelectorKey is the key of that name, with the manual axes of this plan.
func (r *reader) findSelectorKey(name string) (selectorKey, bool) {
	if name == "baseline" {
		return selectorKey{name, flagType, false}, true
	}
	if name == "format" {
		return selectorKey{name, anyFormatType, false}, true
	}
	if s := findSetting(name); s != nil {
		return selectorKey{name, s.value, false}, true
	}
	for _, k := range sampleKeys {
		if k.name == name {
			return k, true
		}
	}
	if slices.Contains(r.manual, name) {
		return selectorKey{name, looseType, false}, true
	}
	return selectorKey{}, false
}

func (r *reader) selectorNames(samples bool) []string {
	out := append(settingNames(), "baseline")
	if samples {
		for _, k := range sampleKeys {
			out = append(out, k.name)
		}
	}
	return append(out, r.manual...)
}

// selector reads a table of choices; samples is whether keys like phase are accepted.
func (r *reader) selector(n *node, what string, samples bool) Selector {
	if n.kind != tableNode {
		r.problem(n.off, n.name, "%s: want a selector such as { format = \"UDSB\" }, this is %s", what, n.kind)
		return nil
	}
	var out Selector
	for _, p := range n.pairs {
		k, ok := r.findSelectorKey(p.name)
		switch {
		case !ok:
			r.unknownSelector(p, what, samples)
		case k.samples && !samples:
			r.problem(p.key, p.name, "%s: %q picks samples, not cases", what, p.name).
				hintf("accepted: %s", strings.Join(r.selectorNames(false), ", "))
		default:
			if c, ok := r.choice(p, k); ok {
				out = append(out, c)
			}
		}
	}
	return out
}

func (r *reader) unknownSelector(n *node, what string, samples bool) {
	p := r.problem(n.key, n.name, "%s: %q is nothing that can be selected", what, n.name)
	if near := Nearest(n.name, r.selectorNames(samples)); near != "" {
		p.hintf("did you mean %q?", near)
	} else {
		p.hintf("accepted: %s", strings.Join(r.selectorNames(samples), ", "))
	}
}

func (r *reader) choice(n *node, k selectorKey) (Choice, bool) {
	items := []*node{n}
	if n.kind == arrayNode {
		items = n.items
		if len(items) == 0 {
			r.problem(n.off, n.name, "%s: an empty list matches nothing", n.name)
			return Choice{}, false
		}
		r.distinct(n, n.name)
	}
	c := Choice{Key: k.name}
	for _, it := range items {
		if text, ok := r.scalar(it, k.name, k.value); ok {
			c.Values = append(c.Values, text)
		}
	}
	return c, len(c.Values) == len(items)
}

// toml is the selector as an inline table.
func (s Selector) toml() string {
	lines := make([]string, len(s))
	for i, c := range s {
		values := make([]string, len(c.Values))
		for j, v := range c.Values {
			values[j] = choiceType(c.Key).toml(v)
		}
		text := strings.Join(values, ", ")
		if len(values) != 1 {
			text = "[" + text + "]"
		}
		lines[i] = tomlKey(c.Key) + " = " + text
	}
	return inlineOf(lines)
}

// choiceType is the type of a selector key's values; what is unknown is a manual axis.
func choiceType(key string) *scalar {
	if k, ok := (&reader{}).findSelectorKey(key); ok {
		return k.value
	}
	return looseType
}

// String is the selector as --only takes it: "format=UDSB,phase=new".
func (s Selector) String() string {
	var out []string
	for _, c := range s {
		out = append(out, c.Key+"="+strings.Join(c.Values, "|"))
	}
	return strings.Join(out, ",")
}

// Match reports whether every choice matches what get returns for a case, step or
// sample; a key that get does not know does not match. Values are compared as
// what they are: "8 MiB" equals "8388608 B", RAW equals UDRW. A selector that
// names neither baseline nor target never matches a baseline case.
func (s Selector) Match(get func(key string) (string, bool)) bool {
	if v, ok := get("baseline"); ok && v == "true" && !s.names("baseline") && !s.names("target") {
		return false
	}
	return s.matchAll(get)
}

func (s Selector) matchAll(get func(key string) (string, bool)) bool {
	for _, c := range s {
		have, ok := get(c.Key)
		if !ok || !slices.ContainsFunc(c.Values, func(want string) bool { return sameValue(c.Key, have, want) }) {
			return false
		}
	}
	return true
}

// clone is a deep copy.
func (s Selector) clone() Selector {
	out := slices.Clone(s)
	for i := range out {
		out[i].Values = slices.Clone(out[i].Values)
	}
	return out
}

func (s Selector) names(key string) bool {
	return slices.ContainsFunc(s, func(c Choice) bool { return c.Key == key })
}

// sameValue compares two texts of one key by meaning.
func sameValue(key, a, b string) bool {
	if a == b {
		return true
	}
	t := choiceType(key)
	switch {
	case t == bandType:
		a, b = bandText(a), bandText(b)
	case t.enum != nil:
		return strings.EqualFold(unalias(a), unalias(b))
	case t.bare:
		return sameNumber(a, b)
	case t == looseType:
		return sameNumber(a, b) || sameSize(a, b)
	case t != sizeType && t != blockType:
		return false
	}
	return sameSize(a, b)
}

func sameSize(a, b string) bool {
	if !strings.HasSuffix(a, "B") || !strings.HasSuffix(b, "B") {
		return false
	}
	x, errX := units.ParseBytes(a)
	y, errY := units.ParseBytes(b)
	return errX == nil && errY == nil && x == y
}

func sameNumber(a, b string) bool {
	p, errP := strconv.ParseFloat(a, 64)
	q, errQ := strconv.ParseFloat(b, 64)
	return errP == nil && errQ == nil && p == q
}

func bandText(s string) string {
	if s == "default" || s == "" {
		return units.Bytes(formatOf(image.UDSB).Unit).String()
	}
	return s
}

func unalias(format string) string {
	if to, ok := formatAlias[strings.ToUpper(format)]; ok {
		return to
	}
	return format
}

// ParseSelector reads "key=value[,key=value…]" as the flag --only takes it;
// values of one key may be joined by "|", and p gives the manual axes.
func (p *Plan) ParseSelector(text string) (Selector, error) {
	r := newReader("--only", nil)
	for _, m := range p.Manual {
		r.manual = append(r.manual, m.Name)
	}
	root := &node{kind: tableNode, name: "--only"}
	for pair := range strings.SplitSeq(text, ",") {
		key, value, ok := strings.Cut(pair, "=")
		key = strings.TrimSpace(key)
		if !ok || root.get(key) != nil {
			return nil, &SelectorError{Text: text, Cause: "want key=value[,key=value…], each key once"}
		}
		list := &node{kind: arrayNode, name: key}
		for v := range strings.SplitSeq(value, "|") {
			list.items = append(list.items, flagNode(key, strings.TrimSpace(v)))
		}
		root.add(list)
	}
	s := r.selector(root, "--only", false)
	if ps := r.problems(); ps != nil {
		cause := ps.Items[0].Message
		if hint := ps.Items[0].Hint; hint != "" {
			cause += " (" + hint + ")"
		}
		return nil, &SelectorError{Text: text, Cause: cause}
	}
	return s, nil
}

// flagNode is a value of the command line, where numbers and yes/no carry no type.
func flagNode(key, value string) *node {
	t := choiceType(key)
	kind := stringNode
	switch {
	case t == flagType:
		if value == "true" || value == "false" {
			kind = boolNode
		}
	case t.bare && plainNumber(value):
		kind = intNode
	}
	return &node{kind: kind, text: value}
}

// selectorKeyOf is a key that holds a selector.
func selectorKeyOf[T any](name string, samples bool, f func(*T) *Selector) key[T] {
	return key[T]{name: name, typ: "selector",
		decode: func(r *reader, n *node, dst *T) { *f(dst) = r.selector(n, name, samples) },
		encode: func(src *T) (string, bool) { return f(src).toml(), len(*f(src)) > 0 },
		json:   func() map[string]any { return map[string]any{"$ref": "#/$defs/selector"} }}
}

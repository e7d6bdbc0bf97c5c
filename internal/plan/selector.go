package plan

import (
	"cmp"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"dmgbench/internal/image"
	"dmgbench/internal/system/units"
)

// Selector picks cases, steps or samples: every pair must match. Keys are
// settings keys, manual axes, baseline, and phase, cycle, file_size, set. A key
// may have several values, any of which matches.
type Selector []Choice

// Choice is one key of a selector with the values that match.
type Choice struct {
	Key    string
	Values []string
}

// valueKind is the type of a selector key's values; a key that is unknown is a
// manual axis.
func valueKind(key string) *kind { return cmp.Or(findKey(key, sampleKeys, nil), looseKind) }

// selectorCodec reads a table of choices.
func selectorCodec(set keySet) codec {
	return codec{typ: "selector", plural: "selectors",
		decode: func(r *reader, n *node, v reflect.Value) { v.Set(reflect.ValueOf(r.choices(n, set))) },
		encode: func(v reflect.Value) (string, bool) { return v.Interface().(Selector).toml(), v.Len() > 0 },
		json:   func() map[string]any { return schemaReference("selector") }}
}

// choices reads a table of keys of a set, each with its value or, except for a
// case, its values.
func (r *reader) choices(n *node, set keySet) (out Selector) {
	if n.kind != tableNode {
		r.bad(n, "%s: want a table such as { format = \"UDSB\" }, this is %s", n.name, n.kind)
	}
	for _, p := range n.pairs {
		k := findKey(p.name, set, r.manual)
		if k == nil {
			r.unknownKey(p, n.name, r.keyNames(set))
			continue
		}
		c, items := Choice{Key: p.name}, []*node{p}
		if p.kind == arrayNode && set != caseKeys {
			items = r.list(p, "values", 1, 0)
		}
		for _, it := range items {
			if text, ok := k.read(r, it); ok {
				c.Values = append(c.Values, text)
			}
		}
		if len(c.Values) > 0 {
			out = append(out, c)
		}
	}
	return out
}

// join writes each choice, with a separator between them.
func (s Selector) join(separator string, write func(c Choice) string) string {
	out := make([]string, len(s))
	for i, c := range s {
		out[i] = write(c)
	}
	return strings.Join(out, separator)
}

// lines are the "key = value" lines of the selector.
func (s Selector) lines() []string {
	out := make([]string, len(s))
	for i, c := range s {
		text := c.valuesTOML()
		if len(c.Values) != 1 {
			text = "[" + text + "]"
		}
		out[i] = tomlKey(c.Key) + " = " + text
	}
	return out
}

// toml is the selector as an inline table.
func (s Selector) toml() string { return inlineOf(s.lines()) }

// valuesTOML are the values as a plan writes them.
func (c Choice) valuesTOML() string {
	out := make([]string, len(c.Values))
	for i, v := range c.Values {
		out[i] = valueKind(c.Key).toml(v)
	}
	return strings.Join(out, ", ")
}

// String is the selector as --only takes it: "format=UDSB,phase=new".
func (s Selector) String() string {
	return s.join(",", func(c Choice) string { return c.Key + "=" + strings.Join(c.Values, "|") })
}

// Prose writes the selector in words: "format is UDRW or UDSB, encryption is
// none".
func (s Selector) Prose() string {
	return s.join(", ", func(c Choice) string { return c.Key + " is " + strings.Join(c.Values, " or ") })
}

// Match reports whether every choice matches what get returns for a case, step
// or sample; a key that get does not know does not match. Values are compared
// by meaning: "8 MiB" equals "8388608 B", RAW equals UDRW. A selector that
// names neither baseline nor target never matches a baseline case.
func (s Selector) Match(get func(key string) (string, bool)) bool {
	if v, ok := get("baseline"); ok && v == "true" && !s.Names("baseline") && !s.Names("target") {
		return false
	}
	return s.matchAll(get)
}

// matchAll is Match with the baseline cases.
func (s Selector) matchAll(get func(key string) (string, bool)) bool {
	for _, c := range s {
		have, ok := get(c.Key)
		if !ok || !c.Matches(have) {
			return false
		}
	}
	return true
}

// Matches reports whether the value is one of the values, by meaning.
func (c Choice) Matches(value string) bool {
	return slices.ContainsFunc(c.Values, func(want string) bool {
		return value == want || canonicalValue(c.Key, value) == canonicalValue(c.Key, want)
	})
}

// Find is the choice of the key, or nil.
func (s Selector) Find(key string) *Choice {
	return find(s, func(c *Choice) bool { return c.Key == key })
}

// Names reports whether the selector has the key.
func (s Selector) Names(key string) bool { return s.Find(key) != nil }

// IsNative reports whether the selector names the native folder.
func (s Selector) IsNative() bool {
	baseline, target := s.Find("baseline"), s.Find("target")
	return baseline != nil && slices.Contains(baseline.Values, "true") ||
		target != nil && slices.Contains(target.Values, "directory")
}

// Covers reports whether the selector may mean a cell of a source. A cell that
// leaves a key open applies to all its values, except that cells of the native
// folder, of one file size and of one set apply only where they are named.
func (s Selector) Covers(cell Selector) bool {
	for _, want := range s {
		if have := cell.Find(want.Key); have != nil && !slices.ContainsFunc(have.Values, want.Matches) {
			return false
		}
	}
	return s.Names("file_size") == cell.Names("file_size") && s.Names("set") == cell.Names("set") &&
		s.IsNative() == cell.IsNative()
}

// split divides a selector into what picks cases and what picks samples of
// them, phases first.
func (s Selector) split() (cases, samples Selector) {
	for _, k := range sampleKinds {
		if c := s.Find(k.name); c != nil {
			samples = append(samples, *c)
		}
	}
	return slices.DeleteFunc(slices.Clone(s), func(c Choice) bool { return samples.Names(c.Key) }), samples
}

// canonicalValue is the text of a key's value as its kind writes it: of a
// manual axis, a number or a size. The default band is that of a sparse bundle.
// Any other text stays.
func canonicalValue(key, text string) string {
	k := valueKind(key)
	if k == looseKind {
		if v, err := strconv.ParseFloat(text, 64); err == nil {
			return strconv.FormatFloat(v, 'g', -1, 64)
		}
		k = sizeKind
	}
	if k == bandKind && (text == "default" || text == "") {
		return units.Bytes(formatOf(image.UDSB).Unit).String()
	}
	if v, bad := k.parse(flagNode(key, text)); bad == nil {
		return k.text(v)
	}
	return text
}

// ParseSelector reads "key=value[,key=value…]" as the flag --only takes it;
// values of one key may be joined by "|". The error is an *OverrideError.
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
			return nil, &OverrideError{"only", text, "want key=value[,key=value…], each key once"}
		}
		values := root.add(&node{kind: arrayNode, name: key})
		for v := range strings.SplitSeq(value, "|") {
			values.items = append(values.items, flagNode(key, strings.TrimSpace(v)))
		}
	}
	s := r.choices(root, selectorKeys)
	if len(r.found) > 0 {
		cause := r.found[0].Message
		if hint := r.found[0].Hint; hint != "" {
			cause += " (" + hint + ")"
		}
		return nil, &OverrideError{"only", text, cause}
	}
	return s, nil
}

// flagNode is a value of the command line, where numbers and yes/no have no
// type.
func flagNode(key, value string) *node {
	t := valueKind(key)
	n := &node{kind: stringNode, name: key, text: value}
	if t.node == boolNode && (value == "true" || value == "false") || t.node == intNode && units.IsDecimal(value) {
		n.kind = t.node
	}
	return n
}

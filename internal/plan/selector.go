package plan

import (
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

// selectorKey is a key of selectors with the type of its values.
type selectorKey struct {
	name  string
	value *kind
	// samples: picks steps or samples of a case, not cases
	samples bool
}

var sampleKeys = []selectorKey{
	{"phase", nameText, true}, {"cycle", countKind, true}, {"file_size", sizeKind, true}, {"set", countKind, true},
}

// findSelectorKey is the key of that name; manual are the manual axes of the
// plan.
func findSelectorKey(name string, manual []string) (k selectorKey, ok bool) {
	switch s := findSetting(name); {
	case name == "baseline":
		return selectorKey{name, flagKind, false}, true
	case name == "format":
		return selectorKey{name, anyFormat, false}, true
	case s != nil:
		return selectorKey{name, s.value, false}, true
	case slices.Contains(manual, name):
		return selectorKey{name, looseKind, false}, true
	}
	if i := slices.IndexFunc(sampleKeys, func(k selectorKey) bool { return k.name == name }); i >= 0 {
		return sampleKeys[i], true
	}
	return selectorKey{}, false
}

// valueKind is the type of a selector key's values; a key that is unknown is a
// manual axis.
func valueKind(key string) *kind {
	if k, ok := findSelectorKey(key, nil); ok {
		return k.value
	}
	return looseKind
}

// selectorNames are the keys that a selector may have, for hints.
func (r *reader) selectorNames(samples bool) []string {
	out := append(settingNames(), "baseline")
	if samples {
		for _, k := range sampleKeys {
			out = append(out, k.name)
		}
	}
	return append(out, r.manual...)
}

// selectorCodec reads a table of choices; samples is whether keys such as phase
// are accepted.
func selectorCodec(samples bool) codec {
	return codec{typ: "selector", plural: "selectors",
		decode: func(r *reader, n *node, v reflect.Value) { v.Set(reflect.ValueOf(r.selector(n, samples))) },
		encode: func(v reflect.Value) (string, bool) { return v.Interface().(Selector).toml(), v.Len() > 0 },
		json:   func() map[string]any { return schemaReference("selector") }}
}

// selector reads a table of choices.
func (r *reader) selector(n *node, samples bool) Selector {
	if n.kind != tableNode {
		r.bad(n, "%s: want a selector such as { format = \"UDSB\" }, this is %s", n.name, n.kind)
		return nil
	}
	var out Selector
	for _, p := range n.pairs {
		k, ok := findSelectorKey(p.name, r.manual)
		if !ok || k.samples && !samples {
			r.badKey(p, "%s: unknown selector key %q", n.name, p.name).
				suggest(p.name, "accepted: ", func() []string { return r.selectorNames(samples) })
		} else if c, ok := r.choice(p, k); ok {
			out = append(out, c)
		}
	}
	return out
}

// choice reads the value or the values of one key; ok is false where one is
// invalid.
func (r *reader) choice(n *node, k selectorKey) (Choice, bool) {
	items := []*node{n}
	if n.kind == arrayNode {
		if items = n.items; len(items) == 0 {
			r.bad(n, "%s: an empty list matches no case", n.name)
			return Choice{}, false
		}
	}
	c := Choice{Key: k.name}
	for _, it := range items {
		text, bad := k.value.read(it)
		if bad != nil {
			r.invalidValue(it, bad)
			continue
		}
		c.Values = append(c.Values, text)
	}
	return c, len(c.Values) == len(items)
}

// join writes each choice, with a separator between them.
func (s Selector) join(separator string, write func(c Choice) string) string {
	out := make([]string, len(s))
	for i, c := range s {
		out[i] = write(c)
	}
	return strings.Join(out, separator)
}

// toml is the selector as an inline table.
func (s Selector) toml() string {
	if len(s) == 0 {
		return "{}"
	}
	return "{ " + s.join(", ", func(c Choice) string {
		text := c.valuesTOML()
		if len(c.Values) != 1 {
			text = "[" + text + "]"
		}
		return tomlKey(c.Key) + " = " + text
	}) + " }"
}

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
	if v, ok := get("baseline"); ok && v == "true" && !s.names("baseline") && !s.names("target") {
		return false
	}
	return s.matchAll(get)
}

// matchAll is Match with the baseline cases.
func (s Selector) matchAll(get func(key string) (string, bool)) bool {
	for _, c := range s {
		have, ok := get(c.Key)
		if !ok || !c.matches(have) {
			return false
		}
	}
	return true
}

// matches reports whether the value is one of the values, by meaning.
func (c Choice) matches(value string) bool {
	return slices.ContainsFunc(c.Values, func(want string) bool { return sameValue(c.Key, value, want) })
}

// find is the choice of the key, or nil.
func (s Selector) find(key string) *Choice {
	return find(s, func(c *Choice) bool { return c.Key == key })
}

// names reports whether the selector has the key.
func (s Selector) names(key string) bool { return s.find(key) != nil }

// isNative reports whether the selector names the native folder.
func (s Selector) isNative() bool {
	baseline, target := s.find("baseline"), s.find("target")
	return baseline != nil && slices.Contains(baseline.Values, "true") ||
		target != nil && slices.Contains(target.Values, "directory")
}

// split divides a selector into what picks cases and what picks samples of
// them.
func (s Selector) split() (cases Selector, samples map[string][]string) {
	samples = map[string][]string{}
	for _, c := range s {
		if k, _ := findSelectorKey(c.Key, nil); k.samples {
			samples[c.Key] = c.Values
		} else {
			cases = append(cases, c)
		}
	}
	return cases, samples
}

// clone is a deep copy.
func (s Selector) clone() Selector {
	out := slices.Clone(s)
	for i := range out {
		out[i].Values = slices.Clone(out[i].Values)
	}
	return out
}

// sameValue compares two texts of one key by meaning.
func sameValue(key, a, b string) bool {
	return a == b || canonicalValue(key, a) == canonicalValue(key, b)
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
	if canonical, bad := k.read(flagNode(key, text)); bad == nil {
		return canonical
	}
	return text
}

// ParseSelector reads "key=value[,key=value…]" as the flag --only takes it;
// values of one key may be joined by "|". The error is a *SelectorError.
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
		values := root.add(&node{kind: arrayNode, name: key})
		for v := range strings.SplitSeq(value, "|") {
			values.items = append(values.items, flagNode(key, strings.TrimSpace(v)))
		}
	}
	s := r.selector(root, false)
	if ps := r.problems(); ps != nil {
		cause := ps.Items[0].Message
		if hint := ps.Items[0].Hint; hint != "" {
			cause += " (" + hint + ")"
		}
		return nil, &SelectorError{Text: text, Cause: cause}
	}
	return s, nil
}

// flagNode is a value of the command line, where numbers and yes/no have no
// type.
func flagNode(key, value string) *node {
	t := valueKind(key)
	n := &node{kind: stringNode, name: key, text: value}
	if t.node == boolNode && (value == "true" || value == "false") || t.node == intNode && isPlainNumber(value) {
		n.kind = t.node
	}
	return n
}

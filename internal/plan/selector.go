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

// The keys that places of the plan may name, besides manual axes: those of axes
// and cases are the settings, selectors of cases have baseline and every format
// in addition, and all other selectors what picks steps or samples.
var settings, selectorKeys, allKeys []key

// sampleKeys pick steps or samples of a case.
var sampleKeys = []key{valueKey("phase", nameText), valueKey("cycle", countKind), valueKey("file_size", sizeKind),
	valueKey("set", countKind), valueKey("operation", nameText)}

// valueKey is a key of a selector.
func valueKey(name string, value *kind) key { return key{name: name, codec: kindCodec(value)} }

// addSettings makes the tables of settings, and fills the lists of keys.
func addSettings() {
	addTable[TargetSettings]("[target]", nil)
	addTable("[image]", func(r *reader, n *node, s *ImageSettings) {
		exact := n.get("filesystem")
		if exact != nil && n.get("filesystem_preference") != nil {
			r.badKey(exact, "filesystem and filesystem_preference contradict each other").hintf("keep one of them")
		}
		if len(s.Filesystems) == 0 {
			s.Filesystems = []string{"APFS", "ext4", "exFAT"}
		}
	})
	addTable[IOSettings]("[io]", nil)
	addTable[StreamSettings]("[stream]", nil)
	addTable[Settings]("settings", nil)
	for f := range reflect.TypeFor[Settings]().Fields() {
		if f.Anonymous {
			for _, k := range tables[f.Type].keys {
				k.index = slices.Concat(f.Index, k.index)
				k.name = cmp.Or(map[string]string{"kind": "target"}[k.name], k.name)
				settings = append(settings, k)
			}
		}
	}
	settings = slices.DeleteFunc(settings, func(k key) bool {
		return k.name == "filesystem_preference" || k.name == "allow_many_bands"
	})
	selectorKeys = append(slices.Clone(settings), valueKey("baseline", flagKind))
	keyNamed(selectorKeys, "format").value = anyFormat
	allKeys = slices.Concat(selectorKeys, sampleKeys)
}

// exactFilesystem is the key filesystem. The canonical form writes it as a
// preference of one.
func exactFilesystem() codec {
	out := kindCodec(kinds["filesystem"])
	decode := out.decode
	out.decode = func(r *reader, n *node, v reflect.Value) {
		one := reflect.MakeSlice(v.Type(), 1, 1)
		decode(r, n, one.Index(0))
		v.Set(one)
	}
	out.encode = func(reflect.Value) (string, bool) { return "", false }
	return out
}

// set sets a setting to the value of a canonical text.
func (k *key) set(dst *Settings, text string) {
	k.decode(nil, k.value.nodeOf(text), reflect.ValueOf(dst).Elem().FieldByIndex(k.index))
}

// get is the canonical text of a setting's value: of several, the first.
func (k *key) get(src *Settings) string {
	v := reflect.ValueOf(src).Elem().FieldByIndex(k.index)
	if v.Kind() == reflect.Slice {
		return strings.Join(src.Filesystems[:min(len(src.Filesystems), 1)], "")
	}
	return k.value.text(v.Interface())
}

func formatOf(name string) image.Format                    { f, _ := image.FormatNamed(name); return f }
func bandSizeOf(f image.Format, b units.Bytes) units.Bytes { return units.Bytes(f.BandSize(int64(b))) }

// findSetting is the setting of that name, or nil.
func findSetting(name string) *key { return keyNamed(settings, name) }

// value is the text of one key of a case as selectors see it; ok is false for a
// key that is not a settings key.
func (s *Settings) value(name string) (text string, ok bool) {
	for _, m := range s.Manual {
		if m.Key == name {
			return m.Value, true
		}
	}
	if k := findSetting(name); k != nil {
		return k.get(s), true
	}
	return "", false
}

// formatCodes replaces every name of a format by its code alone.
var formatCodes = func() *strings.Replacer {
	var pairs []string
	for _, code := range append(image.FormatNames(nil), "RAW") {
		pairs = append(pairs, FormatName(code), code)
	}
	return strings.NewReplacer(pairs...)
}()

// FormatCodes is text with the codes of image formats in place of their names,
// for short lines.
func FormatCodes(text string) string { return formatCodes.Replace(text) }

// FormatName is the name of an image format with its code: "sparse bundle
// (UDSB)". An unknown format is its code.
func FormatName(format string) string {
	if f, ok := image.FormatNamed(format); ok {
		return f.Title + " (" + format + ")"
	}
	return format
}

// valueKind is the type of a selector key's values; a key that is unknown is a
// manual axis.
func valueKind(key string) *kind {
	if k := keyNamed(allKeys, key); k != nil {
		return k.value
	}
	return looseKind
}

// selectorCodec reads a table of choices.
func selectorCodec(keys []key) codec {
	return codec{typ: "selector",
		decode: func(r *reader, n *node, v reflect.Value) {
			v.Set(reflect.ValueOf(r.choices(n, slices.Concat(keys, r.manual), true)))
		},
		encode: func(v reflect.Value) (string, bool) { return v.Interface().(Selector).toml(), v.Len() > 0 },
		json:   func() map[string]any { return schemaReference("selector") }}
}

// choices reads a table of some of these keys, each with its value or, where
// many is set, its values.
func (r *reader) choices(n *node, keys []key, many bool) (out Selector) {
	if n.kind != tableNode {
		r.bad(n, "%s: want a table such as { format = \"UDSB\" }, this is %s", n.name, n.kind)
	}
	for _, p := range n.pairs {
		k := keyNamed(keys, p.name)
		if k == nil {
			r.unknownKey(p, n.name, keys)
			continue
		}
		c, items := Choice{Key: p.name}, []*node{p}
		if many {
			items = r.list(p, k.codec, 1, 0)
		}
		for _, it := range items {
			if text, ok := k.value.read(r, it); ok {
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
// folder, of one file size, of one set and of one kind of operation apply only
// where they are named.
func (s Selector) Covers(cell Selector) bool {
	for _, want := range s {
		if have := cell.Find(want.Key); have != nil && !slices.ContainsFunc(have.Values, want.Matches) {
			return false
		}
	}
	for _, key := range []string{"file_size", "set", "operation"} {
		if s.Names(key) != cell.Names(key) {
			return false
		}
	}
	return s.IsNative() == cell.IsNative()
}

// split divides a selector into what picks cases and what picks samples of
// them, phases first.
func (s Selector) split() (cases, samples Selector) {
	for _, k := range sampleKeys {
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
	r, keys := newReader("--only", nil), slices.Clone(selectorKeys)
	for _, m := range p.Manual {
		keys = append(keys, valueKey(m.Name, looseKind))
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
	s := r.choices(root, keys, true)
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

// addValue adds a value of a key, once.
func (s *Selector) addValue(key, value string) {
	if s.Find(key) == nil {
		*s = append(*s, Choice{Key: key})
	}
	if c := s.Find(key); !slices.Contains(c.Values, value) {
		c.Values = append(c.Values, value)
	}
}

package plan

import (
	_ "embed"
	"maps"
	"reflect"
	"slices"
	"strconv"
	"strings"
)

// codec reads, writes and describes the values of one Go type.
type codec struct {
	// typ: as docs/plan-language.md names it, with an s for several
	typ string
	// value: type of single values and of the items of a list of them
	value *kind
	// whole: v is the struct that has the key, not one of its fields
	whole  bool
	decode func(r *reader, n *node, v reflect.Value)
	// encode: written is false where the canonical form leaves the value out
	encode func(v reflect.Value) (text string, written bool)
	json   func() map[string]any
	// sections: of keys of the top level that the canonical form writes under
	// headers of their own
	sections func(name string, v reflect.Value) []section
	// inner: keys of a table that is described with its key; hidden: of a key
	// that is described with others
	inner  []key
	hidden bool
}

// section is a table of the canonical form with its header.
type section struct {
	header string
	lines  []string
}

// key is one key of a table: how it is read, written and described. The fields
// of plan's structs declare theirs in a tag:
//
//	plan:"NAME [KIND] [!] [=DEFAULT] [always] [quiet] [min=N] [max=N]"
//
// KIND is a name of kinds or of codecs, the words of an enumeration ("ok|fail")
// or the limits of a number ("1..9"); "!" makes the key required. The canonical
// form writes a key with "always" even where its value is zero, and one with
// "quiet" only where it is not the default: such keys were added after plans had
// been run, and the digests in journals of these runs have to stay valid. A
// semicolon separates the keys of a field with several. These
// declarations are the single source of the decoder, its hints, the canonical
// form, the JSON Schema and docs/plan-language.md, for which keys.md has the
// meanings.
type key struct {
	name string
	codec
	index []int
	// fallback: default, nil if there is none
	fallback                *node
	required, always, quiet bool
}

// newKey is the key of a struct's field.
func newKey(t reflect.Type, field, tag string) key {
	words := strings.Fields(tag)
	k := key{name: words[0]}
	for name := range strings.SplitSeq(field, ".") {
		f, ok := t.FieldByName(name)
		if !ok {
			panic("no field " + field + " in " + t.String())
		}
		k.index, t = append(k.index, f.Index...), f.Type
	}
	kindName, fallback, low, high, hasFallback := "", "", 0, 0, false
	for _, word := range words[1:] {
		switch option, value, _ := strings.Cut(word, "="); option {
		case "!":
			k.required = true
		case "always":
			k.always = true
		case "quiet":
			k.quiet = true
		case "":
			fallback, hasFallback = value, true
		case "min":
			low, _ = strconv.Atoi(value)
		case "max":
			high, _ = strconv.Atoi(value)
		default:
			kindName = word
		}
	}
	if k.codec = newCodec(t, kindName, low, high); k.whole {
		k.index = nil
	}
	if hasFallback {
		k.fallback = &node{kind: tableNode}
		if k.value != nil {
			k.fallback = k.value.nodeOf(fallback)
		}
		k.fallback.name = k.name
	}
	return k
}

// newKeys are the keys of fields of T, each written "FIELD TAG".
func newKeys[T any](tags ...string) []key {
	out := make([]key, len(tags))
	for i, tag := range tags {
		field, rest, _ := strings.Cut(tag, " ")
		out[i] = newKey(reflect.TypeFor[T](), field, rest)
	}
	return out
}

// in is the value of the key in that of its table: a field of a struct, or all
// of it.
func (k *key) in(v reflect.Value) reflect.Value {
	if len(k.index) == 0 {
		return v
	}
	return v.FieldByIndex(k.index)
}

// read decodes n into the key's value in that of its table; a pointer
// distinguishes a zero value from none.
func (k *key) read(r *reader, n *node, v reflect.Value) {
	v = k.in(v)
	if v.Kind() == reflect.Pointer {
		v.Set(reflect.New(v.Type().Elem()))
	}
	k.decode(r, n, reflect.Indirect(v))
}

// newCodec is the codec of a Go type; low and high are the limits of lists.
func newCodec(t reflect.Type, kindName string, low, high int) codec {
	if t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	if c, ok := codecs[kindName]; ok {
		return c()
	}
	switch c, ok := codecsOfTypes[t]; {
	case ok:
		return c()
	case t.Kind() == reflect.Slice:
		return listCodec(newCodec(t.Elem(), kindName, 0, 0), low, high)
	case tables[t] != nil:
		return tableCodec(tables[t])
	}
	return kindCodec(findKind(kindName, t))
}

// kindCodec is the codec of single values. The zero value is not written,
// unless it has a word of its own.
func kindCodec(k *kind) codec {
	return codec{typ: k.name, value: k,
		decode: func(r *reader, n *node, v reflect.Value) {
			if x, bad := k.parse(n); bad != nil {
				r.invalidValue(n, bad)
			} else {
				v.Set(reflect.ValueOf(x).Convert(v.Type()))
			}
		},
		encode: func(v reflect.Value) (string, bool) {
			return k.toml(k.text(v.Interface())), !v.IsZero() || k.zeroWord != ""
		},
		json: func() map[string]any { return k.json }}
}

// listCodec is a list of low to high items, 0: of any number. The canonical
// form leaves an empty list out, and writes tables on lines of their own.
func listCodec(of codec, low, high int) codec {
	out := codec{typ: "list of " + of.typ + "s", value: of.value}
	out.decode = func(r *reader, n *node, v reflect.Value) {
		items := r.list(n, of, low, high)
		list := reflect.MakeSlice(v.Type(), len(items), len(items))
		for i, it := range items {
			before := r.reported
			of.decode(r, it, list.Index(i))
			it.invalid = r.reported > before
		}
		v.Set(list)
	}
	out.encode = func(v reflect.Value) (string, bool) {
		texts := make([]string, v.Len())
		for i := range texts {
			texts[i], _ = of.encode(v.Index(i))
		}
		if of.value != nil || of.typ == "selector" || of.typ == "operand" {
			return "[" + strings.Join(texts, ", ") + "]", len(texts) > 0
		}
		return "[\n  " + strings.ReplaceAll(strings.Join(texts, ",\n"), "\n", "\n  ") + ",\n]", len(texts) > 0
	}
	out.json = func() map[string]any {
		s := map[string]any{"type": "array", "items": of.json(), "minItems": low}
		if high > 0 {
			s["maxItems"] = high
		}
		if of.value != nil {
			return map[string]any{"anyOf": []any{of.json(), s}}
		}
		return s
	}
	if of.sections != nil {
		out.sections = func(name string, v reflect.Value) (all []section) {
			for i := range v.Len() {
				all = append(all, of.sections("["+name+"]", v.Index(i))...)
			}
			return all
		}
	}
	return out
}

// sharedTables are the tables that the JSON Schema defines once.
var sharedTables = []string{"operand", "test", "line"}

// tableCodec is the codec of a struct with a table of keys.
func tableCodec(t *table) codec {
	out := codec{typ: "table", decode: t.read, json: t.schema,
		encode: func(v reflect.Value) (string, bool) { return inlineOf(t.lines(v)), !v.IsZero() },
		sections: func(name string, v reflect.Value) []section {
			return []section{{"[" + name + "]", t.lines(v)}}
		}}
	if slices.Contains(sharedTables, t.name) {
		out.typ, out.json = t.name, func() map[string]any { return schemaReference(t.name) }
	}
	return out
}

// table is the set of keys of one TOML table.
type table struct {
	// name: in messages and in keys.md
	name string
	keys []key
	// finish checks conditions between keys after all of them are read.
	finish func(r *reader, n *node, v reflect.Value)
	// form is a struct as the canonical form writes it, nil: as it is.
	form func(v reflect.Value) reflect.Value
}

// tables are the tables of struct types.
var tables = map[reflect.Type]*table{}

// tableOf is the table of a struct type.
func tableOf[T any]() *table { return tables[reflect.TypeFor[T]()] }

// addTable registers the table of a struct type: its fields with tags, in their
// order. The keys of a struct with the tag "inline" are those of the struct
// around it.
func addTable[T any](name string, finish func(r *reader, n *node, v *T)) *table {
	out := &table{name: name}
	t := reflect.TypeFor[T]()
	for f := range t.Fields() {
		switch tag := f.Tag.Get("plan"); tag {
		case "":
		case "inline":
			for _, k := range tables[f.Type].keys {
				k.index = slices.Concat(f.Index, k.index)
				out.keys = append(out.keys, k)
			}
		default:
			for one := range strings.SplitSeq(tag, ";") {
				out.keys = append(out.keys, newKey(t, f.Name, one))
			}
		}
	}
	if finish != nil {
		out.finish = func(r *reader, n *node, v reflect.Value) { finish(r, n, v.Addr().Interface().(*T)) }
	}
	tables[t] = out
	return out
}

// keyNamed is the key of that name, or nil.
func keyNamed(keys []key, name string) *key {
	return find(keys, func(k *key) bool { return k.name == name })
}

// keyNames are the names of keys.
func keyNames(keys []key) []string { return namesOf(keys, func(k *key) string { return k.name }) }

// read decodes table n into v: known keys, unknown keys, defaults, required
// keys.
func (t *table) read(r *reader, n *node, v reflect.Value) {
	if n.kind != tableNode {
		r.bad(n, "%s: want a table, this is %s", t.name, n.kind)
		return
	}
	for _, p := range n.pairs {
		before := r.reported
		if k := keyNamed(t.keys, p.name); k != nil {
			k.read(r, p, v)
		} else {
			r.unknownKey(p, t.name, t.keys)
		}
		p.invalid = r.reported > before
	}
	for _, k := range t.keys {
		switch {
		case n.get(k.name) != nil:
		case k.required:
			r.problem(n.key, k.name, "%s: %q is missing", t.name, k.name)
		case k.fallback != nil:
			k.read(r, k.fallback, v)
		}
	}
	if t.finish != nil {
		t.finish(r, n, v)
	}
}

// lines are the "key = value" lines of a struct.
func (t *table) lines(v reflect.Value) (out []string) {
	if t.form != nil {
		v = t.form(v)
	}
	for _, k := range t.keys {
		at := k.in(v)
		given := at.Kind() == reflect.Pointer
		if given && at.IsNil() {
			continue
		}
		text, has := k.encode(reflect.Indirect(at))
		if (has || given || k.always || k.required) && !(k.quiet && text == k.value.toml(k.fallback.text)) {
			out = append(out, tomlKey(k.name)+" = "+text)
		}
	}
	return out
}

// inlineOf is an inline table of "key = value" texts.
func inlineOf(lines []string) string {
	if len(lines) == 0 {
		return "{}"
	}
	return "{ " + strings.Join(lines, ", ") + " }"
}

// invalidValue reports a value that its kind refuses.
func (r *reader) invalidValue(n *node, bad *invalid) {
	r.bad(n, "%s: %s", n.name, bad.message).Hint = bad.hint
}

// unknownKey reports a key that the table at it does not have.
func (r *reader) unknownKey(n *node, at string, have []key) {
	r.badKey(n, "%s: unknown key %q", at, n.name).suggest(n.name, "keys here", keyNames(have))
}

// suggest hints at the name that was probably meant, or lists all.
func (p *Problem) suggest(name, what string, have []string) *Problem {
	if p.File == "" { // not kept: the hint is not shown, and looking for it is slow
		return p
	}
	if len(have) == 0 {
		return p.hintf("the plan has no %s", what)
	}
	if near := Nearest(name, have); near != "" {
		return p.hintf("did you mean %q?", near)
	}
	return p.hintf("%s: %s", what, strings.Join(have[:min(len(have), 100)], ", "))
}

// list is the items of a list of low to high items; a single value needs no
// brackets.
func (r *reader) list(n *node, of codec, low, high int) []*node {
	items := n.items
	if of.value != nil && n.kind != arrayNode {
		items = []*node{n}
	}
	switch {
	case n.kind != arrayNode && items == nil:
		r.bad(n, "%s: want a list of %ss, this is %s", n.name, of.typ, n.kind).hintf("write it in brackets: [ … ]")
	case len(items) < low:
		r.bad(n, "%s: want %d or more %ss, this has %d", n.name, low, of.typ, len(items))
	case high > 0 && len(items) > high:
		r.bad(n, "%s: %d %ss, more than %d", n.name, len(items), of.typ, high)
		return nil
	}
	return items
}

// keyTexts has the quantities and the meanings of keys, steps and tests.
//
//go:embed keys.md
var keyTexts string

// docRows are the rows of the tables of keyTexts, by their headers.
var docRows = func() map[string][][]string {
	out, header := map[string][][]string{}, ""
	for line := range strings.Lines(keyTexts) {
		line = strings.TrimSpace(line)
		if name, ok := strings.CutPrefix(line, "## "); ok {
			header = name
		} else if row, ok := strings.CutPrefix(line, "| "); ok {
			cells := strings.Split(strings.TrimSuffix(row, "|"), "|")
			for i := range cells {
				cells[i] = strings.TrimSpace(cells[i])
			}
			out[header] = append(out[header], cells)
		}
	}
	for header := range out {
		out[header] = out[header][1:] // without the names of the columns
	}
	return out
}()

// schema is the JSON Schema of a table.
func (t *table) schema() map[string]any {
	properties, required := map[string]any{}, []string{}
	for _, k := range t.keys {
		s := maps.Clone(k.json())
		switch {
		case k.fallback == nil:
		case k.value == nil:
			s["default"] = map[string]any{}
		case k.value.node == stringNode:
			s["default"] = k.fallback.text
		default:
			s["default"], _ = k.value.parse(k.fallback)
		}
		if k.required {
			required = append(required, k.name)
		}
		properties[k.name] = s
	}
	out := objectSchema(properties, false)
	if len(required) > 0 {
		out["required"] = required
	}
	return out
}

// schemaReference is the JSON Schema of a value that $defs describes.
func schemaReference(name string) map[string]any { return map[string]any{"$ref": "#/$defs/" + name} }

// objectSchema describes a table; additional is false, or the schema of all
// other keys.
func objectSchema(properties map[string]any, additional any) map[string]any {
	return map[string]any{"type": "object", "properties": properties, "additionalProperties": additional}
}

// keysSchema describes a table that has some of these keys, each with its value
// or, where many is set, its values.
func keysSchema(keys []key, many bool, additional any) map[string]any {
	properties := map[string]any{}
	for _, k := range keys {
		if properties[k.name] = k.json(); many {
			properties[k.name] = listCodec(k.codec, 1, 0).json()
		}
	}
	return objectSchema(properties, additional)
}

// splitKeys are keys of a row of keys.md, which separates them by semicolons, and
// the words of an enumeration by slashes.
func splitKeys(cell string) []string {
	return strings.FieldsFunc(strings.ReplaceAll(strings.ReplaceAll(cell, "; ", ";"), "/", "|"),
		func(c rune) bool { return c == ';' })
}

package plan

import (
	"reflect"
	"slices"
	"strconv"
	"strings"
)

// codec reads, writes and describes the values of one Go type.
type codec struct {
	// typ: as docs/plan-language.md names it; plural: of several
	typ, plural string
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
	// inner: keys of a table that is described with its key
	inner []key
	// names: of a key that is itself a name: a quantity
	names []string
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
// been run, and the digests in journals of these runs have to stay valid. These
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
	f, ok := t.FieldByName(field)
	if !ok {
		panic("no field " + field + " in " + t.String())
	}
	words := strings.Fields(tag)
	k := key{name: words[0], index: f.Index}
	kindName, fallback, low, high, hasFallback := "", "", 0, 0, false
	for _, word := range words[1:] {
		option, value, isOption := strings.Cut(word, "=")
		switch {
		case word == "!":
			k.required = true
		case word == "always":
			k.always = true
		case word == "quiet":
			k.quiet = true
		case !isOption:
			kindName = word
		case option == "":
			fallback, hasFallback = value, true
		case option == "min":
			low, _ = strconv.Atoi(value)
		case option == "max":
			high, _ = strconv.Atoi(value)
		}
	}
	k.codec = newCodec(f.Type, kindName, low, high)
	if k.whole {
		k.index = nil
	}
	if hasFallback {
		k.fallback = &node{kind: tableNode, name: k.name}
		if k.value != nil {
			k.fallback = k.value.nodeOf(fallback)
			k.fallback.name = k.name
		}
	}
	return k
}

// in is the value of the key in that of its table: a field of a struct, or all
// of it.
func (k *key) in(v reflect.Value) reflect.Value {
	if len(k.index) == 0 {
		return v
	}
	return v.FieldByIndex(k.index)
}

// newCodec is the codec of a Go type; low and high are the limits of lists.
func newCodec(t reflect.Type, kindName string, low, high int) codec {
	if c, ok := codecs[kindName]; ok {
		return c()
	}
	switch c, ok := codecsOfTypes[t]; {
	case ok:
		return c()
	case t.Kind() == reflect.Pointer:
		return pointerCodec(newCodec(t.Elem(), kindName, 0, 0))
	case t.Kind() == reflect.Slice:
		return listCodec(newCodec(t.Elem(), kindName, 0, 0), low, high)
	case t.Kind() == reflect.Struct && kindsOfTypes[t] == nil:
		return tableCodec(t)
	}
	return kindCodec(findKind(kindName, t))
}

// kindCodec is the codec of single values. The zero value is not written,
// unless it has a word of its own.
func kindCodec(k *kind) codec {
	plural := map[string]string{"text": "text", "text or number": "text or numbers", "enum": "words"}[k.name]
	if plural == "" {
		plural = strings.TrimSuffix(k.name, "y") + "s"
	}
	return codec{typ: k.name, plural: plural, value: k,
		decode: func(r *reader, n *node, v reflect.Value) {
			if x, bad := k.parse(n); bad != nil {
				r.invalidValue(n, bad)
			} else {
				v.Set(reflect.ValueOf(x).Convert(v.Type()))
			}
		},
		encode: func(v reflect.Value) (string, bool) {
			return k.toml(k.text(v.Interface())), !v.IsZero() || k.word != ""
		},
		json: func() map[string]any { return k.json }}
}

// pointerCodec distinguishes a zero value from none.
func pointerCodec(of codec) codec {
	out := of
	out.decode = func(r *reader, n *node, v reflect.Value) {
		if v.IsNil() {
			v.Set(reflect.New(v.Type().Elem()))
		}
		of.decode(r, n, v.Elem())
	}
	out.encode = func(v reflect.Value) (string, bool) {
		if v.IsNil() {
			return "", false
		}
		text, _ := of.encode(v.Elem())
		return text, true
	}
	out.sections = func(name string, v reflect.Value) []section {
		if v.IsNil() {
			return nil
		}
		return of.sections(name, v.Elem())
	}
	return out
}

// listCodec is a list of low to high items, 0: of any number. The canonical
// form leaves an empty list out, and writes tables on lines of their own.
func listCodec(of codec, low, high int) codec {
	out := codec{typ: "list of " + of.plural, plural: "lists", value: of.value}
	out.decode = func(r *reader, n *node, v reflect.Value) {
		items := r.list(n, of.plural, low, high)
		list := reflect.MakeSlice(v.Type(), len(items), len(items))
		for i, it := range items {
			before := len(r.found)
			of.decode(r, it, list.Index(i))
			it.invalid = len(r.found) > before
		}
		v.Set(list)
	}
	out.encode = func(v reflect.Value) (string, bool) {
		texts := make([]string, v.Len())
		for i := range texts {
			texts[i], _ = of.encode(v.Index(i))
		}
		if of.value != nil || of.plural == "selectors" || of.plural == "operands" {
			return "[" + strings.Join(texts, ", ") + "]", len(texts) > 0
		}
		return "[\n  " + strings.ReplaceAll(strings.Join(texts, ",\n"), "\n", "\n  ") + ",\n]", len(texts) > 0
	}
	out.json = func() map[string]any {
		s := map[string]any{"type": "array", "items": of.json()}
		if low > 0 {
			s["minItems"] = low
		}
		if high > 0 {
			s["maxItems"] = high
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

// tableCodec is the codec of a struct with a table of keys.
func tableCodec(t reflect.Type) codec {
	out := codec{typ: "table", plural: "tables",
		decode: func(r *reader, n *node, v reflect.Value) { tables[t].read(r, n, v) },
		encode: func(v reflect.Value) (string, bool) { return inlineOf(tables[t].lines(v)), !v.IsZero() },
		json:   func() map[string]any { return tables[t].schema() },
		sections: func(name string, v reflect.Value) []section {
			return []section{{"[" + name + "]", tables[t].lines(v)}}
		}}
	if name := referenced[t]; name != "" {
		out.typ, out.plural = name, name+"s"
		out.json = func() map[string]any { return schemaReference(name) }
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
	// writes decides whether the canonical form has a key that has the value
	// or not; nil: those that have it.
	writes func(v reflect.Value, name string, has bool) bool
	// form is a struct as the canonical form writes it, nil: as it is.
	form func(v reflect.Value) reflect.Value
}

// tables are the tables of struct types.
var tables = map[reflect.Type]*table{}

// addTable registers the table of a struct type: its fields with tags, in their
// order.
func addTable[T any](name string, finish func(r *reader, n *node, v *T)) *table {
	t := &table{name: name, keys: fieldKeys(reflect.TypeFor[T]())}
	if finish != nil {
		t.finish = func(r *reader, n *node, v reflect.Value) { finish(r, n, v.Addr().Interface().(*T)) }
	}
	tables[reflect.TypeFor[T]()] = t
	return t
}

// fieldKeys are the keys that the tags of a struct declare. The keys of a
// struct with the tag "inline" are those of the struct around it.
func fieldKeys(t reflect.Type) (out []key) {
	for f := range t.Fields() {
		switch tag := f.Tag.Get("plan"); tag {
		case "":
		case "inline":
			for _, k := range tables[f.Type].keys {
				k.index = append(slices.Clone(f.Index), k.index...)
				out = append(out, k)
			}
		default:
			out = append(out, newKey(t, f.Name, tag))
		}
	}
	return out
}

// key is the row of that name, or nil.
func (t *table) key(name string) *key {
	return find(t.keys, func(k *key) bool {
		return k.names == nil && k.name == name || slices.Contains(k.names, name)
	})
}

// keyNames are the names of all keys.
func (t *table) keyNames() (out []string) {
	for _, k := range t.keys {
		if k.names == nil {
			out = append(out, k.name)
		}
		out = append(out, k.names...)
	}
	return out
}

// topKeys are the values of the top level, which have to come before its
// tables.
var topKeys = []string{"schema", "title", "summary", "choices"}

// read decodes table n into v: known keys, unknown keys, defaults, required
// keys.
func (t *table) read(r *reader, n *node, v reflect.Value) {
	if n.kind != tableNode {
		r.bad(n, "%s: want a table, this is %s", t.name, n.kind)
		return
	}
	for _, p := range n.pairs {
		before := len(r.found)
		switch k := t.key(p.name); {
		case k != nil:
			k.decode(r, p, k.in(v))
		case slices.Contains(topKeys, p.name):
			r.badKey(p, "%s: unknown key %q", t.name, p.name).
				hintf("it is a key of the top level: put it before the first [table]")
		default:
			r.badKey(p, "%s: unknown key %q", t.name, p.name).suggest(p.name, "keys here: ", t.keyNames)
		}
		p.invalid = len(r.found) > before
	}
	for _, k := range t.keys {
		switch {
		case n.get(k.name) != nil:
		case k.required:
			r.problem(n.key, k.name, "%s: %q is missing", t.name, k.name)
		case k.fallback != nil:
			k.decode(r, k.fallback, k.in(v))
		}
	}
	if t.finish != nil {
		t.finish(r, n, v)
	}
}

// suggest hints at the name that was probably meant, or lists all.
func (p *Problem) suggest(name, list string, names func() []string) *Problem {
	if p.omitted { // the hint is not shown, and looking for it is slow
		return p
	}
	if near := Nearest(name, names()); near != "" {
		return p.hintf("did you mean %q?", near)
	}
	have := names()
	return p.hintf("%s%s", list, strings.Join(have[:min(len(have), 100)], ", "))
}

// lines are the "key = value" lines of a struct.
func (t *table) lines(v reflect.Value) []string {
	var out []string
	if t.form != nil {
		v = t.form(v)
	}
	for _, k := range t.keys {
		text, has := k.encode(k.in(v))
		has = (has || k.always || k.required) && !(k.quiet && text == k.value.toml(k.fallback.text))
		if t.writes != nil {
			has = t.writes(v, k.name, has)
		}
		switch {
		case !has:
		case k.names != nil: // the text has its own key
			out = append(out, text)
		default:
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

// list is the items of a list of low to high items.
func (r *reader) list(n *node, items string, low, high int) []*node {
	switch {
	case n.kind != arrayNode:
		r.bad(n, "%s: want a list of %s, this is %s", n.name, items, n.kind).hintf("write it in brackets: [ … ]")
		return nil
	case len(n.items) == 0 && low > 0:
		r.bad(n, "%s: the list is empty", n.name)
	case len(n.items) < low:
		r.bad(n, "%s: want %d or more %s", n.name, low, items)
	case high > 0 && len(n.items) > high:
		r.bad(n, "%s: %d %s, more than %d", n.name, len(n.items), items, high)
		return nil
	}
	return n.items
}

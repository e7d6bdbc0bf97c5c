package plan

import (
	"slices"
	"strings"
)

// key is one key of a table: how it is read, written and described. These rows
// are the single source of the decoder, its hints, the canonical form, the JSON
// Schema and docs/plan-language.md, for which keys.md has the meanings.
type key[T any] struct {
	name string
	// value: type of the value or of the items of a list, nil for tables
	value *scalar
	// typ: as docs/plan-language.md names it, where that is not the name of
	// value
	typ string
	// fallback: default in TOML, "" if there is none
	fallback string
	required bool
	decode   func(r *reader, n *node, dst *T)
	encode   func(src *T) (toml string, written bool)
	json     func() map[string]any
	// inner: keys of a table that has no page section of its own
	inner []KeyDoc
	// sections: of keys that the canonical form writes under headers of their
	// own
	sections func(src *T) []section
}

// section is a table of the canonical form with its header.
type section struct {
	header string
	lines  []string
}

// must makes the key required, or gives it a default in TOML, named another
// name.
func (k key[T]) must() key[T]             { k.required = true; return k }
func (k key[T]) or(toml string) key[T]    { k.fallback = toml; return k }
func (k key[T]) named(name string) key[T] { k.name = name; return k }

// always writes the key even where its value is the zero value.
func (k key[T]) always() key[T] {
	encode := k.encode
	k.encode = func(src *T) (string, bool) { text, _ := encode(src); return text, true }
	return k
}

// omitDefault is for keys that were added after plans had been run: their
// default is left out of the canonical form, so that the digests in journals of
// these runs stay valid.
func (k key[T]) omitDefault() key[T] {
	encode := k.encode
	k.encode = func(src *T) (string, bool) {
		text, ok := encode(src)
		return text, ok && text != k.fallback
	}
	return k
}

// recordErrors notes that the part of the plan has errors: checks that depend
// on it then do not report what follows from them.
func (k key[T]) recordErrors(part string) key[T] {
	decode := k.decode
	k.decode = func(r *reader, n *node, dst *T) {
		before := len(r.found)
		decode(r, n, dst)
		if len(r.found) > before {
			r.invalid[part] = true
		}
	}
	return k
}

// table is the set of keys of one TOML table.
type table[T any] struct {
	name string
	keys []key[T]
	open *openKeys[T]
	// finish: finish runs after all keys are read, to check conditions between
	// them.
	finish func(r *reader, n *node, dst *T)
}

// openKeys are keys of a table that are names themselves: quantities,
// requirements.
type openKeys[T any] struct {
	names func() []string
	// read: false: not such a name
	read func(r *reader, n *node, dst *T) bool
	json func(name string) map[string]any
}

// key is the row of that name, or nil.
func (t *table[T]) key(name string) *key[T] {
	for i := range t.keys {
		if t.keys[i].name == name {
			return &t.keys[i]
		}
	}
	return nil
}

// read decodes table n into dst: known keys, unknown keys, defaults, required
// keys.
func (t *table[T]) read(r *reader, n *node, dst *T) {
	if n.kind != tableNode {
		r.bad(n, "%s: want a table, this is %s", t.name, n.kind)
		return
	}
	for _, p := range n.pairs {
		if k := t.key(p.name); k != nil {
			k.decode(r, p, dst)
		} else if t.open == nil || !t.open.read(r, p, dst) {
			t.reportUnknown(r, p)
		}
	}
	for _, k := range t.keys {
		switch {
		case n.get(k.name) != nil:
		case k.required && !r.broken:
			r.problem(n.key, k.name, "%s: %q is missing", t.name, k.name)
		case k.fallback != "":
			k.decode(r, constant(k.fallback), dst)
		}
	}
	if t.finish != nil {
		t.finish(r, n, dst)
	}
}

// topKeys are the values of the top level, which have to come before its
// tables.
var topKeys = []string{"schema", "title", "summary", "choices"}

// reportUnknown reports a key that the table does not have, with the name that
// was probably meant.
func (t *table[T]) reportUnknown(r *reader, n *node) {
	p := r.badKey(n, "%s: unknown key %q", t.name, n.name)
	if len(r.found) >= maxProblems { // the hint is not shown, and looking for it is slow
		return
	}
	if slices.Contains(topKeys, n.name) {
		p.hintf("it is a key of the top level: put it before the first [table]")
		return
	}
	var names []string
	for _, k := range t.keys {
		names = append(names, k.name)
	}
	if t.open != nil {
		names = append(names, t.open.names()...)
	}
	p.suggest(n.name, "keys here: ", names)
}

// suggest hints at the name that was probably meant, or lists all.
func (p *Problem) suggest(name, list string, names []string) *Problem {
	if near := Nearest(name, names); near != "" {
		return p.hintf("did you mean %q?", near)
	}
	return p.hintf("%s%s", list, strings.Join(names, ", "))
}

// constant is the tree of one TOML value that the program itself writes.
func constant(toml string) *node { return newReader("", []byte("v = "+toml)).parseTree().get("v") }

// lines are the "key = value" lines of src.
func (t *table[T]) lines(src *T) []string {
	var out []string
	for _, k := range t.keys {
		if text, ok := k.encode(src); ok {
			out = append(out, tomlKey(k.name)+" = "+text)
		}
	}
	return out
}

// inline is src as an inline table.
func (t *table[T]) inline(src *T) string { return inlineOf(t.lines(src)) }

// inlineOf is an inline table of "key = value" texts.
func inlineOf(lines []string) string {
	if len(lines) == 0 {
		return "{}"
	}
	return "{ " + strings.Join(lines, ", ") + " }"
}

// scalar reads one value as its canonical text and reports what is wrong with
// it.
func (r *reader) scalar(n *node, name string, s *scalar) (string, bool) {
	text, bad := s.read(n)
	if bad != nil {
		r.invalidValue(n, name, bad)
	}
	return text, bad == nil
}

// invalidValue reports a value that its kind refuses.
func (r *reader) invalidValue(n *node, name string, bad *invalid) {
	r.problem(n.off, name, "%s: %s", name, bad.message).Hint = bad.hint
}

// field is a key with one value. The zero value is not written, unless it has a
// word of its own.
func field[T any, V comparable](name string, k kind[V], at func(*T) *V) key[T] {
	return key[T]{name: name, value: k.scalar,
		decode: func(r *reader, n *node, dst *T) {
			v, bad := k.parse(n)
			if bad != nil {
				r.invalidValue(n, name, bad)
				return
			}
			*at(dst) = v
		},
		encode: func(src *T) (string, bool) {
			var zero V
			text := k.text(*at(src))
			return k.toml(text), *at(src) != zero || k.name == sizeKind.name && text != ""
		},
		json: func() map[string]any { return k.json },
	}
}

// optional is a field that distinguishes its zero value from not given.
func optional[T any, V comparable](name string, k kind[V], at func(*T) **V) key[T] {
	out := field(name, k, func(t *T) *V {
		if *at(t) == nil {
			*at(t) = new(V)
		}
		return *at(t)
	})
	out.encode = func(src *T) (string, bool) {
		if *at(src) == nil {
			return "", false
		}
		return k.toml(k.text(**at(src))), true
	}
	return out
}

// list is a key with a list.
type list[T, U any] struct {
	name string
	// items: what they are, in the plural
	items string
	// low: fewest items
	low int
	// high: most items, 0: any number
	high int
	at   func(*T) *[]U
	// read: false: leave the item out
	read  func(r *reader, n *node, u *U) bool
	write func(u *U) string
	// lines: the canonical form has one line for each item
	lines bool
	// json: of an item
	json func() map[string]any
}

// key is the key of the list. The canonical form leaves out an empty list.
func (l list[T, U]) key() key[T] {
	return key[T]{name: l.name, typ: "list of " + l.items,
		decode: func(r *reader, n *node, dst *T) {
			var out []U
			for _, it := range r.list(n, l.name, l.items, l.low, l.high) {
				var u U
				if l.read(r, it, &u) {
					out = append(out, u)
				}
			}
			*l.at(dst) = out
		},
		encode: func(src *T) (string, bool) { return l.toml(*l.at(src)), len(*l.at(src)) > 0 },
		json: func() map[string]any {
			out := map[string]any{"type": "array", "items": l.json()}
			if l.low > 0 {
				out["minItems"] = l.low
			}
			if l.high > 0 {
				out["maxItems"] = l.high
			}
			return out
		}}
}

// toml writes the items, with lines each on a line of its own.
func (l list[T, U]) toml(items []U) string {
	texts := make([]string, len(items))
	for i := range items {
		texts[i] = l.write(&items[i])
	}
	if !l.lines {
		return "[" + strings.Join(texts, ", ") + "]"
	}
	return "[\n  " + strings.ReplaceAll(strings.Join(texts, ",\n"), "\n", "\n  ") + ",\n]"
}

// list is the items of a list of low to high items.
func (r *reader) list(n *node, name, items string, low, high int) []*node {
	switch {
	case n.kind != arrayNode:
		r.problem(n.off, name, "%s: want a list of %s, this is %s", name, items, n.kind).
			hintf("write it in brackets: [ … ]")
		return nil
	case len(n.items) == 0 && low > 0:
		r.problem(n.off, name, "%s: the list is empty", name)
	case len(n.items) < low:
		r.problem(n.off, name, "%s: want at least %d %s", name, low, items)
	case high > 0 && len(n.items) > high:
		r.problem(n.off, name, "%s: %d %s, more than %d", name, len(n.items), items, high)
		return nil
	}
	return n.items
}

// listField is a list of single values.
func listField[T, V any](name string, k kind[V], low int, at func(*T) *[]V) key[T] {
	items := map[string]string{"text": "text", "text or number": "text or numbers", "enum": "words"}[k.name]
	if items == "" {
		items = strings.TrimSuffix(k.name, "y") + "s"
	}
	out := list[T, V]{name: name, items: items, low: low, at: at,
		json: func() map[string]any { return k.json },
		read: func(r *reader, n *node, v *V) bool {
			value, bad := k.parse(n)
			if *v = value; bad != nil {
				r.invalidValue(n, name, bad)
			}
			return bad == nil
		},
		write: func(v *V) string { return k.toml(k.text(*v)) }}.key()
	out.value = k.scalar
	return out
}

// checkDistinct reports values that a list contains twice.
func (r *reader) checkDistinct(n *node, name string) {
	if n == nil {
		return
	}
	seen := map[string]bool{}
	for _, it := range n.items {
		id := it.kind.String() + it.text
		if seen[id] && it.kind != tableNode {
			r.problem(it.off, name, "%s: %s is listed twice", name, it.text)
		}
		seen[id] = true
	}
}

// tableField is a key with one table.
func tableField[T, U any](name string, t *table[U], at func(*T) *U, written func(*T) bool) key[T] {
	return key[T]{name: name, typ: "table",
		decode: func(r *reader, n *node, dst *T) { t.read(r, n, at(dst)) },
		encode: func(src *T) (string, bool) { return t.inline(at(src)), written(src) },
		json:   t.schema,
	}
}

// tables is a key with a list of tables, [[name]] at the top level.
func tables[T, U any](name, items string, t *table[U], at func(*T) *[]U) list[T, U] {
	return list[T, U]{name: name, items: items, at: at, lines: true, write: t.inline, json: t.schema,
		read: func(r *reader, n *node, u *U) bool { t.read(r, n, u); return true }}
}

// schemaReference is the JSON Schema of a value that $defs describes.
func schemaReference(name string) map[string]any { return map[string]any{"$ref": "#/$defs/" + name} }

// selectorField is a key with a selector; samples is whether keys such as phase
// are accepted.
func selectorField[T any](name string, samples bool, at func(*T) *Selector) key[T] {
	return key[T]{name: name, typ: "selector",
		decode: func(r *reader, n *node, dst *T) { *at(dst) = r.selector(n, name, samples) },
		encode: func(src *T) (string, bool) { return at(src).toml(), len(*at(src)) > 0 },
		json:   func() map[string]any { return schemaReference("selector") }}
}

// selectorList is a key with a list of selectors.
func selectorList[T any](name string, low int, samples bool, at func(*T) *[]Selector) list[T, Selector] {
	return list[T, Selector]{name: name, items: "selectors", low: low, at: at, write: (*Selector).toml,
		read: func(r *reader, n *node, s *Selector) bool { *s = r.selector(n, name, samples); return true },
		json: func() map[string]any { return schemaReference("selector") }}
}

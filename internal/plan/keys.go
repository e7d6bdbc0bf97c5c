package plan

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"dmgbench/internal/units"
)

// key is one key of a table: how it is read, written and described. These
// declarations are the single source of the decoder, the hints, the canonical
// form, the JSON Schema and the test of docs/plan-language.md.
type key[T any] struct {
	name     string
	typ      string // as docs/plan-language.md names it
	fallback string // default in TOML, "" if there is none
	required bool
	decode   func(r *reader, n *node, dst *T)
	encode   func(src *T) (string, bool) // TOML, and whether the key is to be written
	json     func() map[string]any
}

func (k key[T]) must() key[T]             { k.required = true; return k }
func (k key[T]) or(toml string) key[T]    { k.fallback = toml; return k }
func (k key[T]) named(name string) key[T] { k.name = name; return k }

// table is the set of keys of one TOML table.
type table[T any] struct {
	name string
	keys []key[T]
	// other takes keys that are not listed (axes, quantities, selectors) and reports whether it did.
	other func(r *reader, n *node, dst *T) bool
	// otherNames are what other accepts, for hints.
	otherNames func(r *reader) []string
	// finish runs when all keys are read, to check conditions between them.
	finish func(r *reader, n *node, dst *T)
	// otherJSON describes the keys that other takes.
	otherJSON func() (properties map[string]any, additional any)
}

func (t *table[T]) key(name string) *key[T] {
	for i := range t.keys {
		if t.keys[i].name == name {
			return &t.keys[i]
		}
	}
	return nil
}

// read decodes table n into dst: known keys, unknown keys, defaults, required keys.
func (t *table[T]) read(r *reader, n *node, dst *T) {
	if n.kind != tableNode {
		r.problem(n.off, n.name, "%s: want a table, this is %s", t.name, n.kind)
		return
	}
	for _, p := range n.pairs {
		if k := t.key(p.name); k != nil {
			k.decode(r, p, dst)
		} else if t.other == nil || !t.other(r, p, dst) {
			t.unknown(r, p)
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

// topKeys are the values of the top level, which have to come before its tables.
var topKeys = []string{"schema", "title", "summary", "choices"}

func (t *table[T]) unknown(r *reader, n *node) {
	var names []string
	for _, k := range t.keys {
		names = append(names, k.name)
	}
	if t.otherNames != nil {
		names = append(names, t.otherNames(r)...)
	}
	p := r.problem(n.key, n.name, "%s: unknown key %q", t.name, n.name)
	if len(r.found) >= maxProblems { // nobody reads the hint, and looking for it is slow
		return
	}
	near := Nearest(n.name, names)
	switch {
	case slices.Contains(topKeys, n.name):
		p.hintf("it is a key of the top level: put it before the first [table]")
	case near != "":
		p.hintf("did you mean %q?", near)
	default:
		p.hintf("keys here: %s", strings.Join(names, ", "))
	}
}

// constant is the tree of one TOML value that the program itself writes.
func constant(toml string) *node {
	r := newReader("", []byte("v = "+toml))
	return r.parseTree().get("v")
}

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

func inlineOf(lines []string) string {
	if len(lines) == 0 {
		return "{}"
	}
	return "{ " + strings.Join(lines, ", ") + " }"
}

// scalarKey is a key of one value with a canonical text.
func scalarKey[T any](name string, typ *scalar, set func(*T, string), get func(*T) (string, bool)) key[T] {
	return key[T]{name: name, typ: typ.name,
		decode: func(r *reader, n *node, dst *T) {
			if text, ok := r.scalar(n, name, typ); ok {
				set(dst, text)
			}
		},
		encode: func(src *T) (string, bool) {
			text, ok := get(src)
			return typ.toml(text), ok
		},
		json: func() map[string]any { return typ.json },
	}
}

// scalar reads one value and reports what is wrong with it.
func (r *reader) scalar(n *node, name string, typ *scalar) (string, bool) {
	text, f := typ.parse(n)
	if f != nil {
		r.problem(n.off, name, "%s: %s", name, f.message).Hint = f.hint
		return "", false
	}
	return text, true
}

// toml writes a canonical text as a TOML value.
func (s *scalar) toml(text string) string {
	if s.bare {
		return text
	}
	return tomlString(text)
}

func textKey[T any](name string, typ *scalar, f func(*T) *string) key[T] {
	return scalarKey(name, typ, func(t *T, s string) { *f(t) = s },
		func(t *T) (string, bool) { return *f(t), *f(t) != "" })
}

func enumKey[T any](name string, f func(*T) *string, words ...string) key[T] {
	return textKey(name, enumType(nil, words...), f)
}

func numberKey[T any](name string, low, high int64, f func(*T) *int) key[T] {
	return scalarKey(name, numberType(low, high),
		func(t *T, s string) { *f(t), _ = strconv.Atoi(s) },
		func(t *T) (string, bool) { return strconv.Itoa(*f(t)), *f(t) != 0 })
}

func sizeKey[T any](name string, typ *scalar, f func(*T) *units.Bytes) key[T] {
	zero := ""
	switch typ {
	case blockType:
		zero = "whole"
	case bandType:
		zero = "default"
	}
	return scalarKey(name, typ,
		func(t *T, s string) { *f(t), _ = units.ParseBytes(s) },
		func(t *T) (string, bool) {
			if *f(t) == 0 {
				return zero, zero != ""
			}
			return f(t).String(), true
		})
}

func timeKey[T any](name string, f func(*T) *units.Duration) key[T] {
	return scalarKey(name, timeType,
		func(t *T, s string) { *f(t), _ = units.ParseDuration(s) },
		func(t *T) (string, bool) { return f(t).String(), *f(t) != 0 })
}

// spanKey is a length of time above zero.
func spanKey[T any](name string, f func(*T) *units.Duration) key[T] {
	return scalarKey(name, spanType,
		func(t *T, s string) { *f(t), _ = units.ParseDuration(s) },
		func(t *T) (string, bool) { return f(t).String(), *f(t) != 0 })
}

func shareKey[T any](name string, f func(*T) *units.Share) key[T] {
	return scalarKey(name, shareType,
		func(t *T, s string) { *f(t), _ = units.ParseShare(s) },
		func(t *T) (string, bool) { return f(t).String(), *f(t) != 0 })
}

func flagKey[T any](name string, f func(*T) *bool) key[T] {
	return scalarKey(name, flagType, func(t *T, s string) { *f(t) = s == "true" },
		func(t *T) (string, bool) { return strconv.FormatBool(*f(t)), *f(t) })
}

// choiceKey is yes, no or not given.
func choiceKey[T any](name string, f func(*T) **bool) key[T] {
	return scalarKey(name, flagType, func(t *T, s string) { v := s == "true"; *f(t) = &v },
		func(t *T) (string, bool) {
			if *f(t) == nil {
				return "", false
			}
			return strconv.FormatBool(**f(t)), true
		})
}

func dateKey[T any](name string, f func(*T) *time.Time) key[T] {
	return scalarKey(name, dateType, func(t *T, s string) { *f(t), _ = time.Parse(time.DateOnly, s) },
		func(t *T) (string, bool) { return f(t).Format(time.DateOnly), !f(t).IsZero() })
}

// always writes the key even where its value is the zero value.
func (k key[T]) always() key[T] {
	encode := k.encode
	k.encode = func(src *T) (string, bool) { text, _ := encode(src); return text, true }
	return k
}

// listKey is a list of values of one type.
func listKey[T any](name string, typ *scalar, set func(*T, []string), get func(*T) []string) key[T] {
	return key[T]{name: name, typ: "list of " + typ.name,
		decode: func(r *reader, n *node, dst *T) {
			if n.kind != arrayNode {
				r.problem(n.off, name, "%s: want a list, this is %s", name, n.kind).hintf("write it in brackets: [ … ]")
				return
			}
			var out []string
			for _, it := range n.items {
				if text, ok := r.scalar(it, name, typ); ok {
					out = append(out, text)
				}
			}
			set(dst, out)
		},
		encode: func(src *T) (string, bool) {
			var out []string
			for _, v := range get(src) {
				out = append(out, typ.toml(v))
			}
			return "[" + strings.Join(out, ", ") + "]", len(out) > 0
		},
		json: func() map[string]any { return map[string]any{"type": "array", "items": typ.json} },
	}
}

// tableKey is a key that holds one table.
func tableKey[T, U any](name string, inner func() *table[U], at func(*T) *U, written func(*T) bool) key[T] {
	return key[T]{name: name, typ: "table",
		decode: func(r *reader, n *node, dst *T) { inner().read(r, n, at(dst)) },
		encode: func(src *T) (string, bool) {
			if !written(src) {
				return "", false
			}
			return inner().inline(at(src)), true
		},
		json: func() map[string]any { return inner().schema() },
	}
}

// tablesKey is a key that holds a list of tables.
func tablesKey[T, U any](name string, inner func() *table[U], at func(*T) *[]U) key[T] {
	return key[T]{name: name, typ: "list of tables",
		decode: func(r *reader, n *node, dst *T) {
			if n.kind != arrayNode {
				r.problem(n.off, name, "%s: want a list of tables, this is %s", name, n.kind).hintf("write it as [ { … }, { … } ]")
				return
			}
			out := make([]U, 0, len(n.items))
			for _, it := range n.items {
				var u U
				inner().read(r, it, &u)
				out = append(out, u)
			}
			*at(dst) = out
		},
		encode: func(src *T) (string, bool) {
			return tomlList(inner(), *at(src)), len(*at(src)) > 0
		},
		json: func() map[string]any {
			return map[string]any{"type": "array", "items": inner().schema()}
		},
	}
}

// tomlList writes tables one below the other.
func tomlList[U any](t *table[U], items []U) string {
	var b strings.Builder
	b.WriteString("[\n")
	for i := range items {
		fmt.Fprintf(&b, "  %s,\n", strings.ReplaceAll(t.inline(&items[i]), "\n", "\n  "))
	}
	b.WriteString("]")
	return b.String()
}

package plan

import (
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// place is one value of a plan with what the schema says of it.
type place struct {
	schema map[string]any
	parent *node // table or list that holds it
	at     int   // its position there
	path   string
}

// schemaWalk goes through a plan and its schema side by side.
type schemaWalk struct {
	root   map[string]any
	seen   map[string]bool // keys of the schema that the plan has
	places []place         // of single values
}

// schemaRoot is the schema as a walk reads it.
var schemaRoot = sync.OnceValue(func() (root map[string]any) {
	if err := json.Unmarshal(JSONSchema(), &root); err != nil {
		panic(err)
	}
	return root
})

func newWalk() *schemaWalk { return &schemaWalk{root: schemaRoot(), seen: map[string]bool{}} }

func (w *schemaWalk) resolve(s map[string]any, path string) (map[string]any, string) {
	if ref, ok := s["$ref"].(string); ok {
		name := strings.TrimPrefix(ref, "#/$defs/")
		return w.root["$defs"].(map[string]any)[name].(map[string]any), name
	}
	return s, path
}

// shape picks the alternative that the value is meant to be.
func shape(s map[string]any, n *node) (map[string]any, string) {
	for _, one := range alternatives(s["oneOf"]) { // a step: its do says which
		if do := n.get("do"); do != nil && one["properties"].(map[string]any)["do"].(map[string]any)["const"] == do.text {
			return one, "." + do.text
		}
	}
	for _, one := range alternatives(s["anyOf"]) { // a value or a list of them
		if (one["type"] == "array") == (n.kind == arrayNode) {
			return one, ""
		}
	}
	return s, ""
}

func alternatives(v any) []map[string]any {
	var out []map[string]any
	if items, ok := v.([]any); ok {
		for _, it := range items {
			out = append(out, it.(map[string]any))
		}
	}
	return out
}

func (w *schemaWalk) walk(s map[string]any, n *node, path string, parent *node, at int) {
	s, path = w.resolve(s, path)
	s, more := shape(s, n)
	path += more
	switch n.kind {
	case tableNode:
		properties, _ := s["properties"].(map[string]any)
		for i, p := range n.pairs {
			if inner, ok := properties[p.name].(map[string]any); ok {
				w.seen[path+"/"+p.name] = true
				w.walk(inner, p, path+"/"+p.name, n, i)
			} else if inner, ok := s["additionalProperties"].(map[string]any); ok {
				w.walk(inner, p, path+"/*", n, i)
			}
		}
	case arrayNode:
		if inner, ok := s["items"].(map[string]any); ok {
			for i, it := range n.items {
				w.walk(inner, it, path, n, i)
			}
		}
	default:
		w.places = append(w.places, place{s, parent, at, path})
	}
}

// keys lists every key of the schema.
func (w *schemaWalk) keys(s map[string]any, path string, out map[string]bool) {
	if _, ref := s["$ref"]; ref {
		return // each definition is listed once
	}
	for _, one := range alternatives(s["oneOf"]) {
		w.keys(one, path+"."+one["properties"].(map[string]any)["do"].(map[string]any)["const"].(string), out)
	}
	for _, one := range alternatives(s["anyOf"]) {
		w.keys(one, path, out)
	}
	for _, inner := range []string{"items", "additionalProperties"} {
		if m, ok := s[inner].(map[string]any); ok {
			suffix := map[string]string{"additionalProperties": "/*"}[inner]
			w.keys(m, path+suffix, out)
		}
	}
	if properties, ok := s["properties"].(map[string]any); ok {
		for name, inner := range properties {
			out[path+"/"+name] = true
			w.keys(inner.(map[string]any), path+"/"+name, out)
		}
	}
}

func (w *schemaWalk) all() []string {
	out := map[string]bool{}
	w.keys(w.root, "", out)
	for name, def := range w.root["$defs"].(map[string]any) {
		w.keys(def.(map[string]any), name, out)
	}
	return slices.Sorted(maps.Keys(out))
}

func treeOf(t require.TestingT, file string) *node {
	text, err := os.ReadFile(file)
	require.NoError(t, err)
	r := newReader(file, text)
	root := r.parseTree()
	require.Empty(t, r.found)
	return root
}

// toml writes a tree as TOML again, all of it inline.
func (n *node) toml() string {
	var parts []string
	switch n.kind {
	case stringNode:
		return tomlString(n.text)
	case arrayNode:
		for _, it := range n.items {
			parts = append(parts, it.toml())
		}
		return "[" + strings.Join(parts, ", ") + "]"
	case tableNode:
		for _, p := range n.pairs {
			parts = append(parts, tomlKey(p.name)+" = "+p.toml())
		}
		return inlineOf(parts)
	}
	return n.text
}

func document(root *node) []byte {
	var b strings.Builder
	for _, p := range root.pairs {
		fmt.Fprintf(&b, "%s = %s\n", tomlKey(p.name), p.toml())
	}
	return []byte(b.String())
}

// TestGoodPlansHoldEveryKey: the plans that the properties below start from use
// every key of the schema, so that none is left out of them.
func TestGoodPlansHoldEveryKey(t *testing.T) {
	files, err := filepath.Glob("testdata/good/*.toml")
	require.NoError(t, err)
	w := newWalk()
	for _, file := range files {
		w.walk(w.root, treeOf(t, file), "", nil, 0)
	}
	all := w.all()
	assert.Greater(t, len(all), 300)
	for _, key := range all {
		assert.True(t, w.seen[key], "no plan in testdata/good has the key %s", key)
	}
	for key := range w.seen {
		assert.Contains(t, all, key)
	}
}

// other values of a place, as the schema allows them.
func (p place) others() []string {
	var out []string
	if words, ok := p.schema["enum"].([]any); ok {
		for _, word := range words {
			out = append(out, tomlString(word.(string)))
		}
	}
	if low, ok := p.schema["minimum"].(float64); ok {
		high := p.schema["maximum"].(float64)
		if slices.Contains([]string{"times", "sets", "count"}, p.path[strings.LastIndexByte(p.path, '/')+1:]) {
			high = 50 // large_test.go has the limits of what is followed step by step
		}
		out = append(out, fmt.Sprintf("%.0f", low), fmt.Sprintf("%.0f", min(low+1, high)), fmt.Sprintf("%.0f", min(high, 1<<53)))
	}
	if p.schema["type"] == "boolean" {
		out = append(out, "true", "false")
	}
	return out
}

func (p place) set(toml string) (undo func()) {
	hold := &p.parent.items
	if p.parent.kind == tableNode {
		hold = &p.parent.pairs
	}
	old := (*hold)[p.at]
	v := *newReader("", []byte("v = "+toml)).parseTree().get("v")
	v.name = old.name
	(*hold)[p.at] = &v
	return func() { (*hold)[p.at] = old }
}

// again reads a plan and, if it is one, its canonical form.
func again(t require.TestingT, text []byte) bool {
	p, problems := Parse("drawn.toml", text)
	if p == nil {
		require.NotEmpty(t, problems.Errors())
		return false
	}
	canonical := p.Canonical()
	q, problems := Parse("drawn.toml", canonical)
	require.Empty(t, problems.Errors(), "%s\n%s", text, canonical)
	forget := func(p *Plan) *Plan {
		for _, b := range p.Protocol {
			walk(b.Steps, func(s *Step) { s.Line, s.Column = 0, 0 })
		}
		return p
	}
	require.Equal(t, forget(p), forget(q), "%s", text)
	return true
}

// part is a plan with the values in it that are to be changed.
type part struct{ plan, changed *node }

// partsOf cuts a plan into plans that are read faster: one of the tables that others depend on, and
// one of each claim, figure, table and relation. What is no plan by itself, such as an author's claim
// without its figure, stays in the whole plan.
func partsOf(root *node) (out []part) {
	core := &node{kind: tableNode}
	var ends []*node
	for _, p := range root.pairs {
		if !slices.Contains([]string{"published", "claim", "table", "relation"}, p.name) {
			core.add(p)
			continue
		}
		for _, it := range p.items {
			end := &node{kind: tableNode}
			end.add(&node{kind: arrayNode, name: p.name, items: []*node{it}})
			ends = append(ends, end)
		}
	}
	for _, end := range append(ends, core) {
		one := &node{kind: tableNode, pairs: slices.Concat(core.pairs, end.pairs)}
		if end == core {
			one = core
		}
		if p, _ := Parse("part.toml", document(one)); p == nil {
			one = root
		}
		out = append(out, part{one, end})
	}
	return out
}

// TestEveryValueRoundTrips sets each single value of the good plans to each
// other value that the schema allows.
func TestEveryValueRoundTrips(t *testing.T) {
	files, err := filepath.Glob("testdata/good/*.toml")
	require.NoError(t, err)
	var parts []part
	for _, file := range files {
		root := treeOf(t, file)
		require.True(t, again(t, document(root)), file)
		parts = append(parts, partsOf(root)...)
	}
	slices.SortStableFunc(parts, func(a, b part) int { return len(document(a.plan)) - len(document(b.plan)) }) // the fastest first
	plans := 0
	done := map[string]bool{}
	for _, one := range parts {
		w := newWalk()
		w.walk(w.root, one.changed, "", nil, 0)
		for _, p := range w.places {
			for _, v := range p.others() {
				if id := p.path + v; !done[id] {
					undo := p.set(v)
					if again(t, document(one.plan)) {
						plans, done[id] = plans+1, true
					}
					undo()
				}
			}
		}
	}
	assert.Greater(t, plans, 500)
	t.Logf("%d other values made plans", plans)
}

// TestDrawnPlansRoundTrip changes several values at once and leaves out keys.
func TestDrawnPlansRoundTrip(t *testing.T) {
	plans := 0
	rapid.Check(t, func(rt *rapid.T) {
		root := treeOf(rt, "testdata/good/"+rapid.SampledFrom([]string{"everything", "axes", "repair", "threads"}).Draw(rt, "base")+".toml")
		for range rapid.IntRange(1, 5).Draw(rt, "changes") {
			w := newWalk()
			w.walk(w.root, root, "", nil, 0)
			p := w.places[rapid.IntRange(0, len(w.places)-1).Draw(rt, "place")]
			values := p.others()
			if len(values) == 0 { // leave it out
				if p.parent.kind == tableNode {
					gone := p.parent.pairs[p.at].name
					p.parent.pairs = slices.Delete(slices.Clone(p.parent.pairs), p.at, p.at+1)
					delete(p.parent.index, gone)
				}
				continue
			}
			p.set(rapid.SampledFrom(values).Draw(rt, "value"))
		}
		if again(rt, document(root)) {
			plans++
		}
	})
	assert.Positive(t, plans)
	t.Logf("%d of the texts were plans", plans)
}

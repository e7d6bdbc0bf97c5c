package plan

import (
	"bytes"
	"errors"
	"strings"

	"github.com/pelletier/go-toml/v2/unstable"
)

// nodeKind is the TOML type of a value.
type nodeKind int

const (
	stringNode nodeKind = iota
	intNode
	floatNode
	boolNode
	dateNode
	timeNode // any date or time that is not a plain day
	arrayNode
	tableNode
)

// String names the type as a person would.
func (k nodeKind) String() string {
	return [...]string{"text", "a whole number", "a decimal number", "a yes/no value", "a date", "a time of day",
		"a list", "a table"}[k]
}

// node is one value of the plan file with its place in the text.
type node struct {
	kind nodeKind
	// text: of a string its value, of another scalar the token as written
	text string
	// off: byte offset of the value
	off int
	// key: byte offset of the key, or of the value where there is none
	key int
	// name: the key, of items that of their list
	name  string
	items []*node
	// pairs: of a table, in the order written
	pairs []*node
	index map[string]*node

	// invalid: decoding found errors inside: it is not checked further, since
	// more findings would follow from these errors
	invalid bool
	// origin: decides what may still be added to a table
	origin tableOrigin
}

// tableOrigin is the syntax that made a table or list.
type tableOrigin int

const (
	implicitTable tableOrigin = iota // the [a] of a header [a.b]
	headerTable                      // [a]
	dottedTable                      // the a of a key a.b = 1
	inlineTable                      // { … }, closed
	tableList                        // the list that [[a]] makes
	plainList                        // [ … ], closed
)

// get is the value of one key of a table, or nil.
func (n *node) get(name string) *node {
	if n == nil {
		return nil
	}
	return n.index[name]
}

// add appends a value under its name.
func (n *node) add(child *node) *node {
	if n.index == nil {
		n.index = map[string]*node{}
	}
	n.pairs, n.index[child.name] = append(n.pairs, child), child
	return child
}

// at walks keys (string) and indexes (int) and returns the deepest value that
// exists on the way, so that a problem always has a place: the start of the
// text where there is no tree.
func (n *node) at(path ...any) *node {
	if n == nil {
		return &node{}
	}
	here := n
	for _, step := range path {
		var next *node
		switch s := step.(type) {
		case string:
			next = here.get(s)
		case int:
			if s >= 0 && s < len(here.items) {
				next = here.items[s]
			}
		}
		if next == nil {
			return here
		}
		here = next
	}
	return here
}

// treeBuilder builds the tree from the parser's expressions, and enforces the
// rules of TOML that a parser of single expressions cannot see: no key twice,
// no table opened twice, no key added to a closed value.
type treeBuilder struct {
	r      *reader
	parser unstable.Parser
	// root: of the whole file
	root *node
	// table: that key-value lines go to; nil after an invalid header
	table *node
}

// parseTree turns the text into a tree. It ends at the first syntax error,
// which is reported.
func (r *reader) parseTree() *node {
	g := treeBuilder{r: r, root: &node{kind: tableNode, origin: headerTable}}
	g.table = g.root
	g.parser.Reset(r.text[r.bom:])
	for g.parser.NextExpression() {
		g.addExpression(g.parser.Expression())
	}
	if err := g.parser.Error(); err != nil {
		g.reportSyntax(err)
	}
	return g.root
}

// reportSyntax reports a parser error.
func (g *treeBuilder) reportSyntax(err error) {
	at, message := len(g.r.text), err.Error()
	if pe, ok := errors.AsType[*unstable.ParserError](err); ok {
		message = pe.Message
		if off := cap(g.parser.Data()) - cap(pe.Highlight); pe.Highlight != nil && off >= 0 {
			at = min(g.r.bom+off, at)
		}
	}
	g.r.broken = true
	g.r.problem(at, "", "the text is not valid TOML: %s", strings.TrimPrefix(message, "toml: ")).
		hintf("text and values with units are in straight quotes, such as \"100 GB\"; flags are true or false; " +
			"keys are made of letters a to z, digits, _ and -")
}

// addExpression adds one line of the text to the tree. Lines after an invalid
// header are skipped.
func (g *treeBuilder) addExpression(n *unstable.Node) {
	switch n.Kind {
	case unstable.KeyValue:
		if g.table != nil {
			g.addKeyValue(g.table, n)
		}
	case unstable.Table, unstable.ArrayTable:
		parts := g.keyParts(n.Key())
		last := parts[len(parts)-1]
		if g.table = g.descend(g.root, parts[:len(parts)-1], implicitTable); g.table != nil {
			g.table = g.openTable(g.table, last, n.Kind == unstable.ArrayTable)
		}
	}
}

// keyPart is one piece of a dotted key with its place in the text.
type keyPart struct {
	name     string
	off, end int
}

// keyParts are the pieces of a dotted key.
func (g *treeBuilder) keyParts(it unstable.Iterator) []keyPart {
	var out []keyPart
	for it.Next() {
		k := it.Node()
		off := g.r.bom + int(k.Raw.Offset)
		out = append(out, keyPart{string(k.Data), off, off + int(k.Raw.Length)})
	}
	return out
}

// descend follows the first parts of a dotted key from t and makes the tables
// that are missing: implicit ones for a header, dotted ones for a value, which
// cannot be inside other tables. It is nil where a part cannot be entered.
func (g *treeBuilder) descend(t *node, parts []keyPart, origin tableOrigin) *node {
	for _, p := range parts {
		next := t.get(p.name)
		switch {
		case next == nil:
			next = t.add(&node{kind: tableNode, name: p.name, key: p.off, off: p.off, origin: origin})
		case origin == implicitTable && next.origin == tableList:
			next = next.items[len(next.items)-1]
		case next.kind != tableNode, next.origin == inlineTable,
			origin == dottedTable && next.origin != dottedTable:
			g.reportTaken(p, next)
			return nil
		}
		t = next
	}
	return t
}

// openTable opens the table [p] of t, or adds an item to the list [[p]].
func (g *treeBuilder) openTable(t *node, p keyPart, list bool) *node {
	old, opened := t.get(p.name), &node{kind: tableNode, name: p.name, key: p.off, off: p.off, origin: headerTable}
	switch {
	case list && old == nil:
		old = t.add(&node{kind: arrayNode, name: p.name, key: p.off, off: p.off, origin: tableList})
		fallthrough
	case list && old.origin == tableList:
		old.items = append(old.items, opened)
	case !list && old == nil:
		t.add(opened)
	case !list && old.kind == tableNode && old.origin == implicitTable:
		old.origin, old.key, old.off = headerTable, p.off, p.off
		return old
	default:
		g.reportTaken(p, old)
		return nil
	}
	return opened
}

// reportTaken reports a key or table that the text has twice.
func (g *treeBuilder) reportTaken(p keyPart, old *node) {
	line, _ := g.r.place(old.key)
	g.r.problem(p.off, p.name, "%q is given twice", p.name).hintf("the first is on line %d", line)
}

// addKeyValue adds key = value to table t; the key may be dotted.
func (g *treeBuilder) addKeyValue(t *node, n *unstable.Node) {
	parts := g.keyParts(n.Key())
	last := parts[len(parts)-1]
	if t = g.descend(t, parts[:len(parts)-1], dottedTable); t == nil {
		return
	}
	if old := t.get(last.name); old != nil {
		g.reportTaken(last, old)
		return
	}
	v := g.convert(n.Value(), last.name, g.afterEquals(last.end))
	v.key = last.off
	t.add(v)
}

// afterEquals is the place of the value of a key that ends at off; the parser
// gives lists no position of their own.
func (g *treeBuilder) afterEquals(off int) int {
	rest := bytes.TrimLeft(g.r.text[off:], " \t")
	rest = bytes.TrimLeft(bytes.TrimPrefix(rest, []byte("=")), " \t")
	return len(g.r.text) - len(rest)
}

var scalarKinds = map[unstable.Kind]nodeKind{
	unstable.String: stringNode, unstable.Integer: intNode, unstable.Float: floatNode, unstable.Bool: boolNode,
	unstable.LocalDate: dateNode, unstable.LocalTime: timeNode, unstable.LocalDateTime: timeNode,
	unstable.DateTime: timeNode,
}

// convert copies one value out of the parser's memory. The items of a list have
// its name; off is the place of a list.
func (g *treeBuilder) convert(n *unstable.Node, name string, off int) *node {
	out := &node{kind: arrayNode, name: name, origin: plainList}
	if n.Kind != unstable.Array {
		off = g.r.bom + int(n.Raw.Offset)
	}
	out.off, out.key = off, off
	switch n.Kind {
	case unstable.Array:
		for it := n.Children(); it.Next(); {
			out.items = append(out.items, g.convert(it.Node(), name, off))
		}
	case unstable.InlineTable:
		out.kind, out.origin = tableNode, inlineTable
		for it := n.Children(); it.Next(); {
			g.addKeyValue(out, it.Node())
		}
	default:
		out.kind, out.text = scalarKinds[n.Kind], string(n.Data)
	}
	return out
}

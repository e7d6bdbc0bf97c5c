package plan

import (
	"errors"
	"strings"

	"github.com/pelletier/go-toml/v2"
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
	// off: byte offset of the value; of a list, whose place the parser does not
	// keep, of its key
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
}

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

// parseTree turns the text into a tree. Before it go-toml's decoder checks the
// syntax, and that no key or table is given twice; its first error is reported.
func (r *reader) parseTree() *node {
	root := &node{kind: tableNode}
	if err := toml.Unmarshal(r.text[r.bom:], &struct{}{}); err != nil {
		r.reportSyntax(err)
		return root
	}
	var parser unstable.Parser
	parser.Reset(r.text[r.bom:])
	table := root
	for parser.NextExpression() {
		line := parser.Expression()
		if line.Kind == unstable.KeyValue {
			r.addKeyValue(table, line)
			continue
		}
		parts := r.keyTables(line.Key())
		last := parts[len(parts)-1]
		if line.Kind == unstable.Table {
			table = root.descend(parts)
			table.key, table.off = last.key, last.off // of one that [a.b] has made before [a]
			continue
		}
		parent := root.descend(parts[:len(parts)-1])
		list := parent.get(last.name)
		if list == nil {
			list = parent.add(&node{kind: arrayNode, name: last.name, key: last.key, off: last.off})
		}
		table = last
		list.items = append(list.items, table)
	}
	return root
}

// reportSyntax reports an error of go-toml's decoder.
func (r *reader) reportSyntax(err error) {
	at := len(r.text)
	if bad, ok := errors.AsType[*toml.DecodeError](err); ok {
		line, column := bad.Position()
		at = r.lines[min(line, len(r.lines))-1] + column - 1
		if line == 1 {
			at += r.bom
		}
	}
	r.broken = true
	r.problem(at, "", "the text is not valid TOML: %s", strings.TrimPrefix(err.Error(), "toml: ")).
		hintf("text and values with units are in straight quotes, such as \"100 GB\"; flags are true or false; " +
			"keys are made of letters a to z, digits, _ and -, each once; the file is text in UTF-8")
}

// keyTables are the parts of a dotted key, as the tables that they may name.
func (r *reader) keyTables(it unstable.Iterator) (out []*node) {
	for it.Next() {
		off := r.bom + int(it.Node().Raw.Offset)
		out = append(out, &node{kind: tableNode, name: string(it.Node().Data), key: off, off: off})
	}
	return out
}

// descend follows the parts of a dotted key and makes the tables that are
// missing. Of a list of tables it enters the last.
func (n *node) descend(parts []*node) *node {
	for _, p := range parts {
		next := n.get(p.name)
		if next == nil {
			next = n.add(p)
		}
		if next.kind == arrayNode {
			next = next.items[len(next.items)-1]
		}
		n = next
	}
	return n
}

// addKeyValue adds key = value to a table; the key may be dotted.
func (r *reader) addKeyValue(t *node, line *unstable.Node) {
	parts := r.keyTables(line.Key())
	last := parts[len(parts)-1]
	t.descend(parts[:len(parts)-1]).add(r.convert(line.Value(), last.name, last.key))
}

var scalarKinds = map[unstable.Kind]nodeKind{
	unstable.String: stringNode, unstable.Integer: intNode, unstable.Float: floatNode, unstable.Bool: boolNode,
	unstable.LocalDate: dateNode, unstable.LocalTime: timeNode, unstable.LocalDateTime: timeNode,
	unstable.DateTime: timeNode,
}

// convert copies the value of a key out of the parser's memory.
func (r *reader) convert(v *unstable.Node, name string, key int) *node {
	out := &node{kind: arrayNode, name: name, key: key, off: key}
	if v.Kind != unstable.Array {
		out.kind, out.off = scalarKinds[v.Kind], r.bom+int(v.Raw.Offset)
	}
	switch v.Kind {
	case unstable.Array:
		for it := v.Children(); it.Next(); {
			item := r.convert(it.Node(), name, key)
			item.key = item.off
			out.items = append(out.items, item)
		}
	case unstable.InlineTable:
		out.kind = tableNode
		for it := v.Children(); it.Next(); {
			r.addKeyValue(out, it.Node())
		}
	default:
		out.text = string(v.Data)
	}
	return out
}

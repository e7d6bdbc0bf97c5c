package plan

import (
	"bytes"
	"errors"
	"fmt"
	"regexp"
	"strings"
	"unicode"
	"unicode/utf8"

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
	// name: the key, "" for items of a list
	name  string
	items []*node
	// pairs: of a table, in the order written
	pairs []*node
	index map[string]*node

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
	// base: offset of the parser's input in the text
	base int
	// root: of the whole file
	root *node
	// table: that key-value lines go to; nil after an invalid header
	table *node
}

// parseTree turns the text into a tree. After a syntax error, which is
// reported, it continues at the next table header, so that one mistake does not
// hide the others.
func (r *reader) parseTree() *node {
	g := treeBuilder{r: r, root: &node{kind: tableNode, origin: headerTable}}
	g.table = g.root
	for g.base = r.bom; g.base < len(r.text); {
		g.parser.Reset(r.text[g.base:])
		for g.parser.NextExpression() {
			g.addExpression(g.parser.Expression())
		}
		err := g.parser.Error()
		if err == nil {
			break
		}
		r.broken = true
		at := g.reportSyntax(err)
		next := nextHeader(r.text, at)
		if next < 0 {
			break
		}
		g.base = next
	}
	return g.root
}

// syntax reports a parser error and returns its offset in the text.
func (g *treeBuilder) reportSyntax(err error) int {
	at := len(g.r.text)
	message := err.Error()
	if pe, ok := errors.AsType[*unstable.ParserError](err); ok {
		message = pe.Message
		if off, ok := subslice(g.parser.Data(), pe.Highlight); ok {
			at = g.base + off
		}
	}
	message = strings.TrimPrefix(message, "toml: ")
	if c, n := utf8.DecodeRune(g.r.text[at:]); n > 1 { // the parser names the first byte of what is one character
		message = oneByte.ReplaceAllLiteralString(message, fmt.Sprintf("%#U", c))
	}
	g.r.problem(at, "", "the text is not valid TOML: %s", message).Hint = syntaxHint(g.r.text, at, message)
	return at
}

var oneByte = regexp.MustCompile(`U\+00[89A-F][0-9A-F]( '.')?`)

// syntaxHint guesses what was meant from where the parser stopped.
func syntaxHint(text []byte, at int, message string) string {
	start := bytes.LastIndexByte(text[:at], '\n') + 1
	line := strings.TrimSpace(string(text[start:at]))
	c, n := utf8.DecodeRune(text[at:])
	switch {
	case n > 0 && strings.ContainsRune("“”„‘’", c):
		return "write straight quotes: \""
	case bytes.HasPrefix(text[at:], []byte("True")) || bytes.HasPrefix(text[at:], []byte("False")):
		return "write true or false"
	case strings.Contains(message, "expected newline") && unicode.IsLetter(c):
		return "write a value of several words in quotes, such as \"100 GB\""
	case strings.HasSuffix(line, "=") && (unicode.IsLetter(c) || unicode.IsDigit(c)):
		return "write text in quotes: \"…\""
	case (strings.Contains(message, "start of key") || strings.Contains(message, "after key")) && c > unicode.MaxASCII:
		return "keys are made of letters a to z, digits, _ and -"
	}
	return ""
}

// subslice is the offset of part in whole, if part is inside it.
func subslice(whole, part []byte) (int, bool) {
	off := cap(whole) - cap(part)
	if part == nil || off < 0 || off > len(whole) {
		return 0, false
	}
	return off, true
}

// nextHeader finds the first line after at that opens a table, or -1.
func nextHeader(text []byte, at int) int {
	for at < len(text) {
		i := bytes.IndexByte(text[at:], '\n')
		if i < 0 {
			return -1
		}
		at += i + 1
		line, _, _ := bytes.Cut(text[at:], []byte("\n"))
		line = bytes.TrimSpace(line)
		if bytes.HasPrefix(line, []byte("[")) && bytes.HasSuffix(bytes.SplitN(line, []byte("#"), 2)[0], []byte("]")) {
			return at
		}
	}
	return -1
}

// addExpression adds one line of the text to the tree. Lines after an invalid
// header are skipped.
func (g *treeBuilder) addExpression(n *unstable.Node) {
	switch n.Kind {
	case unstable.KeyValue:
		if g.table != nil {
			g.addKeyValue(g.table, n)
		}
	case unstable.Table:
		g.table = g.openTable(n, false)
	case unstable.ArrayTable:
		g.table = g.openTable(n, true)
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
		off := g.base + int(k.Raw.Offset)
		out = append(out, keyPart{string(k.Data), off, off + int(k.Raw.Length)})
	}
	return out
}

// openTable opens [a.b] or adds an item to [[a.b]] and returns the table.
func (g *treeBuilder) openTable(n *unstable.Node, list bool) *node {
	parts := g.keyParts(n.Key())
	t := g.root
	for _, p := range parts[:len(parts)-1] {
		next := t.get(p.name)
		switch {
		case next == nil:
			next = t.add(&node{kind: tableNode, name: p.name, key: p.off, off: p.off})
		case next.origin == tableList:
			next = next.items[len(next.items)-1]
		case next.kind != tableNode || next.origin == inlineTable:
			g.reportTaken(p, next)
			return nil
		}
		t = next
	}
	last := parts[len(parts)-1]
	old := t.get(last.name)
	if list {
		return g.addItem(t, old, last)
	}
	if old == nil {
		return t.add(&node{kind: tableNode, name: last.name, key: last.off, off: last.off, origin: headerTable})
	}
	if old.kind != tableNode || old.origin != implicitTable {
		g.reportTaken(last, old)
		return nil
	}
	old.origin, old.key, old.off = headerTable, last.off, last.off
	return old
}

// addItem adds a table to a list of tables [[a]].
func (g *treeBuilder) addItem(t, old *node, p keyPart) *node {
	if old == nil {
		old = t.add(&node{kind: arrayNode, name: p.name, key: p.off, off: p.off, origin: tableList})
	}
	if old.origin != tableList {
		g.reportTaken(p, old)
		return nil
	}
	it := &node{kind: tableNode, key: p.off, off: p.off, origin: headerTable}
	old.items = append(old.items, it)
	return it
}

// reportTaken reports a key or table that the text has twice.
func (g *treeBuilder) reportTaken(p keyPart, old *node) {
	line, _ := g.r.place(old.key)
	g.r.problem(p.off, p.name, "%q is given twice", p.name).hintf("the first is on line %d", line)
}

// addKeyValue adds key = value to table t; the key may be dotted.
func (g *treeBuilder) addKeyValue(t *node, n *unstable.Node) {
	parts := g.keyParts(n.Key())
	for _, p := range parts[:len(parts)-1] {
		next := t.get(p.name)
		switch {
		case next == nil:
			next = t.add(&node{kind: tableNode, name: p.name, key: p.off, off: p.off, origin: dottedTable})
		case next.kind != tableNode || next.origin != dottedTable:
			g.reportTaken(p, next)
			return
		}
		t = next
	}
	last := parts[len(parts)-1]
	if old := t.get(last.name); old != nil {
		g.reportTaken(last, old)
		return
	}
	v := g.convert(n.Value(), g.afterEquals(last.end))
	v.name, v.key = last.name, last.off
	t.add(v)
}

// afterEquals is where the value of a key that ends at off begins; the parser
// gives lists no position of their own.
func (g *treeBuilder) afterEquals(off int) int {
	text := g.r.text
	for off < len(text) && (text[off] == ' ' || text[off] == '\t') {
		off++
	}
	if off < len(text) && text[off] == '=' {
		off++
	}
	for off < len(text) && (text[off] == ' ' || text[off] == '\t') {
		off++
	}
	return off
}

var scalarKinds = map[unstable.Kind]nodeKind{
	unstable.String: stringNode, unstable.Integer: intNode, unstable.Float: floatNode, unstable.Bool: boolNode,
	unstable.LocalDate: dateNode, unstable.LocalTime: timeNode, unstable.LocalDateTime: timeNode,
	unstable.DateTime: timeNode,
}

// convert copies one value out of the parser's memory.
func (g *treeBuilder) convert(n *unstable.Node, off int) *node {
	switch n.Kind {
	case unstable.Array:
		out := &node{kind: arrayNode, off: off, key: off, origin: plainList}
		for it := n.Children(); it.Next(); {
			out.items = append(out.items, g.convert(it.Node(), off))
		}
		return out
	case unstable.InlineTable:
		off = g.base + int(n.Raw.Offset)
		out := &node{kind: tableNode, off: off, key: off, origin: inlineTable}
		for it := n.Children(); it.Next(); {
			g.addKeyValue(out, it.Node())
		}
		return out
	}
	off = g.base + int(n.Raw.Offset)
	return &node{kind: scalarKinds[n.Kind], text: string(n.Data), off: off, key: off}
}

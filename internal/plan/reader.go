package plan

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/pelletier/go-toml/v2"
	"github.com/pelletier/go-toml/v2/unstable"
)

const (
	// maxProblems bounds how many findings are kept: more are not useful to a
	// reader.
	maxProblems = 100
	// maxMessage bounds the characters of a message.
	maxMessage = 300
)

// Problem is one finding about a plan.
type Problem struct {
	File string
	// Line, Column: from 1; columns count characters
	Line, Column int
	// Key: the key it is about, may be empty
	Key     string
	Message string
	// Hint: what would be right, may be empty
	Hint string
	// Excerpt: the line, and below it a caret under the column
	Excerpt string
	// Warning: the plan can be run in spite of it
	Warning bool
	// Refused: of a warning: check and run refuse the plan, a report of an
	// earlier run does not
	Refused bool
}

// String is "file:line:column: message" with excerpt and hint on lines of their
// own.
func (p Problem) String() string {
	text := p.Message
	if p.Warning && !p.Refused {
		text = "warning: " + text
	}
	if p.Excerpt != "" {
		text += "\n" + p.Excerpt
	}
	if p.Hint != "" {
		text += "\n  hint: " + p.Hint
	}
	return fmt.Sprintf("%s:%d:%d: %s", p.File, p.Line, p.Column, text)
}

// hintf adds a hint; it is chained to the call that reports the problem.
func (p *Problem) hintf(format string, args ...any) *Problem {
	p.Hint = fmt.Sprintf(format, args...)
	return p
}

// Problems is everything found in one plan, sorted by place.
type Problems struct{ Items []Problem }

// Errors are the findings that keep the plan from being run.
func (ps *Problems) Errors() []Problem { return ps.pick(false) }

// Warnings are the findings that do not.
func (ps *Problems) Warnings() []Problem { return ps.pick(true) }

// pick is the findings that are warnings, or those that are not.
func (ps *Problems) pick(warning bool) []Problem {
	if ps == nil {
		return nil
	}
	return slices.DeleteFunc(slices.Clone(ps.Items), func(p Problem) bool { return p.Warning != warning })
}

// Error is all findings, a blank line between them.
func (ps *Problems) Error() string {
	text := make([]string, len(ps.Items))
	for i, p := range ps.Items {
		text[i] = p.String()
	}
	return strings.Join(text, "\n\n")
}

// reader carries one plan's text through all passes and collects findings.
type reader struct {
	file string
	// text: without a byte order mark
	text []byte
	// lines: offset of each line's first byte
	lines []int
	// manual: the manual axes
	manual []key
	// publishedAt: the table of each published figure
	publishedAt []*node
	// broken: the syntax has errors: parts of the tree are missing
	broken bool
	found  []*Problem
	// seen: texts of found
	seen map[string]bool
	// omitted: findings after maxProblems; reported: all, known ones included
	omitted, reported int
}

// newReader indexes the lines of a text.
func newReader(file string, text []byte) *reader {
	text = bytes.TrimPrefix(text, []byte("\ufeff"))
	r := &reader{file: file, text: text, lines: []int{0}, seen: map[string]bool{}}
	for i, c := range text {
		if c == '\n' {
			r.lines = append(r.lines, i+1)
		}
	}
	return r
}

// place turns a byte offset into line and column.
func (r *reader) place(off int) (line, column int) {
	off = min(off, len(r.text))
	line, found := slices.BinarySearch(r.lines, off)
	if found {
		line++
	}
	return line, utf8.RuneCount(r.text[r.lines[line-1]:off]) + 1
}

// problem reports an error at a byte offset. The same message at the same place
// is kept once.
func (r *reader) problem(off int, key, format string, args ...any) *Problem {
	line, column := r.place(off)
	return r.report(&Problem{Line: line, Column: column, Key: key, Message: fmt.Sprintf(format, args...)})
}

// bad reports an error at a value, and badKey at its key.
func (r *reader) bad(n *node, format string, args ...any) *Problem {
	return r.problem(n.off, n.name, format, args...)
}

func (r *reader) badKey(n *node, format string, args ...any) *Problem {
	return r.problem(n.key, n.name, format, args...)
}

// warn reports what does not keep the plan from being run.
func (r *reader) warn(off int, key, format string, args ...any) *Problem {
	p := r.problem(off, key, format, args...)
	p.Warning = true
	return p
}

// report keeps a finding, with its excerpt, unless it is known or there are too
// many. The middle is cut out of a message that quotes a text without end.
func (r *reader) report(p *Problem) *Problem {
	r.reported++
	id := fmt.Sprintf("%d:%d:%s", p.Line, p.Column, p.Message)
	switch {
	case r.seen[id]:
	case len(r.found) == maxProblems:
		r.omitted++
	default:
		if runes := []rune(p.Message); len(runes) > maxMessage {
			p.Message = string(runes[:maxMessage/2]) + " … " + string(runes[len(runes)-maxMessage/2:])
		}
		p.File, p.Excerpt = r.file, r.excerpt(p.Line, p.Column)
		r.found = append(r.found, p)
	}
	r.seen[id] = true
	return p
}

// In adds to a finding that another package made the file and the line of the
// text that it is about.
func (p Problem) In(file string, text []byte) Problem {
	return *newReader(file, text).report(&p)
}

// excerpt shows the line with a caret below the column. Of a long line the part
// around the column is shown, and what a terminal would act on is replaced.
func (r *reader) excerpt(line, column int) string {
	if line < 1 || line > len(r.lines) {
		return ""
	}
	text, _, _ := bytes.Cut(r.text[r.lines[line-1]:], []byte("\n"))
	runes := []rune(strings.TrimRight(string(text), "\r"))
	const before, width = 70, 110
	if len(runes) > width {
		from := min(max(column-before, 0), len(runes))
		runes, column = runes[from:min(from+width, len(runes))], column-from
	}
	for i, c := range runes {
		if c == '\t' {
			runes[i] = ' '
		} else if c == utf8.RuneError || !unicode.IsPrint(c) {
			runes[i] = '·'
		}
	}
	if strings.TrimSpace(string(runes)) == "" {
		return ""
	}
	return "    " + string(runes) + "\n    " + strings.Repeat(" ", column-1) + "^"
}

// problems returns the findings sorted by place, nil if there are none.
func (r *reader) problems() *Problems {
	if len(r.found) == 0 {
		return nil
	}
	out := &Problems{}
	for _, p := range r.found {
		out.Items = append(out.Items, *p)
	}
	slices.SortStableFunc(out.Items, func(a, b Problem) int {
		return cmp.Or(cmp.Compare(a.Line, b.Line), cmp.Compare(a.Column, b.Column), cmp.Compare(a.Message, b.Message))
	})
	if r.omitted > 0 {
		last := &out.Items[len(out.Items)-1]
		last.Hint = strings.TrimPrefix(last.Hint+fmt.Sprintf("; %d more problems are not shown", r.omitted), "; ")
	}
	return out
}

// OverrideError reports that a flag cannot be applied to a plan: bad usage,
// exit 2.
type OverrideError struct{ Flag, Value, Cause string }

// Error names the flag and why it cannot be applied.
func (e *OverrideError) Error() string {
	return fmt.Sprintf("applying --%s: %s", strings.TrimSpace(e.Flag+" "+e.Value), e.Cause)
}

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
	if at, text := wrongEncoding(r.text); text != "" {
		r.broken = true
		r.problem(at, "", "%s", text).hintf("save the file as UTF-8, with line ends LF or CR LF")
		return root
	}
	if err := toml.Unmarshal(r.text, &struct{}{}); err != nil {
		at := len(r.text)
		if bad, ok := errors.AsType[*toml.DecodeError](err); ok {
			line, column := bad.Position()
			at = r.lines[min(line, len(r.lines))-1] + column - 1
		}
		r.broken = true
		r.problem(at, "", "the text is not valid TOML: %s", strings.TrimPrefix(err.Error(), "toml: ")).
			hintf("text and values with units are in straight quotes, such as \"100 GB\"; flags are true or false; " +
				"keys are made of letters a to z, digits, _ and -, each once; the file is text in UTF-8")
		return root
	}
	var parser unstable.Parser
	parser.Reset(r.text)
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

// wrongEncoding names the encoding of a text that is not UTF-8 with line ends, and
// where it shows; "" if it is.
func wrongEncoding(text []byte) (at int, what string) {
	switch {
	case bytes.HasPrefix(text, []byte("\xff\xfe")) || bytes.HasPrefix(text, []byte("\xfe\xff")) ||
		bytes.IndexByte(text[:min(len(text), 4)], 0) >= 0:
		return 0, "the text is in UTF-16 or UTF-32, not in UTF-8"
	case !utf8.Valid(text):
		for at < len(text) {
			c, n := utf8.DecodeRune(text[at:])
			if c == utf8.RuneError && n == 1 {
				break
			}
			at += n
		}
		return at, "the text is not in UTF-8: it may be in Latin-1 or another encoding with one byte a character"
	case bytes.IndexByte(text, '\r') >= 0 && bytes.IndexByte(text, '\n') < 0:
		return bytes.IndexByte(text, '\r'), "the lines end with CR alone"
	}
	return 0, ""
}

// keyTables are the parts of a dotted key, as the tables that they may name.
func (r *reader) keyTables(it unstable.Iterator) (out []*node) {
	for it.Next() {
		off := int(it.Node().Raw.Offset)
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
		out.kind, out.off = scalarKinds[v.Kind], int(v.Raw.Offset)
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

// find is the first item that matches, or nil.
func find[T any](list []T, match func(*T) bool) *T {
	for i := range list {
		if match(&list[i]) {
			return &list[i]
		}
	}
	return nil
}

// namesOf are the names of the items of a list.
func namesOf[T any](list []T, name func(*T) string) []string {
	out := make([]string, len(list))
	for i := range list {
		out[i] = name(&list[i])
	}
	return out
}

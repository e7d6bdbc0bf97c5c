package plan

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
	return [...]string{"text", "a whole number", "a decimal number", "a yes/no value", "a date", "a time of day", "a list", "a table"}[k]
}

// node is one value of the plan file with its place in the text.
type node struct {
	kind  nodeKind
	text  string // of a string its value, of another scalar the token as written
	off   int    // byte offset of the value
	key   int    // byte offset of the key, or of the value where there is none
	name  string // the key, "" for items of a list
	items []*node
	pairs []*node // of a table, in the order written
	index map[string]*node

	// How a table came to be decides what may still be added to it.
	origin tableOrigin
}

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
// exists on the way, so that a problem always has a place.
func (n *node) at(path ...any) *node {
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

package report

// Document is a page of sections of sentences, lists and tables, which every
// form prints, and of charts, which the page draws; of those that are trends
// the other forms print lines of blocks. Its strings are safe to print, see
// [Plain].
type Document struct {
	Kicker, Title string
	Lead          []string
	Sections      []Section
}

// Section is a heading with its contents, in this order. The lead of an alert
// without a heading is a notice.
type Section struct {
	ID, Heading string
	Sub         bool // part of the section before
	Page        bool // printed on a page only: a long list that other commands print
	Alert       bool // has to be read before the rest
	Lead        []string
	Pairs       []Pair
	Items       []Item
	Charts      []Chart
	Table       *Table
	Grid        *Grid
	Language    string // of the code
	Code        string
	After       []string
}

// Item is an entry of a list: "label: text (note)" with entries of its own. The
// label of an item with a class is a verdict.
type Item struct {
	Label, Class, Text, Note string
	Items                    []Item
}

// Items are entries without labels; empty texts are left out.
func Items(texts ...string) []Item {
	var out []Item
	for _, text := range texts {
		if text != "" {
			out = append(out, Item{Text: text})
		}
	}
	return out
}

// Grid is a table with cells that open: a page shows the evidence of a cell on
// demand, Markdown after the table.
type Grid struct {
	Caption string
	Columns []string
	Rows    []GridRow
}

type GridRow struct {
	Name, Note string
	Cells      []GridCell
}

// GridCell is a word with what it rests on.
type GridCell struct {
	Class, Word, Note string
	Entries           []GridEntry
}

// GridEntry is one piece of evidence; Link is an address relative to the page,
// "" for none.
type GridEntry struct {
	Title, Link string
	Lines       []string
	More        []Link // other pieces behind the same title, by name alone
}

// Link is a name that may lead somewhere, as the link of [GridEntry] does.
type Link struct{ Name, Link string }

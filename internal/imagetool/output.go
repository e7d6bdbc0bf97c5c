package imagetool

import (
	"fmt"
	"io"
	"maps"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"howett.net/plist"
)

// list is a dictionary of a property list; keys are printed in order.
type list = map[string]any

// output is stdout. It remembers that something could not be written, so that nothing is lost silently.
type output struct {
	to  io.Writer
	err error
}

func (o *output) Write(p []byte) (int, error) {
	n, err := o.to.Write(p)
	if err != nil && o.err == nil {
		o.err = fmt.Errorf("writing the output: %w", err)
	}
	return n, err
}

// printPlist prints a value as Apple's tools do.
func (c *call) printPlist(v any) error {
	text, err := plist.MarshalIndent(v, plist.XMLFormat, "\t")
	if err != nil {
		return err
	}
	_, err = fmt.Fprintf(c.out, "%s\n", strings.TrimRight(string(text), "\n"))
	return err
}

// shown is a text on a line of its own: quoted where something in it would end the line or speak to a terminal. Names
// come from images, which are hostile.
func shown(text string) string {
	if utf8.ValidString(text) && !strings.ContainsFunc(text, func(r rune) bool { return !strconv.IsPrint(r) }) {
		return text
	}
	return strconv.Quote(text)
}

// printTree prints a dictionary as imageinfo does: "key: value", sections below "key:" indented by a TAB.
func printTree(b *strings.Builder, d list, depth int) {
	for _, key := range slices.Sorted(maps.Keys(d)) {
		printNode(b, key, d[key], depth)
	}
}

func printNode(b *strings.Builder, key string, value any, depth int) {
	b.WriteString(strings.Repeat("\t", depth))
	switch v := value.(type) {
	case list:
		fmt.Fprintf(b, "%s:\n", key)
		printTree(b, v, depth+1)
	case []list:
		fmt.Fprintf(b, "%s:\n", key)
		for n, e := range v {
			fmt.Fprintf(b, "%s%d:\n", strings.Repeat("\t", depth+1), n)
			printTree(b, e, depth+2)
		}
	case string:
		fmt.Fprintf(b, "%s: %s\n", shown(key), shown(v))
	default:
		fmt.Fprintf(b, "%s: %v\n", shown(key), v)
	}
}

// progress prints lines for programs when -puppetstrings asks for them.
type progress struct {
	c     *call
	total int64
	last  int // in thousandths, -1 before the first
}

func (c *call) newProgress(total int64) *progress {
	p := &progress{c: c, total: total, last: -1}
	p.print(-1)
	return p
}

func (p *progress) print(percent float64) {
	if p.c.has("-puppetstrings") {
		fmt.Fprintf(p.c.out, "PERCENT:%f\n", percent)
	}
}

// at says how many bytes are done. Steps below half a percent are not worth a line.
func (p *progress) at(done int64) {
	share := 1000
	if p.total > 0 {
		share = int(float64(done) / float64(p.total) * 1000)
	}
	if p.last >= 0 && share < 1000 && share-p.last < 5 {
		return
	}
	p.last = share
	p.print(float64(share) / 10)
}

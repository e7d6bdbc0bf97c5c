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

// dict is a dictionary of a property list; keys are printed in order.
type dict = map[string]any

// output is stdout. It remembers a failed write, so that no output is lost
// silently.
type output struct {
	to  io.Writer
	err error
}

// Write keeps the first error. Main returns it when the verb itself has
// succeeded.
func (o *output) Write(p []byte) (int, error) {
	n, err := o.to.Write(p)
	if err != nil && o.err == nil {
		o.err = fmt.Errorf("writing the output: %w", err)
	}
	return n, err
}

// printf prints a line about the verb on stderr.
func (c *call) printf(format string, args ...any) {
	fmt.Fprintf(c.err, "%s: %s: %s\n", c.tool, c.verbName(), fmt.Sprintf(format, args...))
}

// warn prints a warning on stderr. A warning does not change the exit status.
func (c *call) warn(format string, args ...any) { c.printf("WARNING: "+format, args...) }

// verbName is the verb in messages.
func (c *call) verbName() string { return strings.TrimPrefix(c.verb.Name, "image ") }

// printResult prints a result: as a property list where the options ask for
// one, else as text.
func (c *call) printResult(v any, format string, args ...any) error {
	if !c.has("plist") {
		_, err := fmt.Fprintf(c.out, format, args...)
		return err
	}
	text, err := plist.MarshalIndent(v, plist.XMLFormat, "\t")
	if err == nil {
		_, err = fmt.Fprintf(c.out, "%s\n", strings.TrimRight(string(text), "\n"))
	}
	return err
}

// printTree prints a dictionary: as a property list, or with each key and value
// in a line.
func (c *call) printTree(d dict) error { return c.printResult(d, "%s", formatTree(d, "")) }

// formatTree formats a dictionary as imageinfo does: "key: value", sections
// below "key:" indented by a TAB. Lists number their entries from 0. Keys are
// sorted, so that equal images give equal text.
func formatTree(d dict, indent string) string {
	var b strings.Builder
	for _, key := range slices.Sorted(maps.Keys(d)) {
		switch v := d[key].(type) {
		case dict:
			fmt.Fprintf(&b, "%s%s:\n%s", indent, key, formatTree(v, indent+"\t"))
		case []dict:
			fmt.Fprintf(&b, "%s%s:\n", indent, key)
			for n, e := range v {
				fmt.Fprintf(&b, "%s\t%d:\n%s", indent, n, formatTree(e, indent+"\t\t"))
			}
		default:
			fmt.Fprintf(&b, "%s%s: %s\n", indent, printable(key), printable(fmt.Sprint(v)))
		}
	}
	return b.String()
}

// printable is a text for one line: quoted where a character in it would end
// the line or control a terminal. Names come from images, which are hostile.
func printable(text string) string {
	if utf8.ValidString(text) && !strings.ContainsFunc(text, func(r rune) bool { return !strconv.IsPrint(r) }) {
		return text
	}
	return strconv.Quote(text)
}

// progress prints lines for programs when -puppetstrings asks for them.
type progress struct {
	c *call
	// total is the length of the work in bytes, 0 for work that has none.
	total int64
	// last is the share that was printed last, in thousandths; -1 before the
	// first.
	last int
}

// newProgress starts with an unknown share; total is 0 for work that is not
// measured in bytes.
func (c *call) newProgress(total int64) *progress {
	p := &progress{c: c, total: total, last: -1}
	p.print(-1)
	return p
}

// print prints one line in the format of hdiutil -puppetstrings.
func (p *progress) print(percent float64) {
	if p.c.has("puppetstrings") {
		fmt.Fprintf(p.c.out, "PERCENT:%f\n", percent)
	}
}

// at reports how many bytes are done. Steps below half a percent are not
// printed.
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

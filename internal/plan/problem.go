package plan

import (
	"bytes"
	"cmp"
	"fmt"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
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
	// omitted: there are more findings than are kept
	omitted bool
}

// String is "file:line:column: message" with excerpt and hint on lines of their
// own.
func (p Problem) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s:%d:%d: ", p.File, p.Line, p.Column)
	if p.Warning && !p.Refused {
		b.WriteString("warning: ")
	}
	b.WriteString(p.Message)
	if p.Excerpt != "" {
		b.WriteString("\n" + p.Excerpt)
	}
	if p.Hint != "" {
		b.WriteString("\n  hint: " + p.Hint)
	}
	return b.String()
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
	text []byte
	// bom: length of a byte order mark at the start
	bom int
	// lines: offset of each line's first byte
	lines []int
	// manual: names of the manual axes
	manual []string
	// publishedAt: the table of each published figure
	publishedAt []*node
	// figures: of the table [[published]] that is read
	figures []Published
	// broken: the syntax has errors: parts of the tree are missing
	broken bool
	found  []*Problem
	// seen: texts of found
	seen map[string]bool
	// omitted: findings after maxProblems
	omitted int
}

// newReader indexes the lines of a text.
func newReader(file string, text []byte) *reader {
	r := &reader{file: file, text: text, lines: []int{0}, seen: map[string]bool{}}
	if bytes.HasPrefix(text, []byte("\ufeff")) {
		r.bom = len("\ufeff")
	}
	for i, c := range text {
		if c == '\n' {
			r.lines = append(r.lines, i+1)
		}
	}
	return r
}

// lineStart is the offset of the first character of a line, which counts from 1.
func (r *reader) lineStart(line int) int { return max(r.lines[line-1], r.bom) }

// place turns a byte offset into line and column.
func (r *reader) place(off int) (line, column int) {
	off = min(max(off, r.bom), len(r.text))
	line, found := slices.BinarySearch(r.lines, off)
	if found {
		line++
	}
	return line, utf8.RuneCount(r.text[r.lineStart(line):off]) + 1
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
	id := fmt.Sprintf("%d:%d:%s", p.Line, p.Column, p.Message)
	p.omitted = len(r.found) >= maxProblems
	switch {
	case r.seen[id]:
	case p.omitted:
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
	text, _, _ := bytes.Cut(r.text[r.lineStart(line):], []byte("\n"))
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
	if e.Value == "" {
		return fmt.Sprintf("applying --%s: %s", e.Flag, e.Cause)
	}
	return fmt.Sprintf("applying --%s %s: %s", e.Flag, e.Value, e.Cause)
}

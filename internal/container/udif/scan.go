package udif

import (
	"bufio"
	"fmt"
	"io"
	"strconv"
	"strings"
)

// Bounds of the XML scanner. Nothing that Apple writes comes near them.
const (
	maxText  = 4096 // bytes of a key, a name or a number
	maxTag   = 64   // bytes of an element's name
	maxDepth = 64   // nested elements of a value that is skipped
)

// scanner reads the few constructs of XML that property lists consist of, straight from the file: elements, text with
// the five named and the numeric references, comments, CDATA sections, processing instructions and a document type
// without an internal subset. Its memory does not depend on the input. A library for property lists would keep the
// whole document several times over, and these may be large.
type scanner struct {
	r *bufio.Reader
}

// tag is one start or end tag. An empty element, <x/>, is a start with empty set and has no end.
type tag struct {
	name       string
	end, empty bool
}

func xmlError(format string, args ...any) error {
	return fmt.Errorf("property list: "+format+": %w", append(args, ErrCorrupt)...)
}

// get is the next byte; the end of the input inside a property list is an error like any other.
func (s *scanner) get() (byte, error) {
	c, err := s.r.ReadByte()
	if err == io.EOF {
		return 0, xmlError("it ends early")
	}
	return c, err
}

// tag skips white space, comments and declarations, and returns the next tag.
func (s *scanner) tag() (tag, error) {
	for {
		c, err := s.get()
		switch {
		case err != nil:
			return tag{}, err
		case c == ' ' || c == '\t' || c == '\n' || c == '\r':
			continue
		case c != '<':
			return tag{}, xmlError("byte %#x where an element was expected", c)
		}
		if found, t, err := s.markup(); found || err != nil {
			return t, err
		}
	}
}

// markup reads what follows a <. It reports no tag for a comment or a declaration, which it skips.
func (s *scanner) markup() (bool, tag, error) {
	c, err := s.get()
	switch {
	case err != nil:
		return false, tag{}, err
	case c == '?':
		return false, tag{}, s.skipPast("?>")
	case c == '!':
		return false, tag{}, s.declaration()
	}
	var t tag
	if t.end = c == '/'; t.end {
		if c, err = s.get(); err != nil {
			return false, t, err
		}
	}
	name := make([]byte, 0, maxTag)
	for ; c != '>' && c != '/' && c > ' '; c, err = s.get() {
		if err != nil {
			return false, t, err
		}
		if len(name) == maxTag || c == '<' {
			return false, t, xmlError("bad element name %q", name)
		}
		name = append(name, c)
	}
	if err != nil {
		return false, t, err
	}
	t.name = string(name)
	t.empty, err = s.attributes(c)
	if err == nil && (t.name == "" || t.end && t.empty) {
		err = xmlError("bad element %q", t.name)
	}
	return err == nil, t, err
}

// attributes skips to the end of a tag whose last byte read is c, and reports whether it closes itself.
func (s *scanner) attributes(c byte) (empty bool, err error) {
	for quote := byte(0); quote != 0 || c != '>'; {
		switch {
		case quote == 0 && (c == '"' || c == '\''):
			quote = c
		case c == quote:
			quote = 0
		case c == '<':
			return false, xmlError("unclosed element")
		}
		empty = quote == 0 && c == '/'
		if c, err = s.get(); err != nil {
			return false, err
		}
	}
	return empty, nil
}

// declaration skips what follows <!: a comment or the document type.
func (s *scanner) declaration() error {
	start, err := s.r.Peek(2)
	if err == nil && string(start) == "--" {
		_, _ = s.r.Discard(2)
		return s.skipPast("-->")
	}
	for quoted := false; ; {
		switch c, err := s.get(); {
		case err != nil:
			return err
		case c == '"':
			quoted = !quoted
		case c == '>' && !quoted:
			return nil
		case c == '[' || c == '<':
			return xmlError("a document type with a subset")
		}
	}
}

// skipPast reads up to and with the mark, of which no proper beginning repeats inside it.
func (s *scanner) skipPast(mark string) error {
	last := make([]byte, len(mark))
	for string(last) != mark {
		c, err := s.get()
		if err != nil {
			return err
		}
		copy(last, last[1:])
		last[len(last)-1] = c
	}
	return nil
}

// text reads the content of the element named and its end tag.
func (s *scanner) text(element string) (string, error) {
	var out strings.Builder
	for {
		c, err := s.get()
		switch {
		case err != nil:
			return "", err
		case c == '&':
			if err = s.reference(&out); err != nil {
				return "", err
			}
		case c != '<':
			out.WriteByte(c)
		default:
			if done, err := s.inText(element, &out); done || err != nil {
				return out.String(), err
			}
		}
		if out.Len() > maxText {
			return "", xmlError("more than %d bytes of text in %q", maxText, element)
		}
	}
}

// inText goes on after a < inside text: a CDATA section, a comment, or the end of the element.
func (s *scanner) inText(element string, out *strings.Builder) (done bool, err error) {
	const cdata = "![CDATA["
	if start, _ := s.r.Peek(len(cdata)); string(start) == cdata {
		_, _ = s.r.Discard(len(cdata))
		return false, s.cdata(out)
	}
	found, t, err := s.markup()
	if err != nil || !found {
		return false, err
	}
	if !t.end || t.name != element {
		return false, xmlError("element %q inside %q", t.name, element)
	}
	return true, nil
}

// cdata reads a section after its opening.
func (s *scanner) cdata(out *strings.Builder) error {
	var section strings.Builder
	for !strings.HasSuffix(section.String(), "]]>") {
		c, err := s.get()
		if err != nil {
			return err
		}
		if section.Len() > maxText {
			return xmlError("more than %d bytes in a section", maxText)
		}
		section.WriteByte(c)
	}
	out.WriteString(strings.TrimSuffix(section.String(), "]]>"))
	return nil
}

var named = map[string]rune{"amp": '&', "lt": '<', "gt": '>', "quot": '"', "apos": '\''}

// reference reads what follows a & and appends the character.
func (s *scanner) reference(out *strings.Builder) error {
	name := make([]byte, 0, 12)
	for {
		c, err := s.get()
		if err != nil {
			return err
		}
		if c == ';' {
			break
		}
		if name = append(name, c); len(name) == cap(name) {
			return xmlError("unknown reference %q", name)
		}
	}
	r, known := named[string(name)]
	if !known {
		digits, base := strings.TrimPrefix(string(name), "#"), 10
		if hex, ok := strings.CutPrefix(digits, "x"); ok {
			digits, base = hex, 16
		}
		value, err := strconv.ParseUint(digits, base, 21)
		if err != nil || name[0] != '#' || value == 0 {
			return xmlError("unknown reference %q", name)
		}
		r = rune(value)
	}
	out.WriteRune(r)
	return nil
}

// skip passes over the value that starts with t, whatever it is.
func (s *scanner) skip(t tag) error {
	if t.end {
		return xmlError("end of %q where a value was expected", t.name)
	}
	if t.empty {
		return nil
	}
	for depth := 1; depth > 0; {
		c, err := s.get()
		if err != nil {
			return err
		}
		if c != '<' {
			continue
		}
		found, t, err := s.markup()
		switch {
		case err != nil:
			return err
		case found && t.end:
			depth--
		case found && !t.empty:
			depth++
		}
		if depth > maxDepth {
			return xmlError("more than %d nested values", maxDepth)
		}
	}
	return nil
}

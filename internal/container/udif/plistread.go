package udif

import (
	"bufio"
	"encoding/base64"
	"encoding/binary"
	"fmt"
	"html"
	"io"
	"slices"
	"strconv"
	"strings"
)

// Bounds of the property list. What Apple writes does not come near them.
const (
	maxText  = 4096                         // bytes of a key, a name or a number
	maxTag   = 256                          // bytes of a tag or a declaration
	maxDepth = 64                           // nested elements of a value that is skipped
	maxData  = mishHeader + mishRun*MaxRuns // bytes of a resource: a block table of all the runs there may be
)

// resource is one entry of the property list's resource fork, or of a binary
// one. Data is only valid until the next resource is read.
type resource struct {
	id   int
	name string
	data []byte
}

// parsePlist reads the property list of an image and passes the entries of
// resource-fork/blkx to emit, in their order. license is called when there is
// the resource of a licence agreement. Other resources are skipped. Its memory
// is the largest data element.
func parsePlist(r *io.SectionReader, emit func(resource) error, license func()) error {
	p := &plistReader{r: bufio.NewReaderSize(r, 64<<10), emit: emit, limit: int(min(r.Size()/4*3, maxData))}
	t, _, err := p.tag(false)
	if err == nil && (t.name != "plist" || t.end || t.empty) {
		err = xmlError("it starts with element %q", t.name)
	}
	if err == nil {
		t, _, err = p.tag(false)
	}
	if err != nil {
		return err
	}
	found := false
	err = p.dict(t, func(key string, t tag) error {
		if key != "resource-fork" {
			return p.skip(t)
		}
		found = true
		return p.dict(t, func(key string, t tag) error {
			if key == licenseType {
				license()
			}
			if key != "blkx" {
				return p.skip(t)
			}
			return p.array(t)
		})
	})
	if err == nil && !found {
		err = xmlError("it has no resource-fork")
	}
	return err
}

// xmlError is an error of the property list; every one is a damaged image.
func xmlError(format string, args ...any) error {
	return fmt.Errorf("property list: "+format+": %w", append(args, ErrCorrupt)...)
}

// plistReader reads the few constructs of XML that property lists consist of,
// straight from the file: elements, text with references, comments, processing
// instructions and a document type without an internal subset. Apart from data
// its memory does not depend on the input. A library for property lists would
// keep the whole document several times, and these may be large.
type plistReader struct {
	r     *bufio.Reader
	emit  func(resource) error
	data  []byte // of the entry that is being read
	limit int    // the largest data element that a list of this length can hold, in bytes
}

// tag is one start or end tag. An empty element, <x/>, is a start with empty
// set and has no end.
type tag struct {
	name       string
	end, empty bool
}

// get is the next byte; the end of the input inside a property list is an error
// like any other.
func (p *plistReader) get() (byte, error) {
	c, err := p.r.ReadByte()
	if err == io.EOF {
		return 0, xmlError("it ends early")
	}
	return c, err
}

// tag reads up to the end of the next tag and returns it, with the text before
// it if keep is set. Comments and declarations are left out.
func (p *plistReader) tag(keep bool) (t tag, text string, err error) {
	var out []byte
	for {
		c, err := p.get()
		switch {
		case err != nil:
			return t, "", err
		case c != '<' && len(out) == maxText:
			return t, "", xmlError("more than %d bytes of text", maxText)
		case c != '<' && keep:
			out = append(out, c)
			continue
		case c != '<':
			continue
		}
		body, err := p.markup()
		switch {
		case err != nil:
			return t, "", err
		case strings.HasPrefix(body, "?"), strings.HasPrefix(body, "!"):
			continue
		}
		body, t.end = strings.CutPrefix(body, "/")
		body, t.empty = strings.CutSuffix(body, "/")
		t.name, _, _ = strings.Cut(strings.ReplaceAll(body, "\n", " "), " ")
		if t.name == "" || t.end && t.empty {
			return t, "", xmlError("bad element %q", body)
		}
		return t, html.UnescapeString(string(out)), nil
	}
}

// markup reads what follows a <, up to and without its >. The content of a
// comment is left out.
func (p *plistReader) markup() (string, error) {
	var b []byte
	for quote := byte(0); ; {
		c, err := p.get()
		switch {
		case err != nil:
			return "", err
		case len(b) == maxTag:
			return "", xmlError("bad element %q", b)
		case c == quote:
			quote = 0
		case quote != 0:
		case c == '>':
			return string(b), nil
		case c == '"' || c == '\'':
			quote = c
		case c == '<' || c == '[':
			return "", xmlError("bad element %q", b)
		}
		if b = append(b, c); string(b) == "!--" {
			return "!", p.skipComment()
		}
	}
}

// skipComment reads the rest of a comment, which may contain tags.
func (p *plistReader) skipComment() error {
	for last := "   "; last != "-->"; {
		c, err := p.get()
		if err != nil {
			return err
		}
		last = last[1:] + string([]byte{c})
	}
	return nil
}

// text reads the content of the element that starts with t, and its end tag.
func (p *plistReader) text(t tag) (string, error) {
	if t.empty {
		return "", nil
	}
	end, text, err := p.tag(true)
	if err == nil && (!end.end || end.name != t.name) {
		err = xmlError("element %q inside %q", end.name, t.name)
	}
	return text, err
}

// dict reads the dictionary that starts with t. It calls each for every key
// with the start of its value, which each has to read.
func (p *plistReader) dict(t tag, each func(key string, value tag) error) error {
	if t.name != "dict" || t.end {
		return xmlError("element %q where a dictionary was expected", t.name)
	}
	for !t.empty {
		key, _, err := p.tag(false)
		switch {
		case err != nil:
			return err
		case key.end && key.name == "dict":
			return nil
		case key.end || key.empty || key.name != "key":
			return xmlError("element %q where a key was expected", key.name)
		}
		name, err := p.text(key)
		if err != nil {
			return err
		}
		value, _, err := p.tag(false)
		if err == nil {
			err = each(name, value)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// array reads the array of block tables that starts with t.
func (p *plistReader) array(t tag) error {
	if t.name != "array" || t.end {
		return xmlError("element %q where an array was expected", t.name)
	}
	for !t.empty {
		element, _, err := p.tag(false)
		if err != nil || element.end && element.name == "array" {
			return err
		}
		if err := p.entry(element); err != nil {
			return err
		}
	}
	return nil
}

// entry reads the dictionary of a block table; its keys come in any order.
func (p *plistReader) entry(t tag) error {
	values := map[string]string{"ID": "0"}
	p.data = p.data[:0]
	err := p.dict(t, func(key string, t tag) (err error) {
		switch key {
		case "Data":
			return p.readData(t)
		case "Name", "CFName", "ID":
			if t.end || t.name != "string" && t.name != "integer" {
				return xmlError("element %q where a string was expected", t.name)
			}
			values[key], err = p.text(t)
			return err
		}
		return p.skip(t)
	})
	if err != nil {
		return err
	}
	id, err := strconv.Atoi(strings.TrimSpace(values["ID"]))
	if err != nil {
		return xmlError("identifier %q", values["ID"])
	}
	name := values["Name"]
	if name == "" {
		name = values["CFName"]
	}
	return p.emit(resource{id: id, name: name, data: p.data})
}

// readData reads the data element that starts with t into p.data. It makes room
// for all runs that a block table announces, if the list is long enough for
// them: growing step by step would take several times as much.
func (p *plistReader) readData(t tag) error {
	if t.end || t.name != "data" {
		return xmlError("element %q where data was expected", t.name)
	}
	p.data = p.data[:0]
	if t.empty {
		return nil
	}
	d := base64.NewDecoder(base64.StdEncoding, elementText{p.r})
	p.data = slices.Grow(p.data, mishHeader)
	for {
		before := len(p.data)
		n, err := d.Read(p.data[before:cap(p.data)])
		p.data = p.data[:before+n]
		switch {
		case err == io.EOF:
			_, err := p.text(t)
			return err
		case err != nil:
			return xmlError("data: %v", err)
		case len(p.data) > maxData:
			return xmlError("more than %d bytes of data", maxData)
		}
		if before < mishHeader && len(p.data) >= mishHeader {
			runs := uint64(binary.BigEndian.Uint32(p.data[mishHeader-4:]))
			if room := runs * mishRun; room <= uint64(p.limit) {
				p.data = slices.Grow(p.data, int(room)+3)
			}
		}
		if len(p.data) == cap(p.data) {
			p.data = slices.Grow(p.data, 1)
		}
	}
}

// elementText reads the text of an element up to the next <, without blanks and
// TABs.
type elementText struct{ r *bufio.Reader }

// Read returns io.EOF at the end of the element, and an error at the end of the
// input.
func (e elementText) Read(b []byte) (n int, err error) {
	for n < len(b) {
		c, err := e.r.ReadByte()
		switch {
		case err == io.EOF:
			return n, xmlError("it ends early")
		case err != nil:
			return n, err
		case c == '<':
			if err := e.r.UnreadByte(); err != nil || n > 0 {
				return n, err
			}
			return 0, io.EOF
		case c != ' ' && c != '\t':
			b[n] = c
			n++
		}
	}
	return n, nil
}

// skip passes over the value that starts with t.
func (p *plistReader) skip(t tag) error {
	if t.end {
		return xmlError("end of %q where a value was expected", t.name)
	}
	for depth := 1; depth > 0 && !t.empty; {
		inner, _, err := p.tag(false)
		switch {
		case err != nil:
			return err
		case inner.end:
			depth--
		case !inner.empty:
			depth++
		}
		if depth > maxDepth {
			return xmlError("more than %d nested values", maxDepth)
		}
	}
	return nil
}

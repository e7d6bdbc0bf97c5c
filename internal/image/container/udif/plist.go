package udif

import (
	"bufio"
	"bytes"
	"cmp"
	_ "embed"
	"encoding/base64"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"path"
	"slices"
	"strconv"
	"strings"
)

// maxDepth bounds nested elements. What Apple writes does not come near it.
const maxDepth = 64

// licenseType is the type of the resource with the languages of an image's
// licence agreement, which is shown before it is attached.
const licenseType = "LPic"

// resource is one entry of the property list's resource fork. Data is only
// valid until the next resource is read.
type resource struct {
	id   int
	name string
	data []byte
}

// plistKinds are the elements that the property list has by where they are:
// the keys of the elements around them and their own, none for those of arrays.
var plistKinds = map[string]string{"": "plist", "/": "dict", plistFork: "dict", plistTables: "array",
	plistTable: "dict", plistTable + "/Data": "data"}

const (
	plistFork   = "//resource-fork"
	plistTables = plistFork + "/blkx"
	plistTable  = plistTables + "/"
)

// plistKeys are the keys that are read.
var plistKeys = []string{"resource-fork", "blkx", licenseType, "Data", "ID", "Name", "CFName"}

// parsePlist reads the property list of an image and passes the entries of
// resource-fork/blkx to emit, in their order. license is called when there is
// the resource of a licence agreement. Everything else is skipped. Its memory
// is the largest element.
func parsePlist(r io.Reader, emit func(resource) error, license func()) error {
	in := &plistText{Reader: bufio.NewReaderSize(r, 64<<10)}
	p := &plistReader{in: in, xml: xml.NewDecoder(in)}
	found := false
	for {
		token, err := p.xml.Token()
		switch {
		case in.err != nil:
			return in.err
		case err == io.EOF && found:
			return nil
		case err == io.EOF:
			return corrupt("property list: it has no resource-fork")
		case err != nil:
			return corrupt("property list: %v", err)
		}
		switch t := token.(type) {
		case xml.CharData:
			p.text = append(p.text, t...)
		case xml.StartElement:
			var where string
			if where, err = p.start(t.Name.Local); where == plistFork+"/"+licenseType {
				license()
			}
			found = found || where == plistFork
		case xml.EndElement:
			err = p.end(t.Name.Local, emit)
		}
		if err != nil {
			return err
		}
	}
}

// plistText is the text of a property list. It keeps what tells a read that
// failed from bad text, and an empty element from the start of one.
type plistText struct {
	*bufio.Reader
	before, last byte // the bytes read last
	err          error
}

// ReadByte implements [io.ByteReader], by which the decoder reads no further
// than it has to.
func (t *plistText) ReadByte() (byte, error) {
	c, err := t.Reader.ReadByte()
	t.before, t.last = t.last, c
	if err != nil && err != io.EOF {
		t.err = err
	}
	return c, err
}

// plistReader reads a property list element by element. The decoder, which
// makes sure that starts and ends match, reads everything but data, which may
// be large: a library for property lists would keep the whole document several
// times.
type plistReader struct {
	in  *plistText
	xml *xml.Decoder

	path   []string // the keys of the elements that are open
	key    string   // of the next value
	text   []byte   // of the last element
	values map[string]string
	data   bytes.Buffer
}

// start opens an element and returns where it is. Of data it reads the content.
func (p *plistReader) start(name string) (where string, err error) {
	if len(p.path) == maxDepth {
		return "", corrupt("property list: more than %d nested values", maxDepth)
	}
	p.path, p.key, p.text = append(p.path, p.key), "", p.text[:0]
	where = strings.Join(p.path, "/")
	if want := plistKinds[where]; want != "" && want != name {
		return where, corrupt("property list: element %q where %q was expected", name, want)
	}
	switch where {
	case plistTable:
		p.values = map[string]string{"ID": "0"}
		p.data.Reset()
	case plistTable + "/Data":
		return where, p.readData()
	}
	return where, nil
}

// end closes an element.
func (p *plistReader) end(name string, emit func(resource) error) error {
	where, text := strings.Join(p.path, "/"), string(p.text)
	p.path, p.key, p.text = p.path[:len(p.path)-1], "", p.text[:0]
	switch where {
	case plistTable + "/ID", plistTable + "/Name", plistTable + "/CFName":
		p.values[path.Base(where)] = text
	case plistTable:
		id, err := strconv.Atoi(strings.TrimSpace(p.values["ID"]))
		if err != nil {
			return corrupt("property list: identifier %q", p.values["ID"])
		}
		return emit(resource{id: id, name: cmp.Or(p.values["Name"], p.values["CFName"]), data: p.data.Bytes()})
	}
	if name == "key" && slices.Contains(plistKeys, text) { // others are as good as none
		p.key = text
	}
	return nil
}

// readData reads the content of a data element into p.data.
func (p *plistReader) readData() error {
	p.data.Reset()
	if p.in.before == '/' { // an empty element
		return nil
	}
	_, err := p.data.ReadFrom(base64.NewDecoder(base64.StdEncoding, elementText{p.in.Reader}))
	_, bad := errors.AsType[base64.CorruptInputError](err)
	if bad || errors.Is(err, io.ErrUnexpectedEOF) { // about the text; other errors are of reading the file
		return corrupt("property list: data: %w", err)
	}
	return err
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
			return n, io.ErrUnexpectedEOF
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

// plistTemplate is the property list as Apple writes it: tabs, sorted keys, and two
// places for entries.
//
//go:embed resources.plist
var plistTemplate string

// plistParts are what is before, between and after the entries.
var plistParts = strings.Split(plistTemplate, "ENTRIES\n")

// Data is in lines of 76 columns less 8 for each tab.
const (
	dataIndent = "\t\t\t\t"
	dataLine   = (76 - 8*len(dataIndent)) / 4 * 3 // bytes in a line
)

// plistWriter writes the property list of an image. Errors are kept for end.
type plistWriter struct {
	w *bufio.Writer
}

// newPlistWriter writes the start of the list. A w with a buffer of that length
// is used itself.
func newPlistWriter(w io.Writer) *plistWriter {
	p := &plistWriter{bufio.NewWriterSize(w, 64<<10)}
	_, _ = p.w.WriteString(plistParts[0])
	return p
}

// escapeXML escapes text; Apple leaves quotes as they are.
var escapeXML = strings.NewReplacer("&", "&amp;", "<", "&lt;", ">", "&gt;")

// pair writes a key with a string.
func (p *plistWriter) pair(key, value string) {
	fmt.Fprintf(p.w, "%[1]s<key>%[2]s</key>\n%[1]s<string>%[3]s</string>\n", dataIndent, key, escapeXML.Replace(value))
}

// resource writes one entry.
func (p *plistWriter) resource(name string, id int, cfname bool, data []byte) {
	_, _ = p.w.WriteString("\t\t\t<dict>\n")
	p.pair("Attributes", "0x0050")
	if cfname {
		p.pair("CFName", name)
	}
	_, _ = p.w.WriteString(dataIndent + "<key>Data</key>\n" + dataIndent + "<data>\n")
	var text []byte
	for line := range slices.Chunk(data, dataLine) {
		text = base64.StdEncoding.AppendEncode(append(text[:0], dataIndent...), line)
		_, _ = p.w.Write(append(text, '\n'))
	}
	_, _ = p.w.WriteString(dataIndent + "</data>\n")
	p.pair("ID", strconv.Itoa(id))
	p.pair("Name", name)
	_, _ = p.w.WriteString("\t\t\t</dict>\n")
}

// end writes the rest: the resource plst, which Apple's readers expect, without
// information.
func (p *plistWriter) end() error {
	_, _ = p.w.WriteString(plistParts[1])
	p.resource("", 0, false, slices.Concat(make([]byte, 516), []byte{0, 1, 0, 1}, make([]byte, 512)))
	_, _ = p.w.WriteString(plistParts[2])
	return p.w.Flush()
}

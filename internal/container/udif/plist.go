package udif

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"io"
	"slices"
	"strconv"
	"strings"
)

// resource is one entry of the property list's resource fork, or of a binary one. Data is only valid until the
// next resource is read.
type resource struct {
	id   int
	name string
	data []byte
}

// maxData is the largest content of a resource: a block table of all the runs there may be.
const maxData = mishHeader + mishRun*MaxRuns

// parsePlist reads the property list of an image and hands the entries of resource-fork/blkx to emit, in their order.
// license is called when there is the resource of a licence agreement. Other resources are skipped. Its memory is the largest data element.
func parsePlist(r *io.SectionReader, emit func(resource) error, license func()) error {
	s := &scanner{r: bufio.NewReaderSize(r, 64<<10)}
	if mark, _ := s.r.Peek(3); bytes.Equal(mark, []byte("\xef\xbb\xbf")) {
		_, _ = s.r.Discard(3)
	}
	if t, err := s.tag(); err != nil {
		return err
	} else if t.name != "plist" || t.end || t.empty {
		return xmlError("it starts with element %q", t.name)
	}
	p := &plistParser{scanner: s, emit: emit, limit: int(min(r.Size()/4*3, maxData))}
	found := false
	err := p.dict(func(key string) error {
		if key != "resource-fork" {
			return p.skipValue()
		}
		found = true
		return p.dict(func(key string) error {
			if key == licenseType {
				license()
			}
			if key != "blkx" {
				return p.skipValue()
			}
			return p.entries()
		})
	})
	if err == nil && !found {
		err = xmlError("it has no resource-fork")
	}
	return err
}

type plistParser struct {
	*scanner
	emit  func(resource) error
	data  []byte // of the entry that is being read
	limit int    // what a data element can hold at most in a list of this length
}

// dict reads a dictionary and calls each for every key, which has to read the value.
func (p *plistParser) dict(each func(key string) error) error {
	t, err := p.tag()
	if err != nil {
		return err
	}
	return p.dictAfter(t, each)
}

// dictAfter is dict when the tag has been read.
func (p *plistParser) dictAfter(t tag, each func(key string) error) error {
	if t.name != "dict" || t.end {
		return xmlError("element %q where a dictionary was expected", t.name)
	}
	for !t.empty {
		key, err := p.tag()
		switch {
		case err != nil:
			return err
		case key.end && key.name == "dict":
			return nil
		case key.end || key.empty || key.name != "key":
			return xmlError("element %q where a key was expected", key.name)
		}
		name, err := p.text("key")
		if err != nil {
			return err
		}
		if err := each(name); err != nil {
			return err
		}
	}
	return nil
}

func (p *plistParser) skipValue() error {
	t, err := p.tag()
	if err != nil {
		return err
	}
	return p.skip(t)
}

// entries reads the array of block tables.
func (p *plistParser) entries() error {
	t, err := p.tag()
	if err != nil {
		return err
	}
	if t.name != "array" || t.end {
		return xmlError("element %q where an array was expected", t.name)
	}
	for !t.empty {
		element, err := p.tag()
		switch {
		case err != nil:
			return err
		case element.end && element.name == "array":
			return nil
		}
		if err := p.entry(element); err != nil {
			return err
		}
	}
	return nil
}

// entry reads one dictionary of a block table; its keys come in any order.
func (p *plistParser) entry(t tag) error {
	entry, cfname := resource{}, ""
	p.data = p.data[:0]
	err := p.dictAfter(t, func(key string) error {
		var err error
		var text string
		switch key {
		case "Data":
			err = p.dataValue()
		case "Name":
			entry.name, err = p.scalar()
		case "CFName":
			cfname, err = p.scalar()
		case "ID":
			if text, err = p.scalar(); err == nil {
				if entry.id, err = strconv.Atoi(strings.TrimSpace(text)); err != nil {
					err = xmlError("identifier %q", text)
				}
			}
		default:
			err = p.skipValue()
		}
		return err
	})
	if err != nil {
		return err
	}
	if entry.name == "" {
		entry.name = cfname
	}
	entry.data = p.data
	return p.emit(entry)
}

// scalar reads a string or an integer.
func (p *plistParser) scalar() (string, error) {
	t, err := p.tag()
	switch {
	case err != nil:
		return "", err
	case t.end || t.name != "string" && t.name != "integer":
		return "", xmlError("element %q where a string was expected", t.name)
	case t.empty:
		return "", nil
	}
	return p.text(t.name)
}

// base64Value maps a byte to its six bits; 64 and above are not digits.
var base64Value = func() (table [256]byte) {
	for i := range table {
		table[i] = 0xFF
	}
	for i, c := range []byte("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/") {
		table[c] = byte(i)
	}
	return table
}()

// dataValue reads a data element into p.data.
func (p *plistParser) dataValue() error {
	t, err := p.tag()
	switch {
	case err != nil:
		return err
	case t.end || t.name != "data":
		return xmlError("element %q where data was expected", t.name)
	case t.empty:
		return nil
	}
	p.data = p.data[:0]
	group, digits, padded := uint32(0), 0, 0
	for {
		c, err := p.get()
		if err != nil {
			return err
		}
		value := base64Value[c]
		switch {
		case value < 64 && padded == 0:
			group, digits = group<<6|uint32(value), digits+1
			if digits == 4 {
				p.data = append(p.data, byte(group>>16), byte(group>>8), byte(group))
				group, digits = 0, 0
				if len(p.data) == mishHeader {
					p.expect()
				}
			}
		case c == '\n' || c == '\t' || c == ' ' || c == '\r':
		case c == '=' && padded < 2 && digits+padded >= 2 && digits+padded < 4:
			padded++
		case c == '<':
			return p.endData(group, digits, padded)
		default:
			return xmlError("byte %#x in data", c)
		}
		if len(p.data) > maxData {
			return xmlError("more than %d bytes of data", maxData)
		}
	}
}

// expect makes room for the runs that the block table in p.data announces, if the list is long enough for them. Growing
// step by step would take several times as much.
func (p *plistParser) expect() {
	runs := uint64(binary.BigEndian.Uint32(p.data[mishHeader-4:]))
	if room := runs * mishRun; room <= uint64(p.limit) {
		p.data = slices.Grow(p.data, int(room)+3)
	}
}

// endData adds what the last, incomplete group of digits carries, and reads the end tag.
func (p *plistParser) endData(group uint32, digits, padded int) error {
	switch {
	case padded > 0 && digits+padded != 4, digits == 1:
		return xmlError("data of odd length")
	case digits == 2:
		p.data = append(p.data, byte(group>>4))
	case digits == 3:
		p.data = append(p.data, byte(group>>10), byte(group>>2))
	}
	found, t, err := p.markup()
	if err == nil && (!found || !t.end || t.name != "data") {
		err = xmlError("element %q inside data", t.name)
	}
	return err
}

// Package plist reads the XML property lists that disk-image tools print.
//
// It stands around howett.net/plist and closes what that library lets through:
// empty input and bare words (it takes them for OpenStep lists), whatever
// follows </plist>, a root that is no dictionary, elements where none may be,
// nesting without bound, and panics. Tools print other things before and after
// the list (licence texts, warnings); [Find] separates them, [Parse] accepts
// nothing but a list. Binary and OpenStep lists are refused: no tool here prints them.
package plist

import (
	"bytes"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"math"

	lib "howett.net/plist"
)

// Bounds of what is read. Real lists have a few kilobytes and a depth of six.
const (
	MaxBytes = 16 << 20
	MaxDepth = 32
	// maxStarts is how many places that look like the start of a list Find tries.
	maxStarts = 8
)

// ErrNone is returned where there is no property list at all.
var ErrNone = errors.New("no property list")

// ErrBroken is returned for a list that is cut off or is no plain dictionary in XML.
var ErrBroken = errors.New("broken property list")

// Dict is a dictionary. Its getters never fail: what is missing or of another
// type is the zero value, since tools leave out keys and change types.
type Dict map[string]any

// String is the string at key, or "".
func (d Dict) String(key string) string {
	s, _ := d[key].(string)
	return s
}

// Int is the whole number at key and whether there is one that fits.
func (d Dict) Int(key string) (int64, bool) {
	switch v := d[key].(type) {
	case uint64:
		if v <= math.MaxInt64 {
			return int64(v), true
		}
	case int64:
		return v, true
	}
	return 0, false
}

// Bool is the truth at key. Tools also write it as "yes", "YES" or 1.
func (d Dict) Bool(key string) bool {
	switch v := d[key].(type) {
	case bool:
		return v
	case string:
		return v == "yes" || v == "YES" || v == "true"
	case uint64:
		return v == 1
	}
	return false
}

// Dict is the dictionary at key, or nil, which may be asked too.
func (d Dict) Dict(key string) Dict {
	m, _ := d[key].(map[string]any)
	return m
}

// Dicts are the dictionaries in the array at key; other elements are left out.
func (d Dict) Dicts(key string) []Dict {
	list, _ := d[key].([]any)
	var out []Dict
	for _, e := range list {
		if m, ok := e.(map[string]any); ok {
			out = append(out, m)
		}
	}
	return out
}

var (
	header = []byte("<?xml")
	opener = []byte("<plist")
	closer = []byte("</plist>")
)

// Find reads the first property list in what a tool printed, and returns the
// text around it too. Text before it may itself contain what looks like a
// list's start. Without a list the error is ErrNone, and around is all of out.
func Find(out []byte) (d Dict, around string, err error) {
	err = ErrNone
	for at, n := 0, 0; n < maxStarts; n++ {
		start := next(out, at)
		if start < 0 {
			break
		}
		end := bytes.Index(out[start:], closer)
		if end < 0 {
			return nil, string(out), fmt.Errorf("reading property list: cut off after %d bytes: %w", len(out)-start, ErrBroken)
		}
		end += start + len(closer)
		if d, err = Parse(out[start:end]); err == nil {
			return d, string(out[:start]) + string(out[end:]), nil
		}
		at = start + 1
	}
	return nil, string(out), err
}

// next is where a list may start at or behind at, or -1.
func next(out []byte, at int) int {
	a, b := bytes.Index(out[at:], header), bytes.Index(out[at:], opener)
	switch {
	case a < 0 && b < 0:
		return -1
	case a < 0 || b >= 0 && b < a:
		return at + b
	}
	return at + a
}

// Parse reads text that is one XML property list with a dictionary as its root, and nothing else.
func Parse(text []byte) (d Dict, err error) {
	text = bytes.TrimSpace(text)
	switch {
	case len(text) == 0:
		return nil, ErrNone
	case len(text) > MaxBytes:
		return nil, fmt.Errorf("reading property list: %d bytes, more than %d: %w", len(text), MaxBytes, ErrBroken)
	}
	if err := check(text); err != nil {
		return nil, fmt.Errorf("reading property list: %w: %w", err, ErrBroken)
	}
	defer func() {
		if r := recover(); r != nil {
			d, err = nil, fmt.Errorf("reading property list: %v: %w", r, ErrBroken)
		}
	}()
	var root map[string]any
	format, err := lib.Unmarshal(text, &root)
	switch {
	case err != nil:
		return nil, fmt.Errorf("reading property list: %w: %w", err, ErrBroken)
	case format != lib.XMLFormat || root == nil:
		return nil, fmt.Errorf("reading property list: no dictionary in XML: %w", ErrBroken)
	}
	return root, nil
}

// check walks the elements: one plist that holds one dict, keys and values in
// turn, known names, bounded depth, nothing behind.
func check(text []byte) error {
	dec := xml.NewDecoder(bytes.NewReader(text))
	var w walker
	for {
		t, err := dec.Token()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return err
		}
		if err := w.token(t); err != nil {
			return err
		}
	}
	if !w.done {
		return errors.New("no plist element")
	}
	return nil
}

// walker is where in the list the check stands.
type walker struct {
	stack []frame
	done  bool // the plist element has ended
}

// frame is an open element.
type frame struct {
	name string
	kids int // elements inside it so far
}

func (w *walker) token(t xml.Token) error {
	switch t := t.(type) {
	case xml.StartElement:
		return w.start(t.Name.Local)
	case xml.EndElement:
		top := w.stack[len(w.stack)-1]
		w.stack = w.stack[:len(w.stack)-1]
		if top.name == "dict" && top.kids%2 != 0 {
			return errors.New("a key without a value")
		}
		if top.name == "plist" {
			if top.kids != 1 {
				return fmt.Errorf("%d elements in the plist element", top.kids)
			}
			w.done = true
		}
	case xml.CharData:
		return w.text(t)
	}
	return nil
}

func (w *walker) start(name string) error {
	if w.done || len(w.stack) == 0 && name != "plist" {
		return fmt.Errorf("element %.40q outside of the list", name)
	}
	if len(w.stack) >= MaxDepth {
		return fmt.Errorf("nested deeper than %d", MaxDepth)
	}
	if len(w.stack) > 0 {
		parent := &w.stack[len(w.stack)-1]
		if err := parent.allows(name); err != nil {
			return err
		}
		parent.kids++
	}
	w.stack = append(w.stack, frame{name: name})
	return nil
}

// allows says whether an element may be the next one inside f.
func (f frame) allows(name string) error {
	value := false
	switch name {
	case "dict", "array", "string", "integer", "real", "true", "false", "date", "data":
		value = true
	}
	ok := false
	switch f.name {
	case "plist":
		ok = name == "dict"
	case "array":
		ok = value
	case "dict":
		ok = f.kids%2 == 0 && name == "key" || f.kids%2 == 1 && value
	}
	if !ok {
		return fmt.Errorf("element %.40q inside %q", name, f.name)
	}
	return nil
}

// text refuses words where only elements may stand.
func (w *walker) text(t xml.CharData) error {
	if len(bytes.TrimSpace(t)) == 0 {
		return nil
	}
	where := ""
	if len(w.stack) > 0 {
		where = w.stack[len(w.stack)-1].name
	}
	switch where {
	case "", "plist", "dict", "array", "true", "false":
		return fmt.Errorf("text %.40q where none may be", t)
	}
	return nil
}

package command

import (
	"bytes"
	"errors"
	"fmt"
	"math"
	"regexp"

	"howett.net/plist"
)

// MaxPlist bounds the property lists that are parsed, in bytes. Real lists have
// a few kilobytes. The bound also limits how deep elements nest: the library
// recurses for each level.
const MaxPlist = 1 << 20

// maxStarts is how many places that look like the start of a list findPlist
// tries.
const maxStarts = 8

// Errors of property lists.
var (
	ErrNoPlist  = errors.New("no property list")
	ErrBadPlist = errors.New("broken property list") // cut off, or not a dictionary in XML
)

// The start and the end of a list.
var (
	plistStart = regexp.MustCompile(`<\?xml|<plist`)
	plistEnd   = []byte("</plist>")
)

// Dict is a dictionary of a property list. Its getters return the zero value
// for what is missing or of another type: tools leave out keys and change
// types.
type Dict map[string]any

// String is the string at key, or "".
func (d Dict) String(key string) string {
	s, _ := d[key].(string)
	return s
}

// Int is the integer at key, or 0 if it is missing, negative or too large.
func (d Dict) Int(key string) int64 {
	if v, _ := d[key].(uint64); v <= math.MaxInt64 {
		return int64(v)
	}
	return 0
}

// Bool is the boolean at key, or false.
func (d Dict) Bool(key string) bool {
	b, _ := d[key].(bool)
	return b
}

// Dict is the dictionary at key, or nil, which has getters too.
func (d Dict) Dict(key string) Dict {
	m, _ := d[key].(map[string]any)
	return m
}

// Dicts are the dictionaries in the array at key; other elements are left out.
func (d Dict) Dicts(key string) (out []Dict) {
	list, _ := d[key].([]any)
	for _, e := range list {
		if m, ok := e.(map[string]any); ok {
			out = append(out, m)
		}
	}
	return out
}

// findPlist parses the first property list in the output of a tool and also
// returns the text around it: tools print licences and warnings, which may
// contain what looks like the start of a list. Without a list the error is
// ErrNoPlist or ErrBadPlist and the text is all of the output.
func findPlist(out []byte) (d Dict, around string, err error) {
	err = ErrNoPlist
	for _, at := range plistStart.FindAllIndex(out, maxStarts) {
		head, list := out[:at[0]], out[at[0]:]
		end := bytes.Index(list, plistEnd)
		if end < 0 {
			return nil, string(out), fmt.Errorf("reading property list: cut off after %d bytes: %w", len(list),
				ErrBadPlist)
		}
		end += len(plistEnd)
		if d, err = ParsePlist(list[:end]); err == nil {
			return d, string(head) + string(list[end:]), nil
		}
	}
	return nil, string(out), err
}

// ParsePlist parses a property list in XML with a dictionary as its root. The
// library also reads binary and OpenStep lists, which no tool prints; binary
// ones can refer to an object again and again and so unfold without bound.
func ParsePlist(text []byte) (d Dict, err error) {
	text = bytes.TrimSpace(text)
	at := plistStart.FindIndex(text)
	switch {
	case len(text) == 0:
		return nil, ErrNoPlist
	case len(text) > MaxPlist:
		return nil, fmt.Errorf("reading property list: %d bytes, more than %d: %w", len(text), MaxPlist, ErrBadPlist)
	case at == nil || at[0] != 0:
		return nil, fmt.Errorf("reading property list: not XML: %w", ErrBadPlist)
	}
	defer func() { // the library panics on some malformed lists
		if r := recover(); r != nil {
			d, err = nil, fmt.Errorf("reading property list: %v: %w", r, ErrBadPlist)
		}
	}()
	var root map[string]any
	format, err := plist.Unmarshal(text, &root)
	switch {
	case err != nil:
		return nil, fmt.Errorf("reading property list: %w: %w", err, ErrBadPlist)
	case format != plist.XMLFormat || root == nil:
		return nil, fmt.Errorf("reading property list: not a dictionary in XML: %w", ErrBadPlist)
	}
	return root, nil
}

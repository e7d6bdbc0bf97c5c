package command

import (
	"bytes"
	"errors"
	"fmt"
	"regexp"

	"howett.net/plist"
)

// maxPlist bounds the property lists that are parsed, in bytes. Real lists have
// a few kilobytes. The bound also limits how deep elements nest: the library
// recurses for each level.
const maxPlist = 1 << 20

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

// findPlist parses the first property list in the output of a tool: tools print
// licences and warnings around it, which may contain what looks like the start
// of a list. Without a list the error is [ErrNoResult].
func findPlist[T any](out []byte) (v T, err error) {
	err = ErrNoPlist
	for _, at := range plistStart.FindAllIndex(out, maxStarts) {
		list := out[at[0]:]
		end := bytes.Index(list, plistEnd)
		if end < 0 {
			err = fmt.Errorf("reading property list: cut off after %d bytes: %w", len(list), ErrBadPlist)
			break
		}
		if v, err = parsePlist[T](list[:end+len(plistEnd)]); err == nil {
			return v, nil
		}
	}
	return v, fmt.Errorf("%w: %w", ErrNoResult, err)
}

// parsePlist parses a property list in XML with a dictionary as its root into a
// struct. It ignores keys that the struct does not have, and leaves the fields
// of missing keys zero. The library also reads binary and OpenStep lists,
// which no tool prints; binary ones can refer to an object again and again and
// so unfold without bound.
func parsePlist[T any](text []byte) (v T, err error) {
	text = bytes.TrimSpace(text)
	at := plistStart.FindIndex(text)
	switch {
	case len(text) == 0:
		return v, ErrNoPlist
	case len(text) > maxPlist || at == nil || at[0] != 0:
		return v, fmt.Errorf("reading property list of %d bytes: not XML, or more than %d bytes: %w", len(text),
			maxPlist, ErrBadPlist)
	}
	defer func() {
		if r := recover(); r != nil { // the library panics on some malformed lists
			err = fmt.Errorf("%v", r)
		}
		if err != nil {
			v, err = *new(T), fmt.Errorf("reading property list: %w: %w", err, ErrBadPlist)
		}
	}()
	format, err := plist.Unmarshal(text, &v)
	if err == nil && (format != plist.XMLFormat || !bytes.Contains(text, []byte("<dict"))) {
		err = errors.New("not a dictionary in XML")
	}
	return v, err
}

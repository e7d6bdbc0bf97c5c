package exfat

import (
	"fmt"
	"strings"
	"unicode/utf16"
	"unicode/utf8"
)

const (
	maxName  = 255 // UTF-16 units
	perName  = 15  // units in one file name entry
	maxSet   = 19  // entries in an entry set
	labelMax = 11  // units
)

// encodeName turns a name into UTF-16 and checks it against specification section 7.7.3.
func encodeName(name string) ([]uint16, error) {
	if !utf8.ValidString(name) {
		return nil, fmt.Errorf("%q is not valid UTF-8: %w", name, ErrName)
	}
	units := utf16.Encode([]rune(name))
	if err := checkName(units); err != nil {
		return nil, fmt.Errorf("%q %w", name, err)
	}
	return units, nil
}

// checkName says whether the units may be a name.
func checkName(units []uint16) error {
	switch {
	case len(units) == 0:
		return fmt.Errorf("is empty: %w", ErrName)
	case len(units) > maxName:
		return fmt.Errorf("has %d UTF-16 units, at most %d are possible: %w", len(units), maxName, ErrName)
	case units[0] == '.' && (len(units) == 1 || len(units) == 2 && units[1] == '.'):
		return fmt.Errorf("is reserved: %w", ErrName)
	}
	for _, u := range units {
		if u < 0x20 || u < 0x80 && strings.ContainsRune(`"*/:<>?\|`, rune(u)) {
			return fmt.Errorf("contains %q: %w", rune(u), ErrName)
		}
	}
	return nil
}

// key is the form of a name under which two names are the same file.
func (t *caseTable) key(units []uint16) string {
	b := make([]byte, 2*len(units))
	for i, u := range units {
		u = t[u]
		b[2*i], b[2*i+1] = byte(u), byte(u>>8)
	}
	return string(b)
}

// hash is the NameHash of specification section 7.6.4, over the up-cased name.
func (t *caseTable) hash(units []uint16) uint16 {
	var sum uint16
	for _, u := range units {
		u = t[u]
		sum = sum<<15 | sum>>1
		sum += u & 0xFF
		sum = sum<<15 | sum>>1
		sum += u >> 8
	}
	return sum
}

// splitPath returns the parts of a slash-separated path; leading, trailing and doubled slashes do not matter.
func splitPath(path string) []string {
	return strings.FieldsFunc(path, func(r rune) bool { return r == '/' })
}

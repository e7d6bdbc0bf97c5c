package exfat

import (
	_ "embed"
	"encoding/binary"
	"fmt"
	"strings"
	"sync"
	"unicode/utf16"
	"unicode/utf8"
)

const (
	maxName  = 255 // UTF-16 units
	perName  = 15  // units in one file name entry
	maxSet   = 19  // entries in an entry set
	labelMax = 11  // units
)

// encodeName turns a name into UTF-16 and checks it against specification
// section 7.7.3.
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

// checkName returns an error unless the units may be a name.
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

// CutLabel returns the start of a name, whole characters of it, that fits as the
// label of a volume.
func CutLabel(name string) string {
	units := 0
	for i, r := range name {
		if units += len(utf16.Encode([]rune{r})); units > labelMax {
			return name[:i]
		}
	}
	return name
}

// unitBytes are UTF-16 units as they are on the disk.
func unitBytes(units []uint16) []byte {
	b := make([]byte, 0, 2*len(units))
	for _, u := range units {
		b = binary.LittleEndian.AppendUint16(b, u)
	}
	return b
}

// unitsOf reverses unitBytes.
func unitsOf(b []byte) []uint16 {
	units := make([]uint16, len(b)/2)
	for i := range units {
		units[i] = binary.LittleEndian.Uint16(b[2*i:])
	}
	return units
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
// Readers compare it before the name itself.
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

// splitPath returns the parts of a slash-separated path; leading, trailing and
// doubled slashes do not matter.
func splitPath(path string) []string {
	return strings.FieldsFunc(path, func(r rune) bool { return r == '/' })
}

// upcaseData is the recommended up-case table of specification section 7.2.5.1
// (table 24), in its compressed form.
//
//go:embed upcase.bin
var upcaseData []byte

const upcaseChecksum = 0xE619D30D // of upcaseData, published with the table

// caseTable maps UTF-16 units to upper case.
type caseTable [1 << 16]uint16

// standardCase is the table of the specification.
var standardCase = sync.OnceValue(func() *caseTable { return decodeCase(upcaseData) })

// identityCase is the table that changes no code.
func identityCase() *caseTable {
	t := new(caseTable)
	for c := range t {
		t[c] = uint16(c)
	}
	return t
}

// decodeCase decodes a table, compressed (0xFFFF and a count mean that many
// unchanged codes) or not; further codes are unchanged.
func decodeCase(b []byte) *caseTable {
	t := identityCase()
	for c, i := 0, 0; i+1 < len(b) && c < len(t); i += 2 {
		u := binary.LittleEndian.Uint16(b[i:])
		if u == 0xFFFF && i+3 < len(b) {
			i += 2
			c += int(binary.LittleEndian.Uint16(b[i:]))
			continue
		}
		t[c] = u
		c++
	}
	return t
}

// tableChecksum is the checksum of an up-case table in its stored form:
// specification section 7.2.2.
func tableChecksum(b []byte) uint32 {
	var sum uint32
	for _, c := range b {
		sum = sum<<31 | sum>>1
		sum += uint32(c)
	}
	return sum
}

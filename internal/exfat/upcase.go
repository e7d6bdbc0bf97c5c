package exfat

import (
	_ "embed"
	"encoding/binary"
	"sync"
)

// upcaseData is the recommended up-case table of specification section 7.2.5.1 (table 24), in its compressed form.
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

// decodeCase decodes a table, compressed (0xFFFF and a count mean that many unchanged codes) or not; further codes are
// unchanged.
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

// tableChecksum is the checksum of an up-case table: specification section 7.2.2.
func tableChecksum(b []byte) uint32 {
	var sum uint32
	for _, c := range b {
		sum = sum<<31 | sum>>1
		sum += uint32(c)
	}
	return sum
}

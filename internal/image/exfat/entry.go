package exfat

import (
	_ "embed"
	"encoding/binary"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"
	"unicode/utf16"
	"unicode/utf8"
)

// Types of directory entries (section 6.2.1): allocation bitmap, up-case table,
// volume label, file, stream extension, file name and vendor allocation.
const (
	typeBitmap = 0x81
	typeUpcase = 0x82
	typeLabel  = 0x83
	typeFile   = 0x85
	typeStream = 0xC0
	typeName   = 0xC1
	typeVendor = 0xE1
	inUse      = 0x80
	secondary  = 0xC0 // in use, and after another

	// FileAttributes (section 7.4.4).
	attrDir     = 0x10
	attrArchive = 0x20

	// GeneralSecondaryFlags (section 6.4.2).
	flagPossible = 0x01 // an allocation is possible
	flagNoChain  = 0x02 // the clusters are contiguous, the FAT is not used
)

// systemFile is a file that the root directory names by an entry of its own
// (sections 7.1 and 7.2).
type systemFile struct {
	sum   uint32 // of an up-case table
	first uint32
	size  int64
}

// decodeSystem decodes the entry of an allocation bitmap or an up-case table.
func decodeSystem(e []byte) systemFile {
	le := binary.LittleEndian
	return systemFile{sum: le.Uint32(e[4:]), first: le.Uint32(e[20:]), size: int64(le.Uint64(e[24:]))}
}

// encode fills in an entry.
func (f systemFile) encode(e []byte) {
	le := binary.LittleEndian
	le.PutUint32(e[4:], f.sum)
	le.PutUint32(e[20:], f.first)
	le.PutUint64(e[24:], uint64(f.size))
}

// record is the decoded entry set of a file or a directory (specification
// sections 7.4, 7.6 and 7.7).
type record struct {
	attr                        uint16
	created, modified, accessed stamp
	first                       uint32
	size, valid                 int64
	noChain                     bool
	name                        []uint16
}

// isDir reports whether the record is of a directory.
func (r *record) isDir() bool { return r.attr&attrDir != 0 }

// stamp is a time as exFAT stores it (section 7.4): a local time with a
// resolution of 10 ms, and its zone.
type stamp struct {
	dos  uint32
	tens uint8 // hundredths of a second to add, 0 to 199
	zone uint8 // 0x80 | quarters of an hour east of UTC
}

// FirstYear and LastYear are those of the times that a volume can have, in UTC.
const (
	FirstYear = 1980
	LastYear  = 2107
)

// makeStamp cuts t to 10 ms and to these years; stamps are written in UTC.
func makeStamp(t time.Time) stamp {
	t = t.UTC()
	switch {
	case t.Year() < FirstYear:
		t = time.Date(FirstYear, 1, 1, 0, 0, 0, 0, time.UTC)
	case t.Year() > LastYear:
		t = time.Date(LastYear, 12, 31, 23, 59, 59, 0, time.UTC)
	}
	date := uint32(t.Year()-1980)<<9 | uint32(t.Month())<<5 | uint32(t.Day())
	clock := uint32(t.Hour())<<11 | uint32(t.Minute())<<5 | uint32(t.Second())/2
	return stamp{dos: date<<16 | clock, tens: uint8(t.Second()%2*100 + t.Nanosecond()/10_000_000), zone: 0x80}
}

// time returns the instant; without a valid zone the stamp is taken for UTC.
func (s stamp) time() time.Time {
	date, clock := s.dos>>16, s.dos&0xFFFF
	t := time.Date(1980+int(date>>9), time.Month(date>>5&15), int(date&31),
		int(clock>>11), int(clock>>5&63), int(clock&31)*2, int(s.tens)*10_000_000, time.UTC)
	if s.zone&0x80 != 0 {
		quarters := int(int8(s.zone<<1) >> 1) // seven bits, signed
		t = t.Add(-time.Duration(quarters) * 15 * time.Minute)
	}
	return t
}

// renamed sets the access time to now, and in any case later than before: if a
// crash leaves both the old and the new name, Check keeps the one with the
// later access.
func (r *record) renamed(now time.Time) {
	r.accessed = makeStamp(r.accessed.time().Add(2 * time.Second)) // the unit
	r.accessed.tens = 0
	r.access(now)
}

// access notes an access, unless a later one is known.
func (r *record) access(now time.Time) {
	s := makeStamp(now)
	if s.tens = 0; s.time().After(r.accessed.time()) {
		r.accessed = s
	}
}

// checksum continues the checksum of the format: for each byte the sum is
// rotated right by one bit, and the byte added.
func checksum[T uint16 | uint32](sum T, b []byte) T {
	high := ^T(0) ^ ^T(0)>>1
	for _, c := range b {
		sum = sum&1*high + sum>>1 + T(c)
	}
	return sum
}

// setChecksum is the checksum of an entry set, without its own field (section
// 6.3.3).
func setChecksum(set []byte) uint16 { return checksum(checksum[uint16](0, set[:2]), set[4:]) }

// entriesFor is the length of an entry set for a name of n units: file, stream
// extension, and 15 units in each name entry.
func entriesFor(n int) int { return 2 + (n+perName-1)/perName }

// encode returns a fresh entry set.
func (r *record) encode(t *caseTable) []byte {
	n := entriesFor(len(r.name))
	set := make([]byte, n*entryLen)
	set[0], set[1] = typeFile, byte(n-1)
	stream := set[entryLen:]
	stream[0], stream[3] = typeStream, byte(len(r.name))
	binary.LittleEndian.PutUint16(stream[4:], t.hash(r.name))
	name := unitBytes(r.name)
	for i := range n - 2 {
		e := set[(2+i)*entryLen:][:entryLen]
		e[0] = typeName
		copy(e[2:], name[2*perName*i:])
	}
	r.patch(set)
	return set
}

// patch brings attributes, times and allocation in an existing set up to date,
// and its checksum with them. What it does not know (vendor entries) stays.
func (r *record) patch(set []byte) {
	le := binary.LittleEndian
	le.PutUint16(set[4:], r.attr)
	le.PutUint32(set[8:], r.created.dos)
	le.PutUint32(set[12:], r.modified.dos)
	le.PutUint32(set[16:], r.accessed.dos)
	set[20], set[21] = r.created.tens, r.modified.tens
	set[22], set[23], set[24] = r.created.zone, r.modified.zone, r.accessed.zone
	stream := set[entryLen:]
	stream[1] = flagPossible
	if r.noChain && r.first != 0 {
		stream[1] |= flagNoChain
	}
	le.PutUint64(stream[8:], uint64(r.valid))
	le.PutUint32(stream[20:], r.first)
	le.PutUint64(stream[24:], uint64(r.size))
	le.PutUint16(set[2:], setChecksum(set))
}

// setProblem is a defect of an entry set; empty if there is none.
type setProblem string

const (
	setStructure setProblem = "entries do not form a set"
	setSum       setProblem = "checksum of the entry set is wrong"
	setName      setProblem = "name is not allowed"
	setHash      setProblem = "hash of the name is wrong"
)

// setLength is how many entries the set at the start of b claims, at most what
// b holds; 0 if that is impossible.
func setLength(b []byte) int {
	n := int(b[1]) + 1
	if n < 3 || n > maxSet || n*entryLen > len(b) {
		return 0
	}
	return n
}

// decodeSet decodes an entry set of the length that setLength returned. It
// fills in the record even if there is a problem other than setStructure.
func decodeSet(set []byte, t *caseTable) (record, setProblem) {
	le := binary.LittleEndian
	stream := set[entryLen:]
	units := int(stream[3])
	names := (units + perName - 1) / perName
	if stream[0] != typeStream || units == 0 || len(set) < (2+names)*entryLen {
		return record{}, setStructure
	}
	for at := entryLen; at < len(set); at += entryLen {
		if set[at]&secondary != secondary { // free, so that others would be put there, or the beginning of another set
			return record{}, setStructure
		}
	}
	r := record{
		attr:     le.Uint16(set[4:]),
		created:  stamp{le.Uint32(set[8:]), set[20], set[22]},
		modified: stamp{le.Uint32(set[12:]), set[21], set[23]},
		accessed: stamp{le.Uint32(set[16:]), 0, set[24]},
		first:    le.Uint32(stream[20:]),
		size:     int64(le.Uint64(stream[24:])),
		valid:    int64(le.Uint64(stream[8:])),
		noChain:  stream[1]&flagNoChain != 0,
	}
	var name []byte
	for i := range names {
		e := set[(2+i)*entryLen:][:entryLen]
		if e[0] != typeName {
			return record{}, setStructure
		}
		name = append(name, e[2:]...)
	}
	r.name = unitsOf(name[:2*units])
	switch {
	case setChecksum(set) != le.Uint16(set[2:]):
		return r, setSum
	case !isName(r.name):
		return r, setName
	case t.hash(r.name) != le.Uint16(stream[4:]):
		return r, setHash
	}
	return r, ""
}

// text is the name as Go has it.
func (r *record) text() string { return string(utf16.Decode(r.name)) }

const (
	maxName  = 255 // UTF-16 units
	perName  = 15  // units in one file name entry
	maxSet   = 19  // entries in an entry set
	labelMax = 11  // units
)

// encodeName turns a name into UTF-16 and checks it.
func encodeName(name string) ([]uint16, error) {
	units := utf16.Encode([]rune(name))
	if !utf8.ValidString(name) || !isName(units) {
		return nil, fmt.Errorf("%q is not 1 to %d UTF-16 units without control characters and any of %s: %w",
			name, maxName, forbidden, ErrName)
	}
	return units, nil
}

// forbidden are characters that no name has (specification section 7.7.3).
const forbidden = `"*/:<>?\|`

// isName reports whether the units may be a name; . and .. are reserved.
func isName(units []uint16) bool {
	text := string(utf16.Decode(units[:min(len(units), 3)]))
	return len(units) > 0 && len(units) <= maxName && text != "." && text != ".." &&
		!slices.ContainsFunc(units, func(u uint16) bool {
			return u < 0x20 || u < 0x80 && strings.ContainsRune(forbidden, rune(u))
		})
}

// isNamed reports whether a path can name the record: a name on disk may hold
// what exFAT forbids, or be invalid UTF-16.
func (r *record) isNamed() bool {
	return isName(r.name) && slices.Equal(r.name, utf16.Encode(utf16.Decode(r.name)))
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
		sum = checksum(sum, []byte{byte(u), byte(u >> 8)})
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

// decodeCase decodes a table, compressed (0xFFFF and a count mean that many
// unchanged codes) or not; further codes are unchanged.
func decodeCase(b []byte) *caseTable {
	t := new(caseTable)
	for c := range t {
		t[c] = uint16(c)
	}
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
func tableChecksum(b []byte) uint32 { return checksum[uint32](0, b) }

// markFree makes a set of entries free ones.
func markFree(set []byte) {
	for i := 0; i < len(set); i += entryLen {
		set[i] &^= inUse
	}
}

const (
	// bootSectors is the length of one boot region in sectors (section 3): boot
	// sector, 8 extended boot sectors, OEM parameters, reserved, checksum.
	bootSectors = 12
	entryLen    = 32
	firstData   = 2 // number of the first cluster
	// Values of FAT entries (section 4.1): the end of a chain, and a cluster
	// with bad sectors.
	endOfChain  = 0xFFFFFFFF
	badCluster  = 0xFFFFFFF7
	maxClusters = 0xFFFFFFF5 // section 3.1.9
	maxDirSize  = 256 << 20  // specification section 7.1
	block       = 4096       // what direct I/O wants
	// VolumeFlags (section 3.1.13): VolumeDirty and MediaFailure.
	flagDirty     = 0x0002
	flagMedia     = 0x0004
	minVolumeSize = 1 << 20
)

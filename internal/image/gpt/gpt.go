// Package gpt reads and writes GUID partition tables with their protective MBR
// on devices with sectors of 512 bytes, as the UEFI specification 2.10, section
// 5, describes them.
//
// It rejects inconsistent tables: wrong checksums, partitions that overlap or
// leave the usable area, more than [MaxEntries] entries. It never guesses
// partitions from a damaged table. Where the primary table is damaged, it uses
// the backup and returns a warning. It does not read the contents of
// partitions.
package gpt

import (
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"
	"strings"
	"unicode/utf16"
	"unicode/utf8"
)

const (
	// SectorSize is the only sector size that is supported, in bytes.
	SectorSize = 512
	// MaxEntries is the largest number of entries that is accepted when
	// reading.
	MaxEntries = 1024
	// FirstDefault is the first sector of a partition by default, so that it
	// starts at 1 MiB.
	FirstDefault = 2048
	// FirstApple is where hdiutil starts the first partition of an image (20
	// KiB).
	FirstApple = 40

	entrySize    = 128 // bytes; the specification allows more, tools write 128
	entryCount   = 128 // of new tables: the smallest area of 16,384 bytes that the specification requires
	nameUnits    = 36  // UTF-16 units of a name
	headerSize   = 92  // bytes covered by the checksum of a header
	alignSectors = 8   // partitions end on 4096 bytes, for direct I/O
	minSectors   = 6   // both headers, two sectors of entries, the MBR and one usable sector
)

// Errors that callers branch on; every error of this package wraps one of them
// or an error of the device.
var (
	ErrNoTable  = errors.New("no GUID partition table")
	ErrDamaged  = errors.New("damaged GUID partition table")
	ErrInvalid  = errors.New("invalid partition")
	ErrTooSmall = errors.New("device is too small for the partition table")
)

// IsUnusable reports whether err is about the table, rather than about a device
// that failed.
func IsUnusable(err error) bool {
	return errors.Is(err, ErrNoTable) || errors.Is(err, ErrDamaged) ||
		errors.Is(err, ErrInvalid) || errors.Is(err, ErrTooSmall)
}

// Partition is one entry of a table. First and Last are sectors, both
// inclusive, so a partition of one sector has the same First and Last.
type Partition struct {
	Index       int // place in the table, from 0
	Type, ID    GUID
	First, Last uint64
	Attributes  uint64
	Name        string // at most 36 UTF-16 units
}

// Offset is where the partition starts, in bytes from the start of the device.
func (p Partition) Offset() int64 { return int64(p.First) * SectorSize }

// Size is the length of the partition in bytes.
func (p Partition) Size() int64 { return int64(p.Last-p.First+1) * SectorSize }

// Table is a whole partition table. Sectors is the size of the device that it
// was made for.
type Table struct {
	Disk                    GUID
	Sectors                 uint64
	FirstUsable, LastUsable uint64
	Partitions              []Partition // ascending by Index
	entries                 uint32      // size of the table on disk, in entries
}

// EntrySectors is the number of sectors of each of the two copies of the
// entries. There may be a gap between the entries and the usable area.
func (t *Table) EntrySectors() uint64 {
	return (uint64(t.entries)*entrySize + SectorSize - 1) / SectorSize
}

// layout computes the usable area from the number of sectors.
func (t *Table) layout() error {
	// Entries take whole sectors on disk; a table of an odd count, which other
	// tools may make, is rounded up.
	t.entries = (t.entries + 3) / 4 * 4
	table := t.EntrySectors()
	if t.Sectors < 2*(table+2)+alignSectors {
		return fmt.Errorf("laying out %d sectors: %w", t.Sectors, ErrTooSmall)
	}
	t.FirstUsable, t.LastUsable = table+2, t.Sectors-table-2
	return nil
}

// Single returns a table with one partition of the given type that starts at
// sector first (0: [FirstDefault], or [FirstApple] on a device below 4 MiB) and
// takes the rest of the device, ending on a multiple of 4096 bytes.
func Single(size int64, disk, typ, id GUID, name string, first uint64) (*Table, error) {
	t := &Table{Disk: disk, Sectors: uint64(max(size, 0)) / SectorSize, entries: entryCount}
	if err := t.layout(); err != nil {
		return nil, err
	}
	if first == 0 {
		first = FirstDefault
		if size < 4<<20 {
			first = FirstApple
		}
	}
	t.Partitions = []Partition{{Type: typ, ID: id, First: first, Last: t.lastAligned(), Name: name}}
	if err := t.check(); err != nil {
		return nil, fmt.Errorf("laying out partition %q: %w", name, err)
	}
	return t, nil
}

// lastAligned is the last sector that a partition can have so that it ends on a
// multiple of 4096 bytes.
func (t *Table) lastAligned() uint64 { return (t.LastUsable+1)/alignSectors*alignSectors - 1 }

// check returns an error wrapping ErrInvalid unless the partitions fit the
// table.
func (t *Table) check() error {
	for i, p := range t.Partitions {
		switch {
		case p.Index < 0 || p.Index >= int(t.entries):
			return fmt.Errorf("entry %d of a table of %d: %w", p.Index, t.entries, ErrInvalid)
		case p.Type == GUID{}:
			return fmt.Errorf("entry %d has no type: %w", p.Index, ErrInvalid)
		case p.First > p.Last || p.First < t.FirstUsable || p.Last > t.LastUsable:
			return fmt.Errorf("entry %d takes sectors %d to %d, usable are %d to %d: %w",
				p.Index, p.First, p.Last, t.FirstUsable, t.LastUsable, ErrInvalid)
		case !utf8.ValidString(p.Name) || strings.ContainsRune(p.Name, 0) ||
			len(utf16.Encode([]rune(p.Name))) > nameUnits:
			return fmt.Errorf("entry %d is named %q, at most %d UTF-16 units are possible: %w",
				p.Index, p.Name, nameUnits, ErrInvalid)
		}
		for _, q := range t.Partitions[:i] {
			if p.First <= q.Last && q.First <= p.Last {
				return fmt.Errorf("entries %d and %d overlap: %w", q.Index, p.Index, ErrInvalid)
			}
		}
	}
	return nil
}

// GUID is a globally unique identifier in the byte order of the disk: the first
// three groups little-endian.
type GUID [16]byte

// Partition types; see also [TypeName].
var (
	BasicData = parseGUID("EBD0A0A2-B9E5-4433-87C0-68B6B72699C7") // Microsoft basic data: FAT, exFAT, NTFS
	LinuxData = parseGUID("0FC63DAF-8483-4772-8E79-3D69D8477DE4")
	AppleHFS  = parseGUID("48465300-0000-11AA-AA11-00306543ECAC")
	AppleAPFS = parseGUID("7C3457EF-0000-11AA-AA11-00306543ECAC")
	AppleBoot = parseGUID("426F6F74-0000-11AA-AA11-00306543ECAC")
	EFISystem = parseGUID("C12A7328-F81F-11D2-BA4B-00A0C93EC93B")
)

var typeNames = map[GUID]string{
	BasicData: "Microsoft Basic Data",
	LinuxData: "Linux Filesystem",
	AppleHFS:  "Apple_HFS",
	AppleAPFS: "Apple_APFS",
	AppleBoot: "Apple_Boot",
}

// TypeName is the name that Apple's tools give a partition type, or the GUID
// where they have none (as for [EFISystem]).
func TypeName(g GUID) string {
	if name, ok := typeNames[g]; ok {
		return name
	}
	return g.String()
}

// String formats the GUID in upper-case hexadecimal in five groups.
func (g GUID) String() string {
	le := binary.LittleEndian
	return fmt.Sprintf("%08X-%04X-%04X-%X-%X", le.Uint32(g[:]), le.Uint16(g[4:]), le.Uint16(g[6:]), g[8:10], g[10:])
}

// parseGUID reads the form that String writes; it panics on any other length,
// as it is for constants.
func parseGUID(s string) GUID {
	b, _ := hex.DecodeString(strings.ReplaceAll(s, "-", ""))
	slices.Reverse(b[:4])
	slices.Reverse(b[4:6])
	slices.Reverse(b[6:8])
	return GUID(b)
}

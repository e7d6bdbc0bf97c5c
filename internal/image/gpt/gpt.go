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
	"bytes"
	"cmp"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"math"
	"slices"
	"strings"
	"unicode/utf16"
	"unicode/utf8"

	"dmgbench/internal/image/blockdev"
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

// WriteSingle writes a table as [Single] makes it, with the name that hdiutil
// gives the partition of an image. It returns the partition as a device, and
// where that starts, in bytes. The identifiers disk and id become ones of version
// 4, as RFC 9562 lays them out, in the mixed byte order of the disk.
func WriteSingle(dev blockdev.Device, disk, typ, id GUID, first uint64) (blockdev.Device, int64, error) {
	for _, g := range []*GUID{&disk, &id} {
		g[7], g[8] = g[7]&0x0f|0x40, g[8]&0x3f|0x80
	}
	t, err := Single(dev.Size(), disk, typ, id, "disk image", first)
	if err == nil {
		err = Write(dev, t)
	}
	if err != nil {
		return nil, 0, err
	}
	p := t.Partitions[0]
	part, err := blockdev.Section(dev, p.Offset(), p.Size())
	return part, p.Offset(), err
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

// Warning is a defect of a table that Read returned nevertheless.
type Warning = string

// The warnings of [Read].
const (
	WarnNoMBR       Warning = "no protective MBR"
	WarnPrimary     Warning = "the primary table is damaged, the backup was used"
	WarnBackup      Warning = "the backup table is damaged or missing"
	WarnBackupMoved Warning = "the backup table is not at the end of the device"
	WarnDifferent   Warning = "primary and backup table differ, the primary was used"
)

// Write writes the table: first the backup, then the primary with the
// protective MBR, each followed by a flush, so that one of the two is whole at
// any moment. The device must have at least t.Sectors sectors; the table ends
// there. Boot code and further partitions in an existing protective MBR stay.
func Write(dev blockdev.Device, t *Table) error {
	if err := cmp.Or(t.layout(), t.check()); err != nil {
		return fmt.Errorf("writing partition table: %w", err)
	}
	if int64(t.Sectors)*SectorSize > dev.Size() {
		return fmt.Errorf("writing partition table of %d sectors: %w", t.Sectors, ErrTooSmall)
	}
	mbr, err := get(dev, 0, 1)
	if err != nil {
		return fmt.Errorf("reading protective MBR: %w", err)
	}
	entries := t.encodeEntries()
	h := header{
		Self: t.Sectors - 1, Other: 1, FirstUsable: t.FirstUsable, LastUsable: t.LastUsable, Disk: t.Disk,
		Table: t.Sectors - 1 - t.EntrySectors(), Entries: t.entries, EntrySize: entrySize,
		TableCRC: crc32.ChecksumIEEE(entries),
	}
	if err := put(dev, slices.Concat(entries, h.encode()), h.Table); err != nil {
		return fmt.Errorf("writing backup partition table: %w", err)
	}
	h.Self, h.Other, h.Table = 1, t.Sectors-1, 2
	if err := put(dev, slices.Concat(updateMBR(mbr, t.Sectors), h.encode(), entries), 0); err != nil {
		return fmt.Errorf("writing primary partition table: %w", err)
	}
	return nil
}

// put writes whole sectors and flushes.
func put(dev blockdev.Device, b []byte, sector uint64) error {
	if _, err := dev.WriteAt(b, int64(sector)*SectorSize); err != nil {
		return err
	}
	return dev.Flush()
}

// Read returns the table of the device and its defects. It fails with
// [ErrNoTable] if neither end of the device has a table, with [ErrDamaged] or
// [ErrInvalid] if both are unusable, and with the device's own error. It takes
// at most 128 KiB of memory for each table, whatever the device contains.
func Read(dev blockdev.Device) (t *Table, warnings []Warning, err error) {
	defer func() {
		if err != nil {
			t, warnings, err = nil, nil, fmt.Errorf("reading partition table: %w", err)
		}
	}()
	sectors := uint64(dev.Size()) / SectorSize
	if sectors < minSectors {
		return nil, nil, fmt.Errorf("device of %d sectors: %w", sectors, ErrNoTable)
	}
	mbr, err := get(dev, 0, 1)
	if err != nil {
		return nil, nil, err
	}
	if _, protective := mbrPartitions(mbr); !protective {
		warnings = append(warnings, WarnNoMBR)
	}
	primary, ph, perr := readAt(dev, 1, sectors)
	end := sectors - 1
	if perr == nil && ph.Other != end && ph.Other > 1 && ph.Other < sectors {
		end = ph.Other
		warnings = append(warnings, WarnBackupMoved)
	}
	backup, bh, berr := readAt(dev, end, sectors)
	switch {
	case perr != nil && !IsUnusable(perr):
		return nil, nil, perr
	case berr != nil && !IsUnusable(berr):
		return nil, nil, berr
	case perr != nil && berr != nil && errors.Is(perr, ErrNoTable):
		return nil, nil, berr // which may be more than a missing table
	case perr != nil && berr != nil:
		return nil, nil, perr
	case perr != nil:
		return backup, append(warnings, WarnPrimary), nil
	case berr != nil:
		return primary, append(warnings, WarnBackup), nil
	case ph.TableCRC != bh.TableCRC || ph.Disk != bh.Disk || ph.Entries != bh.Entries:
		return primary, append(warnings, WarnDifferent), nil
	}
	return primary, warnings, nil
}

// ReadPrimary returns the primary table alone, of a device of the given number
// of sectors. It also fails with [ErrDamaged] if the entries are not in the
// usual place, right after the header, or the backup is not on the device.
func ReadPrimary(dev io.ReaderAt, sectors uint64) (*Table, error) {
	if sectors < minSectors {
		return nil, ErrNoTable
	}
	t, h, err := readAt(dev, 1, sectors)
	if err == nil && (h.Table != 2 || h.Other >= sectors || h.Other < h.LastUsable+t.EntrySectors()) {
		err = fmt.Errorf("entries at sector %d, backup at %d of %d: %w", h.Table, h.Other, sectors, ErrDamaged)
	}
	return t, err
}

// readAt reads and checks the header at sector self and its entries. Sectors of
// the result is the size for which the table was made, at most that of the
// device.
func readAt(dev io.ReaderAt, self, sectors uint64) (*Table, header, error) {
	b, err := get(dev, self, 1)
	if err != nil {
		return nil, header{}, err
	}
	h, err := decodeHeader(b, self, sectors)
	if err != nil {
		return nil, h, err
	}
	size := int64(h.Entries) * entrySize
	b, err = get(dev, h.Table, uint64(size+SectorSize-1)/SectorSize)
	if err != nil {
		return nil, h, err
	}
	if got := crc32.ChecksumIEEE(b[:size]); got != h.TableCRC {
		return nil, h, fmt.Errorf("checksum of the entries %08x, stored %08x: %w", got, h.TableCRC, ErrDamaged)
	}
	t := &Table{Disk: h.Disk, Sectors: max(h.Self, h.Other) + 1, FirstUsable: h.FirstUsable, LastUsable: h.LastUsable,
		entries: h.Entries}
	if t.Sectors > sectors || t.Sectors == 0 {
		t.Sectors = sectors
	}
	for i := range int(h.Entries) {
		var e diskEntry
		if at := b[i*entrySize:]; GUID(at[:16]) != (GUID{}) { // most entries are unused
			_, _ = binary.Decode(at, binary.LittleEndian, &e)      // of a whole entry: cannot fail
			name := e.Name[:slices.Index(append(e.Name[:], 0), 0)] // it may fill the field
			t.Partitions = append(t.Partitions, Partition{Index: i, Type: e.Type, ID: e.ID, First: e.First,
				Last: e.Last, Attributes: e.Attributes, Name: string(utf16.Decode(name))})
		}
	}
	return t, h, t.check()
}

// get reads n sectors.
func get(dev io.ReaderAt, sector, n uint64) ([]byte, error) {
	b := make([]byte, n*SectorSize)
	if got, err := dev.ReadAt(b, int64(sector)*SectorSize); got < len(b) {
		return nil, cmp.Or(err, io.ErrUnexpectedEOF)
	}
	return b, nil
}

// Resize rewrites the table for a device of size bytes, at most the present
// size: call it before a device shrinks and after it grew. If index is not
// negative, that partition, which must be the last on the device, is made to
// end with the usable area (on a multiple of 4096 bytes). Partitions that no
// longer fit are an error wrapping [ErrInvalid], before anything is written. A
// negative index leaves all partitions as they are. The former backup stays in
// its place: tools look for one at the end of the device alone.
func Resize(dev blockdev.Device, size int64, index int) (*Table, error) {
	t, _, err := Read(dev)
	if err == nil {
		t.Sectors = uint64(max(size, 0)) / SectorSize
		err = t.layout()
	}
	if err != nil {
		return nil, fmt.Errorf("resizing partition table: %w", err)
	}
	i := slices.IndexFunc(t.Partitions, func(p Partition) bool { return p.Index == index })
	switch {
	case i >= 0:
		t.Partitions[i].Last = t.lastAligned()
	case index >= 0:
		return nil, fmt.Errorf("resizing partition %d: %w", index, ErrInvalid)
	}
	return t, Write(dev, t)
}

// header is a primary or backup header as on the device, little-endian (UEFI
// 2.10, table 5.5).
type header struct {
	Signature               [8]byte
	Revision, Size, CRC, _  uint32
	Self, Other             uint64 // sectors of this header and of its twin
	FirstUsable, LastUsable uint64
	Disk                    GUID
	Table                   uint64 // first sector of the entries
	Entries, EntrySize      uint32
	TableCRC                uint32
}

// diskEntry is an entry of the table as on the device (UEFI 2.10, table 5.6).
type diskEntry struct {
	Type, ID                GUID
	First, Last, Attributes uint64
	Name                    [nameUnits]uint16
}

var signature = [8]byte([]byte("EFI PART"))

// appendTo appends v, which has a fixed size, to b.
func appendTo(b []byte, v any) []byte {
	b, _ = binary.Append(b, binary.LittleEndian, v) // fails only for a type without a fixed size
	return b
}

// encode returns the sector, checksum included.
func (h header) encode() []byte {
	h.Signature, h.Revision, h.Size, h.CRC = signature, 0x00010000, headerSize, 0
	h.CRC = crc32.ChecksumIEEE(appendTo(nil, h))
	return append(appendTo(nil, h), make([]byte, SectorSize-headerSize)...)
}

// decodeHeader decodes the sector at self of a device of the given number of
// sectors. It rejects a header if its areas overlap or leave the device, or if
// its table is larger than is accepted.
func decodeHeader(b []byte, self, sectors uint64) (h header, err error) {
	if _, err := binary.Decode(b, binary.LittleEndian, &h); err != nil {
		return h, err
	}
	switch {
	case h.Signature != signature:
		return h, fmt.Errorf("signature %q: %w", h.Signature[:], ErrNoTable)
	case h.Size < headerSize || h.Size > SectorSize:
		return h, fmt.Errorf("header of %d bytes: %w", h.Size, ErrDamaged)
	}
	plain := bytes.Clone(b[:h.Size])
	clear(plain[16:20])
	table := (uint64(h.Entries)*uint64(h.EntrySize) + SectorSize - 1) / SectorSize // sectors
	switch got := crc32.ChecksumIEEE(plain); {
	case got != h.CRC:
		err = fmt.Errorf("header checksum %08x, stored %08x: %w", got, h.CRC, ErrDamaged)
	case h.Self != self:
		err = fmt.Errorf("header at sector %d names sector %d as its own: %w", self, h.Self, ErrDamaged)
	case h.EntrySize != entrySize || h.Entries == 0 || h.Entries > MaxEntries:
		err = fmt.Errorf("table of %d entries of %d bytes, at most %d of %d are accepted: %w", h.Entries, h.EntrySize,
			MaxEntries, entrySize, ErrDamaged)
	case h.FirstUsable < 2 || h.FirstUsable > h.LastUsable || h.LastUsable >= sectors,
		h.Table < 2 || h.Table >= sectors || table > sectors-h.Table,
		h.Table <= h.LastUsable && h.FirstUsable < h.Table+table:
		err = fmt.Errorf("usable sectors %d to %d and entries at sector %d of %d: %w", h.FirstUsable, h.LastUsable,
			h.Table, sectors, ErrDamaged)
	}
	return h, err
}

// encodeEntries returns the whole table of entries.
func (t *Table) encodeEntries() []byte {
	list := make([]diskEntry, t.entries)
	for _, p := range t.Partitions {
		e := &list[p.Index]
		*e = diskEntry{Type: p.Type, ID: p.ID, First: p.First, Last: p.Last, Attributes: p.Attributes}
		copy(e.Name[:], utf16.Encode([]rune(p.Name)))
	}
	return appendTo(nil, list)
}

// mbrTable is the offset of the four entries of 16 bytes in sector 0.
const mbrTable = 446

// updateMBR is the protective MBR of a device with the sector 0 b: one
// partition of type 0xEE over the whole device, which keeps tools without GPT
// support from writing to it. The CHS fields are those of UEFI 2.10, table 5.4.
// Boot code and disk signature of a protective MBR stay, and a hybrid MBR stays
// as it is, since other systems use its further partitions.
func updateMBR(b []byte, sectors uint64) []byte {
	used, protective := mbrPartitions(b)
	if protective && used > 1 {
		return b
	}
	fresh := make([]byte, SectorSize)
	if protective {
		copy(fresh, b[:mbrTable])
	}
	e := fresh[mbrTable:]
	copy(e, []byte{0, 0x00, 0x02, 0x00, 0xEE, 0xFF, 0xFF, 0xFF})
	binary.LittleEndian.PutUint32(e[8:], 1)
	binary.LittleEndian.PutUint32(e[12:], uint32(min(sectors-1, math.MaxUint32)))
	fresh[510], fresh[511] = 0x55, 0xAA
	return fresh
}

// mbrPartitions counts the used entries of a boot record and reports whether
// one is of type 0xEE.
func mbrPartitions(b []byte) (used int, protective bool) {
	if b[510] != 0x55 || b[511] != 0xAA {
		return 0, false
	}
	for e := range slices.Chunk(b[mbrTable:510], 16) {
		if e[4] != 0 {
			used++
		}
		protective = protective || e[4] == 0xEE
	}
	return used, protective
}

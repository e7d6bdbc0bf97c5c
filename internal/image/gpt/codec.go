package gpt

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"math"
	"slices"
	"unicode/utf16"
)

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

// decodeHeader decodes and checks the sector at self of a device of the given
// number of sectors.
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
	if got := crc32.ChecksumIEEE(plain); got != h.CRC {
		return h, fmt.Errorf("header checksum %08x, stored %08x: %w", got, h.CRC, ErrDamaged)
	}
	return h, h.check(self, sectors)
}

// check rejects a header if its areas overlap or leave the device, or if its
// table is larger than is accepted.
func (h header) check(self, sectors uint64) error {
	table := (uint64(h.Entries)*uint64(h.EntrySize) + SectorSize - 1) / SectorSize // sectors
	switch {
	case h.Self != self:
		return fmt.Errorf("header at sector %d names sector %d as its own: %w", self, h.Self, ErrDamaged)
	case h.EntrySize != entrySize || h.Entries == 0 || h.Entries > MaxEntries:
		return fmt.Errorf("table of %d entries of %d bytes, at most %d of %d are accepted: %w", h.Entries, h.EntrySize,
			MaxEntries, entrySize, ErrDamaged)
	case h.FirstUsable < 2 || h.FirstUsable > h.LastUsable || h.LastUsable >= sectors,
		h.Table < 2 || h.Table >= sectors || table > sectors-h.Table,
		h.Table <= h.LastUsable && h.FirstUsable < h.Table+table:
		return fmt.Errorf("usable sectors %d to %d and entries at sector %d of %d: %w", h.FirstUsable, h.LastUsable,
			h.Table, sectors, ErrDamaged)
	}
	return nil
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

// decodeEntries decodes the used entries of a table.
func decodeEntries(b []byte) ([]Partition, error) {
	list := make([]diskEntry, len(b)/entrySize)
	if _, err := binary.Decode(b, binary.LittleEndian, list); err != nil {
		return nil, err
	}
	var parts []Partition
	for i, e := range list {
		if e.Type == (GUID{}) {
			continue
		}
		units := e.Name[:]
		if end := slices.Index(units, 0); end >= 0 {
			units = units[:end]
		}
		parts = append(parts, Partition{Index: i, Type: e.Type, ID: e.ID, First: e.First, Last: e.Last,
			Attributes: e.Attributes, Name: string(utf16.Decode(units))})
	}
	return parts, nil
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

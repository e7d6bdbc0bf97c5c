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

var signature = []byte("EFI PART")

// header is what the sector of a primary or backup header says.
type header struct {
	self, other             uint64 // sectors of this header and of its twin
	firstUsable, lastUsable uint64
	disk                    GUID
	table                   uint64 // first sector of the entries
	entries, entrySize      uint32
	tableCRC                uint32
}

// encode returns the sector, checksum included.
func (h header) encode() []byte {
	b := make([]byte, SectorSize)
	le := binary.LittleEndian
	copy(b, signature)
	le.PutUint32(b[8:], 0x00010000)
	le.PutUint32(b[12:], headerSize)
	le.PutUint64(b[24:], h.self)
	le.PutUint64(b[32:], h.other)
	le.PutUint64(b[40:], h.firstUsable)
	le.PutUint64(b[48:], h.lastUsable)
	copy(b[56:], h.disk[:])
	le.PutUint64(b[72:], h.table)
	le.PutUint32(b[80:], h.entries)
	le.PutUint32(b[84:], h.entrySize)
	le.PutUint32(b[88:], h.tableCRC)
	le.PutUint32(b[16:], crc32.ChecksumIEEE(b[:headerSize]))
	return b
}

// decodeHeader checks the sector found at self on a device of sectors sectors.
func decodeHeader(b []byte, self, sectors uint64) (header, error) {
	var h header
	le := binary.LittleEndian
	if !bytes.Equal(b[:8], signature) {
		return h, fmt.Errorf("signature %q: %w", b[:8], ErrNoTable)
	}
	size := le.Uint32(b[12:])
	if size < headerSize || size > SectorSize {
		return h, fmt.Errorf("header of %d bytes: %w", size, ErrDamaged)
	}
	sum := le.Uint32(b[16:])
	plain := bytes.Clone(b[:size])
	clear(plain[16:20])
	if got := crc32.ChecksumIEEE(plain); got != sum {
		return h, fmt.Errorf("header checksum %08x, stored %08x: %w", got, sum, ErrDamaged)
	}
	h = header{
		self: le.Uint64(b[24:]), other: le.Uint64(b[32:]),
		firstUsable: le.Uint64(b[40:]), lastUsable: le.Uint64(b[48:]),
		disk: GUID(b[56:72]), table: le.Uint64(b[72:]),
		entries: le.Uint32(b[80:]), entrySize: le.Uint32(b[84:]), tableCRC: le.Uint32(b[88:]),
	}
	return h, h.check(self, sectors)
}

func (h header) check(self, sectors uint64) error {
	tableLen := (uint64(h.entries)*uint64(h.entrySize) + SectorSize - 1) / SectorSize
	switch {
	case h.self != self:
		return fmt.Errorf("header at sector %d says it is at %d: %w", self, h.self, ErrDamaged)
	case h.entrySize != entrySize:
		return fmt.Errorf("entries of %d bytes: %w", h.entrySize, ErrDamaged)
	case h.entries == 0 || h.entries > MaxEntries:
		return fmt.Errorf("table of %d entries, at most %d are accepted: %w", h.entries, MaxEntries, ErrDamaged)
	case h.firstUsable < 2 || h.firstUsable > h.lastUsable || h.lastUsable >= sectors:
		return fmt.Errorf("usable sectors %d to %d of %d: %w", h.firstUsable, h.lastUsable, sectors, ErrDamaged)
	case h.table < 2 || h.table >= sectors || tableLen > sectors-h.table:
		return fmt.Errorf("entries at sector %d of %d: %w", h.table, sectors, ErrDamaged)
	case h.table <= h.lastUsable && h.firstUsable < h.table+tableLen:
		return fmt.Errorf("entries at sector %d lie in the usable area: %w", h.table, ErrDamaged)
	}
	return nil
}

// encodeEntries returns the whole table of entries.
func (t *Table) encodeEntries() []byte {
	b := make([]byte, int(t.entries)*entrySize)
	le := binary.LittleEndian
	for _, p := range t.Partitions {
		e := b[p.Index*entrySize:][:entrySize]
		copy(e, p.Type[:])
		copy(e[16:], p.ID[:])
		le.PutUint64(e[32:], p.First)
		le.PutUint64(e[40:], p.Last)
		le.PutUint64(e[48:], p.Attributes)
		for i, u := range utf16.Encode([]rune(p.Name)) {
			le.PutUint16(e[56+2*i:], u)
		}
	}
	return b
}

func decodeEntries(b []byte) []Partition {
	var parts []Partition
	le := binary.LittleEndian
	for i := range len(b) / entrySize {
		e := b[i*entrySize:][:entrySize]
		if GUID(e[:16]) == (GUID{}) {
			continue
		}
		units := make([]uint16, 0, nameUnits)
		for j := range nameUnits {
			u := le.Uint16(e[56+2*j:])
			if u == 0 {
				break
			}
			units = append(units, u)
		}
		parts = append(parts, Partition{
			Index: i, Type: GUID(e[:16]), ID: GUID(e[16:32]), First: le.Uint64(e[32:]), Last: le.Uint64(e[40:]),
			Attributes: le.Uint64(e[48:]), Name: string(utf16.Decode(units)),
		})
	}
	return parts
}

// protectiveMBR is sector 0: one partition of type 0xEE over the whole device, so that tools that know no GPT keep
// their hands off. The CHS fields are what UEFI table 5.4 asks for.
func protectiveMBR(sectors uint64) []byte {
	b := make([]byte, SectorSize)
	e := b[446:]
	copy(e, []byte{0, 0x00, 0x02, 0x00, 0xEE, 0xFF, 0xFF, 0xFF})
	binary.LittleEndian.PutUint32(e[8:], 1)
	binary.LittleEndian.PutUint32(e[12:], uint32(min(sectors-1, math.MaxUint32)))
	b[510], b[511] = 0x55, 0xAA
	return b
}

// protect is the protective MBR of a device of so many sectors that begins with b. What b has in front of its partitions,
// the boot code and the disk's signature, stays, and so does a hybrid MBR, whose partitions are another system's.
func protect(b []byte, sectors uint64) []byte {
	const table = 446
	fresh := protectiveMBR(sectors)
	if !hasProtectiveMBR(b) {
		return fresh
	}
	used := 0
	for e := range slices.Chunk(b[table:510], 16) {
		if e[4] != 0 {
			used++
		}
	}
	if used > 1 {
		return b
	}
	copy(fresh, b[:table])
	return fresh
}

// hasProtectiveMBR says whether one of the four entries is of type 0xEE.
func hasProtectiveMBR(b []byte) bool {
	if b[510] != 0x55 || b[511] != 0xAA {
		return false
	}
	for i := range 4 {
		if b[446+16*i+4] == 0xEE {
			return true
		}
	}
	return false
}

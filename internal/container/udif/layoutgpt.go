package udif

import (
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"io"
	"slices"
	"strings"
	"unicode/utf16"
)

// Bounds of a GUID partition table that is looked at.
const (
	maxGPTEntries   = 1024
	gptEntry        = 128
	minGPTHeader    = 92
	gptTableDefault = 2 // sector of the primary table
)

// gptTypes are Apple's names of GPT partition types; others go by their GUID.
var gptTypes = map[string]string{
	"48465300-0000-11AA-AA11-00306543ECAC": "Apple_HFS",
	"7C3457EF-0000-11AA-AA11-00306543ECAC": "Apple_APFS",
	"426F6F74-0000-11AA-AA11-00306543ECAC": "Apple_Boot",
	"EBD0A0A2-B9E5-4433-87C0-68B6B72699C7": "Microsoft Basic Data",
	"0FC63DAF-8483-4772-8E79-3D69D8477DE4": "Linux Filesystem",
}

// gptParts reads a GUID partition table (UEFI 2.10, section 5.3) whose checksums hold: the protective MBR, both
// headers and tables, and the partitions.
func gptParts(dev io.ReaderAt, head []byte, sectors uint64) ([]Part, error) {
	header := slices.Clone(head[SectorSize : 2*SectorSize])
	u32, u64 := binary.LittleEndian.Uint32, binary.LittleEndian.Uint64
	size, count, entry := u32(header[12:]), u32(header[80:]), u32(header[84:])
	switch {
	case string(header[:8]) != "EFI PART" || size < minGPTHeader || size > SectorSize:
		return nil, nil
	case count == 0 || count > maxGPTEntries || entry != gptEntry || u64(header[72:]) != gptTableDefault:
		return nil, nil
	}
	stored := u32(header[16:])
	clear(header[16:20])
	if crc32.ChecksumIEEE(header[:size]) != stored {
		return nil, nil
	}
	tableSectors := (uint64(count)*gptEntry + SectorSize - 1) / SectorSize
	backup := u64(header[32:])
	if sectors <= 2*tableSectors+3 || backup >= sectors || backup < 2*tableSectors+2 {
		return nil, nil
	}
	table := make([]byte, count*gptEntry)
	if err := readFull(dev, table, gptTableDefault*SectorSize); err != nil {
		return nil, err
	}
	if crc32.ChecksumIEEE(table) != u32(header[88:]) {
		return nil, nil
	}
	parts := []Part{
		{Name: "Protective Master Boot Record", Type: "MBR", First: 0, Sectors: 1},
		{Name: "GPT Header", Type: "Primary GPT Header", First: 1, Sectors: 1},
		{Name: "GPT Partition Data", Type: "Primary GPT Table", First: gptTableDefault, Sectors: tableSectors},
		{Name: "GPT Partition Data", Type: "Backup GPT Table", First: backup - tableSectors, Sectors: tableSectors},
		{Name: "GPT Header", Type: "Backup GPT Header", First: backup, Sectors: 1},
	}
	for e := range slices.Chunk(table, gptEntry) {
		first, last := u64(e[32:]), u64(e[40:])
		if [16]byte(e[:16]) == [16]byte{} {
			continue
		}
		if first > last || last >= sectors {
			return nil, nil
		}
		parts = append(parts, Part{Name: gptName(e[56:128]), Type: gptType(e[:16]), First: first, Sectors: last - first + 1})
	}
	return parts, nil
}

// gptName is the name of a partition, which is UTF-16 on the device.
func gptName(b []byte) string {
	var units []uint16
	for pair := range slices.Chunk(b, 2) {
		unit := binary.LittleEndian.Uint16(pair)
		if unit == 0 {
			break
		}
		units = append(units, unit)
	}
	return printable(string(utf16.Decode(units)))
}

// gptType is Apple's name of a partition type.
func gptType(b []byte) string {
	le := binary.LittleEndian
	guid := fmt.Sprintf("%08X-%04X-%04X-%X-%X", le.Uint32(b), le.Uint16(b[4:]), le.Uint16(b[6:]), b[8:10], b[10:16])
	if name, known := gptTypes[guid]; known {
		return name
	}
	return guid
}

// printable replaces what XML cannot carry.
func printable(name string) string {
	return strings.Map(func(r rune) rune {
		if r < ' ' || r == 0x7F || r == 0xFFFE || r == 0xFFFF {
			return '?'
		}
		return r
	}, strings.ToValidUTF8(name, "?"))
}

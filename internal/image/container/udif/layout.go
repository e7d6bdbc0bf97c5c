package udif

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"fmt"
	"io"
	"slices"
	"strings"

	"dmgbench/internal/image/gpt"
)

// Scheme is how a device is partitioned.
type Scheme int

// The schemes.
const (
	SchemeNone Scheme = iota // one volume over the whole device
	SchemeGPT
	SchemeMBR
	SchemeAPM
)

// FreeType is the Type of a part that no partition uses.
const FreeType = "Apple_Free"

// Layout is all of a device in the order in which an image lists it: every
// partition, every partition table and every gap.
type Layout struct {
	Scheme Scheme
	Parts  []Part
}

// Part is one stretch of a device: a partition, a part of its partition table,
// or a gap; or all of a device that is not partitioned. Name is the partition's
// own, Type is Apple's name of its type, such as Apple_HFS.
type Part struct {
	Name, Type     string
	First, Sectors uint64
}

// descriptorWhole is the descriptor of a device that is not partitioned.
const descriptorWhole = 0xFFFFFFFE

// WholeDevice is the layout of a device that is one volume, with the partition
// type it would have, such as Apple_HFS.
func WholeDevice(sectors uint64, typ string) Layout {
	return Layout{Parts: []Part{{Name: "whole disk", Type: typ, Sectors: sectors}}}
}

// Partitioned is the layout of a device of so many sectors with these parts;
// gaps between them become regions too. It fails when parts overlap or are
// outside of the device.
func Partitioned(scheme Scheme, sectors uint64, parts []Part) (Layout, error) {
	parts = slices.DeleteFunc(slices.Clone(parts), func(p Part) bool { return p.Sectors == 0 })
	slices.SortStableFunc(parts, func(a, b Part) int { return cmp.Compare(a.First, b.First) })
	l, at := Layout{Scheme: scheme}, uint64(0)
	for _, p := range append(parts, Part{First: sectors}) {
		if p.First < at || p.First > sectors || p.Sectors > sectors-p.First {
			return Layout{}, fmt.Errorf("laying out the device: %d sectors at %d of %d overlap or are outside of it",
				p.Sectors, p.First, sectors)
		}
		if p.First > at {
			l.Parts = append(l.Parts, Part{Type: FreeType, First: at, Sectors: p.First - at})
		}
		if at = p.First + p.Sectors; p.Sectors > 0 {
			l.Parts = append(l.Parts, p)
		}
	}
	return l, nil
}

// Regions are the parts with the names and numbers that Apple's tools give
// them: from 0 in the name and from -1 as resources; the descriptor follows the
// name, but for Apple partition maps the resource.
func (l Layout) Regions() (list []Region) {
	for n, p := range l.Parts {
		g := Region{Name: fmt.Sprintf("%s (%s : %d)", printable(p.Name), p.Type, n), ID: n - 1, Descriptor: uint32(n),
			First: p.First, Sectors: p.Sectors}
		switch l.Scheme {
		case SchemeNone:
			g.ID, g.Descriptor = 0, descriptorWhole
		case SchemeAPM:
			g.Descriptor--
		}
		list = append(list, g)
	}
	return list
}

// printable replaces characters that XML cannot hold.
func printable(name string) string {
	return strings.Map(func(r rune) rune {
		if r < ' ' || r == 0x7F || r == 0xFFFE || r == 0xFFFF {
			return '?'
		}
		return r
	}, strings.ToValidUTF8(name, "?"))
}

// ProbeLayout finds out how a device of size bytes is partitioned, for the
// names in an image. The tables only decide where an image is cut, so one that
// is damaged makes the device unpartitioned. An Apple map wins over the boot
// record that shares its first sector, as in Apple's IOStorageFamily. The error
// is the device's.
func ProbeLayout(dev io.ReaderAt, size int64) (Layout, error) {
	sectors := uint64(size) / SectorSize
	head := make([]byte, min(3*SectorSize, size))
	if err := readFull(dev, head, 0); err != nil {
		return Layout{}, fmt.Errorf("reading the partition table: %w", err)
	}
	head = append(head, make([]byte, 3*SectorSize-len(head))...)
	for _, probe := range []struct {
		scheme Scheme
		parts  func(dev io.ReaderAt, head []byte, sectors uint64) ([]Part, error)
	}{{SchemeGPT, readGPT}, {SchemeAPM, readAPM}, {SchemeMBR, readMBR}} {
		parts, err := probe.parts(dev, head, sectors)
		if err != nil {
			return Layout{}, fmt.Errorf("reading the partition table: %w", err)
		}
		if len(parts) == 0 {
			continue
		}
		if l, err := Partitioned(probe.scheme, sectors, parts); err == nil {
			return l, nil
		}
	}
	volume := map[string]string{"H+": "Apple_HFS", "BD": "Apple_HFS", "HX": "Apple_HFSX"}[string(head[1024:1026])]
	if string(head[32:36]) == "NXSB" {
		volume = "Apple_APFS"
	}
	return WholeDevice(sectors, cmp.Or(volume, "unknown partition")), nil
}

// GPTParts are the parts of a device with a GUID partition table: the
// protective MBR, both headers and tables, and the partitions.
func GPTParts(t *gpt.Table) []Part {
	table, last := t.EntrySectors(), t.Sectors-1
	parts := []Part{
		{Name: "Protective Master Boot Record", Type: "MBR", First: 0, Sectors: 1},
		{Name: "GPT Header", Type: "Primary GPT Header", First: 1, Sectors: 1},
		{Name: "GPT Partition Data", Type: "Primary GPT Table", First: 2, Sectors: table},
		{Name: "GPT Partition Data", Type: "Backup GPT Table", First: last - table, Sectors: table},
		{Name: "GPT Header", Type: "Backup GPT Header", First: last, Sectors: 1},
	}
	for _, p := range t.Partitions {
		parts = append(parts, Part{Name: p.Name, Type: gpt.TypeName(p.Type), First: p.First,
			Sectors: p.Last - p.First + 1})
	}
	return parts
}

// readGPT reads a GUID partition table with a whole primary table.
func readGPT(dev io.ReaderAt, _ []byte, sectors uint64) ([]Part, error) {
	t, err := gpt.ReadPrimary(dev, sectors)
	switch {
	case gpt.IsUnusable(err):
		return nil, nil
	case err != nil:
		return nil, err
	}
	return GPTParts(t), nil
}

// mbrTypes are Apple's names of MBR partition types.
var mbrTypes = map[byte]string{
	0x01: "DOS_FAT_12", 0x04: "DOS_FAT_16_S", 0x05: "DOS_Extended", 0x06: "DOS_FAT_16", 0x07: "Windows_NTFS",
	0x0B: "DOS_FAT_32", 0x0C: "Windows_FAT_32", 0x0E: "Windows_FAT_16", 0x0F: "Windows_Extended",
	0x82: "Linux_Swap", 0x83: "Linux", 0xA8: "Apple_UFS", 0xAB: "Apple_Boot", 0xAF: "Apple_HFS",
}

// readMBR reads a master boot record. The first sector of a FAT volume carries
// the same mark, so everything has to fit.
func readMBR(_ io.ReaderAt, head []byte, sectors uint64) ([]Part, error) {
	if head[510] != 0x55 || head[511] != 0xAA {
		return nil, nil
	}
	parts := []Part{{Name: "Master Boot Record", Type: "MBR", Sectors: 1}}
	for entry := range slices.Chunk(head[446:510], 16) {
		first, count := uint64(binary.LittleEndian.Uint32(entry[8:])), uint64(binary.LittleEndian.Uint32(entry[12:]))
		typ := entry[4]
		switch {
		case entry[0]&0x7F != 0 || typ == 0xEE:
			return nil, nil
		case typ == 0 && first == 0 && count == 0:
			continue
		case typ == 0 || first == 0 || count == 0 || first >= sectors || count > sectors-first:
			return nil, nil
		}
		name := cmp.Or(mbrTypes[typ], fmt.Sprintf("0x%02X", typ))
		parts = append(parts, Part{Type: name, First: first, Sectors: count})
	}
	if len(parts) == 1 {
		return nil, nil
	}
	return parts, nil
}

// readAPM reads an Apple partition map. Its entries are in blocks of the size
// that the driver descriptor map gives, and count in them; but CDs and Apple's
// hybrid images have 2048 there and a map of 512-byte blocks as well, before
// the other one if there is one, and Apple's IOApplePartitionScheme takes that.
func readAPM(dev io.ReaderAt, head []byte, sectors uint64) ([]Part, error) {
	if string(head[:2]) != "ER" {
		return nil, nil
	}
	block := int64(binary.BigEndian.Uint16(head[2:]))
	if block == 4*SectorSize && string(head[SectorSize:SectorSize+2]) == "PM" {
		block = SectorSize
	}
	if block == 0 || block%SectorSize != 0 {
		return nil, nil
	}
	unit := uint64(block / SectorSize)
	parts := []Part{{Name: "Driver Descriptor Map", Type: "DDM", Sectors: unit}}
	entry := make([]byte, SectorSize)
	for at, count := int64(1), int64(1); at <= count; at++ {
		if uint64(at+1)*unit > sectors {
			return nil, nil
		}
		if err := readFull(dev, entry, at*block); err != nil {
			return nil, err
		}
		if at == 1 {
			count = int64(binary.BigEndian.Uint32(entry[4:]))
		}
		if string(entry[:2]) != "PM" || count == 0 || count > 256 {
			return nil, nil
		}
		u32 := func(at int) uint64 { return uint64(binary.BigEndian.Uint32(entry[at:])) }
		part := Part{Name: text(entry[16:48]), Type: text(entry[48:80]), First: u32(8) * unit, Sectors: u32(12) * unit}
		if part.Type != FreeType { // Partitioned fills the gaps
			parts = append(parts, part)
		}
	}
	return parts, nil
}

// text is the text in a field of fixed length.
func text(b []byte) string {
	b, _, _ = bytes.Cut(b, []byte{0})
	return printable(string(b))
}

package gpt

import (
	"cmp"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"slices"

	"dmgbench/internal/image/blockdev"
)

// Warning is a defect of a table that Read returned nevertheless.
type Warning string

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
	if err := t.layout(); err != nil {
		return err
	}
	if err := t.check(); err != nil {
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
	parts, err := decodeEntries(b[:size])
	if err != nil {
		return nil, h, err
	}
	t := &Table{Disk: h.Disk, Sectors: max(h.Self, h.Other) + 1, FirstUsable: h.FirstUsable, LastUsable: h.LastUsable,
		Partitions: parts, entries: h.Entries}
	if t.Sectors > sectors || t.Sectors == 0 {
		t.Sectors = sectors
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
// negative index leaves all partitions as they are. Once the new table is
// durable, the former backup is cleared if it is outside all partitions.
func Resize(dev blockdev.Device, size int64, index int) (*Table, error) {
	t, _, err := Read(dev)
	if err != nil {
		return nil, fmt.Errorf("resizing partition table: %w", err)
	}
	old := *t
	t.Sectors = uint64(max(size, 0)) / SectorSize
	if err := t.layout(); err != nil {
		return nil, fmt.Errorf("resizing partition table: %w", err)
	}
	i := slices.IndexFunc(t.Partitions, func(p Partition) bool { return p.Index == index })
	switch {
	case i >= 0:
		t.Partitions[i].Last = t.lastAligned()
	case index >= 0:
		return nil, fmt.Errorf("resizing partition %d: %w", index, ErrInvalid)
	}
	if err := Write(dev, t); err != nil {
		return nil, err
	}
	return t, wipeOld(dev, old, t)
}

// wipeOld clears the backup of the former table where that overlaps neither the
// new table nor a partition.
func wipeOld(dev blockdev.Device, old Table, t *Table) error {
	n := old.EntrySectors() + 1
	if old.Sectors == t.Sectors || old.Sectors < n+2 {
		return nil
	}
	first, last := old.Sectors-n, old.Sectors-1
	if last >= t.Sectors-t.EntrySectors()-1 && first < t.Sectors || first < t.FirstUsable ||
		last*SectorSize >= uint64(dev.Size()) {
		return nil
	}
	for _, p := range t.Partitions {
		if p.First <= last && first <= p.Last {
			return nil
		}
	}
	return put(dev, make([]byte, n*SectorSize), first)
}

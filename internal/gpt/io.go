package gpt

import (
	"errors"
	"fmt"
	"hash/crc32"
	"io"

	"dmgbench/internal/blockdev"
)

// Warning is something about a table that did not keep Read from using it.
type Warning string

// The warnings of [Read].
const (
	WarnNoMBR       Warning = "no protective MBR"
	WarnPrimary     Warning = "the primary table is damaged, the backup was used"
	WarnBackup      Warning = "the backup table is damaged or missing"
	WarnBackupMoved Warning = "the backup table is not at the end of the device"
	WarnDifferent   Warning = "primary and backup table differ, the primary was used"
)

// Write puts the table on the device: backup first, then primary and protective MBR, each flushed, so that at any
// moment one of the two is whole. The device must have at least t.Sectors sectors; the table ends there. Boot code and
// further partitions in a protective MBR that is there already stay.
func Write(dev blockdev.Device, t *Table) error {
	// Entries come in whole sectors on disk; a table of an odd count, which other tools may make, is rounded up.
	t.entries = (t.entries + 3) / 4 * 4
	if err := t.layout(); err != nil {
		return err
	}
	if err := t.check(t.Partitions); err != nil {
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
	table := uint64(len(entries) / SectorSize)
	h := header{
		self: t.Sectors - 1, other: 1, firstUsable: t.FirstUsable, lastUsable: t.LastUsable, disk: t.Disk,
		table: t.Sectors - 1 - table, entries: t.entries, entrySize: entrySize, tableCRC: crc32.ChecksumIEEE(entries),
	}
	if err := put(dev, append(entries, h.encode()...), h.table); err != nil {
		return fmt.Errorf("writing backup partition table: %w", err)
	}
	h.self, h.other, h.table = 1, t.Sectors-1, 2
	primary := append(protect(mbr, t.Sectors), h.encode()...)
	primary = append(primary, t.encodeEntries()...)
	if err := put(dev, primary, 0); err != nil {
		return fmt.Errorf("writing primary partition table: %w", err)
	}
	return nil
}

func put(dev blockdev.Device, b []byte, sector uint64) error {
	if _, err := dev.WriteAt(b, int64(sector)*SectorSize); err != nil {
		return err
	}
	return dev.Flush()
}

// Read returns the table of the device and what is wrong with it short of making it unusable. It fails with
// [ErrNoTable] when neither end of the device carries one, with [ErrDamaged] or [ErrInvalid] when both are unusable,
// with the device's own error when that fails, and takes at most 128 KiB of memory a table, whatever the device says.
func Read(dev blockdev.Device) (*Table, []Warning, error) {
	var warnings []Warning
	sectors := uint64(dev.Size()) / SectorSize
	if sectors < 6 {
		return nil, nil, fmt.Errorf("reading partition table of %d sectors: %w", sectors, ErrNoTable)
	}
	mbr, err := get(dev, 0, 1)
	if err != nil {
		return nil, nil, fmt.Errorf("reading protective MBR: %w", err)
	}
	if !hasProtectiveMBR(mbr) {
		warnings = append(warnings, WarnNoMBR)
	}
	primary, ph, perr := readAt(dev, 1, sectors)
	end := sectors - 1
	if perr == nil && ph.other != end && ph.other > 1 && ph.other < sectors {
		end = ph.other
		warnings = append(warnings, WarnBackupMoved)
	}
	backup, bh, berr := readAt(dev, end, sectors)
	if err := errors.Join(unread(perr), unread(berr)); err != nil {
		return nil, nil, fmt.Errorf("reading partition table: %w", err)
	}
	switch {
	case perr != nil && berr != nil:
		if errors.Is(perr, ErrNoTable) && !errors.Is(berr, ErrNoTable) {
			perr = berr
		}
		return nil, nil, fmt.Errorf("reading partition table: %w", perr)
	case perr != nil:
		return backup, append(warnings, WarnPrimary), nil
	case berr != nil:
		return primary, append(warnings, WarnBackup), nil
	case ph.tableCRC != bh.tableCRC || ph.disk != bh.disk || ph.entries != bh.entries:
		return primary, append(warnings, WarnDifferent), nil
	}
	return primary, warnings, nil
}

// unread is err if the device failed: that says nothing about the table.
func unread(err error) error {
	if errors.Is(err, ErrNoTable) || errors.Is(err, ErrDamaged) || errors.Is(err, ErrInvalid) {
		return nil
	}
	return err
}

// readAt reads the header at sector self and its entries.
func readAt(dev blockdev.Device, self, sectors uint64) (*Table, header, error) {
	b, err := get(dev, self, 1)
	if err != nil {
		return nil, header{}, err
	}
	h, err := decodeHeader(b, self, sectors)
	if err != nil {
		return nil, h, err
	}
	size := int64(h.entries) * entrySize
	b, err = get(dev, h.table, uint64(size+SectorSize-1)/SectorSize)
	if err != nil {
		return nil, h, err
	}
	if got := crc32.ChecksumIEEE(b[:size]); got != h.tableCRC {
		return nil, h, fmt.Errorf("checksum of the entries %08x, stored %08x: %w", got, h.tableCRC, ErrDamaged)
	}
	t := &Table{
		Disk: h.disk, Sectors: max(h.self, h.other) + 1, FirstUsable: h.firstUsable, LastUsable: h.lastUsable,
		Partitions: decodeEntries(b[:size]), entries: h.entries,
	}
	if t.Sectors > sectors || t.Sectors == 0 {
		t.Sectors = sectors
	}
	return t, h, t.check(t.Partitions)
}

func get(dev blockdev.Device, sector, n uint64) ([]byte, error) {
	b := make([]byte, n*SectorSize)
	if got, err := dev.ReadAt(b, int64(sector)*SectorSize); got < len(b) {
		if err == nil {
			err = io.ErrUnexpectedEOF
		}
		return nil, err
	}
	return b, nil
}

// Grow moves the backup table to the end of a device whose size has changed; partitions stay as they are. It
// returns the table as written. See [Resize] for a device that is about to shrink.
func Grow(dev blockdev.Device) (*Table, error) { return Resize(dev, dev.Size(), -1) }

// Resize rewrites the table for a device of size bytes, which must not exceed the present size: call it before a
// device shrinks and after it grew. If index is not negative, that partition, which must be the last on the device,
// is made to end at the end of the usable area (on a multiple of 4096 bytes). Partitions that no longer fit are an
// error wrapping [ErrInvalid], before anything is written. The former backup is wiped once the new table is
// durable, if it lies outside of all partitions.
func Resize(dev blockdev.Device, size int64, index int) (*Table, error) {
	t, _, err := Read(dev)
	if err != nil {
		return nil, fmt.Errorf("resizing partition table: %w", err)
	}
	old := *t
	t.Sectors = uint64(max(size, 0)) / SectorSize
	t.entries = (t.entries + 3) / 4 * 4 // as Write does
	if err := t.layout(); err != nil {
		return nil, fmt.Errorf("resizing partition table: %w", err)
	}
	if index >= 0 {
		if err := t.stretch(index); err != nil {
			return nil, err
		}
	}
	if err := Write(dev, t); err != nil {
		return nil, err
	}
	return t, wipeOld(dev, old, t)
}

// stretch makes the partition end where the usable area does.
func (t *Table) stretch(index int) error {
	last := (t.LastUsable+1)/alignSectors*alignSectors - 1
	for i := range t.Partitions {
		if t.Partitions[i].Index == index {
			t.Partitions[i].Last = last
			return nil
		}
	}
	return fmt.Errorf("resizing partition %d: %w", index, ErrInvalid)
}

// wipeOld clears the backup that a shorter or longer table left behind, where it touches nothing of the new one.
func wipeOld(dev blockdev.Device, old Table, t *Table) error {
	n := uint64(old.entries)*entrySize/SectorSize + 1
	if old.Sectors == t.Sectors || old.Sectors < n+2 {
		return nil
	}
	first, last := old.Sectors-n, old.Sectors-1
	newTable := t.Sectors - uint64(t.entries)*entrySize/SectorSize - 1
	if last >= newTable && first < t.Sectors || first < t.FirstUsable || last*SectorSize >= uint64(dev.Size()) {
		return nil
	}
	for _, p := range t.Partitions {
		if p.First <= last && first <= p.Last {
			return nil
		}
	}
	if err := put(dev, make([]byte, n*SectorSize), first); err != nil {
		return fmt.Errorf("wiping the former backup partition table: %w", err)
	}
	return nil
}

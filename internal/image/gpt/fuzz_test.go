package gpt

import (
	"encoding/binary"
	"errors"
	"hash/crc32"
	"testing"

	"dmgbench/internal/image/blockdev"
	"dmgbench/internal/image/blockdev/blockdevtest"
)

// FuzzRead reads arbitrary devices: it must not panic, and what it accepts must be writable and read the same.
func FuzzRead(f *testing.F) {
	const size = 64 << 10
	dev, _ := written(f, size, 0)
	whole := make([]byte, size)
	if _, err := dev.ReadAt(whole, 0); err != nil {
		f.Fatal(err)
	}
	f.Add(whole[:1024+256], whole[size-33*SectorSize:])
	f.Add(whole[:600], []byte{})
	f.Add([]byte{}, whole[size-33*SectorSize:])
	f.Fuzz(func(t *testing.T, head, tail []byte) {
		if len(head) > size || len(tail) > size {
			return
		}
		dev := blockdevtest.NewMem(size)
		_, _ = dev.WriteAt(head, 0)
		_, _ = dev.WriteAt(tail, size-int64(len(tail)))
		judge(t, dev)
	})
}

// FuzzSealed changes header and entries of a valid primary table at will and makes the checksums right again, so that
// what they say is all that protects the reader.
func FuzzSealed(f *testing.F) {
	const size = 64 << 10
	f.Add(uint16(24), []byte{1}, uint16(0), []byte{}, uint32(128))
	f.Add(uint16(32), []byte{0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF}, uint16(32), []byte{0xFF, 0xFF}, uint32(1))
	f.Add(uint16(40), []byte{2, 0, 0, 0, 0, 0, 0, 0, 0x7F}, uint16(128), []byte{1, 2, 3}, uint32(126))
	f.Add(uint16(72), []byte{0xFE, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF}, uint16(0), []byte{}, uint32(1024))
	f.Fuzz(func(t *testing.T, at uint16, header []byte, in uint16, entries []byte, count uint32) {
		dev, table := written(t, size, 0)
		if count == 0 || count > 2*MaxEntries {
			return
		}
		h, e := make([]byte, SectorSize), make([]byte, 2*MaxEntries*entrySize)
		_, _ = dev.ReadAt(h, SectorSize)
		copy(e, table.encodeEntries())
		copy(e[in:], entries)
		e = e[:count*entrySize]
		le := binary.LittleEndian
		le.PutUint32(h[80:], count)
		le.PutUint32(h[88:], crc32.ChecksumIEEE(e))
		copy(h[int(at)%headerSize:headerSize], header)
		clear(h[16:20])
		le.PutUint32(h[16:], crc32.ChecksumIEEE(h[:headerSize]))
		if first := le.Uint64(h[72:]); first < size/SectorSize {
			_, _ = dev.WriteAt(e[:min(len(e), size-int(first)*SectorSize)], int64(first)*SectorSize)
		}
		_, _ = dev.WriteAt(h, SectorSize)
		judge(t, dev)
	})
}

// judge reads the table, and writes back what was accepted.
func judge(t *testing.T, dev *blockdevtest.MemDevice) {
	table, _, err := Read(dev)
	if err != nil {
		return
	}
	for _, p := range table.Partitions {
		if _, err := blockdev.Section(dev, p.Offset(), p.Size()); err != nil {
			t.Fatalf("accepted a partition outside of the device: %v", err)
		}
	}
	was := table.Partitions
	if err := Write(dev, table); err != nil {
		if !errors.Is(err, ErrInvalid) && !errors.Is(err, ErrTooSmall) {
			t.Fatalf("writing back what was read: %v", err)
		}
		return
	}
	again, warnings, err := Read(dev)
	if err != nil || len(again.Partitions) != len(was) {
		t.Fatalf("read %v, wrote it, and then: %v, %v", was, again, err)
	}
	for _, w := range warnings {
		if w != WarnBackupMoved { // a table that ends before the device does is kept so
			t.Fatalf("after writing: %v", w)
		}
	}
}

package gpt

import (
	"testing"

	"dmgbench/internal/blockdev"
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
		dev := blockdev.NewMem(size)
		_, _ = dev.WriteAt(head, 0)
		_, _ = dev.WriteAt(tail, size-int64(len(tail)))
		table, _, err := Read(dev)
		if err != nil {
			return
		}
		for _, p := range table.Partitions {
			if _, err := blockdev.Section(dev, p.Offset(), p.Size()); err != nil {
				t.Fatalf("accepted a partition outside of the device: %v", err)
			}
		}
	})
}

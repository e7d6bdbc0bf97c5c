package exfat

import (
	"testing"

	"dmgbench/internal/image/blockdev/blockdevtest"
)

// nullDevice keeps metadata in memory and does nothing with transfers of 1 MiB.
type nullDevice struct{ *blockdevtest.MemDevice }

func (d nullDevice) WriteAt(p []byte, off int64) (int, error) {
	if len(p) == 1<<20 {
		return len(p), nil
	}
	return d.MemDevice.WriteAt(p, off)
}

func (d nullDevice) ReadAt(p []byte, off int64) (int, error) {
	if len(p) == 1<<20 {
		return len(p), nil
	}
	return d.MemDevice.ReadAt(p, off)
}

func benchFile(b *testing.B) *File {
	dev := nullDevice{blockdevtest.NewMem(4 << 30)}
	if err := Format(dev, FormatOptions{}); err != nil {
		b.Fatal(err)
	}
	v, err := Mount(dev, MountOptions{})
	if err != nil {
		b.Fatal(err)
	}
	f, err := v.Create("f", 1<<30)
	if err != nil {
		b.Fatal(err)
	}
	return f
}

// BenchmarkWrite is the time that the file system adds to a write of 1 MiB.
func BenchmarkWrite(b *testing.B) {
	f, p := benchFile(b), make([]byte, 1<<20)
	b.ReportAllocs()
	b.SetBytes(1 << 20)
	for off := int64(0); b.Loop(); off = (off + 1<<20) % (1 << 30) {
		if _, err := f.WriteAt(p, off); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkRead is the time that the file system adds to a read of 1 MiB.
func BenchmarkRead(b *testing.B) {
	f, p := benchFile(b), make([]byte, 1<<20)
	for off := int64(0); off < 1<<30; off += 1 << 20 {
		if _, err := f.WriteAt(p, off); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportAllocs()
	b.SetBytes(1 << 20)
	for off := int64(0); b.Loop(); off = (off + 1<<20) % (1 << 30) {
		if _, err := f.ReadAt(p, off); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkCreateSyncRemove is the metadata of one small file's life, on memory.
func BenchmarkCreateSyncRemove(b *testing.B) {
	dev := blockdevtest.NewMem(1 << 30)
	if err := Format(dev, FormatOptions{}); err != nil {
		b.Fatal(err)
	}
	v, err := Mount(dev, MountOptions{})
	if err != nil {
		b.Fatal(err)
	}
	p := make([]byte, 100_000)
	for b.Loop() {
		f, err := v.Create("f", int64(len(p)))
		if err == nil {
			_, err = f.WriteAt(p, 0)
		}
		if err == nil {
			err = f.Sync()
		}
		if err == nil {
			err = f.Close()
		}
		if err == nil {
			err = v.Remove("f")
		}
		if err != nil {
			b.Fatal(err)
		}
	}
}

func TestDataPathDoesNotAllocate(t *testing.T) {
	_, v := newVolume(t, 16<<20, FormatOptions{})
	f, err := v.Create("f", 3<<20+5)
	if err != nil {
		t.Fatal(err)
	}
	p := make([]byte, 3<<20+5)
	transfer := func() {
		if _, err := f.WriteAt(p, 0); err != nil {
			t.Fatal(err)
		}
		if _, err := f.ReadAt(p, 0); err != nil {
			t.Fatal(err)
		}
	}
	transfer()
	if n := testing.AllocsPerRun(20, transfer); n >= 1 {
		t.Fatalf("%v allocations for a write and a read", n)
	}
}

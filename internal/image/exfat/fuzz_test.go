package exfat

import (
	"strings"
	"testing"
	"unicode/utf8"

	"dmgbench/internal/image/blockdev"
	"dmgbench/internal/image/blockdev/blockdevtest"
)

const fuzzSize = 1 << 20

// seedImage is the start of a small volume in use: everything up to its last used cluster.
func seedImage(f *testing.F, cluster int64) []byte {
	dev := blockdevtest.NewMem(fuzzSize)
	if err := Format(dev, FormatOptions{ClusterSize: cluster, Label: "fuzz"}); err != nil {
		f.Fatal(err)
	}
	v, err := Mount(dev, MountOptions{})
	if err != nil {
		f.Fatal(err)
	}
	_ = v.Mkdir("dir")
	for _, name := range []string{"dir/a", "b"} {
		x, err := v.Create(name, 1500)
		if err != nil {
			f.Fatal(err)
		}
		_, _ = x.WriteAt([]byte(name), 0)
		_ = x.Close()
	}
	end := v.g.at(v.alloc.cursor + firstData)
	if err := v.Unmount(); err != nil {
		f.Fatal(err)
	}
	b := make([]byte, end)
	_, _ = dev.ReadAt(b, 0)
	return b
}

// FuzzMount mounts arbitrary bytes and uses whatever that gives: nothing may panic, loop or take much memory. The two
// changes are applied to a valid volume, with the checksums of its boot region made right again.
func FuzzMount(f *testing.F) {
	seeds := [][]byte{seedImage(f, 512), seedImage(f, 4096)}
	for i := range seeds {
		f.Add(uint8(i), uint32(80), []byte{0xFF, 0xFF, 0xFF, 0x7F}, uint32(12288), []byte{0})
		f.Add(uint8(i), uint32(92), []byte{1, 0, 0, 0}, uint32(96), []byte{2})
		f.Add(uint8(i), uint32(108), []byte{12, 13}, uint32(0), []byte{})
		f.Add(uint8(i), uint32(12288+5*4), []byte{5, 0, 0, 0}, uint32(12288+8), []byte{2, 0, 0, 0})
		f.Add(uint8(i), uint32(len(seeds[i])-512), []byte{0x85, 0xFF}, uint32(len(seeds[i])-1024), []byte{0xC0})
	}
	f.Fuzz(func(t *testing.T, which uint8, off1 uint32, b1 []byte, off2 uint32, b2 []byte) {
		image := append([]byte(nil), seeds[int(which)%len(seeds)]...)
		for _, c := range []struct {
			off uint32
			b   []byte
		}{{off1, b1}, {off2, b2}} {
			if int64(c.off) < int64(len(image)) {
				copy(image[c.off:], c.b)
			}
		}
		copy(image[11*512:12*512], checksumSector(image, 512))
		dev := blockdevtest.NewMem(fuzzSize)
		if _, err := dev.WriteAt(image, 0); err != nil {
			t.Fatal(err)
		}
		useVolume(dev)
		_, _ = Check(dev, CheckOptions{Repair: true})
		useVolume(dev)
	})
}

// useVolume does what a user would, and ignores errors.
func useVolume(dev blockdev.Device) {
	v, err := Mount(dev, MountOptions{MetadataLimit: 16 << 20})
	if err != nil {
		return
	}
	var files []string
	_ = v.Walk("", func(path string, i Info) error {
		if !i.Dir {
			files = append(files, path)
		}
		return nil
	}, nil)
	b := make([]byte, 8192)
	for _, path := range files {
		if f, err := v.Open(path); err == nil {
			_, _ = f.ReadAt(b, 0)
			_, _ = f.WriteAt(b[:100], f.Size())
			_ = f.Truncate(10)
			_ = f.Sync()
			_ = f.Close()
		}
		_ = v.Rename(path, path+" renamed")
		_ = v.Remove(path + " renamed")
	}
	_ = v.Mkdir("new")
	if f, err := v.Create("new/file", 100_000); err == nil {
		_ = f.Close()
	}
	_, _ = v.Trim(0)
	_ = v.Unmount()
}

// FuzzName checks that a name that is accepted survives on disk and that key and hash agree about case.
func FuzzName(f *testing.F) {
	for _, s := range []string{"a", "Straße", "ǅ", "日本語.txt", "..", "a/b", "\x00", "\xff", strings.Repeat("🎉", 128), "con", "trailing. "} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, name string) {
		units, err := encodeName(name)
		if err != nil {
			return
		}
		if !utf8.ValidString(name) || strings.ContainsAny(name, `"*/:<>?\|`) || len(units) > 255 {
			t.Fatalf("%q was accepted", name)
		}
		table := standardCase()
		r := record{name: units, size: 5, first: 9}
		got, problem := decodeSet(r.encode(table), table)
		if problem != "" || got.text() != name {
			t.Fatalf("%q became %q, %s", name, got.text(), problem)
		}
		upper := make([]uint16, len(units))
		for i, u := range units {
			upper[i] = table[u]
		}
		if table.key(upper) != table.key(units) || table.hash(upper) != table.hash(units) {
			t.Fatalf("%q and its upper case are different names", name)
		}
	})
}

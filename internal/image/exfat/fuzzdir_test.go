package exfat

import (
	"encoding/binary"
	"testing"

	"dmgbench/internal/image/blockdev/blockdevtest"
)

// FuzzDirectory makes arbitrary bytes the root directory behind its three system entries, with the checksums of sets
// made right again if seal is set, and puts others into the FAT and the bitmap. It must be bounded in all that it does,
// and a volume that a repair calls clean must be clean.
func FuzzDirectory(f *testing.F) {
	file := func(name string, first uint32, size int64, noChain, dir bool) []byte {
		r := record{attr: attrArchive, first: first, size: size, valid: size, noChain: noChain}
		if dir {
			r.attr = attrDir
		}
		for _, c := range name {
			r.name = append(r.name, uint16(c))
		}
		return r.encode(standardCase())
	}
	chain := func(next ...uint32) (b []byte) {
		for _, c := range next {
			b = binary.LittleEndian.AppendUint32(b, c)
		}
		return b
	}
	f.Add(file("a", 20, 3000, false, false), chain(21, 22, 23, 24, 25, endOfChain), []byte{0xFF}, true)
	f.Add(file("a", 20, 3000, false, false), chain(21, 22, 20), []byte{0xFF}, true)
	f.Add(append(file("a", 20, 1000, true, false), file("b", 21, 1000, true, false)...), []byte{}, []byte{0xFF, 0xFF}, true)
	f.Add(file("loop", 17, 512, true, true), []byte{}, []byte{}, true)
	f.Add(file("huge", 20, 1<<62, true, false), []byte{}, []byte{}, true)
	f.Add(file("deep", 20, 512*300, false, true), chain(21, 20), []byte{}, false)
	f.Add(append([]byte{typeBitmap}, make([]byte, 31)...), []byte{}, []byte{}, false)
	f.Fuzz(func(t *testing.T, entries, fat, bits []byte, seal bool) {
		dev := blockdevtest.NewMem(fuzzSize)
		if err := Format(dev, FormatOptions{ClusterSize: 512}); err != nil {
			t.Fatal(err)
		}
		v, err := Mount(dev, MountOptions{})
		if err != nil {
			t.Fatal(err)
		}
		entries = append([]byte(nil), entries[:min(len(entries), 512-3*entryLen)]...)
		if seal {
			sealSets(entries)
		}
		_, _ = dev.WriteAt(entries, v.g.at(v.g.Root)+3*entryLen)
		_, _ = dev.WriteAt(fat[:min(len(fat), 4096)], v.g.fatStart()+20*4)
		_, _ = dev.WriteAt(bits[:min(len(bits), 64)], v.bmExtent[0].Device+2)
		if r, err := Check(dev.Clone(), CheckOptions{}); err == nil && r.Clean() {
			useClean(t, dev.Clone())
		}
		useVolume(dev.Clone())
		r, err := Check(dev, CheckOptions{Repair: true})
		if err != nil || !r.Clean() {
			return
		}
		again, err := Check(dev, CheckOptions{})
		if err != nil || !again.Clean() {
			t.Fatalf("repaired %v, and then: %v, %v", r.Findings, err, again)
		}
	})
}

// sealSets makes the name hashes and checksums of all sets right.
func sealSets(b []byte) {
	for i := 0; i+entryLen <= len(b); i += entryLen {
		if b[i] != typeFile {
			continue
		}
		n := setLength(b[i:])
		if n == 0 {
			continue
		}
		set := b[i : i+n*entryLen]
		if rec, problem := decodeSet(set, standardCase()); problem != setStructure {
			binary.LittleEndian.PutUint16(set[entryLen+4:], standardCase().hash(rec.name))
		}
		binary.LittleEndian.PutUint16(set[2:], setChecksum(set))
	}
}

// useClean uses a volume in which nothing is wrong: nothing may be wrong with it afterwards.
func useClean(t *testing.T, dev *blockdevtest.MemDevice) {
	useVolume(dev)
	r, err := Check(dev, CheckOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if !r.Clean() {
		t.Fatalf("a clean volume was used, and then: %v", r.Findings)
	}
}

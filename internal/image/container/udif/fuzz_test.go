package udif

import (
	"bytes"
	"context"
	"encoding/base64"
	"io"
	"strings"
	"testing"

	"howett.net/plist"
)

func FuzzTrailer(f *testing.F) {
	file := forge{fork: make([]byte, 512), tables: [][]byte{mish(0, 1, 0, [5]uint64{rawRunT, 0, 1, 0, 512})}}.file()
	f.Add(file[len(file)-TrailerSize:])
	f.Fuzz(func(t *testing.T, b []byte) {
		trailer, err := ParseTrailer(b)
		if err != nil {
			return
		}
		again, err := ParseTrailer(trailer.Marshal())
		if err != nil || *again != *trailer {
			t.Fatalf("%+v is written as %+v: %v", trailer, again, err)
		}
		if trailer.check(1<<20) == nil && (trailer.PlistLength > 1<<20 || trailer.DataLength > 1<<20) {
			t.Fatalf("%+v passes for a file of 1 MiB", trailer)
		}
	})
}

// FuzzPlist holds the scanner against a library on all lists that both accept.
func FuzzPlist(f *testing.F) {
	table := base64.StdEncoding.EncodeToString(mish(0, 8, 0, [5]uint64{zeroRun, 0, 8, 0, 0}))
	f.Add([]byte("<plist><dict><key>resource-fork</key><dict><key>blkx</key><array><dict><key>Data</key><data>" + table +
		"</data><key>Name</key><string>a &amp; &#66;<![CDATA[<]]></string><key>ID</key><string>-1</string></dict></array></dict></dict></plist>"))
	f.Add([]byte(`<?xml version="1.0"?><!DOCTYPE plist PUBLIC "a" "b"><plist version="1.0"><!-- x --><dict><key>resource-fork</key><dict/></dict></plist>`))
	f.Fuzz(func(t *testing.T, b []byte) {
		var data [][]byte
		err := parsePlist(io.NewSectionReader(bytes.NewReader(b), 0, int64(len(b))), func(r resource) error {
			if len(r.data) > len(b) || cap(r.data) > 2*len(b)+1024 {
				t.Fatalf("%d bytes (room for %d) from a list of %d", len(r.data), cap(r.data), len(b))
			}
			data = append(data, bytes.Clone(r.data))
			return nil
		}, func() {})
		if err != nil {
			return
		}
		var other struct {
			Fork struct {
				Blkx []struct{ Data []byte } `plist:"blkx"`
			} `plist:"resource-fork"`
		}
		text := string(b)
		if _, err := plist.Unmarshal(b, &other); err != nil || strings.Count(text, "resource-fork") > 1 || strings.Count(text, "blkx") > 1 ||
			strings.Count(text, "Data") > len(data) || strings.Contains(text, "<!") || strings.Contains(text, "&") {
			return // repeated keys and such mean different things to the two
		}
		if len(other.Fork.Blkx) != len(data) {
			t.Fatalf("%d entries, the library finds %d", len(data), len(other.Fork.Blkx))
		}
		for i, entry := range other.Fork.Blkx {
			if !bytes.Equal(entry.Data, data[i]) {
				t.Fatalf("entry %d has %x, the library finds %x", i, data[i], entry.Data)
			}
		}
	})
}

func FuzzMish(f *testing.F) {
	f.Add(mish(5, 8, 7, [5]uint64{zeroRun, 0, 3, 0, 0}, [5]uint64{zlibRun, 3, 5, 10, 20}, [5]uint64{last, 8, 0, 0, 0}), uint64(3))
	f.Fuzz(func(t *testing.T, b []byte, fork uint64) {
		table, err := parseMish(b, fork, 1000)
		if err != nil {
			return
		}
		at := table.First
		for _, r := range table.runs {
			if r.start != at || r.count == 0 || r.count > maxSectors {
				t.Fatalf("run %+v does not follow sector %d", r, at)
			}
			if r.kind.Compressed() && r.bytes() > MaxChunk {
				t.Fatalf("run %+v is too large", r)
			}
			at += r.count
		}
		if at != table.First+table.Sectors || at > maxSectors || len(table.runs) > 1000 {
			t.Fatalf("%d runs end at %d", len(table.runs), at)
		}
	})
}

// FuzzImage opens, reads and verifies whole images. What reads in one way must read the same in the other.
func FuzzImage(f *testing.F) {
	device := content(20*SectorSize, 3)
	for _, format := range written {
		f.Add(write(f, device, WriteOptions{Format: format, ChunkSectors: 6}))
	}
	f.Fuzz(fuzzImage)
}

// FuzzTables is FuzzImage with the outer structure right, so that every change gets as far as the tables.
func FuzzTables(f *testing.F) {
	f.Add(make([]byte, 100), mish(0, 3, 0, [5]uint64{zlibRun, 0, 2, 0, 20}, [5]uint64{zeroRun, 2, 1, 0, 0}), mish(3, 1, 20, [5]uint64{uint64(KindADC), 0, 1, 0, 20}), uint64(5))
	f.Add(make([]byte, 1024), mish(2, 2, 0, [5]uint64{rawRunT, 1, 1, 0, 512}, [5]uint64{2, 0, 1, 0, 0}), mish(0, 1, 512, [5]uint64{rawRunT, 0, 1, 0, 512}), uint64(0))
	f.Fuzz(func(t *testing.T, fork, first, second []byte, sectors uint64) {
		fuzzImage(t, forge{fork: fork, tables: [][]byte{first, second}, edit: func(t *Trailer) { t.Sectors = sectors }}.file())
	})
}

// fuzzImage makes sure that reading an image in both ways gives the same, whatever it is.
func fuzzImage(t *testing.T, file []byte) {
	im, err := Open(bytes.NewReader(file), int64(len(file)), Options{Workers: 2, Cache: 1 << 20})
	if err != nil {
		return
	}
	defer im.Close()
	_, _ = im.Verify(context.Background(), StreamOptions{Memory: 1 << 20})
	if im.Size() > 8<<20 {
		_, _ = im.ReadAt(make([]byte, 4096), im.Size()/2)
		return
	}
	var streamed bytes.Buffer
	failed := im.Copy(context.Background(), &streamed, StreamOptions{Memory: 1 << 20})
	random := make([]byte, im.Size())
	n, err := im.ReadAt(random, 0)
	if (failed == nil) != (err == nil) {
		t.Fatalf("stream: %v, random access: %d, %v", failed, n, err)
	}
	if failed == nil && !bytes.Equal(streamed.Bytes(), random) {
		t.Fatal("stream and random access differ")
	}
}

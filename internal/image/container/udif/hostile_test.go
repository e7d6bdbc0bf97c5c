package udif

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// forge makes an image by hand: a data fork, block tables, and a trailer that edit may spoil.
type forge struct {
	fork   []byte
	tables [][]byte
	edit   func(*Trailer)
	list   string // the property list, instead of one with the tables
}

// mish is a block table with runs of {type, first, count, offset, length}.
func mish(first, sectors, dataOffset uint64, runs ...[5]uint64) []byte {
	g := Region{First: first, Sectors: sectors}
	b := g.appendMishHeader(nil, 0, len(runs))
	binary.BigEndian.PutUint64(b[24:], dataOffset)
	for _, v := range runs {
		r := run{kind: Kind(v[0]), start: v[1], count: v[2], offset: v[3], length: v[4]}
		b = r.append(b, 0)
	}
	return b
}

func (f forge) file() []byte {
	list := f.list
	if list == "" {
		var entries strings.Builder
		for i, table := range f.tables {
			fmt.Fprintf(&entries, "<dict><key>Data</key><data>%s</data><key>Name</key><string>t%d</string><key>ID</key><string>%d</string></dict>",
				base64.StdEncoding.EncodeToString(table), i, i)
		}
		list = "<plist><dict><key>resource-fork</key><dict><key>blkx</key><array>" + entries.String() + "</array></dict></dict></plist>"
	}
	t := Trailer{Version: kolyVersion, DataLength: uint64(len(f.fork)), PlistOffset: uint64(len(f.fork)), PlistLength: uint64(len(list))}
	if f.edit != nil {
		f.edit(&t)
	}
	return append(append(bytes.Clone(f.fork), list...), t.Marshal()...)
}

const (
	zeroRun = uint64(KindZero)
	rawRunT = uint64(KindRaw)
	zlibRun = uint64(KindZlib)
	last    = uint64(kindTerminator)
)

func TestHostileImages(t *testing.T) {
	fork := make([]byte, 4096)
	huge := uint64(math.MaxUint64)
	tests := map[string]struct {
		f    forge
		want error
		says string
	}{
		"run past the region":    {forge{tables: [][]byte{mish(0, 8, 0, [5]uint64{zeroRun, 4, 5, 0, 0})}}, ErrCorrupt, "5 sectors at 4 in a region of 8"},
		"run that wraps":         {forge{tables: [][]byte{mish(0, 8, 0, [5]uint64{zeroRun, huge, 2, 0, 0})}}, ErrCorrupt, "in a region of 8"},
		"region that wraps":      {forge{tables: [][]byte{mish(huge, 8, 0)}}, ErrCorrupt, "region of 8 sectors"},
		"region beyond int64":    {forge{tables: [][]byte{mish(0, 1<<55, 0, [5]uint64{zeroRun, 0, 1 << 55, 0, 0})}}, ErrCorrupt, "region of"},
		"gap":                    {forge{tables: [][]byte{mish(0, 8, 0, [5]uint64{zeroRun, 0, 3, 0, 0}, [5]uint64{zeroRun, 4, 4, 0, 0})}}, ErrCorrupt, "gap at sector 3"},
		"overlapping runs":       {forge{tables: [][]byte{mish(0, 8, 0, [5]uint64{zeroRun, 0, 5, 0, 0}, [5]uint64{zeroRun, 4, 4, 0, 0})}}, ErrCorrupt, "overlap"},
		"end missing":            {forge{tables: [][]byte{mish(0, 8, 0, [5]uint64{zeroRun, 0, 5, 0, 0}, [5]uint64{last, 8, 0, 0, 0})}}, ErrCorrupt, "end at sector 5 of 8"},
		"overlapping regions":    {forge{tables: [][]byte{mish(0, 8, 0, [5]uint64{zeroRun, 0, 8, 0, 0}), mish(7, 1, 0, [5]uint64{zeroRun, 0, 1, 0, 0})}}, ErrCorrupt, `"t1" overlaps`},
		"beyond the device":      {forge{tables: [][]byte{mish(0, 8, 0, [5]uint64{zeroRun, 0, 8, 0, 0})}, edit: func(t *Trailer) { t.Sectors = 7 }}, ErrCorrupt, "8 sectors, the trailer 7"},
		"no sectors at all":      {forge{tables: [][]byte{mish(0, 0, 0)}}, ErrCorrupt, "no sectors"},
		"unknown type":           {forge{tables: [][]byte{mish(0, 8, 0, [5]uint64{0x80000009, 0, 8, 0, 9})}}, ErrUnsupported, "0x80000009"},
		"raw of another length":  {forge{fork: fork, tables: [][]byte{mish(0, 2, 0, [5]uint64{rawRunT, 0, 2, 0, 1023})}}, ErrCorrupt, "1023 bytes for 2 raw sectors"},
		"raw outside":            {forge{fork: fork, tables: [][]byte{mish(0, 2, 0, [5]uint64{rawRunT, 0, 2, 3584, 1024})}}, ErrCorrupt, "outside of the data fork"},
		"offset that wraps":      {forge{fork: fork, tables: [][]byte{mish(0, 2, 0, [5]uint64{rawRunT, 0, 2, huge - 100, 1024})}}, ErrCorrupt, "outside of the data fork"},
		"offsets that wrap":      {forge{fork: fork, tables: [][]byte{mish(0, 2, huge-100, [5]uint64{rawRunT, 0, 2, 512, 1024})}}, ErrCorrupt, "payload offset"},
		"data offset that wraps": {forge{fork: fork, tables: [][]byte{mish(0, 2, huge, [5]uint64{rawRunT, 0, 2, 1, 1024})}, edit: func(t *Trailer) { t.DataOffset, t.DataLength = 1, 4095 }}, ErrCorrupt, "data offset"},
		"shared payload":         {forge{fork: fork, tables: [][]byte{mish(0, 4, 0, [5]uint64{rawRunT, 0, 2, 0, 1024}, [5]uint64{rawRunT, 2, 2, 1023, 1024})}}, ErrCorrupt, "payloads overlap"},
		"same payload twice":     {forge{fork: fork, tables: [][]byte{mish(0, 4, 0, [5]uint64{zlibRun, 0, 2, 0, 100}, [5]uint64{zlibRun, 2, 2, 0, 100})}}, ErrCorrupt, "payloads overlap"},
		"chunk too large":        {forge{fork: fork, tables: [][]byte{mish(0, 1<<18, 0, [5]uint64{zlibRun, 0, 1 << 18, 0, 100})}}, ErrUnsupported, "decoded"},
		"empty payload":          {forge{fork: fork, tables: [][]byte{mish(0, 1, 0, [5]uint64{zlibRun, 0, 1, 0, 0})}}, ErrCorrupt, "without payload"},
		"no table":               {forge{tables: [][]byte{[]byte("mish")}}, ErrCorrupt, "no block table in 4 bytes"},
		"no tables":              {forge{}, ErrCorrupt, "there are none"},
		"count of runs":          {forge{tables: [][]byte{mish(0, 8, 0)[:203]}}, ErrCorrupt, "no block table"},
		"data fork outside":      {forge{fork: fork, edit: func(t *Trailer) { t.DataLength = huge }}, ErrCorrupt, "data fork"},
		"list outside":           {forge{edit: func(t *Trailer) { t.PlistOffset = 1 << 40 }}, ErrCorrupt, "property list"},
		"fork alone":             {forge{fork: fork, edit: func(t *Trailer) { t.ForkLength, t.PlistLength = 512, 0 }}, ErrUnsupported, "resource fork alone"},
		"segments":               {forge{edit: func(t *Trailer) { t.Segment, t.Segments = 1, 3 }}, ErrSegmented, "segment 1 of 3"},
		"version":                {forge{edit: func(t *Trailer) { t.Version = 3 }}, ErrUnsupported, "version 3"},
		"sectors":                {forge{edit: func(t *Trailer) { t.Sectors = huge }}, ErrUnsupported, "sectors"},
		"stub of odd length":     {forge{fork: fork[:1000], edit: func(t *Trailer) { t.PlistLength = 0 }}, ErrCorrupt, "1000 raw bytes"},
		"stub behind something":  {forge{fork: fork, edit: func(t *Trailer) { t.PlistLength, t.DataOffset, t.DataLength = 0, 512, 1024 }}, ErrCorrupt, "at 512"},
		"stub of other length":   {forge{fork: fork, edit: func(t *Trailer) { t.PlistLength, t.Sectors = 0, 9 }}, ErrCorrupt, "for 9 sectors"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			file := test.f.file()
			_, err := Open(bytes.NewReader(file), int64(len(file)), Options{})
			require.ErrorIs(t, err, test.want)
			assert.ErrorContains(t, err, test.says)
		})
	}
}

func TestHostileLists(t *testing.T) {
	for name, list := range map[string]string{
		"garbage": "garbage", "not XML": "bplist00", "binary": "\x00\x00\x00", "another root": "<html></html>", "ends early": "<plist><dict>",
		"no fork": "<plist><dict></dict></plist>", "array": "<plist><array/></plist>", "key": "<plist><dict><string/></dict></plist>",
		"deep":         "<plist><dict><key>x</key>" + strings.Repeat("<dict>", 100),
		"long key":     "<plist><dict><key>" + strings.Repeat("x", 5000) + "</key>",
		"long tag":     "<" + strings.Repeat("x", 500) + ">",
		"entity":       "<plist><dict><key>&evil;</key>",
		"subset":       `<!DOCTYPE plist [<!ENTITY a "b">]><plist><dict>`,
		"bad base64":   "<plist><dict><key>resource-fork</key><dict><key>blkx</key><array><dict><key>Data</key><data>AA!A</data>",
		"odd base64":   "<plist><dict><key>resource-fork</key><dict><key>blkx</key><array><dict><key>Data</key><data>A</data>",
		"inner padded": "<plist><dict><key>resource-fork</key><dict><key>blkx</key><array><dict><key>Data</key><data>AA==AA==</data>",
		"number":       "<plist><dict><key>resource-fork</key><dict><key>blkx</key><array><dict><key>ID</key><string>x</string>",
	} {
		t.Run(name, func(t *testing.T) {
			file := forge{list: list}.file()
			_, err := Open(bytes.NewReader(file), int64(len(file)), Options{})
			require.ErrorIs(t, err, ErrCorrupt)
		})
	}
}

func TestNotUDIF(t *testing.T) {
	for name, file := range map[string][]byte{"empty": {}, "short": make([]byte, 511), "zeros": make([]byte, 4096)} {
		_, err := Open(bytes.NewReader(file), int64(len(file)), Options{})
		require.ErrorIs(t, err, ErrNotUDIF, name)
	}
}

// TestTrailerAlone: a file of no more than a trailer is a damaged image.
func TestTrailerAlone(t *testing.T) {
	file := (&Trailer{Version: kolyVersion}).Marshal()
	_, err := Open(bytes.NewReader(file), int64(len(file)), Options{})
	require.ErrorIs(t, err, ErrCorrupt)
	assert.ErrorContains(t, err, "no tables, 0 raw bytes")
}

func TestOddImages(t *testing.T) {
	raw := content(8*SectorSize, 5)
	tests := map[string]struct {
		f    forge
		want []byte
	}{
		"payloads out of order": {forge{fork: raw, tables: [][]byte{mish(0, 8, 0, [5]uint64{rawRunT, 0, 4, 2048, 2048}, [5]uint64{rawRunT, 4, 4, 0, 2048})}},
			append(bytes.Clone(raw[2048:]), raw[:2048]...)},
		"runs and tables out of order": {forge{fork: raw, tables: [][]byte{
			mish(4, 4, 2048, [5]uint64{rawRunT, 3, 1, 1536, 512}, [5]uint64{rawRunT, 0, 3, 0, 1536}, [5]uint64{last, 0, 0, 0, 0}),
			mish(0, 4, 0, [5]uint64{uint64(kindComment), 99, 99, 99, 99}, [5]uint64{2, 1, 0, 0, 0}, [5]uint64{rawRunT, 0, 4, 0, 2048})}}, raw},
		"no table for the middle and the end": {forge{fork: raw, tables: [][]byte{mish(0, 1, 0, [5]uint64{rawRunT, 0, 1, 0, 512}), mish(2, 1, 0, [5]uint64{rawRunT, 0, 1, 1024, 512})},
			edit: func(t *Trailer) { t.Sectors = 5 }}, bytes.Join([][]byte{raw[:512], make([]byte, 512), raw[1024:1536], make([]byte, 1024)}, nil)},
		"rest after the terminator": {forge{fork: raw, tables: [][]byte{mish(0, 8, 0, [5]uint64{rawRunT, 0, 8, 0, 4096}, [5]uint64{last, 8, 0, 0, 0}, [5]uint64{77, 7, 7, 7, 7})}}, raw},
		"trailer only":              {forge{fork: raw, edit: func(t *Trailer) { t.PlistLength = 0 }}, raw},
		"data fork further on": {forge{fork: raw, edit: func(t *Trailer) { t.DataOffset, t.DataLength, t.Sectors = 512, 3584, 7 },
			tables: [][]byte{mish(0, 7, 512, [5]uint64{rawRunT, 0, 6, 0, 3072}, [5]uint64{zeroRun, 6, 1, 5, 5})}}, append(bytes.Clone(raw[1024:]), make([]byte, 512)...)},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			im := open(t, test.f.file(), Options{})
			requireSame(t, test.want, readAll(t, im))
			got := make([]byte, im.Size()+10)
			n, err := im.ReadAt(got, 0)
			require.ErrorIs(t, err, io.EOF)
			requireSame(t, test.want, got[:n])
		})
	}
}

// TestVerifyStub: without tables only the data fork can be checked, whatever the trailer says of the rest.
func TestVerifyStub(t *testing.T) {
	raw := content(8*SectorSize, 5)
	im := open(t, forge{fork: raw, edit: func(t *Trailer) {
		t.PlistLength = 0
		t.DataChecksum = newChecksum(ChecksumCRC32, sumOf(ChecksumCRC32, raw))
		t.Master = newChecksum(ChecksumCRC32, []byte{1, 2, 3, 4})
	}}.file(), Options{})
	assert.EqualValues(t, "UDRW", im.Format())
	report, err := im.Verify(t.Context(), StreamOptions{})
	require.NoError(t, err)
	require.NoError(t, report.Err())
	require.Len(t, report, 1)
	assert.Equal(t, Agrees, report[0].Result)
}

// TestVastDevice reads and verifies the largest device there may be, all zeros, from a few bytes.
func TestVastDevice(t *testing.T) {
	f := forge{tables: [][]byte{mish(0, maxSectors, 0, [5]uint64{zeroRun, 0, maxSectors, 0, 0})}}
	im := open(t, f.file(), Options{})
	require.EqualValues(t, uint64(maxSectors)*SectorSize, im.Size())
	p := []byte{1, 2, 3}
	n, err := im.ReadAt(p, im.Size()-2)
	require.ErrorIs(t, err, io.EOF)
	assert.Equal(t, []byte{0, 0}, p[:n])
	_, err = im.Verify(context.Background(), StreamOptions{})
	require.NoError(t, err)
}

// damagedAt fails to read some bytes.
type damagedAt struct {
	io.ReaderAt
	from, to int64
}

var errMedium = errors.New("medium error")

func (d damagedAt) ReadAt(p []byte, off int64) (int, error) {
	if off < d.to && off+int64(len(p)) > d.from {
		return 0, errMedium
	}
	return d.ReaderAt.ReadAt(p, off)
}

func TestVerifyFindsDamage(t *testing.T) {
	device := content(4<<20, 6)
	file := write(t, device, WriteOptions{Format: UDZO})
	im := open(t, file, Options{})
	payload := im.runs[slices.IndexFunc(im.runs, func(r run) bool { return r.kind == KindZlib })]
	results := func(im *Image) (results []Result) {
		report, err := im.Verify(context.Background(), StreamOptions{})
		require.NoError(t, err)
		for _, c := range report {
			results = append(results, c.Result)
		}
		return results
	}
	spoilt := bytes.Clone(file)
	spoilt[payload.offset+payload.length/2] ^= 1
	got := results(open(t, spoilt, Options{}))
	assert.Equal(t, Differs, got[0], "data fork")
	assert.Contains(t, []Result{Differs, Unreadable}, got[1], "region")
	assert.Equal(t, Agrees, got[2], "master")

	wrong := *im.Trailer()
	wrong.Master.Sum[0] ^= 1
	got = results(open(t, append(bytes.Clone(file[:len(file)-TrailerSize]), wrong.Marshal()...), Options{}))
	assert.Equal(t, []Result{Agrees, Agrees, Differs}, got)

	unread := damagedAt{bytes.NewReader(file), int64(payload.offset), int64(payload.offset) + 1}
	bad, err := Open(unread, int64(len(file)), Options{})
	require.NoError(t, err)
	assert.Equal(t, []Result{Unreadable, Unreadable, Agrees}, results(bad))
	report, err := bad.Verify(context.Background(), StreamOptions{})
	require.NoError(t, err)
	require.ErrorIs(t, report.Err(), errMedium)
	_, err = bad.ReadAt(make([]byte, 10), int64(payload.start)*SectorSize)
	require.ErrorIs(t, err, errMedium)
	require.ErrorIs(t, bad.Copy(context.Background(), io.Discard, StreamOptions{}), errMedium)
}

// A host that fails to read is no damage of the image, wherever in the property list it fails.
func TestListThatCannotBeRead(t *testing.T) {
	file := write(t, noHoles(1<<20), WriteOptions{Format: UDZO, ChunkSectors: 1})
	trailer := open(t, file, Options{}).Trailer()
	for _, at := range []int64{0, 80 << 10} { // the first bytes, and those of data after a buffer
		at += int64(trailer.PlistOffset)
		_, err := Open(damagedAt{bytes.NewReader(file), at, at + 1}, int64(len(file)), Options{})
		require.ErrorIs(t, err, errMedium)
		assert.NotErrorIs(t, err, ErrCorrupt, "at %d", at)
	}
}

// TestManyRuns opens an image with a quarter of a million runs, or a million, within the memory that the package states.
func TestManyRuns(t *testing.T) {
	count := 1 << 18
	if os.Getenv("DMGBENCH_LONG") != "" {
		count = 1 << 20
	}
	table := make([]byte, 0, mishHeader+mishRun*count)
	g := Region{Sectors: uint64(count)}
	table = g.appendMishHeader(table, 0, count)
	for i := range uint64(count) {
		r := run{kind: Kind(2 * (i & 1)), start: i, count: 1}
		table = r.append(table, 0)
	}
	file := forge{tables: [][]byte{table}}.file()
	table = nil
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	im := open(t, file, Options{})
	runtime.ReadMemStats(&after)
	assert.Less(t, after.TotalAlloc-before.TotalAlloc, uint64(4*raceFactor*len(file)))
	runtime.GC()
	runtime.ReadMemStats(&after)
	assert.Less(t, after.HeapAlloc-before.HeapAlloc, uint64(45*raceFactor*count))
	assert.Len(t, im.runs, count)
}

// TestLicenseIsSeen: an image with a license agreement among its resources is known to have one.
func TestLicenseIsSeen(t *testing.T) {
	table := base64.StdEncoding.EncodeToString(mish(0, 8, 0, [5]uint64{zeroRun, 0, 8, 0, 0}))
	for resource, want := range map[string]bool{licenseType: true, "plst": false} {
		im := open(t, forge{list: "<plist><dict><key>resource-fork</key><dict><key>" + resource + "</key><array></array>" +
			"<key>blkx</key><array><dict><key>Data</key><data>" + table + "</data></dict></array></dict></dict></plist>"}.file(), Options{})
		assert.Equal(t, want, im.License, resource)
	}
}

package udif

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"hash/crc32"
	"io"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// written are all formats.
var written = []Format{UDRO, UDCO, UDZO, UDBZ, ULFO, ULMO, UFBI}

func TestWriteAndReadBack(t *testing.T) {
	device := content(2<<20+512, 1)
	for _, format := range written {
		t.Run(string(format), func(t *testing.T) {
			file := write(t, device, WriteOptions{Format: format})
			im := open(t, file, Options{Cache: 2 << 20})
			requireSame(t, device, readAll(t, im))
			requireVerified(t, im, 0)
			readRandom(t, im, device, 25, 3)
			assert.Equal(t, format, im.Format())
			trailer := im.Trailer()
			assert.Equal(t, [2]uint32{1, 1}, [2]uint32{trailer.Segment, trailer.Segments})
			assert.NotZero(t, trailer.SegmentID)
			assert.EqualValues(t, 4, trailer.SegmentID[6]>>4, "version of RFC 9562: random")
			assert.EqualValues(t, 2, trailer.SegmentID[8]>>6, "variant of RFC 9562")
			assert.EqualValues(t, len(device)/SectorSize, trailer.Sectors)
			assert.EqualValues(t, VariantPartition, trailer.Variant)
			usage := im.Usage()
			if format == UFBI {
				assert.Equal(t, map[Kind]Usage{KindRaw: usage[KindRaw]}, usage, "the entire image")
				return
			}
			assert.Positive(t, usage[KindZero].Bytes)
			assert.Less(t, len(file), len(device))
		})
	}
}

// drawLayout cuts a device into odd regions.
func drawLayout(t *rapid.T, sectors uint64) Layout {
	if rapid.Bool().Draw(t, "whole") {
		return WholeDevice(sectors, "Apple_HFS")
	}
	var parts []Part
	for at := uint64(0); at < sectors && len(parts) < 12; {
		at += rapid.Uint64Range(0, sectors/4).Draw(t, "gap")
		if at >= sectors {
			break
		}
		count := rapid.Uint64Range(1, sectors-at).Draw(t, "sectors")
		if rapid.Bool().Draw(t, "short") {
			count = min(count, 7)
		}
		parts = append(parts, Part{Name: rapid.StringN(0, 5, 20).Draw(t, "name"), Type: "Apple_HFS", First: at, Sectors: count})
		at += count
	}
	for i := range parts {
		parts[i].Name = printable(parts[i].Name)
	}
	l, err := Partitioned(Scheme(rapid.IntRange(1, 3).Draw(t, "scheme")), sectors, parts)
	require.NoError(t, err)
	return l
}

// drawnMap is a Map of stretches by their ends.
type drawnMap struct {
	ends   []int64
	states []State
}

func (m *drawnMap) Next(off int64) (int64, State) {
	i, found := slices.BinarySearch(m.ends, off)
	if found {
		i++
	}
	return m.ends[i], m.states[i]
}

// drawMap draws a Map, and clears in the device what it calls zero. want is the device as the image will have it.
func drawMap(t *rapid.T, device []byte) (m *drawnMap, want []byte) {
	m, want = &drawnMap{}, bytes.Clone(device)
	for at := 0; at < len(device); {
		end := at + SectorSize*rapid.IntRange(1, (len(device)-at)/SectorSize).Draw(t, "stretch")
		state := State(rapid.IntRange(0, 2).Draw(t, "state"))
		if state == StateZero {
			clear(device[at:end])
			clear(want[at:end])
		}
		m.ends, m.states = append(m.ends, int64(end)), append(m.states, state)
		at = end
	}
	return m, want
}

// requireMapped compares a device read back with the one written: unallocated bytes may read as zeros.
func requireMapped(t require.TestingT, m *drawnMap, want, got []byte) {
	require.Len(t, got, len(want))
	at := 0
	for i, end := range m.ends {
		part := got[at:end]
		if m.states[i] != StateUnallocated {
			require.True(t, bytes.Equal(want[at:end], part), "bytes %d to %d", at, end)
		}
		for j := range part {
			if part[j] != 0 && part[j] != want[at+j] {
				require.Fail(t, "wrong byte", "at %d", at+j)
			}
		}
		at = int(end)
	}
}

// TestRoundTrips writes devices of odd layouts, chunk sizes and maps, and reads them back in every way.
func TestRoundTrips(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		sectors := rapid.IntRange(1, 1500).Draw(t, "device")
		device := content(sectors*SectorSize, rapid.Uint64().Draw(t, "seed"))
		o := WriteOptions{
			Format: rapid.SampledFrom(written).Draw(t, "format"), Layout: drawLayout(t, uint64(sectors)),
			ChunkSectors: rapid.IntRange(1, 700).Draw(t, "chunk"), Workers: rapid.IntRange(1, 4).Draw(t, "workers"),
			Memory: rapid.Int64Range(1, 4<<20).Draw(t, "memory"),
		}
		m := &drawnMap{ends: []int64{int64(len(device))}, states: []State{StateData}}
		want := device
		if rapid.Bool().Draw(t, "map") && o.Format != UFBI {
			m, want = drawMap(t, device)
			o.Map = m
		}
		var out bytes.Buffer
		done := int64(0)
		o.Progress = func(now, total int64) {
			require.Greater(t, now, done)
			require.EqualValues(t, len(device), total)
			done = now
		}
		_, err := Write(context.Background(), &out, bytes.NewReader(device), int64(len(device)), o)
		require.NoError(t, err)
		require.EqualValues(t, len(device), done)
		im, err := Open(bytes.NewReader(out.Bytes()), int64(out.Len()), Options{
			Workers: o.Workers, Cache: rapid.Int64Range(1, 1<<20).Draw(t, "cache"), ReadAhead: rapid.IntRange(-1, 8).Draw(t, "ahead"),
		})
		require.NoError(t, err)
		defer im.Close()
		var got bytes.Buffer
		require.NoError(t, im.Copy(context.Background(), &got, StreamOptions{Memory: o.Memory}))
		requireMapped(t, m, want, got.Bytes())
		random := make([]byte, rapid.IntRange(1, len(device)).Draw(t, "length"))
		off := rapid.IntRange(0, len(device)-len(random)).Draw(t, "offset")
		_, err = im.ReadAt(random, int64(off))
		require.NoError(t, err)
		require.True(t, bytes.Equal(got.Bytes()[off:off+len(random)], random))
		report, err := im.Verify(context.Background(), StreamOptions{})
		require.NoError(t, err)
		require.NoError(t, report.Err())
		requireMapCopies(t, im, got.Bytes(), o)
	})
}

// requireMapCopies writes the image's device again with the image as its Map: the same device, the same holes.
func requireMapCopies(t require.TestingT, im *Image, device []byte, o WriteOptions) {
	o.Map, o.Progress = im, nil
	var out bytes.Buffer
	_, err := Write(context.Background(), &out, im, im.Size(), o)
	require.NoError(t, err)
	again, err := Open(bytes.NewReader(out.Bytes()), int64(out.Len()), Options{})
	require.NoError(t, err)
	defer again.Close()
	var got bytes.Buffer
	require.NoError(t, again.Copy(context.Background(), &got, StreamOptions{}))
	require.True(t, bytes.Equal(device, got.Bytes()))
}

func TestWriteRefuses(t *testing.T) {
	device := bytes.NewReader(make([]byte, 4096))
	tests := map[string]struct {
		size int64
		o    WriteOptions
		want string
	}{
		"half a sector": {300, WriteOptions{Format: UDRO}, "not a number of sectors"},
		"nothing":       {0, WriteOptions{Format: UDRO}, "not a number of sectors"},
		"format":        {4096, WriteOptions{Format: "UDRW"}, `format "UDRW"`},
		"chunk":         {4096, WriteOptions{Format: UDRO, ChunkSectors: 1 << 20}, "chunks of 1048576 sectors"},
		"short device":  {8192, WriteOptions{Format: UDRO}, "unexpected EOF"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			_, err := Write(context.Background(), io.Discard, device, test.size, test.o)
			require.ErrorContains(t, err, test.want)
			assert.ErrorContains(t, err, "writing the image: ")
		})
	}
}

// TestLongestChunks: chunks may be as long as readers accept them.
func TestLongestChunks(t *testing.T) {
	device := content(64<<10, 5)
	im := open(t, write(t, device, WriteOptions{Format: UDZO, ChunkSectors: MaxChunk / SectorSize}), Options{})
	requireSame(t, device, readAll(t, im))
	_, err := Write(t.Context(), io.Discard, bytes.NewReader(device), int64(len(device)), WriteOptions{
		Format: UDZO, ChunkSectors: MaxChunk/SectorSize + 1,
	})
	require.ErrorIs(t, err, ErrUnsupported)
}

// failingWriter fails after some bytes.
type failingWriter struct{ left int }

var errFull = errors.New("full")

func (w *failingWriter) Write(p []byte) (int, error) {
	if w.left -= len(p); w.left < 0 {
		return 0, errFull
	}
	return len(p), nil
}

func TestWriteEnds(t *testing.T) {
	device := content(3<<20, 4)
	file := write(t, device, WriteOptions{Format: UDZO})
	for _, room := range []int{0, 1000, len(file) / 2, len(file) - 1} {
		_, err := Write(context.Background(), &failingWriter{room}, bytes.NewReader(device), int64(len(device)), WriteOptions{Format: UDZO})
		require.ErrorIs(t, err, errFull)
	}
	ctx, cancel := context.WithCancelCause(context.Background())
	reason := errors.New("enough")
	_, err := Write(ctx, io.Discard, bytes.NewReader(device), int64(len(device)), WriteOptions{
		Format: UDZO, Progress: func(done, _ int64) { cancel(reason) },
	})
	require.ErrorIs(t, err, reason)
}

func TestDeterministic(t *testing.T) {
	device := content(3<<20, 9)
	sums := map[[32]byte]bool{}
	for workers := 1; workers < 5; workers++ {
		file := write(t, device, WriteOptions{Format: UDZO, Workers: workers})
		clear(file[len(file)-TrailerSize+64:][:16]) // the random identifier
		sums[sha256.Sum256(file)] = true
	}
	assert.Len(t, sums, 1, "the number of workers must not show")
}

func TestCombine(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		a := rapid.SliceOfN(rapid.Byte(), 0, 300).Draw(t, "a")
		b := rapid.SliceOfN(rapid.Byte(), 0, 300).Draw(t, "b")
		all := crc32.ChecksumIEEE(slices.Concat(a, b))
		require.Equal(t, all, combineCRC(crc32.ChecksumIEEE(a), crc32.ChecksumIEEE(b), int64(len(b))))
		n := rapid.IntRange(0, 100000).Draw(t, "zeros")
		require.Equal(t, crc32.ChecksumIEEE(make([]byte, n)), zeroCRC(int64(n)))
		x, y := rapid.Int64Range(0, 1<<61).Draw(t, "x"), rapid.Int64Range(0, 1<<61).Draw(t, "y")
		require.Equal(t, zeroCRC(x+y), combineCRC(zeroCRC(x), zeroCRC(y), y))
	})
}

func TestSplit(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		device := content(SectorSize*rapid.IntRange(1, 600).Draw(t, "sectors"), rapid.Uint64().Draw(t, "seed"))
		edge, inner := rapid.IntRange(1, 20).Draw(t, "edge"), rapid.IntRange(1, 300).Draw(t, "inner")
		at, before := 0, -1
		for _, p := range split(nil, device, edge, inner) {
			require.Equal(t, at, p.first)
			require.Positive(t, p.count)
			require.Equal(t, p.zero, len(bytes.Trim(device[p.first*SectorSize:(p.first+p.count)*SectorSize], "\x00")) == 0)
			kind := 0
			if p.zero {
				kind = 1
			}
			require.NotEqual(t, before, kind, "neighbours are joined")
			at, before = p.first+p.count, kind
		}
		require.Equal(t, len(device)/SectorSize, at)
	})
}

package container

import (
	"bytes"
	"encoding/binary"
	"maps"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"howett.net/plist"
	"pgregory.net/rapid"

	"dmgbench/internal/image"
	"dmgbench/internal/image/container/files"
)

func TestInfoRoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		want := info{Version: 1, BandSize: 512 * rapid.Int64Range(1<<11, 1<<24).Draw(t, "band"),
			Size: 512 * rapid.Int64Range(0, image.MaxSize/512).Draw(t, "size")}
		got, err := parseInfo(want.encode())
		require.NoError(t, err)
		require.Equal(t, want, got)
		n := ceil(got.Size, got.BandSize)
		require.Zero(t, chunkCapacity(got.Size, got.BandSize, n))
		if n > 0 {
			last := chunkCapacity(got.Size, got.BandSize, n-1)
			require.Greater(t, last, int64(0))
			require.Equal(t, got.Size, (n-1)*got.BandSize+last)
		}
	})
}

func TestParseInfoRefuses(t *testing.T) {
	good := string(info{Version: 1, BandSize: 1 << 20, Size: 5 << 20}.encode())
	_, err := parseInfo([]byte(good))
	require.NoError(t, err)
	change := func(old, new string) string {
		require.Contains(t, good, old)
		return strings.Replace(good, old, new, 1)
	}
	for name, text := range map[string]string{
		"empty":           "",
		"blank":           " \n",
		"bare words":      "sparse bundle",
		"OpenStep":        `{ "band-size" = 1048576; }`,
		"cut off":         good[:len(good)-10],
		"trailing":        good + "garbage",
		"second":          good + good,
		"binary":          "bplist00",
		"not a dict":      `<?xml version="1.0"?><plist version="1.0"><array/></plist>`,
		"other type":      change("sparsebundle", "sparse"),
		"no band size":    change("<key>band-size</key>", "<key>band</key>"),
		"text size":       change("<integer>5242880</integer>", "<string>5242880</string>"),
		"negative":        change("<integer>5242880</integer>", "<integer>-512</integer>"),
		"odd size":        change("<integer>5242880</integer>", "<integer>5242881</integer>"),
		"overflowing":     change("<integer>5242880</integer>", "<integer>18446744073709551104</integer>"),
		"beyond 64 bits":  change("<integer>5242880</integer>", "<integer>99999999999999999999999</integer>"),
		"band of 0":       change("<integer>1048576</integer>", "<integer>0</integer>"),
		"odd band":        change("<integer>1048576</integer>", "<integer>1000</integer>"),
		"version 0":       change("<integer>1</integer>", "<integer>0</integer>"),
		"too many bands":  strings.Replace(change("<integer>1048576</integer>", "<integer>512</integer>"), "5242880", "1152921504606846976", 1),
		"nested":          "<?xml?><plist>" + strings.Repeat("<array>", 9000) + "</plist>",
		"larger than all": good + strings.Repeat(" ", infoLimit),
	} {
		_, err := parseInfo([]byte(text))
		assert.Error(t, err, name)
	}
	// What other writers of XML may begin with.
	for name, text := range map[string]string{
		"byte order mark": "\xef\xbb\xbf" + good,
		"no declaration":  good[strings.Index(good, "<!DOCTYPE"):],
		"list alone":      good[strings.Index(good, "<plist"):],
		"comment":         "<!-- of the backup -->\n" + good[strings.Index(good, "<plist"):],
		"binary":          binaryPlist(t, nil),
		"binary, more":    binaryPlist(t, map[string]any{"ü": "ä", "long": strings.Repeat("x", 300), "list": []string{"a", "a"}, "n": -1, "on": true, "r": 1.5}),
	} {
		got, err := parseInfo([]byte(text))
		require.NoError(t, err, name)
		assert.Equal(t, info{Version: 1, BandSize: 1 << 20, Size: 5 << 20}, got, name)
	}
}

// binaryPlist is the list of a bundle with more in it.
func binaryPlist(t testing.TB, more map[string]any) string {
	dict := map[string]any{"CFBundleInfoDictionaryVersion": "6.0", "band-size": 1 << 20, "bundle-backingstore-version": 1,
		"diskimage-bundle-type": bundleType, "size": 5 << 20}
	maps.Copy(dict, more)
	b, err := plist.Marshal(dict, plist.BinaryFormat)
	require.NoError(t, err)
	return string(b)
}

// TestBinaryPlistCutOff: no prefix and no list with a byte changed does more than fail.
func TestBinaryPlistCutOff(t *testing.T) {
	good := binaryPlist(t, map[string]any{"ü": "ä"})
	for n := range len(good) {
		_, err := parseInfo([]byte(good[:n]))
		require.ErrorIs(t, err, ErrCorrupt, n)
		for _, v := range []byte{0, 1, 0x7F, 0xFF, 0xD1, 0x5F} {
			bad := []byte(good)
			bad[n] = v
			_, _ = parseInfo(bad)
		}
	}
}

// TestHostileBinaryPlist: lists of arrays that are nested, or shared so that a copy of each would have 15^1500 elements, take
// a moment.
func TestHostileBinaryPlist(t *testing.T) {
	be := binary.BigEndian
	list := func(objects ...[]byte) []byte {
		out, table := []byte("bplist00"), []byte(nil)
		for _, o := range objects {
			table = be.AppendUint16(table, uint16(len(out)))
			out = append(out, o...)
		}
		end := append(make([]byte, 6), 2, 2)
		end = be.AppendUint64(be.AppendUint64(end, uint64(len(objects))), 0)
		end = be.AppendUint64(end, uint64(len(out)))
		return slices.Concat(out, table, end)
	}
	var nested [][]byte
	shared := [][]byte{{0xD1, 0, 1, 0, 2}, {0x51, 'a'}}
	for i := range 10_000 {
		nested = append(nested, be.AppendUint16([]byte{0xA1}, uint16(i+1)))
	}
	for i := range 1500 {
		shared = append(shared, append([]byte{0xAF, 0x10, 15}, bytes.Repeat(be.AppendUint16(nil, uint16(i+3)), 15)...))
	}
	for name, objects := range map[string][][]byte{"nested": nested, "shared": shared} {
		text, start := list(append(objects, []byte{0xA0})...), time.Now()
		require.Less(t, len(text), infoLimit, name)
		_, err := parseInfo(text)
		require.Error(t, err, name)
		assert.Less(t, time.Since(start), 10*time.Second, name)
	}
}

func TestBandNames(t *testing.T) {
	for n, name := range map[int64]string{0: "0", 10: "a", 255: "ff", 22205: "56bd", math.MaxInt64: "7fffffffffffffff"} {
		assert.Equal(t, name, files.BandName(n))
		got, ok := files.ParseBand(name)
		assert.True(t, ok)
		assert.Equal(t, n, got)
	}
	for _, name := range []string{"", "00", "0a", "A", "0x1", "-1", "+1", "1_0", "8000000000000000", ".0", "g"} {
		_, ok := files.ParseBand(name)
		assert.False(t, ok, name)
	}
}

func FuzzInfoPlist(f *testing.F) {
	good := info{Version: 1, BandSize: 8 << 20, Size: 100 << 30}.encode()
	f.Add(good)
	f.Add(good[:300])
	f.Add([]byte("bplist00\x00"))
	f.Add([]byte(binaryPlist(f, map[string]any{"ü": "ä", "list": []int{1}})))
	f.Add([]byte(`<plist><dict><key>size</key><real>1e400</real></dict></plist>`))
	f.Fuzz(func(t *testing.T, data []byte) {
		i, err := parseInfo(data)
		if err != nil {
			return
		}
		if i.Size < 0 || i.Size%SectorSize != 0 || i.BandSize < SectorSize || i.BandSize%SectorSize != 0 || ceil(i.Size, i.BandSize) > maxBands {
			t.Fatalf("accepted %+v", i)
		}
		for _, n := range []int64{-1, 0, ceil(i.Size, i.BandSize) - 1, ceil(i.Size, i.BandSize), math.MaxInt64} {
			if c := chunkCapacity(i.Size, i.BandSize, n); c < 0 || c > i.BandSize {
				t.Fatalf("band %d of %+v holds %d", n, i, c)
			}
		}
	})
}

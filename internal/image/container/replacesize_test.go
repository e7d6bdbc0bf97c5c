package container

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"howett.net/plist"
)

// otherKeys are keys that other programs put into the list of a bundle.
var otherKeys = map[string]any{"com.example.owner": "ü & <x>", "list": []any{"a", "a", map[string]any{"size": uint64(7)}}, "on": true, "r": 1.5}

// A resize and a repair keep keys that they know nothing of.
func TestResizeKeepsWhatElseIsInTheLists(t *testing.T) {
	decoded := func(t *testing.T, text []byte) (out map[string]any, format int) {
		format, err := plist.Unmarshal(text, &out)
		require.NoError(t, err)
		return out, format
	}
	own := string(info{Version: 1, BandSize: 8 << 20, Size: 8 << 20}.encode())
	more := "\t<key>list</key>\n\t<array><string>a</string><dict><key>size</key><integer>7</integer></dict></array>\n" +
		"\t<!-- <key>size</key> --><key>data</key><data>AAEC</data>\n</dict>\n</plist>"
	for name, text := range map[string]string{
		"Apple's own": own,
		"XML":         strings.Replace(own, "</dict>\n</plist>", more, 1),
	} {
		t.Run(name, func(t *testing.T) {
			d := tempDir(t)
			require.NoError(t, Create(d, "b", Spec{Format: UDSB, Size: 8 << 20, BandSize: 8 << 20}))
			require.NoError(t, d.WriteFileAtomic("b/Info.plist", []byte(text), 0o644))
			require.NoError(t, d.WriteFileAtomic("b/Info.bckup", []byte(text), 0o644))
			want, format := decoded(t, []byte(text))
			img, err := Open(d, "b", OpenOptions{})
			require.NoError(t, err)
			for _, size := range []int64{20 << 20, 12 << 20} {
				require.NoError(t, img.Resize(size))
				for _, file := range []string{"b/Info.plist", "b/Info.bckup"} {
					after, err := d.ReadFile(file, infoLimit)
					require.NoError(t, err)
					got, now := decoded(t, after)
					want["size"] = uint64(size)
					assert.Equal(t, want, got, file)
					assert.Equal(t, format, now)
				}
			}
			require.NoError(t, img.Close())
			require.NoError(t, d.WriteFileAtomic("b/Info.plist", []byte("rubbish"), 0o644))
			require.NoError(t, Repair(d, "b", OpenOptions{}))
			after, err := d.ReadFile("b/Info.plist", infoLimit)
			require.NoError(t, err)
			got, _ := decoded(t, after)
			assert.Equal(t, want, got, "a repair takes the copy")
			require.NoError(t, d.WriteFileAtomic("b/Info.bckup", info{Version: 1, BandSize: 8 << 20, Size: 12 << 20}.encode(), 0o644))
			found, err := Verify(d, "b", OpenOptions{})
			require.NoError(t, err)
			assert.Equal(t, len(want) > 5, len(found) > 0, "a copy without the keys of others")
			require.NoError(t, Repair(d, "b", OpenOptions{}))
			found, err = Verify(d, "b", OpenOptions{})
			require.NoError(t, err)
			assert.Empty(t, found)
		})
	}
}

// What a list of Apple's becomes is Apple's, byte for byte; binary ones are refused.
func TestResizedListsStayAsTheyWere(t *testing.T) {
	i := info{Version: 1, BandSize: 1 << 20, Size: 5 << 20}
	next := i
	next.Size = 900 << 20
	got, err := next.replaceSize(i.encode())
	require.NoError(t, err)
	assert.Equal(t, string(next.encode()), string(got))

	_, err = next.replaceSize([]byte(binaryPlist(t, otherKeys)))
	assert.ErrorIs(t, err, errInfoKept, "binary")
	_, err = next.replaceSize([]byte("<plist><dict/></plist>"))
	assert.ErrorIs(t, err, errInfoKept)
}

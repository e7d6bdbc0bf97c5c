package exfat

import (
	"fmt"
	"testing"
	"unicode/utf16"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// TestEntriesWithoutAUsableNameAreReported checks that an entry that no path can name hides no other, is reported by
// List and Walk, and keeps its directory from being removed.
func TestEntriesWithoutAUsableNameAreReported(t *testing.T) {
	for text, test := range map[string]struct {
		name []uint16
		want error
	}{
		"a slash":          {utf16.Encode([]rune("a/b")), ErrName},
		"the parent":       {utf16.Encode([]rune("..")), ErrName},
		"half a surrogate": {[]uint16{'x', 0xd800}, ErrName},
		"a name used":      {utf16.Encode([]rune("GOOD")), ErrSameName},
	} {
		t.Run(text, func(t *testing.T) {
			dev, v := newVolume(t, 4<<20, FormatOptions{})
			require.NoError(t, v.Mkdir("d"))
			require.NoError(t, v.Mkdir("d/sub"))
			writeFile(t, v, "d/good", []byte("content"))
			_, d, err := v.walkTo([]string{"d"})
			require.NoError(t, err)
			require.NoError(t, d.insert(&entry{record: record{attr: attrDir, name: test.name}}))
			require.NoError(t, v.Unmount())

			v = mount(t, dev)
			infos, err := v.List("d")
			require.ErrorIs(t, err, test.want)
			require.ErrorContains(t, err, fmt.Sprintf("%q", string(utf16.Decode(test.name))))
			require.Len(t, infos, 2)
			assert.Equal(t, "content", string(readFile(t, v, "d/good")))
			require.ErrorIs(t, v.Walk("", func(string, Info) error { return nil }, nil), test.want)
			var seen, failed []string
			err = v.Walk("", func(p string, _ Info) error {
				seen = append(seen, p)
				return nil
			}, func(p string, err error) error {
				require.ErrorIs(t, err, test.want)
				failed = append(failed, p)
				return nil
			})
			require.NoError(t, err)
			assert.ElementsMatch(t, []string{"d", "d/sub", "d/good"}, seen)
			assert.Equal(t, []string{"d"}, failed)
			require.NoError(t, v.Remove("d/good"))
			require.NoError(t, v.Remove("d/sub"))
			require.ErrorIs(t, v.Remove("d"), ErrNotEmpty)
			require.NoError(t, v.Unmount())
		})
	}
}

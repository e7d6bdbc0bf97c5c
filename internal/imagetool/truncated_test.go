package imagetool

import (
	"bytes"
	"compress/zlib"
	"encoding/binary"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

const cutOffWords = "looks like a truncated UDIF image"

// dataFork is how long the data of a UDIF image is, by its trailer.
func dataFork(t *testing.T, b []byte) int {
	t.Helper()
	trailer := b[len(b)-512:]
	require.Equal(t, "koly", string(trailer[:4]))
	return int(binary.BigEndian.Uint64(trailer[32:]))
}

// A compressed image that lost its trailer is told from a raw one by every verb that would take it for one.
func TestCutOffImagesAreWarnedOf(t *testing.T) {
	for format, name := range map[string]string{"UDZO": "zlib", "UDBZ": "bzip2", "ULFO": "LZFSE", "ULMO": "xz"} {
		m := newMachine(t)
		m.write("src/data", strings.Repeat("0123456789abcdef", 100_000))
		m.do("create -srcfolder src -format " + format + " -size 4m x.dmg")
		whole, err := os.ReadFile(m.path("x.dmg"))
		require.NoError(t, err)
		cut := (dataFork(t, whole) + 511) / 512 * 512
		m.write("cut.dmg", string(whole[:cut]))
		m.write("raw.img", string(whole[:cut]))
		for line, status := range map[string]int{"verify cut.dmg": 1, "imageinfo cut.dmg": 0, "attach -nomount cut.dmg": 0, "convert cut.dmg -format UDTO -o out": 0} {
			verb, _, _ := strings.Cut(line, " ")
			require.Equal(t, status, m.run(strings.Fields(line)...), "%s: %s", line, m.err)
			assert.Contains(t, m.err, "hdiutil: "+verb+`: WARNING: "cut.dmg" starts with compressed data (`+name+")", line)
			assert.Equal(t, 1, strings.Count(m.err, cutOffWords))
			m.run(strings.Fields(strings.Replace(line, "cut.dmg", "x.dmg", 1))...)
			assert.NotContains(t, m.err, cutOffWords, "the whole image")
		}
		m.do("imageinfo raw.img")
		assert.NotContains(t, m.err, cutOffWords, "not the name of a UDIF image")
	}
}

// Images that are raw raise no alarm, whatever the first bytes happen to be.
func TestRawImagesAreNotTakenForCutOffOnes(t *testing.T) {
	pressed := func(n int) string {
		var b bytes.Buffer
		w := zlib.NewWriter(&b)
		_, err := w.Write(bytes.Repeat([]byte{7}, n))
		require.NoError(t, err)
		require.NoError(t, w.Close())
		return b.String()
	}
	pad := func(s string) string { return s + strings.Repeat("\x00", 64<<10-len(s)) }
	broken := []byte(pressed(1024))
	broken[len(broken)-1] ^= 1
	fat := []byte(pad(pressed(1024)))
	copy(fat[54:], "FAT16   ")
	m := newMachine(t)
	for name, content := range map[string]string{
		"zeros": pad(""), "a signature alone": pad("\x78\x9c"), "noise behind it": pad("\x78\x01" + strings.Repeat("\xa5", 9000)), "bzip2": pad("BZh91AY&SY"),
		"lzfse": pad("bvx-"), "xz": pad("\xfd7zXZ\x00"), "no whole sectors": pad(pressed(1000)), "a wrong checksum": pad(string(broken)), "a volume": string(fat),
		"nothing in it": pad(pressed(0)),
	} {
		m.write("x.dmg", content)
		m.do("imageinfo x.dmg")
		assert.NotContains(t, m.err, cutOffWords, name)
	}
	m.write("x.dmg", pad(pressed(1024)))
	m.do("imageinfo x.dmg")
	assert.Contains(t, m.err, cutOffWords)
}

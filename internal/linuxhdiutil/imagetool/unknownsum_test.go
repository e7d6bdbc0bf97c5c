package imagetool

import (
	"bytes"
	"encoding/base64"
	"encoding/binary"
	"os"
	"regexp"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// TestVerifyUnknownChecksums: checksums of a type that is not known are told, and are neither valid nor missing.
func TestVerifyUnknownChecksums(t *testing.T) {
	const sha = 6
	m := newMachine(t)
	m.write("a.dmg", string(bytes.Repeat([]byte("content "), 1<<17)))
	m.do("convert a.dmg -format UDRO -o some")
	image, err := os.ReadFile(m.path("some.dmg"))
	require.NoError(t, err)
	be := binary.BigEndian
	trailer := image[len(image)-512:]
	be.PutUint32(trailer[80:], sha)
	be.PutUint32(trailer[352:], sha)
	m.write("some.dmg", string(image))
	require.Zero(t, m.run("verify", "some.dmg"))
	assert.Equal(t, "hdiutil: verify: data fork: its checksum (type 6) is not checked here\nhdiutil: verify: master checksum: its checksum (type 6) is not checked here\n"+
		"hdiutil: verify: checksum of \"some.dmg\" is VALID\n", m.err)

	at := be.Uint64(trailer[216:])
	list := regexp.MustCompile(`(?s)<data>(.*?)</data>`).ReplaceAllFunc(image[at:len(image)-512], func(data []byte) []byte {
		text := bytes.ReplaceAll(bytes.ReplaceAll(data[6:len(data)-7], []byte("\t"), nil), []byte("\n"), nil)
		table, err := base64.StdEncoding.DecodeString(string(text))
		require.NoError(t, err)
		if bytes.HasPrefix(table, []byte("mish")) {
			be.PutUint32(table[64:], sha)
		}
		return []byte("<data>" + base64.StdEncoding.EncodeToString(table) + "</data>")
	})
	be.PutUint64(trailer[224:], uint64(len(list)))
	m.write("all.dmg", string(image[:at])+string(list)+string(trailer))
	require.Equal(t, 1, m.run("verify", "all.dmg"))
	assert.Contains(t, m.err, "hdiutil: verify: \"all.dmg\" has no checksum that is checked here.\n")
	require.Zero(t, m.run("convert", "all.dmg", "-format", "UDTO", "-o", "raw"), m.err)
	assert.Equal(t, fileSum(t, m.path("a.dmg")), fileSum(t, m.path("raw.cdr")))
}

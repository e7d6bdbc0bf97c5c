package imagetool

import (
	"bytes"
	"encoding/binary"
	"os"
	"strings"
	"testing"

	"dmgbench/internal/image/container"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// damaged writes an image in which some bytes of the second of three files are others. Those of a compressed format do not
// decode.
func (m *machine) damaged(format, image string) {
	t := m.t
	for _, name := range []string{"a", "b", "c"} {
		m.write("src/"+name, strings.Repeat(name+" has two MiB ...", 1<<17))
	}
	find := func(image string) int64 {
		content, err := os.ReadFile(m.path(image))
		require.NoError(t, err)
		at := bytes.Index(content, []byte("b has two"))
		require.Positive(t, at)
		return int64(at)
	}
	m.do("create -srcfolder src -size 9m -format UDRW -ov whole")
	m.do("convert whole.dmg -format " + format + " -o " + image)
	if format == "UDRO" {
		m.flip(image, find(image)+1<<20)
	} else {
		m.damageChunk(image, image, find("whole.dmg")+1<<20-1) // the first chunk of 1 MiB that lies in the file as a whole
	}
	require.NoError(t, os.Remove(m.path("whole.dmg")))
}

// flip changes one byte of a file.
func (m *machine) flip(name string, at int64) {
	content, err := os.ReadFile(m.path(name))
	require.NoError(m.t, err)
	content[at] ^= 1
	m.write(name, string(content))
}

// damageChunk writes an image, as another or in its place, without the data of the place on its device.
func (m *machine) damageChunk(from, to string, at int64) {
	p, err := placeAt(m.path(from))
	require.NoError(m.t, err)
	defer p.close()
	img, err := container.Open(p.dir, p.name, container.OpenOptions{ReadOnly: true})
	require.NoError(m.t, err)
	where, n := img.(container.UDIFImage).UDIF().Stored(at)
	require.NoError(m.t, img.Close())
	require.Positive(m.t, n)
	file, err := os.ReadFile(p.path)
	require.NoError(m.t, err)
	copy(file[where:where+n], bytes.Repeat([]byte{0xFF}, int(n)))
	m.write(to, string(file))
}

// TestConvertHoldsTheChecksums: data that changed is an error, and nothing is made of it unless it is asked for.
func TestConvertHoldsTheChecksums(t *testing.T) {
	m := newMachine(t)
	m.damaged("UDRO", "bad.dmg")
	for _, format := range []string{"UDRW", "UDTO", "UDRO", "UDZO", "UDSB", "UDSP", "UFBI"} {
		m.refused(1, "hdiutil: convert failed - image data corrupted\nhdiutil: convert: image data corrupted: ", "convert bad.dmg -format "+format+" -o out")
		assert.Contains(t, m.err, "checksum differs")
		m.do("convert -noverify bad.dmg -format " + format + " -o kept-" + format)
		assert.Contains(t, m.err, "WARNING: verifying ")
		assert.Contains(t, m.err, "checksum differs")
	}
	m.refused(1, "image data corrupted", "diskutil image create from bad.dmg out.dmg")
	entries, err := os.ReadDir(m.dir)
	require.NoError(t, err)
	for _, e := range entries {
		assert.NotContains(t, e.Name(), "out")
	}
	assert.Empty(t, m.leftovers())

	m.damaged("UDZO", "torn.dmg")
	for _, line := range []string{"convert torn.dmg -format UDTO -o out", "convert torn.dmg -format UDRO -o out", "checksum -type MD5 torn.dmg"} {
		m.refused(1, " failed - image data corrupted\n", line)
		assert.Contains(t, m.err, "decoding the zlib chunk at sector ")
	}
}

// TestExtractGoesOn: a file that cannot be read is told, the others are there; changed data is told at the end.
func TestExtractGoesOn(t *testing.T) {
	m := newMachine(t)
	m.damaged("UDZO", "torn.dmg")
	m.refused(1, "hdiutil: extract: b: ", "extract torn.dmg -d out")
	assert.Contains(t, m.err, "hdiutil: extract failed - image data corrupted\nhdiutil: extract: failed files or folders: 1, the last one: ")
	for name, there := range map[string]bool{"a": true, "b": false, "c": true} {
		got, err := os.ReadFile(m.path("out/" + name))
		assert.Equal(t, there, err == nil, name)
		assert.Equal(t, there, string(got) == strings.Repeat(name+" has two MiB ...", 1<<17), name)
	}
	m.refused(1, "extract failed - image data corrupted\n", "extract torn.dmg b -d one")
	m.refused(1, "extract failed - image data corrupted\n", "extract torn.dmg a -d one")
	assert.FileExists(t, m.path("one/a"))
	m.do("extract -noverify torn.dmg c -d one")

	m.damaged("UDRO", "bad.dmg")
	m.refused(1, "hdiutil: extract failed - image data corrupted\n", "extract bad.dmg -d all")
	assert.Contains(t, m.err, "checksum differs")
	assert.FileExists(t, m.path("all/c"))
	m.do("extract -noverify bad.dmg -d all -ov")
	assert.Empty(t, m.err)
}

// TestVerifyTellsOfBands: a bundle has no checksum, and bands that are none are told.
func TestVerifyTellsOfBands(t *testing.T) {
	m := newMachine(t)
	m.do("create -size 8m -fs ExFAT -type SPARSEBUNDLE -imagekey sparse-band-size=2048 b")
	m.refused(1, "hdiutil: verify: \"b.sparsebundle\" has no checksum.\n", "verify b.sparsebundle")
	assert.Equal(t, 1, strings.Count(m.err, "\n"), m.err)
	m.write("b.sparsebundle/bands/002", "x")
	m.write("b.sparsebundle/bands/2 2", "x")
	m.write("b.sparsebundle/bands/3", strings.Repeat("x", 1<<20+1))
	m.refused(1, "hdiutil: verify: bands/002: no band number", "verify b.sparsebundle")
	assert.Contains(t, m.err, "hdiutil: verify: bands/2 2: no band number")
	assert.Contains(t, m.err, "hdiutil: verify: bands/3: 1048577 bytes, longer than a band of 1048576\n")
	assert.Contains(t, m.err, "hdiutil: verify: \"b.sparsebundle\" has no checksum.\n")
}

// TestExtractContinuesAfterAFolderThatCannotBeListed: the other files are copied, and the status is 1.
func TestExtractContinuesAfterAFolderThatCannotBeListed(t *testing.T) {
	m := newMachine(t)
	m.write("src/bad/inner", "inside")
	m.write("src/good/other", "kept")
	m.do("create -srcfolder src -format UDRW a")
	content, err := os.ReadFile(m.path("a.dmg"))
	require.NoError(t, err)
	at := bytes.Index(content, []byte("\xc1\x00b\x00a\x00d\x00"))
	require.Positive(t, at)
	set := content[at-64 : at+32]
	binary.LittleEndian.PutUint32(set[32+20:], 0x00ff_fff0) // a first cluster outside of the volume
	sum := uint16(0)
	for i, c := range set {
		if i != 2 && i != 3 {
			sum = (sum<<15 | sum>>1) + uint16(c)
		}
	}
	binary.LittleEndian.PutUint16(set[2:], sum)
	m.write("a.dmg", string(content))
	m.refused(1, "hdiutil: extract: bad: ", "extract a.dmg -d out")
	assert.Contains(t, m.err, "failed files or folders: 1, the last one: ")
	got, err := os.ReadFile(m.path("out/good/other"))
	require.NoError(t, err)
	assert.Equal(t, "kept", string(got))
}

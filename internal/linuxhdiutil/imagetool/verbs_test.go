package imagetool

import (
	"crypto/sha256"
	"dmgbench/internal/linuxhdiutil/attach"
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"dmgbench/internal/image/container"
	"dmgbench/internal/image/exfat"
	"dmgbench/internal/image/gpt"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// limitsOf are the three numbers of resize -limits, in sectors.
func (m *machine) limitsOf(image string) (low, now, high int64) {
	m.t.Helper()
	f := strings.Split(strings.TrimSpace(m.do("resize -limits "+image)), "\t")
	require.Len(m.t, f, 3)
	n := make([]int64, 3)
	for i := range f {
		var err error
		n[i], err = strconv.ParseInt(f[i], 10, 64)
		require.NoError(m.t, err)
	}
	return n[0], n[1], n[2]
}

// sound checks table, volume and files of an image made from the folder src.
func (m *machine) sound(image string, src string) {
	m.t.Helper()
	p, err := placeAt(m.path(image))
	require.NoError(m.t, err)
	defer p.close()
	img, err := container.Open(p.dir, p.name, container.OpenOptions{ReadOnly: true})
	require.NoError(m.t, err)
	defer img.Close()
	_, warnings, err := gpt.Read(img)
	if err == nil {
		require.Empty(m.t, warnings)
	}
	vol, part, err := lastVolume(img)
	require.NoError(m.t, err)
	if part != nil {
		require.LessOrEqual(m.t, part.Offset()+part.Size(), img.Size()-33*sector)
	}
	report, err := exfat.Check(vol, exfat.CheckOptions{})
	require.NoError(m.t, err)
	require.True(m.t, report.Clean(), "%v", report.Findings)
	content, err := os.ReadFile(m.path(src))
	require.NoError(m.t, err)
	require.Equal(m.t, string(content), m.do("cat "+image+" "+filepath.Base(src)))
}

func TestResize(t *testing.T) {
	for _, name := range []string{"a.dmg", "a.sparsebundle", "bare.dmg"} {
		m := newMachine(t)
		m.write("src/data", strings.Repeat("0123456789abcdef", 100_000))
		layout := ""
		if name == "bare.dmg" {
			layout = " -layout NONE -fs ExFAT"
		}
		m.do("create -srcfolder src -format " + map[string]string{".dmg": "UDRW", ".sparsebundle": "UDSB"}[filepath.Ext(name)] + " -size 16m" + layout + " " + name)
		low, now, high := m.limitsOf(name)
		assert.Equal(t, int64(32768), now)
		assert.Less(t, low, now)
		assert.Greater(t, high, 3*now, "%s: the allocation table has room", name)

		m.do(fmt.Sprintf("resize -sectors %d %s", high, name))
		m.sound(name, "src/data")
		m.refused(1, "sectors are too many: at most", fmt.Sprintf("resize -sectors %d %s", high+8, name))
		m.do("resize -size min " + name)
		m.sound(name, "src/data")
		low, now, _ = m.limitsOf(name)
		assert.LessOrEqual(t, low, now)
		m.refused(1, "sectors are too few: at least", fmt.Sprintf("resize -sectors %d %s", low-1, name))
		m.do("diskutil image resize --size 20Mi " + name)
		m.sound(name, "src/data")
		assert.Contains(t, m.do("diskutil image resize "+name), "current: 20971520\n")

		m.do("resize -imageonly -size 24m " + name)
		m.sound(name, "src/data")
		m.refused(1, "too few", "resize -imageonly -size 4m "+name)
		assert.Contains(t, m.do("resize -plist -puppetstrings -imageonly -size 25m "+name), "PERCENT:100.000000\n<?xml")
		assert.Contains(t, m.out, "<key>current</key>\n\t\t<integer>51200</integer>")
		assert.Contains(t, m.do("diskutil image resize --plist --image-only --size 26Mi "+name), "<key>current</key>\n\t\t<integer>27262976</integer>")
		m.do("resize -imageonly -sectors min " + name)
		m.sound(name, "src/data")
	}
}

func TestResizeRefuses(t *testing.T) {
	m := newMachine(t)
	m.do("create -size 8m a")
	m.refused(1, "no size: want", "resize a.dmg")
	m.refused(1, "both -size and -sectors", "resize -size 9m -sectors 5 a.dmg")
	m.refused(1, "both -size and -limits", "resize -size 9m -limits a.dmg")
	m.refused(1, `"tiny" is not a size`, "resize -size tiny a.dmg")
	m.hold("a.dmg")
	m.refused(35, "hdiutil: resize: failed. Resource temporarily unavailable (35)\n", "resize -size 9m a.dmg")
	m.refused(35, "Resource temporarily unavailable (35)", "resize -limits a.dmg")
	m.refused(1, "Error: \nThe operation couldn’t be completed. Resource busy\n", "diskutil image resize a.dmg")
}

func TestResizeOfAVolumeOfTheHost(t *testing.T) {
	m := newMachine(t)
	m.at.fs, m.at.loops = []attach.FS{{Name: "ext4", Present: true}}, true
	m.do("create -size 8m -fs ext4 a")
	p, err := placeAt(m.path("a.dmg"))
	require.NoError(t, err)
	img, err := container.Open(p.dir, p.name, container.OpenOptions{})
	require.NoError(t, err)
	_, err = img.WriteAt([]byte("\x53\xef"), 1<<20+1080)
	require.NoError(t, err)
	require.NoError(t, img.Close())
	p.close()

	low, now, _ := m.limitsOf("a.dmg")
	assert.Equal(t, now, low, "it does not shrink")
	m.at.calls = nil
	m.do("resize -size 12m a.dmg")
	assert.Equal(t, []string{"CheckGrow ext4", "Attach a.dmg nomount=true", "Grow /dev/loop1p1", "Detach /dev/loop1 force=false"}, m.at.calls)
	_, now, _ = m.limitsOf("a.dmg")
	assert.Equal(t, int64(12<<20/512), now)
	m.at.fail["CheckGrow"] = os.ErrPermission
	m.refused(1, "-imageonly resizes the image alone", "resize -size 16m a.dmg")
	m.do("resize -imageonly -size 16m a.dmg")
}

func TestCompact(t *testing.T) {
	m := newMachine(t)
	m.write("src/big", strings.Repeat("x", 20<<20))
	m.do("create -srcfolder src -format UDSB -size 64m -imagekey sparse-band-size=2048 a")
	p, err := placeAt(m.path("a.sparsebundle"))
	require.NoError(t, err)
	defer p.close()
	img, err := container.Open(p.dir, p.name, container.OpenOptions{})
	require.NoError(t, err)
	vol, _, err := lastVolume(img)
	require.NoError(t, err)
	v, err := exfat.Mount(vol, exfat.MountOptions{})
	require.NoError(t, err)
	require.NoError(t, v.Remove("big"))
	require.NoError(t, v.Unmount())
	require.NoError(t, img.Close())
	before, err := container.UsageOf(p.dir, p.name)
	require.NoError(t, err)

	out := m.do("compact a.sparsebundle -batteryallowed")
	after, err := container.UsageOf(p.dir, p.name)
	require.NoError(t, err)
	assert.Greater(t, before.Bands-after.Bands, 17, "whole bands went")
	assert.Equal(t, "Starting to compact…\nReclaiming free space…\nFinishing compaction…\nReclaimed "+
		appleSize(before.Allocated-after.Allocated)+" out of 62 MB possible.\n", out)
	assert.Contains(t, m.do("compact a.sparsebundle"), "Reclaimed 0 bytes out of")
	m.do("compact -plist a.sparsebundle")
	assert.Contains(t, m.out, "<key>reclaimed-bytes</key>\n\t\t<integer>0</integer>")

	m.do("create -size 8m b")
	m.refused(1, "hdiutil: compact failed - Operation not supported\n", "compact b.dmg")
	m.hold("a.sparsebundle")
	m.refused(1, "hdiutil: compact failed - Resource temporarily unavailable\n", "compact a.sparsebundle")
}

func TestCompactTrustsNoDirtyVolume(t *testing.T) {
	m := newMachine(t)
	m.do("create -size 16m -layout NONE -fs ExFAT -type SPARSEBUNDLE -imagekey sparse-band-size=2048 a")
	m.write("a.sparsebundle/bands/a", strings.Repeat("x", 1<<20)) // free by the bitmap
	band, err := os.OpenFile(m.path("a.sparsebundle/bands/0"), os.O_RDWR, 0)
	require.NoError(t, err)
	flag := func(v byte) {
		for _, at := range []int64{106, 12*512 + 106} {
			_, err := band.WriteAt([]byte{v}, at)
			require.NoError(t, err)
		}
	}
	flag(2)
	assert.Contains(t, m.do("compact a.sparsebundle"), "Reclaimed 0 bytes out of")
	assert.Contains(t, m.err, "WARNING: the volume was not unmounted cleanly")
	assert.FileExists(t, m.path("a.sparsebundle/bands/a"))
	flag(0)
	require.NoError(t, band.Close())
	assert.Contains(t, m.do("compact a.sparsebundle"), "Reclaimed 1 MB out of")
	assert.Empty(t, m.err)
	assert.NoFileExists(t, m.path("a.sparsebundle/bands/a"))
}

func TestCompactOfUnknownContentKeepsWhatIsNotZero(t *testing.T) {
	m := newMachine(t)
	m.do("create -size 16m -layout NONE -type SPARSEBUNDLE -imagekey sparse-band-size=2048 a")
	for n, content := range []string{"\x00", "x"} {
		m.write(fmt.Sprintf("a.sparsebundle/bands/%x", n+10), strings.Repeat(content, 1<<20))
	}
	assert.Contains(t, m.do("compact a.sparsebundle"), "Reclaimed 1 MB out of 1 MB possible.")
	assert.Empty(t, m.err)
	assert.NoFileExists(t, m.path("a.sparsebundle/bands/a"))
	assert.FileExists(t, m.path("a.sparsebundle/bands/b"))
	assert.Contains(t, m.do("imageinfo a.sparsebundle"), "Total Non-Empty Bytes: 1048576\n")
	require.NoError(t, os.Remove(m.path("a.sparsebundle/bands/b")))
	assert.Contains(t, m.do("imageinfo a.sparsebundle"), "Total Non-Empty Bytes: 0\n", "all zeros")
}

func TestConvert(t *testing.T) {
	m := newMachine(t)
	m.write("src/data", strings.Repeat("0123456789abcdef", 100_000))
	m.do("create -srcfolder src -size 12m -format UDRW a")
	sum := m.do("checksum -type SHA256 a.dmg")
	from := "a.dmg"
	for _, step := range []struct{ format, to string }{{"UDSB", "b.sparsebundle"}, {"UDTO", "c.cdr"}, {"UDRW", "d.dmg"}, {"udsb", "e.sparsebundle"}} {
		assert.Equal(t, "created: DIR/"+step.to+"\n", m.do("convert -o "+strings.TrimSuffix(step.to, filepath.Ext(step.to))+" "+from+" -format "+step.format))
		assert.Equal(t, sum, m.do("checksum -type SHA256 "+step.to))
		m.sound(step.to, "src/data")
		from = step.to
	}
	m.do("convert a.dmg -format UDSB -imagekey sparse-band-size=2048 -o f -puppetstrings")
	bands, err := os.ReadDir(m.path("f.sparsebundle/bands"))
	require.NoError(t, err)
	assert.Less(t, len(bands), 6, "zeros are left out")
	assert.True(t, strings.HasPrefix(m.out, "PERCENT:-1.000000\nPERCENT:0.000000\n"), m.out)
	assert.Contains(t, m.out, "PERCENT:100.000000\ncreated: ")

	for words, line := range map[string]string{
		"\n":                      "convert a.dmg -format ASIF -o x",
		"zlib-level is for UDZO":  "convert a.dmg -imagekey zlib-level=1 -format ULFO -o x",
		"no format: want -format": "convert a.dmg -o x",
		"no new image: want -o":   "convert a.dmg -format UDTO",
		"hdiutil: convert failed - File exists\n":  "convert a.dmg -format UDSB -o b.sparsebundle",
		"the new image is the old one":             "convert a.dmg -ov -format UDRW -o a.dmg",
		"image key sparse-band-size is for sparse": "convert a.dmg -imagekey sparse-band-size=2048 -format UDRW -o x",
	} {
		m.refused(1, words, line)
	}
	m.hold("a.dmg")
	m.refused(1, "hdiutil: convert failed - Resource temporarily unavailable\n", "convert a.dmg -format UDTO -o x")
	assert.NoFileExists(t, m.path("x.cdr"))
	assert.Empty(t, m.leftovers())
}

func TestChecksums(t *testing.T) {
	m := newMachine(t)
	m.do("create -size 8m a")
	device, err := os.ReadFile(m.path("a.dmg"))
	require.NoError(t, err)
	for kind, want := range map[string]string{
		"SHA256": fmt.Sprintf("%X", sha256.Sum256(device)), "crc32": fmt.Sprintf("%08X", crc32.ChecksumIEEE(device)),
	} {
		assert.Equal(t, fmt.Sprintf("calculated   %s $%s\n", strings.ToUpper(kind), want), m.do("checksum a.dmg -type "+kind))
	}
	for kind, length := range map[string]int{"MD5": 32, "SHA": 40, "SHA1": 40, "SHA384": 96, "SHA512": 128, "UDIF-MD5": 32, "UDIF-CRC32": 8} {
		assert.Len(t, strings.TrimSpace(m.do("checksum a.dmg -type "+kind)), len("calculated   ")+len(kind)+2+length, kind)
	}
	// The parts: record, header, table, free, partition, free, table, header.
	var sums []byte
	end := len(device)/512 - 33
	for _, part := range [][2]int{{0, 1}, {1, 2}, {2, 34}, {34, 2048}, {2048, end / 8 * 8}, {end / 8 * 8, end}, {end, end + 32}, {end + 32, end + 33}} {
		sums = binary.BigEndian.AppendUint32(sums, crc32.ChecksumIEEE(device[part[0]*512:part[1]*512]))
	}
	assert.Equal(t, fmt.Sprintf("calculated   UDIF-CRC32 $%08X\n", crc32.ChecksumIEEE(sums)), m.do("checksum a.dmg -type UDIF-CRC32"))
	m.refused(1, "no type: want -type", "checksum a.dmg")
	m.refused(1, `"SHA3" is none of`, "checksum -type SHA3 a.dmg")
}

func TestVerify(t *testing.T) {
	m := newMachine(t)
	m.do("create -size 8m a")
	m.write("x.dmg", "no image")
	m.refused(1, "hdiutil: verify: \"a.dmg\" has no checksum.\n", "verify a.dmg")
	m.refused(1, "hdiutil: verify: unable to recognize \"x.dmg\" as a disk image.\n", "verify x.dmg")
	m.refused(1, "hdiutil: verify failed - No such file or directory\n", "verify y.dmg")
}

func TestFilesThatAreNotThere(t *testing.T) {
	m := newMachine(t)
	m.write("src/file", "text")
	m.do("create -srcfolder src -format UDRW a")
	m.refused(1, "No such file or directory", "cat a.dmg nothing")
	m.refused(1, "Is a directory", "cat a.dmg /")
	m.refused(1, "No such file or directory", "extract a.dmg ../../etc/passwd")
	m.refused(1, "No such file or directory", "extract -d no/where a.dmg")
	m.do("create -size 8m -layout NONE b")
	m.refused(1, "no ExFAT volume on the image", "ls b.dmg")
	assert.Equal(t, "text", m.do("cat a.dmg /./x/../file"))
}

// TestAttachedReadOnlyIsAttached: what is attached for reading is not changed under its reader, and may be read.
func TestAttachedReadOnlyIsAttached(t *testing.T) {
	m := newMachine(t)
	for _, name := range []string{"a.dmg", "a.sparsebundle", "a.sparseimage"} {
		kind := map[string]string{"a.dmg": "UDIF", "a.sparsebundle": "SPARSEBUNDLE", "a.sparseimage": "SPARSE"}[name]
		m.do("create -size 8m -fs ExFAT -type " + kind + " a")
		p, err := placeAt(m.path(name))
		require.NoError(t, err)
		img, err := container.Open(p.dir, p.name, container.OpenOptions{ReadOnly: true, Hold: true})
		require.NoError(t, err)
		m.refused(statusInUse, "hdiutil: resize: failed. Resource temporarily unavailable (35)", "resize -size 12m "+name)
		m.refused(1, "compact failed - Resource temporarily unavailable", "compact "+name)
		m.refused(1, "create failed - Resource busy", "create -size 8m -fs ExFAT -ov -type "+kind+" "+name)
		m.do("convert " + name + " -format UDZO -o out -ov")
		require.NoError(t, img.Close())
		m.do("resize -size 12m " + name)
		p.close()
	}
}

// TestLocations: the URL of a description is one, whatever the image is called.
func TestLocations(t *testing.T) {
	m := newMachine(t)
	for name, want := range map[string]string{"a b#%.dmg": "a%20b%23%25.dmg", "new\nline.dmg": "new%0Aline.dmg", "\xffü.dmg": "%FF%C3%BC.dmg", "plain.dmg": "plain.dmg"} {
		require.Zero(t, m.run("create", "-size", "1m", "-layout", "NONE", name), m.err)
		require.Zero(t, m.run("imageinfo", name), m.err)
		assert.Contains(t, m.out, "URL: file://DIR/"+want+"\n")
	}
}

package imagetool

import (
	"bytes"
	"context"
	"encoding/binary"
	"encoding/xml"
	"fmt"
	"hash/crc32"
	"io"
	"os"
	"strings"
	"testing"
	"time"
	"unicode"
	"unicode/utf16"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"howett.net/plist"

	"dmgbench/internal/system/safetext"
)

// rename gives a file of the root of a raw ExFAT image another name of at most 15 characters, with right sums.
func (m *machine) rename(image, old, name string) {
	b, err := os.ReadFile(m.path(image))
	require.NoError(m.t, err)
	units := func(s string) []byte {
		out, _ := binary.Append(nil, binary.LittleEndian, utf16.Encode([]rune(s)))
		return out
	}
	at := bytes.Index(b, append([]byte{0xc1, 0}, units(old)...))
	require.Positive(m.t, at)
	set := b[at-64 : at+32]
	clear(set[66:])
	copy(set[66:], units(name))
	set[35] = byte(len(units(name)) / 2)
	var hash, sum uint16
	for _, c := range units(strings.ToUpper(name)) {
		hash = (hash<<15 | hash>>1) + uint16(c)
	}
	binary.LittleEndian.PutUint16(set[36:], hash)
	for i, c := range set {
		if i != 2 && i != 3 {
			sum = (sum<<15 | sum>>1) + uint16(c)
		}
	}
	binary.LittleEndian.PutUint16(set[2:], sum)
	require.NoError(m.t, os.WriteFile(m.path(image), b, 0o644))
}

// TestOneBadNameHidesNothingElse: ls and extract name what no path can name, do everything else, and fail.
func TestOneBadNameHidesNothingElse(t *testing.T) {
	for name, want := range map[string]string{"a/b": `"a/b": name is not allowed`, "..": `"..": name is not allowed`,
		"good": `"good": another file or folder has this name`} {
		m := newMachine(t)
		m.write("src/AAAAAAAA/file", "x")
		m.write("src/good", "good")
		m.write("src/sub/deep", "deep")
		m.do("create -srcfolder src -format UDRW z")
		m.rename("z.dmg", "AAAAAAAA", name)
		for _, line := range []string{"ls z.dmg", "ls -R z.dmg"} {
			m.refused(1, want, line)
			assert.Contains(t, m.out, "sub/\n", line)
		}
		m.refused(1, want, "extract -d out z.dmg")
		deep, err := os.ReadFile(m.path("out/sub/deep"))
		require.NoError(t, err)
		assert.Equal(t, "deep", string(deep))
		assert.NoFileExists(t, m.path("file"))
	}
}

// TestExtractKeepsTimes: of files and of folders, also of those whose files come after them.
func TestExtractKeepsTimes(t *testing.T) {
	m := newMachine(t)
	m.write("src/folder/file", "x")
	when := time.Date(2019, 3, 4, 5, 6, 8, 0, time.UTC)
	for n, name := range []string{"src/folder/file", "src/folder"} {
		require.NoError(t, os.Chtimes(m.path(name), time.Time{}, when.Add(time.Duration(n)*time.Hour)))
	}
	m.do("create -srcfolder src -format UDZO a")
	m.do("extract -d all a.dmg")
	m.do("extract -d one a.dmg folder/file")
	m.do("extract -d sub a.dmg folder")
	for name, hours := range map[string]int{"all/folder/file": 0, "all/folder": 1, "one/file": 0, "sub/folder": 1, "sub/folder/file": 0} {
		fi, err := os.Stat(m.path(name))
		require.NoError(t, err)
		assert.True(t, fi.ModTime().Equal(when.Add(time.Duration(hours)*time.Hour)), "%s: %s", name, fi.ModTime())
	}
}

// TestTimesThatExFATCannotHaveAreCounted: of files and folders alike.
func TestTimesThatExFATCannotHaveAreCounted(t *testing.T) {
	m := newMachine(t)
	for name, year := range map[string]int{"first": 1980, "last": 2107, "before": 1970, "after": 2108} {
		m.write("src/"+name, "x")
		require.NoError(t, os.Chmod(m.path("src/"+name), 0o644))
		require.NoError(t, os.Chtimes(m.path("src/"+name), time.Time{}, time.Date(year, 6, 1, 0, 0, 0, 0, time.UTC)))
	}
	m.do("create -srcfolder src -format UDRO a")
	assert.Equal(t, "hdiutil: create: WARNING: ExFAT does not keep, of so many files and folders: times before 1980 or after 2107 of 2\n", m.err)
}

// TestImageInItsOwnFolder: neither the new image, nor the one that it replaces, nor its temporary file is put into it, and
// no image is made inside another one.
func TestImageInItsOwnFolder(t *testing.T) {
	m := newMachine(t)
	m.write("src/file", "x")
	for _, format := range []string{"UDZO", "UDSB"} {
		for _, ov := range []string{"", " -ov", " -ov"} {
			m.do("create -srcfolder src -format " + format + ov + " src/out")
			image := map[string]string{"UDZO": "src/out.dmg", "UDSB": "src/out.sparsebundle"}[format]
			assert.Equal(t, "file\n", m.do("ls "+image))
		}
		require.NoError(t, os.RemoveAll(m.path("src/out.dmg")))
	}
	m.refused(1, "the new image is the old one, or inside it", "convert src/out.sparsebundle -format UDZO -o src/out.sparsebundle/bands/x")
	m.refused(1, "is inside the image", "extract src/out.sparsebundle -d src/out.sparsebundle/bands/x")
}

// TestBytesAfterAnImageAreNoticed: with them, a file of whole sectors would pass for a raw image.
func TestBytesAfterAnImageAreNoticed(t *testing.T) {
	m := newMachine(t)
	m.write("src/file", strings.Repeat("x", 5000))
	m.do("create -srcfolder src -format UDZO a")
	image, err := os.ReadFile(m.path("a.dmg"))
	require.NoError(t, err)
	for _, more := range []int{1, 1500, 700} {
		whole := (len(image)+more*512)/512*512 - len(image)
		m.write("more.dmg", string(image)+strings.Repeat("\x00", whole))
		want := fmt.Sprintf("ends at byte %d, and has %d bytes after that", len(image), whole)
		for _, line := range []string{"imageinfo more.dmg", "isencrypted more.dmg", "convert more.dmg -format UDRW -o b", "attach more.dmg", "verify more.dmg"} {
			m.refused(1, want, line)
		}
	}
	m.write("more.raw", string(image)+strings.Repeat("\x00", 512-len(image)%512))
	m.do("imageinfo more.raw")
	m.do("imageinfo more.dmg -srcimagekey diskimage-class=CRawDiskImage")
	// A disk with an image on it is no image with something after it.
	m.write("disk.dmg", strings.Repeat("\x01", 4096)+string(image)+strings.Repeat("\x00", 1024-len(image)%512))
	m.do("imageinfo disk.dmg")
}

// TestOutputObeysNoName: names in an image or a folder reach neither a terminal nor a property list as they are.
func TestOutputObeysNoName(t *testing.T) {
	for _, name := range []string{"N\u009b31m\u202e", "\ufffeN\uffff"} {
		obeysNo(t, name)
	}
}

// obeysNo checks all verbs with a hostile name of a volume.
func obeysNo(t *testing.T, name string) {
	m := newMachine(t)
	m.at.fsOn = "exfat"
	m.run("create", "-size", "8m", "-fs", "ExFAT", "-volname", name, "a")
	m.do("create -size 8m -fs ExFAT b.sparsebundle")
	m.write("b.sparsebundle/bands/\x1b]0;x\x07", "")
	m.write("src/\u202ex\u009b", "")
	lines := []string{"imageinfo a.dmg", "imageinfo -plist a.dmg", "pmap a.dmg", "attach a.dmg", "attach -plist a.dmg", "info", "info -plist",
		"verify b.sparsebundle", "create -srcfolder src c", "ls c.dmg", "extract -d out c.dmg", "cat c.dmg \x1b[31m", "create -size \x1b[31m d",
		"create -size 8m -fs \u202eX d", "\u009bverb"}
	for _, line := range lines {
		m.run(strings.Split(line, " ")...)
		for _, r := range m.out + m.err {
			require.False(t, r != '\n' && r != '\t' && (unicode.IsControl(r) || safetext.IsHidden(r)), "%s: %U in %q", line, r, m.out+m.err)
		}
		if !strings.Contains(line, "-plist") {
			continue
		}
		d := xml.NewDecoder(strings.NewReader(m.out))
		_, err := d.Token()
		for ; err == nil; _, err = d.Token() {
		}
		require.ErrorIs(t, err, io.EOF, m.out)
		var tree any
		_, err = plist.Unmarshal([]byte(m.out), &tree)
		require.NoError(t, err)
		if strings.HasPrefix(line, "imageinfo") && !strings.Contains(name, "\uffff") { // which XML cannot hold
			assert.Contains(t, fmt.Sprint(tree), name, "a program gets the name as it is")
		}
	}
}

// TestZerosAreNotRead: the checksum of an image that says that it is large takes no time, and is that of its bytes.
func TestZerosAreNotRead(t *testing.T) {
	m := newMachine(t)
	m.write("src/file", strings.Repeat("text", 50_000))
	m.do("create -srcfolder src -size 20m -format UDZO small")
	m.do("convert small.dmg -format UDRW -o raw")
	bytes, err := os.ReadFile(m.path("raw.dmg"))
	require.NoError(t, err)
	want := fmt.Sprintf("calculated   CRC32 $%08X\n", crc32.ChecksumIEEE(bytes))
	m.do("convert small.dmg -format UDSB -o bundle")
	for _, image := range []string{"small.dmg", "raw.dmg", "bundle.sparsebundle"} {
		assert.Equal(t, want, m.do("checksum -type CRC32 "+image), image)
	}
	m.do("create -size 1000t -layout NONE -type SPARSEBUNDLE large")
	m.do("convert large.sparsebundle -format UDZO -o large")
	for _, image := range []string{"large.dmg", "large.sparsebundle"} {
		m.do("checksum -type CRC32 " + image)
		assert.Empty(t, m.err)
		m.do("checksum -type UDIF-CRC32 " + image)
	}
	// Other checksums need all bytes: that is said before, and can be ended.
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	var told strings.Builder
	status := Main(ctx, []string{"checksum", "-type", "SHA256", "large.dmg"}, Env{Stderr: &told, Dir: m.dir}.withDefaults())
	assert.Equal(t, statusCanceled, status)
	assert.Contains(t, told.String(), "takes about 17066 minutes (-type CRC32 computes zeros at once)")
}

// TestSmallSizesHaveAHint: a number alone is bytes.
func TestSmallSizesHaveAHint(t *testing.T) {
	m := newMachine(t)
	m.refused(1, "hint: -size 50 is 50 bytes: 50m is that many MiB", "create -size 50 -fs ExFAT x")
	m.refused(1, "more than the largest volume", "create -size 1024p -fs ExFAT -type SPARSEBUNDLE x")
	m.do("create -size 8m -fs ExFAT a")
	m.refused(1, `the image has no "out"; -d out names the folder to copy into`, "extract a.dmg out")
}

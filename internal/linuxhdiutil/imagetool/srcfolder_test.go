package imagetool

import (
	"bytes"
	"dmgbench/internal/image/blockdev"
	"dmgbench/internal/image/exfat"
	"dmgbench/internal/linuxhdiutil/attach"
	"encoding/binary"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
)

// TestSourceBundle: a bundle goes into the image as a folder, and what is in another folder without it.
func TestSourceBundle(t *testing.T) {
	m := newMachine(t)
	m.write("X.app/Contents/Info.plist", "x")
	m.write("plain/Contents/Info.plist", "x")
	m.do("create -srcfolder X.app -format UDRO app")
	assert.Equal(t, "X.app/\nX.app/Contents/\nX.app/Contents/Info.plist\n", m.do("ls -R app.dmg"))
	m.do("create -srcfolder plain -format UDRO plain")
	assert.Equal(t, "Contents/\nContents/Info.plist\n", m.do("ls -R plain.dmg"))
}

// TestSourceTimes: times of files and folders are kept.
func TestSourceTimes(t *testing.T) {
	m := newMachine(t)
	m.write("src/folder/file", "x")
	when := time.Date(2019, 3, 4, 5, 6, 8, 0, time.Local)
	for n, name := range []string{"src/folder/file", "src/folder"} {
		require.NoError(t, os.Chtimes(m.path(name), time.Time{}, when.Add(time.Duration(n)*time.Hour)))
	}
	m.do("create -srcfolder src -format UDRO a")
	assert.Regexp(t, `(?m)^d +\d+ 2019-03-04 06:06:08 folder/$`, m.do("ls -R -l a.dmg"))
	assert.Regexp(t, `(?m)^- +1 2019-03-04 05:06:08 folder/file$`, m.out)
}

// TestSourceLosses: what ExFAT does not keep is told in one line with counts, and symbolic links are refused with theirs.
func TestSourceLosses(t *testing.T) {
	m := newMachine(t)
	m.write("src/plain", "x")
	m.write("src/program", "x")
	m.write("src/marked", "x")
	for name, mode := range map[string]os.FileMode{"src/plain": 0o644, "src/program": 0o755, "src/marked": 0o644} {
		require.NoError(t, os.Chmod(m.path(name), mode))
	}
	m.do("create -srcfolder src -format UDRO none")
	assert.Equal(t, "hdiutil: create: WARNING: ExFAT does not keep, of so many files and folders: modes of 1\n", m.err)

	require.NoError(t, os.Link(m.path("src/plain"), m.path("src/second")))
	want := "modes of 1, "
	if unix.Lsetxattr(m.path("src/marked"), "user.origin", []byte("x"), 0) == nil {
		want += "extended attributes of 1, "
	}
	m.do("create -srcfolder src -format UDRO some")
	assert.Equal(t, "hdiutil: create: WARNING: ExFAT does not keep, of so many files and folders: "+want+"hard links of 2\n", m.err)

	for _, name := range []string{"src/l1", "src/l2"} {
		require.NoError(t, os.Symlink("plain", m.path(name)))
	}
	m.refused(1, `ExFAT cannot hold symbolic links: 2 in the source, the first is "DIR/src/l1"`, "create -srcfolder src -format UDRO c")
}

// TestLongNamesAreCutWithAWarning: programs of the host cut names of volumes.
func TestLongNamesAreCutWithAWarning(t *testing.T) {
	m := newMachine(t)
	m.at.loops, m.uid = true, 0
	m.at.fs = []attach.FS{{Name: "ext4", Kernel: "ext4", Present: true, MountableByKernel: true}}
	m.do("create -size 8m -fs ext4 -volname 0123456789abcdefg long")
	assert.Equal(t, "hdiutil: create: WARNING: the name \"0123456789abcdefg\" is too long for ext4, which allows 16 bytes: it is cut off\n", m.err)
	m.do("create -size 8m -fs ext4 -volname 0123456789abcdef short")
	assert.Empty(t, m.err)
}

// TestHeldByAnAttachment: an image that is attached is named as such.
func TestHeldByAnAttachment(t *testing.T) {
	m := newMachine(t)
	m.do("create -size 8m -fs ExFAT -attach a")
	m.hold("a.dmg")
	const hint = "hint: it is attached: detach it first\n"
	m.refused(1, hint, "convert a.dmg -format UDZO -o b")
	m.refused(35, hint, "resize -size 16m a.dmg")
	m.do("detach loop0")
	m.refused(1, "Resource temporarily unavailable", "convert a.dmg -format UDZO -o b")
	assert.NotContains(t, m.err, hint)
}

// TestLicenseAndLength: what a trailer and a resource fork say besides.
func TestLicenseAndLength(t *testing.T) {
	m := newMachine(t)
	m.write("src/file", "x")
	m.do("create -srcfolder src -format UDRO a")
	assert.Contains(t, m.do("imageinfo a.dmg"), "\tSoftware License Agreement: false\n")
	m.do("verify a.dmg")
	assert.NotContains(t, m.err, "WARNING")
	image, err := os.ReadFile(m.path("a.dmg"))
	require.NoError(t, err)
	be, trailer := binary.BigEndian, image[len(image)-512:]
	at := be.Uint64(trailer[216:])

	const mark = "<key>blkx</key>"
	list := strings.Replace(string(image[at:len(image)-512]), mark, "<key>LPic</key><array><dict><key>ID</key><string>5000</string></dict></array>"+mark, 1)
	be.PutUint64(trailer[224:], uint64(len(list)))
	m.write("licence.dmg", string(image[:at])+list+string(trailer))
	assert.Contains(t, m.do("imageinfo licence.dmg"), "\tSoftware License Agreement: true\n")

	be.PutUint64(trailer[492:], 1<<50)
	m.write("long.dmg", string(image[:at])+list+string(trailer))
	m.do("verify long.dmg")
	assert.Contains(t, m.err, "of 1125899906842624 sectors are in no table")
}

// TestSourceOfAVolumeThatCannotBeMounted: if the new volume cannot be mounted, create fails; it does not report an empty
// image as a success.
func TestSourceOfAVolumeThatCannotBeMounted(t *testing.T) {
	m := newMachine(t)
	m.write("src/file", "x")
	files, err := readTree(t.Context(), []string{m.path("src")}, nil)
	require.NoError(t, err)
	defer files.close()
	c := &call{ctx: t.Context(), env: Env{}.withDefaults(), tool: "hdiutil"}
	require.ErrorIs(t, files.copyTo(c, blockdev.ReadOnly(bytes.NewReader(make([]byte, 1<<20)), 1<<20)), exfat.ErrNotExFAT)
}

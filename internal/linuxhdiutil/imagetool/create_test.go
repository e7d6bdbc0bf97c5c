package imagetool

import (
	"dmgbench/internal/linuxhdiutil/attach"
	"errors"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestCreateMakesWhatIsAskedFor(t *testing.T) {
	for _, test := range []struct{ line, image, format, scheme, fs, sectors string }{
		{"create -size 8m a", "a.dmg", "UDRW", "GUID", "ExFAT: untitled", "16384"},
		{"create a.dmg -volname One -sectors 16384 -fs exfat", "a.dmg", "UDRW", "GUID", "ExFAT: One", "16384"},
		{"create -megabytes 8 -layout NONE a.dmg", "a.dmg", "UDRW", "none", "", "16384"},
		{"create -megabytes 8 -layout NONE -fs ExFAT a.dmg", "a.dmg", "UDRW", "none", "ExFAT: untitled", "16384"},
		{"create -megabytes 8 -layout GPTSPUD a.dmg", "a.dmg", "UDRW", "GUID", "", "16384"},
		{"create -size 8m a.sparsebundle", "a.sparsebundle", "UDSB", "GUID", "ExFAT: untitled", "16384"},
		{"create -size 8m -type SPARSEBUNDLE -imagekey sparse-band-size=2048 a", "a.sparsebundle", "UDSB", "GUID", "ExFAT: untitled", "16384"},
		{"create -size 8m -type SPARSEBUNDLE a.dmg", "a.dmg.sparsebundle", "UDSB", "GUID", "ExFAT: untitled", "16384"},
		{"create -size 8m -type UDTO a", "a.cdr", "UDTO", "GUID", "ExFAT: untitled", "16384"},
		{"create -size 16385b a", "a.dmg", "UDRW", "GUID", "ExFAT: untitled", "16385"},
		{"diskutil image create blank --size 8Mi --volumeName V a", "a.dmg", "UDRW", "GUID", "ExFAT: V", "16384"},
		{"diskutil image --plist create blank -s 16384S --fs None --format UDSB a", "a.sparsebundle", "UDSB", "none", "", "16384"},
	} {
		m := newMachine(t)
		out := m.do(test.line)
		assert.Contains(t, out, "DIR/"+test.image, test.line)
		text := m.do("imageinfo " + test.image)
		assert.Contains(t, text, "Format: "+test.format+"\n", test.line)
		assert.Contains(t, text, "partition-scheme: "+test.scheme+"\n", test.line)
		assert.Contains(t, text, "Sector Count: "+test.sectors+"\n", test.line)
		if test.fs == "" {
			assert.NotContains(t, text, "partition-filesystems", test.line)
		} else {
			assert.Contains(t, text, "partition-filesystems:\n", test.line)
			assert.Contains(t, text, test.fs+"\n", test.line)
		}
		assert.Empty(t, m.leftovers(), test.line)
		assert.Empty(t, m.at.calls, "nothing is attached to make %s", test.line)
	}
}

func TestCreateRefuses(t *testing.T) {
	m := newMachine(t)
	m.write("folder/file", "x")
	for _, test := range []struct{ words, line string }{
		{"hdiutil: create: no size: want", "create a"},
		{"Usage: hdiutil create [options] IMAGE", "create -size"},
		{"IMAGE is missing", "create -size 1m"},
		{`unexpected argument "b"`, "create -size 1m a b"},
		{"both -size and -sectors", "create -size 1m -sectors 2048 a"},
		{`"1x" is not a size`, "create -size 1x a"},
		{`"0" is not a positive whole number`, "create -sectors 0 a"},
		{"unrecognized option `-siz'", "create -siz 1m a"},
		{"format UDZO is not made by this verb: want one of UDIF, SPARSEBUNDLE, SPARSE, UDTO", "create -size 1m -type udzo a"},
		{"format ASIF is not made by this verb: want one of UDIF, SPARSEBUNDLE, SPARSE, UDTO\n", "create -size 1m -type asif a"},
		{"format ASIF is not made by this verb: want one of UDIF, SPARSEBUNDLE, SPARSE, UDTO\n", "create -size 1m a.asif"},
		{`format "ZIP" is not known`, "create -size 1m -type ZIP a"},
		{"layout MBRSPUD is not supported", "create -size 1m -layout MBRSPUD a"},
		{"an encrypted image takes a passphrase", "create -size 1m -encryption AES-256 a"},
		{"option -srcdevice: not supported", "create -srcdevice /dev/null a"},
		{"file system apfs cannot be made on this system; possible here: ExFAT", "create -size 1m -fs apfs a"},
		{"file system JHFS+ cannot be made", "create -size 1m -fs JHFS+ a"},
		{"file system zfs cannot be made", "create -size 1m -fs zfs a"},
		{`the name "a\xff" is not valid UTF-8`, "create -size 8m -fs ExFAT -volname a\xff a"},
		{`label "twelve-chars" has 12 UTF-16 units`, "create -size 8m -fs ExFAT -volname twelve-chars a"},
		{"image key sparse-band-size is for sparse bundles", "create -size 1m -imagekey sparse-band-size=2048 a"},
		{`sparse-band-size "2047": want 2048 to 16777216`, "create -size 1m -imagekey sparse-band-size=2047 a.sparsebundle"},
		{"image key zlib-level is for UDZO; this is UDSB", "create -size 1m -imagekey zlib-level=9 a.sparsebundle"},
		{"-format is for images with a -srcfolder", "create -size 1m -format UDRW a"},
		{"-type is for empty images", "create -srcfolder folder -type UDIF a"},
		{`image key "level=9" is not known`, "create -size 1m -imagekey level=9 a"},
		{"image key zlib-level is for UDZO; this is UDBZ", "create -srcfolder folder -format UDBZ -imagekey zlib-level=9 a"},
		{`bzip2-level "x": want 1 to 9`, "create -srcfolder folder -format UDBZ -imagekey bzip2-level=x a"},
		{"hdiutil: create failed - No such file or directory", "create -size 1m nowhere/a"},
		{"hdiutil: create failed - No such file or directory", "create -srcfolder nowhere -format UDRW a"},
		{"a volume's name without a file system", "create -size 1m -layout NONE -volname x a"},
		{"less than the smallest volume", "create -size 64k -layout NONE -fs ExFAT a"},
		{"Error: Failed to create disk image: format UDTO is not made by this verb: want one of RAW, UDSB", "diskutil image create blank --size 1M --format UDTO a"},
		{"diskutil: image create blank: no size", "diskutil image create blank a"},
	} {
		m.refused(1, test.words, test.line)
		assert.Empty(t, m.out, test.line)
	}
	list, err := os.ReadDir(m.dir)
	require.NoError(t, err)
	assert.Len(t, list, 1, "nothing is left behind: %v", list)
}

func TestCreateDoesNotOverwriteUnasked(t *testing.T) {
	m := newMachine(t)
	m.do("create -size 8m -volname Old a.dmg")
	m.refused(1, "hdiutil: create failed - File exists\n", "create -size 9m a.dmg")
	assert.Equal(t, "hdiutil: create failed - File exists\n", m.err)
	assert.Contains(t, m.do("imageinfo a.dmg"), "ExFAT: Old")
	m.do("create -size 9m -ov -volname New a.dmg")
	assert.Contains(t, m.do("imageinfo a.dmg"), "ExFAT: New")
	m.do("create -size 8m a.sparsebundle")
	m.do("create -ov -size 9m -volname New a.sparsebundle")
	assert.Contains(t, m.do("imageinfo a.sparsebundle"), "ExFAT: New")

	m.write("folder.sparsebundle/mine", "dear")
	m.refused(1, "is not an image that could be replaced", "create -ov -size 8m folder.sparsebundle")
	for _, name := range []string{".", "..", "/", "folder/", "folder.sparsebundle/.."} {
		m.refused(1, "names a folder: want the name of the new image\n", "create -size 8m "+name)
	}
	assert.Equal(t, "created: DIR/new.sparsebundle\n", m.do("create -size 8m new.sparsebundle/"))
	assert.FileExists(t, m.path("folder.sparsebundle/mine"))
	m.hold("a.dmg")
	m.refused(1, "hdiutil: create failed - Resource busy\n", "create -ov -size 8m a.dmg")
	assert.Empty(t, m.leftovers())
}

// Of several who make an image of one name, without -ov, a single one does.
func TestCreateByManyAtOnce(t *testing.T) {
	m := newMachine(t)
	for _, name := range []string{"a.dmg", "a.sparsebundle"} {
		for range 6 {
			var made atomic.Int64
			var group sync.WaitGroup
			start := make(chan struct{})
			for range 8 {
				group.Go(func() {
					<-start
					if Main(t.Context(), strings.Fields("create -size 1m -layout NONE "+name), Env{Attacher: m.at.attacher(), Dir: m.dir}.withDefaults()) == 0 {
						made.Add(1)
					}
				})
			}
			close(start)
			group.Wait()
			require.EqualValues(t, 1, made.Load(), name)
			require.Empty(t, m.leftovers())
			m.do("imageinfo " + name)
			require.NoError(t, os.RemoveAll(m.path(name)))
		}
	}
}

func TestCreateOnADeviceOfTheHost(t *testing.T) {
	m := newMachine(t)
	m.at.fs = []attach.FS{{Name: "ext4", Tool: "mkfs.ext4", Package: "e2fsprogs", Present: true, MountableByKernel: true},
		{Name: "xfs", Tool: "mkfs.xfs", Package: "xfsprogs", MountableByKernel: true}}
	m.refused(1, "needs loop devices and the rights of root", "create -size 8m -fs ext4 a")
	m.refused(1, "file system xfs needs the program mkfs.xfs, of the package xfsprogs", "create -size 8m -fs xfs a")
	assert.Contains(t, m.do("create -help"), "here one of: ExFAT\n")

	m.at.loops, m.uid = true, 0
	assert.Contains(t, m.do("help create"), "here one of: ExFAT, ext4\n")
	m.do("create -size 8m -volname V a")
	require.Len(t, m.at.calls, 3)
	assert.True(t, strings.HasSuffix(m.at.calls[0], "-a.dmg nomount=true"), m.at.calls[0])
	assert.Equal(t, []string{"Make /dev/loop0p1 ext4 V", "Detach /dev/loop0 force=false"}, m.at.calls[1:])
	assert.Contains(t, m.do("imageinfo a.dmg"), "partition-hint: Linux Filesystem")

	m.at.fail["Make"] = errors.New("mkfs.ext4: it did not like it")
	m.refused(1, "hdiutil: create failed - mkfs.ext4: it did not like it\n", "create -size 8m b")
	assert.NoFileExists(t, m.path("b.dmg"))
	assert.Empty(t, m.leftovers())
	assert.Empty(t, m.at.attached, "nothing stays attached")
}

func TestCreateFromFolders(t *testing.T) {
	m := newMachine(t)
	m.write("src/one.txt", "one")
	m.write("src/deep/er/two.bin", strings.Repeat("two", 500_000))
	m.write("src/empty", "")
	when := time.Date(2026, 1, 2, 3, 4, 6, 0, time.Local)
	require.NoError(t, os.Chtimes(m.path("src/deep/er/two.bin"), when, when))
	m.do("create -srcfolder src -format UDSB a")
	assert.Contains(t, m.do("imageinfo a.sparsebundle"), "ExFAT: src\n")
	assert.Equal(t, "deep/\nempty\none.txt\n", m.do("ls a.sparsebundle"))
	assert.Equal(t, "deep/er/\ndeep/er/two.bin\n", m.do("ls -R a.sparsebundle deep"))
	assert.Equal(t, "-      1500000 2026-01-02 03:04:06 deep/er/two.bin\n", m.do("ls -l a.sparsebundle /deep/er/two.bin"))
	assert.Equal(t, "oneone", m.do("cat a.sparsebundle one.txt empty one.txt"))
	m.do("extract -d out a.sparsebundle")
	for _, name := range []string{"one.txt", "deep/er/two.bin", "empty"} {
		want, err := os.ReadFile(m.path("src/" + name))
		require.NoError(t, err)
		got, err := os.ReadFile(m.path("out/" + name))
		require.NoError(t, err)
		assert.Equal(t, want, got, name)
	}
	m.refused(1, `File exists: "deep/er/two.bin"`, "extract -d out a.sparsebundle deep")
	m.do("extract -ov -d out a.sparsebundle deep/er")
	assert.FileExists(t, m.path("out/er/two.bin"))

	assert.Contains(t, m.do("create -puppetstrings -srcfolder src -format UDSB told"), "PERCENT:99.9", "two.bin is done, and the small file is not")

	m.write("other/three", "three")
	m.do("create -srcfolder src -srcdir other -format UDRW -volname Both b")
	assert.Equal(t, "three", m.do("cat b.dmg other/three"))

	require.NoError(t, os.Symlink("one.txt", m.path("src/link")))
	m.refused(1, `ExFAT cannot hold symbolic links: 1 in the source, the first is "DIR/src/link"`, "create -srcfolder src -format UDRW c")
	require.NoError(t, os.Remove(m.path("src/link")))
	m.write("again/src/one.txt", "1")
	m.refused(1, `"src" is there twice`, "create -srcfolder src -srcfolder again/src -format UDRW c")
	m.write("src/ONE.txt", "1")
	m.refused(1, "does not distinguish capital letters from small ones", "create -srcfolder src -format UDRW c")
	require.NoError(t, os.Remove(m.path("src/ONE.txt")))
	m.refused(1, "No space left on device", "create -srcfolder src -size 1m -layout NONE -fs ExFAT -format UDRW c")
	assert.NoFileExists(t, m.path("c.dmg"))
	require.NoError(t, syscall.Mkfifo(m.path("src/fifo"), 0o600))
	m.refused(1, "neither a file nor a folder", "create -srcfolder src -format UDRW c")
	assert.Empty(t, m.leftovers())
}

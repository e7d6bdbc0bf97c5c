package imagetool

import (
	"bytes"
	"encoding/binary"
	"errors"
	"hash/crc32"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"dmgbench/internal/image/container"
	"dmgbench/internal/image/gpt"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// TestExtractRefuses: what is in the way is named and stays, nothing is made for what is not there, and no half of a file is left.
func TestExtractRefuses(t *testing.T) {
	m := newMachine(t)
	m.write("src/a/file", strings.Repeat("0123456789abcdef", 3<<16))
	m.do("create -srcfolder src -format UDSB -imagekey sparse-band-size=2048 b")
	require.NoError(t, os.MkdirAll(m.path("link/a"), 0o700))
	require.NoError(t, os.Symlink("unsupportedVerbs", m.path("link/a/file")))
	m.refused(1, "extract failed - File exists, and is not a file that could be replaced: \"a/file\"\n", "extract b.sparsebundle -ov -d link")
	m.write("plain/a", "mine")
	m.refused(1, "extract failed - File exists, and is not a folder: \"a\"\n", "extract b.sparsebundle -ov -d plain")
	m.refused(1, "extract: describing \"nothing\": ", "extract b.sparsebundle nothing -d new")
	m.refused(1, "extract: lstat DIR/c.dmg: ", "extract c.dmg -d new")
	assert.NoDirExists(t, m.path("new"))
	m.refused(1, "opening folder \"DIR/plain/a\": not a directory\n", "extract b.sparsebundle -d plain/a")

	bands, err := filepath.Glob(m.path("b.sparsebundle/bands/*"))
	require.NoError(t, err)
	last := bands[len(bands)-1]
	for _, b := range bands {
		if fi, err := os.Stat(b); err == nil && fi.Size() == 1<<20 {
			last = b
		}
	}
	require.NoError(t, os.Remove(last))
	require.NoError(t, os.Mkdir(last, 0o700))
	m.refused(1, "extract", "extract b.sparsebundle -d half")
	assert.DirExists(t, m.path("half/a"))
	assert.NoFileExists(t, m.path("half/a/file"))
}

// TestWhatIsMissing: the words of Apple's tools do not name the path that is missing.
func TestWhatIsMissing(t *testing.T) {
	m := newMachine(t)
	m.do("create -size 8m -fs ExFAT a")
	m.write("text", "")
	for line, want := range map[string]string{
		"cat a.dmg nothing":                       "hdiutil: cat: opening \"nothing\": ",
		"convert a.dmg -format UDZO -o no/folder": "hdiutil: convert: lstat DIR/no: ",
		"create -size 8m no/folder":               "hdiutil: create: lstat DIR/no: ",
		"create -srcfolder no b":                  "hdiutil: create: opening folder \"DIR/no\": ",
		"attach a.dmg -mountpoint no/no":          "hdiutil: attach: lstat DIR/no: ",
		"attach no.dmg":                           "hdiutil: attach: lstat DIR/no.dmg: ",
		"imageinfo no/no.dmg":                     "hdiutil: imageinfo: lstat DIR/no: ",
		"convert no -format UDZO -o b":            "hdiutil: convert: lstat DIR/no: ",
	} {
		m.refused(1, " failed - No such file or directory\n"+want, line)
	}
	m.refused(1, " failed - No such file or directory\n", "detach no")
	assert.Equal(t, 1, strings.Count(m.err, "\n"), "no path is looked for: %s", m.err)
	m.refused(1, "hdiutil: imageinfo failed - Not a directory\n", "imageinfo text/no")
}

type full struct{}

func (full) Write([]byte) (int, error) { return 0, errors.New("no room") }

// TestOutputThatFails: nothing that could not be written is taken for written.
func TestOutputThatFails(t *testing.T) {
	m := newMachine(t)
	m.do("create -size 8m -fs ExFAT a")
	m.write("src/x", "text")
	m.do("create -srcfolder src -format UDRW b")
	for _, line := range []string{"info", "info -plist", "pmap a.dmg", "imageinfo a.dmg", "checksum -type MD5 a.dmg", "ls b.dmg", "ls -l b.dmg x", "cat b.dmg x", "resize -limits a.dmg", "isencrypted a.dmg",
		"help", "help create", "create -help", "man", "attach a.dmg", "compact a.dmg", "diskutil image info a.dmg"} {
		var errs bytes.Buffer
		assert.Equal(t, 1, Main(t.Context(), strings.Fields(line), Env{Stdout: full{}, Stderr: &errs, Attacher: m.at.attacher(), Dir: m.dir}.withDefaults()), line)
		assert.NotEmpty(t, errs.String(), line)
	}
}

type unread struct{}

func (unread) Write([]byte) (int, error) { return 0, syscall.EPIPE }

// TestNobodyReads: a reader that has gone is no news to anybody, a failure of the work still is.
func TestNobodyReads(t *testing.T) {
	m := newMachine(t)
	m.do("create -size 8m -fs ExFAT a")
	for line, status := range map[string]int{"info": statusPipe, "imageinfo a.dmg": statusPipe, "convert a.dmg -format UDZO -o b -puppetstrings": statusPipe,
		"convert a.dmg -format UDZO -o a -puppetstrings": 1} {
		var errs bytes.Buffer
		assert.Equal(t, status, Main(t.Context(), strings.Fields(line), Env{Stdout: unread{}, Stderr: &errs, Attacher: m.at.attacher(), Dir: m.dir}.withDefaults()), line)
		assert.Equal(t, status == 1, errs.Len() > 0, "%s: %s", line, errs.String())
	}
	m.do("verify b.dmg")
}

// TestNamesCannotDriveTheTerminal: names come from images.
func TestNamesCannotDriveTheTerminal(t *testing.T) {
	for in, want := range map[string]string{"plain ünï 名": "plain ünï 名", "a\x1b[31m": `"a\x1b[31m"`, "a\nb": `"a\nb"`, "a\ab\b": `"a\ab\b"`, "a\u202eb": `"a\u202eb"`, "\xff": `"\xff"`, `a\x"b`: `a\x"b`} {
		assert.Equal(t, want, printable(in))
	}
	m := newMachine(t)
	m.do("create -size 8m -fs ExFAT a")
	image, err := os.ReadFile(m.path("a.dmg"))
	require.NoError(t, err)
	name := []byte("d\x00i\x00s\x00k\x00 \x00i\x00m\x00a\x00g\x00e\x00")
	require.Equal(t, 2, bytes.Count(image, name), "the two tables")
	image = bytes.ReplaceAll(image, name, []byte("d\x00\x1b\x00[\x003\x001\x00m\x00\n\x00a\x00g\x00e\x00"))
	header := image[512 : 512+92]
	binary.LittleEndian.PutUint32(header[88:], crc32.ChecksumIEEE(image[2*512:34*512])) // UEFI 5.3: of the entries, then of the header
	binary.LittleEndian.PutUint32(header[16:], 0)
	binary.LittleEndian.PutUint32(header[16:], crc32.ChecksumIEEE(header))
	m.write("b.dmg", string(image))
	for _, line := range []string{"pmap b.dmg", "pmap -complete b.dmg", "imageinfo b.dmg", "diskutil image info --extra b.dmg"} {
		assert.NotContains(t, m.do(line), "\x1b", line)
		assert.Contains(t, m.out, `"d\x1b[31m\nage"`, line)
	}
}

// TestOtherPartitionMaps: what a boot record or an Apple partition map divides is told, and read where it is ExFAT.
func TestOtherPartitionMaps(t *testing.T) {
	m := newMachine(t)
	m.write("src/one", "1")
	m.do("create -srcfolder src -fs ExFAT -layout NONE -format UDRW bare")
	volume, err := os.ReadFile(m.path("bare.dmg"))
	require.NoError(t, err)
	sectors := uint32(len(volume) / 512)

	mbr := make([]byte, 64*512)
	mbr[450] = 7
	binary.LittleEndian.PutUint32(mbr[454:], 64)
	binary.LittleEndian.PutUint32(mbr[458:], sectors)
	mbr[510], mbr[511] = 0x55, 0xAA
	m.write("mbr.dmg", string(mbr)+string(volume))

	apm := make([]byte, 64*512)
	copy(apm, "ER\x02\x00")
	for i, part := range []struct {
		name, hint   string
		first, count uint32
	}{{"Apple", "Apple_partition_map", 1, 63}, {"d\x1bisk", "Windows_NTFS", 64, sectors}} {
		entry := apm[512*(i+1):]
		copy(entry, "PM\x00\x00\x00\x00\x00\x02")
		binary.BigEndian.PutUint32(entry[8:], part.first)
		binary.BigEndian.PutUint32(entry[12:], part.count)
		copy(entry[16:], part.name)
		copy(entry[48:], part.hint)
	}
	m.write("apm.dmg", string(apm)+string(volume))

	for image, scheme := range map[string]string{"mbr.dmg": "fdisk", "apm.dmg": "Apple"} {
		assert.Contains(t, m.do("imageinfo "+image), "\tpartition-scheme: "+scheme+"\n")
		assert.Contains(t, m.out, "\tPartitioned: true\n")
		assert.Contains(t, m.out, "\t\t\t\tExFAT: src\n\t\t\tpartition-hint: Windows_NTFS\n")
		assert.Equal(t, 5, strings.Count(m.do("pmap -simple "+image), "\n"), m.out)
		assert.NotContains(t, m.out, "\x1b")
		assert.Equal(t, "one\n", m.do("ls "+image))
		assert.Equal(t, "1", m.do("cat "+image+" one"))
	}
	assert.Contains(t, m.do("attach -nomount apm.dmg"), "\tApple_partition_scheme")
	assert.Contains(t, m.do("attach -nomount -plist mbr.dmg"), "<key>unmapped-content-hint</key>\n\t\t\t\t<string>FDisk_partition_scheme</string>")
	m.write("blank.dmg", string(make([]byte, 1<<20)))
	m.refused(1, "no ExFAT volume on the image", "ls blank.dmg")
}

// TestListsTheExFATVolumeOfSeveral: a partition with another file system after it does not hide it.
func TestListsTheExFATVolumeOfSeveral(t *testing.T) {
	m := newMachine(t)
	m.write("src/one", "1")
	m.do("create -srcfolder src -fs ExFAT -format UDRW -size 8m a")
	m.do("resize -imageonly -size 12m a.dmg")
	m.edit("a.dmg", func(img container.Image) error {
		table, _, err := gpt.Read(img)
		require.NoError(t, err)
		p := gpt.Partition{Index: 1, Type: gpt.LinuxData, ID: gpt.GUID{9}, First: table.Partitions[0].Last + 1}
		p.Last = p.First + 2047
		table.Partitions = append(table.Partitions, p)
		require.NoError(t, gpt.Write(img, table))
		_, err = img.WriteAt([]byte("\x53\xef"), p.Offset()+1080) // ext4
		return err
	})
	assert.Contains(t, m.do("pmap a.dmg"), "Linux Filesystem")
	assert.Equal(t, "one\n", m.do("ls a.dmg"))
	assert.Equal(t, "1", m.do("cat a.dmg one"))
}

// TestReplacesImagesAlone: with -ov too, what is no image stays, and that is told before anything is made.
func TestReplacesImagesAlone(t *testing.T) {
	m := newMachine(t)
	m.do("create -size 8m -fs ExFAT a")
	m.write("folder.dmg/thesis", "mine")
	require.NoError(t, os.Symlink("a.dmg", m.path("link.dmg")))
	for target, why := range map[string]string{"folder.dmg": "it contains \"thesis\"", "link.dmg": "not a regular file"} {
		for _, line := range []string{"convert -puppetstrings a.dmg -format UDZO -ov -o ", "create -size 8m -ov "} {
			m.refused(1, " failed - File exists, and is not an image that could be replaced: \"DIR/"+target+"\": "+why, line+target)
			assert.NotContains(t, m.out, "PERCENT:100", "nothing was made")
		}
	}
	assert.FileExists(t, m.path("folder.dmg/thesis"))
	assert.Empty(t, m.leftovers())
	m.do("create -size 8m -fs ExFAT -type SPARSEBUNDLE b")
	m.do("convert a.dmg -format UDSB -ov -o b")
	m.refused(1, "File exists\n", "convert a.dmg -format UDSB -o b")
}

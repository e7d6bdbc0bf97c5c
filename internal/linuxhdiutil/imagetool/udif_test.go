package imagetool

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// with executes a command with something on stdin.
func (m *machine) with(stdin string, args ...string) int {
	m.t.Helper()
	var out, errs bytes.Buffer
	status := Main(m.t.Context(), args, Env{Stdin: strings.NewReader(stdin), Stdout: &out, Stderr: &errs, Attacher: m.at.attacher(), UID: m.uid, Version: "1.2", Dir: m.dir, Iterations: 1000}.withDefaults())
	m.out, m.err = out.String(), errs.String()
	return status
}

func fileSum(t *testing.T, path string) string {
	b, err := os.ReadFile(path)
	require.NoError(t, err)
	sum := sha256.Sum256(b)
	return hex.EncodeToString(sum[:])
}

// TestApplesImagesConvert: every file made by Apple's tools gives the device of the README, encrypted ones with their
// passphrase alone.
func TestApplesImagesConvert(t *testing.T) {
	readme, err := os.ReadFile(filepath.Join(images, "README.md"))
	if err != nil {
		t.Skipf("no images made by Apple's tools: %v", err)
	}
	lines := regexp.MustCompile("(?m)^\\| (\\S+\\.dmg) \\| ([^|]*) \\| (\\S+) \\| (\\d+) \\| `([0-9a-f]{64})`").FindAllStringSubmatch(string(readme), -1)
	require.GreaterOrEqual(t, len(lines), 8)
	for _, l := range lines {
		name, format, pass, size, sum := l[1], l[2], l[3], l[4], l[5]
		t.Run(name, func(t *testing.T) {
			m := newMachine(t)
			data, err := os.ReadFile(filepath.Join(images, name))
			require.NoError(t, err)
			m.write("a.dmg", string(data))
			key := pass + "\x00not a part of it"
			require.Zero(t, m.with(key, "convert", "a.dmg", "-format", "UDTO", "-o", "raw", "-stdinpass"), m.err)
			require.Equal(t, sum, fileSum(t, m.path("raw.cdr")))
			if strings.Contains(format, "625000") && os.Getenv("DMGBENCH_LONG") == "" {
				return // each look at it costs a third of a second, and the other encrypted image gets all of them
			}
			require.Zero(t, m.with(key, "imageinfo", "a.dmg", "-stdinpass"), m.err)
			assert.Contains(t, m.out, "Total Bytes: "+size+"\n")
			if pass != "-" {
				assert.Contains(t, m.out, "Encrypted: true\n")
				assert.Contains(t, m.out, "Encryption: AES-")
				for _, stdin := range []string{"", "wrong"} {
					assert.Equal(t, statusAuth, m.with(stdin, "convert", "a.dmg", "-format", "UDRW", "-o", "no", "-stdinpass"))
					assert.Contains(t, m.err, "hdiutil: convert failed - Authentication error\n")
				}
				assert.NoFileExists(t, m.path("no.dmg"))
				return
			}
			require.Zero(t, m.with("", "imageinfo", "-format", "a.dmg"), m.err)
			assert.Equal(t, format+"\n", m.out)
			require.Zero(t, m.with("", "imageinfo", "-checksum", "a.dmg"), m.err)
			assert.Regexp(t, `^\$[0-9A-F]{8}\n$`, m.out)
			stored := m.out
			require.Zero(t, m.with("", "checksum", "-type", "UDIF-CRC32", "a.dmg"), m.err)
			assert.Equal(t, "calculated   UDIF-CRC32 "+stored, m.out, "what Apple's tool stored")
			require.Zero(t, m.with("", "verify", "a.dmg"), m.err)
			assert.Equal(t, "hdiutil: verify: checksum of \"a.dmg\" is VALID\n", m.err)
		})
	}
}

// TestReadOnlyFormats: what we write is what went in, to us and to 7-Zip, which recomputes the checksums.
func TestReadOnlyFormats(t *testing.T) {
	m := newMachine(t)
	m.write("src/folder/file", strings.Repeat("some text that compresses; ", 30000))
	m.do("create -srcfolder src -format UDSB -size 4m -volname Packed b")
	require.Zero(t, m.with("", "convert", "b.sparsebundle", "-format", "UDTO", "-o", "raw"), m.err)
	want := fileSum(t, m.path("raw.cdr"))
	tool, missing := exec.LookPath("7zz")
	for _, format := range []string{"UDRO", "UDCO", "UDZO", "UDBZ", "ULFO", "ULMO", "UFBI"} {
		name := "x" + format + ".dmg"
		require.Zero(t, m.with("", "convert", "b.sparsebundle", "-format", format, "-o", name, "-tasks", "2", "-puppetstrings"), m.err)
		assert.Contains(t, m.out, "PERCENT:100.000000\n")
		require.Zero(t, m.with("", "imageinfo", "-format", name), m.err)
		assert.Equal(t, format+"\n", m.out)
		require.Zero(t, m.with("", "imageinfo", name), m.err)
		assert.Regexp(t, `Compressed Ratio: `+map[bool]string{true: `1\n`, false: `0\.\d+`}[format == "UDRO" || format == "UFBI"], m.out)
		require.Zero(t, m.with("", "verify", "-verbose", name), m.err)
		assert.Contains(t, m.err, "is VALID\n")
		require.Zero(t, m.with("", "verify", "-plist", name), m.err)
		assert.Contains(t, m.out, "<key>verified</key>\n\t\t<true/>\n")
		require.Zero(t, m.with("", "imageinfo", "-checksum", name), m.err)
		stored, kind := m.out, map[bool]string{false: "UDIF-CRC32", true: "UDIF-MD5"}[format == "UFBI"]
		for _, of := range []string{name, "b.sparsebundle"} {
			require.Zero(t, m.with("", "checksum", "-type", kind, of), m.err)
			assert.Equal(t, "calculated   "+kind+" "+stored, m.out, "%s, of %s", format, of)
		}
		require.Zero(t, m.with("", "convert", name, "-format", "UDRW", "-o", "back", "-ov"), m.err)
		assert.Equal(t, want, fileSum(t, m.path("back.dmg")), format)
		require.Zero(t, m.with("", "ls", "-R", name), m.err)
		assert.Contains(t, m.out, "folder/file")
		if missing == nil {
			out, err := exec.Command(tool, "t", "-tdmg", m.path(name)).CombinedOutput()
			require.NoError(t, err, "%s: %s", format, out)
		}
	}
	require.Zero(t, m.with("", "convert", "xULFO.dmg", "-format", "UDZO", "-imagekey", "zlib-level=9", "-o", "nine"), m.err)
	require.Zero(t, m.with("", "convert", "nine.dmg", "-format", "UDRW", "-o", "back", "-ov"), m.err)
	assert.Equal(t, want, fileSum(t, m.path("back.dmg")))
	small, err := os.Stat(m.path("nine.dmg"))
	require.NoError(t, err)
	assert.Less(t, small.Size(), int64(400<<10))
	for _, bad := range [][]string{{"ULFO", "zlib-level=3"}, {"UDZO", "zlib-level=10"}, {"UDZO", "sparse-band-size=2048"}, {"UDRW", "zlib-level=3"}} {
		assert.Equal(t, 1, m.with("", "convert", "b.sparsebundle", "-format", bad[0], "-imagekey", bad[1], "-o", "bad"), bad)
	}
	assert.Equal(t, 1, m.with("", "convert", "b.sparsebundle", "-format", "UDZO", "-tasks", "0", "-o", "bad"))
	assert.Equal(t, 1, m.with("", "convert", "b.sparsebundle", "-format", "UDZO", "-o", "nine"), "no -ov")
	assert.NoFileExists(t, m.path("bad.dmg"))
	assert.Equal(t, 1, m.with("", "resize", "-size", "90m", "nine.dmg"))
	assert.Contains(t, m.err, "read-only")

	file, err := os.ReadFile(m.path("xUDRO.dmg"))
	require.NoError(t, err)
	file[len(file)/2] ^= 1
	m.write("damaged.dmg", string(file))
	assert.Equal(t, 1, m.with("", "verify", "-plist", "damaged.dmg"))
	assert.Contains(t, m.err, "checksum of \"damaged.dmg\" is INVALID\n")
	assert.Contains(t, m.out, "<key>verified</key>\n\t\t<false/>\n")
	m.tellsDamage()
	assert.Equal(t, 1, m.with("", "verify", "raw.cdr"))
	assert.Contains(t, m.err, "has no checksum")
	m.attachesWhatIsWhole()
}

// tellsDamage: a volume that cannot be read is not taken for none.
func (m *machine) tellsDamage() {
	m.damageChunk("xUDZO.dmg", "torn.dmg", 1<<20) // where the partition begins
	assert.Equal(m.t, 1, m.with("", "ls", "torn.dmg"))
	assert.Contains(m.t, m.err, "damaged UDIF image")
	m.damageChunk("xUDZO.dmg", "untold.dmg", 512) // the partition table
	assert.Equal(m.t, 1, m.with("", "diskutil", "image", "info", "--extra", "untold.dmg"))
	assert.Contains(m.t, m.err, "damaged UDIF image")
}

// attachesWhatIsWhole: attaching looks at the checksums, unless it is told not to.
func (m *machine) attachesWhatIsWhole() {
	t := m.t
	m.write("mnt/keep", "")
	require.Zero(t, m.with("", "resize", "-limits", "nine.dmg"), m.err)
	assert.Len(t, slices.Compact(strings.Fields(m.out)), 1, "a read-only image has one size: %s", m.out)
	for args, status := range map[string]int{"damaged.dmg": 1, "damaged.dmg -verify": 1, "damaged.dmg -verify -noverify": 1, "damaged.dmg -noverify": 0,
		"damaged.dmg -ignorebadchecksums": 0, "nine.dmg -verify": 0, "raw.cdr -verify": 0} {
		assert.Equal(t, status, m.with("", append([]string{"attach", "-nomount"}, strings.Fields(args)...)...), "%s: %s", args, m.err)
		switch {
		case args == "damaged.dmg -ignorebadchecksums":
			assert.Contains(t, m.err, "WARNING")
		case status == 1 && !strings.HasSuffix(args, "-noverify"):
			assert.Contains(t, m.err, "attach failed - corrupt image")
		}
		if status == 0 {
			require.Len(t, m.at.attached, 1, args)
			require.Zero(t, m.with("", "detach", m.at.attached[0].Device), m.err)
		}
	}
}

// TestReadOnlyImageOfZeros: nothing is stored, and the ratio is that of an image that is not compressed.
func TestReadOnlyImageOfZeros(t *testing.T) {
	m := newMachine(t)
	m.do("create -size 1m -layout NONE zeros")
	m.do("convert zeros.dmg -format UDZO -o packed")
	assert.Contains(t, m.do("imageinfo packed.dmg"), "Compressed Bytes: 0\n")
	assert.Contains(t, m.out, "Compressed Ratio: 1\n")
}

// TestCreateReadOnly makes read-only images of a folder, UDZO if nothing is said.
func TestCreateReadOnly(t *testing.T) {
	m := newMachine(t)
	m.write("src/file", "what is in it")
	for line, format := range map[string]string{
		"create -srcfolder src a": "UDZO",
		"create -srcfolder src -fs ExFAT -fsargs '-c' -format UDBZ -imagekey bzip2-level=1 b": "UDBZ",
		"create -plist -srcfolder src -format UDRO -megabytes 20 c":                           "UDRO",
	} {
		m.do(line)
		name := line[len(line)-1:] + ".dmg"
		m.do("imageinfo -format " + name)
		assert.Equal(t, format+"\n", m.out)
		m.do("verify " + name)
		m.do("cat " + name + " file")
		assert.Equal(t, "what is in it", m.out)
	}
	assert.Empty(t, m.leftovers())
	m.write("folder/with/CON:", "no ExFAT name")
	m.refused(1, "forbids this name", "create -srcfolder folder bad")
	assert.Empty(t, m.leftovers(), "the raw image is deleted too")
}

// TestDiskutilMakesReadOnlyImages: the formats of `diskutil image create from` that Apple's manual names.
func TestDiskutilMakesReadOnlyImages(t *testing.T) {
	m := newMachine(t)
	m.do("create -size 8m -fs ExFAT a")
	want := m.do("checksum -type SHA256 a.dmg")
	for _, format := range []string{"UDRO", "UDZO", "ULFO", "ULMO"} {
		out := m.do("diskutil image create from --format " + format + " a.dmg " + format)
		assert.Equal(t, "DIR/"+format+".dmg created\n", out)
		assert.Equal(t, format+"\n", m.do("imageinfo -format "+format+".dmg"))
		assert.Equal(t, want, m.do("checksum -type SHA256 "+format+".dmg"))
		m.refused(1, "want one of RAW, UDSB, ASIF", "diskutil image create blank --size 8Mi --format "+format+" b.dmg")
	}
	m.refused(1, "format UDBZ is not made by this verb: want one of RAW, UDSB, ASIF, UDRO, UDZO, ULFO, ULMO", "diskutil image create from --format UDBZ a.dmg b")
}

package interoptest_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"dmgbench/internal/interoptest"
)

// judge is a program that reads images.
type judge struct {
	name string
	// read writes the whole device of an image to a file; verify lets the program check the image by itself.
	read   func(t *testing.T, image, out string)
	verify func(t *testing.T, image, raw string)
	kinds  []string
}

func sevenZip(t *testing.T, image, out string) {
	tool := interoptest.Tool(t, "7zz")
	f, err := os.Create(out)
	require.NoError(t, err)
	defer f.Close()
	cmd := exec.CommandContext(t.Context(), tool, "x", "-tdmg", "-so", image) // all parts, in their order
	cmd.Stdout = f
	require.NoError(t, cmd.Run())
}

func fstoolRaw(t *testing.T, image, out string) {
	interoptest.Run(t, interoptest.Tool(t, "fstool"), "convert", image, out)
}

func modi(t *testing.T, image, out string) {
	interoptest.Run(t, interoptest.Python(t, "pymodi"), interoptest.Script(t, "modi.py"), image, out)
}

// readOnlyJudges read UDIF images. QEMU's other codecs are modules that distributions leave out. libmodi as it
// comes from PyPI has no LZMA, and refuses bzip2 blocks of repetitive data, those of fstool too ("invalid origin
// pointer"), which bzip2 itself decodes.
func readOnlyJudges() []judge {
	return []judge{
		{name: "7-Zip", kinds: []string{"UDRO", "UDZO", "UDCO", "UDBZ", "ULFO", "ULMO", "UFBI"}, read: sevenZip,
			verify: func(t *testing.T, image, _ string) {
				assert.Contains(t, interoptest.Run(t, interoptest.Tool(t, "7zz"), "t", "-tdmg", image), "Everything is Ok")
			}},
		{name: "fstool", kinds: []string{"UDRO", "UDZO", "UDCO", "UDBZ", "ULFO", "ULMO", "UFBI"}, read: fstoolRaw,
			verify: func(t *testing.T, image, _ string) {
				interoptest.Run(t, interoptest.Tool(t, "fstool"), "verify", image)
			}},
		{name: "qemu-img", kinds: []string{"UDRO", "UDZO"},
			read: func(t *testing.T, image, out string) {
				interoptest.Run(t, interoptest.Tool(t, "qemu-img"), "convert", "-f", "dmg", "-O", "raw", image, out)
			},
			verify: func(t *testing.T, image, raw string) {
				interoptest.Run(t, interoptest.Tool(t, "qemu-img"), "compare", "-f", "dmg", "-F", "raw", image, raw)
			}},
		{name: "libmodi", kinds: []string{"UDRO", "UDZO", "UDCO", "ULFO"}, read: modi},
	}
}

// TestReadOnlyKinds lets others read and verify what convert makes.
func TestReadOnlyKinds(t *testing.T) {
	tools(t)
	for _, size := range sizes() {
		dir := t.TempDir()
		raw := filepath.Join(dir, "raw.cdr")
		want := rawDevice(t, raw, size)
		for _, kind := range []string{"UDRO", "UDZO", "UDCO", "UDBZ", "ULFO", "ULMO", "UFBI"} {
			t.Run(kind+" of "+strconv.FormatInt(size, 10), func(t *testing.T) {
				image := filepath.Join(dir, kind+".dmg")
				hdiutil(t, "convert", raw, "-format", kind, "-o", image)
				hdiutil(t, "verify", image)
				for _, j := range readOnlyJudges() {
					if slices.Contains(j.kinds, kind) {
						t.Run(j.name, func(t *testing.T) { j.judge(t, image, raw, want) })
					}
				}
			})
		}
	}
}

// judge compares the device as the program gives it with what it has to be.
func (j judge) judge(t *testing.T, image, raw, want string) {
	t.Helper()
	out := filepath.Join(t.TempDir(), "out.img")
	j.read(t, image, out)
	assert.Equal(t, want, sha(t, out), "the device as %s gives it", j.name)
	if j.verify != nil {
		j.verify(t, image, raw)
	}
}

package imagetool

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"dmgbench/internal/image/container/files"
	"dmgbench/internal/system/hostio"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// images are real ones, made by Apple's tools.
const images = "../../../../shared/images"

// TestApplesBundle: a bundle of Apple's reads as its README says, in every format that is made of it.
func TestApplesBundle(t *testing.T) {
	readme, err := os.ReadFile(filepath.Join(images, "README.md"))
	if err != nil {
		t.Skipf("no images made by Apple's tools: %v", err)
	}
	m := regexp.MustCompile(`Test1\.sparsebundle \| [^|]*\| - \| (\d+) \| .([0-9a-f]{64})`).FindStringSubmatch(string(readme))
	require.NotNil(t, m)
	at := newMachine(t)
	from, err := hostio.OpenDir(filepath.Join(images, "sparsebundlefs-lib"))
	require.NoError(t, err)
	defer from.Close()
	to, err := hostio.OpenDir(at.dir)
	require.NoError(t, err)
	defer to.Close()
	require.NoError(t, files.Copy(context.Background(), from, "Test1.sparsebundle", to, "apple.sparsebundle"))

	text := at.do("imageinfo apple.sparsebundle")
	assert.Contains(t, text, "Format: UDSB\n")
	assert.Contains(t, text, "Total Bytes: "+m[1]+"\n")
	assert.Contains(t, text, "band-size: 1048576\n")
	want := "calculated   SHA256 $" + strings.ToUpper(m[2]) + "\n"
	assert.Equal(t, want, at.do("checksum -type SHA256 apple.sparsebundle"))
	for _, format := range []string{"UDTO", "UDRW", "UDSB"} {
		out := at.do("convert apple.sparsebundle -format " + format + " -o copy-" + format)
		name := strings.TrimSpace(strings.TrimPrefix(out, "created: DIR/"))
		assert.Equal(t, want, at.do("checksum -type SHA256 "+name))
	}
	at.do("pmap apple.sparsebundle")
	assert.Equal(t, "encrypted: NO\n", at.do("isencrypted apple.sparsebundle"))
	encrypted, err := os.ReadFile(filepath.Join(images, "dmgwiz", "input_aes256.dmg"))
	require.NoError(t, err)
	at.write("encrypted.dmg", string(encrypted))
	assert.Contains(t, at.do("isencrypted encrypted.dmg"), "encrypted: YES\n")
}

// TestOthersReadOurs: independent programs read what we make, where the machine has them.
func TestOthersReadOurs(t *testing.T) {
	m := newMachine(t)
	m.write("src/folder/file", "text")
	m.do("create -srcfolder src -format UDRW -volname Others a")
	m.do("create -srcfolder src -format UDSB b")
	m.do("convert b.sparsebundle -format UDTO -o c")
	m.do("resize -size 30m a.dmg")
	m.do("create -size 16m -layout NONE -fs ExFAT bare")
	ran := 0
	if tool, err := exec.LookPath("fsck.exfat"); err == nil {
		out, err := exec.Command(tool, "-n", m.path("bare.dmg")).CombinedOutput()
		require.NoError(t, err, "%s", out)
		ran++
	}
	if tool, err := exec.LookPath("7zz"); err == nil {
		for _, name := range []string{"a.dmg", "c.cdr"} {
			out, err := exec.Command(tool, "l", "-tGPT", m.path(name)).CombinedOutput()
			require.NoError(t, err, "%s", out)
			assert.Contains(t, string(out), "disk image", name)
		}
		ran++
	}
	if ran == 0 {
		t.Skip("neither fsck.exfat nor 7zz is there")
	}
}

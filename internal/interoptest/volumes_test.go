package interoptest_test

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"dmgbench/internal/interoptest"
)

// unpack lets 7-Zip take one thing out of an image of some type.
func unpack(t *testing.T, kind, image, out string, name ...string) {
	t.Helper()
	f, err := os.Create(out)
	require.NoError(t, err)
	defer f.Close()
	var said bytes.Buffer
	cmd := exec.CommandContext(t.Context(), interoptest.Tool(t, "7zz"), append([]string{"x", "-t" + kind, "-so", image}, name...)...)
	cmd.Stdout, cmd.Stderr = f, &said
	require.NoError(t, cmd.Run(), "%s", said.String())
}

// TestVolumes lets others read folders that we copied into images: fstool or 7-Zip the image, 7-Zip its partition
// table, fsck.exfat the volume, fstool a file (in the root: it takes folders in one piece, which have no chain in the
// allocation table, for damaged).
func TestVolumes(t *testing.T) {
	tools(t)
	src := t.TempDir()
	content := make([]byte, 1_300_000)
	fill(content, 5)
	require.NoError(t, os.Mkdir(filepath.Join(src, "a folder"), 0o700))
	for _, name := range []string{"a file", "a folder/another"} {
		require.NoError(t, os.WriteFile(filepath.Join(src, name), content, 0o600))
	}
	for kind, read := range map[string]func(t *testing.T, image, out string){
		"UDZO": sevenZip, "ULFO": fstoolRaw, "ULMO": sevenZip, "UDRO": fstoolRaw, "UDSB": fstoolRaw, "UDSP": modi,
	} {
		t.Run(kind, func(t *testing.T) {
			dir := t.TempDir()
			image, raw, part, file := filepath.Join(dir, "i"+extension(kind)), filepath.Join(dir, "raw"), filepath.Join(dir, "part"), filepath.Join(dir, "file")
			hdiutil(t, "create", "-srcfolder", src, "-fs", "ExFAT", "-volname", "Interop", "-format", kind, image)
			read(t, image, raw)
			unpack(t, "gpt", raw, part)
			interoptest.Run(t, interoptest.Tool(t, "fsck.exfat"), "-n", part)
			out, err := exec.CommandContext(t.Context(), interoptest.Tool(t, "fstool"), "cat", raw+":1", "/a file").Output()
			require.NoError(t, err)
			require.NoError(t, os.WriteFile(file, out, 0o600))
			assert.Equal(t, shaOf(content), sha(t, file))
		})
	}
}

func extension(kind string) string {
	switch kind {
	case "UDSB":
		return ".sparsebundle"
	case "UDSP":
		return ".sparseimage"
	}
	return ".dmg"
}

// TestMountedVolumes lets Linux write an ext4 volume into images that we serve; then others read the images, e2fsck
// checks the volume, and 7-Zip takes the file out.
func TestMountedVolumes(t *testing.T) {
	mounts(t)
	interoptest.Tool(t, "mkfs.ext4")
	tools(t)
	content := make([]byte, 4_500_000)
	fill(content, 8)
	for kind, read := range map[string]func(t *testing.T, image, out string){"UDSB": fstoolRaw, "UDSP": modi} {
		t.Run(kind, func(t *testing.T) {
			dir := t.TempDir()
			image, raw, part, file := filepath.Join(dir, "i"+extension(kind)), filepath.Join(dir, "raw"), filepath.Join(dir, "part"), filepath.Join(dir, "file")
			at := filepath.Join(dir, "mounted")
			require.NoError(t, os.Mkdir(at, 0o700))
			hdiutil(t, "create", "-size", "64m", "-fs", "ext4", image)
			hdiutil(t, "attach", "-mountpoint", at, image)
			for _, name := range []string{"deleted", "kept"} {
				require.NoError(t, os.WriteFile(filepath.Join(at, name), content, 0o600))
			}
			require.NoError(t, os.Remove(filepath.Join(at, "deleted")))
			hdiutil(t, "detach", at)
			hdiutil(t, "compact", image)
			hdiutil(t, "resize", "-size", "80m", image)
			read(t, image, raw)
			unpack(t, "gpt", raw, part)
			interoptest.Run(t, interoptest.Tool(t, "e2fsck"), "-fn", part)
			unpack(t, "ext", part, file, "kept")
			assert.Equal(t, shaOf(content), sha(t, file))
		})
	}
}

// TestApplesBundleAttaches attaches a sparse bundle made by a Mac, and reads its device from Linux.
func TestApplesBundleAttaches(t *testing.T) {
	const images = "../../../shared/images"
	readme, err := os.ReadFile(filepath.Join(images, "README.md"))
	if err != nil {
		t.Skipf("no images made by Apple's tools: %v", err)
	}
	mounts(t)
	tools(t)
	const name = "sparsebundlefs-lib/Test1.sparsebundle"
	_, line, found := strings.Cut(string(readme), "| "+name+" ")
	require.True(t, found)
	line, _, _ = strings.Cut(line, "\n")
	copied := filepath.Join(t.TempDir(), "Test1.sparsebundle")
	require.NoError(t, os.CopyFS(copied, os.DirFS(filepath.Join(images, name))))
	device, _, _ := strings.Cut(hdiutil(t, "attach", "-readonly", "-nomount", copied), "\t")
	device = strings.TrimSpace(device)
	got := sha(t, device)
	hdiutil(t, "detach", device)
	size, sum, _ := strings.Cut(got, " bytes ")
	assert.Contains(t, line, "| "+size+" |")
	assert.Contains(t, line, "`"+sum+"`")
}

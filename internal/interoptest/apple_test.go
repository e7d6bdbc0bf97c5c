package interoptest_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"dmgbench/internal/interoptest"
)

// TestProgramsForApples runs programs that were written for Apple's hdiutil, by their own code, against ours.
func TestProgramsForApples(t *testing.T) {
	mounts(t)
	interoptest.Tool(t, "mkfs.ext4")
	for _, module := range []string{"dmgbuild", "dmglib", "mount_image_hdiutil"} {
		t.Run(module, func(t *testing.T) {
			python := interoptest.Python(t, module)
			tools(t)
			dir := t.TempDir()
			args := []string{interoptest.Script(t, "apple.py"), module, dir}
			kinds := map[string][]string{ // the first suffices where programs of others may be missing
				"dmgbuild": {"UDZO", "UDBZ", "ULFO", "ULMO", "UDRO", "UDCO"},
				"dmglib":   {"SPARSEBUNDLE", "SPARSE", "UDIF"}, // dmgbuild and mount_image_hdiutil attach files
			}[module]
			if !interoptest.Required() {
				kinds = kinds[:min(len(kinds), 1)]
			}
			interoptest.Run(t, python, append(args, kinds...)...)
			if module == "dmgbuild" {
				checkBuilt(t, dir, len(kinds))
			}
		})
	}
}

// checkBuilt lets 7-Zip and e2fsck look at what dmgbuild made.
func checkBuilt(t *testing.T, dir string, images int) {
	want, err := os.ReadFile(filepath.Join(dir, "Application.app", "program"))
	require.NoError(t, err)
	list, err := filepath.Glob(filepath.Join(dir, "*.dmg"))
	require.NoError(t, err)
	assert.Len(t, list, images)
	for _, image := range list {
		raw, part, file := filepath.Join(dir, "raw"), filepath.Join(dir, "part"), filepath.Join(dir, "file")
		assert.Contains(t, interoptest.Run(t, interoptest.Tool(t, "7zz"), "t", "-tdmg", image), "Everything is Ok")
		sevenZip(t, image, raw)
		unpack(t, "gpt", raw, part)
		interoptest.Run(t, interoptest.Tool(t, "e2fsck"), "-fn", part)
		unpack(t, "ext", part, file, "Application.app/program")
		assert.Equal(t, shaOf(want), sha(t, file), image)
	}
}

package cli

import (
	"archive/zip"
	"path/filepath"
	"runtime"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"dmgbench/scripts"
)

// doctor --capture runs the script on the folder with the tools of this system: on Linux those of this program.
func TestCaptureRunsTheScript(t *testing.T) {
	script := scripts.Capture
	t.Cleanup(func() { scripts.Capture = script })
	t.Setenv("DMGBENCH", "")
	dir := filepath.Join(t.TempDir(), "answers")
	scripts.Capture = `mkdir "$1" && echo answers >"$1/001.out" && echo "$1 by ${DMGBENCH:-Apple}"`
	code, out, stderr := call(t, nil, "doctor", "--capture", dir)
	require.Zero(t, code, stderr)
	by := "Apple"
	if runtime.GOOS == "linux" {
		self, err := executable()
		require.NoError(t, err)
		by = self
	}
	assert.Equal(t, dir+" by "+by+"\nall answers in one file: "+dir+".zip\n", out)
	packed, err := zip.OpenReader(dir + ".zip")
	require.NoError(t, err)
	defer packed.Close()
	require.Len(t, packed.File, 1)
	assert.Equal(t, "001.out", packed.File[0].Name)

	scripts.Capture = `echo "no tool" >&2; exit 7`
	code, _, stderr = call(t, nil, "doctor", "--capture", dir)
	assert.Equal(t, exitError, code)
	assert.Contains(t, stderr, "no tool\n")
	assert.Contains(t, stderr, "capturing into \""+dir+"\": exit status 7")
}

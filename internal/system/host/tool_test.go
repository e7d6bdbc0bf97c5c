package host

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// Only programs of the list are run, and only to print their version.
func TestVersionsOfToolsThatServePlaces(t *testing.T) {
	folder := t.TempDir()
	t.Setenv("PATH", folder+":/usr/bin:/bin")
	for name, script := range map[string]string{
		"gocryptfs": "#!/bin/sh\n[ \"$*\" = -version ] && echo \"gocryptfs v9\x1b[1m; x\" && echo more",
		"encfs":     "#!/bin/sh\necho encfs version 1.9 >&2",
		"cryfs":     "#!/bin/sh\nexit 3",
		"rclone":    "#!/bin/sh\n",
		"other":     "#!/bin/sh\necho other; touch " + filepath.Join(folder, "run"),
	} {
		require.NoError(t, os.WriteFile(filepath.Join(folder, name), []byte(script), 0o700))
	}
	for tool, want := range map[string]string{"gocryptfs": "gocryptfs v9 [1m; x", "encfs": "encfs version 1.9",
		"cryfs": "cryfs, version unknown", "rclone": "rclone, version unknown",
		"securefs": "securefs, version unknown", "other": "", "": ""} {
		assert.Equal(t, want, toolVersion(t.Context(), tool), tool)
	}
	assert.NoFileExists(t, filepath.Join(folder, "run"))
	h := Gather(t.Context(), []Place{{Name: "vault", Path: folder, Tool: "encfs", Backing: true}, {Path: folder}}, false)
	assert.Equal(t, "encfs version 1.9", h.Disks[0].Tool)
	assert.True(t, h.Disks[0].Backing)
	assert.False(t, h.Disks[1].Backing)
}

// A name that a user gives is one line of at most 64 characters.
func TestCleanName(t *testing.T) {
	assert.Equal(t, "studio 1", CleanName(" studio\n\x1b1 "))
	assert.Equal(t, strings.Repeat("ü", 64), CleanName(strings.Repeat("ü", 70)))
	assert.Equal(t, strings.Repeat("x", 63), CleanName(strings.Repeat("x", 63)+" y"), "no blank at its end")
	assert.Empty(t, CleanName(""))
}

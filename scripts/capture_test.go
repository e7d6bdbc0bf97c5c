//go:build linux

package scripts_test

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"dmgbench/internal/linuxhdiutil/imagetool"
	"dmgbench/scripts"
)

// TestMain makes the test's program `dmgbench hdiutil`, too.
func TestMain(m *testing.M) {
	if len(os.Args) > 1 {
		switch os.Args[1] {
		case "hdiutil":
			os.Exit(imagetool.Main(context.Background(), os.Args[2:], imagetool.System()))
		case imagetool.HelperVerb:
			os.Exit(imagetool.Main(context.Background(), os.Args[1:], imagetool.System()))
		}
	}
	os.Exit(m.Run())
}

// The script asks hdiutil for Linux everything, detaches and removes its images, and keeps no path or name of this machine.
// DMGBENCH_CAPTURE names a folder for a new testdata/apple/captures/dmgbench-linux, which has all answers; so does DMGBENCH_LONG=1.
// Otherwise there is one encrypted image, and a conversion to one format of each kind.
func TestCaptureOfHdiutilForLinux(t *testing.T) {
	if os.Getuid() != 0 {
		t.Skip("needs root: it attaches images")
	}
	t.Parallel()
	self, err := os.Executable()
	require.NoError(t, err)
	dir, temp := t.TempDir(), t.TempDir()
	if keep := os.Getenv("DMGBENCH_CAPTURE"); keep != "" {
		dir = keep
	}
	script := scripts.Capture
	if os.Getenv("DMGBENCH_CAPTURE")+os.Getenv("DMGBENCH_LONG") == "" {
		for _, part := range []string{"image udrw-encrypted UDIF dmg -encryption AES-256 -stdinpass\n", "image udsp SPARSE sparseimage\n",
			"UDRW.dmg ", "UDCO.dmg ", "UDBZ.dmg ", "ULFO.dmg ", "ULMO.dmg ", "UFBI.dmg ", "UDSP.sparseimage "} {
			require.Contains(t, script, part)
			script = strings.Replace(script, part, "", 1)
		}
	}
	capture := func() ([]byte, error) {
		cmd := exec.CommandContext(t.Context(), "/bin/sh", "-c", script, "capture.sh", dir)
		cmd.Env = append(os.Environ(), "DMGBENCH="+self, "TMPDIR="+temp)
		return cmd.CombinedOutput()
	}
	out, err := capture()
	require.NoError(t, err, "%s", out)
	left, err := os.ReadDir(temp)
	require.NoError(t, err)
	assert.Empty(t, left)
	list, err := os.ReadFile(filepath.Join(dir, "answers.tsv"))
	require.NoError(t, err)
	status := map[string]string{}
	for line := range strings.Lines(string(list)) {
		f := strings.Split(strings.TrimSuffix(line, "\n"), "\t")
		require.Len(t, f, 5)
		require.NotContains(t, status, f[3], "a name twice")
		status[f[3]] = f[1]
	}
	for _, name := range []string{"info/before", "udrw/create", "udsb/attach", "udsb/detach", "udsb/compact", "to-UDSB/attach", "info/after"} {
		assert.Equal(t, "0", status[name], name)
	}
	for _, name := range []string{"missing/attach", "junk/attach", "exists/create", "option/attach", "udsb/compact-attached", "udrw/detach-busy"} {
		assert.NotContains(t, []string{"", "0"}, status[name], name)
	}
	files, err := filepath.Glob(filepath.Join(dir, "*"))
	require.NoError(t, err)
	for _, file := range files {
		text, err := os.ReadFile(file)
		require.NoError(t, err)
		assert.NotContains(t, string(text), filepath.Dir(self), file)
		assert.NotContains(t, string(text), temp, file)
	}
	out, err = capture()
	require.Error(t, err)
	assert.Contains(t, string(out), "is not empty")
}

// A tool whose lists have the disk that macOS makes of an APFS container before the image's own.
const listingTool = `#!/bin/sh
echo "$2 $3 $4" >>"$0.log"
case $2 in
attach) cat <<'EOF'
<?xml version="1.0" encoding="UTF-8"?>
<plist version="1.0"><dict><key>system-entities</key><array>
<dict><key>content-hint</key><string>EF57347C-0000-11AA-AA11-00306543ECAC</string><key>dev-entry</key><string>/dev/disk10</string></dict>
<dict><key>dev-entry</key><string>/dev/disk10s1</string><key>mount-point</key><string>/private/tmp/disk1</string></dict>
<dict><key>dev-entry</key><string>/dev/disk9s1</string></dict><dict><key>dev-entry</key><string>disk9</string></dict>
</array></dict></plist>
EOF
	;;
info)
	printf 'image-path      : /elsewhere/a.dmg\n/dev/disk3\n'
	printf 'image-path      : %s/a.asif\n/dev/disk10\t\n/dev/disk10s1\t\n/dev/disk9\t\n' "$(cat "$0.work")"
	;;
esac
`

// The device that is detached is the image's, whatever order the tools list: the image would stay attached when that of
// its container is detached.
func TestCaptureDetachesTheImage(t *testing.T) {
	functions, _, ok := strings.Cut(scripts.Capture, "\nsystem=$(")
	require.True(t, ok)
	shells := []string{"sh", "bash --posix"}
	if old := os.Getenv("DMGBENCH_BASH"); old != "" { // one of version 3.2, as macOS has it
		shells = append(shells, old, old+" --posix")
	}
	for _, shell := range shells {
		words := strings.Fields(shell)
		if _, err := exec.LookPath(words[0]); err != nil {
			continue
		}
		dir := t.TempDir()
		program := filepath.Join(dir, "tool")
		require.NoError(t, os.WriteFile(program, []byte(listingTool), 0o700))
		script := functions + "\necho \"$work\" >\"$DMGBENCH.work\"\nattached a hdiutil attach -plist a.asif\n"
		words = append(words, "-c", script, "capture.sh", filepath.Join(dir, "answers"))
		cmd := exec.CommandContext(t.Context(), words[0], words[1:]...)
		cmd.Env = append(os.Environ(), "DMGBENCH="+program, "TMPDIR="+dir)
		out, err := cmd.CombinedOutput()
		require.NoError(t, err, "%s: %s", shell, out)
		log, err := os.ReadFile(program + ".log")
		require.NoError(t, err)
		assert.Contains(t, string(log), "attach -plist a.asif\ndetach /dev/disk9 \ninfo", shell)
		assert.Contains(t, string(log), "detach /dev/disk9 -force\ndetach /dev/disk10 -force", shell)
		assert.NotContains(t, string(log), "disk3", "the images of others stay")
	}
}

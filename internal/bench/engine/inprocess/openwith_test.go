package inprocess_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"dmgbench/internal/bench/engine"
	"dmgbench/internal/bench/engine/inprocess"
	"dmgbench/internal/bench/workload"
)

// shell runs a line as a user would paste it; as root sudo is left out.
func shell(t *testing.T, dir, line string) string {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "sh", "-c", strings.ReplaceAll(line, "sudo ", ""))
	cmd.Dir = dir
	out, err := cmd.CombinedOutput()
	require.NoError(t, err, "%s: %s", line, out)
	return string(out)
}

func lineWith(t *testing.T, lines []string, word string) string {
	t.Helper()
	for _, l := range lines {
		if strings.Contains(l, word) {
			return l
		}
	}
	require.Failf(t, "no such line", "%q in %q", word, lines)
	return ""
}

// TestLinesThatOpenAnImage pastes the lines that a kept image comes with into a shell.
func TestLinesThatOpenAnImage(t *testing.T) {
	for _, format := range []string{"UDRW", "UDSB", "UDSP", "ASIF"} {
		t.Run(format, func(t *testing.T) {
			place := place(t)
			c, err := inprocess.New(nil).Create(t.Context(), place, "it's a \"$PATH\" image", engine.Spec{Format: format, Size: 24 << 20, BandSize: 1 << 20})
			require.NoError(t, err)
			a := attach(t, c)
			want := strings.Repeat("hello ", 500_000)
			f, err := a.Volume().Create("hello 🎉.txt", int64(len(want)), workload.FileOptions{})
			require.NoError(t, err)
			_, err = f.WriteAt([]byte(want), 0)
			require.NoError(t, err)
			require.NoError(t, f.Close())
			detach(t, a)
			lines, here := c.OpenWith(filepath.Join(place.Path(), c.Name())), t.TempDir()
			if runtime.GOOS == "linux" { // the ways without root first
				quoted := "'" + strings.ReplaceAll(filepath.Join(place.Path(), c.Name()), "'", `'\''`) + "'"
				assert.Equal(t, []string{"dmgbench hdiutil attach -readonly " + quoted, "dmgbench hdiutil ls " + quoted}, lines[:2])
				lines = lines[2:]
			}
			assert.Contains(t, []string{"hdiutil", "diskutil"}, strings.Fields(lines[0])[0])
			switch format {
			case "UDSB":
				needs(t, "dd")
				shell(t, here, lineWith(t, lines, "truncate"))
			case "UDSP":
				needs(t, "fstool")
				shell(t, here, lineWith(t, lines, "fstool"))
			case "ASIF":
				if err := exec.CommandContext(t.Context(), "python3", "-c", "import dissect.hypervisor").Run(); err != nil {
					t.Skip("python3 has no dissect.hypervisor")
				}
				shell(t, here, lineWith(t, lines, "dissect"))
			}
			t.Run("7zz", func(t *testing.T) {
				needs(t, "7zz")
				assert.Contains(t, shell(t, here, lineWith(t, lines, "7zz")), "0.disk image.exfat")
			})
			t.Run("fsck", func(t *testing.T) {
				needs(t, "fsck.exfat")
				needsLoop(t)
				assert.Contains(t, shell(t, here, lineWith(t, lines, "fsck.exfat")), "clean. directories 1, files 1")
			})
			t.Run("mount", func(t *testing.T) {
				needsLoop(t)
				line := lineWith(t, lines, "mount ")
				if known, _ := os.ReadFile("/proc/filesystems"); !strings.Contains(string(known), "exfat") {
					needs(t, "mount.exfat-fuse") // stands in for the kernel's own
					if _, err := os.Stat("/dev/fuse"); err != nil {
						t.Skip("no /dev/fuse")
					}
					line = strings.Replace(line, "-t exfat ", "-t exfat-fuse ", 1)
				}
				dir := t.TempDir()
				shell(t, here, strings.Replace(line, "/mnt", dir, 1))
				got, err := os.ReadFile(filepath.Join(dir, "hello 🎉.txt"))
				shell(t, here, "umount "+dir)
				require.NoError(t, err)
				assert.True(t, string(got) == want, "the bytes that were written")
			})
		})
	}
}

// The dd of a Mac has no oflag=seek_bytes ("dd: unknown open flag"), and bs=1M is none of its numbers: a line is for both.
func TestTheLineForBundlesIsForEveryDD(t *testing.T) {
	place := place(t)
	for band, want := range map[int64]string{8 << 20: "bs=1048576 seek=$((0x${b##*/} * 8)) ", 1 << 20: "bs=1048576 seek=$((0x${b##*/} * 1)) ", 1<<20 + 1024: "bs=1024 seek=$((0x${b##*/} * 1025)) "} {
		c, err := inprocess.New(nil).Create(t.Context(), place, fmt.Sprint("b", band), engine.Spec{Format: "UDSB", Size: 24 << 20, BandSize: band})
		require.NoError(t, err)
		line := lineWith(t, c.OpenWith("x.sparsebundle"), "dd ")
		assert.Contains(t, line, want)
		assert.NotContains(t, line, "oflag")
	}
}

// needs skips where a program is missing.
func needs(t *testing.T, program string) {
	t.Helper()
	if _, err := exec.LookPath(program); err != nil {
		t.Skipf("%s is not installed", program)
	}
}

func needsLoop(t *testing.T) {
	t.Helper()
	needs(t, "losetup")
	if os.Geteuid() != 0 {
		t.Skip("loop devices need root")
	}
	if out, err := exec.Command("losetup", "--find").CombinedOutput(); err != nil {
		t.Skipf("no loop device: %s", out)
	}
}

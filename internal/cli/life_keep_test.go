package cli_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"dmgbench/internal/result"
)

// kept: --keep leaves the images and prints lines that open them; clean removes them.
func kept(t *testing.T, bin string) {
	w := newWorld(t, bin, strings.Replace(lifePlan, "rounds = 2", "rounds = 1", 1))
	e := w.run(w.begin("--keep")...)
	require.Zero(t, e.code, e.err)
	images := names(t, w.work())
	require.Len(t, images, 4, "marker, two images and the native folder: %v", images)
	var lines []string
	for line := range strings.Lines(e.err) {
		if cmd, ok := strings.CutPrefix(strings.TrimRight(line, "\n"), "  "); ok {
			lines = append(lines, cmd)
		}
	}
	require.NotEmpty(t, lines)
	own, attach := 0, 0
	for _, line := range lines {
		switch {
		case strings.HasPrefix(line, "dmgbench hdiutil ls "):
			works(t, t.TempDir(), bin, strings.Replace(line, "dmgbench", "'"+bin+"'", 1), "batch001")
			own++
		case strings.HasPrefix(line, "dmgbench hdiutil attach -readonly "):
			attach++
		}
	}
	if runtime.GOOS == "linux" {
		assert.Equal(t, []int{2, 2}, []int{own, attach}, "%q", lines)
	}
	fsck, sevenzip, dir := 0, 0, t.TempDir()
	for _, line := range lines {
		switch {
		case strings.HasPrefix(line, "truncate "):
			works(t, dir, "dd", line, "")
		case strings.Contains(line, "fsck.exfat"):
			works(t, dir, "fsck.exfat", line, "clean")
			fsck++
		case strings.Contains(line, "7zz"):
			works(t, dir, "7zz", line, "exfat")
			sevenzip++
		}
	}
	assert.Equal(t, 2, fsck, "one for each image: %q", lines)
	assert.Equal(t, 2, sevenzip, "%q", lines)
	w.pathless()
	assert.Equal(t, images, names(t, w.work()), "the printed lines changed the images")

	e = w.run("resume", w.out, "--keep")
	require.Zero(t, e.code, e.err)
	assert.Equal(t, images, names(t, w.work()), "resuming a finished run took the images away")
	e = w.run("clean")
	require.Zero(t, e.code, e.err)
	assert.Contains(t, e.out, `leftover images in folder "`)
	w.complete()
	e = w.run("clean")
	assert.Equal(t, "no leftovers found\n", e.out)
}

// works executes a printed line as a person would. Root needs no sudo, and has none in a container.
func works(t *testing.T, dir, tool, line, says string) {
	t.Helper()
	if _, err := exec.LookPath(tool); err != nil {
		t.Logf("%s is not installed: not tried: %s", tool, line)
		return
	}
	if strings.Contains(line, "sudo ") {
		if err := exec.Command("losetup", "--find").Run(); err != nil || os.Getuid() != 0 {
			t.Logf("no loop devices for this user: not tried: %s", line)
			return
		}
		line = "sudo() { \"$@\"; }\n" + line
	}
	cmd := exec.Command("sh", "-c", line)
	cmd.Dir = dir
	out, err := cmd.CombinedOutput()
	require.NoError(t, err, "%s\n%s", line, out)
	assert.Contains(t, strings.ToLower(string(out)), says, line)
}

const pausePlan = `
schema = 1
title = "A pause"
[image]
size = "12 MB"
filesystem_preference = ["exFAT"]
[matrix]
format = ["UDRW"]
[files.few]
sizes = ["64 kB"]
sets = 2
[run]
rounds = 1
baseline = false
canary = false
[[protocol]]
steps = [
  { do = "create" }, { do = "attach" }, { do = "write", phase = "new" },
  { do = "pause", message = "Restart the machine." },
  { do = "read", phase = "new" }, { do = "verify", phase = "new" },
]
`

// pausedCase: a pause inside a case is gone on behind, if the container is still the same.
func pausedCase(t *testing.T, bin string) {
	w := newWorld(t, bin, pausePlan)
	e := w.run(w.begin()...)
	require.Equal(t, 130, e.code, e.err)
	assert.Contains(t, e.err, "Restart the machine, then continue with: dmgbench resume "+w.out)
	require.Len(t, names(t, w.work()), 2)
	w.pathless()
	e = w.run("resume", w.out)
	require.Zero(t, e.code, e.err)
	w.complete()
	assert.Equal(t, 1, strings.Count(w.journal(), `"case_start":`), "the case was begun anew")

	w = newWorld(t, bin, pausePlan)
	require.Equal(t, 130, w.run(w.begin()...).code)
	list, err := filepath.Glob(filepath.Join(w.work(), "*.dmg"))
	require.NoError(t, err)
	require.Len(t, list, 1)
	require.NoError(t, os.Truncate(list[0], 6<<20))
	w.failedWith(w.run("resume", w.out), "after the pause: it was changed meanwhile: the container is gone or was replaced", "UDRW")
	w.tidy()
}

// manualAxis: what a person has to turn is asked for, and checked where the machine tells.
func manualAxis(t *testing.T, bin string) {
	text := strings.Replace(pausePlan, `  { do = "pause", message = "Restart the machine." },`, "", 1) + `
[[manual]]
name = "lid"
values = ["open", "shut"]
instructions = "Make the lid {value}."
`
	w := newWorld(t, bin, text)
	for i, e := range []ended{w.run(w.begin()...), w.run("resume", w.out)} {
		require.Equal(t, 130, e.code, e.err)
		assert.Contains(t, e.err, []string{"Make the lid open", "Make the lid shut"}[i])
	}
	e := w.run("resume", w.out)
	require.Zero(t, e.code, e.err)
	r := w.complete()
	require.Len(t, r.Cases, 2)

	w = newWorld(t, bin, strings.NewReplacer(`"lid"`, `"cpus"`, `["open", "shut"]`, `["4097"]`,
		`"Make the lid {value}."`, "\"Give it {value} processors.\"\ncheck = \"cpus\"").Replace(text))
	for range 3 {
		e := w.run(w.begin()...)
		if _, err := os.Stat(filepath.Join(w.out, result.JournalFile)); err == nil && e.code == 1 {
			e = w.run("resume", w.out)
		}
		require.Equal(t, 130, e.code, e.err)
		assert.Contains(t, e.err, "Give it 4097 processors")
	}
}

package cli_test

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"dmgbench/internal/result"
)

// mounted is a small file system of its own, made by root.
func mounted(t *testing.T, options string) string {
	t.Helper()
	if runtime.GOOS != "linux" || os.Getuid() != 0 {
		t.Skip("mounting a small file system needs Linux and root")
	}
	dir, err := filepath.EvalSymlinks(t.TempDir())
	require.NoError(t, err)
	if out, err := exec.Command("mount", "-t", "tmpfs", "-o", options, "tmpfs", dir).CombinedOutput(); err != nil {
		t.Skipf("mounting a tmpfs is not allowed here: %s", out)
	}
	t.Cleanup(func() { require.NoError(t, exec.Command("umount", dir).Run()) })
	return dir
}

// fill takes all space that is left.
func fill(t *testing.T, dir string) (file string) {
	t.Helper()
	f, err := os.Create(filepath.Join(dir, "filler"))
	require.NoError(t, err)
	defer f.Close()
	for _, size := range []int{1 << 20, 4096} {
		for err == nil {
			_, err = f.Write(make([]byte, size))
		}
		require.ErrorIs(t, err, syscall.ENOSPC)
		err = nil
	}
	return f.Name()
}

// failedWith checks a finished run in which something failed: the reason is
// clear, and what could be measured was.
func (w *world) failedWith(e ended, says string, formats ...string) *result.Result {
	w.t.Helper()
	assert.Equal(w.t, 3, e.code, e.err)
	r, err := result.ReadResult(w.out)
	require.NoError(w.t, err)
	assert.Equal(w.t, result.Failed, r.Status)
	var bad []string
	for _, c := range r.Cases {
		if c.Status != result.Done {
			bad = append(bad, c.Target.Format)
			assert.Regexp(w.t, says, c.Reason)
		}
	}
	assert.Equal(w.t, formats, bad)
	w.pathless()
	w.measuredOnce()
	return r
}

// diskFull fills the disk that images and run folder are on in the middle of a case.
func diskFull(t *testing.T, bin string) {
	dir := mounted(t, "size=60m")
	w := newWorld(t, bin, lifePlan)
	w.place, w.out = filepath.Join(dir, "place"), filepath.Join(dir, "run")
	require.NoError(t, os.Mkdir(w.place, 0o755))
	p := w.start(w.begin()...)
	w.settling(p, "UDSB", 1)
	require.NoError(t, p.cmd.Process.Signal(syscall.SIGSTOP)) // or it may be through before the disk is full
	filler := fill(t, dir)
	require.NoError(t, p.cmd.Process.Signal(syscall.SIGCONT))
	e := p.wait()
	assert.Equal(t, 4, e.code, e.err)
	assert.Regexp(t, `is full|free, the case needs`, e.err)
	assert.Contains(t, e.err, "hint: all measured data is kept; continue with: dmgbench resume")
	require.NoError(t, os.Remove(filler))
	e = w.run("resume", w.out)
	require.Zero(t, e.code, e.err)
	w.complete()
	assert.Empty(t, names(t, w.place))

	// What is there can be read without space, and where nothing can be written.
	require.NoError(t, os.Remove(filepath.Join(w.out, result.ReportFile)))
	fill(t, dir)
	reads := func() {
		for _, command := range []string{"report", "history", "export", "watch"} {
			e := w.run(command, w.out)
			assert.Zero(t, e.code, "%s: %s", command, e.err)
			assert.Equal(t, command == "report", strings.Contains(e.err, `warning: writing "report.html"`), e.err)
			assert.NotEmpty(t, e.out)
		}
	}
	reads()
	require.NoError(t, exec.Command("mount", "-o", "remount,ro", dir).Run())
	reads()
	require.NoError(t, exec.Command("mount", "-o", "remount,rw", dir).Run())

	// No space from the beginning is said before anything is made.
	w.out += "-2"
	e = w.run(w.begin()...)
	assert.Equal(t, 4, e.code, e.err)
	assert.Contains(t, e.err, `checking the host: folder "`)
	assert.NoDirExists(t, w.out)
}

// noInodes runs on a disk that has room, and no inode for another file.
func noInodes(t *testing.T, bin string) {
	dir := mounted(t, "size=60m,nr_inodes=10")
	w := newWorld(t, bin, lifePlan)
	w.place = filepath.Join(dir, "place")
	require.NoError(t, os.Mkdir(w.place, 0o755))
	e := w.run(w.begin()...)
	assert.Equal(t, 4, e.code, e.err)
	assert.Contains(t, e.err, "has no inode left")
	require.NoError(t, exec.Command("mount", "-o", "remount,nr_inodes=1000", dir).Run())
	e = w.run("resume", w.out)
	require.Zero(t, e.code, e.err)
	w.complete()
	assert.Empty(t, names(t, w.place))
}

// readOnly: neither a place nor a run folder can be made where nothing can be written.
func readOnly(t *testing.T, bin string) {
	dir := mounted(t, "size=60m")
	require.NoError(t, exec.Command("mount", "-o", "remount,ro", dir).Run())
	w := newWorld(t, bin, lifePlan)
	e := w.run("run", w.plan, "--out", w.out, "--on", dir)
	assert.Equal(t, 1, e.code)
	assert.Contains(t, e.err, `writing to folder "`)
	assert.Contains(t, e.err, "read-only file system")
	assert.Contains(t, e.err, "hint: choose a writable folder")
	assert.NoDirExists(t, w.out)
	e = w.run("run", w.plan, "--out", filepath.Join(dir, "run"))
	assert.Equal(t, 1, e.code)
	assert.Contains(t, e.err, "making run folder ")
	assert.Contains(t, e.err, "read-only file system")
	assert.Contains(t, e.err, "hint: choose another folder with --out")
	// The same command runs where it can.
	e = w.run(w.begin()...)
	require.Zero(t, e.code, e.err)
	w.complete()
}

// anotherUser runs as nobody in folders that are somebody else's.
func anotherUser(t *testing.T, bin string) {
	if os.Getuid() != 0 {
		t.Skip("becoming another user needs root")
	}
	w := newWorld(t, bin, lifePlan)
	open := func(dir string) {
		for ; len(dir) > len(os.TempDir()); dir = filepath.Dir(dir) {
			require.NoError(t, os.Chmod(dir, 0o755))
		}
	}
	open(filepath.Dir(w.home))
	open(w.bin)
	first := w.start(w.begin()...)
	w.settling(first, "UDRW", 1)
	require.NoError(t, first.cmd.Process.Signal(syscall.SIGKILL))
	first.wait()
	before := w.journal()

	nobody := *w
	nobody.cred = &syscall.Credential{Uid: 65534, Gid: 65534, NoSetGroups: true}
	nobody.home = filepath.Join(t.TempDir(), "home")
	require.NoError(t, os.MkdirAll(filepath.Join(nobody.home, "tmp"), 0o755))
	require.NoError(t, filepath.WalkDir(nobody.home, func(path string, _ os.DirEntry, err error) error {
		require.NoError(t, err)
		return os.Chown(path, 65534, 65534)
	}))
	open(filepath.Dir(nobody.home))
	for _, args := range [][]string{
		{"run", w.plan, "--out", w.out + "-2"},
		{"run", w.plan, "--out", filepath.Join(nobody.home, "run"), "--on", w.place},
		{"resume", w.out, "--on", w.place},
	} {
		e := nobody.run(args...)
		assert.Equal(t, 1, e.code, e.err)
		assert.Contains(t, e.err, "permission denied")
	}
	assert.Equal(t, before, w.journal())
	if fi, err := os.Stat("/dev/fuse"); err == nil && fi.Mode()&0o006 == 0 {
		assert.Regexp(t, `(?m)^FUSE +not available: open /dev/fuse: permission denied$`, nobody.run("doctor").out)
	}
	e := w.run("resume", w.out)
	require.Zero(t, e.code, e.err)
	w.complete()
}

// placeVanishes takes the whole place away in mid-run: nothing that is left is given up, and with the place the run goes on.
func placeVanishes(t *testing.T, bin string) {
	w := newWorld(t, bin, lifePlan)
	p := w.start(w.begin("--format", "json")...)
	w.settling(p, "UDSB", 1)
	require.NoError(t, os.Rename(w.place, w.place+".away"))
	require.NoError(t, os.RemoveAll(w.place+".away"))
	e := p.wait()
	assert.Equal(t, 4, e.code, e.err)
	assert.Contains(t, e.err, "is gone")
	assert.Contains(t, e.err, `"hint":"all measured data is kept; continue with: dmgbench resume`)
	for line := range strings.Lines(e.err) {
		assert.True(t, json.Valid([]byte(line)), line)
	}
	assert.Regexp(t, `{"kind":"message","text":"[^"]* of 3 cases`, e.err)
	assert.Regexp(t, `"kind":"error".*"exit":4}`, e.err)
	assert.NoDirExists(t, w.place)
	w.pathless()
	e = w.run("resume", w.out)
	assert.Equal(t, 1, e.code, e.err)
	assert.Contains(t, e.err, "no such folder")
	require.NoError(t, os.Mkdir(w.place, 0o755))
	e = w.run("resume", w.out)
	require.Zero(t, e.code, e.err)
	w.complete()
}

// containerSwapped: a link to somebody else's file in place of an image.
func containerSwapped(t *testing.T, bin string) {
	w := newWorld(t, bin, lifePlan)
	v := newVictim(t)
	p := w.start(w.begin()...)
	w.settling(p, "UDRW", 1)
	list, err := filepath.Glob(filepath.Join(w.work(), "*.dmg"))
	require.NoError(t, err)
	require.Len(t, list, 1)
	require.NoError(t, os.Remove(list[0]))
	require.NoError(t, os.Symlink(filepath.Join(v.dir, "precious"), list[0]))
	w.failedWith(p.wait(), "the container is gone or was replaced", "UDRW")
	v.unharmed()
	w.tidy()
}

package result

import (
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"dmgbench/internal/system/hostio"
)

// newRun makes a run folder with some records in it and closes it.
func newRun(t *testing.T, recs ...Record) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "runs", "quick")
	d, err := CreateRun(dir, "r1")
	require.NoError(t, err)
	appendAll(t, d, recs...)
	require.NoError(t, d.Close())
	return dir
}

func appendAll(t *testing.T, d *RunDir, recs ...Record) {
	t.Helper()
	for i, r := range recs {
		r.At = start.Add(time.Duration(i) * time.Second)
		require.NoError(t, d.Append(r))
	}
}

func names(t *testing.T, dir string) []string {
	t.Helper()
	entries, err := os.ReadDir(dir)
	require.NoError(t, err)
	var out []string
	for _, e := range entries {
		out = append(out, e.Name())
	}
	return out
}

func TestRunFolder(t *testing.T) {
	dir := newRun(t, sampleRecords()...)
	d, err := OpenRun(dir)
	require.NoError(t, err)
	defer d.Close()
	recs, err := d.Journal()
	require.NoError(t, err)
	require.Len(t, recs, len(sampleRecords()))
	assert.Empty(t, d.Warnings())

	for _, text := range []string{"old", "schema = 1\n"} {
		require.NoError(t, d.WriteFile(PlanFile, []byte(text)))
		got, err := d.ReadFile(PlanFile, 100)
		require.NoError(t, err)
		require.Equal(t, text, string(got))
	}
	_, err = d.ReadFile(PlanFile, 3)
	require.ErrorContains(t, err, "larger than the limit of 3 bytes")
	for _, name := range []string{JournalFile, "../x", "notes.txt", ""} {
		require.Error(t, d.WriteFile(name, nil))
	}
	require.Equal(t, []string{markerFile, JournalFile, PlanFile}, names(t, dir))
}

func TestCreateRunRefuses(t *testing.T) {
	full := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(full, "mine.txt"), []byte("x"), 0o644))
	_, err := CreateRun(full, "r1")
	require.ErrorIs(t, err, ErrNotEmpty)
	e, _ := errors.AsType[*Error](err)
	require.Contains(t, e.Advice(), "--out")
	require.Equal(t, []string{"mine.txt"}, names(t, full))
	_, err = CreateRun(filepath.Join(full, "mine.txt"), "r1")
	require.ErrorContains(t, err, "making run folder")
	empty := t.TempDir()
	d, err := CreateRun(empty, "r1")
	require.NoError(t, err)
	require.NoError(t, d.Close())
}

// A run is busy from its start on, also for a process that only looks.
func TestRunIsBusyWhileItIsOpen(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "run")
	assert.False(t, Running(dir), "before it is made")
	d, err := CreateRun(dir, "r1")
	require.NoError(t, err)
	appendAll(t, d, sampleRecords()...)
	require.NoError(t, d.Sync())
	for range 2 {
		assert.True(t, Running(dir))
		_, err = ResumeRun(dir)
		require.ErrorIs(t, err, ErrBusy)
	}
	require.NoError(t, d.Close())
	assert.False(t, Running(dir))
	reader, err := OpenRun(dir)
	require.NoError(t, err)
	assert.False(t, Running(dir), "a report is no run")
	require.NoError(t, reader.Close())
}

func TestCreateRunReadOnlyParent(t *testing.T) {
	if os.Geteuid() == 0 {
		t.Skip("root writes into read-only folders")
	}
	dir := t.TempDir()
	require.NoError(t, os.Chmod(dir, 0o555))
	_, err := CreateRun(filepath.Join(dir, "x"), "r1")
	require.ErrorContains(t, err, "permission denied")
}

// Kernels keep empty folders in which not even root makes files.
func TestCreateRunWhereNoFileCanBeMade(t *testing.T) {
	for _, dir := range []string{"/sys/kernel/config", "/sys/fs/pstore", "/sys/kernel/security", "/proc/sys/fs/binfmt_misc"} {
		if list, err := os.ReadDir(dir); err == nil && len(list) == 0 {
			_, err := CreateRun(dir, "r1")
			require.ErrorContains(t, err, "making run folder", dir)
			return
		}
	}
	t.Skip("root can make files in every folder here")
}

func TestResume(t *testing.T) {
	recs := sampleRecords()
	dir := newRun(t, recs[:6]...)
	path := filepath.Join(dir, JournalFile)
	whole, err := os.ReadFile(path)
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(path, append(whole, `{"schema":1,"seq":7,`...), 0o644))
	leftover := filepath.Join(dir, tempPrefix(ResultFile)+"ABC")
	require.NoError(t, os.WriteFile(leftover, []byte("half"), 0o644))

	d, err := ResumeRun(dir)
	require.NoError(t, err)
	require.Len(t, d.Warnings(), 1)
	require.NoFileExists(t, leftover)
	require.Equal(t, string(whole), contentsOf(t, path), "the torn line is taken off, nothing else")
	appendAll(t, d, recs[6:]...)
	require.NoError(t, d.Sync())

	_, err = ResumeRun(dir)
	require.ErrorIs(t, err, ErrBusy, "two resumes cannot collide")
	reader, err := OpenRun(dir)
	require.NoError(t, err, "a report may be made meanwhile")
	got, err := reader.Journal()
	require.NoError(t, err)
	require.Len(t, got, len(recs))
	require.Equal(t, len(recs), got[len(recs)-1].Seq)
	require.NoError(t, reader.Close())
	require.NoError(t, d.Close())
	d, err = ResumeRun(dir)
	require.NoError(t, err, "the lock ends with the run")
	require.Empty(t, d.Warnings())
	require.NoError(t, d.Close())
}

// A folder that only looks like a run's is not touched.
func TestResumeRefusesForeignFolders(t *testing.T) {
	for name, spoil := range map[string]func(t *testing.T, dir string){
		"other marker":  func(t *testing.T, dir string) { write(t, dir, markerFile, "r2\n") },
		"no marker":     func(t *testing.T, dir string) { require.NoError(t, os.Remove(filepath.Join(dir, markerFile))) },
		"no run record": func(t *testing.T, dir string) { write(t, dir, JournalFile, "precious notes") },
		"empty journal": func(t *testing.T, dir string) { write(t, dir, JournalFile, "") },
		"linked journal": func(t *testing.T, dir string) {
			require.NoError(t, os.Rename(filepath.Join(dir, JournalFile), filepath.Join(dir, "other")))
			require.NoError(t, os.Symlink("other", filepath.Join(dir, JournalFile)))
		},
		"marker is a fifo": func(t *testing.T, dir string) {
			require.NoError(t, os.Remove(filepath.Join(dir, markerFile)))
			require.NoError(t, syscall.Mkfifo(filepath.Join(dir, markerFile), 0o644))
		},
	} {
		t.Run(name, func(t *testing.T) {
			dir := newRun(t, sampleRecords()[:3]...)
			spoil(t, dir)
			before := snapshot(t, dir)
			_, err := ResumeRun(dir)
			require.ErrorIs(t, err, ErrNotRun)
			require.Equal(t, before, snapshot(t, dir))
		})
	}
	_, err := OpenRun(filepath.Join(t.TempDir(), "missing"))
	require.ErrorContains(t, err, "no such file")
	_, err = OpenRun(t.TempDir())
	require.ErrorIs(t, err, ErrNotRun)
}

func TestResumeRefusesFoldersOfOthers(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("only root can give a file away")
	}
	dir := newRun(t, sampleRecords()[:3]...)
	require.NoError(t, os.Chown(filepath.Join(dir, markerFile), 12345, -1))
	_, err := ResumeRun(dir)
	require.ErrorContains(t, err, "belongs to another user")
	require.ErrorIs(t, err, ErrNotRun)
}

func write(t *testing.T, dir, name, text string) {
	t.Helper()
	require.NoError(t, os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644))
}

func contentsOf(t *testing.T, path string) string {
	b, err := os.ReadFile(path)
	require.NoError(t, err)
	return string(b)
}

func snapshot(t *testing.T, dir string) map[string]string {
	out := map[string]string{}
	for _, n := range names(t, dir) {
		p := filepath.Join(dir, n)
		if fi, err := os.Lstat(p); err == nil && fi.Mode().IsRegular() {
			out[n] = contentsOf(t, p)
		}
	}
	return out
}

// A link in the place of a result is replaced, not followed; a folder there is an error that loses nothing.
func TestWriteFileHostile(t *testing.T) {
	dir := newRun(t, sampleRecords()...)
	outside := filepath.Join(t.TempDir(), "precious")
	require.NoError(t, os.WriteFile(outside, []byte("precious"), 0o644))
	require.NoError(t, os.Symlink(outside, filepath.Join(dir, ReportFile)))
	require.NoError(t, os.Mkdir(filepath.Join(dir, ResultFile), 0o755))
	d, err := OpenRun(dir)
	require.NoError(t, err)
	defer d.Close()
	_, err = d.ReadFile(ReportFile, 100)
	require.ErrorIs(t, err, hostio.ErrNotRegular)
	require.NoError(t, d.WriteFile(ReportFile, []byte("<html>")))
	require.Equal(t, "precious", contentsOf(t, outside))
	require.Equal(t, "<html>", contentsOf(t, filepath.Join(dir, ReportFile)))
	require.Error(t, d.WriteFile(ResultFile, []byte("{}")))
	for _, n := range names(t, dir) {
		require.NotContains(t, n, ".tmp-")
	}
}

// When the folder vanishes under a run, what it appends goes nowhere else.
func TestVanishedFolder(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "run")
	d, err := CreateRun(dir, "r1")
	require.NoError(t, err)
	defer d.Close()
	require.NoError(t, os.RemoveAll(dir))
	require.NoError(t, os.Mkdir(dir, 0o755))
	err = d.WriteFile(ResultFile, []byte("{}"))
	require.ErrorContains(t, err, `writing "result.json"`)
	require.Empty(t, names(t, dir))
}

func TestSafeName(t *testing.T) {
	for _, ok := range []string{"a.sparsebundle", "external", "Big Disk", "größe", "r-2026.05.01_1", "a=b,c", strings.Repeat("x", 255)} {
		assert.NoError(t, SafeName(ok))
	}
	for _, bad := range []string{"", ".", "..", "/", "/etc/passwd", "a/b", `a\b`, "a:b", "-rf", "~", "~root", ".hidden", "a\x00b", "a\nb",
		"a\u202eb", "a\u200bb", " a", "a ", "\xff", strings.Repeat("x", 256)} {
		assert.ErrorIs(t, SafeName(bad), ErrUnsafeName, "%q", bad)
	}
	rapid.Check(t, func(rt *rapid.T) { // whatever passes stays inside a folder
		name := rapid.String().Draw(rt, "name")
		if SafeName(name) != nil {
			return
		}
		require.Equal(rt, name, filepath.Base(name))
		require.True(rt, filepath.IsLocal(name))
		require.Equal(rt, "/x", filepath.Dir(filepath.Join("/x", name)))
	})
}

// A folder that can only be read has a report as well, if the one in it is right.
func TestWriteFileLeavesWhatIsThere(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "run")
	d, err := CreateRun(dir, "run1")
	require.NoError(t, err)
	defer d.Close()
	stat := func() os.FileInfo {
		fi, err := os.Stat(filepath.Join(dir, ReportFile))
		require.NoError(t, err)
		return fi
	}
	require.NoError(t, d.WriteFile(ReportFile, []byte("page")))
	first := stat()
	require.NoError(t, d.WriteFile(ReportFile, []byte("page")))
	assert.True(t, os.SameFile(first, stat()), "it was written again")
	for _, other := range []string{"pagf", "pages", "pag", ""} {
		require.NoError(t, d.WriteFile(ReportFile, []byte(other)))
		text, err := os.ReadFile(filepath.Join(dir, ReportFile))
		require.NoError(t, err)
		assert.Equal(t, other, string(text))
	}
}

// What is read of a file with a large hole is what is in it, not the hole.
func TestHolesTakeNoMemory(t *testing.T) {
	const hole = 200 << 20
	dir := endedRun(t, true)
	writeResult(t, dir, &Result{Schema: SchemaVersion, Run: "r-1", Status: Done})
	d, err := OpenRun(dir)
	require.NoError(t, err)
	whole, err := d.Journal()
	require.NoError(t, err)
	for _, name := range []string{JournalFile, ResultFile, SummaryFile} {
		require.NoError(t, os.Truncate(filepath.Join(dir, name), hole))
	}
	allocated := func(do func()) uint64 {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		do()
		runtime.ReadMemStats(&after)
		return after.TotalAlloc - before.TotalAlloc
	}
	assert.Less(t, allocated(func() {
		recs, err := d.Journal()
		require.NoError(t, err)
		assert.Equal(t, whole, recs, "the hole is a torn last line")
		require.NotEmpty(t, d.Warnings())
		follower, err := FollowRun(dir)
		require.NoError(t, err)
		_, err = follower.Poll()
		require.NoError(t, err)
		assert.Equal(t, whole, follower.Records())
		require.NoError(t, follower.Close())
		_, err = ReadSummary(dir)
		require.ErrorContains(t, err, "invalid character '\\x00'")
	}), uint64(16<<20))
	require.NoError(t, d.Close())
}

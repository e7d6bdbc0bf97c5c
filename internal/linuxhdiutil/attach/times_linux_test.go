package attach

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// TestProgramsKeepTimes: what programs copy to an exFAT volume over FUSE has the times that they set, also after it is
// attached again.
func TestProgramsKeepTimes(t *testing.T) {
	privileged(t)
	path, a := served(t, 16<<20)
	source := t.TempDir()
	when := time.Date(2020, 1, 1, 12, 0, 1, 250_000_000, time.UTC)
	require.NoError(t, os.Mkdir(filepath.Join(source, "d"), 0o755))
	put(t, filepath.Join(source, "d", "f"), noise(10_000))
	for _, name := range []string{"d/f", "d"} {
		require.NoError(t, os.Chtimes(filepath.Join(source, name), when.Add(time.Hour), when))
	}
	at := func(name string) string { return filepath.Join(a.MountPoint, name) }
	run(t, "cp", "-a", filepath.Join(source, "d"), at("cp"))
	run(t, "cp", "-p", filepath.Join(source, "d", "f"), at("f"))
	require.NoError(t, os.Mkdir(at("tar"), 0o755))
	run(t, "sh", "-c", `tar -C "$0" -cf - d | tar -C "$1" -xf - --no-same-owner`, source, at("tar"))
	run(t, "touch", at("touched"))
	run(t, "touch", "-d", "2020-01-01T12:00:01.259Z", at("touched"))
	kept := map[string]time.Duration{"cp": 0, "cp/f": 0, "f": 0, "tar/d": 250 * time.Millisecond,
		"tar/d/f": 250 * time.Millisecond, "touched": 0} // what the archive cuts off
	for range 2 {
		for name, less := range kept {
			fi, err := os.Stat(at(name))
			require.NoError(t, err)
			assert.LessOrEqual(t, when.Sub(fi.ModTime()), less, name)
			assert.GreaterOrEqual(t, when.Sub(fi.ModTime()), time.Duration(0), name)
		}
		detach(t, a)
		a = attach(t, path)
	}
	checked(t, path, a)
}

// TestSecondRsyncCopiesNothing: it compares times.
func TestSecondRsyncCopiesNothing(t *testing.T) {
	privileged(t)
	rsync := tool(t, "rsync")
	path, a := served(t, 16<<20)
	source := t.TempDir()
	put(t, filepath.Join(source, "f"), noise(10_000))
	for _, want := range []string{"f\n", ""} {
		copied := run(t, rsync, "-t", "--out-format=%n", filepath.Join(source, "f"), filepath.Join(a.MountPoint, "copy"))
		assert.Equal(t, want, copied)
	}
	checked(t, path, a)
}

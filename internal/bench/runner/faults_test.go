package runner_test

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"dmgbench/internal/bench/runner"
	"dmgbench/internal/result"
	"dmgbench/internal/system/hostio"
	"dmgbench/internal/system/hostio/hostiotest"
)

// What the host refuses ends the case that it concerns, and no other one.
func TestFaultsOfTheHostEndOnlyTheirCase(t *testing.T) {
	for name, f := range map[string]struct {
		set    func(*hostiotest.Faults)
		failed map[string]int
		says   string
	}{
		"disk full for the raw image": {
			func(f *hostiotest.Faults) { f.FailFrom(hostio.OpAllocate, "*.dmg", 1, syscall.ENOSPC) },
			map[string]int{"UDRW": 2}, "create: .*no space left on device"},
		"disk full in the middle of a raw image": {
			func(f *hostiotest.Faults) { f.FailNth(hostio.OpWrite, "*.dmg", 40, syscall.ENOSPC) },
			map[string]int{"UDRW": 1}, "no space left on device"},
		"no new bands": {
			func(f *hostiotest.Faults) { f.FailNth(hostio.OpCreate, "1", 1, syscall.ENOSPC) },
			map[string]int{"UDSB": 1}, "no space left on device"},
		"a flush that fails": {
			func(f *hostiotest.Faults) { f.FailNth(hostio.OpSync, "*.dmg", 3, syscall.EIO) },
			map[string]int{"UDRW": 1}, "input/output error"},
		"a read that fails": {
			func(f *hostiotest.Faults) { f.FailNth(hostio.OpRead, "*.dmg", 10, syscall.EIO) },
			map[string]int{"UDRW": 1}, "input/output error"},
		"short transfers are no fault": {
			func(f *hostiotest.Faults) { f.ShortTransfers(8192) }, map[string]int{}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			c := lived(t, life)
			faults := &hostiotest.Faults{}
			f.set(faults)
			c.Hook = faults
			out, err := runner.Run(t.Context(), c)
			require.NoError(t, err)
			n, reasons := failed(t, c)
			assert.Equal(t, f.failed, n, reasons)
			for _, r := range reasons {
				assert.Regexp(t, f.says, r)
			}
			want := runner.StatusDone
			if len(f.failed) > 0 {
				want = runner.StatusFailed
			}
			assert.Equal(t, want, out.Status)
			nothingLeft(t, c)
		})
	}
}

// foreign is a folder of somebody else with a file in it.
func foreign(t *testing.T) (dir string, untouched func()) {
	t.Helper()
	dir = t.TempDir()
	name := filepath.Join(dir, "precious")
	require.NoError(t, os.WriteFile(name, make([]byte, 1<<20), 0o600))
	before, err := os.Stat(name)
	require.NoError(t, err)
	return dir, func() {
		t.Helper()
		list, err := os.ReadDir(dir)
		require.NoError(t, err)
		require.Len(t, list, 1, "somebody else's folder was changed")
		after, err := os.Stat(name)
		require.NoError(t, err)
		assert.Equal(t, before.ModTime(), after.ModTime())
		assert.Equal(t, before.Size(), after.Size())
		assert.Equal(t, before.Sys().(*syscall.Stat_t).Blocks, after.Sys().(*syscall.Stat_t).Blocks)
	}
}

// swap puts a link to what is somebody else's into the place of the first file that matches.
func swap(t *testing.T, pattern, to string) {
	t.Helper()
	list, err := filepath.Glob(pattern)
	require.NoError(t, err)
	require.NotEmpty(t, list, pattern)
	require.NoError(t, os.RemoveAll(list[0]))
	if to != "" {
		require.NoError(t, os.Symlink(to, list[0]))
	}
}

// Whoever deletes a container in mid-run, or puts a link in its place, gets a
// failed case; what the link leads to stays as it is.
func TestContainersThatVanishOrAreSwapped(t *testing.T) {
	steps := [][2]string{{"write", "new"}, {"remount", "written"}, {"detach", "used"}}
	if long {
		steps = append(steps, [][2]string{{"attach", "new"}, {"read", "new"}, {"verify", "new"}, {"trim", "half"}, {"measure", "used"}}...)
	}
	for _, do := range steps {
		for name, what := range map[string]struct{ format, file, to string }{
			"raw image deleted":        {"UDRW", "*.dmg", ""},
			"raw image swapped":        {"UDRW", "*.dmg", "precious"},
			"bundle deleted":           {"UDSB", "*.sparsebundle", ""},
			"bundle swapped":           {"UDSB", "*.sparsebundle", "."},
			"folder of bands swapped":  {"UDSB", "*.sparsebundle/bands", "."},
			"token of a bundle linked": {"UDSB", "*.sparsebundle/token", "precious"},
		} {
			t.Run(strings.Join(do[:], " ")+" "+name, func(t *testing.T) {
				c := lived(t, once)
				dir, untouched := foreign(t)
				to := what.to
				if to != "" {
					to = filepath.Join(dir, to)
				}
				c.Progress = &at{when: step(what.format, do[0], do[1]), do: func() {
					swap(t, filepath.Join(work(t, c), what.file), to)
				}}
				out, err := runner.Run(t.Context(), c)
				require.NoError(t, err)
				n, reasons := failed(t, c)
				require.Equal(t, map[string]int{what.format: 1}, n, reasons)
				assert.Equal(t, runner.StatusFailed, out.Status)
				untouched()
				nothingLeft(t, c)
			})
		}
	}
}

// A single band that becomes a link is never written or read through.
func TestABandThatIsALinkIsNotFollowed(t *testing.T) {
	c := lived(t, once)
	dir, untouched := foreign(t)
	c.Progress = &at{when: step("UDSB", "remount", "written"), do: func() {
		swap(t, filepath.Join(work(t, c), "*.sparsebundle/bands/1"), filepath.Join(dir, "precious"))
	}}
	_, err := runner.Run(t.Context(), c)
	require.NoError(t, err)
	n, reasons := failed(t, c)
	require.Equal(t, map[string]int{"UDSB": 1}, n, reasons)
	untouched()
	nothingLeft(t, c)
}

// What every later case would suffer from ends the run, which goes on once it is mended.
func TestWhatConcernsThePlaceEndsTheRun(t *testing.T) {
	for says, harm := range map[string]func(c *runner.Config) (mend func()){
		"is at its quota": func(c *runner.Config) func() {
			faults := &hostiotest.Faults{}
			faults.FailFrom(hostio.OpAllocate, "*.dmg", 1, syscall.EDQUOT)
			c.Hook = faults
			return func() { c.Hook = nil }
		},
		"has as many files open as it may": func(c *runner.Config) func() {
			faults := &hostiotest.Faults{}
			faults.FailFrom(hostio.OpCreate, "*.dmg", 1, syscall.EMFILE)
			c.Hook = faults
			return func() { c.Hook = nil }
		},
		"is gone": func(c *runner.Config) func() {
			path := c.Places[0].Path
			c.Progress = &at{when: step("UDRW", "attach", "new"), do: func() {
				require.NoError(t, os.Rename(path, path+" away"))
				swap(t, path+" away/dmgbench-*/*.dmg", "")
			}}
			return func() { require.NoError(t, os.Rename(path+" away", path)) }
		},
	} {
		t.Run(says, func(t *testing.T) {
			c := lived(t, once)
			mend := harm(&c)
			_, err := runner.Run(t.Context(), c)
			require.ErrorContains(t, err, says)
			mend()
			c.Progress = nil
			out, err := resumed(t.Context(), t, c)
			require.NoError(t, err)
			require.Equal(t, runner.StatusDone, out.Status)
			nothingLeft(t, c)
		})
	}
}

// A run's folder that vanishes, or becomes a link, fails the cases in it; the
// link is not followed and not removed, since it is not the run's.
func TestTheRunsFolderVanishes(t *testing.T) {
	for name, link := range map[string]bool{"deleted": false, "swapped for a link": true} {
		t.Run(name, func(t *testing.T) {
			c := lived(t, life)
			dir, untouched := foreign(t)
			var own string
			c.Progress = &at{when: step("UDSB", "read", "new"), do: func() {
				own = work(t, c)
				require.NoError(t, os.RemoveAll(own))
				if link {
					require.NoError(t, os.Symlink(dir, own))
				}
			}}
			out, err := runner.Run(t.Context(), c)
			require.NoError(t, err)
			assert.Equal(t, runner.StatusFailed, out.Status)
			r := fold(t, c.Out)
			require.Len(t, r.Cases, 3)
			untouched()
			pathless(t, c)
			_, err = os.Lstat(own)
			assert.Equal(t, link, err == nil)
			said := ""
			for _, w := range r.Warnings {
				said += w.Kind + ": " + w.Text + "\n"
			}
			assert.Contains(t, said, "cleanup: ")
			if link {
				require.NoError(t, os.Remove(own))
			}
			require.NoError(t, runner.Clean(t.Context(), c.StateDir, runner.CleanOptions{}, os.Stderr))
			untouched()
		})
	}
}

// A disk that is not attached when a paused run is resumed can be attached later.
func TestAPlaceThatIsGoneStopsResumeAndNothingIsLost(t *testing.T) {
	c := lived(t, paused)
	out, err := runner.Run(t.Context(), c)
	require.NoError(t, err)
	require.Equal(t, runner.StatusPaused, out.Status)
	away := c.Places[0].Path + ".away"
	require.NoError(t, os.Rename(c.Places[0].Path, away))
	again := c
	again.Plan, again.Places = nil, nil
	_, err = runner.Resume(t.Context(), c.Out, again)
	require.ErrorContains(t, err, `": no such folder`)
	var told *result.Error
	require.ErrorAs(t, err, &told)
	assert.Contains(t, told.Hint, "dmgbench resume")
	require.NoError(t, os.Rename(away, c.Places[0].Path))
	for range 2 { // the second case pauses as well
		out, err = runner.Resume(t.Context(), c.Out, again)
		require.NoError(t, err)
	}
	require.Equal(t, runner.StatusDone, out.Status)
	nothingLeft(t, c)
}

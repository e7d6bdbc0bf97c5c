package inprocess_test

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"dmgbench/internal/bench/engine"
	"dmgbench/internal/bench/engine/inprocess"
	"dmgbench/internal/bench/workload"
	"dmgbench/internal/system/hostio"
	"dmgbench/internal/system/hostio/hostiotest"
)

func TestFoldersOfAVolume(t *testing.T) {
	c, err := inprocess.New(nil).Create(t.Context(), fast(t), "img", engine.Spec{Format: "UDRW", Size: 8 << 20})
	require.NoError(t, err)
	a := attach(t, c)
	v := a.Volume()
	require.NoError(t, v.Mkdir("a/b/c"))
	require.NoError(t, v.Mkdir("/d"))
	require.ErrorIs(t, v.Mkdir("a/b"), fs.ErrExist)
	put(t, v, "a/f", 5000)
	require.Error(t, v.Mkdir("a/f/below"), "below a file")
	require.Error(t, v.Mkdir("a/f/below/deeper"), "below a file")
	for name, want := range map[string]int64{"a": 0, "a/f": 5000, "/": 0} {
		size, err := v.Size(name)
		require.NoError(t, err)
		assert.Equal(t, want, size, name)
	}
	_, err = v.Size("missing")
	require.ErrorIs(t, err, fs.ErrNotExist)
	free, err := v.Free()
	require.NoError(t, err)
	detach(t, a)

	r, err := c.Check(t.Context(), engine.CheckOptions{})
	require.NoError(t, err)
	assert.Equal(t, "1", r.Reported["files"])
	assert.Equal(t, "5", r.Reported["folders"], "with the root")
	assert.Equal(t, fmt.Sprint(free), r.Reported["free"])
	assert.NotEmpty(t, r.Reported["used"])

	a, err = c.Attach(t.Context(), engine.AttachOptions{ReadOnly: true})
	require.NoError(t, err)
	for _, name := range []string{"new", "new/below", "a/b/new/below"} {
		require.ErrorIs(t, a.Volume().Mkdir(name), syscall.EROFS, name)
	}
	require.NoError(t, a.Volume().Sync(), "nothing changed")
	detach(t, a)
}

// Flags of the boot sector are reported to whoever detaches.
func TestTheStateOfAVolumeIsReported(t *testing.T) {
	for flags, want := range map[byte]string{
		0: "", 2: "not unmounted cleanly", 4: "failing media",
	} {
		dir := fast(t)
		c, err := inprocess.New(nil).Create(t.Context(), dir, "img", engine.Spec{Format: "UDRW", Size: 8 << 20})
		require.NoError(t, err)
		f, err := os.OpenFile(filepath.Join(dir.Path(), c.Name()), os.O_RDWR, 0)
		require.NoError(t, err)
		_, err = f.WriteAt([]byte{flags}, 1<<20+106)
		require.NoError(t, err)
		require.NoError(t, f.Close())
		a, err := c.Attach(t.Context(), engine.AttachOptions{ReadOnly: true})
		require.NoError(t, err)
		r, err := a.Detach(t.Context(), false)
		require.NoError(t, err)
		if want == "" {
			assert.Empty(t, r.Warnings)
			continue
		}
		assert.Len(t, r.Warnings, 1)
		assert.Contains(t, strings.Join(r.Warnings, ""), want)
	}
}

// Trimming reports what came back. On a host without holes in files that is a warning, and no reason not to attach.
func TestTrimReportsWhatItFreed(t *testing.T) {
	faults := &hostiotest.Faults{}
	dir := fast(t, hostio.WithHook(faults))
	file, err := dir.Open("holes", hostio.OpenOptions{Write: true, Create: true})
	require.NoError(t, err)
	defer file.Close()
	if err := file.PunchHole(0, 4096); errors.Is(err, hostio.ErrUnsupported) {
		t.Skip("this file system makes no holes")
	}
	c, err := inprocess.New(nil).Create(t.Context(), dir, "img",
		engine.Spec{Format: "UDRW", Size: 16 << 20})
	require.NoError(t, err)
	a := attach(t, c)
	put(t, a.Volume(), "f", 8<<20)
	before := allocated(t, c)
	r, err := a.Trim(t.Context())
	require.NoError(t, err)
	assert.NotEmpty(t, r.Reported["trimmed"])
	assert.Empty(t, r.Warnings)
	assert.Equal(t, before-allocated(t, c), r.Freed)
	assert.Greater(t, r.Freed, int64(4<<20))
	r, err = a.Trim(t.Context())
	require.NoError(t, err)
	assert.Zero(t, r.Freed, "all was free before")
	detach(t, a)

	faults.FailFrom(hostio.OpPunch, "", 1, hostio.ErrUnsupported)
	a = attach(t, c) // trims
	require.NoError(t, a.Volume().Remove("f"))
	r, err = a.Trim(t.Context())
	require.NoError(t, err)
	assert.Len(t, r.Warnings, 1)
	r, err = a.Detach(t.Context(), false)
	require.NoError(t, err)
	assert.Len(t, r.Warnings, 1, "of the trim when it was attached")

	a, err = c.Attach(t.Context(), engine.AttachOptions{NoMount: true})
	require.NoError(t, err)
	_, err = a.Trim(t.Context())
	require.ErrorContains(t, err, "not mounted")
	detach(t, a)
}

// A file of a volume that was detached by force has no pages to count.
func TestFilesOfADetachedVolumeFail(t *testing.T) {
	c, err := inprocess.New(nil).Create(t.Context(), fast(t), "img", engine.Spec{Format: "UDRW", Size: 8 << 20})
	require.NoError(t, err)
	a := attach(t, c)
	f, err := a.Volume().Create("f", 5000, workload.FileOptions{})
	require.NoError(t, err)
	_, err = f.WriteAt(make([]byte, 5000), 0)
	require.NoError(t, err)
	_, err = a.Detach(t.Context(), true)
	require.NoError(t, err)
	_, err = f.Resident()
	require.Error(t, err)
	_, err = f.WriteAt(make([]byte, 10), 0)
	require.Error(t, err)
	_, err = f.Sync(hostio.SyncFull)
	require.Error(t, err)
}

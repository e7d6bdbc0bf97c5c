package attach

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"dmgbench/internal/image/container"
	"dmgbench/internal/system/hostio"
)

// TestLifeOfAVolume writes, detaches, attaches, reads back, deletes and trims, on every pair of container and file
// system that this machine can make.
func TestLifeOfAVolume(t *testing.T) {
	sizes := map[string]int64{"ext4": 64 << 20, "xfs": 320 << 20, "btrfs": 128 << 20, "ExFAT": 64 << 20}
	for _, format := range []string{container.UDRW, container.UDSB} {
		for _, fs := range []string{"ext4", "xfs", "btrfs", "ExFAT"} {
			t.Run(format+" "+fs, func(t *testing.T) {
				privileged(t)
				if os.Getenv("DMGBENCH_LONG") == "" && format == container.UDRW && fs != "ext4" {
					t.Skip("long: set DMGBENCH_LONG=1 (make test-long)")
				}
				lifeOfAVolume(t, format, fs, sizes[fs])
			})
		}
	}
}

func lifeOfAVolume(t *testing.T, format, fs string, size int64) {
	path := made(t, format, fs, size)
	a := attach(t, path)
	assert.Equal(t, format, a.Format)
	assert.Equal(t, "Test", a.VolumeName)
	assert.Equal(t, filepath.Join(DefaultMountRoot(), "Test"), a.MountPoint)
	assert.Empty(t, a.Warnings)
	assert.Zero(t, a.Trimmed, "a new volume is not trimmed")
	small, large := noise(12_345), noise(6<<20)
	put(t, filepath.Join(a.MountPoint, "small"), small)
	put(t, filepath.Join(a.MountPoint, "large"), large)
	requireFile(t, filepath.Join(a.MountPoint, "large"), large)
	detach(t, a)
	assert.NoDirExists(t, a.MountPoint)
	list, err := List(t.Context())
	require.NoError(t, err)
	assert.Empty(t, list)

	a = attach(t, path)
	requireDirect(t, a.MountPoint, "small", small)
	requireFile(t, filepath.Join(a.MountPoint, "small"), small)
	requireFile(t, filepath.Join(a.MountPoint, "large"), large)
	assert.Positive(t, a.Trimmed, "the second mount trims")
	before := 0
	if format == container.UDSB {
		before = bands(t, path)
	}
	run(t, "rm", filepath.Join(a.MountPoint, "large"))
	require.NoError(t, syncVolume(a.MountPoint))
	detach(t, a)
	a = attach(t, path)
	if format == container.UDSB {
		assert.Less(t, bands(t, path), before-3, "trimming frees bands")
	}
	requireFile(t, filepath.Join(a.MountPoint, "small"), small)
	detach(t, a)
	if fs == "ext4" {
		checkExt4(t, path)
	}
}

// requireDirect reads a file past the page cache, whose length is no multiple of any block, and looks whether it was
// so.
func requireDirect(t *testing.T, folder, name string, want []byte) {
	t.Helper()
	d, err := hostio.OpenDir(folder)
	require.NoError(t, err)
	defer d.Close()
	f, err := d.Open(name, hostio.OpenOptions{Cache: hostio.CacheDirect})
	require.NoError(t, err)
	defer f.Close()
	got, err := hostio.AlignedBuffer(len(want))
	require.NoError(t, err)
	defer got.Free()
	_, err = f.ReadAt(got.Bytes(), 0)
	require.NoError(t, err)
	assert.True(t, bytes.Equal(want, got.Bytes()))
	share, err := f.Resident(0, 0)
	require.NoError(t, err)
	assert.Equal(t, hostio.CacheDirect, f.Cache())
	assert.Zero(t, share, "a direct read leaves no pages")
}

// checkExt4 runs e2fsck, reading only.
func checkExt4(t *testing.T, path string) {
	t.Helper()
	fsck := tool(t, "e2fsck")
	a, err := attachRequest(t.Context(), Request{Image: path, ReadOnly: true, NoMount: true})
	require.NoError(t, err)
	run(t, fsck, "-fn", a.Partition)
	detach(t, a)
}

// A raw image can be had through the helper as well; without one, nothing else can, and the attempt leaves nothing.
func TestServedAsAsked(t *testing.T) {
	privileged(t)
	path, data := made(t, container.UDRW, "ext4", 64<<20), noise(3<<20)
	for _, test := range []struct{ by, mode string }{{ServedByAny, ModeLoop}, {ServedByKernel, ModeLoop}, {ServedByHelper, ModeFUSELoop}} {
		a, err := attachRequest(t.Context(), Request{Image: path, MountRoot: t.TempDir(), ServedBy: test.by})
		require.NoError(t, err)
		assert.Equal(t, test.mode, a.Mode, test.by)
		assert.Equal(t, test.mode == ModeFUSELoop, a.HelperPID > 0)
		if test.by != ServedByAny {
			requireFile(t, filepath.Join(a.MountPoint, "kept"), data)
		}
		put(t, filepath.Join(a.MountPoint, "kept"), data)
		detach(t, a)
	}
	checkExt4(t, path)
	bundle := made(t, container.UDSB, "ext4", 64<<20)
	for _, mount := range []bool{true, false} {
		_, err := attachRequest(t.Context(), Request{Image: bundle, NoMount: !mount, ServedBy: ServedByKernel})
		require.ErrorIs(t, err, errors.ErrUnsupported)
		assert.ErrorContains(t, err, "that takes an unencrypted UDRW image")
	}
	list, err := List(t.Context())
	require.NoError(t, err)
	assert.Empty(t, list)
}

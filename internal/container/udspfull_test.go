package container

import (
	"bytes"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"dmgbench/internal/clock"
	"dmgbench/internal/hostio"
)

// TestCompactOnAFullDisk: bands that move into holes take space. Where there is none, the image has to stay one that can be
// written to, as it cannot be while a compaction has to be finished.
func TestCompactOnAFullDisk(t *testing.T) {
	const band = 16 << 10
	faults := hostio.NewFaults(clock.NewVirtual(time.Time{}))
	d := tempDir(t, hostio.WithHook(faults))
	require.NoError(t, createUDSP(d, "i", 1<<20, band, Encryption{}))
	img, err := Open(d, "i", OpenOptions{})
	require.NoError(t, err)
	data := pattern(6*band, 1)
	clear(data[:2*band]) // what a compaction drops, and two bands go to
	_, err = img.WriteAt(data, 0)
	require.NoError(t, err)
	require.NoError(t, img.Flush())
	faults.FailNth(hostio.OpWrite, "i", 3, syscall.ENOSPC) // behind the table and the first copy
	_, err = img.Compact(nil)
	require.ErrorIs(t, err, syscall.ENOSPC)
	require.Error(t, img.Close())

	full := hostio.NewFaults(clock.NewVirtual(time.Time{}))
	again, err := hostio.OpenDir(d.Path(), hostio.WithHook(full))
	require.NoError(t, err)
	defer again.Close()
	full.FailFrom(hostio.OpWrite, "i", 2, syscall.ENOSPC) // the table alone needs no space
	img, err = Open(again, "i", OpenOptions{})
	require.NoError(t, err)
	got := make([]byte, len(data))
	_, err = img.ReadAt(got, 0)
	require.NoError(t, err)
	require.True(t, bytes.Equal(data, got))
	require.NoError(t, img.Close())
	list, err := Verify(d, "i")
	require.NoError(t, err)
	require.Empty(t, list)
}

package container

import (
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"dmgbench/internal/system/hostio"
	"dmgbench/internal/system/hostio/hostiotest"
)

// TestCompactReadsWhatItDeletes: that a file takes no blocks is no proof that it holds nothing, since some hosts say so of
// every file. A band goes when it was read, and not before.
func TestCompactReadsWhatItDeletes(t *testing.T) {
	faults := &hostiotest.Faults{}
	d := tempDir(t, hostio.WithHook(faults))
	require.NoError(t, Create(d, "b", Spec{Format: UDSB, Size: 4 << 20, BandSize: 1 << 20}))
	band := filepath.Join(d.Path(), "b", "bands", "2")
	require.NoError(t, os.WriteFile(band, nil, 0o644))
	require.NoError(t, os.Truncate(band, 1<<20)) // all of it a hole
	img, err := Open(d, "b", OpenOptions{})
	require.NoError(t, err)
	faults.FailNth(hostio.OpRead, "", 1, syscall.EIO)
	_, err = img.Compact(nil)
	require.ErrorIs(t, err, syscall.EIO)
	assert.FileExists(t, band)
	_, err = img.Compact(nil)
	require.NoError(t, err)
	assert.NoFileExists(t, band)
	require.NoError(t, img.Close())
}

package attach

import (
	"os"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"dmgbench/internal/image/gpt"
)

// flip changes one byte of a file.
func flip(t *testing.T, path string, at int64) {
	t.Helper()
	f, err := os.OpenFile(path, os.O_RDWR, 0)
	require.NoError(t, err)
	b := make([]byte, 1)
	_, err = f.ReadAt(b, at)
	require.NoError(t, err)
	_, err = f.WriteAt([]byte{^b[0]}, at)
	require.NoError(t, err)
	require.NoError(t, f.Close())
}

// What is on an image with a damaged partition table can be had: by the backup, or else from the device alone.
func TestDamagedTablesAreNoBarToRecovery(t *testing.T) {
	const size, inHeader = 8 << 20, 40
	path := newImage(t, "UDRW", "exFAT", size)
	flip(t, path, 512+inHeader)
	s, err := inspect(Request{Image: path})
	require.NoError(t, err)
	assert.Equal(t, []string{string(gpt.WarnPrimary)}, s.notes())
	assert.Equal(t, "exfat", s.ToMount().Kernel)
	flip(t, path, size-512+inHeader)
	s, err = inspect(Request{Image: path})
	require.NoError(t, err)
	require.Len(t, s.notes(), 1)
	assert.Contains(t, s.notes()[0], "without partitions")
	require.ErrorIs(t, s.Damage, gpt.ErrDamaged)
	assert.Nil(t, s.mount, "the whole device")

	privileged(t)
	a, err := attachRequest(t.Context(), Request{Image: path, NoMount: true, ReadOnly: true})
	require.NoError(t, err)
	assert.Equal(t, a.Device, a.Partition, "the whole device")
	assert.Contains(t, a.Warnings[0], "without partitions")
	dev, err := os.ReadFile(a.Device)
	require.NoError(t, err)
	file, err := os.ReadFile(path)
	require.NoError(t, err)
	assert.Equal(t, file, dev)
	detach(t, a)
	_, err = attachRequest(t.Context(), Request{Image: path})
	require.ErrorIs(t, err, ErrNoFileSystem)
	assert.ErrorIs(t, err, gpt.ErrDamaged, "and why")
	flip(t, path, 512+inHeader)
	detach(t, attach(t, path))
	flip(t, path, 512+inHeader)
	flip(t, path, size-512+inHeader)
	detach(t, attach(t, path))
}

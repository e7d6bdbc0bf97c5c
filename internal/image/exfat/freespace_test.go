package exfat_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"dmgbench/internal/image/blockdev/blockdevtest"
	"dmgbench/internal/image/exfat"
)

func TestFreeSpaceIsWhatATrimWouldTell(t *testing.T) {
	dev := blockdevtest.NewMem(16 << 20)
	_, _, err := exfat.FreeSpace(dev, 0)
	require.ErrorIs(t, err, exfat.ErrNotExFAT)
	require.NoError(t, exfat.Format(dev, exfat.FormatOptions{ClusterSize: 4096}))
	v, err := exfat.Mount(dev, exfat.MountOptions{})
	require.NoError(t, err)
	f, err := v.Create("file", 0)
	require.NoError(t, err)
	_, err = f.WriteAt(make([]byte, 1<<20), 0)
	require.NoError(t, err)
	require.NoError(t, f.Close())

	free, n, err := exfat.FreeSpace(dev, 0)
	require.NoError(t, err)
	assert.Nil(t, free, "a mounted volume was not unmounted cleanly")
	assert.Positive(t, n)
	require.NoError(t, v.Unmount())

	const offset = 1 << 20
	free, n, err = exfat.FreeSpace(dev, offset)
	require.NoError(t, err)
	var sum, last int64
	for _, s := range free {
		assert.Greater(t, s.Off, last, "ascending, not touching")
		sum, last = sum+s.End-s.Off, s.End
		assert.False(t, free.Used(s.Off, s.End-s.Off))
		assert.True(t, free.Used(s.Off-1, 2))
		assert.True(t, free.Used(s.End-1, 2))
	}
	assert.Equal(t, n, sum)
	assert.LessOrEqual(t, last, dev.Size()+offset)
	assert.True(t, free.Used(0, 1))
}

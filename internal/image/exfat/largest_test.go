package exfat

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// TestLargestVolume: a size that exFAT cannot have is refused before anything is laid out, and the largest is not.
func TestLargestVolume(t *testing.T) {
	g, err := FormatOptions{}.geometry(1 << 57)
	require.NoError(t, err)
	require.Equal(t, int64(32<<20), g.clusterSize())
	for _, size := range []int64{1<<57 + 1<<40, 1 << 60} {
		_, err = FormatOptions{MaxSize: 4 * size}.geometry(size)
		require.ErrorContains(t, err, "more than the largest volume")
	}
	_, err = FormatOptions{ClusterSize: 512}.geometry(4 << 40)
	require.ErrorContains(t, err, "more than the largest volume with clusters of 512")
}

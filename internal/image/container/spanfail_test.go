package container

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// TestStartedPiecesAreCompleted: whichever piece fails, the pieces before it are moved.
func TestStartedPiecesAreCompleted(t *testing.T) {
	for turn := range 3000 {
		bad := int64(turn % 7)
		done := make([]bool, 8)
		moved, err := runPieces(ioHelpers, 8, func(i int64) (int64, error) {
			if i == bad {
				return i, errBroken
			}
			done[i] = true
			return i + 1, nil
		})
		require.ErrorIs(t, err, errBroken)
		require.Equal(t, bad, moved)
		for i := range bad {
			require.True(t, done[i], "piece %d before the failed %d", i, bad)
		}
	}
}

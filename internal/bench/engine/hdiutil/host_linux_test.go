package hdiutil

import (
	"errors"
	"testing"

	"github.com/stretchr/testify/require"
)

// A folder that cannot be trimmed is that, not a failure. No host is trimmed here.
func TestTrimOfWhatCannotBeTrimmed(t *testing.T) {
	_, err := trimVolume("/proc")
	require.ErrorIs(t, err, errors.ErrUnsupported)
}

package container

import (
	"errors"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"dmgbench/internal/blockdev"
)

// What is ruined behind a byte of the device is found by its checksum, and what lies before it is whole.
func TestRuinStored(t *testing.T) {
	dev := blockdev.NewMem(6 << 20)
	data := pattern(2<<20, 1)
	for _, off := range []int64{0, 4 << 20} { // zeros between
		_, err := dev.WriteAt(data, off)
		require.NoError(t, err)
	}
	for _, format := range []string{"UDRO", "UDZO", "ULMO"} {
		d := tempDir(t)
		require.NoError(t, CreateUDIF(t.Context(), d, "a", dev, UDIFSpec{Format: format}))
		require.NoError(t, RuinStored(d, "a", 3<<20))
		found, err := Verify(d, "a")
		require.NoError(t, err)
		assert.NotEmpty(t, found, format)
		img, err := Open(d, "a", OpenOptions{ReadOnly: true})
		require.NoError(t, err)
		got := make([]byte, 2<<20)
		_, err = img.ReadAt(got, 0)
		require.NoError(t, err)
		assert.Equal(t, data, got)
		_, err = img.ReadAt(got, 4<<20)
		assert.True(t, err != nil || string(got) != string(data), format)
		require.NoError(t, img.Close())
		require.ErrorContains(t, RuinStored(d, "a", 6<<20), "no data behind")
	}
	d := tempDir(t)
	require.NoError(t, Create(d, "raw.dmg", Spec{Format: "UDRW", Size: 1 << 20}))
	require.ErrorIs(t, RuinStored(d, "raw.dmg", 0), errors.ErrUnsupported)
	require.Error(t, RuinStored(d, "missing", 0))
}

package container

import (
	"errors"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"dmgbench/internal/blockdev/blockdevtest"
)

// What is ruined behind a byte of the device is found by its checksum, and what lies before it is whole.
func TestRuinStored(t *testing.T) {
	dev := blockdevtest.NewMem(6 << 20)
	data := pattern(2<<20, 1)
	for _, off := range []int64{0, 4 << 20} { // zeros between
		_, err := dev.WriteAt(data, off)
		require.NoError(t, err)
	}
	pass := []byte("secret")
	for _, format := range []string{"UDRO", "UDZO", "ULMO", "encrypted"} {
		d, spec := tempDir(t), UDIFSpec{Format: format}
		o := OpenOptions{ReadOnly: true}
		if format == "encrypted" {
			spec = UDIFSpec{Format: "UDZO", Encryption: Encryption{Cipher: AES256, Passphrase: pass, Iterations: 1000}}
			o.Passphrase = pass
		}
		require.NoError(t, CreateUDIF(t.Context(), d, "a", dev, spec))
		require.NoError(t, RuinStored(d, "a", 3<<20, o.Passphrase))
		found, err := VerifyWith(d, "a", o)
		require.NoError(t, err)
		assert.NotEmpty(t, found, format)
		img, err := Open(d, "a", o)
		require.NoError(t, err)
		got := make([]byte, 2<<20)
		_, err = img.ReadAt(got, 0)
		require.NoError(t, err)
		assert.Equal(t, data, got)
		_, err = img.ReadAt(got, 4<<20)
		assert.True(t, err != nil || string(got) != string(data), format)
		require.NoError(t, img.Close())
		require.ErrorContains(t, RuinStored(d, "a", 6<<20, o.Passphrase), "no data behind")
	}
	d := tempDir(t)
	require.NoError(t, Create(d, "raw.dmg", Spec{Format: "UDRW", Size: 1 << 20}))
	require.ErrorIs(t, RuinStored(d, "raw.dmg", 0, nil), errors.ErrUnsupported)
	require.Error(t, RuinStored(d, "missing", 0, nil))
}

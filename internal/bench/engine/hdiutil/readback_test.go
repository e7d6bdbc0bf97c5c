package hdiutil

import (
	"bytes"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"dmgbench/internal/image/container"
	"dmgbench/internal/system/hostio"
)

func TestCheckMade(t *testing.T) {
	for _, test := range []struct {
		found      container.Description
		format     string
		encryption string
		ok         bool
	}{
		{container.Description{Format: "UDRW"}, "UDRW", "none", true}, {container.Description{Format: "UDRW"}, "UDTO", "", true},
		{container.Description{Format: "UDIF"}, "UDZO", "none", true}, {container.Description{Format: "UDIF"}, "UDRW", "none", true}, {container.Description{Format: "UDIF"}, "UDSP", "none", false},
		{container.Description{Format: "UDRW"}, "UDZO", "none", false}, {container.Description{Format: "UDRW"}, "ASIF", "none", false},
		{container.Description{Format: "UDRW"}, "ASIF", "AES-256", true}, {container.Description{NoContainer: "file"}, "ASIF", "AES-256", true},
		{container.Description{NoContainer: "file of 0 bytes"}, "UDRW", "none", false},
		{container.Description{Format: "UDSP"}, "ASIF", "AES-256", false},
		{container.Description{Format: "ASIF"}, "ASIF", "AES-256", true}, {container.Description{Format: "UDRW"}, "UDRW", "AES-256", false},
		{container.Description{Encrypted: true, KeyBits: 256}, "UDRW", "AES-256", true}, {container.Description{Encrypted: true, KeyBits: 128}, "UDRW", "AES-256", false},
		{container.Description{Encrypted: true}, "UDRW", "AES-256", true}, {container.Description{Encrypted: true, KeyBits: 256}, "UDRW", "none", false},
		{container.Description{Format: "UDSB", Encrypted: true, KeyBits: 128}, "UDSB", "AES-128", true}, {container.Description{Format: "UDSB"}, "UDSB", "AES-128", false},
	} {
		err := checkMade(test.found, formatOf(test.format), test.encryption)
		assert.Equal(t, test.ok, err == nil, "%+v: %v", test, err)
	}
}

// Encrypted ASIF has no known magic number, and its length is not that of the device.
func TestEncryptedASIFWithoutMagicNumber(t *testing.T) {
	dir, err := hostio.OpenDir(t.TempDir())
	require.NoError(t, err)
	defer dir.Close()
	require.NoError(t, dir.WriteFileAtomic("x.asif", bytes.Repeat([]byte{7}, 1<<16), 0o600))
	i, err := (&Engine{}).openImage(dir, "x.asif", spec("ASIF", encrypted("AES-256")), choice{format: formatOf("ASIF"), size: 1 << 30})
	require.NoError(t, err)
	assert.Equal(t, int64(1<<30), i.Made().Size)
	require.NoError(t, i.checkResized(2<<30, false), "the file does not show the length of the device")
	require.ErrorIs(t, i.checkResized(2<<30, true), ErrNoResult)
}

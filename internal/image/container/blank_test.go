package container

import (
	"bytes"
	"encoding/binary"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// TestBlankASIF compares a new image with the bytes of macOS's blank ones.
func TestBlankASIF(t *testing.T) {
	d := tempDir(t)
	require.NoError(t, Create(d, "i", Spec{Format: ASIF, Size: 10_000_000_000 / 512 * 512}))
	b, err := d.ReadFile("i", 1<<30)
	require.NoError(t, err)
	want := make([]byte, 4<<20)
	be := binary.BigEndian
	copy(want, "shdw")
	be.PutUint32(want[4:], 1)
	be.PutUint32(want[8:], 0x200)
	be.PutUint64(want[0x10:], 0x200)
	be.PutUint64(want[0x18:], 0x41400)
	copy(want[0x20:], b[0x20:0x30])
	be.PutUint64(want[0x30:], 10_000_000_000/512)
	be.PutUint64(want[0x38:], 0x80000000000)
	be.PutUint32(want[0x40:], 0x100000)
	be.PutUint16(want[0x44:], 0x200)
	be.PutUint64(want[0x48:], 0xFFFFFFFF)
	be.PutUint64(want[0x41248:], 1)
	be.PutUint64(want[0x41400:], 1)
	be.PutUint64(want[0x82448:], 1)
	be.PutUint64(want[0x120030:], 0xC000000000000002)
	be.PutUint64(want[0x120038:], 3)
	copy(want[0x200000:], "meta")
	be.PutUint32(want[0x200004:], 1)
	be.PutUint32(want[0x200008:], 0x200)
	be.PutUint64(want[0x20000c:], 0x200)
	list := b[0x200200:0x200400]
	copy(want[0x200200:], list)
	want[0x3FFE00] = 0x05
	require.Len(t, b, len(want))
	for i := range b {
		if want[i] != b[i] {
			require.Equal(t, want[i], b[i], "byte %#x", i)
		}
	}
	assert.NotEqual(t, make([]byte, 16), b[0x20:0x30])
	list = bytes.TrimRight(list, "\x00")
	assert.Len(t, list, 351)
	var dict map[string]any
	require.NoError(t, parsePlist(list, &dict))
	assert.Contains(t, dict["internal metadata"], "stable uuid")
	assert.Empty(t, dict["user metadata"])
}

// TestBlankUDSP compares a new image and one with bands with the bytes that hdiutil writes.
func TestBlankUDSP(t *testing.T) {
	d := tempDir(t)
	require.NoError(t, Create(d, "i", Spec{Format: UDSP, Size: 80000 * 512}))
	img, err := Open(d, "i", OpenOptions{})
	require.NoError(t, err)
	bands := []uint32{1, 2, 20, 38, 39, 40, 5}
	for _, n := range bands {
		_, err := img.WriteAt([]byte{byte(n)}, int64(n-1)<<20)
		require.NoError(t, err)
	}
	require.NoError(t, img.Close())
	b, err := d.ReadFile("i", 1<<30)
	require.NoError(t, err)
	want := make([]byte, 4096+7*(1<<20))
	be := binary.BigEndian
	copy(want, "sprs")
	be.PutUint32(want[4:], 3)
	be.PutUint32(want[8:], 2048)
	be.PutUint32(want[12:], 1)
	be.PutUint32(want[0x10:], 80000)
	be.PutUint64(want[0x1c:], 80000)
	for i, n := range bands {
		be.PutUint32(want[0x40+4*i:], n)
		want[4096+i*(1<<20)] = byte(n)
	}
	require.Len(t, b, len(want))
	require.True(t, bytes.Equal(want, b))
}

package inprocess_test

import (
	"bytes"
	"encoding/binary"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"dmgbench/internal/bench/engine"
	"dmgbench/internal/bench/engine/inprocess"
	"dmgbench/internal/system/hostio"
)

// sectors reads the image file beside the engine: what another machine would find.
func sectors(t *testing.T, dir *hostio.Dir, c engine.Container, off, n int64) []byte {
	t.Helper()
	f, err := os.Open(filepath.Join(dir.Path(), c.Name()))
	require.NoError(t, err)
	defer f.Close()
	b := make([]byte, n)
	_, err = f.ReadAt(b, off)
	require.NoError(t, err)
	return b
}

// TestWhatOtherSystemsLookAt reads the fields by which kernels decide about an image, byte by byte.
func TestWhatOtherSystemsLookAt(t *testing.T) {
	const size, part, region = 64 << 20, 1 << 20, 12 * 512
	le := binary.LittleEndian
	dir := fast(t)
	c, err := inprocess.New(nil).Create(t.Context(), dir, "img", engine.Spec{Format: "UDRW", Size: size, VolumeName: "Größe"})
	require.NoError(t, err)
	head := sectors(t, dir, c, 0, 3*512)
	assert.Equal(t, []byte{0x55, 0xAA}, head[510:512])
	assert.Equal(t, byte(0xEE), head[446+4], "protective MBR")
	assert.Equal(t, uint32(size/512-1), le.Uint32(head[446+12:]))
	assert.Equal(t, "EFI PART", string(head[512:520]))
	entry := head[1024:]
	assert.Equal(t, []byte{0xA2, 0xA0, 0xD0, 0xEB, 0xE5, 0xB9, 0x33, 0x44, 0x87, 0xC0, 0x68, 0xB6, 0xB7, 0x26, 0x99, 0xC7}, entry[:16], "Microsoft basic data, as hdiutil takes for exFAT")
	assert.Equal(t, uint64(part/512), le.Uint64(entry[32:]))
	assert.Zero(t, (le.Uint64(entry[40:])+1)%8, "ends on 4096 bytes")
	assert.Equal(t, "d\x00i\x00s\x00k\x00 \x00i\x00m\x00a\x00g\x00e\x00\x00\x00", string(entry[56:78]))
	assert.Equal(t, "EFI PART", string(sectors(t, dir, c, size-512, 512)[:8]), "the backup is in the last sector")

	flags := func() (uint16, byte) {
		b := sectors(t, dir, c, part, 512)
		return le.Uint16(b[106:]), b[112]
	}
	boot := sectors(t, dir, c, part, 2*region)
	assert.True(t, bytes.Equal(boot[:region], boot[region:]), "main and backup boot region")
	assert.Equal(t, "EXFAT   ", string(boot[3:11]))
	assert.Equal(t, make([]byte, 53), boot[11:64], "must be zero")
	assert.Equal(t, uint64(part/512), le.Uint64(boot[64:]), "partition offset")
	assert.Equal(t, (le.Uint64(entry[40:])-le.Uint64(entry[32:]))+1, le.Uint64(boot[72:]), "volume length")
	assert.Equal(t, []byte{0, 1}, boot[104:106], "revision 1.00")
	assert.Equal(t, []byte{9, 3, 1, 0x80}, boot[108:112], "512-byte sectors, 4 KiB clusters, one FAT, drive")
	heap := int64(le.Uint32(boot[88:])) * 512
	assert.Zero(t, (part+heap)%(1<<20), "clusters begin on 1 MiB of the image")
	assert.Equal(t, []byte{0xF8, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF}, sectors(t, dir, c, part+int64(le.Uint32(boot[80:]))*512, 8))
	root := sectors(t, dir, c, part+heap+int64(le.Uint32(boot[96:])-2)*4096, 96)
	assert.Equal(t, append([]byte{0x83, 5}, "G\x00r\x00\xf6\x00\xdf\x00e\x00"...), root[:12], "volume label")
	assert.Equal(t, byte(0x81), root[32])
	assert.Equal(t, uint64(le.Uint32(boot[92:])+7)/8, le.Uint64(root[32+24:]), "a bit for each cluster")
	assert.Equal(t, byte(0x82), root[64])
	assert.Equal(t, []uint32{0xE619D30D, 5836}, []uint32{le.Uint32(root[64+4:]), le.Uint32(root[64+24:])}, "the standard up-case table")

	a := attach(t, c)
	dirty, _ := flags()
	assert.Zero(t, dirty, "attached, but not changed")
	put(t, a.Volume(), "half", 30<<20)
	dirty, _ = flags()
	assert.EqualValues(t, 2, dirty, "VolumeDirty while in use")
	free, err := a.Volume().Free()
	require.NoError(t, err)
	detach(t, a)
	dirty, percent := flags()
	assert.Zero(t, dirty)
	total := int64(le.Uint32(boot[92:])) * 4096
	assert.EqualValues(t, (total-free)*100/total, percent, "PercentInUse")
	after := sectors(t, dir, c, part, 2*region)
	assert.Equal(t, boot[11*512:region], after[11*512:region], "the checksum leaves flags and percentage out")

	t.Run("sgdisk", func(t *testing.T) {
		needs(t, "sgdisk")
		out, err := exec.Command("sgdisk", "-v", filepath.Join(dir.Path(), c.Name())).CombinedOutput()
		require.NoError(t, err, "%s", out)
		assert.Contains(t, string(out), "No problems found")
	})
}

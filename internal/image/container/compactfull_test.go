package container

import (
	"bytes"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"dmgbench/internal/system/hostio"
	"dmgbench/internal/system/hostio/hostiotest"
)

// TestCompactOnAFullDisk: bands that move into holes take space. Where there is none, the image has to stay one that can be
// written to, as it cannot be while a compaction has to be finished.
func TestCompactOnAFullDisk(t *testing.T) {
	const band = 16 << 10
	faults := &hostiotest.Faults{}
	d := tempDir(t, hostio.WithHook(faults))
	require.NoError(t, createUDSP(d, "i", Spec{Size: 1 << 20, BandSize: band}))
	img, err := Open(d, "i", OpenOptions{})
	require.NoError(t, err)
	data := pattern(6*band, 1)
	clear(data[:2*band]) // what a compaction drops, and two bands go to
	_, err = img.WriteAt(data, 0)
	require.NoError(t, err)
	require.NoError(t, img.Flush())
	faults.FailNth(hostio.OpWrite, "i", 3, syscall.ENOSPC) // after the mark and the table
	_, err = img.Compact(nil)
	require.ErrorIs(t, err, syscall.ENOSPC)
	require.Error(t, img.Close())

	full := &hostiotest.Faults{}
	again, err := hostio.OpenDir(d.Path(), hostio.WithHook(full))
	require.NoError(t, err)
	defer again.Close()
	full.FailFrom(hostio.OpWrite, "i", 3, syscall.ENOSPC) // the table and its mark need no space
	img, err = Open(again, "i", OpenOptions{})
	require.NoError(t, err)
	got := make([]byte, len(data))
	_, err = img.ReadAt(got, 0)
	require.NoError(t, err)
	require.True(t, bytes.Equal(data, got))
	require.NoError(t, img.Close())
	list, err := Verify(d, "i", OpenOptions{})
	require.NoError(t, err)
	require.Empty(t, list)
}

// TestCompactKeepsHoles: what moves takes no more space than before.
func TestCompactKeepsHoles(t *testing.T) {
	for _, e := range []Encryption{{}, {Cipher: AES128, Passphrase: []byte("secret"), Iterations: 1000}} {
		for _, format := range []string{UDSP, ASIF} {
			if format == ASIF && !e.none() {
				continue
			}
			d := tempDir(t)
			require.NoError(t, Create(d, "i", Spec{Format: format, Size: 16 << 20, Encryption: e}))
			img, err := Open(d, "i", OpenOptions{Passphrase: e.Passphrase})
			require.NoError(t, err)
			data := pattern(64<<10, 2)
			for i := range int64(8) {
				if i == 0 {
					clear(data)
				}
				_, err = img.WriteAt(data, i<<20)
				require.NoError(t, err)
				copy(data, pattern(len(data), 2))
			}
			require.NoError(t, img.Flush())
			before, err := img.Usage()
			require.NoError(t, err)
			_, err = img.Compact(nil)
			require.NoError(t, err)
			after, err := img.Usage()
			require.NoError(t, err)
			require.Equal(t, before.Bands-1, after.Bands)
			require.LessOrEqual(t, after.Allocated, before.Allocated, format)
			got := make([]byte, 1<<20)
			_, err = img.ReadAt(got, 7<<20)
			require.NoError(t, err)
			require.True(t, bytes.Equal(got[:len(data)], data) && bytes.Count(got, []byte{0}) > 960<<10)
			require.NoError(t, img.Close())
		}
	}
}

package container

import (
	"context"
	"errors"
	"io/fs"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"dmgbench/internal/image/blockdev/blockdevtest"
)

// TestCreateUDIFWholeOrNotAtAll fails in every way that a caller can meet: nothing stays behind.
func TestCreateUDIFWholeOrNotAtAll(t *testing.T) {
	d := tempDir(t)
	dev := blockdevtest.NewMem(4 << 20)
	_, err := dev.WriteAt(pattern(3<<20, 1), 512)
	require.NoError(t, err)
	gone := func(name string) {
		_, err := d.Lstat(name)
		require.ErrorIs(t, err, fs.ErrNotExist)
	}
	canceled, cancel := context.WithCancel(t.Context())
	cancel()
	require.ErrorIs(t, CreateUDIF(canceled, d, "a", dev, UDIFSpec{Format: "UDZO"}), context.Canceled)
	gone("a")
	require.Error(t, CreateUDIF(t.Context(), d, "a", dev, UDIFSpec{Format: "UDXX"}))
	gone("a")
	boom := errors.New("boom")
	broken := dev.Clone()
	broken.Hook = func(op blockdevtest.Op, off, _ int64) error {
		if op == blockdevtest.OpRead && off >= 2<<20 {
			return boom
		}
		return nil
	}
	require.ErrorIs(t, CreateUDIF(t.Context(), d, "a", broken, UDIFSpec{Format: "ULFO"}), boom)
	gone("a")

	var last int64
	require.NoError(t, CreateUDIF(t.Context(), d, "a", dev, UDIFSpec{Format: "UDZO", Level: 9, Workers: 2, Progress: func(done, total int64) {
		assert.GreaterOrEqual(t, done, last)
		assert.Equal(t, dev.Size(), total)
		last = done
	}}))
	assert.Equal(t, dev.Size(), last)
	require.ErrorIs(t, CreateUDIF(t.Context(), d, "a", dev, UDIFSpec{Format: "UDZO"}), fs.ErrExist)
	found, err := Verify(d, "a", OpenOptions{})
	require.NoError(t, err)
	assert.Empty(t, found)
	img, err := Open(d, "a", OpenOptions{ReadOnly: true})
	require.NoError(t, err)
	assert.Equal(t, "UDZO", img.Format())
	want, got := make([]byte, dev.Size()), make([]byte, dev.Size())
	_, err = dev.ReadAt(want, 0)
	require.NoError(t, err)
	_, err = img.ReadAt(got, 0)
	require.NoError(t, err)
	require.Equal(t, want, got)
	require.NoError(t, img.Close())
}

package container

import (
	"context"
	"errors"
	"io"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"dmgbench/internal/image/blockdev"
	"dmgbench/internal/image/blockdev/blockdevtest"
	"dmgbench/internal/system/hostio"
)

// patched is a device with data, zeros between it, and an end that is no whole block.
func patched(t *testing.T) *blockdevtest.MemDevice {
	dev := blockdevtest.NewMem(9<<20 + 512)
	for i, off := range []int64{0, 3<<20 + 4096, 7<<20 - 512, 9 << 20} {
		p := pattern(int(min(int64(1<<20+i*512), dev.Size()-off)), uint64(i))
		for k := range p {
			p[k] &= 0x1F // so that it is compressed
		}
		_, err := dev.WriteAt(p, off)
		require.NoError(t, err)
	}
	return dev
}

func requireSame(t *testing.T, want, got blockdev.Device) {
	t.Helper()
	p, q := make([]byte, want.Size()), make([]byte, want.Size())
	for d, b := range map[blockdev.Device][]byte{want: p, got: q} {
		if _, err := d.ReadAt(b, 0); !errors.Is(err, io.EOF) {
			require.NoError(t, err)
		}
	}
	require.Equal(t, p, q)
}

// TestCopy copies from and to images of all ways of copying.
func TestCopy(t *testing.T) {
	d, dev := tempDir(t), patched(t)
	require.NoError(t, CreateUDIF(t.Context(), d, "packed", dev, UDIFSpec{Format: "UDZO"}))
	packed, err := Open(d, "packed", OpenOptions{ReadOnly: true})
	require.NoError(t, err)
	defer packed.Close()
	for _, format := range []string{UDRW, UDSB, UDSP} {
		for name, src := range map[string]blockdev.Device{"packed": packed, "plain": dev} {
			require.NoError(t, Create(d, format+name, Spec{Format: format, Size: dev.Size()}))
			img, err := Open(d, format+name, OpenOptions{})
			require.NoError(t, err)
			last := int64(0)
			require.NoError(t, Copy(t.Context(), img, src, func(done int64) {
				assert.GreaterOrEqual(t, done, last)
				last = done
			}))
			assert.Equal(t, dev.Size(), last)
			requireSame(t, dev, img)
			require.NoError(t, img.Close())
		}
	}
}

// TestCopyLeavesOut: zeros are not written.
func TestCopyLeavesOut(t *testing.T) {
	dev, dst := patched(t), blockdevtest.NewMem(9<<20+512)
	written := int64(0)
	dst.Hook = func(op blockdevtest.Op, _, n int64) error {
		if op == blockdevtest.OpWrite {
			written += n
		}
		return nil
	}
	require.NoError(t, Copy(t.Context(), dst, dev, nil))
	assert.Positive(t, written)
	assert.Less(t, written, int64(4<<20), "zeros are left out")
}

// TestCopyEndsWithErrors has everything fail that can.
func TestCopyEndsWithErrors(t *testing.T) {
	d, dev := tempDir(t), patched(t)
	require.NoError(t, CreateUDIF(t.Context(), d, "packed", dev, UDIFSpec{Format: "UDZO"}))
	f, err := d.Open("packed", hostio.OpenOptions{Write: true})
	require.NoError(t, err)
	_, err = f.WriteAt(pattern(64, 9), 3000)
	require.NoError(t, err)
	require.NoError(t, f.Close())
	packed, err := Open(d, "packed", OpenOptions{ReadOnly: true})
	require.NoError(t, err)
	defer packed.Close()
	require.NoError(t, Create(d, "raw", Spec{Format: UDRW, Size: dev.Size()}))
	img, err := Open(d, "raw", OpenOptions{})
	require.NoError(t, err)
	defer img.Close()
	require.ErrorIs(t, Copy(t.Context(), img, packed, nil), ErrCorrupt)

	boom := errors.New("boom")
	for _, bad := range []blockdevtest.Op{blockdevtest.OpRead, blockdevtest.OpWrite} {
		failing := dev.Clone()
		failing.Hook = func(op blockdevtest.Op, _, _ int64) error {
			if op == bad {
				return boom
			}
			return nil
		}
		src, dst := blockdev.Device(failing), blockdev.Device(blockdevtest.NewMem(dev.Size()))
		if bad == blockdevtest.OpWrite {
			src, dst = dev, failing
		}
		require.ErrorIs(t, Copy(t.Context(), dst, src, nil), boom)
	}
	canceled, cancel := context.WithCancel(t.Context())
	cancel()
	for _, src := range []blockdev.Device{packed, dev} {
		require.ErrorIs(t, Copy(canceled, img, src, nil), context.Canceled)
	}
}

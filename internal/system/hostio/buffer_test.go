package hostio_test

import (
	"testing"
	"unsafe"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	. "dmgbench/internal/system/hostio"
)

func TestAlignedBuffer(t *testing.T) {
	for n, align := range map[int]uintptr{
		1: 4096, 4096: 4096, 4097: 4096, 256 << 10: 2 << 20, 1 << 20: 2 << 20, 2_000_000: 2 << 20, 5<<20 + 1: 2 << 20,
	} {
		b, err := AlignedBuffer(n)
		require.NoError(t, err)
		require.Len(t, b.Bytes(), n)
		require.Equal(t, n, cap(b.Bytes()), "nothing behind the buffer can be reached")
		assert.Zero(t, uintptr(unsafe.Pointer(&b.Bytes()[0]))%align, n)
		b.Bytes()[n-1] = 1
		b.Free()
		b.Free()
		assert.Empty(t, b.Bytes())
	}
	_, err := AlignedBuffer(0)
	require.Error(t, err)
}

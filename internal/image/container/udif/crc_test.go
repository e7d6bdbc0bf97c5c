package udif

import (
	"encoding/binary"
	"hash/crc32"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// TestZerosNeedNotBeRead: the checksum of data and runs of zeros is that of all bytes.
func TestZerosNeedNotBeRead(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var c CRC
		var all []byte
		for _, piece := range rapid.SliceOf(rapid.SliceOf(rapid.Byte())).Draw(t, "pieces") {
			zeros := rapid.IntRange(0, 70_000).Draw(t, "zeros")
			_, _ = c.Write(piece)
			c.WriteZeros(int64(zeros))
			all = append(append(all, piece...), make([]byte, zeros)...)
		}
		require.Equal(t, crc32.ChecksumIEEE(all), binary.BigEndian.Uint32(c.Sum(nil)))
	})
}

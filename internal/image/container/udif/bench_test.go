package udif

import (
	"bytes"
	"io"
	"testing"

	"github.com/stretchr/testify/require"
)

// benchDevice is a device of some files that compress by about a half, and no holes.
func benchDevice() []byte {
	device := content(64<<20, 31)
	for i := 0; i < len(device); i += SectorSize {
		device[i] |= 1
	}
	return device
}

func BenchmarkUDZOToRaw(b *testing.B) {
	device := benchDevice()
	im := open(b, write(b, device, WriteOptions{Format: UDZO}), Options{})
	b.SetBytes(int64(len(device)))
	for b.Loop() {
		require.NoError(b, im.Copy(b.Context(), io.Discard, StreamOptions{}))
	}
}

func BenchmarkRawToUDZO(b *testing.B) {
	device := benchDevice()
	b.SetBytes(int64(len(device)))
	for b.Loop() {
		_, err := Write(b.Context(), io.Discard, bytes.NewReader(device), int64(len(device)), WriteOptions{Format: UDZO})
		require.NoError(b, err)
	}
}

func BenchmarkVerify(b *testing.B) {
	device := benchDevice()
	im := open(b, write(b, device, WriteOptions{Format: UDZO}), Options{})
	b.SetBytes(int64(len(device)))
	for b.Loop() {
		_, err := im.Verify(b.Context(), StreamOptions{})
		require.NoError(b, err)
	}
}

// BenchmarkReadCached is what a 4 KiB read costs when the chunk is in memory.
func BenchmarkReadCached(b *testing.B) {
	device := benchDevice()
	im := open(b, write(b, device, WriteOptions{Format: UDZO}), Options{Cache: 128 << 20})
	require.NoError(b, readThrough(im))
	b.SetBytes(4096)
	p, at := make([]byte, 4096), int64(0)
	for b.Loop() {
		if _, err := im.ReadAt(p, at); err != nil {
			b.Fatal(err)
		}
		at = (at + 7919*4096) % int64(len(device)-4096)
	}
}

// BenchmarkReadSequential reads the device in 128 KiB through the cache and its read-ahead.
func BenchmarkReadSequential(b *testing.B) {
	device := benchDevice()
	file := write(b, device, WriteOptions{Format: UDZO})
	b.SetBytes(int64(len(device)))
	for b.Loop() {
		require.NoError(b, readThrough(open(b, file, Options{})))
	}
}

func readThrough(im *Image) error {
	p := make([]byte, 128<<10)
	for at := int64(0); at < im.Size(); at += int64(len(p)) {
		if _, err := im.ReadAt(p, at); err != nil {
			return err
		}
	}
	return nil
}

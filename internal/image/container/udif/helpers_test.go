package udif

import (
	"bytes"
	"context"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

// images is the folder of images made by Apple's tools, beside the repository.
func images(t testing.TB) string {
	t.Helper()
	dir := filepath.Join("..", "..", "..", "..", "..", "shared", "images")
	if _, err := os.Stat(filepath.Join(dir, "README.md")); err != nil {
		t.Skip("the images of Apple's tools are not there: ", err)
	}
	return dir
}

// content is a device with everything that the writer treats differently: text, noise, zeros of all lengths.
func content(size int, seed uint64) []byte {
	random := rand.New(rand.NewPCG(seed, 1))
	device := make([]byte, size)
	words := []byte("the band the image and the container have one size each, said the reader to the writer; ")
	for at := 0; at < size; {
		n := min(size-at, SectorSize*(1+random.IntN(1<<(random.IntN(13)))))
		part := device[at : at+n]
		switch random.IntN(4) {
		case 0:
		case 1:
			for i := range part {
				part[i] = byte(random.Uint32())
			}
		default:
			for i := range part {
				part[i] = words[(i*7+i/97)%len(words)]
			}
		}
		at += n
	}
	return device
}

// write makes an image of the device in memory.
func write(t testing.TB, device []byte, o WriteOptions) []byte {
	t.Helper()
	var out bytes.Buffer
	written, err := Write(context.Background(), &out, bytes.NewReader(device), int64(len(device)), o)
	require.NoError(t, err)
	require.EqualValues(t, out.Len(), written)
	return out.Bytes()
}

func open(t testing.TB, file []byte, o Options) *Image {
	t.Helper()
	im, err := Open(bytes.NewReader(file), int64(len(file)), o)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, im.Close()) })
	return im
}

// readAll is the device by the parallel stream.
func readAll(t testing.TB, im *Image) []byte {
	t.Helper()
	var out bytes.Buffer
	require.NoError(t, im.Copy(context.Background(), &out, StreamOptions{}))
	return out.Bytes()
}

// requireSame compares two devices without printing them.
func requireSame(t testing.TB, want, got []byte) {
	t.Helper()
	require.Len(t, got, len(want))
	if bytes.Equal(want, got) {
		return
	}
	for i := range want {
		if want[i] != got[i] {
			t.Fatalf("the devices differ first at byte %d (sector %d): %#x, not %#x", i, i/SectorSize, got[i], want[i])
		}
	}
}

// requireVerified makes sure that every checksum was checked and agrees.
func requireVerified(t testing.TB, im *Image, absent int) {
	t.Helper()
	report, err := im.Verify(context.Background(), StreamOptions{})
	require.NoError(t, err)
	require.NoError(t, report.Err())
	require.Len(t, report, len(im.listed)+2)
	for _, c := range report {
		if c.Result == Absent {
			absent--
			continue
		}
		require.Equal(t, Agrees, c.Result, c.What)
	}
	require.Zero(t, absent, "absent checksums")
}

// readRandom reads the device in random pieces and compares them.
func readRandom(t testing.TB, im *Image, device []byte, reads int, seed uint64) {
	random := rand.New(rand.NewPCG(seed, 2))
	buffer := make([]byte, 3<<20)
	for range reads {
		n := random.IntN(1 + min(len(device), 1<<(1+random.IntN(21))))
		off := random.IntN(len(device) - n + 1)
		got, err := im.ReadAt(buffer[:n], int64(off))
		if got != n || err != nil {
			t.Errorf("reading %d bytes at %d: %d, %v", n, off, got, err)
			return
		}
		if !bytes.Equal(buffer[:n], device[off:off+n]) {
			t.Errorf("%d bytes at %d differ", n, off)
			return
		}
	}
}

// Copy writes the whole device to w, zeros too.
func (im *Image) Copy(ctx context.Context, w io.Writer, o StreamOptions) error {
	return im.Stream(ctx, o, func(p Piece) error {
		if p.Data != nil {
			_, err := w.Write(p.Data)
			return err
		}
		for left := p.Length; left > 0; {
			n, err := w.Write(zeros[:min(left, int64(len(zeros)))])
			if err != nil {
				return err
			}
			if left -= int64(n); ctx.Err() != nil {
				return context.Cause(ctx)
			}
		}
		return nil
	})
}

package udif

import (
	"bytes"
	"io"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// countingReader counts the bytes that are read.
type countingReader struct {
	io.ReaderAt
	bytes atomic.Int64
}

func (r *countingReader) ReadAt(p []byte, off int64) (int, error) {
	n, err := r.ReaderAt.ReadAt(p, off)
	r.bytes.Add(int64(n))
	return n, err
}

// TestVerifyRead: what was read in any way is not read again, what was not is, and a change is noticed all the same.
func TestVerifyRead(t *testing.T) {
	device := content(2<<20+512, 3)
	for _, format := range []Format{UDRO, UDZO, UFBI} {
		written := write(t, device, WriteOptions{Format: format})
		for how, read := range map[string]func(im *Image) error{
			"scattered": func(im *Image) error {
				return im.Stream(t.Context(), StreamOptions{AnyOrder: true}, func(Piece) error { return nil })
			},
			"streamed": func(im *Image) error { return im.Copy(t.Context(), io.Discard, StreamOptions{}) },
			"whole":    func(im *Image) error { _, err := im.ReadAt(make([]byte, len(device)), 0); return err },
			"in part": func(im *Image) error {
				for off := int64(0); off < int64(len(device))/2; off += 7000 {
					if _, err := im.ReadAt(make([]byte, 5000), off); err != nil {
						return err
					}
				}
				return nil
			},
			"not read": func(*Image) error { return nil },
		} {
			t.Run(string(format)+" "+how, func(t *testing.T) {
				file := bytes.Clone(written)
				for _, damage := range []bool{false, true} {
					if damage {
						change(t, file)
					}
					src := &countingReader{ReaderAt: bytes.NewReader(file)}
					im, err := Open(src, int64(len(file)), Options{})
					require.NoError(t, err)
					im.KeepSums()
					if err := read(im); err != nil {
						require.ErrorIs(t, err, ErrCorrupt)
					}
					src.bytes.Store(0)
					report, err := im.Verify(t.Context(), StreamOptions{})
					require.NoError(t, err)
					assert.Equal(t, damage, report.Err() != nil, "%v", report.Err())
					if !damage && format != UFBI && how != "in part" && how != "not read" {
						assert.Zero(t, src.bytes.Load(), "read again")
					}
					require.NoError(t, im.Close())
				}
			})
		}
	}
}

// change changes a byte amid the payload of the first run that has one.
func change(t *testing.T, file []byte) {
	im := open(t, file, Options{})
	for _, r := range im.runs {
		if !r.kind.hole() {
			file[r.offset+r.length/2]++
			return
		}
	}
	require.Fail(t, "no payload")
}

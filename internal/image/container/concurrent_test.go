package container

import (
	"bytes"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"dmgbench/internal/system/hostio"
)

// TestMappedConcurrently lets workers write, discard, flush and read back
// regions of their own at once, which share chunks at their borders.
func TestMappedConcurrently(t *testing.T) {
	const workers, region = 8, 40 * 700
	for _, c := range []struct {
		format string
		create func(d *hostio.Dir) error
	}{
		{UDSP, func(d *hostio.Dir) error {
			return createUDSP(d, "i", Spec{Size: workers*region + 512, BandSize: 512 * 3})
		}},
		{ASIF, createSmallASIF},
	} {
		t.Run(c.format, func(t *testing.T) {
			d := tempDir(t)
			require.NoError(t, c.create(d))
			f := &memStore{}
			var err error
			f.b, err = d.ReadFile("i", 1<<30)
			require.NoError(t, err)
			img, err := openChunked(f, c.format, OpenOptions{})
			require.NoError(t, err)
			var all sync.WaitGroup
			want := make([][]byte, workers)
			for w := range workers {
				want[w] = make([]byte, region)
				all.Go(func() { assert.NoError(t, worker(img, int64(w)*region, want[w], uint64(w))) })
			}
			all.Wait()
			require.NoError(t, img.Close())
			img, err = openChunked(f, c.format, OpenOptions{ReadOnly: true})
			require.NoError(t, err)
			for w := range workers {
				got := make([]byte, region)
				_, err := img.ReadAt(got, int64(w)*region)
				require.NoError(t, err)
				require.True(t, bytes.Equal(want[w], got), "region %d", w)
			}
		})
	}
}

func worker(img Image, base int64, want []byte, seed uint64) error {
	rnd := rand.New(rand.NewPCG(seed, 3))
	for turn := range 150 {
		off := rnd.IntN(len(want))
		n := rnd.IntN(len(want) - off)
		part, at := want[off:off+n], base+int64(off)
		var err error
		switch rnd.IntN(5) {
		case 0:
			clear(part)
			if err = img.Discard(at, int64(n)); errors.Is(err, hostio.ErrUnsupported) {
				_, err = img.WriteAt(part, at)
			}
		case 1:
			err = img.Flush()
		case 2:
			got := make([]byte, n)
			_, err = img.ReadAt(got, at)
			if err == nil && !bytes.Equal(got, part) {
				err = fmt.Errorf("turn %d: content at %d differs", turn, at)
			}
		default:
			copy(part, pattern(n, seed*1000+uint64(turn)))
			_, err = img.WriteAt(part, at)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

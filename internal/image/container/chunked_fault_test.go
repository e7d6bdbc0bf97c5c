package container

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"dmgbench/internal/system/hostio"
	"dmgbench/internal/system/hostio/hostiotest"
)

// failing is a life's steps on an image whose host fails at some call.
func failing(img Image, want map[int64]byte) error {
	rnd := rand.New(rand.NewPCG(7, 7))
	for turn := range 40 {
		off := rnd.Int64N(img.Size()/8192) * 8192
		err := error(nil)
		switch {
		case turn%13 == 12:
			_, err = img.Compact(nil)
		case turn%7 == 6:
			err = img.Discard(off, 4096)
			if err == nil {
				want[off] = 0
			}
		default:
			_, err = img.WriteAt(slices.Repeat([]byte{byte(turn + 1)}, 4096), off)
			if err == nil {
				want[off] = byte(turn + 1)
			}
		}
		if err == nil {
			err = img.Flush()
		}
		if err != nil {
			delete(want, off) // it may be either
			return err
		}
	}
	return img.Close()
}

// TestMappedHostFails lets every call of the host fail once, or the disk be
// full from some byte on: the error comes through, and the image opens
// afterwards with all that was flushed. Calls that move less than asked change nothing.
func TestMappedHostFails(t *testing.T) {
	for _, format := range []string{UDSP, ASIF} {
		for _, kind := range []hostio.Kind{hostio.OpWrite, hostio.OpSync, hostio.OpTruncate, hostio.OpPunch, hostio.OpRead} {
			t.Run(fmt.Sprint(format, " ", kind), func(t *testing.T) {
				t.Parallel()
				for k, struck := 1, true; struck; k += 1 + k/3 {
					struck = hostFails(t, format, fmt.Sprint(kind, k), func(f *hostiotest.Faults) { f.FailNth(kind, "", k, syscall.EIO) })
				}
			})
		}
		t.Run(format+" full", func(t *testing.T) {
			t.Parallel()
			for room, struck := int64(0), true; struck; room += 23_000 {
				struck = hostFails(t, format, fmt.Sprint("room", room), func(f *hostiotest.Faults) { f.NoSpaceAfter(room) })
			}
		})
		require.False(t, hostFails(t, format, "short", func(f *hostiotest.Faults) { f.ShortTransfers(1000) }))
	}
}

func hostFails(t *testing.T, format, name string, script func(f *hostiotest.Faults)) (struck bool) {
	faults := &hostiotest.Faults{}
	d := tempDir(t, hostio.WithHook(faults))
	if format == UDSP {
		require.NoError(t, createUDSP(d, "i", Spec{Size: 1 << 20, BandSize: 16 << 10}))
	} else {
		h := smallASIF(1 << 20)
		require.NoError(t, Encryption{}.createFile(d, "i", 0, h.write))
	}
	img, err := Open(d, "i", OpenOptions{Sync: hostio.SyncFsync})
	require.NoError(t, err, name)
	script(faults)
	want := map[int64]byte{}
	failed := failing(img, want)
	_ = img.Close()
	sane, err := hostio.OpenDir(d.Path())
	require.NoError(t, err)
	defer sane.Close()
	img, err = Open(sane, "i", OpenOptions{})
	require.NoError(t, err, "%s %s: %v", format, name, failed)
	for off, b := range want {
		got := make([]byte, 4096)
		_, err := img.ReadAt(got, off)
		require.NoError(t, err)
		require.Equal(t, slices.Repeat([]byte{b}, 4096), got, "%s %s: %v: at %d", format, name, failed, off)
	}
	require.NoError(t, img.Close())
	return failed != nil
}

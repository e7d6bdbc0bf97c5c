package container

import (
	"bytes"
	"errors"
	"syscall"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"dmgbench/internal/image/container/files"
	"dmgbench/internal/system/hostio"
	"dmgbench/internal/system/hostio/hostiotest"
)

func faulty(t *testing.T, s Spec, o OpenOptions) (*hostiotest.Faults, *hostio.Dir, Image) {
	t.Helper()
	faults := &hostiotest.Faults{}
	d := tempDir(t, hostio.WithHook(faults))
	require.NoError(t, Create(d, "i", s))
	img, err := Open(d, "i", o)
	require.NoError(t, err)
	t.Cleanup(func() { _ = img.Close() })
	return faults, d, img
}

func TestDiskFullWhileWriting(t *testing.T) {
	for _, cache := range []hostio.CacheMode{hostio.CacheBuffered, hostio.CacheDirect} {
		faults, d, img := faulty(t, Spec{Format: UDSB, Size: 8 << 20, BandSize: 1 << 20}, OpenOptions{Cache: cache})
		first := pattern(1<<20, 1)
		_, err := img.WriteAt(first, 0)
		require.NoError(t, err)
		require.NoError(t, img.Flush())
		faults.NoSpaceAfter(1<<20 + 4096)
		n, err := img.WriteAt(pattern(3<<20, 2), 1<<20)
		require.ErrorIs(t, err, syscall.ENOSPC)
		assert.Contains(t, err.Error(), d.Path()+"/i/bands/2")
		assert.Equal(t, 1<<20+4096, n, "what fitted")
		faults.NoSpaceAfter(-1)
		require.NoError(t, img.Flush())
		got := make([]byte, 1<<20)
		_, err = img.ReadAt(got, 0)
		require.NoError(t, err)
		assert.True(t, bytes.Equal(first, got), "data elsewhere is intact")
		_, err = img.WriteAt(pattern(3<<20, 2), 1<<20)
		require.NoError(t, err, "and it goes on when there is space")
	}
}

func TestDiskFullWhileCreatingLeavesNothing(t *testing.T) {
	for _, format := range []string{UDRW, UDSB, UDSP, ASIF} {
		faults := &hostiotest.Faults{}
		d := tempDir(t, hostio.WithHook(faults))
		faults.NoSpaceAfter(100)
		err := Create(d, "i", Spec{Format: format, Size: 1 << 20})
		require.ErrorIs(t, err, syscall.ENOSPC, format)
		list, err := d.ReadDir(".")
		require.NoError(t, err)
		assert.Empty(t, list, format)
	}
}

// TestRawWithoutPreallocation covers hosts whose file system has none.
func TestRawWithoutPreallocation(t *testing.T) {
	faults := &hostiotest.Faults{}
	d := tempDir(t, hostio.WithHook(faults))
	faults.FailFrom(hostio.OpAllocate, "", 1, hostio.ErrUnsupported)
	require.NoError(t, Create(d, "i", Spec{Format: UDRW, Size: 20<<20 + 512}))
	u, err := UsageOf(d, "i")
	require.NoError(t, err)
	assert.EqualValues(t, 20<<20+512, u.Apparent)
	assert.False(t, u.Sparse)
}

func TestDiscardWithoutHolesSaysSo(t *testing.T) {
	for _, format := range []string{UDRW, UDSB} {
		faults, _, img := faulty(t, Spec{Format: format, Size: 1 << 20}, OpenOptions{})
		_, err := img.WriteAt(pattern(1<<20, 1), 0)
		require.NoError(t, err)
		faults.FailFrom(hostio.OpPunch, "", 1, hostio.ErrUnsupported)
		require.ErrorIs(t, img.Discard(4096, 4096), errors.ErrUnsupported, format)
		got := make([]byte, 1<<20)
		_, err = img.ReadAt(got, 0)
		require.NoError(t, err)
		assert.True(t, bytes.Equal(pattern(1<<20, 1), got), "content is unchanged")
	}
}

func TestFailedFlushIsReportedAndRemembered(t *testing.T) {
	for _, c := range []struct {
		format string
		kind   hostio.Kind
	}{{UDRW, hostio.OpSync}, {UDSB, hostio.OpSync}, {UDSB, hostio.OpDirSync}, {UDSP, hostio.OpSync}, {ASIF, hostio.OpSync}} {
		faults, _, img := faulty(t, Spec{Format: c.format, Size: 32 << 20}, OpenOptions{})
		_, err := img.WriteAt(pattern(10<<20, 1), 0)
		require.NoError(t, err)
		faults.FailNth(c.kind, "", 1, syscall.EIO)
		require.ErrorIs(t, img.Flush(), syscall.EIO, c)
		require.ErrorIs(t, img.Flush(), syscall.EIO, "a lost write is not forgotten")
		require.ErrorIs(t, img.Close(), syscall.EIO)
	}
}

// TestFlushCoversWhatTheRecyclerClosed: a dirty band whose descriptor was
// given up is still synced.
func TestFlushCoversWhatTheRecyclerClosed(t *testing.T) {
	rec := &hostiotest.Recorder{}
	d := tempDir(t, hostio.WithHook(rec))
	require.NoError(t, Create(d, "i", Spec{Format: UDSB, Size: 16 << 20, BandSize: 1 << 20}))
	img, err := Open(d, "i", OpenOptions{})
	require.NoError(t, err)
	img.(*bundle).open = &openBands{limit: 2}
	_, err = img.WriteAt(pattern(16<<20, 1), 0)
	require.NoError(t, err)
	assert.LessOrEqual(t, len(img.(*bundle).open.list), 2)
	rec.Reset()
	require.NoError(t, img.Flush())
	synced := map[string]bool{}
	for _, op := range rec.Ops() {
		synced[string(op.Kind)+op.Path] = true
	}
	for n := range int64(16) {
		assert.True(t, synced["synci/bands/"+files.BandName(n)], n)
	}
	assert.True(t, synced["dirsynci/bands"])
	rec.Reset()
	require.NoError(t, img.Flush())
	assert.Empty(t, rec.Ops(), "a clean image has nothing to flush")
	require.NoError(t, img.Close())
}

// TestOpensAfterEveryCrash replays every prefix of a small life of a bundle:
// from the moment that Create returned it opens, and shows the data of the
// last flush outside what was being changed.
func TestOpensAfterEveryCrash(t *testing.T) {
	rec := &hostiotest.Recorder{}
	d := tempDir(t, hostio.WithHook(rec))
	require.NoError(t, Create(d, "i", Spec{Format: UDSB, Size: 5 << 20, BandSize: 1 << 20}))
	created := len(rec.Ops())
	img, err := Open(d, "i", OpenOptions{Cache: hostio.CacheDirect})
	require.NoError(t, err)
	fixed := pattern(10_000, 1)
	_, err = img.WriteAt(fixed, 0)
	require.NoError(t, err)
	require.NoError(t, img.Flush())
	flushed := len(rec.Ops())
	for _, do := range []func() error{
		func() error { _, err := img.WriteAt(pattern(1_500_000, 2), 1<<20-300_000); return err },
		img.Flush,
		func() error { return img.Discard(1<<20, 1<<20) },
		func() error { return img.Discard(100_000, 500_000) },
		func() error { return img.Resize(3<<19 + 512) },
		func() error { return img.Resize(9 << 20) },
		func() error { _, err := img.WriteAt(pattern(5000, 3), 9<<20-5000); return err },
		func() error { _, err := img.Compact(nil); return err },
		img.Close,
	} {
		require.NoError(t, do())
	}
	sizes := map[int64]bool{}
	for i := range len(rec.Ops()) + 1 {
		dst := tempDir(t)
		require.NoError(t, rec.Replay(0, i, dst, nil))
		after, err := Open(dst, "i", OpenOptions{})
		if i < created {
			if err == nil {
				require.NoError(t, after.Close())
			}
			if _, err := dst.Lstat("i"); err == nil {
				require.NoError(t, Remove(dst, "i"), "half made after %d operations", i)
			}
			continue
		}
		require.NoError(t, err, "after %d operations", i)
		sizes[after.Size()] = true
		if i >= flushed {
			got := make([]byte, len(fixed))
			_, err = after.ReadAt(got, 0)
			require.NoError(t, err)
			require.True(t, bytes.Equal(fixed, got), "after %d operations", i)
		}
		if after.Size() == 9<<20 {
			got := make([]byte, 1<<20)
			_, err = after.ReadAt(got, 2<<20)
			require.NoError(t, err)
			require.True(t, isZero(got), "what a resize cut away does not come back")
		}
		require.NoError(t, after.Close())
	}
	assert.Len(t, sizes, 3, "old, smaller, larger")
}

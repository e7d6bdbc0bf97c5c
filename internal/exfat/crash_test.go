package exfat

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"dmgbench/internal/blockdev"
)

// TestCrashAtEveryChange cuts the power before every write, flush and discard of a workload. Whatever was synchronised
// before must be there, and Repair must be able to make the volume clean: a crash may lose clusters, never mix files.
func TestCrashAtEveryChange(t *testing.T) {
	cuts := 0
	for cut := 1; ; cut++ {
		dev, v := newVolume(t, 1<<20, FormatOptions{})
		safe := map[string][]byte{}
		dev.Hook = cutAfter(cut)
		err := crashWorkload(v, safe)
		dev.Hook = nil
		verifyAfterCrash(t, dev, safe)
		if err == nil {
			break
		}
		require.ErrorIs(t, err, errCut)
		cuts++
	}
	assert.Greater(t, cuts, 60)
}

// crashWorkload notes in safe what must survive, whatever follows.
func crashWorkload(v *Volume, safe map[string][]byte) error {
	if err := v.Mkdir("d"); err != nil {
		return err
	}
	for i := range 12 {
		name := fmt.Sprintf("d/file with a name of some length %d", i)
		data := noise(uint64(i), 20_000+i*5000)
		f, err := v.Create(name, int64(len(data)/(1+i%2))) // every second one grows
		if err != nil {
			return err
		}
		if _, err := f.WriteAt(data, 0); err != nil {
			return err
		}
		if err := f.Sync(); err != nil {
			return err
		}
		safe[name] = data
		if i%4 == 3 {
			delete(safe, name) // while it is cut, it may be either
			if err := f.Truncate(9000); err != nil {
				return err
			}
			safe[name] = data[:9000]
		}
		if err := f.Close(); err != nil {
			return err
		}
		if i%3 == 2 {
			gone := fmt.Sprintf("d/file with a name of some length %d", i-1)
			delete(safe, gone)
			if err := v.Remove(gone); err != nil {
				return err
			}
		}
	}
	if err := v.Sync(); err != nil {
		return err
	}
	if _, err := v.Trim(0); err != nil {
		return err
	}
	return v.Unmount()
}

func verifyAfterCrash(t *testing.T, dev *blockdev.MemDevice, safe map[string][]byte) {
	t.Helper()
	r, err := Check(dev, CheckOptions{Repair: true})
	require.NoError(t, err)
	for _, f := range r.Findings {
		switch f.Kind {
		case DirtyFlag, BitmapLost, ChainLong: // a crash costs no more than this
		default:
			t.Fatalf("unexpected after a crash: %v", r.Findings)
		}
	}
	requireClean(t, dev)
	v := mount(t, dev)
	for name, want := range safe {
		requireSame(t, want, readFile(t, v, name), name)
	}
	require.NoError(t, v.Unmount())
}

// TestErrorIsRetried lets every change fail once: the error is reported, and the next Sync makes all good.
func TestErrorIsRetried(t *testing.T) {
	for fail := 1; fail < 12; fail++ {
		dev, v := newVolume(t, 1<<20, FormatOptions{})
		f, err := v.Create("f", 30_000)
		require.NoError(t, err)
		_, err = f.WriteAt(noise(1, 30_000), 0)
		require.NoError(t, err)
		require.NoError(t, v.Mkdir("d"))
		n := 0
		dev.Hook = func(op blockdev.Op, off, length int64) error {
			if n++; n == fail {
				return errCut
			}
			return nil
		}
		err = f.Sync()
		dev.Hook = nil
		if err == nil {
			assert.Greater(t, fail, 3)
			break
		}
		require.ErrorIs(t, err, errCut)
		require.NoError(t, f.Sync())
		require.NoError(t, f.Close())
		require.NoError(t, v.Unmount())
		requireClean(t, dev)
		requireSame(t, noise(1, 30_000), readFile(t, mount(t, dev), "f"), "f")
	}
}

func TestReadAndWriteErrorsReachTheCaller(t *testing.T) {
	dev, v := newVolume(t, 1<<20, FormatOptions{})
	f, err := v.Create("some name", 10_000)
	require.NoError(t, err)
	dev.Hook = func(op blockdev.Op, off, n int64) error { return errCut }
	_, err = f.WriteAt(noise(1, 10_000), 0)
	require.ErrorIs(t, err, errCut)
	assert.ErrorContains(t, err, `writing "some name": `)
	_, err = f.ReadAt(make([]byte, 10), 0)
	require.NoError(t, err, "never written: no read is needed")
	dev.Hook = nil
	_, err = f.WriteAt(noise(1, 10_000), 0)
	require.NoError(t, err)
	dev.Hook = func(op blockdev.Op, off, n int64) error { return errCut }
	_, err = f.ReadAt(make([]byte, 10), 0)
	require.ErrorIs(t, err, errCut)
	assert.ErrorContains(t, err, `reading "some name": `)
	require.ErrorIs(t, f.Sync(), errCut)
	require.ErrorIs(t, v.Mkdir("d"), errCut)
	require.ErrorIs(t, v.Sync(), errCut)
	dev.Hook = nil
	require.NoError(t, f.Close())
	require.NoError(t, v.Unmount())
	requireClean(t, dev)
}

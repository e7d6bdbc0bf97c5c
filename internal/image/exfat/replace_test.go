package exfat

import (
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"dmgbench/internal/image/blockdev/blockdevtest"
)

// TestCrashInReplace cuts what programs do that save a file: whatever reaches the device, the name has the old content
// or the new.
func TestCrashInReplace(t *testing.T) {
	before, after := noise(1, 999), noise(2, 1999)
	r := rand.New(rand.NewPCG(5, 6))
	for _, from := range []string{"d/a name of more than fifteen characters", "short", "e/short"} {
		base, v := newVolume(t, 1<<20, FormatOptions{})
		require.NoError(t, v.Mkdir("d"))
		require.NoError(t, v.Mkdir("e"))
		for i := range 100 { // three pages of names, with the saved one in the second
			if i == 60 {
				writeFile(t, v, "d/saved", before)
			}
			f, err := v.Create(fmt.Sprintf("d/%d", i), 0)
			require.NoError(t, err)
			require.NoError(t, f.Close())
		}
		require.NoError(t, v.Remove("d/7"))
		writeFile(t, v, from, after)
		require.NoError(t, v.Unmount())
		for cut := 1; ; cut++ {
			states, err := cutAmid(t, base.Clone(), cut, r, func(v *Volume) error {
				// An access long ago must not make the new name look like the older one.
				long := epoch.AddDate(-30, 0, 0)
				return errors.Join(v.Replace(from, "d/saved"), v.SetTimes("d/saved", &long, nil))
			})
			for _, found := range states {
				requireEither(t, found, "d/saved", before, after)
				if from == "e/short" { // between folders nothing is lost
					requireUnder(t, found, after, "short", "saved")
				}
				requireOneName(t, found, from, "d/saved", before, after)
			}
			if err == nil {
				assert.Greater(t, cut, 2)
				break
			}
			require.ErrorIs(t, err, errCut)
		}
	}
}

func requireEither(t *testing.T, dev *blockdevtest.MemDevice, name string, before, after []byte) {
	t.Helper()
	v := mount(t, dev)
	i, err := v.Stat(name)
	require.NoError(t, err)
	want := before
	if i.Size == int64(len(after)) {
		want = after
	}
	requireSame(t, want, readFile(t, v, name), name)
}

// requireOneName repairs a volume where a crash may have left one file two names, and does what programs do with a
// left one.
func requireOneName(t *testing.T, dev *blockdevtest.MemDevice, from, to string, before, after []byte) {
	t.Helper()
	_, err := Check(dev, CheckOptions{Repair: true})
	require.NoError(t, err)
	requireClean(t, dev)
	requireEither(t, dev, to, before, after)
	v := mount(t, dev)
	if err := v.Remove(from); err != nil {
		require.ErrorIs(t, err, fs.ErrNotExist)
	}
	writeFile(t, v, "all the rest", noise(3, int(v.Free())))
	require.NoError(t, v.Unmount())
	requireEither(t, dev, to, before, after)
	requireClean(t, dev)
}

func TestReplace(t *testing.T) {
	dev, v := newVolume(t, 1<<20, FormatOptions{})
	for _, name := range []string{"d", "d/full", "d/full/x", "empty", "other"} {
		require.NoError(t, v.Mkdir(name))
	}
	writeFile(t, v, "a", noise(1, 9000))
	writeFile(t, v, "d/b", noise(2, 5000))
	require.ErrorIs(t, v.Replace("none", "a"), fs.ErrNotExist)
	require.ErrorIs(t, v.Replace("a", "empty"), ErrIsDir)
	require.ErrorIs(t, v.Replace("empty", "a"), ErrNotDir)
	require.ErrorIs(t, v.Replace("empty", "d/full"), ErrNotEmpty)
	require.ErrorIs(t, v.Replace("d", "d/full/x"), fs.ErrInvalid)
	require.ErrorIs(t, v.Rename("a", "d/b"), fs.ErrExist)
	replaced, err := v.Open("d/b")
	require.NoError(t, err)
	free := v.Free()

	f, err := v.Open("a") // what moves may be open
	require.NoError(t, err)
	require.NoError(t, v.Replace("a", "d/B"))
	require.NoError(t, v.Replace("d/B", "d/b"), "a change of case alone")
	got := make([]byte, 5000)
	_, err = replaced.ReadAt(got, 0)
	require.NoError(t, err)
	requireSame(t, noise(2, 5000), got, "what was replaced while it was open")
	require.NoError(t, v.Sync())
	assert.Equal(t, free, v.Free(), "its clusters are in use until it is closed")
	require.NoError(t, replaced.Close())
	_, err = f.WriteAt([]byte("new"), 0)
	require.NoError(t, err)
	require.NoError(t, f.Close())
	assert.Equal(t, free+8192, v.Free())
	require.NoError(t, v.Replace("empty", "other"))
	require.NoError(t, v.Replace("other", "d/full/x"))
	require.NoError(t, v.Replace("d/b", "as rename"))
	require.NoError(t, v.Unmount())
	requireClean(t, dev)
	v = mount(t, dev)
	requireSame(t, append([]byte("new"), noise(1, 9000)[3:]...), readFile(t, v, "as rename"), "as rename")
	var names []string
	require.NoError(t, v.Walk("", func(name string, _ Info) error { names = append(names, name); return nil }, nil))
	assert.ElementsMatch(t, []string{"d", "d/full", "d/full/x", "as rename"}, names)
}

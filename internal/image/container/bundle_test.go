package container

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"dmgbench/internal/system/hostio"
)

const realBundle = "../../../../shared/images/sparsebundlefs-lib/Test1.sparsebundle"

func digest(t *testing.T, img Image) string {
	t.Helper()
	data := make([]byte, img.Size())
	_, err := img.ReadAt(data, 0)
	require.NoError(t, err)
	sum := sha256.Sum256(data)
	return hex.EncodeToString(sum[:])
}

func TestBundleMadeByApple(t *testing.T) {
	if _, err := os.Stat(realBundle); err != nil {
		t.Skipf("no real bundle: %v", err)
	}
	const want = "2ee8196920a422db4bab64f36b3cf01e06d1962c5f53180cf0eeaa9f540ff8e7"
	d := tempDir(t)
	require.NoError(t, os.CopyFS(filepath.Join(d.Path(), "b"), os.DirFS(realBundle)))
	for _, e := range []string{"Info.plist", "Info.bckup", "token"} {
		require.NoError(t, os.Chmod(filepath.Join(d.Path(), "b", e), 0o644))
	}
	for _, o := range []OpenOptions{{ReadOnly: true}, {Cache: hostio.CacheDirect}} {
		img, err := Open(d, "b", o)
		require.NoError(t, err)
		assert.Equal(t, UDSB, img.Format())
		assert.EqualValues(t, 1<<20, img.BandSize())
		assert.Equal(t, want, digest(t, img))
		u, err := img.Usage()
		require.NoError(t, err)
		assert.Equal(t, 5, u.Bands)
		assert.Equal(t, 5, u.BandsFull)
		require.NoError(t, img.Close())
	}
	found, err := Verify(d, "b", OpenOptions{})
	require.NoError(t, err)
	assert.Empty(t, found)

	apple, err := d.ReadFile("b/Info.plist", infoLimit)
	require.NoError(t, err)
	require.NoError(t, Create(d, "ours", Spec{Format: UDSB, Size: 5242880, BandSize: 1 << 20}))
	ours, err := d.ReadFile("ours/Info.plist", infoLimit)
	require.NoError(t, err)
	assert.Equal(t, string(apple), string(ours), "byte for byte Apple's layout")
}

func TestCreateLaysOutWhatAppleDoes(t *testing.T) {
	d := tempDir(t)
	require.NoError(t, Create(d, "b", Spec{Format: UDSB, Size: 100 << 20}))
	list, err := d.ReadDir("b")
	require.NoError(t, err)
	var names []string
	for _, e := range list {
		names = append(names, e.Name())
	}
	assert.Equal(t, []string{"Info.bckup", "Info.plist", "bands", "lock", "token"}, names)
	img, err := Open(d, "b", OpenOptions{})
	require.NoError(t, err)
	defer img.Close()
	assert.EqualValues(t, 8<<20, img.BandSize())

	_, err = img.ReadAt(make([]byte, 50<<20), 0)
	require.NoError(t, err)
	_, err = img.WriteAt(make([]byte, 600), 11*8<<20+100)
	require.NoError(t, err)
	require.NoError(t, img.Flush())
	bands, err := d.ReadDir("b/bands")
	require.NoError(t, err)
	require.Len(t, bands, 1, "reading makes no bands")
	assert.Equal(t, "b", bands[0].Name(), "lower-case hexadecimal")
	require.NoError(t, img.Close())
	fi, err := d.Lstat("b/bands/b")
	require.NoError(t, err)
	assert.EqualValues(t, 4096, fi.Size(), "ends after the last block written")

	img, err = Open(d, "b", OpenOptions{})
	require.NoError(t, err)
	defer img.Close()
	require.NoError(t, img.Discard(88<<20, 8<<20))
	bands, err = d.ReadDir("b/bands")
	require.NoError(t, err)
	assert.Empty(t, bands)
}

func TestRawIsAllocatedInFullAndGoesSparseByTrim(t *testing.T) {
	d := tempDir(t)
	require.NoError(t, Create(d, "r.dmg", Spec{Format: UDRW, Size: 8 << 20}))
	u, err := UsageOf(d, "r.dmg")
	require.NoError(t, err)
	assert.EqualValues(t, 8<<20, u.Apparent)
	assert.GreaterOrEqual(t, u.Allocated, int64(8<<20))
	assert.False(t, u.Sparse)
	img, err := Open(d, "r.dmg", OpenOptions{})
	require.NoError(t, err)
	defer img.Close()
	if err := img.Discard(1<<20, 4<<20); errors.Is(err, hostio.ErrUnsupported) {
		t.Skip("no holes here")
	}
	u, err = img.Usage()
	require.NoError(t, err)
	assert.True(t, u.Sparse)
	assert.InDelta(t, 4<<20, u.Allocated, 64<<10)
}

func TestCreateRefuses(t *testing.T) {
	d := tempDir(t)
	require.NoError(t, d.Mkdir("taken"))
	for name, s := range map[string]Spec{
		"size 0":         {Format: UDRW},
		"odd size":       {Format: UDRW, Size: 1000},
		"negative":       {Format: UDSB, Size: -512},
		"enormous":       {Format: UDSB, Size: 1 << 62},
		"small band":     {Format: UDSB, Size: 1 << 30, BandSize: 1<<20 - 512},
		"large band":     {Format: UDSB, Size: 1 << 40, BandSize: 8<<30 + 512},
		"odd band":       {Format: UDSB, Size: 1 << 30, BandSize: 1<<20 + 1},
		"bands in UDRW":  {Format: UDRW, Size: 1 << 20, BandSize: 1 << 20},
		"unknown format": {Format: "ULMO", Size: 1 << 20},
	} {
		assert.Error(t, Create(d, "x", s), name)
		_, err := d.Lstat("x")
		assert.ErrorIs(t, err, fs.ErrNotExist, name)
	}
	assert.ErrorIs(t, Create(d, "taken", Spec{Format: UDSB, Size: 1 << 20}), fs.ErrExist)
	assert.ErrorIs(t, Create(d, "taken", Spec{Format: UDRW, Size: 1 << 20}), fs.ErrExist)
}

func TestOneWriterAtATime(t *testing.T) {
	for _, format := range []string{UDRW, UDSB} {
		d := tempDir(t)
		require.NoError(t, Create(d, "i", Spec{Format: format, Size: 1 << 20}))
		img, err := Open(d, "i", OpenOptions{})
		require.NoError(t, err)
		_, err = Open(d, "i", OpenOptions{})
		require.ErrorIs(t, err, ErrInUse, format)
		require.ErrorIs(t, Remove(d, "i"), ErrInUse, format)
		reader, err := Open(d, "i", OpenOptions{ReadOnly: true})
		require.NoError(t, err, format)
		_, err = reader.WriteAt(make([]byte, 512), 0)
		require.ErrorIs(t, err, ErrReadOnly)
		require.ErrorIs(t, reader.Discard(0, 512), ErrReadOnly)
		require.ErrorIs(t, reader.Resize(512), ErrReadOnly)
		require.NoError(t, reader.Flush())
		require.NoError(t, reader.Close())
		require.NoError(t, img.Close())
		require.ErrorIs(t, img.Close(), fs.ErrClosed)
		_, err = img.ReadAt(make([]byte, 1), 0)
		require.ErrorIs(t, err, fs.ErrClosed)
		require.NoError(t, Remove(d, "i"))
		require.ErrorIs(t, Remove(d, "i"), fs.ErrNotExist)
	}
}

func TestContainerReplacedWhileOpen(t *testing.T) {
	for _, format := range []string{UDRW, UDSB} {
		for _, how := range []string{"deleted", "link", "other"} {
			t.Run(format+" "+how, func(t *testing.T) {
				d := tempDir(t)
				foreign := filepath.Join(t.TempDir(), "foreign")
				require.NoError(t, os.MkdirAll(filepath.Join(foreign, "bands"), 0o755))
				require.NoError(t, Create(d, "i", Spec{Format: format, Size: 64 << 20}))
				img, err := Open(d, "i", OpenOptions{})
				require.NoError(t, err)
				_, err = img.WriteAt(pattern(4096, 1), 0)
				require.NoError(t, err)
				require.NoError(t, img.Flush())
				switch how {
				case "deleted":
					require.NoError(t, os.RemoveAll(filepath.Join(d.Path(), "i")))
				case "link":
					require.NoError(t, d.Rename("i", "moved"))
					require.NoError(t, os.Symlink(foreign, filepath.Join(d.Path(), "i")))
				case "other":
					require.NoError(t, d.Rename("i", "moved"))
					require.NoError(t, Create(d, "i", Spec{Format: format, Size: 64 << 20}))
				}
				_, errWrite := img.WriteAt(pattern(4096, 2), 40<<20) // a new band
				err = errors.Join(errWrite, img.Flush())
				require.Error(t, err)
				assert.Contains(t, err.Error(), filepath.Join(d.Path(), "i"))
				if errWrite == nil {
					assert.ErrorIs(t, err, hostio.ErrReplaced)
				}
				_, err = img.Usage()
				assert.ErrorIs(t, err, hostio.ErrReplaced)
				_, err = img.Compact(nil)
				assert.Error(t, err)
				assert.Error(t, img.Resize(32<<20))
				assert.Error(t, img.Close())
				if how == "link" {
					_, err = Open(d, "i", OpenOptions{})
					assert.ErrorIs(t, err, hostio.ErrNotRegular)
					assert.ErrorIs(t, Remove(d, "i"), hostio.ErrNotRegular)
				}
				left, err := os.ReadDir(filepath.Join(foreign, "bands"))
				require.NoError(t, err)
				assert.Empty(t, left, "nothing foreign is touched")
			})
		}
	}
}

func TestCompactTellsWhatItGaveBack(t *testing.T) {
	d := tempDir(t)
	require.NoError(t, Create(d, "b", Spec{Format: UDSB, Size: 8 << 20, BandSize: 1 << 20}))
	img, err := Open(d, "b", OpenOptions{})
	require.NoError(t, err)
	defer img.Close()
	_, err = img.WriteAt(pattern(3<<20, 4), 0)
	require.NoError(t, err)
	_, err = img.WriteAt(make([]byte, 2<<20), 4<<20)
	require.NoError(t, err)
	require.NoError(t, img.Flush())
	got, err := img.Compact(nil)
	require.NoError(t, err)
	assert.InDelta(t, 2<<20, got, 64<<10, "the bands of zeros")
	got, err = img.Compact(func(off, n int64) bool { return off >= 1<<20 })
	require.NoError(t, err)
	assert.InDelta(t, 1<<20, got, 64<<10)
	u, err := img.Usage()
	require.NoError(t, err)
	assert.Equal(t, 2, u.Bands)
}

func TestManyWorkersOnSameAndDifferentBands(t *testing.T) {
	for _, format := range []string{UDRW, UDSB} {
		d := tempDir(t)
		require.NoError(t, Create(d, "i", Spec{Format: format, Size: 40 << 20}))
		img, err := Open(d, "i", OpenOptions{Cache: hostio.CacheDirect, Sync: hostio.SyncFsync})
		require.NoError(t, err)
		if b, ok := img.(*bundle); ok {
			b.open = &openBands{limit: 2}
		}
		var wg sync.WaitGroup
		for w := range 20 {
			wg.Go(func() {
				mine := pattern(100_000, uint64(w))
				for turn := range 6 {
					// Stripes of all workers alternate inside every band.
					off := int64(turn)*(6<<20) + int64(w)*100_000
					_, err := img.WriteAt(mine, off)
					assert.NoError(t, err)
					got := make([]byte, len(mine))
					_, err = img.ReadAt(got, off)
					assert.NoError(t, err)
					assert.Equal(t, mine, got)
					if w%5 == 0 {
						assert.NoError(t, img.Flush())
					}
					if w%7 == 0 {
						assert.NoError(t, img.Evict(0, img.Size()))
					}
				}
			})
		}
		wg.Wait()
		require.NoError(t, img.Close())
		img, err = Open(d, "i", OpenOptions{ReadOnly: true})
		require.NoError(t, err)
		for w := range 20 {
			for turn := range 6 {
				got := make([]byte, 100_000)
				_, err := img.ReadAt(got, int64(turn)*(6<<20)+int64(w)*100_000)
				require.NoError(t, err)
				require.Equal(t, pattern(100_000, uint64(w)), got, fmt.Sprint(format, w, turn))
			}
		}
		require.NoError(t, img.Close())
	}
}

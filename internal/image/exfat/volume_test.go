package exfat

import (
	"fmt"
	"io/fs"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"dmgbench/internal/image/blockdev"
	"dmgbench/internal/image/blockdev/blockdevtest"
)

func TestRoundTripOverRemounts(t *testing.T) {
	for _, cluster := range []int64{512, 4096, 32768} {
		t.Run(fmt.Sprint(cluster), func(t *testing.T) {
			dev, v := newVolume(t, 16<<20, FormatOptions{Label: "Tëst", ClusterSize: cluster})
			require.NoError(t, v.Mkdir("dir"))
			require.NoError(t, v.Mkdir("dir/Ünter"))
			sizes := []int{0, 1, 511, 512, 513, 4095, 4096, 4097, 100_000, 1_000_001}
			for i, n := range sizes {
				writeFile(t, v, fmt.Sprintf("dir/Ünter/file %d.bin", n), noise(uint64(i), n))
			}
			require.NoError(t, v.Unmount())
			v = mount(t, dev)
			assert.False(t, v.State().Dirty)
			assert.Equal(t, "Tëst", v.Label())
			for i, n := range sizes {
				requireSame(t, noise(uint64(i), n), readFile(t, v, fmt.Sprintf("DIR/üNTER/FILE %d.BIN", n)), fmt.Sprint(n))
			}
			infos, err := v.List("dir/Ünter")
			require.NoError(t, err)
			require.Len(t, infos, len(sizes))
			assert.Equal(t, "file 0.bin", infos[0].Name)
			assert.True(t, epoch.Truncate(10e6).Equal(infos[3].Modified), infos[3].Modified)
			var seen []string
			require.NoError(t, v.Walk("/", func(p string, i Info) error { seen = append(seen, p); return nil }, nil))
			assert.Len(t, seen, len(sizes)+2)
			require.NoError(t, v.Unmount())
		})
	}
}

func TestFoldersStayThemselves(t *testing.T) {
	_, v := newVolume(t, 16<<20, FormatOptions{})
	require.NoError(t, v.Mkdir("a"))
	require.NoError(t, v.Mkdir("a/b"))
	f, err := v.Sub("a/b")
	require.NoError(t, err)
	file, err := f.Create("file", 5)
	require.NoError(t, err)
	require.NoError(t, file.Close())
	require.NoError(t, v.Rename("a", "c"))
	require.NoError(t, f.Replace("file", "other"))
	i, err := v.Stat("c/b/other")
	require.NoError(t, err)
	assert.Equal(t, int64(5), i.Size)
	_, err = v.Sub("c/b/other")
	require.ErrorIs(t, err, ErrNotDir)
	require.NoError(t, f.Remove("other"))
	require.NoError(t, v.Remove("c/b"))
	require.ErrorIs(t, f.Mkdir("late"), fs.ErrNotExist, "its clusters may be those of a file now")
	_, err = f.List("")
	require.ErrorIs(t, err, fs.ErrNotExist)
}

func TestVolumeDirtyFlag(t *testing.T) {
	dev, v := newVolume(t, 4<<20, FormatOptions{})
	writes := 0
	dev.Hook = func(op blockdevtest.Op, off, n int64) error {
		if op == blockdevtest.OpWrite {
			writes++
		}
		return nil
	}
	_, err := v.List("/")
	require.NoError(t, err)
	require.NoError(t, v.Unmount())
	assert.Zero(t, writes, "looking changes nothing")
	dev.Hook = nil

	v = mount(t, dev)
	require.NoError(t, v.Mkdir("a"))
	crashed := dev.Clone()
	require.NoError(t, v.Unmount())
	require.ErrorIs(t, v.Unmount(), ErrClosed)

	v = mount(t, crashed)
	assert.True(t, v.State().Dirty)
	_, err = v.Stat("a")
	require.ErrorIs(t, err, fs.ErrNotExist, "never synchronised")
	require.NoError(t, v.Mkdir("b"))
	require.NoError(t, v.Unmount())
	assert.True(t, mount(t, crashed).State().Dirty, "only a check clears it")
	v = mount(t, dev)
	assert.False(t, v.State().Dirty)
	require.NoError(t, v.Unmount())
}

func TestNamespaceErrors(t *testing.T) {
	dev, v := newVolume(t, 4<<20, FormatOptions{})
	require.NoError(t, v.Mkdir("d"))
	writeFile(t, v, "d/f", noise(1, 10))
	long := strings.Repeat("é", 255)
	writeFile(t, v, long, noise(2, 10))
	requireSame(t, noise(2, 10), readFile(t, v, strings.ToUpper(long)), "long name")
	f, err := v.Open("d/f")
	require.NoError(t, err)

	_, err = v.Create("d/F", 1)
	assert.ErrorIs(t, err, fs.ErrExist)
	assert.ErrorIs(t, v.Mkdir("D"), fs.ErrExist)
	assert.ErrorIs(t, v.Mkdir("/"), fs.ErrExist)
	assert.ErrorIs(t, v.Mkdir("x/y"), fs.ErrNotExist)
	assert.ErrorIs(t, v.Mkdir("d/f/y"), ErrNotDir)
	assert.ErrorIs(t, v.Remove("d"), ErrNotEmpty)
	assert.ErrorIs(t, v.Remove("nothing"), fs.ErrNotExist)
	assert.ErrorIs(t, v.Remove("/"), fs.ErrInvalid)
	assert.ErrorIs(t, v.Unmount(), ErrBusy)
	assert.ErrorIs(t, v.Rename("d", "d/e"), fs.ErrInvalid)
	assert.ErrorIs(t, v.Rename("d", "d/f"), fs.ErrExist)
	assert.ErrorIs(t, v.Rename("nothing", "x"), fs.ErrNotExist)
	_, err = v.Open("d")
	assert.ErrorIs(t, err, ErrIsDir)
	_, err = v.List("d/f")
	assert.ErrorIs(t, err, ErrNotDir)
	_, err = v.Create("neg", -1)
	assert.ErrorIs(t, err, fs.ErrInvalid)
	_, err = v.Create("big", 5<<20)
	assert.ErrorIs(t, err, ErrNoSpace)
	for _, bad := range []string{".", "..", "a:b", `a\b`, "a*", "a?", `"`, "<", ">", "|", "\x1f", "\xff", long + "x"} {
		_, err = v.Create("d/"+bad, 1)
		assert.ErrorIs(t, err, ErrName, "%q", bad)
		assert.ErrorIs(t, err, fs.ErrInvalid, "%q", bad)
	}
	require.NoError(t, f.Close())
	assert.ErrorIs(t, f.Close(), ErrClosed)
	_, err = f.ReadAt(make([]byte, 1), 0)
	assert.ErrorIs(t, err, ErrClosed)
	require.NoError(t, v.Unmount())

	v, err = Mount(dev, MountOptions{ReadOnly: true})
	require.NoError(t, err)
	assert.ErrorIs(t, v.Mkdir("no"), ErrReadOnly)
	f, err = v.Open("d/f")
	require.NoError(t, err)
	_, err = f.WriteAt([]byte{1}, 0)
	assert.ErrorIs(t, err, ErrReadOnly)
	assert.ErrorIs(t, f.Truncate(0), ErrReadOnly)
	require.NoError(t, f.Close())
	require.NoError(t, v.Unmount())
}

func TestRenameKeepsOpenFile(t *testing.T) {
	dev, v := newVolume(t, 4<<20, FormatOptions{})
	require.NoError(t, v.Mkdir("a"))
	require.NoError(t, v.Mkdir("b"))
	f, err := v.Create("a/old", 0)
	require.NoError(t, err)
	require.NoError(t, v.Rename("a/old", "b/a name that takes more than one entry"))
	_, err = f.WriteAt(noise(1, 10_000), 0)
	require.NoError(t, err)
	require.NoError(t, f.Sync())
	require.NoError(t, f.Close())
	require.NoError(t, v.Rename("b", "a/B"))
	require.NoError(t, v.Rename("a/B", "a/b"))
	require.NoError(t, v.Unmount())
	v = mount(t, dev)
	requireSame(t, noise(1, 10_000), readFile(t, v, "a/b/a name that takes more than one entry"), "renamed")
	infos, err := v.List("a")
	require.NoError(t, err)
	require.Len(t, infos, 1)
	assert.Equal(t, "b", infos[0].Name)
}

func TestMountRefuses(t *testing.T) {
	dev, v := newVolume(t, 4<<20, FormatOptions{})
	writeFile(t, v, "f", noise(1, 5000))
	require.NoError(t, v.Unmount())
	_, err := Mount(dev, MountOptions{MetadataLimit: 1000})
	require.ErrorIs(t, err, ErrUnsupported)
	_, err = Mount(blockdevtest.NewMem(4<<20), MountOptions{})
	require.ErrorIs(t, err, ErrNotExFAT)
	_, err = Mount(blockdevtest.NewMem(100), MountOptions{})
	require.Error(t, err)
	half, err := blockdev.Section(dev, 0, 2<<20)
	require.NoError(t, err)
	_, err = Mount(half, MountOptions{ReadOnly: true})
	require.ErrorIs(t, err, ErrCorrupt, "the device is shorter than the volume")

	require.NoError(t, writeFull(dev, []byte{1}, 300))
	_, err = Mount(dev, MountOptions{})
	require.ErrorIs(t, err, ErrCorrupt)
	v, err = Mount(dev, MountOptions{ReadOnly: true})
	require.NoError(t, err)
	assert.True(t, v.State().BackupBoot)
	requireSame(t, noise(1, 5000), readFile(t, v, "f"), "f")
	require.NoError(t, v.Unmount())
	require.NoError(t, writeFull(dev, []byte{1}, 12*512+300))
	_, err = Mount(dev, MountOptions{ReadOnly: true})
	require.ErrorIs(t, err, ErrCorrupt)
}

package exfat

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"dmgbench/internal/image/blockdev/blockdevtest"
)

// ghost is a valid entry set that must never be seen.
func ghost(n int) []byte {
	var b []byte
	for i := range n {
		r := record{attr: attrArchive, name: []uint16{'g', uint16('a' + i%26), uint16('0' + i/26)}}
		b = append(b, r.encode(standardCase())...)
	}
	return b
}

// TestDirectoryGrowsOverGhosts makes a directory grow into clusters in which entry sets of a former life lie.
func TestDirectoryGrowsOverGhosts(t *testing.T) {
	for _, cluster := range []int64{512, 4096, 16384} {
		dev := blockdevtest.NewMem(8 << 20)
		ghosts := ghost(128 << 10 / 96)
		for off := int64(0); off+int64(len(ghosts)) < dev.Size(); off += 128 << 10 {
			require.NoError(t, writeFull(dev, ghosts, off))
		}
		require.NoError(t, Format(dev, FormatOptions{ClusterSize: cluster}))
		v := mount(t, dev)
		require.NoError(t, v.Mkdir("d"))
		for i := range 300 {
			require.NoError(t, v.Mkdir(fmt.Sprintf("d/%d", i)))
			if i%50 == 0 {
				require.NoError(t, v.Sync())
			}
		}
		require.NoError(t, v.Unmount())
		requireClean(t, dev)
		v = mount(t, dev)
		infos, err := v.List("d")
		require.NoError(t, err)
		require.Len(t, infos, 300)
		for _, i := range infos {
			inner, err := v.List("d/" + i.Name)
			require.NoError(t, err)
			require.Empty(t, inner)
		}
	}
}

// TestWhatFollowsTheEndMarkerStaysUnseen plants entry sets behind the end marker, in the same cluster and in the next
// one of the directory, and then fills the directory up to them.
func TestWhatFollowsTheEndMarkerStaysUnseen(t *testing.T) {
	dev, v := newVolume(t, 4<<20, FormatOptions{ClusterSize: 512})
	require.NoError(t, v.Mkdir("d"))
	const perCluster = 512 / entryLen // 16 entries: five files and one entry over
	for i := range 10 {
		require.NoError(t, v.Mkdir(fmt.Sprintf("d/%d", i)))
	}
	for i := 9; i >= 1; i-- {
		require.NoError(t, v.Remove(fmt.Sprintf("d/%d", i)))
	}
	d := entryOf(t, v, "d").child
	require.Len(t, d.data, 2*512)
	at := []int64{d.at(0), d.at(512)}
	require.NoError(t, v.Unmount())
	// One file, the end marker, then ghosts up to the end of the first cluster and all over the second.
	require.NoError(t, writeFull(dev, make([]byte, entryLen), at[0]+3*entryLen))
	require.NoError(t, writeFull(dev, ghost(4), at[0]+4*entryLen))
	require.NoError(t, writeFull(dev, ghost(5), at[1]))
	requireClean(t, dev)

	v = mount(t, dev)
	names := func() (out []string) {
		infos, err := v.List("d")
		require.NoError(t, err)
		for _, i := range infos {
			out = append(out, i.Name)
		}
		return out
	}
	assert.Equal(t, []string{"0"}, names())
	want := []string{"0"}
	// Sets are kept within a page, here a cluster of 16 entries: five of three entries, then one left out.
	for _, name := range []string{"a", "b", "c", "a name of four entries", "d", "e"} {
		require.NoError(t, v.Mkdir("d/"+name))
		want = append(want, name)
		require.NoError(t, v.Unmount())
		requireClean(t, dev)
		v = mount(t, dev)
		require.Equal(t, want, names())
	}
	require.Equal(t, perCluster+6, entryOf(t, v, "d").child.used)
}

func TestChainStopsAtACycle(t *testing.T) {
	_, v := newVolume(t, 64<<20, FormatOptions{})
	for c := uint32(100); c < 110; c++ {
		require.NoError(t, v.fat.set(c, c+1))
	}
	require.NoError(t, v.fat.set(110, 103))
	runs, err := v.chain(100, -1, false, 1<<30)
	require.ErrorIs(t, err, ErrCorrupt)
	require.Empty(t, runs)
	var n int
	_, scanErr := fmt.Sscanf(err.Error(), "chain from 100 breaks after %d clusters", &n)
	require.NoError(t, scanErr)
	assert.Less(t, n, 50, "not after as many clusters as the volume has")
	_, err = v.chain(100, 10_000, false, 1<<30)
	require.ErrorIs(t, err, ErrCorrupt)
}

// TestFailedGrowthOfADirectoryShowsNoOldBytes lets the zeroing of a directory's next cluster fail: the cluster, full of
// entry sets of a former life, must not become part of it.
func TestFailedGrowthOfADirectoryShowsNoOldBytes(t *testing.T) {
	dev := blockdevtest.NewMem(4 << 20)
	ghosts := ghost(64 << 10 / 96)
	for off := int64(0); off < dev.Size(); off += 64 << 10 {
		require.NoError(t, writeFull(dev, ghosts, off))
	}
	require.NoError(t, Format(dev, FormatOptions{ClusterSize: 512}))
	v := mount(t, dev)
	require.NoError(t, v.Mkdir("d"))
	made, failed := 0, 0
	for i := 0; made < 40; i++ {
		if i%2 == 0 {
			dev.Hook = func(op blockdevtest.Op, off, n int64) error {
				if op == blockdevtest.OpWrite && n == 512 {
					return errCut
				}
				return nil
			}
		}
		f, err := v.Create(fmt.Sprintf("d/%020d", i), 0) // sets of 4 entries: 16 are full without an end marker
		dev.Hook = nil
		if err != nil {
			require.ErrorIs(t, err, errCut)
			failed++
			require.NoError(t, v.Unmount())
			r, err := Check(dev, CheckOptions{})
			require.NoError(t, err)
			require.Empty(t, r.Findings)
			require.Equal(t, made, r.Files, "no ghosts")
			v = mount(t, dev)
			continue
		}
		made++
		require.NoError(t, f.Close())
	}
	require.NoError(t, v.Unmount())
	assert.NotZero(t, failed)
}

// TestFullRootGrowsOverZerosOnly cuts the power while a root without room for an end marker gets one more cluster.
func TestFullRootGrowsOverZerosOnly(t *testing.T) {
	mem := blockdevtest.NewMem(1 << 20)
	ghosts := ghost(64 << 10 / 96)
	for off := int64(0); off < mem.Size(); off += 64 << 10 {
		require.NoError(t, writeFull(mem, ghosts, off))
	}
	require.NoError(t, Format(mem, FormatOptions{ClusterSize: 512}))
	r := rand.New(rand.NewPCG(3, 4))
	v := mount(t, mem)
	// 3 entries of the system's, 13 of four files: full to the last of 16.
	for _, name := range []string{"a", "b", "c", "a name that takes one entry more"[:20]} {
		writeFile(t, v, name, nil)
	}
	require.NoError(t, v.Unmount())
	for range 40 {
		dev := newCached(mem.Clone())
		v := mount(t, dev)
		require.Equal(t, len(v.root.data), v.root.used*entryLen)
		f, err := v.Create("e", 600)
		require.NoError(t, err)
		_, err = f.WriteAt(noise(1, 600), 0)
		require.NoError(t, err)
		dev.MemDevice.Hook = func(op blockdevtest.Op, off, n int64) error {
			if op == blockdevtest.OpFlush {
				return errCut // FAT and bitmap are under way
			}
			return nil
		}
		require.ErrorIs(t, f.Sync(), errCut)
		after := dev.afterCut(t, r)
		rep, err := Check(after, CheckOptions{})
		require.NoError(t, err)
		require.LessOrEqual(t, rep.Files, 5)
	}
}

// Listing a directory that cannot be read, again and again, takes nothing from the memory that the others may have.
func TestDirectoriesThatCannotBeReadTakeNoMemory(t *testing.T) {
	dev, v := newVolume(t, 8<<20, FormatOptions{ClusterSize: 32 << 10})
	require.NoError(t, v.Mkdir("broken"))
	require.NoError(t, v.Mkdir("other"))
	require.NoError(t, v.Unmount())
	v, err := Mount(dev, MountOptions{MetadataLimit: 128 << 10})
	require.NoError(t, err)
	dev.Hook = func(blockdevtest.Op, int64, int64) error { return errCut }
	for range 10 {
		_, err = v.List("broken")
		require.ErrorIs(t, err, errCut)
	}
	dev.Hook = nil
	for _, name := range []string{"broken", "other"} {
		list, err := v.List(name)
		require.NoError(t, err)
		assert.Empty(t, list)
	}
}

// Others may leave a folder without a cluster: its first name gives it one.
func TestFolderWithoutAClusterGetsOne(t *testing.T) {
	dev, v := newVolume(t, 1<<20, FormatOptions{})
	require.NoError(t, v.Mkdir("d"))
	require.NoError(t, v.touch())
	e := entriesOf(t, v, "d")[0]
	e.first, e.size, e.valid, e.noChain = 0, 0, 0, false
	e.store()
	require.NoError(t, v.Unmount())
	_, err := Check(dev, CheckOptions{Repair: true}) // the cluster that it had is lost
	require.NoError(t, err)

	v = mount(t, dev)
	writeFile(t, v, "d/f", noise(1, 9999))
	require.NoError(t, v.Unmount())
	requireClean(t, dev)
	requireSame(t, noise(1, 9999), readFile(t, mount(t, dev), "d/f"), "d/f")
}

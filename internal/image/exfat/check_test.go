package exfat

import (
	"os/exec"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"dmgbench/internal/image/blockdev"
	"dmgbench/internal/image/blockdev/blockdevtest"
)

func requireClean(t tester, dev blockdev.Device) {
	t.Helper()
	r, err := Check(dev, CheckOptions{})
	require.NoError(t, err)
	require.True(t, r.Clean(), "%v", r.Findings)
}

func kinds(r *Report) []Kind {
	var ks []Kind
	for _, f := range r.Findings {
		ks = append(ks, f.Kind)
	}
	return ks
}

func TestCheckIsCleanAfterEveryWorkload(t *testing.T) {
	for name, w := range workloads {
		t.Run(name, func(t *testing.T) {
			dev, v := newVolume(t, w.size, w.o)
			w.do(t, v)
			r, err := checkMounted(v)
			require.NoError(t, err)
			require.True(t, r.Clean(), "%v", r.Findings)
			assert.Equal(t, v.Free(), r.Free)
			assert.Equal(t, v.Total(), r.Free+r.Used)
			require.NoError(t, v.Unmount())
			requireClean(t, dev)
		})
	}
}

// damaged is a small volume with a contiguous file "c", a fragmented file "f" and a directory "d" with a file.
func damaged(t *testing.T) (*blockdevtest.MemDevice, *Volume) {
	dev, v := newVolume(t, 1<<20, FormatOptions{})
	require.NoError(t, v.Mkdir("d"))
	writeFile(t, v, "d/inner", noise(1, 5000))
	fragment(t, v)
	writeFile(t, v, "f", noise(2, 40_000))
	infos, err := v.List("frag")
	require.NoError(t, err)
	for _, i := range infos {
		require.NoError(t, v.Remove("frag/"+i.Name))
	}
	require.NoError(t, v.Sync())
	writeFile(t, v, "c", noise(3, 30_000))
	require.NoError(t, v.Unmount())
	requireClean(t, dev)
	return dev, mount(t, dev)
}

func entryOf(t *testing.T, v *Volume, path string) *entry {
	t.Helper()
	e, _, err := v.walkTo(splitPath(path))
	require.NoError(t, err)
	return e
}

// rewrite stores the entry as it is and writes the directory.
func rewrite(t *testing.T, v *Volume, e *entry) {
	t.Helper()
	e.store()
	require.NoError(t, writeChunks(v.dev, e.dir.take(nil)))
}

func setFAT(t *testing.T, v *Volume, cluster, next uint32) {
	t.Helper()
	require.NoError(t, v.fat.set(cluster, next))
	require.NoError(t, writeChunks(v.dev, v.fat.take(nil)))
}

func setBits(t *testing.T, v *Volume, first, n uint32, taken bool) {
	t.Helper()
	v.alloc.put(first-firstData, n, taken)
	require.NoError(t, writeChunks(v.dev, v.alloc.take(nil)))
}

// nthCluster follows the chain of a file.
func nthCluster(t *testing.T, v *Volume, e *entry, n int) uint32 {
	t.Helper()
	at := e.first
	for range n {
		var err error
		at, err = v.fat.next(at)
		require.NoError(t, err)
	}
	return at
}

func TestCheckFindsAndRepairs(t *testing.T) {
	cases := []struct {
		name   string
		damage func(t *testing.T, dev *blockdevtest.MemDevice, v *Volume)
		want   []Kind
		left   bool // Repair cannot put it right
		quiet  bool // fsck.exfat does not look for this
	}{
		{"main boot", func(t *testing.T, dev *blockdevtest.MemDevice, v *Volume) {
			require.NoError(t, writeFull(dev, []byte{1}, 200))
		}, []Kind{BootMain}, false, false},
		{"backup boot", func(t *testing.T, dev *blockdevtest.MemDevice, v *Volume) {
			require.NoError(t, writeFull(dev, []byte{1}, 12*512+200))
		}, []Kind{BootBackup}, false, true},
		{"dirty", func(t *testing.T, dev *blockdevtest.MemDevice, v *Volume) {
			require.NoError(t, v.touch())
		}, []Kind{DirtyFlag}, false, true},
		{"FAT head", func(t *testing.T, dev *blockdevtest.MemDevice, v *Volume) { setFAT(t, v, 1, 7) }, []Kind{FATHead}, false, true},
		{"lost clusters", func(t *testing.T, dev *blockdevtest.MemDevice, v *Volume) {
			setBits(t, v, v.alloc.freeRuns()[0].first, 2, true)
		}, []Kind{BitmapLost}, false, true},
		{"missing clusters", func(t *testing.T, dev *blockdevtest.MemDevice, v *Volume) {
			setBits(t, v, entryOf(t, v, "c").first+1, 3, false)
		}, []Kind{BitmapMissing}, false, false},
		{"short chain", func(t *testing.T, dev *blockdevtest.MemDevice, v *Volume) {
			setFAT(t, v, nthCluster(t, v, entryOf(t, v, "f"), 3), endOfChain)
		}, []Kind{ChainShort, BitmapLost, BitmapLost, BitmapLost, BitmapLost, BitmapLost, BitmapLost}, false, false},
		{"cycle", func(t *testing.T, dev *blockdevtest.MemDevice, v *Volume) {
			f := entryOf(t, v, "f")
			setFAT(t, v, nthCluster(t, v, f, 8), f.first)
		}, []Kind{ChainCycle, BitmapLost}, false, false},
		{"wild chain", func(t *testing.T, dev *blockdevtest.MemDevice, v *Volume) {
			setFAT(t, v, nthCluster(t, v, entryOf(t, v, "f"), 8), 0x12345678)
		}, []Kind{ChainBad, BitmapLost}, false, false},
		{"long chain", func(t *testing.T, dev *blockdevtest.MemDevice, v *Volume) {
			free := v.alloc.freeRuns()[0].first
			setFAT(t, v, nthCluster(t, v, entryOf(t, v, "f"), 9), free)
		}, []Kind{ChainLong}, false, true},
		{"shared clusters", func(t *testing.T, dev *blockdevtest.MemDevice, v *Volume) {
			e := entryOf(t, v, "d/inner")
			e.first = entryOf(t, v, "c").first + 2
			rewrite(t, v, e)
		}, []Kind{CrossLink, BitmapLost}, true, false},
		{"entry checksum", func(t *testing.T, dev *blockdevtest.MemDevice, v *Volume) {
			e := entryOf(t, v, "c")
			e.bytes()[8] ^= 0xFF
			e.dir.mark(e.index*entryLen, 1)
			require.NoError(t, writeChunks(dev, e.dir.take(nil)))
		}, []Kind{EntryChecksum}, true, false},
		{"entry structure", func(t *testing.T, dev *blockdevtest.MemDevice, v *Volume) {
			e := entryOf(t, v, "d/inner")
			e.bytes()[1] = 200
			e.dir.mark(e.index*entryLen, 1)
			require.NoError(t, writeChunks(dev, e.dir.take(nil)))
		}, []Kind{EntryStructure, BitmapLost}, true, false},
		{"name hash", func(t *testing.T, dev *blockdevtest.MemDevice, v *Volume) {
			e := entryOf(t, v, "c")
			e.bytes()[entryLen+4] ^= 1
			rewrite(t, v, e)
		}, []Kind{NameHash}, false, true},
		{"forbidden name", func(t *testing.T, dev *blockdevtest.MemDevice, v *Volume) {
			e := entryOf(t, v, "c")
			e.bytes()[2*entryLen+2] = '?'
			rewrite(t, v, e)
		}, []Kind{NameInvalid}, true, true},
		{"valid beyond size", func(t *testing.T, dev *blockdevtest.MemDevice, v *Volume) {
			e := entryOf(t, v, "c")
			e.valid = e.size + 1
			rewrite(t, v, e)
		}, []Kind{SizeInvalid}, false, false},
		{"huge size", func(t *testing.T, dev *blockdevtest.MemDevice, v *Volume) {
			e := entryOf(t, v, "c")
			e.size = -1 << 60
			rewrite(t, v, e)
		}, []Kind{SizeInvalid, BitmapLost}, false, false},
		{"contiguous beyond the end", func(t *testing.T, dev *blockdevtest.MemDevice, v *Volume) {
			e := entryOf(t, v, "c")
			e.size = 900_000
			rewrite(t, v, e)
		}, nil, true, false},
		{"directory size", func(t *testing.T, dev *blockdevtest.MemDevice, v *Volume) {
			e := entryOf(t, v, "d")
			e.size -= 100
			rewrite(t, v, e)
		}, []Kind{SizeInvalid}, false, false},
		{"up-case table", func(t *testing.T, dev *blockdevtest.MemDevice, v *Volume) {
			require.NoError(t, writeFull(dev, []byte{0xFE}, v.g.at(3)+200))
		}, []Kind{Upcase}, true, false},
		{"no bitmap", func(t *testing.T, dev *blockdevtest.MemDevice, v *Volume) {
			require.NoError(t, writeFull(dev, []byte{1}, v.g.at(v.g.Root)+entryLen))
		}, []Kind{Bitmap}, true, false},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			dev, v := damaged(t)
			c.damage(t, dev, v)
			r, err := Check(dev, CheckOptions{})
			require.NoError(t, err)
			require.False(t, r.Clean())
			if c.want != nil {
				assert.Equal(t, c.want, kinds(r), "%v", r.Findings)
			}
			if path, err := exec.LookPath("fsck.exfat"); err == nil && !c.quiet {
				out, _ := exec.Command(path, "-n", image(t, dev)).CombinedOutput()
				assert.Regexp(t, "ERROR|corrupt|failed", string(out), "fsck.exfat sees it, too")
			}
			requireEveryFailure(t, dev, func(dev *blockdevtest.MemDevice) error {
				_, err := Check(dev, CheckOptions{Repair: true})
				return err
			})
			r, err = Check(dev, CheckOptions{Repair: true})
			require.NoError(t, err)
			assert.Equal(t, !c.left, r.Clean(), "%v", r.Findings)
			again, err := Check(dev, CheckOptions{})
			require.NoError(t, err)
			assert.Equal(t, !c.left, again.Clean(), "%v", again.Findings)
			if c.left {
				return
			}
			fsckIfThere(t, dev)
			v = mount(t, dev)
			requireSame(t, noise(1, 5000), readFile(t, v, "d/inner"), "untouched file")
			require.NoError(t, v.Unmount())
		})
	}
}

func fsckIfThere(t *testing.T, dev *blockdevtest.MemDevice) {
	t.Helper()
	if _, err := exec.LookPath("fsck.exfat"); err == nil {
		fsck(t, dev)
	}
}

// TestRepairOfRandomDamage flips bytes of the metadata: Check must neither fail nor loop, and after a Repair only what
// it says that it cannot repair may be left.
func TestRepairOfRandomDamage(t *testing.T) {
	original, v := damaged(t)
	end := v.g.at(v.g.Root) + v.g.clusterSize()
	rapid.Check(t, func(t *rapid.T) {
		dev := original.Clone()
		for range rapid.IntRange(1, 6).Draw(t, "flips") {
			off := rapid.Int64Range(2*bootSectors*512, end-1).Draw(t, "off")
			require.NoError(t, writeFull(dev, []byte{rapid.Byte().Draw(t, "byte")}, off))
		}
		if _, err := Check(dev, CheckOptions{Repair: true}); err != nil {
			t.Fatalf("checking: %v", err)
		}
		_, err := Check(dev, CheckOptions{Repair: true})
		require.NoError(t, err)
		r, err := Check(dev, CheckOptions{Repair: true})
		require.NoError(t, err)
		for _, f := range r.Findings {
			if f.Repaired {
				t.Fatalf("still repairing after three passes: %v", r.Findings)
			}
		}
	})
}

func TestReportIsBounded(t *testing.T) {
	dev, v := newVolume(t, 256<<20, FormatOptions{})
	for i := uint32(100); i < 50_000; i += 2 {
		v.alloc.put(i, 1, true)
	}
	require.NoError(t, writeChunks(dev, v.alloc.take(nil)))
	r, err := Check(dev, CheckOptions{})
	require.NoError(t, err)
	assert.Len(t, r.Findings, maxFindings)
	assert.Greater(t, r.More, 10_000)
	assert.Contains(t, r.Findings[0].String(), "lost clusters: 1 from cluster 102")
	for range 2 { // the first leaves the volume marked, since it did not keep all findings
		_, err = Check(dev, CheckOptions{Repair: true})
		require.NoError(t, err)
	}
	requireClean(t, dev)
}

func TestFindingsAsText(t *testing.T) {
	for want, f := range map[string]Finding{
		"up-case table":                            {Kind: Upcase},
		"up-case table: missing":                   {Kind: Upcase, Detail: "missing"},
		`up-case table of "a": 2 from cluster 7`:   {Kind: Upcase, Path: "a", Count: 2, Cluster: 7},
		`up-case table of "a": missing (repaired)`: {Kind: Upcase, Path: "a", Detail: "missing", Repaired: true},
	} {
		assert.Equal(t, want, f.String())
	}
}

// A volume shrinks to its least size and not by one cluster more.
func TestLeastSizeOfAVolume(t *testing.T) {
	_, v := newVolume(t, 4<<20, FormatOptions{})
	writeFile(t, v, "f", noise(1, 1_500_000))
	least := v.MinSize()
	assert.Greater(t, least, int64(1_500_000))
	assert.Less(t, least, int64(3<<20))
	require.ErrorIs(t, v.Resize(least-v.ClusterSize()), ErrShrinkUsed)
	require.NoError(t, v.Resize(least))
}

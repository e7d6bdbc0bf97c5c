package exfat

import (
	"bytes"
	"errors"
	"fmt"
	"math/rand/v2"
	"path"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"dmgbench/internal/image/blockdev"
	"dmgbench/internal/image/blockdev/blockdevtest"
)

// cached is a device with a write cache that a power cut empties: what was not flushed may be there or not, in any
// order, by the block of 4096 bytes.
type cached struct {
	*blockdevtest.MemDevice
	stable *blockdevtest.MemDevice // what has been flushed
	since  []func(dev blockdev.Device) error
}

func newCached(dev *blockdevtest.MemDevice) *cached {
	return &cached{MemDevice: dev, stable: dev.Clone()}
}

func (c *cached) WriteAt(p []byte, off int64) (int, error) {
	n, err := c.MemDevice.WriteAt(p, off)
	if err != nil {
		return n, err
	}
	for done := 0; done < len(p); {
		part := bytes.Clone(p[done:min(len(p), done+block-int((off+int64(done))%block))])
		at := off + int64(done)
		c.since = append(c.since, func(dev blockdev.Device) error { return writeFull(dev, part, at) })
		done += len(part)
	}
	return n, nil
}

func (c *cached) Discard(off, n int64) error {
	err := c.MemDevice.Discard(off, n)
	if err == nil {
		c.since = append(c.since, func(dev blockdev.Device) error { return dev.Discard(off, n) })
	}
	return err
}

func (c *cached) Flush() error {
	if err := c.MemDevice.Flush(); err != nil {
		return err
	}
	for _, do := range c.since {
		if err := do(c.stable); err != nil {
			return err
		}
	}
	c.since = nil
	return nil
}

// afterCut is what the next start finds: all that was flushed and each of the other blocks or not.
func (c *cached) afterCut(t *testing.T, r *rand.Rand) *blockdevtest.MemDevice {
	dev := c.stable.Clone()
	for _, do := range c.since {
		if r.IntN(2) == 0 {
			require.NoError(t, do(dev))
		}
	}
	return dev
}

// cutAmid cuts the power at change number cut of what do makes of a volume and of the sync behind it, and gives what
// the next start may find: all that was written, and a few times some of it.
func cutAmid(t *testing.T, mem *blockdevtest.MemDevice, cut int, r *rand.Rand, do func(v *Volume) error) ([]*blockdevtest.MemDevice, error) {
	t.Helper()
	dev := newCached(mem)
	v := mount(t, dev)
	mem.Hook = cutAfter(cut)
	err := do(v)
	if err == nil {
		err = v.Sync()
	}
	mem.Hook = nil
	states := []*blockdevtest.MemDevice{mem}
	for range lossesPerCut() {
		states = append(states, dev.afterCut(t, r))
	}
	return states, err
}

// TestCrashAtEveryChange cuts the power before every write, flush and discard of a workload, with the write cache
// kept, lost and half lost. Whatever was synchronised before must be there, and Repair must be able to make the volume
// clean: a crash may lose clusters, never mix files.
func TestCrashAtEveryChange(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	cuts := 0
	for cut := 1; ; cut++ {
		mem, v := newVolume(t, 1<<20, FormatOptions{ClusterSize: 1024})
		require.NoError(t, v.Unmount())
		dev := newCached(mem)
		v = mount(t, dev)
		safe := map[string][]byte{}
		mem.Hook = cutAfter(cut)
		err := crashWorkload(v, safe)
		mem.Hook = nil
		verifyAfterCrash(t, mem, safe)
		verifyAfterCrash(t, dev.stable.Clone(), safe)
		for range 2 {
			verifyAfterCrash(t, dev.afterCut(t, r), safe)
		}
		if err == nil {
			break
		}
		require.ErrorIs(t, err, errCut)
		cuts++
	}
	assert.Greater(t, cuts, 60)
}

// TestCrashInRename cuts a move from one directory to the other: the file must be there under one of the names, or
// both.
func TestCrashInRename(t *testing.T) {
	for _, way := range [][2]string{{"a/f", "b/f"}, {"b/f", "a/f"}} {
		for cut := 1; ; cut++ {
			dev, v := newVolume(t, 1<<20, FormatOptions{})
			require.NoError(t, v.Mkdir("a"))
			require.NoError(t, v.Mkdir("between")) // neighbours would be written in one call
			require.NoError(t, v.Mkdir("b"))
			writeFile(t, v, way[0], noise(1, 9999))
			require.NoError(t, v.Sync())
			dev.Hook = cutAfter(cut)
			err := v.Rename(way[0], way[1])
			require.NoError(t, err)
			err = v.Sync()
			dev.Hook = nil
			w := mount(t, dev)
			found := 0
			for _, name := range way {
				if _, err := w.Stat(name); err == nil {
					requireSame(t, noise(1, 9999), readFile(t, w, name), name)
					found++
				}
			}
			assert.NotZero(t, found)
			if err == nil {
				assert.Greater(t, cut, 2)
				break
			}
		}
	}
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

func verifyAfterCrash(t *testing.T, dev *blockdevtest.MemDevice, safe map[string][]byte) {
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
		dev.Hook = func(op blockdevtest.Op, off, length int64) error {
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
	dev.Hook = func(op blockdevtest.Op, off, n int64) error { return errCut }
	_, err = f.WriteAt(noise(1, 10_000), 0)
	require.ErrorIs(t, err, errCut)
	assert.ErrorContains(t, err, `writing "some name": `)
	_, err = f.ReadAt(make([]byte, 10), 0)
	require.NoError(t, err, "never written: no read is needed")
	dev.Hook = nil
	_, err = f.WriteAt(noise(1, 10_000), 0)
	require.NoError(t, err)
	dev.Hook = func(op blockdevtest.Op, off, n int64) error { return errCut }
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

// TestCrashInRenameOrder moves files where the order in which folders reach the device matters more, with a write
// cache: into one that has just been made, or that grows, below folders that lie behind the one they come from, and
// two files that change places.
func TestCrashInRenameOrder(t *testing.T) {
	data := noise(1, 999)
	tests := map[string]func(v *Volume) [][2]string{
		"cached": func(*Volume) [][2]string { return [][2]string{{"a/f", "p/b/f"}} },
		"new": func(v *Volume) [][2]string {
			require.NoError(t, v.Mkdir("p/new"))
			require.NoError(t, v.Mkdir("p/new/new"))
			return [][2]string{{"a/f", "p/new/new/f"}}
		},
		"growing": func(v *Volume) [][2]string {
			for i := range 41 { // sets of three entries: no other fits into a cluster
				f, err := v.Create(fmt.Sprintf("p/b/%d", i), 0)
				require.NoError(t, errors.Join(err, f.Close()))
			}
			return [][2]string{{"a/f", "p/b/f"}}
		},
		"exchanged": func(*Volume) [][2]string { return [][2]string{{"a/f", "p/b/f"}, {"p/b/g", "a/g"}} },
		"to a folder beside it": func(v *Volume) [][2]string {
			writeFile(t, v, "p/f", data)
			require.NoError(t, v.Mkdir("p/new"))
			return [][2]string{{"p/f", "p/new/f"}}
		},
		"from a folder that was given more": func(*Volume) [][2]string {
			return [][2]string{{"a/f", "p/b/f"}, {"p/b/g", "between/g"}, {"p/b/f", "between/f"}}
		},
		"from a folder that is removed from one that was given another": func(*Volume) [][2]string {
			return [][2]string{{"p/b/g", "between/g"}, {"a/f", "p/f"}, {"p/b", ""}}
		},
		"from a folder that is removed from one that is given another": func(*Volume) [][2]string {
			return [][2]string{{"p/b/g", "between/g"}, {"p/b", ""}, {"a/f", "p/f"}}
		},
		"from a folder that another replaces": func(v *Volume) [][2]string {
			require.NoError(t, v.Mkdir("p/d"))
			return [][2]string{{"p/b/g", "between/g"}, {"a/f", "p/f"}, {"p/d", "p/b"}}
		},
	}
	r := rand.New(rand.NewPCG(3, 4))
	for name, prepare := range tests {
		t.Run(name, func(t *testing.T) {
			base, v := newVolume(t, 1<<20, FormatOptions{})
			for _, name := range []string{"a", "between", "p", "between too", "p/b"} {
				require.NoError(t, v.Mkdir(name))
			}
			writeFile(t, v, "a/f", data)
			writeFile(t, v, "p/b/g", data)
			require.NoError(t, v.Unmount())
			for cut := 1; ; cut++ {
				mem := base.Clone()
				dev := newCached(mem)
				v := mount(t, dev)
				moves := prepare(v)
				mem.Hook = cutAfter(cut)
				var err error
				for _, m := range moves {
					if m[1] == "" {
						err = errors.Join(err, v.Remove(m[0]))
					} else {
						err = errors.Join(err, v.Replace(m[0], m[1]))
					}
				}
				err = errors.Join(err, v.Sync())
				mem.Hook = nil
				found := []*blockdevtest.MemDevice{mem, dev.stable.Clone()}
				for range lossesPerCut() {
					found = append(found, dev.afterCut(t, r))
				}
				for _, w := range found {
					requireUnder(t, w, data, "f")
					if moves[0][0] != "p/f" {
						requireUnder(t, w, data, "g")
					}
				}
				if err == nil {
					assert.Greater(t, cut, 3)
					break
				}
				require.ErrorIs(t, err, errCut)
			}
		})
	}
}

// requireUnder finds a file of one of the names, with what it held, in some folder.
func requireUnder(t *testing.T, dev *blockdevtest.MemDevice, want []byte, names ...string) {
	t.Helper()
	v := mount(t, dev)
	found := 0
	require.NoError(t, v.Walk("", func(at string, i Info) error {
		if slices.Contains(names, path.Base(at)) && i.Size == int64(len(want)) {
			found++
			requireSame(t, want, readFile(t, v, at), at)
		}
		return nil
	}, nil))
	require.NotZero(t, found, "%s is lost", names[0])
}

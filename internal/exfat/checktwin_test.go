package exfat

import (
	"fmt"
	"io/fs"
	"math/rand/v2"
	"path"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"dmgbench/internal/blockdev"
)

// TestCrashAmidAMove cuts moves: a repair leaves one name, and nothing of what it names is given to others.
func TestCrashAmidAMove(t *testing.T) {
	r := rand.New(rand.NewPCG(7, 8))
	both := 0
	for _, way := range [][2]string{{"a/folder", "b/folder"}, {"b/folder", "a/folder"}, {"a/folder/x", "b/x"}} {
		for cut := 1; ; cut++ {
			mem, v := newVolume(t, 1<<20, FormatOptions{})
			for _, dir := range []string{"a", "b", path.Dir(way[0])} {
				if _, err := v.Stat(dir); err == nil {
					continue
				}
				require.NoError(t, v.Mkdir(dir))
				for i := range 50 { // more than a page of names
					writeFile(t, v, fmt.Sprintf("%s/%d", dir, i), nil)
				}
			}
			file := way[0]
			if path.Base(file) == "folder" {
				require.NoError(t, v.Mkdir(file))
				file += "/x"
			}
			writeFile(t, v, file, noise(1, 9999))
			require.NoError(t, v.Unmount())
			dev := newCached(mem)
			v = mount(t, dev)
			mem.Hook = cutAfter(cut)
			err := v.Rename(way[0], way[1])
			if err == nil {
				err = v.Sync()
			}
			mem.Hook = nil
			for i := range 5 {
				found := dev.afterCut(t, r)
				if i == 0 {
					found = mem
				}
				report, err := Check(found, CheckOptions{Repair: true})
				require.NoError(t, err)
				for _, f := range report.Findings {
					if f.Kind == CrossLink {
						both++
					}
				}
				requireClean(t, found)
				requireOneOf(t, found, way, file[len(way[0]):])
			}
			if err == nil {
				break
			}
			require.ErrorIs(t, err, errCut)
		}
	}
	assert.NotZero(t, both)
}

// requireOneOf finds one of two names, and what it named before.
func requireOneOf(t *testing.T, dev *blockdev.MemDevice, way [2]string, rest string) {
	t.Helper()
	v := mount(t, dev)
	writeFile(t, v, "all the rest", noise(3, int(v.Free())))
	var names []string
	for _, name := range way {
		if _, err := v.Stat(name); err == nil {
			names = append(names, name)
			requireSame(t, noise(1, 9999), readFile(t, v, name+rest), name)
		} else {
			require.ErrorIs(t, err, fs.ErrNotExist)
		}
	}
	assert.Len(t, names, 1, "%v", names)
	require.NoError(t, v.Unmount())
	requireClean(t, dev)
}

// TestNamesThatAreNoTwins: what only looks like two names of one thing is told, and stays.
func TestNamesThatAreNoTwins(t *testing.T) {
	later := time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC)
	for name, damage := range map[string]func(a, b, x, y *entry){
		"a folder in itself":    func(a, b, _, _ *entry) { b.first = a.first; b.renamed(later) },
		"neither is newer":      func(_, _, x, y *entry) { y.first, y.accessed = x.first, x.accessed },
		"of another size":       func(_, _, x, y *entry) { y.first, y.size, y.valid = x.first, 1, 1; y.renamed(later) },
		"a file and a folder":   func(a, _, x, _ *entry) { x.first = a.first; x.size, x.valid = a.size, a.valid; x.renamed(later) },
		"one begins in another": func(_, _, x, y *entry) { y.first = x.first + 1; y.size, y.valid = 1, 1; y.renamed(later) },
	} {
		dev, v := newVolume(t, 1<<20, FormatOptions{})
		require.NoError(t, v.Mkdir("a"))
		require.NoError(t, v.Mkdir("a/b"))
		writeFile(t, v, "x", noise(1, 9999))
		writeFile(t, v, "y", noise(2, 9999))
		require.NoError(t, v.Unmount())
		v = mount(t, dev)
		var es []*entry
		for _, name := range []string{"a", "a/b", "x", "y"} {
			e, _, err := v.walkTo(splitPath(name))
			require.NoError(t, err)
			es = append(es, e)
		}
		require.NoError(t, v.touch())
		damage(es[0], es[1], es[2], es[3])
		for _, e := range es {
			e.store()
		}
		require.NoError(t, v.Unmount())
		r, err := Check(dev, CheckOptions{Repair: true})
		require.NoError(t, err)
		var cross []Finding
		for _, f := range r.Findings {
			if f.Kind == CrossLink {
				cross = append(cross, f)
			}
		}
		if assert.Len(t, cross, 1, name) {
			assert.False(t, cross[0].Repaired, name)
		}
		v = mount(t, dev)
		for _, name := range []string{"a", "a/b", "x", "y"} {
			_, err := v.Stat(name)
			assert.NoError(t, err, name)
		}
	}
}

package exfat

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"path"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"dmgbench/internal/image/blockdev/blockdevtest"
)

// TestCrashAmidAMove cuts moves: a repair leaves one name, and nothing of what it names is given to others.
func TestCrashAmidAMove(t *testing.T) {
	r := rand.New(rand.NewPCG(7, 8))
	both := 0
	for _, way := range [][2]string{{"a/folder", "b/folder"}, {"b/folder", "a/folder"}, {"a/folder/x", "b/x"}} {
		base, v := newVolume(t, 1<<20, FormatOptions{})
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
		for at := 2; ; at++ {
			cut, grown := at/2, at%2 == 1 // written on, before anything reaches the device
			states, err := cutAmid(t, base.Clone(), cut, r, func(v *Volume) error {
				err := v.Rename(way[0], way[1])
				if err == nil && grown {
					err = growMoved(v, way[1]+file[len(way[0]):], path.Base(way[0]) == "folder")
				}
				return err
			})
			for _, found := range states {
				for clean := false; !clean; {
					report, err := Check(found, CheckOptions{Repair: true})
					require.NoError(t, err)
					clean = report.Clean()
					for _, f := range report.Findings {
						if f.Kind == CrossLink {
							both++
						}
					}
				}
				requireClean(t, found)
				requireOneOf(t, found, way, file[len(way[0]):])
			}
			if err == nil && grown { // which takes the most
				break
			}
			if err != nil {
				require.ErrorIs(t, err, errCut)
			}
		}
	}
	assert.NotZero(t, both)
}

// growMoved appends to a file, and to the folder around it if that is what moved.
func growMoved(v *Volume, file string, folder bool) error {
	f, err := v.Open(file)
	if err != nil {
		return err
	}
	_, err = f.WriteAt(noise(4, 20_000), 9999)
	for i := 0; folder && err == nil && i < 60; i++ {
		var more *File
		if more, err = v.Create(fmt.Sprintf("%s/more %d", path.Dir(file), i), 0); err == nil {
			err = more.Close()
		}
	}
	return errors.Join(err, f.Close())
}

// requireOneOf finds one of two names, and what it named before.
func requireOneOf(t *testing.T, dev *blockdevtest.MemDevice, way [2]string, rest string) {
	t.Helper()
	v := mount(t, dev)
	writeFile(t, v, "all the rest", noise(3, int(v.Free())))
	var names []string
	for _, name := range way {
		if _, err := v.Stat(name); err == nil {
			names = append(names, name)
			requireSame(t, noise(1, 9999), readFile(t, v, name+rest)[:9999], name)
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
		"made another day":      func(_, _, x, y *entry) { y.first, y.created = x.first, makeStamp(later); y.renamed(later) },
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
		es := entriesOf(t, v, "a", "a/b", "x", "y")
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

// TestFoldersInEachOther: names that lead to each other in a circle do not take away all that leads to them from
// outside.
func TestFoldersInEachOther(t *testing.T) {
	dev, v := newVolume(t, 1<<20, FormatOptions{})
	for _, name := range []string{"a", "b", "a/x", "b/y"} {
		require.NoError(t, v.Mkdir(name))
	}
	require.NoError(t, v.Unmount())
	v = mount(t, dev)
	es := entriesOf(t, v, "a", "b", "a/x", "b/y")
	a, b, x, y := es[0], es[1], es[2], es[3]
	require.NoError(t, v.touch())
	x.first, y.first = b.first, a.first
	for _, e := range []*entry{x, y} {
		e.renamed(time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC))
		e.store()
	}
	require.NoError(t, v.Unmount())
	for range 3 {
		_, err := Check(dev, CheckOptions{Repair: true})
		require.NoError(t, err)
		list, err := mount(t, dev).List("")
		require.NoError(t, err)
		assert.NotEmpty(t, list)
	}
}

// TestThreeNames: of three names of one file the newest stays, wherever it stands, and none for one that cannot be
// used.
func TestThreeNames(t *testing.T) {
	for newest := range 3 {
		for _, bad := range []bool{false, true} {
			dev, v := newVolume(t, 1<<20, FormatOptions{})
			names := []string{"x", "y", "z"}
			for i, name := range names {
				writeFile(t, v, name, noise(uint64(i), 9999))
			}
			require.NoError(t, v.Unmount())
			v = mount(t, dev)
			es := entriesOf(t, v, names...)
			require.NoError(t, v.touch())
			first := es[0].first
			for i, e := range es {
				e.first, e.created = first, es[0].created
				e.accessed = makeStamp(time.Date(2030+(i+2-newest)%3, 1, 1, 0, 0, 0, 0, time.UTC))
				e.store()
				if bad && i == newest {
					set := e.bytes()
					set[2*entryLen+2] = '?'
					binary.LittleEndian.PutUint16(set[2:], setChecksum(set))
				}
			}
			require.NoError(t, v.Unmount())
			_, err := Check(dev, CheckOptions{Repair: true})
			require.NoError(t, err)
			list, err := mount(t, dev).List("")
			var left []string
			for _, i := range list {
				left = append(left, i.Name)
			}
			want := []string{names[newest]}
			if bad { // it is reported
				require.ErrorIs(t, err, ErrName)
				want = []string{names[(newest+2)%3]}
			} else {
				require.NoError(t, err)
			}
			if bad && newest == 0 { // which owns the clusters: none is compared with it
				want = []string{"y", "z"}
			}
			assert.ElementsMatch(t, want, left)
		}
	}
}

func entriesOf(t *testing.T, v *Volume, names ...string) (es []*entry) {
	t.Helper()
	for _, name := range names {
		e, _, err := v.walkTo(splitPath(name))
		require.NoError(t, err)
		es = append(es, e)
	}
	return es
}

package workload

import (
	"context"
	"errors"
	"math"
	"path"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"dmgbench/internal/plan"
	"dmgbench/internal/result"
	"dmgbench/internal/system/hostio"
	"dmgbench/internal/system/units"
)

// someTree is a file set of n files of 1000 bytes.
func someTree(n, folders, depth int) plan.FileSet {
	return plan.FileSet{Name: "t", Tree: &plan.Tree{Files: n, Folders: folders, Depth: depth, Links: 0.1, Executables: 0.2,
		Sizes: []units.Bytes{1000}}}
}

// TestTreeIsTheSameFromTheSameSeed pins names and folders: they are part of what
// a run can repeat.
func TestTreeIsTheSameFromTheSameSeed(t *testing.T) {
	tree, items := NewTree(someTree(40, 6, 3), 1, 2)
	assert.Equal(t, "batch002/fzqhyptuxeaxllar-1", tree.Folders[1])
	assert.Equal(t, "batch002/srfmoj-5.dat", items[0].Name)
	again, other := NewTree(someTree(40, 6, 3), 1, 3)
	for i := range items {
		assert.Equal(t, strings.TrimPrefix(items[i].Name, "batch002/"), strings.TrimPrefix(other[i].Name, "batch003/"))
	}
	assert.Len(t, again.Folders, 7)
	different, _ := NewTree(someTree(40, 6, 3), 2, 2)
	assert.NotEqual(t, tree.Folders, different.Folders)
}

// TestTreeFitsEveryVolume: names differ by more than case and have no characters
// that a file system refuses; the tree has the numbers that were asked for.
func TestTreeFitsEveryVolume(t *testing.T) {
	for _, depth := range []int{1, 3, 9} {
		tree, items := NewTree(someTree(500, 40, depth), 1, 1)
		require.Len(t, items, 500)
		require.Len(t, tree.Folders, 41)
		assert.Len(t, tree.Links, 50)
		assert.Len(t, tree.Executables, 100)
		folders, names, deepest := map[string]bool{}, map[string]bool{}, 0
		for i, name := range tree.Folders {
			assert.True(t, i == 0 || folders[path.Dir(name)], "a folder comes after the one around it")
			folders[name] = true
			deepest = max(deepest, strings.Count(name, "/"))
			names[name] = true
		}
		assert.Equal(t, depth, deepest)
		for _, it := range items {
			assert.True(t, folders[path.Dir(it.Name)])
			names[it.Name] = true
		}
		for _, l := range tree.Links {
			assert.True(t, folders[path.Join(path.Dir(l.Name), l.Target)], "a link leads to a folder")
			names[l.Name] = true
		}
		assert.Len(t, names, 500+41+50)
		for name := range names {
			assert.Empty(t, strings.Trim(name, "abcdefghijklmnopqrstuvwxyz0123456789-./"))
			assert.NotContains(t, " .", path.Base(name)[len(path.Base(name))-1:])
			assert.Less(t, len(path.Base(name)), 40)
		}
	}
}

// treeRun runs actions on a tree of a fake volume.
type treeRun struct {
	*fakeVolume
	spec TreeSpec
	o    Options
}

func newTreeRun(workers int) *treeRun {
	r := &treeRun{fakeVolume: newFake(), spec: TreeSpec{Share: 0.25, Key: Key{Seed: 1, Round: 1, Step: "rewrite"}}}
	r.o = Options{Clock: r.clock, Data: NewData(1, 1, "case", DataRandom, 0), Workers: workers, Sync: hostio.SyncFsync, Memory: 1 << 20}
	r.spec.Tree, r.spec.Files = NewTree(someTree(40, 6, 3), 1, 1)
	return r
}

func (r *treeRun) do(action string) (Outcome, error) {
	r.spec.Action = action
	return RunTree(context.Background(), r, &r.spec, r.o)
}

func counts(out Outcome) map[string]int64 {
	n := map[string]int64{}
	for _, o := range out.Operations {
		n[o.Kind] = o.Count
	}
	return n
}

func TestTreeActionsLeaveTheFilesAsTheyShouldBe(t *testing.T) {
	for _, workers := range []int{1, 4} {
		r := newTreeRun(workers)
		for _, step := range []struct {
			action string
			counts map[string]int64
			bytes  int64
		}{
			{"create", map[string]int64{"mkdir": 7, "create": 40}, 40_000},
			{"list", map[string]int64{"list": 7, "stat": 40}, 0},
			{"read", map[string]int64{"read": 40}, 40_000},
			{"rewrite", map[string]int64{"rewrite": 10}, 10_000},
			{"rewrite", map[string]int64{"rewrite": 10}, 10_000},
			{"rename", map[string]int64{"rename": 40}, 0},
			{"rewrite", map[string]int64{"rewrite": 10}, 10_000},
			{"rename", map[string]int64{"rename": 40}, 0},
			{"list", map[string]int64{"list": 7, "stat": 40}, 0},
		} {
			before := r.spec.Files
			out, err := r.do(step.action)
			require.NoError(t, err, step.action)
			assert.Equal(t, step.counts, counts(out), step.action)
			assert.Equal(t, step.bytes, out.Bytes, step.action)
			require.Len(t, r.files, 40)
			found, err := Verify(t.Context(), r, r.spec.Files, r.o)
			require.NoError(t, err)
			assert.Empty(t, found.Findings, step.action)
			if step.action == "rewrite" {
				found, err = Verify(t.Context(), r, before, r.o)
				require.NoError(t, err)
				assert.Len(t, found.Findings, 10, "overwritten files have other data")
			}
		}
		assert.Contains(t, r.spec.Files[0].Name, nameEnd, "renamed twice")
		out, err := r.do("delete")
		require.NoError(t, err)
		assert.Equal(t, map[string]int64{"remove": 40, "rmdir": 7}, counts(out))
		assert.Empty(t, r.files)
		assert.Equal(t, map[string]bool{".": true}, r.dirs)
		assert.Empty(t, r.spec.Files)
	}
}

// TestTreeTimesNothingElse: a latency has its calls alone, the span all
// latencies, and what comes before and after is in neither.
func TestTreeTimesNothingElse(t *testing.T) {
	r := newTreeRun(1)
	r.createCost, r.openCost, r.closeCost, r.writeCost, r.readCost, r.syncCost, r.evictCost = 1, 10, 100, 1000, 10_000, 100_000, time.Hour
	latency := func(out Outcome) (ns []int64) {
		for _, o := range out.Operations {
			require.Equal(t, o.Latency.Min, o.Latency.Max)
			require.Equal(t, o.Count, o.Latency.Count())
			ns = append(ns, o.Latency.Max)
		}
		return ns
	}
	out, err := r.do("create")
	require.NoError(t, err)
	assert.Equal(t, []int64{0, 101_101}, latency(out), "mkdir; create, write, flush, close")
	assert.Equal(t, &result.OperationsSpan{DurationNS: 40 * 101_101}, out.OperationsSpan, "without the flush of the volume")
	assert.Equal(t, &result.Achieved{Asked: "fsync", Achieved: "full"}, out.Sync)
	r.o.Cache = CacheCold
	out, err = r.do("read")
	require.NoError(t, err)
	assert.Equal(t, []int64{10_110}, latency(out), "open, read, close; without evicting")
	assert.Nil(t, out.Sync)
	assert.Equal(t, FoundDirect, out.Cache.Achieved)
	out, err = r.do("rewrite")
	require.NoError(t, err)
	assert.Equal(t, []int64{101_110}, latency(out))
	r.o.Sync, r.o.Memory = hostio.SyncNone, 1 // a wave for each file
	out, err = r.do("rewrite")
	require.NoError(t, err)
	assert.Equal(t, []int64{1110}, latency(out))
	assert.EqualValues(t, 11_100, out.OperationsSpan.DurationNS)
}

func TestTreeErrorsNameTheOperation(t *testing.T) {
	fault := errors.New("fault")
	for _, c := range []struct {
		action, want string
		harm         func(*treeRun)
	}{
		{"create", "operation create of", func(r *treeRun) { r.failWrite = func(string, int64) error { return fault } }},
		{"create", "operation create of", func(r *treeRun) { r.failSync = func(string) error { return fault } }},
		{"create", "operation create of", func(r *treeRun) { r.failClose = func(string) error { return fault } }},
		{"create", "operation mkdir of", func(r *treeRun) { r.dirs[r.spec.Tree.Folders[2]] = true }},
		{"read", "reading file", func(r *treeRun) { r.failOpen = func(string) error { return fault } }},
		{"rename", "operation rename of", func(r *treeRun) { delete(r.files, r.spec.Files[3].Name) }},
		{"list", "operation stat of", func(r *treeRun) { delete(r.files, r.spec.Files[3].Name) }},
		{"read", "unexpected EOF", func(r *treeRun) { r.files[r.spec.Files[3].Name].data = nil }},
		{"delete", "operation remove of", func(r *treeRun) { delete(r.files, r.spec.Files[3].Name) }},
	} {
		r := newTreeRun(2)
		if c.action != "create" {
			_, err := r.do("create")
			require.NoError(t, err)
		}
		c.harm(r)
		_, err := r.do(c.action)
		require.ErrorContains(t, err, c.want)
	}
	r := newTreeRun(1)
	ctx, cancel := context.WithCancelCause(t.Context())
	r.onCall = func(string) { cancel(fault) }
	r.spec.Action = "create"
	out, err := RunTree(ctx, r, &r.spec, r.o)
	require.ErrorIs(t, err, fault)
	assert.EqualValues(t, 1, counts(out)["create"], "what was complete before is in the outcome")
}

// TestTreeWarnsOfWhatTheVolumeCannotHave: without links and modes the tree is
// made without them.
func TestTreeWarnsOfWhatTheVolumeCannotHave(t *testing.T) {
	r := newTreeRun(1)
	out, err := r.do("create")
	require.NoError(t, err)
	require.Len(t, out.Warnings, 1)
	assert.Equal(t, "tree", out.Warnings[0].Kind)
	assert.Equal(t, "the volume has neither symbolic links nor modes: 4 links and 8 modes were not made", out.Warnings[0].Text)
	assert.Empty(t, r.spec.Tree.Links)
	assert.Empty(t, r.spec.Tree.Executables)
}

func TestCopiesAreComparedWithTheirSources(t *testing.T) {
	from, to := newTreeRun(2), newFake()
	_, err := from.do("create")
	require.NoError(t, err)
	from.files["alone"], from.files["a/b/file"] = &fakeBody{data: []byte("all that was written")}, &fakeBody{data: []byte{}}
	from.spec.AddFiles([]Item{{Name: "alone", Size: 20}, {Name: "a/b/file"}})
	from.spec.To, from.o.Sync = to, hostio.SyncNone
	out, err := from.do("copy")
	require.NoError(t, err)
	assert.Equal(t, map[string]int64{"list": 9, "mkdir": 9, "copy": 42}, counts(out))
	assert.EqualValues(t, 40_020, out.Bytes)
	assert.Equal(t, from.files, to.files)
	assert.True(t, to.dirs["a/b"])
	assert.Equal(t, &result.Achieved{Asked: "none", Achieved: "none"}, out.Sync)
	compare := func() []string {
		out, err := CompareCopies(t.Context(), from, to, from.spec.Files, from.o)
		require.NoError(t, err)
		return out.Findings
	}
	assert.Empty(t, compare())
	to.files["alone"].data[3]++
	to.files[from.spec.Files[5].Name].data = nil
	delete(to.files, from.spec.Files[6].Name)
	delete(from.files, from.spec.Files[7].Name)
	assert.Len(t, compare(), 4)
	for _, harm := range []func(){
		func() { to.failWrite = func(string, int64) error { return errors.New("fault") } },
		func() { from.o.Sync, to.failSync = hostio.SyncFsync, func(string) error { return errors.New("fault") } },
		func() { to.failClose = func(string) error { return errors.New("fault") } },
		func() { delete(from.files, "alone") },
	} {
		to, from.spec = newFake(), TreeSpec{Files: []Item{{Name: "alone", Size: 20}}}
		from.files["alone"] = &fakeBody{data: []byte("all that was written")}
		from.spec.To, from.o.Sync = to, hostio.SyncNone
		harm()
		_, err = from.do("copy")
		require.ErrorContains(t, err, `"alone"`)
	}
}

// TestCopyOfALargeFileEndsWhenItIsCanceled: in the middle of the file.
func TestCopyOfALargeFileEndsWhenItIsCanceled(t *testing.T) {
	from, to, fault := newTreeRun(1), newFake(), errors.New("fault")
	from.files["large"] = &fakeBody{data: make([]byte, 3*copyBlock)}
	from.spec = TreeSpec{Action: "copy", Files: []Item{{Name: "large", Size: 3 * copyBlock}}, To: to}
	ctx, cancel := context.WithCancelCause(t.Context())
	writes := 0
	to.failWrite = func(string, int64) error {
		writes++
		cancel(fault)
		return nil
	}
	_, err := RunTree(ctx, from, &from.spec, from.o)
	require.ErrorIs(t, err, fault)
	assert.Equal(t, 1, writes)
}

// TestTreeSizesAreLogNormal: median and spread are those of the plan, and the
// largest files are cut.
func TestTreeSizesAreLogNormal(t *testing.T) {
	set := plan.FileSet{Name: "t", Tree: &plan.Tree{Files: 20_000, Folders: 1, Depth: 1, Size: 3000, Spread: 5, Largest: 100_000}}
	below, least, most := map[float64]int{}, units.Bytes(math.MaxInt64), units.Bytes(0)
	for _, size := range set.Draw(1)[0] {
		for _, sigma := range []float64{-2, -1, 0, 1, 2} {
			if float64(size) < 3000*math.Pow(5, sigma) {
				below[sigma]++
			}
		}
		least, most = min(least, size), max(most, size)
	}
	for sigma, share := range map[float64]float64{-2: 0.0228, -1: 0.1587, 0: 0.5, 1: 0.8413, 2: 0.9772} {
		assert.InDelta(t, share, float64(below[sigma])/20_000, 0.01, sigma)
	}
	assert.EqualValues(t, 100_000, most)
	assert.Positive(t, least)
}

package simulated

import (
	"context"
	"io/fs"
	"math"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"dmgbench/internal/bench/engine"
	"dmgbench/internal/bench/workload"
	"dmgbench/internal/result"
	"dmgbench/internal/system/clock"
	"dmgbench/internal/system/hostio"
)

const plainLaw = "write = 5 GB/s\nread = 6 GB/s\nlatency = 200 us\nflush = 1 ms\nstep = 10 ms\n"

func lawOf(t testing.TB, text string) Machine {
	t.Helper()
	m, err := Parse(text)
	require.NoError(t, err)
	return m
}

// mounted gives a volume of a fresh device.
func mounted(t *testing.T, m Machine, c clock.Clock, seed uint64, session int, format string) (workload.Volume, engine.Container) {
	t.Helper()
	e, err := New(m, c, seed, session)
	require.NoError(t, err)
	con, err := e.Create(t.Context(), nil, "image", engine.Spec{Format: format, Size: 100e9})
	require.NoError(t, err)
	att, err := con.Attach(t.Context(), engine.AttachOptions{})
	require.NoError(t, err)
	return att.Volume(), con
}

func items(sizes ...int64) []workload.Item {
	out := make([]workload.Item, len(sizes))
	for i, s := range sizes {
		out[i] = workload.Item{Name: "f" + string(rune('a'+i%26)) + string(rune('a'+i/26)), Size: s, Set: 1}
	}
	return out
}

// written are the samples of writing the items through the workload.
func written(t *testing.T, v workload.Volume, c clock.Clock, list []workload.Item, sync hostio.SyncMode) []result.Sample {
	t.Helper()
	d := workload.NewData(1, 1, "case", "", 0)
	out, err := workload.Write(t.Context(), v, list, workload.Options{Clock: c, Data: d, Sync: sync, Cache: "direct"})
	require.NoError(t, err)
	return out.Samples
}

func TestTimesAreTheLaws(t *testing.T) {
	c := clock.NewVirtual(time.Unix(0, 0))
	v, con := mounted(t, lawOf(t, plainLaw), c, 1, 1, "UDRW")
	require.Equal(t, 20*time.Millisecond, c.Now(), "create and attach")
	list := items(5_000_000, 2_000_000_000)
	s := written(t, v, c, list, hostio.SyncFsync)
	assert.EqualValues(t, 1_000_000+200_000+1_000_000, s[0].DurationNS)
	assert.EqualValues(t, 400_000_000+2*200_000+1_000_000, s[1].DurationNS, "calls of at most 1 GiB")
	out, err := workload.Read(t.Context(), v, list[:1], workload.Options{Clock: c, Cache: "direct"})
	require.NoError(t, err)
	assert.EqualValues(t, math.Round(5e6/6e9*1e9+200_000), out.Samples[0].DurationNS)
	u, err := con.Usage(t.Context())
	require.NoError(t, err)
	assert.EqualValues(t, 2_005_000_000, u.Allocated)
}

// Whoever cancels need not wait for a step to pass, on a clock of either kind.
func TestACanceledStepEnds(t *testing.T) {
	for name, c := range map[string]clock.Clock{"virtual": clock.NewVirtual(time.Unix(0, 0)), "real": clock.NewReal()} {
		t.Run(name, func(t *testing.T) {
			e, err := New(lawOf(t, "write = 1 GB/s\nread = 1 GB/s\nstep = 1 h\n"), c, 1, 1)
			require.NoError(t, err)
			ctx, cancel := context.WithCancel(t.Context())
			cancel()
			_, err = e.Create(ctx, nil, "image", engine.Spec{Format: "UDRW", Size: 100e9})
			require.ErrorIs(t, err, context.Canceled)
			_, err = e.Open(t.Context(), nil, "image", engine.Spec{})
			require.ErrorIs(t, err, engine.ErrGone, "nothing was made")
		})
	}
}

func TestCliffFirstSlowAndDrift(t *testing.T) {
	at := func(text string, n int) []int64 {
		c := clock.NewVirtual(time.Unix(0, 0))
		v, _ := mounted(t, lawOf(t, "write = 1 GB/s\nread = 1 GB/s\n"+text), c, 1, 1, "UDRW")
		sizes := make([]int64, n)
		for i := range sizes {
			sizes[i] = 100_000_000
		}
		var out []int64
		for _, s := range written(t, v, c, items(sizes...), hostio.SyncNone) {
			out = append(out, s.DurationNS)
		}
		return out
	}
	assert.Equal(t, []int64{1e8, 1e8, 2.5e8, 4e8}, at("cliff = 250 MB x 4", 4))
	assert.Equal(t, []int64{3e8, 1e8, 1e8}, at("first = x 3", 3))
	assert.Equal(t, []int64{2e8, 2e8, 2e8}, at("slow = 100% x 2 in 10 files", 3))
	drifting := at("drift = 100%", 500) // twice as slow in an hour
	assert.InDelta(t, math.Pow(2, 50.0/3600), float64(drifting[499])/1e8, 0.001)
	slow := 0
	for _, d := range at("slow = 30% x 2 in 5 files", 500) {
		if d == 2e8 {
			slow++
		}
	}
	assert.InDelta(t, 150, slow, 60)
	assert.Zero(t, slow%5, "stretches are whole")
}

func TestDrawsFollowFromSeedSessionAndKind(t *testing.T) {
	m := lawOf(t, "write = 1 GB/s\nread = 1 GB/s\nfile_noise = 5%\nmount_noise = 5%\nsession_noise = 5%\nown_noise = 5%\n")
	one := func(seed uint64, session int, format string) int64 {
		c := clock.NewVirtual(time.Unix(0, 0))
		v, _ := mounted(t, m, c, seed, session, format)
		return written(t, v, c, items(1_000_000), hostio.SyncNone)[0].DurationNS
	}
	assert.Equal(t, one(1, 1, "UDRW"), one(1, 1, "UDRW"))
	assert.NotEqual(t, one(1, 1, "UDRW"), one(2, 1, "UDRW"))
	assert.NotEqual(t, one(1, 1, "UDRW"), one(1, 2, "UDRW"))
	assert.NotEqual(t, one(1, 1, "UDRW"), one(1, 1, "UDSB"))
}

// Whoever repeats a run with its seed gets its times again, also with a later version.
func TestASeedGivesTheSameTimesInEveryVersion(t *testing.T) {
	m := lawOf(t, "write = 1 GB/s\nread = 1 GB/s\nfile_noise = 5%\nmount_noise = 5%\nsession_noise = 5%\nown_noise = 5%\n"+
		"outliers = 20% x 3\nslow = 40% x 2 in 2 files\nflush = 1 ms\n")
	c := clock.NewVirtual(time.Unix(0, 0))
	v, _ := mounted(t, m, c, 1, 1, "UDRW")
	want := []int64{3338326, 3588198, 1811660, 1740324, 10230344, 3632108} // an outlier, and three stretches of two
	for i, s := range written(t, v, c, items(1e6, 1e6, 1e6, 1e6, 1e6, 1e6), hostio.SyncFsync) {
		assert.InDelta(t, want[i], s.DurationNS, 2)
	}
}

func TestNoiseHasTheStatedMoments(t *testing.T) {
	l := Law{FileNoise: 0.2, Outliers: 0.1, OutlierFactor: 4}
	const n = 200_000
	var sum, logs, squares float64
	for i := range n {
		sum += l.fileFactor(source(1).of(strconv.Itoa(i)))
		x := math.Log(source(2).of(strconv.Itoa(i)).lognormal(0.3))
		logs, squares = logs+x, squares+x*x
	}
	assert.InDelta(t, 0.9+0.1*4, sum/n, 0.01)
	assert.InDelta(t, 0, logs/n, 0.003)
	assert.InDelta(t, 0.3, math.Sqrt(squares/n), 0.003)
}

func TestRealClockSpins(t *testing.T) {
	c := clock.NewReal()
	v, _ := mounted(t, lawOf(t, "write = 1 GB/s\nread = 1 GB/s\nlatency = 50 us"), c, 1, 1, "")
	require.False(t, v.(workload.Dataless).Dataless())
	for _, s := range written(t, v, c, items(100_000, 200_000), hostio.SyncNone) {
		assert.GreaterOrEqual(t, s.DurationNS, 50_000+s.Bytes)
	}
}

func TestRefusals(t *testing.T) {
	c := clock.NewVirtual(time.Unix(0, 0))
	v, _ := mounted(t, lawOf(t, plainLaw), c, 1, 1, "UDRW")
	list := items(1000, 1000)
	d := workload.NewData(1, 1, "case", "", 0)
	_, err := workload.Write(t.Context(), v, list, workload.Options{Clock: c, Data: d, Workers: 2})
	require.ErrorIs(t, err, errWorkers)
	v, con := mounted(t, lawOf(t, plainLaw), c, 1, 1, "UDRW")
	written(t, v, c, list, hostio.SyncNone)
	out, err := workload.Verify(t.Context(), v, list, workload.Options{Clock: c, Data: d})
	require.NoError(t, err)
	require.Len(t, out.Findings, 2)
	require.Contains(t, out.Findings[0], errContent.Error())
	_, err = con.Resize(t.Context(), 1)
	require.ErrorAs(t, err, new(*engine.UnsupportedError))
	_, err = workload.Read(t.Context(), v, []workload.Item{{Name: "faa", Size: 2000}}, workload.Options{Clock: c})
	require.ErrorContains(t, err, "after the end")
}

func TestContainersGoAndCompact(t *testing.T) {
	c := clock.NewVirtual(time.Unix(0, 0))
	v, con := mounted(t, lawOf(t, plainLaw), c, 1, 1, "UDSB")
	list := items(1000, 3000)
	written(t, v, c, list, hostio.SyncNone)
	_, err := workload.Delete(t.Context(), v, list[1:], workload.Options{Clock: c})
	require.NoError(t, err)
	rep, err := con.Compact(t.Context(), engine.CompactOptions{})
	require.NoError(t, err)
	assert.EqualValues(t, 3000, rep.Freed)
	use, err := con.Usage(t.Context())
	require.NoError(t, err)
	assert.EqualValues(t, 1000, use.Allocated)
	left, err := v.Size("faa")
	require.NoError(t, err)
	assert.EqualValues(t, 1000, left)
	_, err = v.Size(list[1].Name)
	require.ErrorIs(t, err, fs.ErrNotExist)
	require.NoError(t, con.Remove(t.Context()))
	e := con.(*container).e
	_, err = e.Open(t.Context(), nil, "image", engine.Spec{})
	require.ErrorIs(t, err, engine.ErrGone)
}

func TestAContainerIsFoundByItsNameAndMadeOnce(t *testing.T) {
	_, con := mounted(t, lawOf(t, plainLaw), clock.NewVirtual(time.Unix(0, 0)), 1, 1, "UDRW")
	e := con.(*container).e
	found, err := e.Open(t.Context(), nil, "image", engine.Spec{})
	require.NoError(t, err)
	assert.Same(t, con, found)
	_, err = e.Create(t.Context(), nil, "image", engine.Spec{})
	require.ErrorContains(t, err, "it exists")
}

// A path has many spellings, and each means the same file.
func TestNamesMayBeSpelledInAnyWay(t *testing.T) {
	v, _ := mounted(t, lawOf(t, plainLaw), clock.NewVirtual(time.Unix(0, 0)), 1, 1, "UDRW")
	require.NoError(t, v.Mkdir("./a/"))
	require.ErrorIs(t, v.Mkdir("a"), fs.ErrExist)
	_, err := v.Create("a//f", 0, workload.FileOptions{})
	require.NoError(t, err)
	_, err = v.Create("a/f", 0, workload.FileOptions{})
	require.ErrorIs(t, err, fs.ErrExist)
	_, err = v.Open("a/./f", workload.FileOptions{})
	require.NoError(t, err)
	_, err = v.Size("a/b/../f")
	require.NoError(t, err)
	require.NoError(t, v.Remove("./a/f"))
	_, err = v.Size("a/f")
	require.ErrorIs(t, err, fs.ErrNotExist)
}

// A container that is made again under its name, as the canary is before each case, is another one.
func TestEveryBirthIsDrawnAnew(t *testing.T) {
	c := clock.NewVirtual(time.Unix(0, 0))
	e, err := New(lawOf(t, "write = 1 GB/s\nread = 1 GB/s\nmount_noise = 5%"), c, 1, 1)
	require.NoError(t, err)
	times := map[int64]bool{}
	for range 5 {
		con, err := e.Create(t.Context(), nil, "canary", engine.Spec{})
		require.NoError(t, err)
		att, err := con.Attach(t.Context(), engine.AttachOptions{})
		require.NoError(t, err)
		times[written(t, att.Volume(), c, items(1_000_000), hostio.SyncNone)[0].DurationNS] = true
		require.NoError(t, con.Remove(t.Context()))
	}
	assert.Len(t, times, 5)
}

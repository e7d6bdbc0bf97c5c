package workload

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"runtime/debug"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"dmgbench/internal/plan"
	"dmgbench/internal/system/hostio"
)

// A failing file ends the step by name; what was complete before it stays.
func TestFailingFileNamesItself(t *testing.T) {
	boom := errors.New("device on fire")
	third := func(name string) error {
		if strings.HasSuffix(name, "f002") {
			return boom
		}
		return nil
	}
	for _, c := range []struct {
		name, want string
		set        func(v *fakeVolume)
	}{
		{"write", `writing file "batch001/f002": device on fire`,
			func(v *fakeVolume) { v.failWrite = func(n string, _ int64) error { return third(n) } }},
		{"flush", `writing file "batch001/f002": device on fire`, func(v *fakeVolume) { v.failSync = third }},
		{"close", `writing file "batch001/f002": closing: device on fire`, func(v *fakeVolume) { v.failClose = third }},
	} {
		for _, workers := range []int{1, 4} {
			t.Run(fmt.Sprint(c.name, workers), func(t *testing.T) {
				v := newFake()
				c.set(v)
				o := Options{Clock: v.clock, Data: randomData(t), Workers: workers, Sync: hostio.SyncFull}
				out, err := Write(t.Context(), v, items(10, 20, 30, 40, 50), o)
				require.ErrorIs(t, err, boom)
				require.EqualError(t, err, c.want)
				for _, s := range out.Samples {
					assert.NotEqual(t, "batch001/f002", s.File)
				}
				if workers == 1 {
					assert.Len(t, out.Samples, 2)
				}
				assertAllClosed(t, v)
			})
		}
	}
}

func assertAllClosed(t *testing.T, v *fakeVolume) {
	open := 0
	for _, what := range v.log {
		if strings.HasPrefix(what, "create ") || strings.HasPrefix(what, "open ") {
			open++
		}
		if strings.HasPrefix(what, "close ") {
			open--
		}
	}
	assert.Zero(t, open, "files left open")
}

func TestReadFaults(t *testing.T) {
	v := newFake()
	list := items(10, 20, 30)
	o := Options{Clock: v.clock, Data: randomData(t), Workers: 2}
	_, err := Write(t.Context(), v, list, o)
	require.NoError(t, err)
	_, err = Write(t.Context(), v, list, o)
	require.EqualError(t, err, `writing file "batch001/f000": creating: file already exists`)
	v.files["batch001/f001"].data = v.files["batch001/f001"].data[:19]
	_, err = Read(t.Context(), v, list, o)
	require.EqualError(t, err, `reading file "batch001/f001": unexpected EOF`)
	delete(v.files, "batch001/f000")
	_, err = Read(t.Context(), v, list, o)
	require.EqualError(t, err, `reading file "batch001/f000": opening: file does not exist`)
	assertAllClosed(t, v)
}

func TestVerifyNamesWhatIsWrong(t *testing.T) {
	v := newFake()
	list := items(3<<20, 20, 30, 40, 5)
	o := Options{Clock: v.clock, Data: randomData(t), Workers: 2}
	_, err := Write(t.Context(), v, list, o)
	require.NoError(t, err)
	v.files["batch001/f000"].data[2<<20+17] ^= 1
	delete(v.files, "batch001/f001")
	v.files["batch001/f002"].data = v.files["batch001/f002"].data[:29]
	v.failOpen = func(name string) error {
		if strings.HasSuffix(name, "f003") {
			return syscall.EIO
		}
		return nil
	}
	var last Progress
	o.Progress = func(p Progress) { last = p }
	out, err := Verify(t.Context(), v, list, o)
	require.NoError(t, err)
	assert.Equal(t, Progress{Files: 5, OfFiles: 5, Bytes: Total(list), OfBytes: Total(list)}, last)
	got := v.files["batch001/f000"].data[2<<20+17]
	assert.Equal(t, []string{
		fmt.Sprintf(`file "batch001/f000": first difference at byte 2097169: 0x%02x, want 0x%02x`, got, got^1),
		`file "batch001/f001": missing`,
		`file "batch001/f002": has 29 bytes, want 30`,
		`file "batch001/f003": opening: input/output error`,
	}, out.Findings)
	assert.Equal(t, int64(5), out.Bytes)
	assert.Equal(t, []int{2, 2}, []int{out.Lost, out.Damaged}, "missing and unreadable; other bytes and another size")
	other := NewData(8, 1, "case", DataRandom, 0)
	o.Data, v.failOpen = other, nil
	out, err = Verify(t.Context(), v, list[4:], o)
	require.NoError(t, err)
	require.Len(t, out.Findings, 1, "another seed is other data")
}

// Cancelling stops between the calls of a big file, and says which file.
func TestCancelStopsInsideABigFile(t *testing.T) {
	for _, workers := range []int{1, 3} {
		v := newFake()
		ctx, cancel := context.WithCancelCause(t.Context())
		var mu sync.Mutex // no call passes between the fifth and the end of the context
		calls := 0
		v.onCall = func(string) {
			mu.Lock()
			defer mu.Unlock()
			if calls++; calls == 5 {
				cancel(errors.New("the user stopped"))
			}
		}
		o := Options{Clock: v.clock, Data: randomData(t), Block: 4096, Workers: workers}
		out, err := Write(ctx, v, items(8192, 1<<20, 1<<20, 1<<20), o)
		require.ErrorContains(t, err, `writing file "batch001/`)
		require.ErrorContains(t, err, `the user stopped`)
		assert.Less(t, len(out.Samples), 4)
		assert.Less(t, calls, 5+workers, "at most the calls under way")
		assertAllClosed(t, v)
	}
}

// Files that memory cannot hold go through a ring, and are as right as others.
func TestRingWritesTheSameBytes(t *testing.T) {
	for _, workers := range []int{1, 2} {
		v := newFake()
		list := items(1<<20+1, 4096, 3<<20+77, 100_000, 1<<20)
		o := Options{Clock: v.clock, Data: randomData(t), Workers: workers, Memory: 4 << 18}
		out, err := Write(t.Context(), v, list, o)
		require.NoError(t, err)
		require.Len(t, out.Samples, 5)
		require.NotEmpty(t, out.Warnings)
		assert.Equal(t, "data-ring", out.Warnings[0].Kind)
		assert.Contains(t, out.Warnings[0].Text, "3 of 5 files were too large")
		o.Memory = 1 << 30
		found, err := Verify(t.Context(), v, list, o)
		require.NoError(t, err)
		assert.Empty(t, found.Findings)
	}
}

func TestRingEndsAfterAFailure(t *testing.T) {
	v := newFake()
	v.failWrite = func(_ string, off int64) error {
		if off > 1<<20 {
			return syscall.ENOSPC
		}
		return nil
	}
	o := Options{Clock: v.clock, Data: randomData(t), Memory: 4 << 18}
	_, err := Write(t.Context(), v, items(8<<20, 8<<20), o)
	require.EqualError(t, err, `writing file "batch001/f000": no space left on device`)
}

// Memory never holds more than a quarter of what there is.
func TestLayoutKeepsToAQuarter(t *testing.T) {
	list := Items(gold(OrderShuffled), Key{Seed: 1, Batch: 1})
	for _, workers := range []int{1, 2, 8, 64} {
		for _, memory := range []int64{1 << 28, 8 << 30, 24 << 30} {
			for _, block := range []int64{0, 1 << 20, 100 << 20} {
				o := Options{Workers: workers, Memory: memory, Block: block}
				l := layoutWrite(nil, list, o)
				assert.LessOrEqual(t, l.memory, memory/4)
				var all []Item
				for _, w := range l.waves {
					assert.LessOrEqual(t, len(w), maxOpen)
					all = append(all, w...)
				}
				assert.Equal(t, list, all)
				r := layoutRead(nil, list, o)
				assert.LessOrEqual(t, r.memory, max(memory/4, int64(workers)<<20))
				assert.Equal(t, list, slices.Concat(r.waves...))
			}
		}
	}
	assert.Len(t, layoutWrite(nil, list, Options{Workers: 1, Memory: 24 << 30}).waves, 160)
	l := layoutWrite(nil, list, Options{Workers: 2, Memory: 24 << 30})
	assert.Zero(t, l.rings)
	assert.LessOrEqual(t, len(l.waves), 11)
}

// With one processor, another goroutine runs only if this one yields.
func TestYieldRunsTheSchedulerAfterAWhile(t *testing.T) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1))
	var s span
	for _, now := range []int64{yieldAfter + 1, 2*yieldAfter + 2, 3*yieldAfter + 3} {
		var other atomic.Bool
		go other.Store(true)
		before := s.ran
		s.yield(before + yieldAfter)
		assert.Equal(t, before, s.ran, "not yet")
		for i := 0; i < 100 && !other.Load(); i++ { // the goroutine of a timer may come first
			s.ran = before
			s.yield(now)
		}
		assert.True(t, other.Load())
		assert.Equal(t, now, s.ran)
	}
}

// Each thread of file I/O has a processor of the runtime in addition to those of the machine.
func TestThreadsHaveProcessorsWhileTimed(t *testing.T) {
	before := runtime.GOMAXPROCS(0)
	first := pauseGC(3)
	assert.Equal(t, before+3, runtime.GOMAXPROCS(0))
	second := pauseGC(5)
	assert.Equal(t, before+8, runtime.GOMAXPROCS(0))
	first()
	assert.Equal(t, before+8, runtime.GOMAXPROCS(0), "a change would stop all threads while the other step is timed")
	second()
	assert.Equal(t, before, runtime.GOMAXPROCS(0))

	v := fakeDisk(1 << 20)
	var seen atomic.Int64
	v.onCall = func(string) { seen.Store(int64(runtime.GOMAXPROCS(0))) }
	o := randomOptions(t, v)
	o.Workers = 3
	_, err := Random(t.Context(), v, plan.Step{File: randomFile, FileSize: 1 << 20, Amount: 30 << 12}, Key{}, o)
	require.NoError(t, err)
	assert.EqualValues(t, before+3, seen.Load(), "one for each worker")
	assert.Equal(t, before, runtime.GOMAXPROCS(0))
}

// While files are timed the collector is off; afterwards it is as it was.
func TestCollectorIsOffOnlyWhileTimed(t *testing.T) {
	before := debug.SetGCPercent(77)
	defer debug.SetGCPercent(before)
	limit := int64(5 << 40)
	defer debug.SetMemoryLimit(debug.SetMemoryLimit(limit))
	v := newFake()
	var seen atomic.Int64
	v.onCall = func(string) {
		p := debug.SetGCPercent(-1)
		seen.Store(int64(p))
	}
	o := Options{Clock: v.clock, Data: randomData(t)}
	err := Parallel(t.Context(), func(ctx context.Context, g *Gate) error {
		o := o
		o.Gate = g
		_, err := Write(ctx, v, items(10, 20), o)
		return err
	}, func(ctx context.Context, g *Gate) error {
		o := o
		o.Gate = g
		other := items(10, 20)
		for i := range other {
			other[i].Name = "other/" + other[i].Name
		}
		_, err := Write(ctx, v, other, o)
		return err
	})
	require.NoError(t, err)
	assert.Equal(t, int64(-1), seen.Load())
	assert.Equal(t, 77, debug.SetGCPercent(77))
	assert.Equal(t, limit, debug.SetMemoryLimit(-1))
}

// Nobody's clock runs before all are ready; who fails before the gate does not hold
// the others.
func TestGateStartsTogether(t *testing.T) {
	v := newFake()
	var started, prepared sync.WaitGroup
	prepared.Add(2)
	started.Add(2)
	var early atomic.Bool
	step := func(ctx context.Context, g *Gate) error {
		prepared.Done()
		if err := g.wait(ctx); err != nil {
			return err
		}
		started.Done()
		return nil
	}
	err := Parallel(t.Context(), step, step, func(ctx context.Context, g *Gate) error {
		prepared.Wait()
		select {
		case <-g.shared.open:
			early.Store(true)
		default:
		}
		_, err := Read(ctx, v, items(1), Options{Clock: v.clock, Gate: g})
		return err
	})
	require.EqualError(t, err, `reading file "batch001/f000": opening: file does not exist`)
	started.Wait()
	assert.False(t, early.Load())
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	missing := &barrier{parties: 2, open: make(chan struct{})}
	missing.missing.Store(2)
	require.ErrorIs(t, (&Gate{shared: missing}).wait(ctx), context.Canceled)
	var none *Gate
	none.Leave()
	require.NoError(t, none.wait(ctx))
}

// A step opens its files and then waits: it calls nothing that is timed before the other one has come.
func TestNothingIsTimedBeforeTheGateOpens(t *testing.T) {
	v := newFake()
	var arrived, early atomic.Bool
	opened := make(chan struct{})
	v.failOpen = func(string) error { close(opened); return nil }
	v.files["batch001/f000"] = &fakeBody{make([]byte, 10)}
	v.onCall = func(string) { early.Store(early.Load() || !arrived.Load()) }
	err := Parallel(t.Context(), func(ctx context.Context, g *Gate) error {
		_, err := Read(ctx, v, items(10), Options{Clock: v.clock, Gate: g})
		return err
	}, func(context.Context, *Gate) error {
		<-opened
		for range 10_000 { // a reader that does not wait reads now
			runtime.Gosched()
		}
		arrived.Store(true)
		return nil
	})
	require.NoError(t, err)
	assert.False(t, early.Load(), "it read before the other step was there")
}

func TestQoSIsSetOnThreadsThatEnd(t *testing.T) {
	for _, qos := range []string{QoSUtility, QoSBackground} {
		v := newFake()
		out, err := Write(t.Context(), v, items(10, 20, 30), Options{Clock: v.clock, Data: randomData(t), QoS: qos, Workers: 2})
		require.NoError(t, err)
		assert.Len(t, out.Samples, 3)
		require.NotNil(t, out.QoS)
		assert.Equal(t, qos, out.QoS.Asked)
		switch runtime.GOOS {
		case "linux":
			assert.Equal(t, map[string]string{QoSUtility: "nice 10, I/O best effort 7", QoSBackground: "nice 19, I/O idle"}[qos], out.QoS.Achieved)
		case "darwin":
			assert.Contains(t, out.QoS.Achieved, qos)
		}
	}
	v := newFake()
	out, err := Write(t.Context(), v, items(10), Options{Clock: v.clock, Data: randomData(t)})
	require.NoError(t, err)
	if found, err := threadQoS(); err == nil && found == QoSDefault { // who runs the tests may have lowered it
		assert.Nil(t, out.QoS, "a thread that was changed is not used again")
	}
}

func TestDelete(t *testing.T) {
	v := newFake()
	list := items(10, 20, 30)
	o := Options{Clock: v.clock, Data: randomData(t)}
	_, err := Write(t.Context(), v, list, o)
	require.NoError(t, err)
	out, err := Delete(t.Context(), v, list[1:], o)
	require.NoError(t, err)
	assert.Equal(t, int64(50), out.Bytes)
	assert.Len(t, v.files, 1)
	_, err = Delete(t.Context(), v, list, o)
	require.EqualError(t, err, `deleting file "batch001/f001": file does not exist`)
}

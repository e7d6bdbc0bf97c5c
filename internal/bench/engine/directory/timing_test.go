package directory_test

import (
	"context"
	"path"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"dmgbench/internal/bench/engine"
	"dmgbench/internal/bench/engine/directory"
	"dmgbench/internal/bench/workload"
	"dmgbench/internal/result"
	"dmgbench/internal/system/clock"
	"dmgbench/internal/system/hostio"
)

// watch notes when each host operation happened.
type watch struct {
	clock clock.Clock
	mu    sync.Mutex
	seen  []seen
}

type seen struct {
	kind hostio.Kind
	name string
	at   int64
}

func (w *watch) Before(op hostio.Op) error { w.add(op); return nil }

func (w *watch) After(op hostio.Op, _ int, _ error) { w.add(op) }

func (w *watch) add(op hostio.Op) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.seen = append(w.seen, seen{op.Kind, path.Base(op.Path), int64(w.clock.Now())})
}

// On a real disk, with one worker and with several: every write and flush lies
// in its own file's span, and nothing else of ours lies in anybody's.
func TestNothingElseHappensInASpan(t *testing.T) {
	for _, workers := range []int{1, 3} {
		w := &watch{clock: clock.NewReal()}
		c, err := directory.Engine{}.Create(t.Context(), place(t, hostio.WithHook(w)), "base", engine.Spec{})
		require.NoError(t, err)
		list, o := oddSizes(), options(t)
		o.Clock, o.Workers, o.Block, o.Cache, o.Preallocate = w.clock, workers, 64<<10, workload.CacheDirect, true
		vol := attach(t, c).Volume()
		out, err := workload.Write(t.Context(), vol, list, o)
		require.NoError(t, err)
		require.NotZero(t, w.count(hostio.OpWrite))
		assert.Equal(t, w.inside(t, out.Samples, hostio.OpWrite, hostio.OpSync), w.count(hostio.OpWrite, hostio.OpSync))
		w.seen = nil
		out, err = workload.Read(t.Context(), vol, list, o)
		require.NoError(t, err)
		require.NotZero(t, w.count(hostio.OpRead))
		assert.Equal(t, w.inside(t, out.Samples, hostio.OpRead), w.count(hostio.OpRead))
	}
}

func (w *watch) count(kinds ...hostio.Kind) (n int) {
	for _, s := range w.seen {
		for _, k := range kinds {
			if s.kind == k {
				n++
			}
		}
	}
	return n
}

// inside counts the timed operations that lie in their file's span, and fails
// for any other operation that lies in any span.
func (w *watch) inside(t *testing.T, samples []result.Sample, timed ...hostio.Kind) (n int) {
	for _, s := range w.seen {
		for _, f := range samples {
			in := f.StartNS < s.at && s.at < f.StartNS+f.DurationNS
			switch {
			case !in:
			case w.is(s.kind, timed):
				if path.Base(f.File) == s.name {
					n++
				}
			default:
				assert.Fail(t, "inside a span", "%s of %q in the span of %q", s.kind, s.name, f.File)
			}
		}
	}
	return n
}

func (*watch) is(k hostio.Kind, kinds []hostio.Kind) bool {
	for _, one := range kinds {
		if one == k {
			return true
		}
	}
	return false
}

// Reading one batch while another is written: both start at one gate, and both are right.
func TestReadWhileWriting(t *testing.T) {
	c, err := directory.Engine{}.Create(t.Context(), place(t), "base", engine.Spec{})
	require.NoError(t, err)
	vol, old, o := attach(t, c).Volume(), oddSizes(), options(t)
	_, err = workload.Write(t.Context(), vol, old, o)
	require.NoError(t, err)
	fresh := slices.Clone(old)
	for i := range fresh {
		fresh[i].Name = "new/" + fresh[i].Name
	}
	var read, written workload.Outcome
	err = workload.Parallel(t.Context(), func(ctx context.Context, g *workload.Gate) (err error) {
		o := o
		o.Gate = g
		read, err = workload.Read(ctx, vol, old, o)
		return err
	}, func(ctx context.Context, g *workload.Gate) (err error) {
		o := o
		o.Gate = g
		written, err = workload.Write(ctx, vol, fresh, o)
		return err
	})
	require.NoError(t, err)
	assert.InDelta(t, read.Span.GateNS, written.Span.GateNS, float64(time.Second))
	assert.Equal(t, 1, written.Span.Waves, "all data is made before the gate")
	found, err := workload.Verify(t.Context(), vol, append(old, fresh...), o)
	require.NoError(t, err)
	assert.Empty(t, found.Findings)
}

// A file of the folder can be compressed in place and read back.
func TestStreamOnAFolder(t *testing.T) {
	c, err := directory.Engine{}.Create(t.Context(), place(t), "base", engine.Spec{})
	require.NoError(t, err)
	vol, o := attach(t, c).Volume(), options(t)
	o.Cache = workload.CacheDirect
	d := workload.NewData(1, 1, "c", workload.DataMixed, 0.5)
	o.Data = d
	const size = 9_000_001
	_, err = workload.Copy(t.Context(), workload.Generated(d, "back", size), vol, "source", o)
	require.NoError(t, err)
	out, err := workload.Stream(t.Context(), vol, workload.StreamSpec{From: "source", To: "packed", Codec: workload.CodecZstd, Threads: 2}, o)
	require.NoError(t, err)
	assert.InDelta(t, 2, out.Stream.Ratio, 0.05)
	_, err = workload.Stream(t.Context(), vol, workload.StreamSpec{From: "packed", To: "back", Direction: workload.Decompress, Codec: workload.CodecZstd}, o)
	require.NoError(t, err)
	found, err := workload.Verify(t.Context(), vol, []workload.Item{{Name: "back", Size: size}}, o)
	require.NoError(t, err)
	assert.Empty(t, found.Findings)
}

// Writing a host file through the volume allocates nothing.
func TestTransfersAllocateNothing(t *testing.T) {
	c, err := directory.Engine{}.Create(t.Context(), place(t), "base", engine.Spec{})
	require.NoError(t, err)
	f, err := attach(t, c).Volume().Create("f", 1<<20, workload.FileOptions{})
	require.NoError(t, err)
	defer f.Close()
	buf, err := hostio.AlignedBuffer(1 << 20)
	require.NoError(t, err)
	defer buf.Free()
	assert.Zero(t, testing.AllocsPerRun(50, func() {
		_, err = f.WriteAt(buf.Bytes(), 0)
		if err == nil {
			_, err = f.ReadAt(buf.Bytes(), 0)
		}
	}))
	require.NoError(t, err)
	t.Logf("a flush allocates %.0f times", testing.AllocsPerRun(5, func() { _, err = f.Sync(hostio.SyncFsync) }))
	require.NoError(t, err)
}

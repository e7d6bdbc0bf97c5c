package container

import (
	"bytes"
	"path"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"dmgbench/internal/system/hostio"
	"dmgbench/internal/system/hostio/hostiotest"
)

// durable tells which of the first n operations a disk must keep that loses
// whatever no flush covered: content when its file was synced later, names
// when their folder was.
func durable(ops []hostio.Op, n int) []bool {
	keep := make([]bool, n)
	synced, listed := map[string]bool{}, map[string]bool{}
	for i := n - 1; i >= 0; i-- {
		switch op := ops[i]; op.Kind {
		case hostio.OpSync:
			synced[op.Path] = true
		case hostio.OpDirSync:
			listed[op.Path] = true
		case hostio.OpCreate, hostio.OpMkdir, hostio.OpRemove:
			// A journal that keeps a file's content keeps its name too.
			keep[i] = listed[path.Dir(op.Path)] || synced[op.Path]
		case hostio.OpRename:
			keep[i] = listed[path.Dir(op.Path)]
			// What happened before belongs to the file under its old name.
			synced[op.Path] = synced[op.Path] || synced[op.To]
		default:
			keep[i] = synced[op.Path]
		}
	}
	return keep
}

// TestFlushedDataSurvivesALossyCrash replays a life up to the end of each
// flush and drops all that no sync covers: the device holds exactly what it
// held when Flush returned.
func TestFlushedDataSurvivesALossyCrash(t *testing.T) {
	rec := &hostiotest.Recorder{}
	d := tempDir(t, hostio.WithHook(rec))
	require.NoError(t, Create(d, "i", Spec{Format: UDSB, Size: 6 << 20, BandSize: 1 << 20}))
	img, err := Open(d, "i", OpenOptions{Sync: hostio.SyncFsync})
	require.NoError(t, err)
	img.(*bundle).open = &openBands{limit: 2}
	want := make([]byte, 6<<20)
	write := func(off int64, n int, seed uint64) func() error {
		return func() error {
			p := pattern(n, seed)
			copy(want[off:], p)
			_, err := img.WriteAt(p, off)
			return err
		}
	}
	discard := func(off, n int64) func() error {
		return func() error {
			clear(want[off : off+n])
			return img.Discard(off, n)
		}
	}
	resize := func(n int64) func() error {
		return func() error {
			want = append(slices.Clone(want[:min(n, int64(len(want)))]), make([]byte, max(n-int64(len(want)), 0))...)
			return img.Resize(n)
		}
	}
	type point struct {
		ops  int
		want []byte
	}
	var points []point
	for _, turn := range [][]func() error{
		{write(0, 700_000, 1)},
		{write(500_000, 3_000_000, 2), write(5<<20, 4096, 3)},
		{discard(1<<20, 1<<20), discard(300_000, 200_000), write(1<<20+1000, 5000, 4)},
		{discard(3<<20-200_000, 200_000)}, // the end of a band
		{discard(0, 1<<20)},
		{write(100, 1000, 5), resize(3 << 20)},
		{resize(6 << 20), write(4<<20, 600, 6)},
		{func() error { _, err := img.Compact(nil); return err }},
	} {
		for _, do := range turn {
			require.NoError(t, do())
		}
		require.NoError(t, img.Flush())
		points = append(points, point{len(rec.Ops()), slices.Clone(want)})
	}
	require.NoError(t, img.Close())
	ops := rec.Ops()
	for i, p := range points {
		keep := durable(ops, p.ops)
		dst := tempDir(t)
		require.NoError(t, rec.Replay(0, p.ops, dst, func(i int, _ hostio.Op) bool { return keep[i] }))
		after, err := Open(dst, "i", OpenOptions{})
		require.NoError(t, err, "point %d", i)
		got := make([]byte, after.Size())
		_, err = after.ReadAt(got, 0)
		require.NoError(t, err)
		require.True(t, bytes.Equal(p.want, got), "device after flush %d", i)
		require.NoError(t, after.Close())
	}
}

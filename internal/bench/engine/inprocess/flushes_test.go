package inprocess_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"dmgbench/internal/bench/engine"
	"dmgbench/internal/bench/engine/directory"
	"dmgbench/internal/bench/engine/inprocess"
	"dmgbench/internal/bench/workload"
	"dmgbench/internal/plan"
	"dmgbench/internal/system/clock"
	"dmgbench/internal/system/hostio"
	"dmgbench/internal/system/units"
)

// TestFlushesOfAFile counts what latency consists of: a new file takes two flushes of a raw image, the data and where it lies
// before the entry that names it, and one of a folder of the host.
func TestFlushesOfAFile(t *testing.T) {
	const files = 4
	for _, test := range []struct {
		engine engine.Engine
		format string
		each   int64
	}{{inprocess.New(nil), "UDRW", 2}, {directory.Engine{}, "", 1}} {
		c, err := test.engine.Create(t.Context(), place(t), "img", engine.Spec{Format: test.format, Size: 32 << 20})
		require.NoError(t, err)
		a := attach(t, c)
		data := workload.NewData(1, 1, "", "", 0)
		set := plan.FileSet{Name: "set", Parts: []plan.FilePart{{Sizes: []units.Bytes{1 << 20}, Sets: files}}}
		items := workload.Items(set, workload.Key{Step: "write", Batch: 1})
		require.NoError(t, a.Volume().Mkdir("first"), "the first change marks the volume as dirty")
		out, err := workload.Write(t.Context(), a.Volume(), items, workload.Options{Clock: clock.NewReal(), Data: data, Sync: hostio.SyncFsync})
		require.NoError(t, err)
		assert.Equal(t, files*test.each, out.Flushes, test.format)

		f, err := a.Volume().Open(items[0].Name, workload.FileOptions{})
		require.NoError(t, err)
		before := hostio.Flushes()
		if _, err = f.WriteAt([]byte("other"), 0); test.format != "" {
			require.NoError(t, err)
			_, err = f.Sync(hostio.SyncFsync)
			require.NoError(t, err)
			assert.EqualValues(t, 1, hostio.Flushes()-before, "in place")
		}
		require.NoError(t, f.Close())
		detach(t, a)
	}
}

// A flush reports what the host achieves for the files of the container, whichever flush was asked for.
func TestFlushesOfAFileReportWhatTheHostAchieves(t *testing.T) {
	dir := place(t)
	plain, err := dir.Open("plain", hostio.OpenOptions{Write: true, Create: true})
	require.NoError(t, err)
	defer plain.Close()
	full, err := plain.Sync(hostio.SyncFull)
	require.NoError(t, err)
	for _, format := range []string{"UDRW", "UDSB", "UDSP", "ASIF"} {
		c, err := inprocess.New(nil).Create(t.Context(), dir, format, engine.Spec{Format: format, Size: 8 << 20})
		require.NoError(t, err)
		a := attach(t, c)
		put(t, a.Volume(), "f", 100)
		f, err := a.Volume().Open("f", workload.FileOptions{})
		require.NoError(t, err)
		for asked, want := range map[hostio.SyncMode]hostio.SyncMode{
			hostio.SyncFull: full, hostio.SyncFsync: full, hostio.SyncNone: hostio.SyncNone, "": hostio.SyncNone,
		} {
			achieved, err := f.Sync(asked)
			require.NoError(t, err)
			assert.Equal(t, want, achieved, "%s: %q", format, asked)
		}
		require.NoError(t, f.Close())
		detach(t, a)
	}
}

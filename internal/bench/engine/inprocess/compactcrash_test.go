package inprocess_test

import (
	"bytes"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"dmgbench/internal/bench/engine"
	"dmgbench/internal/bench/engine/inprocess"
	"dmgbench/internal/bench/workload"
	"dmgbench/internal/system/hostio"
	"dmgbench/internal/system/hostio/hostiotest"
)

// The bitmap of a volume that nobody unmounted may lack clusters of files: compacting frees zeros, and zeros alone.
func TestCompactingAfterACrashFreesZerosAlone(t *testing.T) {
	for _, format := range []string{"UDSB", "UDSP", "ASIF"} {
		rec := &hostiotest.Recorder{}
		spec := engine.Spec{Format: format, Size: 24 << 20, BandSize: 1 << 20}
		c, err := inprocess.New(nil).Create(t.Context(), fast(t, hostio.WithHook(rec)), "img", spec)
		require.NoError(t, err)
		a := attach(t, c)
		put(t, a.Volume(), "file", 5_000_000)
		zeros, err := a.Volume().Create("zeros", 5_000_000, workload.FileOptions{})
		require.NoError(t, err)
		_, err = zeros.WriteAt(make([]byte, 5_000_000), 0)
		require.NoError(t, err)
		_, err = zeros.Sync(hostio.SyncFull)
		require.NoError(t, err)
		require.NoError(t, zeros.Close())
		crashed := fast(t)
		require.NoError(t, rec.Replay(0, len(rec.Ops()), crashed, nil))
		detach(t, a)

		left, err := inprocess.New(nil).Open(t.Context(), crashed, "img", spec)
		require.NoError(t, err)
		r, err := left.Compact(t.Context(), engine.CompactOptions{})
		require.NoError(t, err)
		assert.GreaterOrEqual(t, r.Freed, int64(3<<20), "%s: bands of the zeros", format)
		a, err = left.Attach(t.Context(), engine.AttachOptions{ReadOnly: true})
		require.NoError(t, err)
		f, err := a.Volume().Open("file", workload.FileOptions{})
		require.NoError(t, err)
		got := make([]byte, 5_000_000)
		_, err = f.ReadAt(got, 0)
		require.NoError(t, err)
		assert.True(t, bytes.Equal(bytes.Repeat([]byte("dmgbench"), len(got)/8), got), format)
		require.NoError(t, f.Close())
		done, err := a.Detach(t.Context(), false)
		require.NoError(t, err)
		assert.Contains(t, done.Warnings, "the volume was not unmounted cleanly", format)
	}
}

package hostio_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"dmgbench/internal/bench/workload"
	"dmgbench/internal/bench/workload/folder"
	"dmgbench/internal/system/clock"
	"dmgbench/internal/system/hostio"
)

func TestWarmMapsWhatTransfersGoThrough(t *testing.T) {
	hostio.Spare(true)
	hostio.Warm(3)
	require.Equal(t, 3, hostio.Spare(false))
	hostio.Warm(2)
	require.Equal(t, 3, hostio.Spare(false), "it maps no more than are missing")
	hostio.Warm(1000)
	assert.Equal(t, 8, hostio.Spare(false))
}

// Nothing is mapped while files are timed: every worker has its memory before.
func TestTimedStepsAreWarm(t *testing.T) {
	dir, err := hostio.OpenDir(t.TempDir())
	require.NoError(t, err)
	defer dir.Close()
	vol := folder.New(dir, false)
	data := workload.NewData(1, 1, "case", "", 0)
	o := workload.Options{Clock: clock.NewReal(), Data: data, Workers: 3, Cache: workload.CacheDirect, Sync: hostio.SyncFsync}
	items := []workload.Item{{Name: "a", Size: 65536, Batch: 1, Set: 1}}
	hostio.Spare(true)
	_, err = workload.Write(t.Context(), vol, items, o)
	require.NoError(t, err)
	assert.GreaterOrEqual(t, hostio.Spare(true), 3)
	_, err = workload.Read(t.Context(), vol, items, o)
	require.NoError(t, err)
	assert.GreaterOrEqual(t, hostio.Spare(true), 3)
	_, err = workload.Copy(t.Context(), workload.Generated(data, "b", 5000), vol, "b", o)
	require.NoError(t, err)
	assert.GreaterOrEqual(t, hostio.Spare(true), 2)
}

package inprocess_test

import (
	"syscall"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"dmgbench/internal/bench/engine"
	"dmgbench/internal/bench/workload"
	"dmgbench/internal/system/clock"
	"dmgbench/internal/system/hostio"
)

// A failed write names the file once, and the container where the host refused it.
func TestAFailedWriteNamesItsFileOnce(t *testing.T) {
	faults, _, v, _ := newVictim(t, "UDRW")
	a, err := v.con.Attach(t.Context(), engine.AttachOptions{})
	require.NoError(t, err)
	require.NoError(t, a.Volume().Mkdir("first"), "the first change marks the volume as dirty")
	data := workload.NewData(1, 1, "", "", 0)
	list := []workload.Item{{Name: workload.BatchFolder(1) + "/f", Size: 1 << 20, Batch: 1, Set: 1}}
	require.NoError(t, a.Volume().Mkdir(workload.BatchFolder(1)))
	faults.FailFrom(hostio.OpWrite, "", 1, syscall.ENOSPC)
	err = a.Volume().Mkdir("second")
	require.ErrorIs(t, err, syscall.ENOSPC)
	assert.NotContains(t, err.Error(), "second")
	_, err = workload.Write(t.Context(), a.Volume(), list, workload.Options{Clock: clock.NewReal(), Data: data, Sync: hostio.SyncFsync})
	require.ErrorIs(t, err, syscall.ENOSPC)
	assert.Regexp(t, `^writing file "[^"]+/f": writing \d+ bytes at \d+ of "[^"]+": no space left on device$`, err.Error())
}

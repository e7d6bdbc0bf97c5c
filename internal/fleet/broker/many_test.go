package broker

import (
	"fmt"
	"os"
	"runtime"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"dmgbench/internal/fleet"
)

// A thousand machines are added one after the other, and are there after a restart.
func TestThousandMachines(t *testing.T) {
	if os.Getenv("DMGBENCH_LONG") == "" {
		t.Skip("DMGBENCH_LONG is not set")
	}
	folder := t.TempDir()
	limits := fleet.Limits{Queue: 4 << 20, Results: 4 << 20, Runs: 1 << 20, Replicas: 1}
	s := startServer(t, folder, Options{Limits: limits})
	var last fleet.Link
	started := time.Now()
	for i := range 1000 {
		var err error
		last, err = s.AddMachine(t.Context(), fmt.Sprintf("mac-%d", i))
		require.NoError(t, err)
		if i%100 == 99 {
			var m runtime.MemStats
			runtime.ReadMemStats(&m)
			t.Logf("%d machines after %v, heap %d MiB", i+1, time.Since(started), m.HeapAlloc>>20)
		}
	}
	started = time.Now()
	s.Close()
	t.Logf("closed in %v", time.Since(started))
	started = time.Now()
	startServer(t, folder, Options{Limits: limits})
	t.Logf("restarted in %v", time.Since(started))
	connect(t, last)
}

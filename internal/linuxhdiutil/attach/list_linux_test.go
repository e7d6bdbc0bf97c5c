package attach

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"dmgbench/internal/system/host"
)

// TestListWaitsForTheLock: an attachment is listed once it is complete.
func TestListWaitsForTheLock(t *testing.T) {
	t.Setenv("DMGBENCH_RUNTIME_DIR", t.TempDir())
	s, err := openStore(t.Context())
	require.NoError(t, err)
	require.NoError(t, s.save(&record{Attached: Attached{ID: "unfinished"}, Boot: host.BootID(), Loop: -1}))
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	_, err = List(ctx)
	require.ErrorIs(t, err, context.DeadlineExceeded)
	s.close()
	list, err := List(t.Context())
	require.NoError(t, err)
	require.Len(t, list, 1)
	assert.True(t, list[0].Unfinished)
}

package attach

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"dmgbench/internal/system/host"
)

// TestListDoesNotWaitForTheLock: another command may hold it for as long as a process takes to start.
func TestListDoesNotWaitForTheLock(t *testing.T) {
	t.Setenv("DMGBENCH_RUNTIME_DIR", t.TempDir())
	s, err := openStore(t.Context())
	require.NoError(t, err)
	defer s.close()
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
	defer cancel()
	list, err := List(ctx)
	require.NoError(t, err)
	assert.Empty(t, list)

	require.NoError(t, s.save(&record{Attached: Attached{ID: "unfinished"}, Boot: host.BootID()}))
	ctx, cancel = context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	_, err = List(ctx)
	require.ErrorIs(t, err, context.DeadlineExceeded, "an unfinished attachment is waited for")
}

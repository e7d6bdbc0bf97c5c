package container

import (
	"syscall"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"dmgbench/internal/system/hostio"
	"dmgbench/internal/system/hostio/hostiotest"
)

// gated holds the first flush of a kind up until it is told how that ends.
type gated struct {
	kind    hostio.Kind
	reached chan struct{}
	verdict chan error
}

func (g *gated) Before(op hostio.Op) error {
	if op.Kind != g.kind || g.reached == nil {
		return nil
	}
	select {
	case g.reached <- struct{}{}:
		return <-g.verdict
	default:
		return nil
	}
}

func (g *gated) After(hostio.Op, int, error) {}

// TestFlushWaitsForAFlushThatTookItsWrites: data that was written before Flush
// was called is durable when it returns, even if another call is just syncing
// it; and if that fails, both say so.
func TestFlushWaitsForAFlushThatTookItsWrites(t *testing.T) {
	for _, kind := range []hostio.Kind{hostio.OpSync, hostio.OpDirSync} {
		for _, end := range []error{nil, syscall.EIO} {
			synctest.Test(t, func(t *testing.T) {
				g := &gated{kind: kind}
				d := tempDir(t, hostio.WithHook(g))
				require.NoError(t, Create(d, "i", Spec{Format: UDSB, Size: 8 << 20, BandSize: 1 << 20}))
				img, err := Open(d, "i", OpenOptions{})
				require.NoError(t, err)
				defer func() { _ = img.Close() }()
				_, err = img.WriteAt(pattern(1<<20, 1), 0)
				require.NoError(t, err)
				g.reached, g.verdict = make(chan struct{}, 1), make(chan error)
				results := make(chan error, 2)
				go func() { results <- img.Flush() }()
				synctest.Wait()
				require.Len(t, g.reached, 1, "the first flush is under way")
				go func() { results <- img.Flush() }()
				synctest.Wait()
				assert.Empty(t, results, "neither has returned: %s", kind)
				g.verdict <- end
				for range 2 {
					if err := <-results; end == nil {
						assert.NoError(t, err)
					} else {
						assert.ErrorIs(t, err, end)
					}
				}
			})
		}
	}
}

// TestBandsFolderThatWasMissingIsDurable opens a bundle without bands, as tools leave new ones, and cuts the power after a
// flush: what was flushed is there.
func TestBandsFolderThatWasMissingIsDurable(t *testing.T) {
	rec := hostiotest.NewRecorder(true)
	d := tempDir(t, hostio.WithHook(rec))
	require.NoError(t, Create(d, "i", Spec{Format: UDSB, Size: 4 << 20, BandSize: 1 << 20}))
	require.NoError(t, d.Remove("i/bands"))
	require.NoError(t, d.Sync())
	first := len(rec.Ops())
	img, err := Open(d, "i", OpenOptions{})
	require.NoError(t, err)
	_, err = img.WriteAt(pattern(5000, 1), 0)
	require.NoError(t, err)
	require.NoError(t, img.Flush())
	ops := rec.Ops()
	require.NoError(t, img.Close())
	made, synced := -1, -1
	for i, op := range ops[first:] {
		switch {
		case op.Kind == hostio.OpMkdir && op.Path == "i/bands":
			made = i
		case op.Kind == hostio.OpDirSync && op.Path == "i":
			synced = i
		}
	}
	assert.GreaterOrEqual(t, made, 0)
	assert.Greater(t, synced, made)
}

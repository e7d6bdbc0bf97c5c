package container

import (
	"syscall"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"dmgbench/internal/system/hostio"
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
